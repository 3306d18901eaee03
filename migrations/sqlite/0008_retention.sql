-- Jobs that keep nothing of what they brought.

ALTER TABLE job ADD COLUMN zero_retention BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX job_zero_retention ON job (finished_at) WHERE zero_retention;
