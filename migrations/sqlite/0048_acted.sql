-- The claim (its epoch) that has begun with those actions of a page that may have an effect on its site: no other claim begins
-- with them again.
ALTER TABLE page ADD COLUMN acted BIGINT;
