//! `POST /v2/batch/scrape` (spec 4.7, wire 4): accept a batch, answer before any page is fetched.

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;
use weir_shared::clock::Stopwatch;
use weir_shared::domain::activity::Endpoint;
use weir_shared::domain::describe::Reading;
use weir_shared::domain::job::{JobKind, JobStatus, WebhookEvent};
use weir_shared::domain::price;
use weir_shared::domain::scrape_request::{BatchRequest, parse_batch};
use weir_shared::domain::target::RequestContext;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{JobId, PageId};
use weir_shared::queue;
use weir_shared::store::Tx;
use weir_shared::store::accounts::activity::{self, Entry};
use weir_shared::store::accounts::{credits, team_lock};
use weir_shared::store::db::slices::Slices;
use weir_shared::store::work::jobs::{self, NewJob};
use weir_shared::store::work::page::rows;
use weir_shared::store::work::{drafts, pages, webhooks};
use weir_shared::time::Timestamp;

use crate::app::{App, AppData};
use crate::callers::auth::Caller;
use crate::callers::limits::Bucket;
use crate::endpoints::direct::{refuse_full_queue, refuse_short_funds};
use crate::endpoints::jobs::{Served, idempotency};
use crate::endpoints::outage::{commit, commit_job};
use crate::endpoints::retention;
use crate::error::{ApiError, ApiResult};
use crate::http::extract::{self, Parser};
use crate::openapi::{Group, Operation};

/// Pages that are written in one transaction.
const AT_ONCE: usize = 2_000;
/// A transaction with more pages than this takes its turn among those that do.
const FEW: usize = 100;

#[derive(Serialize, JsonSchema)]
pub(in crate::endpoints) struct Body {
    success: bool,
    id: JobId,
    /// Where its status is read.
    url: String,
    /// Absent when invalid URLs fail the request.
    #[serde(rename = "invalidURLs", skip_serializing_if = "Option::is_none")]
    invalid_urls: Option<Vec<String>>,
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "Accepts a batch and answers before any page is fetched; it outlives any process. Read it by its status, \
        its WebSocket or a webhook. Options of pages stand beside the batch's own fields.";
    // Whether there are options at all is about the body, not about what is read of it.
    let read = |body: &Value| {
        let request = parse_batch(body, RequestContext::ANYWHERE)?;
        Ok(Reading::of(BatchRequest { has_options: false, ..request }))
    };
    let webhook =
        json!({"url": "https://example.com/hook", "events": ["completed"], "headers": {"X-Team": "research"}});
    Operation::new(Group::Batch, "startBatchScrape", "Start a batch", text)
        .header("x-idempotency-key", json!({"type": "string", "format": "uuid"}), idempotency::TEXT)
        .body(
            "BatchRequest",
            read,
            vec![
                ("Two pages", json!({"urls": ["https://example.com", "https://example.org"]})),
                (
                    "With formats and a webhook",
                    json!({"urls": ["https://example.com"], "formats": ["markdown", "html"], "maxConcurrency": 5,
                        "webhook": webhook}),
                ),
            ],
        )
        .answer::<Body>("The batch is accepted.")
        .example(json!({
            "success": true, "id": "0197f2a0-3c5e-7cc1-b1a5-0e7d1c2b3a4f",
            "url": "http://127.0.0.1:3002/v2/batch/scrape/0197f2a0-3c5e-7cc1-b1a5-0e7d1c2b3a4f", "invalidURLs": [],
        }))
        .errors(&[402, 403, 404, 409])
}

/// Handles the request.
///
/// # Errors
/// Every row of wire 2.1 that names batches.
pub async fn handle(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    run(&app, &request, payload, parse_batch).await
}

/// Accepts the batch that a body asks for, whichever version of the API it is of.
pub(in crate::endpoints) async fn run(
    app: &App,
    request: &HttpRequest,
    payload: Payload,
    parser: Parser<BatchRequest>,
) -> ApiResult<HttpResponse> {
    let caller = app.authorize(request, Bucket::Crawl).await?;
    let read = |body: &Value| app.parse(|context| parser(body, context));
    let (mut batch, _room) = extract::json(app, &caller, request, payload, read).await?;
    refuse_blocked_urls(app, &mut batch)?;
    retention::settle(&caller, &mut batch.options)?;
    let key = idempotency::key(request)?;
    refuse_other_options(app, &caller, &batch).await?;

    let now = app.db.now();
    let is_draft = batch.append_to_id.is_none() && batch.urls.len() > AT_ONCE;
    let id = batch.append_to_id.unwrap_or_else(JobId::new);
    if is_draft {
        // A refusal now saves the work. The judgement that counts comes with the acceptance.
        let mut tx = app.db.begin().await?;
        judge(app, &mut tx, &caller, &batch, (key, id), now).await?;
        drop(tx);
        write_draft(app, &caller, id, &batch.urls, now).await?;
    }
    let accepted = accept(app, &caller, id, &batch, key, is_draft).await;
    if is_draft
        && accepted.is_err()
        && let Err(error) = drafts::abandon(&app.db, id).await
    {
        tracing::warn!(job.id = %id, %error, "the pages of a batch that is not accepted stay for some minutes");
    }
    accepted?;

    let url = format!("{}{}", app.base_url(request), Served::new(batch.version, JobKind::Batch).path(id));
    Ok(HttpResponse::Ok().json(Body { success: true, id, url, invalid_urls: batch.invalid_urls }))
}

