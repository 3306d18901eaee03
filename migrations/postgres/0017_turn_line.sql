-- Where the pages of each crawl stand that wait for their turn. What one crawl has been told to come back at is nothing to
-- another one: `turn.booked`, which all shared, is not read any more.

CREATE TABLE turn_line (
    -- turn.name
    name TEXT NOT NULL,
    job_id TEXT NOT NULL,
    -- the first time that no page of this crawl has been told to come back at
    free_at BIGINT NOT NULL,
    PRIMARY KEY (name, job_id)
);
