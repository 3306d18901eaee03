-- Files that come apart from the call that parses them, and what callers say of their results.
-- Times are milliseconds since 1970 UTC.

-- Addresses that a file can be sent to, and the files that came. A row goes when its file is parsed; those that are left
-- after a day were never parsed.
CREATE TABLE upload (
    -- what its blobs lie under, as a job's do; when those go stands in blob_waste
    id TEXT PRIMARY KEY,
    team_id TEXT NOT NULL,
    -- whose room among the bodies the file takes while it comes; NULL: everybody's
    api_key_id TEXT,
    -- the file's, without folders; '': the address has expired, and nothing of the file is kept
    name TEXT NOT NULL,
    -- as the caller has it
    content_type TEXT,
    -- where the file lies among the blobs; NULL: it has not come whole
    blob TEXT,
    -- somebody parses it until then, and nobody else meanwhile; NULL: nobody does
    claimed_until BIGINT,
    created_at BIGINT NOT NULL,
    -- when nothing can be sent or parsed any more
    expires_at BIGINT NOT NULL
);
CREATE INDEX upload_team ON upload (team_id, created_at);
CREATE INDEX upload_age ON upload (created_at);

-- What callers say of results. One for each job; the newest of a team are kept.
CREATE TABLE feedback (
    -- of version 7: the order is that of time
    id TEXT PRIMARY KEY,
    team_id TEXT NOT NULL,
    -- search, scrape, parse or map
    endpoint TEXT NOT NULL,
    -- what the result is found by
    job_id TEXT NOT NULL,
    -- good, partial or bad
    rating TEXT NOT NULL,
    -- the rest of what was said, JSON; NULL: nothing of it may be kept
    body TEXT,
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX feedback_job ON feedback (team_id, job_id);
CREATE INDEX feedback_team ON feedback (team_id, id);
