//! `POST /v2/crawl` (wire 5.1): accept a crawl, answer before any page is fetched.

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use weir_shared::crawl_prompt;
use weir_shared::domain::activity::Endpoint;
use weir_shared::domain::describe::Reading;
use weir_shared::domain::job::{JobKind, WebhookEvent};
use weir_shared::domain::price;
use weir_shared::domain::scrape_request::{CrawlRequest, crawl_fields, parse_crawl, with_prompt_options};
use weir_shared::domain::target::{RequestContext, fetch_url};
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::JobId;
use weir_shared::llm::TokenMeter;
use weir_shared::queue;
use weir_shared::store::Tx;
use weir_shared::store::accounts::activity::{self, Entry};
use weir_shared::store::accounts::credits::{self, Funds};
use weir_shared::store::accounts::{model_usage, team_lock};
use weir_shared::store::work::crawls::{self, NewCrawl};
use weir_shared::store::work::jobs::{self, NewJob};
use weir_shared::store::work::webhooks;
use weir_shared::texts::counted;
use weir_shared::time::Timestamp;

use crate::app::{App, AppData};
use crate::callers::auth::Caller;
use crate::callers::limits::Bucket;
use crate::endpoints::direct::{refuse_full_queue, refuse_short_funds};
use crate::endpoints::jobs::{Served, idempotency};
use crate::endpoints::outage::commit_job;
use crate::endpoints::retention;
use crate::error::{ApiError, ApiResult};
use crate::http::extract::{self, Parser};
use crate::openapi::{Group, Operation};

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::endpoints) struct Body {
    success: bool,
    id: JobId,
    url: String,
    #[serde(flatten)]
    prompt: Option<PromptBody>,
}

/// What a prompt was turned into, and what the crawl goes by.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PromptBody {
    prompt_generated_options: Map<String, Value>,
    final_crawler_options: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "Accepts a crawl and answers before any page is fetched. Pages are found by the links of pages and by \
        sitemaps, as robots.txt allows. Options of pages stand under `scrapeOptions`. A `prompt` is turned into options; \
        those that the body names win.";
    let read = |body: &Value| parse_crawl(body, RequestContext::ANYWHERE).map(Reading::of);
    Operation::new(Group::Crawl, "startCrawl", "Start a crawl", text)
        .header("x-idempotency-key", json!({"type": "string", "format": "uuid"}), idempotency::TEXT)
        .body(
            "CrawlRequest",
            read,
            vec![
                ("A site", json!({"url": "https://example.com"})),
                (
                    "A blog's newest pages",
                    json!({"url": "https://example.com", "includePaths": ["^/blog/.*"], "maxDiscoveryDepth": 2, "limit": 50,
                        "scrapeOptions": {"formats": ["markdown"], "onlyMainContent": true}}),
                ),
                ("By a prompt", json!({"url": "https://example.com", "prompt": "Only the blog, at most 20 pages"})),
            ],
        )
        .answer::<Body>("The crawl is accepted.")
        .example(json!({
            "success": true, "id": "0197f2a0-3c5e-7cc1-b1a5-0e7d1c2b3a4f",
            "url": "http://127.0.0.1:3002/v2/crawl/0197f2a0-3c5e-7cc1-b1a5-0e7d1c2b3a4f",
        }))
        .errors(&[402, 403, 409])
}

/// Handles the request.
///
/// # Errors
/// Every row of wire 2.1 that names crawls.
pub async fn handle(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    run(&app, &request, payload, parse_crawl).await
}

/// Accepts the crawl that a body asks for, whichever version of the API it is of.
pub(in crate::endpoints) async fn run(
    app: &App,
    request: &HttpRequest,
    payload: Payload,
    parser: Parser<CrawlRequest>,
) -> ApiResult<HttpResponse> {
    let caller = app.authorize(request, Bucket::Crawl).await?;
    let read = |body: &Value| {
        let crawl = app.parse(|context| parser(body, context))?;
        // A prompt's options yield to the fields that the body names.
        let named = crawl.prompt.as_ref().map(|_| crawl_fields(body)).unwrap_or_default();
        Ok((crawl, named))
    };
    let ((mut crawl, named), _room) = extract::json(app, &caller, request, payload, read).await?;
    app.check_target(&crawl.url)?;
    retention::settle(&caller, &mut crawl.scrape)?;
    let key = idempotency::key(request)?;
    let prompt = read_prompt(app, &caller, &named, &mut crawl).await?;

    let now = app.db.now();
    let mut tx = app.db.begin().await?;
    team_lock::lock(&mut tx, caller.team_id()).await?;
    refuse_full_queue(app, &mut tx, &caller, crawls::first_pages(&crawl.options)).await?;
    let limit = affordable(app, &mut tx, &caller, crawl.options.limit, price::most(&crawl.scrape)).await?;
    let id = JobId::new();
    idempotency::take(&mut tx, caller.team_id(), key, id, now).await?;
    insert(app, &mut tx, &caller, id, &crawl, limit, now).await?;
    if let Some(sentence) = prompt.as_ref().and_then(|prompt| prompt.warning.as_deref()) {
        crawls::warn(&mut tx, id, sentence).await?;
    }
    commit_job(app, tx, id).await?;

    let url = format!("{}{}", app.base_url(request), Served::new(crawl.version, JobKind::Crawl).path(id));
    Ok(HttpResponse::Ok().json(Body { success: true, id, url, prompt }))
}

