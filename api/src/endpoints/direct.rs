//! Waiting for a job of one page that somebody wants at once: a scrape, a map.
//!
//! ```text
//! created            + 2/3 timeout                    claimed + timeout + margin
//!    |---- may wait for a slot ----|---- or is in work ----------|
//!    |                             too long in the queue         too long altogether
//! ```

use std::sync::Arc;
use std::time::Duration;

use prometheus::IntGauge;
use tokio::time::Instant;
use weir_shared::domain::job::{JobStatus, PageState};
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{JobId, PageId};
use weir_shared::store::accounts::credits::Funds;
use weir_shared::store::work::jobs::{self, JobRow};
use weir_shared::store::work::pages::{self, PageRow};
use weir_shared::store::work::{cancel, nodes, queue_depth};
use weir_shared::store::{StoreError, Tx};
use weir_shared::wake::ExpectedPage;

use crate::app::{App, AppData};
use crate::callers::auth::Caller;
use crate::callers::turns::TeamTurns;
use crate::error::{ApiError, ApiResult};

/// What the worker may need past the job's own timeout to write its end down.
const MARGIN: Duration = Duration::from_millis(2_000);
/// How long a waiting call may go on when the process has been told to stop.
const STOP_GRACE: Duration = Duration::from_secs(25);

/// A job that a worker, or a task of ours, is about to write as its caller leaves is there by then: the API waits half as
/// long for a worker.
const WRITTEN: Duration = Duration::from_secs(2);

/// When to come back to a queue that was full.
const QUEUE_RETRY_SECONDS: u64 = 30;

/// The same for what a database has lost: it is back.
const LOST_RETRY_SECONDS: u64 = 1;

/// The rows of a job that was accepted.
pub struct Accepted {
    pub job: JobId,
    pub page: PageId,
    pub end: ExpectedPage,
    pub at: Instant,
    /// Remembered while somebody waits.
    pub turns: Arc<TeamTurns>,
}

/// What a caller is told when it takes too long.
pub struct Late {
    /// No worker took the page in time.
    pub queued: (ErrorCode, &'static str),
    /// It was in work.
    pub working: (ErrorCode, &'static str),
}

/// 402 when a team cannot pay (wire 2.1).
pub fn refuse_short_funds(funds: Funds, need: i64) -> ApiResult<()> {
    match funds {
        Funds::Enough => Ok(()),
        Funds::Short { left } => Err(ApiError::new(
            ErrorCode::InsufficientCredits,
            format!("Insufficient credits to perform this request. It needs {need}, and {} are left.", left.max(0)),
        )),
    }
}

/// 429 when the team's pages that wait, with `further` ones, would be more than it may have (wire 2.1).
pub async fn refuse_full_queue(app: &App, tx: &mut Tx, caller: &Caller, further: i64) -> ApiResult<()> {
    let (team, bound) = (caller.team_id(), caller.team.queue.unwrap_or(app.settings.limits.team_queue));
    if further == 1 && app.queue_headroom.take(team, app.db.clock().instant()) {
        return Ok(());
    }
    let room = bound.saturating_sub(queue_depth::team_waiting(tx, team).await?);
    if room >= further {
        app.queue_headroom.learn(team, room - further, app.db.clock().instant());
        return Ok(());
    }
    let text =
        format!("Queue limit reached: at most {bound} of the team's pages may wait. Try again when some are done.");
    Err(ApiError::new(ErrorCode::QueueFull, text).retry_after(QUEUE_RETRY_SECONDS))
}

/// Waits until the page has ended, or says why it will not. To be [`awaited`].
pub async fn wait(app: &App, accepted: &mut Accepted, timeout: Duration, late: &Late) -> ApiResult<()> {
    let _waiting = Waiting::of(app);
    tokio::select! {
        outcome = wait_for_page(app, accepted, timeout, late) => outcome,
        () = stopped(app) => {
            give_up(app, accepted.job).await;
            Err(ApiError::new(ErrorCode::Unavailable, "The server is stopping. Please try again."))
        }
    }
}

/// Waits on behalf of the job's caller: where that one has gone before the job has ended, nobody needs it any more. The job
/// may be written meanwhile.
pub async fn awaited<T>(app: &AppData, job: JobId, waiting: impl Future<Output = T>) -> T {
    let mut left = Left { app: app.clone(), job: Some(job) };
    let outcome = waiting.await;
    left.job = None;
    outcome
}

/// Has a job cancelled when it is dropped before the wait for it is over.
struct Left {
    app: AppData,
    job: Option<JobId>,
}

impl Drop for Left {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            let app = self.app.clone();
            self.app.runtime.spawn(async move {
                if !give_up(&app, job).await {
                    tokio::time::sleep(WRITTEN).await;
                    give_up(&app, job).await;
                }
            });
        }
    }
}

