//! `POST /v2/scrape` (wire 3.1): one page now.
//!
//! The page has the same rows as a batch's. It is dispatched directly to a worker with a free slot, which answers with
//! what it stored; where there is none, or no answer comes soon, it takes the queue as well: this side writes the rows
//! and waits to be woken.

use std::pin::pin;
use std::time::Duration;

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use futures_util::future::BoxFuture;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;
use tracing::Instrument as _;
use weir_shared::clock;
use weir_shared::domain::price;
use weir_shared::domain::scrape::ScrapeOptions;
use weir_shared::domain::scrape_request::{ScrapeRequest, parse_scrape};
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{JobId, PageId};
use weir_shared::store::StoreError;
use weir_shared::store::accounts::credits;
use weir_shared::store::contents::retention::expiry;
use weir_shared::store::work::page::scrape;
use weir_shared::store::work::{documents, pages};
use weir_shared::traces;
use weir_shared::worker_api::direct::DirectScrape;

use super::document_answer;
use crate::app::{App, AppData};
use crate::callers::auth::Caller;
use crate::callers::limits::Bucket;
use crate::callers::turns::TeamTurns;
use crate::endpoints::direct::{self, Accepted, Late, Waiting, page_error, refuse_full_queue, refuse_short_funds};
use crate::endpoints::outage::{commit_job, patiently, read};
use crate::endpoints::retention;
use crate::error::{ApiError, ApiResult};
use crate::http::extract::{self, Parser};
use crate::workers::direct_dispatch::Dispatched;

/// How long the answer of a worker alone is waited for: then the rows are looked at.
const PATIENCE: Duration = Duration::from_secs(1);

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
/// Every row of wire 2.1 that names scrapes, and the scrape codes of 2.3.
pub async fn handle(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    let Scraped { document, named } = run(&app, &request, payload, parse_scrape).await?;
    Ok(document_answer(&document, named))
}

/// A page that was scraped.
pub(in crate::endpoints) struct Scraped {
    pub document: Box<RawValue>,
    /// Its id, for callers whose origin names a website: they read it at the top level, too (wire 3.1).
    pub named: Option<PageId>,
}

/// Scrapes the page that a body asks for, whichever version of the API it is of.
pub(in crate::endpoints) async fn run(
    app: &AppData,
    request: &HttpRequest,
    payload: Payload,
    parser: Parser<ScrapeRequest>,
) -> ApiResult<Scraped> {
    let caller = app.authorize(request, Bucket::Scrape).await?;
    let read = |body: &Value| app.parse(|context| parser(body, context));
    let (mut scrape, _room) = extract::json(app, &caller, request, payload, read).await?;
    app.check_target(&scrape.url)?;
    retention::settle(&caller, &mut scrape.options)?;
    scraped(app, caller, scrape).await
}

/// Scrapes what is settled: a page, or a file that is at hand.
pub(in crate::endpoints) async fn scraped(app: &AppData, caller: Caller, scrape: ScrapeRequest) -> ApiResult<Scraped> {
    let is_named = scrape.origin.as_deref().is_some_and(|origin| origin.contains("website"));
    let scrape = accept(app, &caller, scrape);
    let named = is_named.then_some(scrape.page);
    let document = direct::awaited(app, scrape.job, answer(app, caller, scrape)).await?;
    Ok(Scraped { document, named })
}

/// The job and the page, before they are written.
fn accept(app: &App, caller: &Caller, scrape: ScrapeRequest) -> DirectScrape {
    let now = app.db.now();
    DirectScrape {
        job: JobId::new(),
        page: PageId::new(),
        team: caller.team_id(),
        key: caller.key,
        target: retention::shown(&scrape.options, &scrape.url).unwrap_or_default(),
        url: scrape.url,
        origin: scrape.origin,
        version: scrape.version,
        created_at: now,
        expires_at: match scrape.options.zero_retention {
            true => expiry(now, i64::from(scrape.options.timeout)),
            false => now.plus_ms(app.settings.result_ttl.as_millis() as i64),
        },
        options: ScrapeOptions { trace_parent: traces::current(), ..scrape.options },
    }
}

