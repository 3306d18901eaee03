//! The first lock of every transaction that changes a team's pages, jobs, sessions or credits.

use crate::ids::TeamId;
use crate::store::{StoreResult, Tx};
use crate::time::Timestamp;

use super::turns::ANY_REST;

/// What claims, finishes and placements need of a team.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub struct TeamState {
    /// The team's own limit of pages in work; `None`: the default.
    pub concurrency: Option<i64>,
    /// The team's own limit of browser sessions; `None`: the default.
    pub sessions: Option<i64>,
    /// A claim was cut short by a limit.
    #[sqlx(rename = "starved")]
    pub has_deferred_pages: bool,
    /// The team is removed: nothing of it is begun any more.
    #[sqlx(rename = "removed")]
    pub is_removed: bool,
    /// Until when any host rests for the team's jobs, if one ever did.
    pub rests_until: Option<Timestamp>,
}

const STATE: &str = sql!(
    "SELECT concurrency, sessions, starved, removed_at IS NOT NULL AS removed, (SELECT next_at FROM turn WHERE name = ",
    ANY_REST,
    "team.id) AS rests_until FROM team WHERE id = $1"
);

/// The same for what begins something of the team. `None`: there is no such team, or it is removed.
pub async fn lock_to_begin(tx: &mut Tx, team: TeamId) -> StoreResult<Option<TeamState>> {
    Ok(lock(tx, team).await?.filter(|state| !state.is_removed))
}

/// Locks the team until the transaction ends. `None`: no such team.
pub async fn lock(tx: &mut Tx, team: TeamId) -> StoreResult<Option<TeamState>> {
    // On SQLite the transaction holds the lock of the whole file already.
    Ok(match tx {
        Tx::Sqlite(tx) => sqlx::query_as(STATE).bind(team).fetch_optional(&mut **tx).await?,
        Tx::Postgres(tx) => {
            const LOCKED: &str = sql!(STATE, " FOR NO KEY UPDATE");
            sqlx::query_as(LOCKED).bind(team).fetch_optional(&mut **tx).await?
        }
    })
}
