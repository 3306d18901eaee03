//! Sessions that their worker does not end, which others end, and those that ended long ago.

use crate::domain::node::NodeState;
use crate::domain::session::{EndReason, SessionState};
use crate::ids::SessionId;
use crate::store::work::nodes;
use crate::store::{Db, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

use super::life::destroy;

/// A session that has not become active after this long is given up.
pub const OPENING_MS: i64 = 45_000;
/// A session that its worker has not ended this long after its ttl is ended by the others.
pub const OVERDUE_MS: i64 = 60_000;
/// A session that has been closing for this long is destroyed: longer than the largest profile needs.
pub const CLOSING_MS: i64 = 180_000;
/// Rows removed, or sessions ended, in one go.
const STEP: i64 = 500;

/// Live sessions of workers that were declared dead or are forgotten, each with the last sign of life of its worker; in no
/// order, for which all sessions there ever were would be looked through.
pub async fn of_dead_workers(db: &Db, limit: i64) -> StoreResult<Vec<(SessionId, Timestamp)>> {
    const SQL: &str = sql!(
        "SELECT s.id, COALESCE(n.heartbeat_at, s.last_activity) FROM browser_session s \
         LEFT JOIN worker_node n ON n.id = s.worker_id WHERE s.state <> ",
        SessionState::Destroyed.sql(),
        " AND (n.id IS NULL OR ",
        "n.state = ",
        NodeState::Dead.sql(),
        ") LIMIT $1"
    );
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(limit).fetch_all(pool).await?))
}

/// Whether a live session's worker is dead, declared so or not. Cheap while there are none.
pub async fn orphans_exist(db: &Db, now: Timestamp) -> StoreResult<bool> {
    const SQL: &str = sql!(
        "SELECT COUNT(*) FROM browser_session s LEFT JOIN worker_node n ON n.id = s.worker_id WHERE s.state <> ",
        SessionState::Destroyed.sql(),
        " AND (n.id IS NULL OR ",
        "n.state = ",
        NodeState::Dead.sql(),
        " OR n.heartbeat_at < $1)"
    );
    let before = now.plus_ms(-nodes::DEAD_MS);
    let found: (i64,) = on_pool!(db, |pool| sqlx::query_as(SQL).bind(before).fetch_one(pool).await?);
    Ok(found.0 > 0)
}

/// Destroys the sessions of workers that were declared dead, billed to the last sign of life. Returns how many.
///
/// Each in a transaction of its own: they belong to different teams. Call it after the burial is committed.
pub async fn end_orphans(db: &Db) -> StoreResult<usize> {
    let orphans = of_dead_workers(db, STEP).await?;
    for (id, heard) in &orphans {
        let mut tx = db.begin().await?;
        destroy(&mut tx, *id, EndReason::WorkerDied, *heard).await?;
        tx.commit().await?;
    }
    Ok(orphans.len())
}

/// Live sessions that their worker should have moved on long ago, with the reason and the time of their end.
pub async fn overdue(db: &Db, now: Timestamp, limit: i64) -> StoreResult<Vec<(SessionId, EndReason, Timestamp)>> {
    const SQL: &str = sql!(
        "SELECT id, state, expires_at FROM browser_session WHERE state <> ",
        SessionState::Destroyed.sql(),
        " AND ((state = ",
        SessionState::Opening.sql(),
        " AND created_at < $1) OR (state = ",
        SessionState::Active.sql(),
        " AND expires_at < $2) OR (state = ",
        SessionState::Closing.sql(),
        " AND ended_at < $3)) LIMIT $4"
    );
    let rows: Vec<(SessionId, SessionState, Timestamp)> = on_pool!(db, |pool| {
        sqlx::query_as(SQL)
            .bind(now.plus_ms(-OPENING_MS))
            .bind(now.plus_ms(-OVERDUE_MS))
            .bind(now.plus_ms(-CLOSING_MS))
            .bind(limit)
            .fetch_all(pool)
            .await?
    });
    let due = |(id, state, expires_at): (SessionId, SessionState, Timestamp)| match state {
        SessionState::Opening => (id, EndReason::NotOpened, now),
        // One that closes keeps its own reason and time.
        SessionState::Active | SessionState::Closing | SessionState::Destroyed => (id, EndReason::Ttl, expires_at),
    };
    Ok(rows.into_iter().map(due).collect())
}

/// Destroys the sessions of [`overdue`]. Returns how many.
pub async fn end_overdue(db: &Db, now: Timestamp) -> StoreResult<usize> {
    let due = overdue(db, now, STEP).await?;
    for (id, reason, at) in &due {
        let mut tx = db.begin().await?;
        destroy(&mut tx, *id, *reason, *at).await?;
        tx.commit().await?;
    }
    Ok(due.len())
}

/// Removes a part of the sessions that ended before `before`. Returns how many; the ledger keeps its entries.
pub async fn remove_old(tx: &mut Tx, before: Timestamp) -> StoreResult<u64> {
    const SQL: &str = sql!(
        "DELETE FROM browser_session WHERE id IN (SELECT id FROM browser_session WHERE state = ",
        SessionState::Destroyed.sql(),
        " AND ended_at < $1 ORDER BY ended_at LIMIT $2)"
    );
    Ok(on_db!(tx, |conn| sqlx::query(SQL).bind(before).bind(STEP).execute(conn).await?.rows_affected()))
}
