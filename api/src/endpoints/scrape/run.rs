//! `POST /v2/scrape` (CONTRACT 3.1): one page now.
//!
//! The page goes through the same rows and queue as a batch's; this side writes them, waits to be woken, and answers
//! with what the worker stored.

use std::time::Duration;

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use serde_json::value::RawValue;
use tokio::time::Instant;
use weir_shared::domain::activity::Endpoint;
use weir_shared::domain::job::JobKind;
use weir_shared::domain::price;
use weir_shared::domain::scrape_request::{ScrapeRequest, parse_scrape};
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{JobId, PageId};
use weir_shared::store::credits;
use weir_shared::store::jobs::{self, NewJob, NewScrape};
use weir_shared::store::retention::expiry;
use weir_shared::store::{documents, pages};
use weir_shared::time::Timestamp;

use super::{cached, document_answer};
use crate::app::{App, State};
use crate::auth::Caller;
use crate::endpoints::direct::{self, Accepted, Late, page_error, refuse_full_queue, refuse_short_funds};
use crate::endpoints::retention;
use crate::error::{ApiError, ApiResult};
use crate::extract;
use crate::limits::Bucket;

const LATE: Late = Late {
    queued: (
        ErrorCode::ConcurrencyQueueTimeout,
        "Scrape timed out while it waited for a free slot of the team's concurrency.",
    ),
    working: (ErrorCode::Timeout, "Scrape timed out. Raise timeout, or lower waitFor, if the page needs longer."),
};

/// Handles the request.
///
/// # Errors
/// Every row of CONTRACT 2.1 that names scrapes, and the scrape codes of 2.3.
pub async fn handle(app: State, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Scrape).await?;
    let body = extract::json(&request, payload).await?;
    let mut scrape = app.parse(|context| parse_scrape(&body, context))?;
    app.check_target(&scrape.url)?;
    retention::settle(&caller, &mut scrape.options)?;
    if let Some(answer) = cached::answer(&app, &caller, &scrape).await? {
        return Ok(answer);
    }
    let inner = app.clone();
    app.beside_database(async move {
        let mut accepted = accept(&inner, &caller, &scrape).await?;
        let timeout = Duration::from_millis(u64::from(scrape.options.timeout));
        direct::wait(&inner, &mut accepted, timeout, &LATE).await?;
        let document = document(&inner, &accepted).await;
        if scrape.options.zero_retention {
            retention::forget(&inner, accepted.job).await;
        }
        // The reference's own website asks for it.
        let named = scrape.origin.as_deref().is_some_and(|origin| origin.contains("website"));
        Ok((document?, named.then_some(accepted.page)))
    })
    .await
    .map(|(document, scrape_id)| document_answer(&document, scrape_id))
}

/// Writes job, page and ticket in one transaction.
async fn accept(app: &App, caller: &Caller, scrape: &ScrapeRequest) -> ApiResult<Accepted> {
    let (at, now) = (Instant::now(), Timestamp::now());
    let job = JobId::new();
    let target = retention::shown(&scrape.options, &scrape.url);
    let row = NewJob {
        id: job,
        team: caller.team_id(),
        key: caller.key,
        kind: JobKind::Scrape,
        options: &scrape.options,
        target: target.as_deref().unwrap_or_default(),
        origin: scrape.origin.as_deref(),
        max_concurrency: None,
        webhook: None,
        total: 1,
        created_at: now,
        expires_at: match scrape.options.zero_retention {
            true => expiry(now, i64::from(scrape.options.timeout)),
            false => now.plus_ms(app.settings.result_ttl.as_millis() as i64),
        },
    };
    let page = PageId::new();
    let end = app.wake.expect(page);
    let new = NewScrape { job: row, page, url: &scrape.url, endpoint: Endpoint::Scrape };
    let is_metered = app.settings.limits.metered;
    // Nothing is promised yet: the commit that ends the page makes this one durable with it.
    if !is_metered && app.queue_rooms.take(caller.team_id()) {
        jobs::insert_scrape_alone(&app.db, &new).await?;
    } else {
        let mut tx = app.db.begin_relaxed().await?;
        let need = price::most(&scrape.options);
        refuse_short_funds(credits::check_funds(&mut tx, caller.team_id(), need, is_metered).await?, need)?;
        refuse_full_queue(app, &mut tx, caller, 1).await?;
        jobs::insert_scrape(&mut tx, &new).await?;
        tx.commit().await?;
    }
    Ok(Accepted { job, page, end, at })
}

async fn document(app: &App, accepted: &Accepted) -> ApiResult<Box<RawValue>> {
    if let Some(document) = documents::by_page(&app.db, &app.blobs, accepted.page).await? {
        return Ok(document.json);
    }
    let page = pages::load(&app.db, accepted.page).await?.ok_or_else(ApiError::job_not_found)?;
    Err(page_error(&page, "The scrape"))
}
