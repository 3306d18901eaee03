-- Each statement about tickets has its index, whatever their number and state.

-- Tickets that wait, in the order in which the library fetches them. It takes the place of an index of tickets in every state.
CREATE INDEX ticket_waiting ON Jobs (job_type, priority DESC, run_at ASC, id ASC)
    WHERE status = 'Pending' AND lock_by IS NULL;
DROP INDEX IF EXISTS idx_jobs_job_type_status_run_at;

-- What a worker holds, without all that it has done.
CREATE INDEX ticket_held ON Jobs (lock_by, status);
DROP INDEX IF EXISTS LIdx;

-- SQLite takes ten rows for what one value of an index brings unless it is told otherwise; a worker's tickets are many, and
-- an acknowledgement would look through all of them for the one that it names.
ANALYZE Jobs;
DELETE FROM sqlite_stat1 WHERE tbl = 'Jobs';
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('Jobs', 'sqlite_autoindex_Jobs_1', '1000000 1'),
    ('Jobs', 'ticket_held', '1000000 200000 50000'),
    ('Jobs', 'ticket_waiting', '10000 3000 3000 10 1'),
    ('Jobs', 'idx_jobs_failed', '1000 300 300 10 1'),
    ('Jobs', 'idx_jobs_completed_done_at', '1000000 300000 100 10'),
    ('Jobs', 'idx_jobs_idempotency_key', '1000000 300000 1');
-- Read by this connection, too.
ANALYZE sqlite_schema;
