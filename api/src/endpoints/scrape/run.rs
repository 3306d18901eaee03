//! `POST /v2/scrape` (CONTRACT 3.1): one page now.
//!
//! The page goes through the same rows and queue as a batch's; this side writes them, waits to be woken, and answers
//! with what the worker stored.
//!
//! ```text
//! created            + 2/3 timeout                    claimed + timeout + margin
//!    |---- may wait for a slot ----|---- or is in work ----------|
//!    |                             408 CONCURRENCY_QUEUE_TIMEOUT 408 SCRAPE_TIMEOUT
//! ```

use std::time::Duration;

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use tokio::time::Instant;
use weir_shared::domain::job::{JobKind, PageState};
use weir_shared::domain::scrape_request::{ScrapeRequest, parse_scrape};
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{JobId, PageId};
use weir_shared::queue;
use weir_shared::store::credits::{self, Funds};
use weir_shared::store::jobs::{self, NewJob};
use weir_shared::store::{documents, nodes, pages};
use weir_shared::time::Timestamp;
use weir_shared::wake::ExpectedPage;

use super::{document_answer, page_error};
use crate::app::{App, State};
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult};
use crate::extract;
use crate::limits::Bucket;

/// What the worker may need past the page's own timeout to write its end down.
const MARGIN: Duration = Duration::from_millis(2_000);
/// How long a waiting scrape may go on when the process has been told to stop.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// Handles the request.
///
/// # Errors
/// Every row of CONTRACT 2.1 that names scrapes, and the scrape codes of 2.3.
pub async fn handle(app: State, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Scrape).await?;
    let body = extract::json(&request, payload).await?;
    let scrape = app.parse(|context| parse_scrape(&body, context))?;
    app.check_target(&scrape.url)?;
    let mut accepted = accept(&app, &caller, &scrape).await?;
    wait(&app, &mut accepted, scrape.options.timeout).await?;
    answer(&app, &accepted, &scrape).await
}

/// The rows of a scrape that was accepted.
struct Accepted {
    job: JobId,
    page: PageId,
    end: ExpectedPage,
    at: Instant,
}

/// Writes job, page and ticket in one transaction.
async fn accept(app: &App, caller: &Caller, scrape: &ScrapeRequest) -> ApiResult<Accepted> {
    let (at, now) = (Instant::now(), Timestamp::now());
    let job = JobId::new();
    // Nothing is promised yet: the commit that ends the page makes this one durable with it.
    let mut tx = app.db.begin_relaxed().await?;
    let funds = credits::check_funds(&mut tx, caller.team_id(), 1, app.settings.limits.metered).await?;
    refuse_short_funds(funds, 1)?;
    let row = NewJob {
        id: job,
        team: caller.team_id(),
        key: caller.key,
        kind: JobKind::Scrape,
        options: &scrape.options,
        target: &scrape.url,
        origin: scrape.origin.as_deref(),
        max_concurrency: None,
        webhook: None,
        total: 1,
        created_at: now,
        expires_at: now.plus_ms(app.settings.result_ttl.as_millis() as i64),
    };
    jobs::insert(&mut tx, &row).await?;
    let urls = std::slice::from_ref(&scrape.url);
    let ids = pages::insert_many(&mut tx, job, caller.team_id(), 0, urls, now).await?;
    let page = *ids.first().ok_or_else(|| ApiError::internal(&"no page was inserted"))?;
    queue::scrape_ticket(&mut tx, caller.team_id(), page).await?;
    let end = app.wake.expect(page);
    tx.commit().await?;
    Ok(Accepted { job, page, end, at })
}

/// 402 when a team cannot pay (CONTRACT 2.1).
pub(in crate::endpoints) fn refuse_short_funds(funds: Funds, need: i64) -> ApiResult<()> {
    match funds {
        Funds::Enough => Ok(()),
        Funds::Short { left } => Err(ApiError::new(
            ErrorCode::InsufficientCredits,
            format!("Insufficient credits to perform this request. It needs {need}, and {} are left.", left.max(0)),
        )),
    }
}

/// Waits until the page has ended, or says why it will not.
async fn wait(app: &App, accepted: &mut Accepted, timeout_ms: u32) -> ApiResult<()> {
    app.metrics.waiting.inc();
    let outcome = tokio::select! {
        outcome = wait_for_page(app, accepted, Duration::from_millis(u64::from(timeout_ms))) => outcome,
        () = stopped(app) => {
            give_up(app, accepted.job).await;
            Err(ApiError::new(ErrorCode::Unavailable, "The server is stopping. Please try again."))
        }
    };
    app.metrics.waiting.dec();
    outcome
}

/// Ends some time after the process has been told to stop.
async fn stopped(app: &App) {
    app.stopping.cancelled().await;
    tokio::time::sleep(STOP_GRACE).await;
}

async fn wait_for_page(app: &App, accepted: &mut Accepted, timeout: Duration) -> ApiResult<()> {
    let queue_end = accepted.at + timeout * 2 / 3;
    if accepted.end.ended(queue_end).await? {
        return Ok(());
    }
    let page = pages::load(&app.db, accepted.page).await?.ok_or_else(ApiError::job_not_found)?;
    if page.state == PageState::Queued && page.claims == 0 {
        give_up(app, accepted.job).await;
        return Err(queue_timeout(app).await?);
    }
    // A try may have begun as late as the end of the queue time, and has the whole timeout from there.
    let begun = page.started_at.map_or(0, |at| at.ms_since(page.queued_at)).unsigned_abs();
    let work_end = accepted.at + Duration::from_millis(begun) + timeout + MARGIN;
    if accepted.end.ended(work_end).await? {
        return Ok(());
    }
    give_up(app, accepted.job).await;
    let text = "Scrape timed out. Raise timeout, or lower waitFor, if the page needs longer.";
    Err(ApiError::new(ErrorCode::Timeout, text))
}

/// Why no worker took the page in time.
async fn queue_timeout(app: &App) -> ApiResult<ApiError> {
    if nodes::live(&app.db, Timestamp::now()).await?.is_empty() {
        return Ok(ApiError::new(ErrorCode::Unavailable, "No worker is running. Please try again."));
    }
    let text = "Scrape timed out while it waited for a free slot of the team's concurrency.";
    Ok(ApiError::new(ErrorCode::ConcurrencyQueueTimeout, text))
}

/// Nobody waits for the job any more: its page must not start.
async fn give_up(app: &App, job: JobId) {
    let cancel = async {
        let mut tx = app.db.begin().await?;
        jobs::cancel(&mut tx, job, Timestamp::now()).await?;
        tx.commit().await
    };
    if let Err(error) = cancel.await {
        tracing::warn!(job.id = %job, %error, "cannot cancel a scrape nobody waits for");
    }
}

async fn answer(app: &App, accepted: &Accepted, scrape: &ScrapeRequest) -> ApiResult<HttpResponse> {
    if let Some(document) = documents::by_page(&app.db, &app.blobs, accepted.page).await? {
        // The reference's own website asks for it.
        let named = scrape.origin.as_deref().is_some_and(|origin| origin.contains("website"));
        return Ok(document_answer(&document.json, named.then_some(accepted.page)));
    }
    let page = pages::load(&app.db, accepted.page).await?.ok_or_else(ApiError::job_not_found)?;
    Err(page_error(&page))
}
