-- Pages that may be answered again. Times are milliseconds since 1970 UTC.

CREATE TABLE cached_page (
    -- digest of the address and of every option that changes the result; with the team where the request is its own
    key TEXT PRIMARY KEY,
    -- the team whose job stored it last
    team_id TEXT NOT NULL,
    -- as requested
    url TEXT NOT NULL,
    -- its registered domain
    site TEXT,
    -- the page whose document it is. While that page's job is kept, the document is read there
    page_id TEXT NOT NULL,
    -- bytes of the compressed document
    bytes BIGINT NOT NULL,
    -- zstd of the document and its bytes before compression, once the job has expired
    body BLOB,
    size BIGINT,
    cached_at BIGINT NOT NULL,
    CHECK ((body IS NULL) = (size IS NULL))
);
-- What goes first when there is too much, and how much there is.
CREATE INDEX cached_page_age ON cached_page (cached_at, bytes);
-- What a team knows of a site.
CREATE INDEX cached_page_site ON cached_page (site, team_id);
-- What a job leaves when it expires.
CREATE INDEX cached_page_page ON cached_page (page_id) WHERE body IS NULL;

