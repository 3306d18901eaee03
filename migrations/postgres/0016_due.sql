-- A claim looks only at jobs that may have work which is due.

-- no page of the job that waits is due before this time; 0: one may be now
ALTER TABLE job ADD COLUMN due_at BIGINT NOT NULL DEFAULT 0;
DROP INDEX job_waiting;
CREATE INDEX job_waiting ON job (team_id, due_at, rank, last_served, id) WHERE queued > 0;
