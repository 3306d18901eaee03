-- Searches whose hits are scraped are jobs of a kind of their own.
ALTER TABLE job DROP CONSTRAINT job_kind_check;
ALTER TABLE job ADD CONSTRAINT job_kind_check CHECK (kind IN ('scrape', 'batch', 'crawl', 'map', 'search')) NOT VALID;
