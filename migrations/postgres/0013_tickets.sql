-- Nothing: the queue library's table has few indexes on Postgres.
SELECT 1;
