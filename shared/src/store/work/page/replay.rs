//! Pages that failed for good and are tried once more.

use crate::domain::job::{JobKind, JobMove, JobStatus, PageMove};
use crate::domain::monitor;
use crate::domain::webhook::DeliveryState;
use crate::ids::{JobId, PageId, TeamId};
use crate::store::accounts::credits::{self, Funds};
use crate::store::accounts::team_lock;
use crate::store::work::pages::{Columns, PageRow, row, select_page};
use crate::store::{Db, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool, queue};

/// A task has gone on without the page, and its job has no other end.
const IS_NO_TASK: &str = sql!("job.kind NOT IN (", JobKind::Extract.sql(), ", ", JobKind::Agent.sql(), ")");

/// Which dead pages to replay; `None` or nothing means any.
#[derive(Debug, Clone, Default)]
pub struct ReplayFilter {
    pub job: Option<JobId>,
    pub team: Option<TeamId>,
    /// Error codes.
    pub codes: Vec<String>,
    pub failed_before: Option<Timestamp>,
    pub failed_after: Option<Timestamp>,
    /// Only pages that were replayed less often than this.
    pub most_replays: Option<i64>,
    /// Only pages that nobody waited for: those of batches and crawls.
    pub background: bool,
    pub limit: i64,
}

/// Dead pages that match, oldest failure first. Those of cancelled and expired jobs stay as they are.
pub async fn replayable(db: &Db, filter: &ReplayFilter, now: Timestamp) -> StoreResult<Vec<PageRow>> {
    let rows: Vec<Columns> = on_pool!(db, |pool| {
        let mut select = sqlx::QueryBuilder::new(select_page!(
            "WHERE state = ",
            PageMove::Replay.from().sql(),
            " AND finished_at <= "
        ));
        select.push_bind(filter.failed_before.unwrap_or(Timestamp(i64::MAX)));
        select.push(" AND finished_at >= ").push_bind(filter.failed_after.unwrap_or(Timestamp(0)));
        if let Some(job) = filter.job {
            select.push(" AND job_id = ").push_bind(job);
        }
        if let Some(team) = filter.team {
            select.push(" AND team_id = ").push_bind(team);
        }
        if let Some(most) = filter.most_replays {
            select.push(" AND replays < ").push_bind(most);
        }
        if !filter.codes.is_empty() {
            select.push(" AND error_code IN (");
            let mut list = select.separated(", ");
            for code in &filter.codes {
                list.push_bind(code.as_str());
            }
            select.push(")");
        }
        select.push(" AND EXISTS (SELECT 1 FROM job WHERE job.id = page.job_id AND job.status <> ");
        select.push(JobStatus::Cancelled.sql());
        select.push(" AND COALESCE(job.origin, '') <> ").push_bind(monitor::ORIGIN);
        select.push(" AND ").push(IS_NO_TASK);
        if filter.background {
            select.push(" AND job.rank > 0 AND job.kind <> ").push(JobKind::Search.sql());
        }
        select.push(" AND job.expires_at > ").push_bind(now).push(") ORDER BY finished_at, id LIMIT ");
        select.push_bind(filter.limit).build_query_as().fetch_all(pool).await?
    });
    rows.into_iter().map(row).collect()
}

/// What came of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replay {
    Queued,
    /// It is not dead any more, its job was cancelled or has expired, it is a monitor's, or its team is removed.
    NotDead,
    /// Its team cannot pay for it.
    NoCredits,
}

/// Puts a dead page back into the queue with a clean count of tries; its history stays. A finished job runs again
/// until the page has ended. What receivers of webhooks have not been told of the failure they are not told any more.
pub async fn replay(tx: &mut Tx, page: PageId, metered: bool, now: Timestamp) -> StoreResult<Replay> {
    const OWNER: &str = sql!(
        "SELECT page.team_id, page.job_id, job.page_credits FROM page JOIN job ON job.id = page.job_id \
         WHERE page.id = $1 AND COALESCE(job.origin, '') <> $2 AND page.state = ",
        PageMove::Replay.from().sql()
    );
    const PAGE: &str = sql!(
        "UPDATE page SET state = ",
        PageMove::Replay.to().sql(),
        ", run_at = $2, queued_at = $2, tries = 0, claims = 0, replays = replays + 1, epoch = epoch + 1, acted = NULL, \
         finished_at = NULL, error_code = NULL, error = NULL WHERE id = $1 AND state = ",
        PageMove::Replay.from().sql(),
        " AND EXISTS (SELECT 1 FROM job WHERE job.id = page.job_id AND job.status <> ",
        JobStatus::Cancelled.sql(),
        " AND ",
        IS_NO_TASK,
        " AND job.expires_at > $2)"
    );
    const JOB: &str = sql!(
        "UPDATE job SET queued = queued + 1, due_at = 0, failed = failed - 1, status = ",
        JobMove::Reopen.to().sql(),
        ", finished_at = NULL WHERE id = $1"
    );
    const UNTOLD: &str = sql!(
        "DELETE FROM webhook_delivery WHERE job_id = $1 AND page_id = $2 AND state <> ",
        DeliveryState::Delivered.sql()
    );
    let owner: Option<(TeamId, JobId, i64)> =
        on_db!(tx, |conn| sqlx::query_as(OWNER).bind(page).bind(monitor::ORIGIN).fetch_optional(conn).await?);
    let Some((team, job, need)) = owner else { return Ok(Replay::NotDead) };
    if team_lock::lock_to_begin(tx, team).await?.is_none() {
        return Ok(Replay::NotDead);
    }
    if credits::check_funds(tx, team, need, metered).await? != Funds::Enough {
        return Ok(Replay::NoCredits);
    }
    let moved = on_db!(tx, |conn| sqlx::query(PAGE).bind(page).bind(now).execute(conn).await?.rows_affected());
    if moved == 0 {
        return Ok(Replay::NotDead);
    }
    on_db!(tx, |conn| {
        sqlx::query(JOB).bind(job).execute(&mut *conn).await?;
        sqlx::query(UNTOLD).bind(job).bind(page).execute(conn).await?.rows_affected()
    });
    queue::team_wakeup(tx, team, std::time::Duration::ZERO).await?;
    Ok(Replay::Queued)
}