/// Turns the prompt, if there is one, into options; those that the body names win (wire 5.1).
async fn read_prompt(
    app: &App,
    caller: &Caller,
    named: &Value,
    crawl: &mut CrawlRequest,
) -> ApiResult<Option<PromptBody>> {
    let Some(prompt) = &crawl.prompt else { return Ok(None) };
    let url = fetch_url(&crawl.url).map_err(|e| ApiError::new(ErrorCode::BadRequest, e.to_string()))?;
    let meter = TokenMeter::default();
    let model = app.asker(caller.team_id());
    let read = crawl_prompt::read(model.as_ref(), &url, prompt, &meter).await;
    model_usage::record(&app.db, caller.team_id(), caller.key, meter.read()).await;
    let read = read.map_err(|e| ApiError::new(ErrorCode::Invalid, e.to_string()))?;
    let merged = with_prompt_options(named, &read.options);
    crawl.options = app.parse(|context| parse_crawl(&merged, context))?.options;
    Ok(Some(PromptBody {
        prompt_generated_options: read.options,
        final_crawler_options: crawl.options.to_json(),
        warning: read.warning,
    }))
}

/// The limit, or as many pages of this price as the team can pay for; at least one must be (wire 5.1).
async fn affordable(app: &App, tx: &mut Tx, caller: &Caller, limit: i64, price: i64) -> ApiResult<i64> {
    match credits::check_funds(tx, caller.team_id(), limit.saturating_mul(price), app.settings.limits.metered).await? {
        Funds::Enough => Ok(limit),
        Funds::Short { left } if left >= price => Ok(left / price),
        short => {
            refuse_short_funds(short, price)?;
            Ok(limit)
        }
    }
}

/// Writes the job with its first pages, and the delivery that announces it.
async fn insert(
    app: &App,
    tx: &mut Tx,
    caller: &Caller,
    id: JobId,
    crawl: &CrawlRequest,
    limit: i64,
    now: Timestamp,
) -> ApiResult<()> {
    let target = retention::shown(&crawl.scrape, &crawl.url);
    let row = NewJob {
        id,
        team: caller.team_id(),
        key: caller.key,
        kind: JobKind::Crawl,
        options: &crawl.scrape,
        target: target.as_deref().unwrap_or_default(),
        origin: crawl.origin.as_deref(),
        // A delay is between one page and the next. A number above the team's limit is capped where pages are claimed.
        max_concurrency: if crawl.options.delay.is_some() { Some(1) } else { crawl.options.max_concurrency },
        webhook: crawl.webhook.as_ref(),
        total: crawls::first_pages(&crawl.options),
        created_at: now,
        expires_at: now.plus_ms(app.settings.result_ttl.as_millis() as i64),
    };
    jobs::insert(tx, &row).await?;
    let (team, options) = (caller.team_id(), &crawl.options);
    crawls::insert(tx, &NewCrawl { job: id, team, url: &crawl.url, options, limit }, now).await?;
    if limit < options.limit {
        let pages = counted(limit, "page");
        let sentence = format!("The team's credits are enough for {pages}, which is this crawl's limit.");
        crawls::warn(tx, id, &sentence).await?;
    }
    let entry =
        Entry { id: id.0, endpoint: Endpoint::Crawl, version: crawl.version, target: target.clone(), created_at: now };
    activity::record(tx, caller.team_id(), &entry).await?;
    if crawl.webhook.as_ref().is_some_and(|hook| hook.wants(WebhookEvent::Started)) {
        webhooks::queue(tx, team, id, None, WebhookEvent::Started, now).await?;
    }
    queue::team_wakeups(tx, team, 2).await?;
    Ok(())
}
