-- What a team's pages of one site have in common: numbers of blocks of text and of pages, no text and no address of a page.
-- Times are milliseconds since 1970 UTC.
CREATE TABLE site_template (
    team_id TEXT NOT NULL,
    -- scheme, host, and port where it is not the scheme's
    origin TEXT NOT NULL,
    -- which blocks stand on which of the last pages; the form is the extraction's
    body BLOB NOT NULL,
    -- when something was added last: what was not for longest goes first
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (team_id, origin)
);
CREATE INDEX site_template_age ON site_template (changed_at);
