//! The first lock of every transaction that changes a team's pages, jobs, sessions or credits.

use crate::ids::TeamId;

use super::{StoreResult, Tx};

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
}

/// Locks the team until the transaction ends. `None`: no such team.
pub async fn lock(tx: &mut Tx, team: TeamId) -> StoreResult<Option<TeamState>> {
    // On SQLite the transaction holds the lock of the whole file already.
    Ok(match tx {
        Tx::Sqlite(tx) => {
            sqlx::query_as("SELECT concurrency, sessions, starved FROM team WHERE id = $1")
                .bind(team)
                .fetch_optional(&mut **tx)
                .await?
        }
        Tx::Postgres(tx) => {
            sqlx::query_as("SELECT concurrency, sessions, starved FROM team WHERE id = $1 FOR NO KEY UPDATE")
                .bind(team)
                .fetch_optional(&mut **tx)
                .await?
        }
    })
}
