-- Crawls: their frontier, and the pauses that hosts and callers ask for.

ALTER TABLE job DROP CONSTRAINT job_kind_check;
ALTER TABLE job ADD CONSTRAINT job_kind_check CHECK (kind IN ('scrape', 'batch', 'crawl', 'map'));
-- page rows that are steps of the job itself (reading sitemaps): in the counts here, not in those clients see
ALTER TABLE job ADD COLUMN hidden BIGINT NOT NULL DEFAULT 0;

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
);
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
