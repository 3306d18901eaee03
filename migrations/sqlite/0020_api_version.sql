-- Which version of the API a call came through, as the team's activity shows it.

ALTER TABLE activity ADD COLUMN api_version TEXT NOT NULL DEFAULT 'v2';
