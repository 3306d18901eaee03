-- What pages were before: a version whose content another one has replaced. Times are milliseconds since 1970 UTC.
CREATE TABLE page_earlier (
    -- as in page_version, all of it
    key TEXT NOT NULL,
    team_id TEXT NOT NULL,
    url TEXT NOT NULL,
    site TEXT,
    digest TEXT NOT NULL,
    head TEXT NOT NULL,
    -- since when it was seen so, and when it was seen so last
    since BIGINT,
    stored_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    -- a page that goes back and forth has one row for each way it was
    PRIMARY KEY (key, digest)
);
CREATE INDEX page_earlier_age ON page_earlier (expires_at);
CREATE INDEX page_earlier_content ON page_earlier (digest);

-- Since when it was stored with the same content; NULL: since stored_at.
ALTER TABLE page_version ADD COLUMN since BIGINT;

-- The database keeps what is replaced by itself, so that it costs nothing where a page is stored as it was. Eight for each
-- page; `since` is put right for writers of the release before, who do not know it.
CREATE FUNCTION page_version_replaced() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO page_earlier (key, team_id, url, site, digest, head, since, stored_at, expires_at)
    VALUES (OLD.key, OLD.team_id, OLD.url, OLD.site, OLD.digest, OLD.head, OLD.since, OLD.stored_at, OLD.expires_at)
    ON CONFLICT (key, digest) DO UPDATE SET team_id = excluded.team_id, url = excluded.url, site = excluded.site,
        head = excluded.head, stored_at = excluded.stored_at, expires_at = excluded.expires_at;
    DELETE FROM page_earlier WHERE key = OLD.key AND digest IN
        (SELECT digest FROM page_earlier WHERE key = OLD.key ORDER BY stored_at DESC OFFSET 8);
    UPDATE page_version SET since = stored_at WHERE key = NEW.key AND since <> stored_at;
    RETURN NULL;
END $$;
CREATE TRIGGER page_version_replaced AFTER UPDATE OF digest ON page_version
    FOR EACH ROW WHEN (OLD.digest <> NEW.digest) EXECUTE FUNCTION page_version_replaced();
