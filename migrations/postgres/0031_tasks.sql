-- Extractions and agents: jobs of kinds of their own that a task drives, step by step. Times are milliseconds since 1970
-- UTC.
ALTER TABLE job DROP CONSTRAINT job_kind_check;
ALTER TABLE job ADD CONSTRAINT job_kind_check
    CHECK (kind IN ('scrape', 'batch', 'crawl', 'map', 'search', 'extract', 'agent')) NOT VALID;

-- What a task is to do, and who is at it. Its state, counts and credits are its job's.
CREATE TABLE task (
    job_id TEXT PRIMARY KEY,
    team_id TEXT NOT NULL,
    api_key_id TEXT,
    kind TEXT NOT NULL CHECK (kind IN ('extract', 'agent')),
    -- the request, JSON: see `TaskSpec` in the code
    spec TEXT NOT NULL,
    -- of an agent: the thread of runs that it belongs to, and its place in it
    thread_id TEXT,
    turn BIGINT NOT NULL DEFAULT 1,
    -- worker_node.id while a worker is at it
    owner TEXT,
    -- fences every write of a worker: it grows with each claim
    epoch BIGINT NOT NULL DEFAULT 0,
    -- a wake-up came while a worker was at it
    called BOOLEAN NOT NULL DEFAULT FALSE,
    -- when it is looked at again at the latest; NULL: it has ended
    due_at BIGINT,
    -- tokens of the language model
    sent BIGINT NOT NULL DEFAULT 0,
    received BIGINT NOT NULL DEFAULT 0,
    -- what came of it, JSON: see `TaskOutcome` in the code
    outcome TEXT,
    created_at BIGINT NOT NULL
);
CREATE INDEX task_due ON task (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX task_owner ON task (owner) WHERE owner IS NOT NULL;
CREATE INDEX task_list ON task (team_id, kind, job_id);
CREATE INDEX task_thread ON task (thread_id, turn) WHERE thread_id IS NOT NULL;

-- The steps of a task. One is written before it is done, and what came of it before the next: none is done twice.
CREATE TABLE task_step (
    job_id TEXT NOT NULL,
    -- names the step: the same when the task goes on in another process
    key TEXT NOT NULL,
    id TEXT NOT NULL,
    -- order in which they were begun
    number BIGINT NOT NULL,
    -- model, search, map, pages, interact
    kind TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('begun', 'done')),
    -- how often it was begun: steps without an effect are begun again
    tries BIGINT NOT NULL DEFAULT 1,
    -- what it was given, JSON
    says TEXT NOT NULL,
    -- what came of it, JSON
    outcome TEXT,
    sent BIGINT NOT NULL DEFAULT 0,
    received BIGINT NOT NULL DEFAULT 0,
    -- what it cost beside pages and sessions
    credits BIGINT NOT NULL DEFAULT 0,
    started_at BIGINT NOT NULL,
    ended_at BIGINT,
    PRIMARY KEY (job_id, key),
    CHECK ((state = 'done') = (ended_at IS NOT NULL))
);
CREATE UNIQUE INDEX task_step_id ON task_step (id);
