-- Nothing: this step concerns how Postgres stores large values.
SELECT 1;
