//! `POST /v2/search` (wire 20): hits of the installation's search backends, with their pages where those are asked for.
//!
//! ```text
//! mod          the backends are asked; what is found is billed and written down, then answered
//! pages        hits that are scraped: a job whose pages are waited for together
//! highlights   passages of the pages in the place of descriptions
//! answer       the body
//! asked        what all of them know of the search
//! ```

pub(super) mod answer;
mod asked;
mod highlights;
mod pages;

use std::time::Duration;

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use serde_json::{Value, json};
use tracing::Instrument as _;
use weir_shared::clock;
use weir_shared::domain::describe::Reading;
use weir_shared::domain::feedback::Subject;
use weir_shared::domain::price;
use weir_shared::domain::scrape::ScrapeOptions;
use weir_shared::domain::scrape_request::parse_search;
use weir_shared::domain::search::{self, SearchRequest, Source};
use weir_shared::domain::target::fetch_url;
use weir_shared::domain::validation::ValidationError;
use weir_shared::error_code::ErrorCode;
use weir_shared::guests::Urgency;
use weir_shared::ids::JobId;
use weir_shared::search::{Found, Hit, SearchError};
use weir_shared::store::accounts::{credits, feedback};
use weir_shared::store::work::searches::{self, NewSearch};
use weir_shared::traces;

use self::answer::{Body, Item};
use self::asked::Asked;
use super::direct::{awaited, refuse_full_queue, refuse_short_funds};
use super::outage::commit;
use super::retention;
use crate::app::{App, AppData};
use crate::callers::auth::Caller;
use crate::callers::limits::Bucket;
use crate::error::{ApiError, ApiResult};
use crate::http::extract;
use crate::openapi::{Group, Operation};

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "Searches the web, news or pictures by the search backends of this service, and scrapes the hits where \
        `scrapeOptions` names formats. A hit whose page fails stays a hit, with the reason in `metadata.error`.";
    let read = |body: &Value| parse_search(body).map(Reading::of);
    Operation::new(Group::Search, "search", "Search the web", text)
        .body(
            "SearchRequest",
            read,
            vec![
                ("Some words", json!({"query": "rust async runtimes"})),
                (
                    "News of the last week, with their pages",
                    json!({"query": "rust", "sources": ["news"], "tbs": "qdr:w", "limit": 3,
                        "scrapeOptions": {"formats": ["markdown"]}}),
                ),
            ],
        )
        .answer::<Body>("The hits of each source that was asked for.")
        .example(json!({
            "success": true, "id": "0197f2a0-3c5e-7cc1-b1a5-0e7d1c2b3a4f", "creditsUsed": 2,
            "data": {"web": [{"url": "https://tokio.rs/", "title": "Tokio", "description": "An asynchronous runtime.",
                "position": 1}]},
        }))
        .errors(&[402, 403, 408])
}

/// Handles the request.
///
/// # Errors
/// The rows of wire 2.1 that name searches.
pub async fn handle(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    Ok(HttpResponse::Ok().json(run(&app, &request, payload, parse_search).await?))
}

/// Makes the search that a body asks for, whichever version of the API it is of.
pub(super) async fn run(
    app: &AppData,
    request: &HttpRequest,
    payload: Payload,
    parser: fn(&Value) -> Result<SearchRequest, ValidationError>,
) -> ApiResult<Body> {
    let caller = app.authorize(request, Bucket::Search).await?;
    let (mut search, _room) = extract::json(app, &caller, request, payload, parser).await?;
    let deadline = clock::deadline(Duration::from_millis(search.timeout));
    settle_retention(&caller, &mut search)?;
    refuse_hopeless(app, &caller, &search).await?;
    let holder = (caller.team_id(), Urgency::Direct);
    let found = app.search.find(holder, &search.query, &search.sources, search.limit, deadline, app.db.now()).await;
    let found = found.map_err(refusal)?;
    let asked = Asked { id: JobId::new(), caller, search, deadline };
    awaited(app, asked.id, async {
        if asked.search.zero_retention {
            // What keeps nothing is forgotten when its pages have ended, also where the caller has left.
            let inner = app.clone();
            let work = async move { answer(&inner, &asked, found).await };
            app.runtime
                .spawn(traces::under(traces::current(), work.in_current_span()))
                .await
                .map_err(|error| ApiError::internal(&error))?
        } else {
            answer(app, &asked, found).await
        }
    })
    .await
}

