-- Packed documents of a few KiB, which most are, stay in their rows: beside them each would be two more rows and two
-- more index entries, written and read with it.
ALTER TABLE document SET (toast_tuple_target = 8160);
