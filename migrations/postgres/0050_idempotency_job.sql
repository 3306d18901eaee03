-- The job that the key's request has begun or added to, for whoever sends the key again and wants to find it. NULL where a
-- release wrote the row that does not know the column.
ALTER TABLE idempotency_key ADD COLUMN job_id TEXT;