/// Settles whether the search keeps nothing, its pages included.
fn settle_retention(caller: &Caller, search: &mut SearchRequest) -> ApiResult<()> {
    let mut alone = ScrapeOptions::default();
    let options = search.scrape.as_mut().unwrap_or(&mut alone);
    options.zero_retention |= search.zero_retention;
    retention::settle(caller, options)?;
    search.zero_retention = options.zero_retention;
    Ok(())
}

/// A team that cannot pay for a single hit is told so before a backend is asked.
async fn refuse_hopeless(app: &App, caller: &Caller, search: &SearchRequest) -> ApiResult<()> {
    if !app.settings.limits.metered {
        return Ok(());
    }
    let need = search::price(1, search.zero_retention);
    let mut tx = app.db.begin_relaxed().await?;
    let funds = credits::check_funds(&mut tx, caller.team_id(), need, true).await?;
    refuse_short_funds(funds, need)
}

/// Bills what was found, scrapes what is to be scraped, and puts the answer together.
async fn answer(app: &AppData, asked: &Asked, found: Found) -> ApiResult<Body> {
    let mut warnings = found.warnings;
    let mut groups: Vec<(Source, Vec<Item>)> = Vec::new();
    for (source, hits) in found.hits {
        groups.push((source, items(app, &asked.search, hits)));
    }
    let hits = groups.iter().map(|(_, items)| items.len()).sum();
    let credits = search::price(hits, asked.search.zero_retention);
    let urls = pages::addresses(app, &asked.search, &mut groups);
    write(app, asked, credits, &urls).await?;
    let mut credits_used = credits;
    if let Some(options) = asked.search.scrape.as_ref().filter(|_| !urls.is_empty()) {
        let scraped = pages::wait(app, asked, options, urls.len()).await?;
        credits_used += scraped.credits;
        warnings.extend(scraped.warning);
        for (_, items) in &mut groups {
            items.iter_mut().for_each(|item| item.take_page(&scraped.pages));
        }
    }
    if asked.search.highlights {
        highlights::write(app, asked, &mut groups).await;
    }
    Ok(Body::new(asked.id, groups, warnings, credits_used))
}

/// The hits as they are answered, without those that may not be reached where the caller does not want them.
fn items(app: &App, search: &SearchRequest, hits: Vec<Hit>) -> Vec<Item> {
    let is_allowed = |hit: &Hit| fetch_url(&hit.url).map_or(true, |url| search.sites.allows(&url));
    let is_wanted = |hit: &Hit| is_allowed(hit) && (!search.ignore_invalid_urls || app.check_target(&hit.url).is_ok());
    hits.into_iter().filter(is_wanted).map(Item::new).collect()
}

/// What makes the search and its pages the team's, in one transaction.
async fn write(app: &App, asked: &Asked, credits: i64, urls: &[String]) -> ApiResult<()> {
    let (caller, now) = (&asked.caller, app.db.now());
    let query = (!asked.search.zero_retention).then_some(asked.search.query.words.as_str());
    let mut tx = app.db.begin().await?;
    let page_price = asked.search.scrape.as_ref().map_or(0, price::most);
    let need = credits + page_price * urls.len() as i64;
    let funds = credits::check_funds(&mut tx, caller.team_id(), need, app.settings.limits.metered).await?;
    refuse_short_funds(funds, need)?;
    let (team, key) = (caller.team_id(), caller.key);
    let version = asked.search.version;
    searches::record(&mut tx, &NewSearch { id: asked.id, team, key, version, query, credits, created_at: now }).await?;
    if let Some(options) = asked.search.scrape.as_ref().filter(|_| !urls.is_empty()) {
        refuse_full_queue(app, &mut tx, caller, urls.len() as i64).await?;
        pages::insert(app, &mut tx, asked, options, query.unwrap_or_default(), urls, now).await?;
    }
    commit(app, tx, || async { feedback::knows(&app.db, team, Subject::Search, asked.id.0).await }).await
}

fn refusal(error: SearchError) -> ApiError {
    let text = error.to_string();
    match error {
        SearchError::NotConfigured => ApiError::new(ErrorCode::SearchNotConfigured, text),
        SearchError::Failed { retry_after } => {
            ApiError::new(ErrorCode::SearchBackendFailed, text).retry_after(retry_after)
        }
        SearchError::NotTaken => ApiError::new(ErrorCode::Invalid, text),
        SearchError::Timeout => ApiError::new(ErrorCode::SearchTimeout, text),
    }
}