/// The document of the page. What keeps nothing is forgotten when its page has ended, also where its caller has left or was
/// told that it takes too long: that work is a task of its own.
async fn answer(app: &AppData, caller: Caller, scrape: DirectScrape) -> ApiResult<Box<RawValue>> {
    if !scrape.options.zero_retention {
        return find(app, caller, scrape).await;
    }
    let inner = app.clone();
    let work = async move {
        let (job, page) = (scrape.job, scrape.page);
        let found = find(&inner, caller, scrape).await;
        if found.is_ok() {
            retention::forget(&inner, job).await;
        } else if !retention::forget_ended(&inner, job, page).await {
            inner.runtime.spawn(retention::forget_at_end(inner.clone(), job, page));
        }
        found
    };
    app.runtime
        .spawn(traces::under(traces::current(), work.in_current_span()))
        .await
        .map_err(|error| ApiError::internal(&error))?
}

/// The document: from a worker that has a free slot now, or by way of the queue.
async fn find(app: &AppData, caller: Caller, scrape: DirectScrape) -> ApiResult<Box<RawValue>> {
    let at = clock::instant();
    // Credits are checked where the rows are written for the queue, so metered teams always take it.
    let mut call = if app.settings.limits.metered { None } else { app.direct_dispatch.offer(&scrape) };
    let reply = match &mut call {
        Some(call) => {
            let _waiting = Waiting::of(app);
            tokio::time::timeout(PATIENCE, call).await.ok()
        }
        None => Some(Dispatched::Refused),
    };
    let reply = match reply {
        Some(Dispatched::Document(document)) => return Ok(document),
        reply => reply,
    };
    let inner = app.clone();
    let rest = async move {
        let app = &inner;
        if matches!(reply, Some(Dispatched::Ended)) {
            return document(app, scrape.page).await;
        }
        let call = call.filter(|_| reply.is_none());
        let may_be_known = !matches!(reply, Some(Dispatched::Refused));
        match follow(app, &caller, &scrape, at, may_be_known, call).await? {
            Some(document) => Ok(document),
            None => document(app, scrape.page).await,
        }
    };
    app.beside_database(rest).await
}

/// Writes the rows unless a worker has, and waits for the page's end, or for the answer of the worker that still owes
/// one (`call`): its document, if that comes first.
async fn follow(
    app: &AppData,
    caller: &Caller,
    scrape: &DirectScrape,
    at: Instant,
    may_be_known: bool,
    mut call: Option<BoxFuture<'static, Dispatched>>,
) -> ApiResult<Option<Box<RawValue>>> {
    let turns = app.turns.of(&scrape.team, TeamTurns::default);
    let mut accepted = Accepted { job: scrape.job, page: scrape.page, end: app.wake.expect(scrape.page), at, turns };
    let timeout = Duration::from_millis(u64::from(scrape.options.timeout));
    let known = match may_be_known {
        true => patiently(at + timeout, || async { Ok(pages::load(&app.db, scrape.page).await?) }).await?,
        false => None,
    };
    match known {
        Some(page) if page.finished_at.is_some() => return Ok(None),
        Some(_) => {}
        None => {
            if let Err(error) = queue(app, caller, scrape, &accepted.turns).await {
                // The worker may be writing the rows at this moment, or the answer to our own commit was lost: what is
                // committed is answered.
                if let Some(owed) = call.take() {
                    match tokio::time::timeout_at(at + timeout, owed).await {
                        Ok(Dispatched::Document(document)) => return Ok(Some(document)),
                        Ok(Dispatched::Ended) => return Ok(None),
                        Ok(Dispatched::Refused | Dispatched::Unknown) | Err(_) => {}
                    }
                }
                let is_sure = !may_be_known && error.code() != ErrorCode::Unavailable;
                if is_sure || pages::load(&app.db, scrape.page).await?.is_none() {
                    return Err(error);
                }
            }
        }
    }
    let mut waited = pin!(direct::wait(app, &mut accepted, timeout, &LATE));
    if let Some(call) = call {
        tokio::select! {
            done = &mut waited => return done.map(|()| None),
            reply = call => match reply {
                Dispatched::Document(document) => return Ok(Some(document)),
                Dispatched::Ended => return Ok(None),
                Dispatched::Refused | Dispatched::Unknown => {}
            }
        }
    }
    waited.await.map(|()| None)
}

