-- When an operator has removed the team, milliseconds; NULL: it is there. Nothing of it is begun from then on, and its row stays
-- until all that was the team's is gone. Its keys are revoked and its monitors and jobs ended besides, for processes of the
-- release before, which do not know of this column.
ALTER TABLE team ADD COLUMN removed_at BIGINT;
