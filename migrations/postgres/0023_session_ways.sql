-- How a browser session appears and goes out: what its caller asked for, and what the worker has to say of it.

-- Whether the hosts of ads and trackers are refused. Of a session that continues a scrape the scrape's own option counts.
ALTER TABLE browser_session ADD COLUMN block_ads BOOLEAN NOT NULL DEFAULT TRUE;
-- Where it appears from, as JSON: country and languages. NULL: nowhere in particular.
ALTER TABLE browser_session ADD COLUMN location TEXT;
-- For the caller: what was asked for and is not so, as long as the session lives. NULL: everything is.
ALTER TABLE browser_session ADD COLUMN warning TEXT;
