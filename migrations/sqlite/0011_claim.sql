-- Nothing: this step is a function for claims on Postgres.
SELECT 1;
