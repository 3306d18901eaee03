-- The queue library's table of tickets comes with fourteen indexes, and each change of a ticket writes most of them. What
-- is asked of it here is served by four: its key, lock_by, (job_type, status, run_at), and done_at for the sweep.
DROP INDEX IF EXISTS TIdx;
DROP INDEX IF EXISTS SIdx;
DROP INDEX IF EXISTS JTIdx;
DROP INDEX IF EXISTS idx_jobs_status_run_at;
DROP INDEX IF EXISTS idx_jobs_run_at_status;
DROP INDEX IF EXISTS idx_jobs_pending;
DROP INDEX IF EXISTS idx_jobs_running;
DROP INDEX IF EXISTS idx_jobs_job_type_run_at;
DROP INDEX IF EXISTS idx_jobs_job_type_covering;
DROP INDEX IF EXISTS idx_jobs_claimable;