/// Counted among those that wait for a page until it is dropped, also by a caller who hangs up.
pub struct Waiting(IntGauge);

impl Waiting {
    pub fn of(app: &App) -> Self {
        app.metrics.waiting.inc();
        Self(app.metrics.waiting.clone())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Ends some time after the process has been told to stop.
async fn stopped(app: &App) {
    app.stopping.cancelled().await;
    tokio::time::sleep(STOP_GRACE).await;
}

async fn wait_for_page(app: &App, accepted: &mut Accepted, timeout: Duration, late: &Late) -> ApiResult<()> {
    let queue_end = accepted.at + timeout * 2 / 3;
    if accepted.end.ended(queue_end).await? {
        return Ok(());
    }
    let page = pages::load(&app.db, accepted.page).await?.ok_or_else(lost)?;
    if page.state == PageState::Queued && page.claims == 0 {
        give_up(app, accepted.job).await;
        if nodes::live(&app.db, app.db.now()).await?.is_empty() {
            return Err(ApiError::new(ErrorCode::Unavailable, "No worker is running. Please try again."));
        }
        return Err(ApiError::new(late.queued.0, late.queued.1));
    }
    // A try may have begun as late as the end of the queue time, and has the whole timeout from there.
    let begun = page.started_at.map_or(0, |at| at.ms_since(page.queued_at)).unsigned_abs();
    let work_end = accepted.at + Duration::from_millis(begun) + timeout + MARGIN;
    if accepted.end.ended(work_end).await? {
        return Ok(());
    }
    give_up(app, accepted.job).await;
    Err(ApiError::new(late.working.0, late.working.1))
}

/// What somebody waits for is not made to outlive a crash of the database, and this was not.
fn lost() -> ApiError {
    let text = "The database has crashed meanwhile, and knows nothing of the request. Please try again.";
    ApiError::new(ErrorCode::Unavailable, text).retry_after(LOST_RETRY_SECONDS)
}

/// Nobody waits for the job any more: its page must not start. Returns whether the job has ended. One that has not was written
/// a moment ago, or will be.
async fn give_up(app: &App, job: JobId) -> bool {
    let cancel = async {
        let mut tx = app.db.begin().await?;
        let is_cancelled = cancel::job(&mut tx, job, app.db.now()).await?;
        tx.commit().await?;
        let has_ended = |job: JobRow| job.status != JobStatus::Scraping;
        Ok::<_, StoreError>(is_cancelled || jobs::load(&app.db, job).await?.is_some_and(has_ended))
    };
    cancel.await.unwrap_or_else(|error| {
        tracing::warn!(job.id = %job, %error, "cannot cancel a job nobody waits for");
        false
    })
}

/// The answer for a page that ended without a document. `what` it was, with a capital.
pub fn page_error(page: &PageRow, what: &str) -> ApiError {
    let code = page.error_code.as_deref().and_then(ErrorCode::from_code);
    let code = match page.state {
        PageState::Cancelled => ErrorCode::JobCancelled,
        _ => code.unwrap_or(ErrorCode::Unknown),
    };
    let text = match (&page.error, code) {
        (Some(text), _) => text.clone(),
        (None, ErrorCode::JobCancelled) => format!("{what} was cancelled before it was done."),
        (None, _) => format!("{what} failed."),
    };
    ApiError::new(code, text)
}
