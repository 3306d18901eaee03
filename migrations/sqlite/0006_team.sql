-- What teams did and used, shown to themselves, and the numbers that bound them.
-- Times are milliseconds since 1970 UTC.

-- What a team asked for, kept a day (SPEC 4.12): it outlives results that expire sooner.
CREATE TABLE activity (
    team_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    -- what the results are found by: page.id of a scrape, else the id of the job or session
    id TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    -- NULL: nothing of it may be kept, or there is none
    target TEXT,
    PRIMARY KEY (team_id, endpoint, created_at, id)
) WITHOUT ROWID;
CREATE INDEX activity_team ON activity (team_id, created_at, id);
CREATE INDEX activity_age ON activity (created_at);

-- What is still known of the time before.
INSERT INTO activity (team_id, created_at, id, endpoint, target)
    SELECT team_id, created_at, CASE kind WHEN 'scrape'
        THEN COALESCE((SELECT page.id FROM page WHERE page.job_id = job.id AND page.idx = 0), id) ELSE id END,
        CASE kind WHEN 'batch' THEN 'batch_scrape' ELSE kind END,
        -- Maps of teams that keep nothing have no site either.
        CASE WHEN kind = 'map' AND site IS NULL THEN NULL ELSE target END
    FROM job;
INSERT INTO activity (team_id, created_at, id, endpoint, target)
    SELECT team_id, opened_at, id, kind, (SELECT page.url FROM page WHERE page.id = browser_session.page_id)
    FROM browser_session WHERE opened_at IS NOT NULL;

-- Sums of the ledger by calendar month (UTC) and key, so that a year's history costs no more than a month's.
CREATE TABLE credit_month (
    team_id TEXT NOT NULL,
    -- its first moment
    month BIGINT NOT NULL,
    -- '': billed without a key
    api_key_id TEXT NOT NULL,
    amount BIGINT NOT NULL,
    PRIMARY KEY (team_id, month, api_key_id)
) WITHOUT ROWID;
INSERT INTO credit_month (team_id, month, api_key_id, amount)
    SELECT team_id, CAST(strftime('%s', created_at / 1000, 'unixepoch', 'start of month') AS BIGINT) * 1000,
        COALESCE(api_key_id, ''), CAST(SUM(amount) AS BIGINT) FROM credit_entry GROUP BY 1, 2, 3;

-- The database adds up by itself, so that no writer of the ledger can forget to, also none of an earlier release.
CREATE TRIGGER credit_month_add AFTER INSERT ON credit_entry BEGIN
    INSERT INTO credit_month (team_id, month, api_key_id, amount)
    VALUES (NEW.team_id, CAST(strftime('%s', NEW.created_at / 1000, 'unixepoch', 'start of month') AS BIGINT) * 1000,
        COALESCE(NEW.api_key_id, ''), NEW.amount)
    ON CONFLICT (team_id, month, api_key_id) DO UPDATE SET amount = amount + excluded.amount;
END;

-- The queue status asks for a team's latest success.
CREATE INDEX job_success ON job (team_id, finished_at) WHERE status = 'completed' AND completed > 0;

-- Pages that may wait at once over all of the team's jobs; NULL: WEIR_TEAM_QUEUE
ALTER TABLE team ADD COLUMN queue_limit BIGINT CHECK (queue_limit > 0);

-- Requests of the current minute, over all API processes.
CREATE TABLE rate_window (
    team_id TEXT NOT NULL,
    bucket TEXT NOT NULL,
    -- number of the minute since 1970
    minute BIGINT NOT NULL,
    taken BIGINT NOT NULL,
    PRIMARY KEY (team_id, bucket)
) WITHOUT ROWID;

-- How often a page, and a delivery, was put back after it had failed for good.
ALTER TABLE page ADD COLUMN replays BIGINT NOT NULL DEFAULT 0;
ALTER TABLE webhook_delivery ADD COLUMN replays BIGINT NOT NULL DEFAULT 0;
