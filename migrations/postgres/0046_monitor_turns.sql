-- Monitors of all teams have their turn, and checks that have ended go by the retention that their monitor has now.

-- what a team has due, so that no team's checks stand behind those of another
CREATE INDEX monitor_due_team ON monitor (team_id, next_due_at) WHERE next_due_at IS NOT NULL;
CREATE INDEX monitor_check_open_team ON monitor_check (team_id, next_at) WHERE next_at IS NOT NULL;

-- retention_days was lowered, and checks that had ended before are not shortened yet
ALTER TABLE monitor ADD COLUMN shortens BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX monitor_shortens ON monitor (id) WHERE shortens;
