-- Searches whose hits are scraped are jobs of a kind of their own. SQLite cannot change a CHECK, and to make the table
-- again would take as long as there are jobs; of a CHECK that only grows the text may be changed in place
-- (https://sqlite.org/lang_altertable.html, 7).
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''crawl'', ''map'')', '''crawl'', ''map'', ''search'')')
    WHERE type = 'table' AND name = 'job';
PRAGMA writable_schema = RESET;
