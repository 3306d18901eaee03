-- Browser sessions, the profiles they load and save, and what workers offer for them.
-- Times are milliseconds since 1970 UTC. Ids are UUIDs, version 7, as text.

CREATE TABLE browser_session (
    id TEXT PRIMARY KEY,
    team_id TEXT NOT NULL,
    api_key_id TEXT,
    -- worker_node.id: chosen when the row is written, and never changed
    worker_id TEXT NOT NULL,
    -- opening: placed, not yet told to the caller; closing: takes no more calls, holds its slot and its lease
    state TEXT NOT NULL CHECK (state IN ('opening', 'active', 'closing', 'destroyed')),
    kind TEXT NOT NULL CHECK (kind IN ('browser', 'interact')),
    -- page.id of the scrape that an interact session continues
    page_id TEXT,
    stream_web_view BOOLEAN NOT NULL,
    -- whole lifetime from opened_at, and pause after last_activity, milliseconds
    ttl_ms BIGINT NOT NULL CHECK (ttl_ms > 0),
    activity_ttl_ms BIGINT NOT NULL CHECK (activity_ttl_ms > 0),
    profile_name TEXT,
    -- saved when the session closes: it holds the profile's lease while it lives
    profile_save BOOLEAN,
    -- profile.version that was loaded; NULL: the profile was empty
    profile_version BIGINT,
    created_at BIGINT NOT NULL,
    opened_at BIGINT,
    -- opened_at + ttl_ms; while opening, created_at + ttl_ms
    expires_at BIGINT NOT NULL,
    last_activity BIGINT NOT NULL,
    -- when it stopped taking calls: what comes after is not billed
    ended_at BIGINT,
    end_reason TEXT CHECK (end_reason IN ('deleted', 'ttl', 'idle', 'crashed', 'worker_stopped', 'worker_died', 'not_opened')),
    duration_ms BIGINT CHECK (duration_ms >= 0),
    -- held back for the whole ttl while it lives; what it was billed once destroyed
    credits BIGINT NOT NULL CHECK (credits >= 0),
    CHECK ((kind = 'interact') = (page_id IS NOT NULL)),
    CHECK ((profile_name IS NULL) = (profile_save IS NULL)),
    CHECK (profile_name IS NOT NULL OR profile_version IS NULL),
    CHECK (state <> 'opening' OR opened_at IS NULL),
    CHECK (state NOT IN ('active', 'closing') OR opened_at IS NOT NULL),
    CHECK ((state IN ('closing', 'destroyed')) = (ended_at IS NOT NULL)),
    CHECK ((ended_at IS NULL) = (end_reason IS NULL)),
    CHECK ((state = 'destroyed') = (duration_ms IS NOT NULL))
);
-- The team's limit and what its live sessions hold back.
CREATE INDEX browser_session_live ON browser_session (team_id) WHERE state <> 'destroyed';
-- Free slots of a worker, and what a dead one leaves.
CREATE INDEX browser_session_worker ON browser_session (worker_id) WHERE state <> 'destroyed';
CREATE INDEX browser_session_team ON browser_session (team_id, created_at);
CREATE INDEX browser_session_old ON browser_session (ended_at) WHERE state = 'destroyed';

-- The last complete state saved under a name. The archive itself is a blob.
CREATE TABLE profile (
    team_id TEXT NOT NULL,
    name TEXT NOT NULL,
    -- 1 upwards, one more with each save
    version BIGINT NOT NULL CHECK (version > 0),
    -- key of the blob
    blob TEXT NOT NULL,
    -- bytes of the blob
    size BIGINT NOT NULL CHECK (size >= 0),
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (team_id, name)
);

-- Who may save a profile: one live session at a time.
CREATE TABLE profile_lease (
    team_id TEXT NOT NULL,
    name TEXT NOT NULL,
    session_id TEXT NOT NULL UNIQUE,
    PRIMARY KEY (team_id, name)
);

-- Browser sessions that a worker can hold at once; 0: it takes none.
ALTER TABLE worker_node ADD COLUMN session_slots BIGINT NOT NULL DEFAULT 0 CHECK (session_slots >= 0);
-- Why a worker that should take sessions takes none, for operators.
ALTER TABLE worker_node ADD COLUMN sessions_refused TEXT;
