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
use weir_shared::clock;
use weir_shared::domain::job::{JobStatus, PageState};
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{JobId, PageId};
use weir_shared::store::Tx;
use weir_shared::store::accounts::credits::Funds;
use weir_shared::store::work::jobs::{self, JobRow};
use weir_shared::store::work::pages::{self, PageRow};
use weir_shared::store::work::{cancel, nodes, queue_depth};
use weir_shared::wake::ExpectedPage;

use crate::app::{App, AppData};
use crate::callers::auth::Caller;
use crate::callers::turns::TeamTurns;
use crate::endpoints::outage::{Patience, patiently};
use crate::error::{ApiError, ApiResult};

/// What the worker may need past the job's own timeout to write its end down.
const MARGIN: Duration = Duration::from_millis(2_000);
/// How long a waiting call may go on when the process has been told to stop.
const STOP_GRACE: Duration = Duration::from_secs(25);

/// A job that a worker, or a task of ours, is about to write as its caller leaves is there by then: the API waits half as
/// long for a worker.
const WRITTEN: Duration = Duration::from_secs(2);
/// How long it is tried to cancel a job that nobody waits for any more, where the database is away.
const LEAVING: Duration = Duration::from_secs(120);

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
pub async fn wait(app: &AppData, accepted: &mut Accepted, timeout: Duration, late: &Late) -> ApiResult<()> {
    let _waiting = Waiting::of(app);
    let job = accepted.job;
    let outcome = tokio::select! {
        outcome = wait_for_page(app, accepted, timeout, late) => outcome,
        () = stopped(app) => {
            give_up(app, job).await;
            return Err(ApiError::new(ErrorCode::Unavailable, "The server is stopping. Please try again."));
        }
    };
    outcome.inspect_err(|error| leave_after(error, app, job))
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
            leave(&self.app, job);
        }
    }
}

/// Has a job cancelled that nobody waits for any more: a task of its own, which goes on until the database is back.
fn leave(app: &AppData, job: JobId) {
    let inner = app.clone();
    app.runtime.spawn(async move {
        let mut ended = end_patiently(&inner, job).await;
        if matches!(ended, Ok(false)) {
            tokio::time::sleep(WRITTEN).await;
            ended = end_patiently(&inner, job).await;
        }
        if let Err(error) = ended {
            tracing::warn!(job.id = %job, %error, "cannot cancel a job nobody waits for");
        }
    });
}

async fn end_patiently(app: &App, job: JobId) -> ApiResult<bool> {
    patiently(clock::deadline(LEAVING), || async { end(app, job).await }).await
}

/// The same for a job whose caller is told that the database is away. What is told of otherwise has ended.
pub fn leave_after(error: &ApiError, app: &AppData, job: JobId) {
    if error.may_pass() {
        leave(app, job);
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

async fn wait_for_page(app: &AppData, accepted: &mut Accepted, timeout: Duration, late: &Late) -> ApiResult<()> {
    let (queue_end, last) = (accepted.at + timeout * 2 / 3, accepted.at + timeout);
    if ended(&mut accepted.end, queue_end, last).await? {
        return Ok(());
    }
    let page = patiently(last, || async { pages::load(&app.db, accepted.page).await?.ok_or_else(lost) }).await?;
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
    if ended(&mut accepted.end, work_end, work_end + MARGIN).await? {
        return Ok(());
    }
    give_up(app, accepted.job).await;
    Err(ApiError::new(late.working.0, late.working.1))
}

/// Whether the page has ended by `until`. While the database is away that is not known; it is asked again until `last`.
async fn ended(page: &mut ExpectedPage, until: Instant, last: Instant) -> ApiResult<bool> {
    let mut patience = Patience::until(last);
    loop {
        match page.ended(until).await {
            Ok(has_ended) => return Ok(has_ended),
            Err(error) => tokio::time::sleep(patience.after(error.into())?).await,
        }
    }
}

/// What somebody waits for is not made to outlive a crash of the database, and this was not.
fn lost() -> ApiError {
    let text = "The database has crashed meanwhile, and knows nothing of the request. Please try again.";
    ApiError::new(ErrorCode::Unavailable, text).retry_after(LOST_RETRY_SECONDS)
}

/// Nobody waits for the job any more, and its caller is told so now.
async fn give_up(app: &AppData, job: JobId) {
    if let Err(error) = end(app, job).await {
        tracing::warn!(job.id = %job, %error, "cannot cancel a job nobody waits for yet");
        leave_after(&error, app, job);
    }
}

/// Cancels a job: its page must not start. Returns whether it has ended. One that has not was written a moment ago, or will be.
async fn end(app: &App, job: JobId) -> ApiResult<bool> {
    let mut tx = app.db.begin().await?;
    let is_cancelled = cancel::job(&mut tx, job, app.db.now()).await?;
    tx.commit().await?;
    let has_ended = |job: JobRow| job.status != JobStatus::Scraping;
    Ok(is_cancelled || jobs::load(&app.db, job).await?.is_some_and(has_ended))
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
