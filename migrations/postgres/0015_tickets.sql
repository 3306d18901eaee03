-- The sweep of finished tickets asks by the time of their end.
CREATE INDEX ticket_done ON apalis.jobs (done_at) WHERE done_at IS NOT NULL;
