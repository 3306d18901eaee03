//! Profiles: browser state that sessions of a team share under a name (SPEC 2.1).
//!
//! The row names the last complete archive. Only the session that holds the profile's lease replaces it, so a saver
//! that was given up meanwhile cannot overwrite the work of the next one.

use crate::ids::{SessionId, TeamId};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

use super::{Db, StoreResult, Tx, team_lock};

/// The state that was saved last.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct ProfileVersion {
    /// 1 upwards.
    pub version: i64,
    /// Key of the blob.
    pub blob: String,
    /// Bytes of the blob.
    pub size: i64,
}

/// What is saved under the name; `None`: nothing yet. A reader whose blob is gone reads this again: a newer version has
/// taken its place.
pub async fn current(db: &Db, team: TeamId, name: &str) -> StoreResult<Option<ProfileVersion>> {
    const SQL: &str = "SELECT version, blob, size FROM profile WHERE team_id = $1 AND name = $2";
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(team).bind(name).fetch_optional(pool).await?))
}

/// How a save ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// Sessions load it from now on. The blob it replaces may be removed once this is committed.
    Saved { version: i64, replaced: Option<String> },
    /// The session is not the profile's saver, or not any more: the new blob may be removed.
    Refused,
}

/// Makes `blob` the profile's state. The session must hold the lease, which it keeps until it is destroyed.
pub async fn publish(tx: &mut Tx, session: SessionId, blob: &str, size: i64, now: Timestamp) -> StoreResult<Published> {
    const LEASE: &str = "SELECT team_id, name FROM profile_lease WHERE session_id = $1";
    const OLD: &str = "SELECT blob FROM profile WHERE team_id = $1 AND name = $2";
    const SQL: &str = "INSERT INTO profile (team_id, name, version, blob, size, updated_at) \
        VALUES ($1, $2, 1, $3, $4, $5) ON CONFLICT (team_id, name) DO UPDATE SET version = profile.version + 1, \
        blob = excluded.blob, size = excluded.size, updated_at = excluded.updated_at RETURNING version";
    let found: Option<(TeamId, String)> =
        on_db!(tx, |conn| sqlx::query_as(LEASE).bind(session).fetch_optional(conn).await?);
    let Some((team, name)) = found else { return Ok(Published::Refused) };
    team_lock::lock(tx, team).await?;
    // The lease may have gone while we waited for the lock.
    let held: Option<(TeamId, String)> =
        on_db!(tx, |conn| sqlx::query_as(LEASE).bind(session).fetch_optional(conn).await?);
    if held.is_none() {
        return Ok(Published::Refused);
    }
    let old: Option<(String,)> =
        on_db!(tx, |conn| sqlx::query_as(OLD).bind(team).bind(&name).fetch_optional(conn).await?);
    let saved: (i64,) = on_db!(tx, |conn| {
        sqlx::query_as(SQL).bind(team).bind(&name).bind(blob).bind(size).bind(now).fetch_one(conn).await?
    });
    Ok(Published::Saved { version: saved.0, replaced: old.map(|o| o.0).filter(|old| old != blob) })
}

/// What became of a removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removal {
    /// It is gone. Its blob may be removed once this is committed.
    Removed { blob: String },
    /// Nothing is saved under this name.
    Missing,
    /// A live session will save it.
    Busy,
}

/// Forgets a profile.
pub async fn remove(tx: &mut Tx, team: TeamId, name: &str) -> StoreResult<Removal> {
    const LEASE: &str = "SELECT COUNT(*) FROM profile_lease WHERE team_id = $1 AND name = $2";
    const SQL: &str = "DELETE FROM profile WHERE team_id = $1 AND name = $2 RETURNING blob";
    team_lock::lock(tx, team).await?;
    let savers: (i64,) = on_db!(tx, |conn| sqlx::query_as(LEASE).bind(team).bind(name).fetch_one(conn).await?);
    if savers.0 > 0 {
        return Ok(Removal::Busy);
    }
    let removed: Option<(String,)> =
        on_db!(tx, |conn| sqlx::query_as(SQL).bind(team).bind(name).fetch_optional(conn).await?);
    Ok(removed.map_or(Removal::Missing, |(blob,)| Removal::Removed { blob }))
}
