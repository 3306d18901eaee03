-- What is big goes in slices, and what a slice leaves for the next one is written down.

-- A cancelled job whose waiting pages are not all marked yet: they are out of its counts already.
ALTER TABLE job ADD COLUMN dropping BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX job_dropping ON job (id) WHERE dropping;

-- Jobs whose pages are being written and that are not accepted yet: nobody sees them. A row goes with the acceptance;
-- the pages of one that stays go with it.
CREATE TABLE job_draft (
    job_id TEXT PRIMARY KEY,
    -- when nobody can be writing it any more
    due_at BIGINT NOT NULL
);
CREATE INDEX job_draft_due ON job_draft (due_at);

-- Jobs that are gone and whose blobs may not be.
CREATE TABLE blob_waste (
    job_id TEXT PRIMARY KEY,
    -- the next try
    due_at BIGINT NOT NULL
);
CREATE INDEX blob_waste_due ON blob_waste (due_at);

-- Jobs that keep nothing and have ended, as long as they are due later than they should be.
CREATE INDEX job_to_shorten ON job (finished_at)
    WHERE zero_retention AND finished_at IS NOT NULL AND expires_at > finished_at + 600000;

-- What is worth a replay, by the time of its failure.
CREATE INDEX page_failed_at ON page (finished_at, id) WHERE state = 'failed';
