//! Sessions in numbers, as operators watch them.

use crate::domain::node::NodeState;
use crate::domain::session::SessionState;
use crate::ids::{TeamId, WorkerId};
use crate::on_pool;
use crate::store::work::nodes;
use crate::store::{Db, StoreResult};
use crate::time::Timestamp;

/// Sessions and slots as operators watch them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionCounts {
    pub opening: i64,
    pub active: i64,
    pub closing: i64,
    /// What live workers offer.
    pub slots: i64,
}

/// How many live sessions each worker has that has any.
pub async fn by_worker(db: &Db) -> StoreResult<Vec<(WorkerId, i64)>> {
    const SQL: &str = sql!(
        "SELECT worker_id, COUNT(*) FROM browser_session WHERE state <> ",
        SessionState::Destroyed.sql(),
        " GROUP BY worker_id"
    );
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).fetch_all(pool).await?))
}

/// Live sessions of a team.
pub async fn live_count(db: &Db, team: TeamId) -> StoreResult<i64> {
    const SQL: &str =
        sql!("SELECT COUNT(*) FROM browser_session WHERE team_id = $1 AND state <> ", SessionState::Destroyed.sql());
    let found: (i64,) = on_pool!(db, |pool| sqlx::query_as(SQL).bind(team).fetch_one(pool).await?);
    Ok(found.0)
}

/// How many live sessions there are, and how many there could be.
pub async fn counts(db: &Db, now: Timestamp) -> StoreResult<SessionCounts> {
    const STATES: &str = sql!(
        "SELECT state, COUNT(*) FROM browser_session WHERE state <> ",
        SessionState::Destroyed.sql(),
        " GROUP BY state"
    );
    const SLOTS: &str = sql!(
        "SELECT CAST(COALESCE(SUM(session_slots), 0) AS BIGINT) FROM worker_node WHERE state = ",
        NodeState::Live.sql(),
        " AND heartbeat_at >= $1"
    );
    let since = now.plus_ms(-nodes::DEAD_MS);
    let slots: (i64,) = on_pool!(db, |pool| sqlx::query_as(SLOTS).bind(since).fetch_one(pool).await?);
    let states: Vec<(SessionState, i64)> = on_pool!(db, |pool| sqlx::query_as(STATES).fetch_all(pool).await?);
    let count = |state: SessionState| states.iter().find(|s| s.0 == state).map_or(0, |s| s.1);
    Ok(SessionCounts {
        opening: count(SessionState::Opening),
        active: count(SessionState::Active),
        closing: count(SessionState::Closing),
        slots: slots.0,
    })
}
