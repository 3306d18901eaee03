-- What keeps a worker's boxes within their bounds, in words for people: a machine without cgroups is to be told of.

ALTER TABLE worker_node ADD COLUMN box_limits TEXT;
