-- A scrape has one session: of calls at once the first one makes it, and nothing comes after its end. One that never
-- opened does not count.
CREATE UNIQUE INDEX browser_session_page ON browser_session (page_id)
    WHERE page_id IS NOT NULL AND (ended_at IS NULL OR (opened_at IS NOT NULL AND end_reason <> 'not_opened'));
