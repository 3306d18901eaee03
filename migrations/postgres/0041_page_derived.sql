-- What was made of a stored content at a cost: answers of a language model, recognised text. It goes with its content.
CREATE TABLE page_derived (
    digest TEXT NOT NULL REFERENCES page_content (digest) ON DELETE CASCADE,
    -- digest of how it was made; of an answer with the team, the model and the question
    key TEXT NOT NULL,
    -- milliseconds since 1970 UTC
    made_at BIGINT NOT NULL,
    -- bytes of body
    packed BIGINT NOT NULL,
    -- zstd of JSON
    body BYTEA NOT NULL,
    PRIMARY KEY (digest, key)
);
-- How much all of it takes.
CREATE INDEX page_derived_room ON page_derived (packed);

-- Bodies are compressed already.
ALTER TABLE page_derived ALTER COLUMN body SET STORAGE EXTERNAL;
