-- Versions whose content is gone are looked for in the order of their keys: no page that is stored writes an index for that.
DROP INDEX page_version_content;
DROP INDEX page_earlier_content;
