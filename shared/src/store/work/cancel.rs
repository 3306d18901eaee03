//! Jobs are cancelled: what waits leaves the counts at once, and the rows of many pages are marked in slices.

use crate::clock::Stopwatch;
use crate::domain::job::{JobMove, PageMove, PageState, WebhookEvent};
use crate::ids::{JobId, TeamId};
use crate::store::accounts::team_lock;
use crate::store::db::slices::Slices;
use crate::store::{Db, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

use super::{jobs, webhooks};

/// Waiting pages of a cancelled job that are marked in one transaction.
const DROPPED_AT_ONCE: i64 = 1_000;

/// So long at most the receiver of a cancelled job waits for pages under way, milliseconds: longer than such pages go on, and
/// than it takes to notice that their worker is dead.
const PATIENCE_MS: i64 = 60_000;

/// Of a job `$1` that has ended, only those steps of its own stay hidden pages that are still in work.
const RECOUNT_HIDDEN: &str = sql!(
    "hidden = (SELECT COUNT(*) FROM page WHERE job_id = $1 AND idx < 0 AND state = ",
    PageState::Running.sql(),
    ")"
);

/// Cancels a running job: its waiting pages never start, running ones may still finish (wire 5.5). `false` when
/// it has ended.
///
/// Waiting pages leave the counts at once, and nobody claims a page that its job does not count. When they are many, most
/// of their rows are marked later, by [`drop_rest`].
pub async fn job(tx: &mut Tx, id: JobId, now: Timestamp) -> StoreResult<bool> {
    const OWNER: &str = "SELECT team_id FROM job WHERE id = $1";
    // A step that had not begun leaves the counts like a page.
    const END: &str = sql!(
        "UPDATE job SET status = ",
        JobMove::Cancel.to().sql(),
        ", finished_at = $2, total = total - queued, queued = 0, dropping = queued > $3, ",
        RECOUNT_HIDDEN,
        " WHERE id = $1 AND status = ",
        JobMove::Cancel.from().sql()
    );
    // A task has nothing more to do.
    const TASK: &str = "UPDATE task SET due_at = NULL WHERE job_id = $1";
    let owner: Option<(TeamId,)> = on_db!(tx, |conn| sqlx::query_as(OWNER).bind(id).fetch_optional(conn).await?);
    let Some((team,)) = owner else { return Ok(false) };
    let state = team_lock::lock(tx, team).await?;
    let ended = on_db!(tx, |conn| {
        sqlx::query(END).bind(id).bind(now).bind(DROPPED_AT_ONCE).execute(conn).await?.rows_affected()
    });
    if ended == 0 {
        return Ok(false);
    }
    drop_waiting(tx, id, now, DROPPED_AT_ONCE).await?;
    on_db!(tx, |conn| sqlx::query(TASK).bind(id).execute(conn).await?.rows_affected());
    // Receivers of a team that is removed are told nothing.
    let is_told = state.is_some_and(|team| !team.is_removed);
    let job = jobs::lock(tx, id).await?.filter(|_| is_told);
    if let Some(job) = job.filter(|j| j.webhook.as_ref().is_some_and(|w| w.wants(WebhookEvent::Cancelled))) {
        webhooks::queue(tx, job.team_id, id, None, WebhookEvent::Cancelled, now).await?;
        // The end is told of last: pages under way may still be told of. Tasks tell of no pages.
        if !job.kind.is_task() && job.waiting().running > 0 {
            webhooks::hold(tx, id, WebhookEvent::Cancelled, now.plus_ms(PATIENCE_MS)).await?;
        }
    }
    jobs::notify_job(tx, id).await?;
    Ok(true)
}

/// Marks up to `limit` waiting pages of a job that has ended; its counts are without them. Returns how many.
pub(super) async fn drop_waiting(tx: &mut Tx, id: JobId, now: Timestamp, limit: i64) -> StoreResult<u64> {
    const SQL: &str = sql!(
        "UPDATE page SET state = ",
        PageMove::Drop.to().sql(),
        ", finished_at = $2, epoch = epoch + 1 WHERE id IN (SELECT id FROM page WHERE job_id = $1 AND state = ",
        PageMove::Drop.from().sql(),
        " LIMIT $3)"
    );
    Ok(on_db!(tx, |conn| sqlx::query(SQL).bind(id).bind(now).bind(limit).execute(conn).await?.rows_affected()))
}

/// Cancels `count` pages that came back to a job which had ended meanwhile, like those that were waiting then. While not
/// all of those are marked, it does not matter which ones are marked now.
pub(super) async fn drop_late(tx: &mut Tx, id: JobId, count: i64, now: Timestamp) -> StoreResult<()> {
    const JOB: &str = sql!("UPDATE job SET total = total - $2, queued = 0, ", RECOUNT_HIDDEN, " WHERE id = $1");
    drop_waiting(tx, id, now, count).await?;
    on_db!(tx, |conn| sqlx::query(JOB).bind(id).bind(count).execute(conn).await?.rows_affected());
    Ok(())
}

/// Tells the receiver of a cancelled job that it is over, if the last page under way has ended.
pub(super) async fn tell_end(tx: &mut Tx, id: JobId, team: TeamId, now: Timestamp) -> StoreResult<()> {
    const RUNNING: &str = sql!(
        "SELECT 1 FROM page WHERE team_id = $1 AND job_id = $2 AND state = ",
        PageState::Running.sql(),
        " AND idx >= 0 LIMIT 1"
    );
    let running: Option<(i32,)> =
        on_db!(tx, |conn| sqlx::query_as(RUNNING).bind(team).bind(id).fetch_optional(conn).await?);
    match running {
        Some(_) => Ok(()),
        None => webhooks::release(tx, id, WebhookEvent::Cancelled, now).await,
    }
}

/// Marks what cancelled jobs have left of their waiting pages, in slices.
pub async fn drop_rest(db: &Db, slices: &mut Slices, now: Timestamp) -> StoreResult<()> {
    const SOME: &str = "SELECT id, team_id FROM job WHERE dropping LIMIT 20";
    const OVER: &str = "UPDATE job SET dropping = FALSE WHERE id = $1";
    let jobs: Vec<(JobId, TeamId)> = on_pool!(db, |pool| sqlx::query_as(SOME).fetch_all(pool).await?);
    for (job, team) in jobs {
        loop {
            let rows = slices.rows();
            let mut tx = db.begin_relaxed().await?;
            let began = Stopwatch::start();
            team_lock::lock(&mut tx, team).await?;
            let is_last = drop_waiting(&mut tx, job, now, rows).await? < rows.unsigned_abs();
            if is_last {
                on_db!(&mut tx, |conn| sqlx::query(OVER).bind(job).execute(conn).await?.rows_affected());
            }
            tx.commit().await?;
            slices.pause(began).await;
            if is_last {
                break;
            }
        }
    }
    Ok(())
}
