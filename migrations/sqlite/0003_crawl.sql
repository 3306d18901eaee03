-- Crawls: their frontier, and the pauses that hosts and callers ask for.

-- SQLite cannot change a CHECK, so the table is made again with two more kinds.
CREATE TABLE job_next (
    id TEXT PRIMARY KEY,
    team_id TEXT NOT NULL,
    api_key_id TEXT,
    kind TEXT NOT NULL CHECK (kind IN ('scrape', 'batch', 'crawl', 'map')),
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
    -- page rows that are steps of the job itself (reading sitemaps): in the counts here, not in those clients see
    hidden BIGINT NOT NULL DEFAULT 0,
    CHECK ((status = 'scraping') = (finished_at IS NULL))
);
INSERT INTO job_next (
    id, team_id, api_key_id, kind, status, rank, options, target, origin, max_concurrency, webhook, total,
    queued, completed, failed, credits_used, last_served, limited_at, created_at, expires_at, finished_at
) SELECT
    id, team_id, api_key_id, kind, status, rank, options, target, origin, max_concurrency, webhook, total,
    queued, completed, failed, credits_used, last_served, limited_at, created_at, expires_at, finished_at
FROM job;
DROP TABLE job;
ALTER TABLE job_next RENAME TO job;
CREATE INDEX job_waiting ON job (team_id, rank, last_served, id) WHERE queued > 0;
CREATE INDEX job_running ON job (team_id) WHERE status = 'scraping';
CREATE INDEX job_team ON job (team_id, created_at);
CREATE INDEX job_expiry ON job (expires_at);

-- Distance from the start page, for pages of a crawl.
ALTER TABLE page ADD COLUMN depth BIGINT NOT NULL DEFAULT 0;

-- What only crawls have, one row beside the job's.
CREATE TABLE crawl (
    job_id TEXT PRIMARY KEY,
    team_id TEXT NOT NULL,
    -- the start page as asked for
    url TEXT NOT NULL,
    -- CrawlOptions as JSON
    options TEXT NOT NULL,
    -- where the site is, known when the start page has ended: its address after redirects
    base TEXT,
    -- most pages
    page_limit BIGINT NOT NULL,
    -- pages that count against the limit: all that have a page row, without those dropped
    admitted BIGINT NOT NULL,
    -- place in the order of discovery that comes next
    next_seq BIGINT NOT NULL,
    -- rows of crawl_url by what became of them, changed with them
    discovered BIGINT NOT NULL,
    waiting BIGINT NOT NULL DEFAULT 0,
    blocked BIGINT NOT NULL DEFAULT 0,
    -- pages fetched and not delivered: duplicates, redirects out of the crawl
    dropped BIGINT NOT NULL DEFAULT 0,
    -- sentences for the status
    warning TEXT
);

-- The frontier: every address that a crawl has met and that belongs to it, once.
CREATE TABLE crawl_url (
    job_id TEXT NOT NULL,
    -- what makes two addresses one page; see domain/crawl/address.rs
    key TEXT NOT NULL,
    -- taken: a page row has it; waiting: there is no room under the limit; blocked: robots.txt forbids it
    state TEXT NOT NULL CHECK (state IN ('taken', 'waiting', 'blocked')),
    page_id TEXT,
    -- NULL when the page row has it
    url TEXT,
    depth BIGINT NOT NULL,
    -- order of discovery
    seq BIGINT NOT NULL,
    PRIMARY KEY (job_id, key)
) WITHOUT ROWID;
CREATE INDEX crawl_url_waiting ON crawl_url (job_id, seq) WHERE state = 'waiting';
CREATE INDEX crawl_url_blocked ON crawl_url (job_id, seq) WHERE state = 'blocked';

-- Who may ask a host next, over all workers: a row for each host with a crawl delay and each crawl with a delay.
CREATE TABLE turn (
    name TEXT PRIMARY KEY,
    -- no request before this time
    next_at BIGINT NOT NULL,
    -- the first time that nobody has been told to come back at
    booked BIGINT NOT NULL
);
