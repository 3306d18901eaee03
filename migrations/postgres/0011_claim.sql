-- How many of a team's pages are in work now. A function, so that a claim can count after it has locked the team and in
-- the same statement: what stands in the statement itself reads what was committed before the lock was waited for.
CREATE FUNCTION pages_running(team TEXT)
RETURNS BIGINT
LANGUAGE plpgsql
VOLATILE
AS $$
BEGIN
    RETURN (SELECT COUNT(*) FROM page WHERE page.team_id = team AND page.state = 'running');
END;
$$;
