-- What a page's last attempt did before its end, for the console: JSON, [name, milliseconds after the claim, milliseconds]
-- of each fetch, rendering and extraction. NULL: it came from the cache, or an earlier release wrote it.
ALTER TABLE document ADD COLUMN steps TEXT;