/// Whether the team may have so many pages more. Locks the team.
async fn judge(
    app: &App,
    tx: &mut Tx,
    caller: &Caller,
    batch: &BatchRequest,
    (key, id): (Option<Uuid>, JobId),
    now: Timestamp,
) -> ApiResult<()> {
    team_lock::lock(tx, caller.team_id()).await?;
    let pages = batch.urls.len() as i64;
    // Appended pages are scraped with the options of their batch, whatever this body says. A batch that is not the
    // team's is refused where it is appended to.
    let price = match batch.append_to_id {
        Some(id) => jobs::page_price(tx, caller.team_id(), id).await?.unwrap_or(0),
        None => price::most(&batch.options),
    };
    let need = pages.saturating_mul(price);
    let funds = credits::check_funds(tx, caller.team_id(), need, app.settings.limits.metered).await?;
    refuse_short_funds(funds, need)?;
    refuse_full_queue(app, tx, caller, pages).await?;
    idempotency::take(tx, caller.team_id(), key, id, now).await
}

/// Writes the pages of a large batch before its job, in slices: nobody sees them until it is accepted.
async fn write_draft(app: &App, caller: &Caller, id: JobId, urls: &[String], now: Timestamp) -> ApiResult<()> {
    let mut slices = Slices::default();
    let mut written = 0;
    while written < urls.len() {
        let slice = &urls[written..urls.len().min(written + slices.rows().unsigned_abs() as usize)];
        let turn = app.db.bulk_turn(caller.team_id()).await;
        let mut tx = app.db.begin_relaxed().await?;
        let began = Stopwatch::start();
        if written == 0 {
            drafts::begin(&mut tx, id, now).await?;
        }
        rows::insert_many(&mut tx, id, caller.team_id(), written as i64, slice, now).await?;
        tx.commit().await?;
        written += slice.len();
        slices.give_way(turn, began).await;
    }
    Ok(())
}

/// What makes the batch, or what is appended to it, the team's, in one transaction. Pages to append go to a job that runs,
/// so they cannot be written before; when they are many, the rest follows in slices, each counted with its rows.
async fn accept(
    app: &App,
    caller: &Caller,
    id: JobId,
    batch: &BatchRequest,
    key: Option<Uuid>,
    is_draft: bool,
) -> ApiResult<()> {
    let now = app.db.now();
    let turn = match batch.urls.len() {
        ..=FEW => None,
        _ if is_draft => None,
        _ => Some(app.db.bulk_turn(caller.team_id()).await),
    };
    let mut tx = app.db.begin().await?;
    let began = Stopwatch::start();
    judge(app, &mut tx, caller, batch, (key, id), now).await?;
    let (appended, rest) = if batch.append_to_id.is_some() {
        let (first, rest) = batch.urls.split_at(batch.urls.len().min(AT_ONCE));
        (append(&mut tx, caller, id, first, now).await?, rest)
    } else {
        if is_draft && !drafts::accept(&mut tx, id, now).await? {
            let text = "It took too long to write the batch. Please try again, or with fewer URLs.";
            return Err(ApiError::new(ErrorCode::Unavailable, text));
        }
        let pages = if is_draft { &[] } else { batch.urls.as_slice() };
        insert(app, &mut tx, caller, id, batch, pages, now).await?;
        (None, &[][..])
    };
    queue::team_wakeups(&mut tx, caller.team_id(), batch.urls.len()).await?;
    match appended {
        Some(page) => commit_page(app, tx, page).await?,
        None => commit_job(app, tx, id).await?,
    }
    if let Some(turn) = turn {
        turn.end(began).await;
    }
    let mut slices = Slices::default();
    for urls in rest.chunks(AT_ONCE) {
        let turn = app.db.bulk_turn(caller.team_id()).await;
        let mut tx = app.db.begin().await?;
        let began = Stopwatch::start();
        if let Some(page) = append(&mut tx, caller, id, urls, now).await? {
            commit_page(app, tx, page).await?;
        }
        slices.give_way(turn, began).await;
    }
    Ok(())
}

