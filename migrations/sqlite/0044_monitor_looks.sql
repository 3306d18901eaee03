-- Since when a monitor's addresses and the versions of its pages stay, however seldom it looks.
-- Times are milliseconds since 1970 UTC.

-- when its last check began that could read something, and the one before; NULL: there was none
ALTER TABLE monitor ADD COLUMN looked_at BIGINT;
ALTER TABLE monitor ADD COLUMN looked_before BIGINT;
