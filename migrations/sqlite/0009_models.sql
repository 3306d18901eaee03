-- What pages cost that a language model reads: credits held back for them, and the model's own tokens.

-- The most that one page of the job can cost: held back for each page that is not done.
ALTER TABLE job ADD COLUMN page_credits BIGINT NOT NULL DEFAULT 1 CHECK (page_credits > 0);

-- Tokens of the operator's language model by calendar month (UTC) and key. Spent is spent, also when the page failed.
CREATE TABLE model_month (
    team_id TEXT NOT NULL,
    -- its first moment
    month BIGINT NOT NULL,
    -- '': asked without a key
    api_key_id TEXT NOT NULL,
    sent BIGINT NOT NULL,
    received BIGINT NOT NULL,
    PRIMARY KEY (team_id, month, api_key_id)
) WITHOUT ROWID;

-- What a page looked like when a team last tracked its changes: one row a page, tag and set of options.
CREATE TABLE page_snapshot (
    team_id TEXT NOT NULL,
    -- SHA-256, hex, of the address, the tag and the options that change the text
    key TEXT NOT NULL,
    scraped_at BIGINT NOT NULL,
    -- bytes of body
    size BIGINT NOT NULL,
    -- zstd of a Snapshot's JSON
    body BLOB NOT NULL,
    PRIMARY KEY (team_id, key)
);
CREATE INDEX page_snapshot_age ON page_snapshot (scraped_at);
CREATE INDEX page_snapshot_room ON page_snapshot (team_id, scraped_at, size);
