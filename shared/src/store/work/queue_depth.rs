//! How much there is to do: over all, and for a team.

use crate::domain::job::{JobStatus, PageState};
use crate::ids::TeamId;
use crate::store::{Db, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

/// The queue as operators watch it.
#[derive(Debug, Clone, Copy, Default)]
pub struct QueueStats {
    /// Pages not claimed yet.
    pub queued: i64,
    /// Pages in work.
    pub running: i64,
    /// Jobs not ended.
    pub jobs: i64,
    /// When the oldest unfinished job with waiting pages was made.
    pub oldest: Option<Timestamp>,
}

/// Depth and age of the queue.
pub async fn queue_stats(db: &Db) -> StoreResult<QueueStats> {
    const JOBS: &str = "SELECT CAST(COALESCE(SUM(queued), 0) AS BIGINT), COUNT(*), MIN(created_at) FROM job \
        WHERE queued > 0";
    const RUNNING: &str = sql!("SELECT COUNT(*) FROM page WHERE state = ", PageState::Running.sql());
    let jobs: (i64, i64, Option<Timestamp>) = on_pool!(db, |pool| sqlx::query_as(JOBS).fetch_one(pool).await?);
    let running: (i64,) = on_pool!(db, |pool| sqlx::query_as(RUNNING).fetch_one(pool).await?);
    Ok(QueueStats { queued: jobs.0, jobs: jobs.1, oldest: jobs.2, running: running.0 })
}

/// A team's pages in the queue, over all of its jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TeamQueue {
    /// Not claimed yet.
    pub waiting: i64,
    /// In work.
    pub running: i64,
    /// When a job last ended with a result, of those that are still kept.
    pub last_success: Option<Timestamp>,
}

/// How a team's queue stands.
pub async fn team_queue(db: &Db, team: TeamId) -> StoreResult<TeamQueue> {
    // One statement, so that a page on its way from waiting to running is counted once.
    const SQL: &str = sql!(
        "SELECT (SELECT CAST(COALESCE(SUM(queued), 0) AS BIGINT) FROM job WHERE team_id = $1 AND queued > 0), \
         (SELECT COUNT(*) FROM page WHERE team_id = $1 AND state = ",
        PageState::Running.sql(),
        "), (SELECT finished_at FROM job WHERE team_id = $1 AND status = ",
        JobStatus::Completed.sql(),
        " AND completed > 0 ORDER BY finished_at DESC LIMIT 1)"
    );
    let (waiting, running, last_success): (i64, i64, Option<Timestamp>) =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(team).fetch_one(pool).await?);
    Ok(TeamQueue { waiting, running, last_success })
}

/// A team's pages that are not claimed yet. Exact when the team is locked; without the lock, requests at the same moment
/// do not see each other's.
pub async fn team_waiting(tx: &mut Tx, team: TeamId) -> StoreResult<i64> {
    const SQL: &str = "SELECT CAST(COALESCE(SUM(queued), 0) AS BIGINT) FROM job WHERE team_id = $1 AND queued > 0";
    let waiting: (i64,) = on_db!(tx, |conn| sqlx::query_as(SQL).bind(team).fetch_one(conn).await?);
    Ok(waiting.0)
}

/// Pages of a team that are in work.
pub async fn team_running(db: &Db, team: TeamId) -> StoreResult<i64> {
    const SQL: &str = sql!("SELECT COUNT(*) FROM page WHERE team_id = $1 AND state = ", PageState::Running.sql());
    let running: (i64,) = on_pool!(db, |pool| sqlx::query_as(SQL).bind(team).fetch_one(pool).await?);
    Ok(running.0)
}
