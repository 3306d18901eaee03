-- Teams, keys, jobs, pages, documents, credits, webhooks and worker processes.
-- Times are milliseconds since 1970 UTC. Ids are UUIDs, version 7, as text.
-- Our table names stay clear of the queue library's `Jobs` and `Workers`.

CREATE TABLE team (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    -- pages in work at once over all workers; NULL: WEIR_TEAM_CONCURRENCY
    concurrency BIGINT CHECK (concurrency > 0),
    -- browser sessions at once; NULL: WEIR_TEAM_SESSIONS
    sessions BIGINT CHECK (sessions > 0),
    -- HMAC secret of webhooks; NULL: WEIR_WEBHOOK_SECRET
    webhook_secret TEXT,
    zero_data_retention BOOLEAN NOT NULL DEFAULT FALSE,
    -- JSON object bucket -> requests a minute; NULL: WEIR_RATE_LIMITS
    rates TEXT,
    credits_granted BIGINT NOT NULL DEFAULT 0,
    -- sum of credit_entry.amount, changed in the same transaction
    credits_used BIGINT NOT NULL DEFAULT 0,
    -- a claim was cut short by the team's or a job's limit: the next finished page sends a ticket
    starved BOOLEAN NOT NULL DEFAULT FALSE,
    created_at BIGINT NOT NULL
);

CREATE TABLE api_key (
    id TEXT PRIMARY KEY,
    team_id TEXT NOT NULL REFERENCES team (id),
    -- SHA-256 of the key, hex; the key itself is never stored
    hash TEXT NOT NULL UNIQUE,
    -- first characters, to tell keys apart in lists
    prefix TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    revoked_at BIGINT
);
CREATE INDEX api_key_team ON api_key (team_id);

