-- Nothing: this step concerns a function of the queue library on Postgres.
SELECT 1;