/// Writes job, page and wake-up in one transaction, unless a worker was a moment faster.
async fn queue(app: &App, caller: &Caller, scrape: &DirectScrape, turns: &TeamTurns) -> ApiResult<()> {
    let not_before = turns.next();
    let is_metered = app.settings.limits.metered;
    // Nothing is promised yet: the commit that ends the page makes this one durable with it.
    let written = if !is_metered && app.queue_headroom.take(scrape.team, app.db.clock().instant()) {
        scrape::insert_scrape_alone(&app.db, &scrape.rows(), not_before).await
    } else {
        let mut tx = app.db.begin_relaxed().await?;
        let need = price::most(&scrape.options);
        let funds = credits::check_funds(&mut tx, scrape.team, need, is_metered).await?;
        refuse_short_funds(funds, need)?;
        refuse_full_queue(app, &mut tx, caller, 1).await?;
        match scrape::insert_scrape(&mut tx, &scrape.rows(), not_before).await {
            Ok(turn) => {
                commit_job(app, tx, scrape.job).await?;
                Ok(turn)
            }
            refused => refused,
        }
    };
    match written {
        Ok(turn) => {
            turns.took(not_before, turn);
            Ok(())
        }
        Err(StoreError::Conflict(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn document(app: &App, page: PageId) -> ApiResult<Box<RawValue>> {
    read(|| async { read_document(app, page).await }).await
}

async fn read_document(app: &App, page: PageId) -> ApiResult<Box<RawValue>> {
    if let Some(document) = documents::by_page(&app.db, &app.blobs, page).await? {
        return Ok(document.json);
    }
    let page = pages::load(&app.db, page).await?.ok_or_else(ApiError::job_not_found)?;
    Err(page_error(&page, "The scrape"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use futures_util::FutureExt as _;
    use weir_shared::domain::api_version::ApiVersion;
    use weir_shared::domain::job::JobStatus;
    use weir_shared::ids::WorkerId;
    use weir_shared::store::work::jobs;
    use weir_shared::store::work::page::fast;

    use super::*;
    use crate::callers::auth::Credentials;
    use crate::service_tests::Api;

    fn wanted() -> ScrapeRequest {
        let url = "http://a.test/".to_owned();
        let (options, version) = (ScrapeOptions::default(), ApiVersion::V2);
        ScrapeRequest { url, options, origin: None, integration: None, version }
    }

    #[actix_web::test]
    async fn a_page_that_a_worker_wrote_a_moment_earlier_is_no_failure() {
        let api = Api::start(&[]).await;
        let app = &api.state;
        let caller = app.caller_with(Credentials::Token(&api.key)).await.unwrap();
        // The room in the team's queue is not known at first, and is known from then on.
        for _ in 0..2 {
            let scrape = accept(app, &caller, wanted());
            let now = app.db.now();
            let written = fast::insert_claimed(&app.db, &scrape.rows(), WorkerId::new(), 50, now).await;
            assert!(written.unwrap().is_some());
            queue(app, &caller, &scrape, &TeamTurns::default()).await.unwrap();
        }
    }

    #[actix_web::test]
    async fn a_job_that_is_written_after_its_caller_has_left_is_cancelled() {
        let api = Api::start(&[]).await;
        let app = &api.state;
        let caller = app.caller_with(Credentials::Token(&api.key)).await.unwrap();
        let scrape = accept(app, &caller, wanted());
        assert!(direct::awaited(app, scrape.job, std::future::pending::<()>()).now_or_never().is_none());
        // Who writes goes in turns: what is begun here begins when the first look has ended.
        app.db.begin().await.unwrap().commit().await.unwrap();
        let written = fast::insert_claimed(&app.db, &scrape.rows(), WorkerId::new(), 50, app.db.now()).await;
        assert!(written.unwrap().is_some());
        let cancelled = async {
            while jobs::load(&app.db, scrape.job).await.unwrap().unwrap().status != JobStatus::Cancelled {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), cancelled).await.expect("it is cancelled");
    }
}
