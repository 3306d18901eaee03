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
    /// Until when any host rests for the team's jobs, if one ever did.
    pub rests_until: Option<Timestamp>,
}

const STATE: &str = sql!(
    "SELECT concurrency, sessions, starved, (SELECT next_at FROM turn WHERE name = ",
    ANY_REST,
    "team.id) AS rests_until FROM team WHERE id = $1"
);

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
