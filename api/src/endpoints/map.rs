//! `POST /v2/map` (spec 4.9, wire 9): the addresses of a site, answered when they are known.
//!
//! A map is a job with one page, as a direct scrape is; the worker stores the whole body of the answer.

use std::time::Duration;

use actix_web::http::header::ContentType;
use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use weir_shared::clock;
use weir_shared::domain::activity::Endpoint;
use weir_shared::domain::describe::Reading;
use weir_shared::domain::map::{CREDITS, MapAnswer, MapRequest};
use weir_shared::domain::scrape_request::parse_map;
use weir_shared::domain::target::RequestContext;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::JobId;
use weir_shared::queue;
use weir_shared::store::accounts::activity::{self, Entry};
use weir_shared::store::accounts::credits;
use weir_shared::store::work::maps::{self, NewMap};
use weir_shared::store::work::{documents, pages};

use super::direct::{self, Accepted, Late, page_error, refuse_full_queue, refuse_short_funds};
use super::outage::{commit_job, read};
use crate::app::{App, AppData};
use crate::callers::auth::Caller;
use crate::callers::limits::Bucket;
use crate::callers::turns::TeamTurns;
use crate::error::{ApiError, ApiResult, Shape};
use crate::http::extract::{self, Parser};
use crate::openapi::{self, Group, Operation};

/// How long a map without a `timeout` is waited for: longer than a worker takes for one.
const PATIENCE: Duration = Duration::from_secs(280);
/// How long the answer of a team that keeps nothing stays: until it is read.
const ZERO_RETENTION_MS: i64 = 600_000;
const LATE: Late = Late {
    queued: (
        ErrorCode::MapTimeout,
        "The map timed out while it waited for a free slot of the team's concurrency. Raise timeout, or leave it out.",
    ),
    working: (ErrorCode::MapTimeout, "The map timed out. Raise timeout, or leave it out."),
};

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "The addresses of a site, from its sitemaps, its page, some further pages and what the team has scraped. A \
        name that does not exist is answered with status 200 and `success: false`.";
    let read = |body: &Value| parse_map(body, RequestContext::ANYWHERE).map(Reading::of);
    Operation::new(Group::Map, "map", "List a site's addresses", text)
        .body(
            "MapRequest",
            read,
            vec![
                ("A site", json!({"url": "https://example.com"})),
                (
                    "Its documentation first",
                    json!({"url": "https://example.com", "search": "documentation", "limit": 100}),
                ),
            ],
        )
        .answer_with(
            200,
            "The addresses, or that the name does not exist.",
            "application/json",
            openapi::either::<MapAnswer<'_>, Shape<'_>>,
        )
        .example(json!({
            "success": true, "id": "0197f2a0-3c5e-7cc1-b1a5-0e7d1c2b3a4f",
            "links": [{"url": "https://example.com/docs", "title": "Documentation"}],
        }))
        .errors(&[402, 403, 408])
}

/// Handles the request.
///
/// # Errors
/// Every row of wire 2.1 that names maps, `MAP_TIMEOUT` and `MAP_FAILED`, and the scrape codes of 2.3 for an address
/// that has no name or may not be reached.
pub async fn handle(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    let body = String::from(Box::<str>::from(run(&app, &request, payload, parse_map).await?));
    Ok(HttpResponse::Ok().insert_header(ContentType::json()).body(body))
}

/// Makes the map that a body asks for, whichever version of the API it is of: a [`MapAnswer`] as the worker wrote it.
pub(super) async fn run(
    app: &AppData,
    request: &HttpRequest,
    payload: Payload,
    parser: Parser<MapRequest>,
) -> ApiResult<Box<RawValue>> {
    let (mut accepted, timeout) = begin(app, request, payload, parser, Endpoint::Map).await?;
    direct::awaited(app, accepted.job, direct::wait(app, &mut accepted, timeout, &LATE)).await?;
    read(|| async { answer(app, &accepted).await }).await
}

/// Begins the map that a body asks for, as a call of `endpoint`. Returns how long it is waited for.
pub(super) async fn begin(
    app: &App,
    request: &HttpRequest,
    payload: Payload,
    parser: Parser<MapRequest>,
    endpoint: Endpoint,
) -> ApiResult<(Accepted, Duration)> {
    let caller = app.authorize(request, Bucket::Map).await?;
    let read = |body: &Value| app.parse(|context| parser(body, context));
    let (mut map, _room) = extract::json(app, &caller, request, payload, read).await?;
    app.check_target(&map.url)?;
    map.options.zero_retention = caller.team.zero_data_retention;
    let accepted = accept(app, &caller, &map, endpoint).await?;
    Ok((accepted, map.options.timeout.map_or(PATIENCE, Duration::from_millis)))
}

/// Writes job, page and wake-up in one transaction.
async fn accept(app: &App, caller: &Caller, map: &MapRequest, endpoint: Endpoint) -> ApiResult<Accepted> {
    let (at, now) = (clock::instant(), app.db.now());
    let job = JobId::new();
    let keep_ms =
        if map.options.zero_retention { ZERO_RETENTION_MS } else { app.settings.result_ttl.as_millis() as i64 };
    // Nothing is promised yet: the commit that ends the page makes this one durable with it.
    let mut tx = app.db.begin_relaxed().await?;
    let funds = credits::check_funds(&mut tx, caller.team_id(), CREDITS, app.settings.limits.metered).await?;
    refuse_short_funds(funds, CREDITS)?;
    refuse_full_queue(app, &mut tx, caller, 1).await?;
    let row = NewMap {
        id: job,
        team: caller.team_id(),
        key: caller.key,
        url: &map.url,
        options: &map.options,
        origin: map.origin.as_deref(),
        created_at: now,
        expires_at: now.plus_ms(keep_ms),
    };
    let page = maps::insert(&mut tx, &row).await?;
    let target = (!map.options.zero_retention).then(|| map.url.clone());
    let entry = Entry { id: job.0, endpoint, version: map.version, target, created_at: now };
    activity::record(&mut tx, caller.team_id(), &entry).await?;
    let turns = app.turns.of(&caller.team_id(), TeamTurns::default);
    let not_before = turns.next();
    let turn = queue::page_wakeup(&mut tx, caller.team_id(), page, not_before).await?;
    let end = app.wake.expect(page);
    commit_job(app, tx, job).await?;
    turns.took(not_before, turn);
    Ok(Accepted { job, page, end, at, turns })
}

async fn answer(app: &App, accepted: &Accepted) -> ApiResult<Box<RawValue>> {
    if let Some(document) = documents::by_page(&app.db, &app.blobs, accepted.page).await? {
        return Ok(document.json);
    }
    let page = pages::load(&app.db, accepted.page).await?.ok_or_else(ApiError::job_not_found)?;
    Err(page_error(&page, "The map"))
}