CREATE TABLE setting (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE job (
    id TEXT PRIMARY KEY,
    team_id TEXT NOT NULL,
    api_key_id TEXT,
    kind TEXT NOT NULL CHECK (kind IN ('scrape', 'batch')),
    status TEXT NOT NULL CHECK (status IN ('scraping', 'completed', 'failed', 'cancelled')),
    -- order in which a team's jobs are served: 0 somebody waits for the answer, 1 background
    rank BIGINT NOT NULL,
    -- ScrapeOptions as JSON
    options TEXT NOT NULL,
    -- the first URL, for lists
    target TEXT NOT NULL,
    origin TEXT,
    -- pages at once of this job; NULL: the team's limit
    max_concurrency BIGINT CHECK (max_concurrency > 0),
    -- WebhookSpec as JSON
    webhook TEXT,
    -- counts of page rows, changed in the transaction that changes the rows
    total BIGINT NOT NULL,
    queued BIGINT NOT NULL CHECK (queued >= 0),
    completed BIGINT NOT NULL DEFAULT 0,
    failed BIGINT NOT NULL DEFAULT 0,
    credits_used BIGINT NOT NULL DEFAULT 0,
    -- when pages were last claimed: the job served longest ago comes first
    last_served BIGINT NOT NULL DEFAULT 0,
    -- when a concurrency limit last kept its pages waiting
    limited_at BIGINT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    finished_at BIGINT,
    CHECK ((status = 'scraping') = (finished_at IS NULL))
);
CREATE INDEX job_waiting ON job (team_id, rank, last_served, id) WHERE queued > 0;
CREATE INDEX job_running ON job (team_id) WHERE status = 'scraping';
CREATE INDEX job_team ON job (team_id, created_at);
CREATE INDEX job_expiry ON job (expires_at);

CREATE TABLE page (
    -- the scrapeId of CONTRACT 3.3
    id TEXT PRIMARY KEY,
    job_id TEXT NOT NULL,
    team_id TEXT NOT NULL,
    -- place in the request
    idx BIGINT NOT NULL,
    url TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled')),
    -- not claimed before this time
    run_at BIGINT NOT NULL,
    queued_at BIGINT NOT NULL,
    started_at BIGINT,
    finished_at BIGINT,
    -- claims so far: the ceiling against pages that take their worker down
    claims BIGINT NOT NULL DEFAULT 0,
    -- failed tries that counted as the page's own
    tries BIGINT NOT NULL DEFAULT 0,
    -- fences every write of an attempt: it grows with each claim, cancel and replay
    epoch BIGINT NOT NULL DEFAULT 0,
    -- worker_node.id while running
    owner TEXT,
    error_code TEXT,
    error TEXT,
    CHECK ((state = 'running') = (owner IS NOT NULL))
);
CREATE INDEX page_queued ON page (job_id, run_at, idx) WHERE state = 'queued';
CREATE INDEX page_running ON page (team_id, job_id) WHERE state = 'running';
CREATE INDEX page_failed ON page (job_id, finished_at) WHERE state = 'failed';
CREATE INDEX page_job ON page (job_id, idx);

-- Tries that failed or were lost. A page that worked at once has no row here.
CREATE TABLE page_attempt (
    page_id TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    job_id TEXT NOT NULL,
    worker TEXT,
    started_at BIGINT,
    ended_at BIGINT NOT NULL,
    code TEXT,
    error TEXT NOT NULL,
    PRIMARY KEY (page_id, epoch)
);
CREATE INDEX page_attempt_job ON page_attempt (job_id);

CREATE TABLE document (
    job_id TEXT NOT NULL,
    -- order of completion inside the job: 1 upwards without gaps
    seq BIGINT NOT NULL,
    page_id TEXT NOT NULL,
    -- bytes of the JSON text before compression
    size BIGINT NOT NULL,
    -- zstd of the Document's JSON; NULL when it lies in a blob
    body BLOB,
    -- key of the blob
    blob TEXT,
    PRIMARY KEY (job_id, seq),
    CHECK ((body IS NULL) <> (blob IS NULL))
);
CREATE UNIQUE INDEX document_page ON document (page_id);

CREATE TABLE idempotency_key (
    team_id TEXT NOT NULL,
    key TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (team_id, key)
);
CREATE INDEX idempotency_key_age ON idempotency_key (created_at);

-- The ledger. `key` names the billed thing, so that nothing is billed twice.
CREATE TABLE credit_entry (
    key TEXT PRIMARY KEY,
    team_id TEXT NOT NULL,
    api_key_id TEXT,
    -- what was billed: scrape, batch_scrape, ...
    kind TEXT NOT NULL,
    amount BIGINT NOT NULL,
    created_at BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX credit_entry_team ON credit_entry (team_id, created_at);

CREATE TABLE webhook_delivery (
    -- the webhookId, the same on every try
    id TEXT PRIMARY KEY,
    team_id TEXT NOT NULL,
    job_id TEXT NOT NULL,
    page_id TEXT,
    -- started, page, completed, failed, cancelled
    event TEXT NOT NULL,
    -- order inside a job: 0 started, 1 page, 2 the end
    stage BIGINT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'delivered', 'dead')),
    attempt BIGINT NOT NULL DEFAULT 0,
    -- tries before the last replay: the schedule counts from here
    retry_from BIGINT NOT NULL DEFAULT 0,
    -- next try, or the end of the lease of the try under way
    next_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    finished_at BIGINT,
    last_status BIGINT,
    last_error TEXT
);
CREATE INDEX webhook_delivery_waiting ON webhook_delivery (job_id, stage, next_at) WHERE state = 'waiting';
CREATE INDEX webhook_delivery_due ON webhook_delivery (next_at) WHERE state = 'waiting';
CREATE INDEX webhook_delivery_dead ON webhook_delivery (created_at) WHERE state = 'dead';
CREATE INDEX webhook_delivery_job ON webhook_delivery (job_id);

CREATE TABLE webhook_attempt (
    delivery_id TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    job_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    duration_ms BIGINT NOT NULL,
    status BIGINT,
    error TEXT,
    PRIMARY KEY (delivery_id, attempt)
);
CREATE INDEX webhook_attempt_job ON webhook_attempt (job_id);

-- One row per worker process that ever started; dead ones are swept.
CREATE TABLE worker_node (
    id TEXT PRIMARY KEY,
    -- host name and process, for people
    name TEXT NOT NULL,
    -- boot id and pid: tells a local process that died from one that is slow
    host TEXT NOT NULL,
    pid BIGINT NOT NULL,
    -- private listener the API reaches
    address TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('live', 'draining', 'dead')),
    slots BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    heartbeat_at BIGINT NOT NULL
);
CREATE INDEX worker_node_live ON worker_node (heartbeat_at) WHERE state <> 'dead';

-- Work that one worker at a time does for all, with the end of its lease.
CREATE TABLE lease (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    until BIGINT NOT NULL
);
