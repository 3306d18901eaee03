-- Maps: jobs of their own kind, the sitemaps they keep, and the site of each job, by which its pages are found again.

-- Sitemaps kept for a team.
CREATE TABLE sitemap (
    team_id TEXT NOT NULL,
    -- SHA-256, hex, of the address and of what the answer depends on besides
    key TEXT NOT NULL,
    -- bytes of body
    size BIGINT NOT NULL,
    -- zstd of the entries, one a line
    body BYTEA NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (team_id, key)
);
CREATE INDEX sitemap_expiry ON sitemap (expires_at);
CREATE INDEX sitemap_room ON sitemap (team_id, expires_at, size);

-- The registered domain (or the host, where there is none) of the job's target; NULL: it must not be found again.
ALTER TABLE job ADD COLUMN site TEXT;
CREATE INDEX job_site ON job (team_id, site, created_at) WHERE site IS NOT NULL;
