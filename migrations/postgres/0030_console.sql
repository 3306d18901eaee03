-- The console: who is signed in, what every process does minute by minute, and the orders in which lists are shown.
-- Times are milliseconds since 1970 UTC.

-- Who is signed in to the console.
CREATE TABLE console_session (
    -- SHA-256, hex, of what the cookie holds; that itself is never stored
    id TEXT PRIMARY KEY,
    -- team: sees and changes its own; operator: all teams; reader: sees all teams
    role TEXT NOT NULL CHECK (role IN ('team', 'operator', 'reader')),
    -- of a team's session: the team, and the key that it began with (NULL: a link)
    team_id TEXT,
    api_key_id TEXT,
    -- of an operator's or reader's: digest of the console key that it began with (NULL: a link)
    console_key TEXT,
    created_at BIGINT NOT NULL,
    -- the last request, to the minute
    seen_at BIGINT NOT NULL,
    -- it ends then at the latest
    expires_at BIGINT NOT NULL,
    CHECK ((role = 'team') = (team_id IS NOT NULL))
);
CREATE INDEX console_session_expiry ON console_session (expires_at);

-- Links that sign in once.
CREATE TABLE console_link (
    -- SHA-256, hex, of what the link holds
    id TEXT PRIMARY KEY,
    role TEXT NOT NULL CHECK (role IN ('team', 'operator', 'reader')),
    team_id TEXT,
    expires_at BIGINT NOT NULL,
    CHECK ((role = 'team') = (team_id IS NOT NULL))
);

-- What one process did in one minute or one hour: one row a process, and one a team whose pages it worked on.
CREATE TABLE figure (
    -- minute (kept for a day) or hour (kept for eight days)
    span TEXT NOT NULL CHECK (span IN ('minute', 'hour')),
    -- '': the whole process
    team_id TEXT NOT NULL,
    -- when it began
    at BIGINT NOT NULL,
    -- an id of the process
    process TEXT NOT NULL,
    -- JSON: see `Figures` in the code
    body TEXT NOT NULL,
    PRIMARY KEY (span, team_id, at, process)
);
CREATE INDEX figure_age ON figure (span, at);

-- For people, to tell keys apart; and when it last was used, to the minute.
ALTER TABLE api_key ADD COLUMN name TEXT;
ALTER TABLE api_key ADD COLUMN last_used_at BIGINT;

-- What a worker had to do at its last heartbeat, JSON (`Load` in the code); NULL: it is of an earlier release.
ALTER TABLE worker_node ADD COLUMN load TEXT;

-- All that a list of jobs is narrowed by and that never changes, so that it is found without the rows.
CREATE INDEX job_list ON job (id, team_id, kind, created_at, site);
-- The few that did not end well, and those that run.
CREATE INDEX job_unlucky ON job (status, id) WHERE status IN ('failed', 'cancelled');
-- Failures: those of a team by time, and the jobs that have one of a kind.
CREATE INDEX page_failed_team ON page (team_id, finished_at, id) WHERE state = 'failed';
CREATE INDEX page_failed_code ON page (error_code, job_id) WHERE state = 'failed';
-- The ledger by day, without a look at the entries.
CREATE INDEX credit_entry_day ON credit_entry (team_id, created_at, kind, api_key_id, amount);
DROP INDEX credit_entry_team;
