//! Claims that came to nothing: the worker died, the work broke off, or the worker stops. Their pages go back to the queue.

use crate::domain::job::{PageState, is_worn_out};
use crate::domain::node::NodeState;
use crate::error_code::ErrorCode;
use crate::ids::{TeamId, WorkerId};
use crate::store::{Db, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool, queue};

use super::end::{Finished, Outcome};
use super::finish::finish_many;
use super::rows::Claimed;
use super::rules::CLAIMED_COLUMNS;

/// Which pages in work are so for a worker that is dead, or never was.
pub(in crate::store) const IS_ORPHAN: &str = sql!(
    "state = ",
    PageState::Running.sql(),
    " AND owner NOT IN (SELECT id FROM worker_node WHERE state <> ",
    NodeState::Dead.sql(),
    ")"
);

/// Teams that have pages of dead workers.
pub async fn orphaned_teams(db: &Db, limit: i64) -> StoreResult<Vec<TeamId>> {
    const TEAMS: &str = sql!("SELECT DISTINCT team_id FROM page WHERE ", IS_ORPHAN, " LIMIT $1");
    let teams: Vec<(TeamId,)> = on_pool!(db, |pool| sqlx::query_as(TEAMS).bind(limit).fetch_all(pool).await?);
    Ok(teams.into_iter().map(|row| row.0).collect())
}

/// Pages whose worker is dead, or never was: they go back to the queue, or fail at the ceiling of claims. Returns how
/// many. Call after [`crate::store::work::nodes::bury`]. On Postgres teams whose lock somebody holds are passed over: they
/// keep no other team waiting.
pub async fn rescue_orphans(tx: &mut Tx, now: Timestamp, limit: i64) -> StoreResult<usize> {
    const ORPHANS: &str =
        sql!("SELECT ", CLAIMED_COLUMNS, " FROM page WHERE ", IS_ORPHAN, " ORDER BY team_id LIMIT $1");
    const OF_FREE: &str = sql!(
        "WITH free AS MATERIALIZED (SELECT id FROM team WHERE id IN (SELECT team_id FROM page WHERE ",
        IS_ORPHAN,
        ") ORDER BY id FOR NO KEY UPDATE SKIP LOCKED) SELECT ",
        CLAIMED_COLUMNS,
        " FROM page WHERE ",
        IS_ORPHAN,
        " AND team_id IN (SELECT id FROM free) ORDER BY team_id LIMIT $1"
    );
    let orphans: Vec<Claimed> = match tx {
        Tx::Sqlite(tx) => sqlx::query_as(ORPHANS).bind(limit).fetch_all(&mut **tx).await?,
        Tx::Postgres(tx) => sqlx::query_as(OF_FREE).bind(limit).fetch_all(&mut **tx).await?,
    };
    let count = orphans.len();
    rescue(tx, orphans.into_iter().map(|page| (page, Loss::WorkerDied)).collect(), now).await?;
    Ok(count)
}

/// Why a page that is said to be in work is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Its worker died, perhaps of it.
    WorkerDied,
    /// Its worker lives, and the work broke off.
    BrokeOff,
    /// Its worker never knew of the claim: no fault of the page.
    NeverBegun,
}

impl Loss {
    fn outcome(self, claims: i64) -> Outcome {
        let (reason, ceiling) = match self {
            Self::WorkerDied => ("the worker died", "The page was given up: every worker that tried it died."),
            Self::BrokeOff => ("the work broke off", "The page was given up: the work on it broke off each time."),
            Self::NeverBegun => return Outcome::GivenBack,
        };
        if is_worn_out(claims) {
            return Outcome::Failed { code: ErrorCode::RetryLimit, error: ceiling.to_owned(), credits: 0 };
        }
        Outcome::Lost { reason }
    }
}

/// Pages that are said to be in work and are not: they go back to their place in the queue, or fail at the ceiling of
/// claims.
pub async fn rescue(tx: &mut Tx, pages: Vec<(Claimed, Loss)>, now: Timestamp) -> StoreResult<()> {
    if pages.is_empty() {
        return Ok(());
    }
    let end = |(page, loss): (Claimed, Loss)| {
        let outcome = loss.outcome(page.claims);
        Finished { page, kind: None, key: None, outcome }
    };
    let ends: Vec<Finished> = pages.into_iter().map(end).collect();
    finish_many(tx, &ends, now).await?;
    Ok(())
}

/// Teams with pages that were due before `before`: each gets a wake-up, in case one was lost, unless it has one. Returns
/// how many.
pub async fn remind_teams(tx: &mut Tx, before: Timestamp) -> StoreResult<usize> {
    const TEAMS: &str = sql!(
        "SELECT DISTINCT job.team_id FROM job WHERE job.queued > 0 AND EXISTS (SELECT 1 FROM page \
         WHERE page.job_id = job.id AND page.state = ",
        PageState::Queued.sql(),
        " AND page.run_at <= $1) LIMIT 1000"
    );
    let teams: Vec<(TeamId,)> = on_db!(tx, |conn| sqlx::query_as(TEAMS).bind(before).fetch_all(conn).await?);
    let teams: Vec<TeamId> = teams.into_iter().map(|row| row.0).collect();
    queue::remind_teams(tx, &teams).await?;
    Ok(teams.len())
}

/// What a worker holds, by the rows: 2,000 pages of it at most.
pub async fn held_by(tx: &mut Tx, worker: WorkerId) -> StoreResult<Vec<Claimed>> {
    const HELD: &str = sql!(
        "SELECT ",
        CLAIMED_COLUMNS,
        " FROM page WHERE state = ",
        PageState::Running.sql(),
        " AND owner = $1 ORDER BY team_id LIMIT 2000"
    );
    Ok(on_db!(tx, |conn| sqlx::query_as(HELD).bind(worker).fetch_all(conn).await?))
}

/// Everything a worker still holds goes back to the queue as if never claimed: it stops in good order.
pub async fn give_back(tx: &mut Tx, worker: WorkerId, now: Timestamp) -> StoreResult<usize> {
    let held = held_by(tx, worker).await?;
    let ends: Vec<Finished> =
        held.into_iter().map(|page| Finished { page, kind: None, key: None, outcome: Outcome::GivenBack }).collect();
    if !ends.is_empty() {
        finish_many(tx, &ends, now).await?;
    }
    Ok(ends.len())
}