/// Hosts that are plainly addresses out of bounds count as invalid URLs; the whole request is refused when those may
/// not be skipped, or when nothing is left.
fn refuse_blocked_urls(app: &App, batch: &mut BatchRequest) -> ApiResult<()> {
    let mut last = None;
    let mut blocked = Vec::new();
    batch.urls.retain(|url| match app.check_target(url) {
        Ok(()) => true,
        Err(error) => {
            blocked.push(url.clone());
            last = Some(error);
            false
        }
    });
    match (last, &mut batch.invalid_urls) {
        (None, _) => Ok(()),
        (Some(_), Some(invalid)) if !batch.urls.is_empty() => {
            invalid.append(&mut blocked);
            Ok(())
        }
        (Some(error), _) => Err(error),
    }
}

/// Writes a new job with those pages that are not written yet, and the delivery that announces it.
async fn insert(
    app: &App,
    tx: &mut Tx,
    caller: &Caller,
    id: JobId,
    batch: &BatchRequest,
    urls: &[String],
    now: Timestamp,
) -> ApiResult<()> {
    let target = batch.urls.first().and_then(|url| retention::shown(&batch.options, url));
    let row = NewJob {
        id,
        team: caller.team_id(),
        key: caller.key,
        kind: JobKind::Batch,
        options: &batch.options,
        target: target.as_deref().unwrap_or_default(),
        origin: batch.origin.as_deref(),
        // A number above the team's limit is capped where pages are claimed: both limits hold there.
        max_concurrency: batch.max_concurrency,
        webhook: batch.webhook.as_ref(),
        total: batch.urls.len() as i64,
        created_at: now,
        expires_at: now.plus_ms(app.settings.result_ttl.as_millis() as i64),
    };
    jobs::insert(tx, &row).await?;
    rows::insert_many(tx, id, caller.team_id(), 0, urls, now).await?;
    let entry = Entry {
        id: id.0,
        endpoint: Endpoint::BatchScrape,
        version: batch.version,
        target: target.clone(),
        created_at: now,
    };
    activity::record(tx, caller.team_id(), &entry).await?;
    if batch.webhook.as_ref().is_some_and(|hook| hook.wants(WebhookEvent::Started)) {
        webhooks::queue(tx, caller.team_id(), id, None, WebhookEvent::Started, now).await?;
    }
    Ok(())
}

/// Commits an append, of which this page is a part.
async fn commit_page(app: &App, tx: Tx, page: PageId) -> ApiResult<()> {
    commit(app, tx, || async { Ok(pages::load(&app.db, page).await?.is_some()) }).await
}

/// Adds pages to a batch of the caller that still runs (`appendToId`). Returns one of them.
async fn append(tx: &mut Tx, caller: &Caller, id: JobId, urls: &[String], now: Timestamp) -> ApiResult<Option<PageId>> {
    let finished = || ApiError::new(ErrorCode::Conflict, "The batch has already ended. Please start a new batch.");
    team_lock::lock(tx, caller.team_id()).await?;
    let job = jobs::lock(tx, id).await?;
    let own = job.filter(|job| job.kind == JobKind::Batch && job.team_id == caller.team_id());
    let job = own.ok_or_else(ApiError::job_not_found)?;
    if job.has_expired(now) {
        return Err(ApiError::job_expired());
    }
    if job.status != JobStatus::Scraping || !jobs::grow(tx, id, urls.len() as i64).await? {
        return Err(finished());
    }
    let pages = rows::insert_many(tx, id, caller.team_id(), job.total, urls, now).await?;
    Ok(pages.first().copied())
}

/// A batch has one set of options, and they never change: others in an append would be silently ignored, so they are
/// refused.
async fn refuse_other_options(app: &App, caller: &Caller, batch: &BatchRequest) -> ApiResult<()> {
    let Some(id) = batch.append_to_id.filter(|_| batch.has_options) else { return Ok(()) };
    let own = jobs::load(&app.db, id).await?.is_some_and(|job| job.team_id == caller.team_id());
    let spec = jobs::spec(&app.db, id).await?.filter(|_| own);
    match spec {
        Some(spec) if spec.options != batch.options => Err(ApiError::new(
            ErrorCode::BadRequest,
            "Appended URLs are scraped with the options of the batch: leave the options out, or repeat them as they were.",
        )),
        _ => Ok(()),
    }
}
