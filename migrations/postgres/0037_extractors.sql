-- Data of many pages of one template, read without a language model (format json with mode learn): the model writes an
-- extractor once. Everything here belongs to a team, a site and a wish, and none of it is another team's.
-- Times are milliseconds since 1970 UTC.

-- How far learning is for the pages of one site.
CREATE TABLE learning (
    team_id TEXT NOT NULL,
    -- host, and port where it is not the scheme's, as asked for
    site TEXT NOT NULL,
    -- SHA-256, hex, of schema, prompt and what of the options decides on a page's text
    wish TEXT NOT NULL,
    -- the worker that has an extractor written at the moment, and until when at most
    writer TEXT,
    writer_until BIGINT,
    -- readings in a row from which nothing was to be learned
    misses BIGINT NOT NULL DEFAULT 0,
    -- extractors in a row that were written and not good
    failures BIGINT NOT NULL DEFAULT 0,
    -- nothing is learned before
    rests_until BIGINT NOT NULL DEFAULT 0,
    -- extractors written since
    rounds BIGINT NOT NULL DEFAULT 0,
    rounds_since BIGINT NOT NULL DEFAULT 0,
    used_at BIGINT NOT NULL,
    PRIMARY KEY (team_id, site, wish)
);
CREATE INDEX learning_age ON learning (used_at);

-- Pages that the model reads, or has read, for an extractor that is to be written.
CREATE TABLE learning_page (
    team_id TEXT NOT NULL,
    site TEXT NOT NULL,
    wish TEXT NOT NULL,
    -- SHA-256, hex, of the page's address
    page TEXT NOT NULL,
    -- the worker where it is being read, and until when at most; NULL: it was read
    reader TEXT,
    reader_until BIGINT,
    -- what the page is built like
    sketch TEXT NOT NULL DEFAULT '',
    -- zstd of the page and of what was read there, JSON
    body BYTEA,
    -- bytes of body
    size BIGINT NOT NULL DEFAULT 0,
    made_at BIGINT NOT NULL,
    PRIMARY KEY (team_id, site, wish, page),
    CHECK ((reader IS NULL) = (reader_until IS NULL) AND (reader IS NULL) = (body IS NOT NULL))
);
CREATE INDEX learning_page_age ON learning_page (made_at);
CREATE INDEX learning_page_room ON learning_page (team_id, size);

-- What was learned: an extractor for each template.
CREATE TABLE extractor (
    id TEXT PRIMARY KEY,
    team_id TEXT NOT NULL,
    site TEXT NOT NULL,
    wish TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('validated', 'retired')),
    -- counts changes of body
    epoch BIGINT NOT NULL,
    -- the extractor and what its values look like, JSON
    body TEXT NOT NULL,
    -- pages that it has read, about
    pages BIGINT NOT NULL DEFAULT 0,
    -- so many pages until one is held against the model's reading
    next_check BIGINT NOT NULL,
    -- pages that were held against the model's reading because something about them was new
    doubts BIGINT NOT NULL DEFAULT 0,
    -- of those and of the checks, how many in a row did not agree
    strikes BIGINT NOT NULL DEFAULT 0,
    made_at BIGINT NOT NULL,
    used_at BIGINT NOT NULL
);
CREATE INDEX extractor_of ON extractor (team_id, site, wish, made_at) WHERE state = 'validated';
CREATE INDEX extractor_age ON extractor (used_at);
