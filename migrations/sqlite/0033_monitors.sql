-- Monitors: pages, crawls and searches that are looked at by a schedule, and what came of it.
-- Times are milliseconds since 1970 UTC.

-- What is watched. The schedule lives here: whoever moves next_due_at on has the run.
CREATE TABLE monitor (
    -- of version 7: the order is that of time
    id TEXT PRIMARY KEY,
    team_id TEXT NOT NULL,
    -- whose calls its checks are billed as; NULL: the team's
    api_key_id TEXT,
    name TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('active', 'paused', 'deleted')),
    -- five fields, read in the time zone
    cron TEXT NOT NULL,
    -- IANA name
    timezone TEXT NOT NULL,
    -- milliseconds after the moments that the expression names: the monitor's own, always the same
    spread_ms BIGINT NOT NULL,
    -- targets, goal, webhook and the rest of the request, JSON
    spec TEXT NOT NULL,
    -- days that checks stay
    retention_days BIGINT NOT NULL,
    -- when its next check is due; NULL: never, because it is paused or deleted
    next_due_at BIGINT,
    last_run_at BIGINT,
    -- the check that has not ended
    current_check_id TEXT,
    -- counts of the last check that ended, JSON
    last_summary TEXT,
    -- credits of one check, as far as that is known beforehand, and checks in thirty days
    estimated_credits BIGINT NOT NULL,
    runs_a_month BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    CHECK (status = 'active' OR next_due_at IS NULL)
);
CREATE INDEX monitor_due ON monitor (next_due_at) WHERE next_due_at IS NOT NULL;
CREATE INDEX monitor_team ON monitor (team_id, id);
CREATE INDEX monitor_deleted ON monitor (id) WHERE status = 'deleted';

-- One look at everything that a monitor watches.
CREATE TABLE monitor_check (
    id TEXT PRIMARY KEY,
    monitor_id TEXT NOT NULL,
    team_id TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('queued', 'running', 'completed', 'failed', 'partial', 'skipped_overlap', 'skipped_no_credits')),
    -- scheduled or manual
    cause TEXT NOT NULL CHECK (cause IN ('scheduled', 'manual')),
    -- when the schedule wanted it; NULL: somebody asked for it
    scheduled_for BIGINT,
    started_at BIGINT,
    finished_at BIGINT,
    estimated_credits BIGINT NOT NULL,
    actual_credits BIGINT NOT NULL DEFAULT 0,
    -- not_applicable, reserved, confirmed, released or failed
    billing TEXT NOT NULL,
    -- pages by what became of them
    same_pages BIGINT NOT NULL DEFAULT 0,
    changed_pages BIGINT NOT NULL DEFAULT 0,
    new_pages BIGINT NOT NULL DEFAULT 0,
    removed_pages BIGINT NOT NULL DEFAULT 0,
    error_pages BIGINT NOT NULL DEFAULT 0,
    -- how far each target is, JSON
    targets TEXT NOT NULL,
    -- the monitor's webhook when the check was made, JSON
    webhook TEXT,
    error TEXT,
    -- counts claims: what an older one writes is not taken
    epoch BIGINT NOT NULL DEFAULT 0,
    -- when a worker looks after it again, or the end of the lease of the one that does; NULL: it has ended
    next_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    -- when it goes, with its pages
    expires_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX monitor_check_due ON monitor_check (monitor_id, scheduled_for);
CREATE INDEX monitor_check_list ON monitor_check (monitor_id, id);
CREATE INDEX monitor_check_open ON monitor_check (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX monitor_check_age ON monitor_check (expires_at) WHERE next_at IS NULL;

-- What a check found of one page.
CREATE TABLE monitor_page (
    id TEXT PRIMARY KEY,
    check_id TEXT NOT NULL,
    -- place in the check, 1 upwards
    seq BIGINT NOT NULL,
    target_id TEXT NOT NULL,
    url TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('same', 'new', 'changed', 'removed', 'error')),
    previous_scrape_id TEXT,
    current_scrape_id TEXT,
    status_code BIGINT,
    error TEXT,
    -- metadata, diff, snapshot and judgement: compressed JSON, with its length when unpacked
    detail BLOB NOT NULL,
    detail_size BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX monitor_page_check ON monitor_page (check_id, seq);

-- The addresses that a target has met, with the last look at each.
CREATE TABLE monitor_url (
    monitor_id TEXT NOT NULL,
    target_id TEXT NOT NULL,
    -- digest of the address
    key TEXT NOT NULL,
    url TEXT NOT NULL,
    -- its last document
    scrape_id TEXT,
    is_gone BOOLEAN NOT NULL,
    -- the check that met it last
    check_id TEXT NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (monitor_id, target_id, key)
);
CREATE INDEX monitor_url_age ON monitor_url (seen_at);

-- The monitor that a tracked page belongs to; NULL: somebody tracks it by hand.
ALTER TABLE page_snapshot ADD COLUMN monitor_id TEXT;
CREATE INDEX page_snapshot_monitor ON page_snapshot (monitor_id) WHERE monitor_id IS NOT NULL;
