-- What sites have sent, from which pages are made without asking again. Times are milliseconds since 1970 UTC.
-- What is in cached_page is not read any more, and goes from it: processes of the release before still write there.

-- What came, once each, whatever address it came from.
CREATE TABLE page_content (
    -- digest of the compressed bytes and of the lengths of their parts
    digest TEXT PRIMARY KEY,
    -- bytes before and after compression
    size BIGINT NOT NULL,
    packed BIGINT NOT NULL,
    -- when it was stored or read last, to the hour: what was not used for longest goes first
    used_at BIGINT NOT NULL,
    -- where it lies among the blobs, when it is large
    blob TEXT,
    -- zstd of the parts, one after the other
    body BYTEA,
    CHECK ((body IS NULL) <> (blob IS NULL))
);
CREATE INDEX page_content_use ON page_content (used_at, packed);

-- The newest answer of a site to one way of asking for a page.
CREATE TABLE page_version (
    -- digest of the address and of what influences fetching; with the team where the request is its own
    key TEXT PRIMARY KEY,
    -- the team whose job stored it last
    team_id TEXT NOT NULL,
    -- as requested
    url TEXT NOT NULL,
    -- its registered domain
    site TEXT,
    -- its content; one that is gone is as good as no version
    digest TEXT NOT NULL,
    -- JSON: what else is known of the answer, and the lengths of the content's parts
    head TEXT NOT NULL,
    stored_at BIGINT NOT NULL,
    -- an error of the site's counts for an hour
    expires_at BIGINT NOT NULL
);
-- What a team knows of a site.
CREATE INDEX page_version_site ON page_version (site, team_id);
-- What goes.
CREATE INDEX page_version_age ON page_version (expires_at);
CREATE INDEX page_version_content ON page_version (digest);

-- Blobs of contents that may be nobody's: written before each is stored, and when its content goes.
CREATE TABLE page_blob (
    blob TEXT PRIMARY KEY,
    -- from when on it is removed unless a content names it
    due_at BIGINT NOT NULL
);
CREATE INDEX page_blob_due ON page_blob (due_at);
CREATE INDEX page_content_blob ON page_content (blob) WHERE blob IS NOT NULL;

-- Bodies are compressed already.
ALTER TABLE page_content ALTER COLUMN body SET STORAGE EXTERNAL;
