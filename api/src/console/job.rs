//! `/console/api/jobs/{id}`: one job, its request as it was sent, its pages and its webhooks.

use actix_web::web::{Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use weir_shared::domain::job::{JobKind, JobStatus, PageState};
use weir_shared::domain::scrape::ScrapeOptions;
use weir_shared::domain::scrape_request::wire_form;
use weir_shared::domain::target::without_user;
use weir_shared::domain::task::TaskSpec;
use weir_shared::domain::webhook::DeliveryState;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{DeliveryId, JobId, KeyId, PageId};
use weir_shared::store::accounts::keys;
use weir_shared::store::console::pages::{self as page_lists, After, START, Wanted};
use weir_shared::store::work::jobs::{self, JobRow, JobSpec};
use weir_shared::store::work::{crawls, maps, pages, tasks, webhooks};
use weir_shared::time::Timestamp;

use super::body;
use super::jobs::{cursor, job_of, limit, listed, not_empty, of_teams, word};
use super::session::{Viewer, enter};
use super::wire::{Job, Page, TeamNames};
use crate::app::{App, AppData};
use crate::error::{ApiError, ApiResult};
use crate::http::extract::path_id;
use crate::openapi::{Group, Operation};

/// Addresses of a batch that its request is shown with.
const URLS_SHOWN: i64 = 100;
/// Dead deliveries that one call puts back.
const REPLAYED: i64 = 1_000;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsoleJobDetail")]
struct Detail {
    #[serde(flatten)]
    job: Job,
    origin: Option<String>,
    /// The key that asked for it.
    key: Option<KeyName>,
    zero_retention: bool,
    max_concurrency: Option<i64>,
    /// As it was sent, defaults included; null where nothing may be kept.
    request: Option<Asked>,
    webhook: Option<Webhook>,
    crawl: Option<Crawl>,
    states: States,
    /// The page whose id was asked for; null where it was the job's own.
    page: Option<PageId>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConsoleKeyName")]
struct KeyName {
    id: KeyId,
    prefix: String,
    name: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsoleAsked")]
struct Asked {
    method: &'static str,
    path: &'static str,
    #[schemars(schema_with = "any_object")]
    body: Map<String, Value>,
    /// What was sent and is not in the body, since it is shown to nobody: values of headers (`headers.X-Token`,
    /// `scrapeOptions.headers.Cookie`, `webhook.headers.Authorization`), and names and passwords in addresses (`url`).
    hidden: Vec<String>,
    /// False: addresses of a long batch, or fields that are not kept, are left out.
    is_whole: bool,
    /// The request came with a file of this name, which is no part of the body.
    file: Option<String>,
}

/// An object of any fields.
pub(super) fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "additionalProperties": true})
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConsoleWebhook")]
struct Webhook {
    url: String,
    /// Empty: all.
    events: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConsoleCrawl")]
struct Crawl {
    start: String,
    discovered: i64,
    blocked: i64,
    limit: i64,
    warning: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConsoleStates")]
struct States {
    queued: i64,
    running: i64,
    done: i64,
    failed: i64,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConsolePages")]
struct Pages {
    pages: Vec<Page>,
    next: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConsoleDeliveries")]
struct Deliveries {
    deliveries: Vec<Delivery>,
    next: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsoleDelivery")]
struct Delivery {
    id: DeliveryId,
    event: String,
    page_id: Option<PageId>,
    /// waiting, delivered or dead.
    state: &'static str,
    attempts: i64,
    #[schemars(extend("format" = "date-time"))]
    created_at: String,
    /// While it waits.
    #[schemars(extend("format" = "date-time"))]
    next_at: Option<String>,
    last_status: Option<i64>,
    last_error: Option<String>,
    tries: Vec<Try>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsoleTry")]
struct Try {
    number: i64,
    #[schemars(extend("format" = "date-time"))]
    at: String,
    duration_ms: i64,
    status: Option<i64>,
    error: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReplayRequest {
    /// One delivery; all dead ones of the job otherwise.
    id: Option<DeliveryId>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConsoleReplayed")]
struct Replayed {
    done: usize,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PageQuery {
    status: Option<String>,
    url: Option<String>,
    cursor: Option<String>,
    limit: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ListQuery {
    cursor: Option<String>,
    limit: Option<i64>,
}

/// `GET /console/api/jobs/{id}` in the API's document.
pub fn doc() -> Operation {
    let text =
        "The job, and its request as it was sent. The id of a page, which callers know as a scrape's, finds its job.";
    of_teams(Operation::new(Group::Console, "consoleGetJob", "A job", text)).answer::<Detail>("The job.")
}

/// `GET /console/api/jobs/{id}/pages` in the API's document.
pub fn doc_pages() -> Operation {
    let text = "In the order of the request; failed ones in that of their failure, queued ones in that in which they are taken.";
    listed(Operation::new(Group::Console, "consoleListPages", "Pages of a job", text))
        .query("status", json!({"type": "string"}), "queued, running, done, failed or cancelled.")
        .query("url", json!({"type": "string"}), "Only pages with this in their address, in the order of the request.")
        .answer::<Pages>("The pages.")
}

/// `GET /console/api/jobs/{id}/webhooks` in the API's document.
pub fn doc_webhooks() -> Operation {
    listed(Operation::new(Group::Console, "consoleListDeliveries", "Webhook deliveries of a job", "With their tries."))
        .answer::<Deliveries>("The deliveries.")
}

/// `POST /console/api/jobs/{id}/webhooks/replay` in the API's document.
pub fn doc_replay() -> Operation {
    let text = "Tries a dead delivery again, or all dead ones of the job.";
    of_teams(Operation::new(Group::Console, "consoleReplayDeliveries", "Replay webhook deliveries", text))
        .typed_body::<ReplayRequest>("ConsoleReplayDeliveries", json!({"id": null}))
        .answer::<Replayed>("How many.")
}

/// The job, if the viewer may see it and it has not expired.
///
/// # Errors
/// 404.
pub(super) async fn load(app: &App, viewer: &Viewer, id: JobId) -> ApiResult<JobRow> {
    let job = jobs::load(&app.db, id).await?.ok_or_else(ApiError::job_not_found)?;
    viewer.may_see(job.team_id, "Job")?;
    if job.has_expired(app.db.now()) { Err(ApiError::job_expired()) } else { Ok(job) }
}

/// The job of this id, or the one that has the page of this id, with that page.
///
/// # Errors
/// 404.
async fn find(app: &App, viewer: &Viewer, id: &str) -> ApiResult<(JobRow, Option<PageId>)> {
    let (job, page) = job_of(app, id).await?;
    Ok((load(app, viewer, job).await?, page))
}

/// `GET /console/api/jobs/{id}`.
///
/// # Errors
/// Those of [`enter`], 404.
pub async fn show(app: AppData, request: HttpRequest, id: Path<String>) -> ApiResult<HttpResponse> {
    let viewer = enter(&app, &request).await?;
    body::no_query(&request)?;
    let (job, page) = find(&app, &viewer, &id).await?;
    let work = app.clone();
    let detail = app.beside_database(async move { detail(&work, job, page).await }).await?;
    Ok(HttpResponse::Ok().json(detail))
}

async fn detail(app: &App, job: JobRow, page: Option<PageId>) -> ApiResult<Detail> {
    let (origin, zero_retention) = jobs::origin(&app.db, job.id).await?.unwrap_or_default();
    let spec = jobs::spec(&app.db, job.id).await?.ok_or_else(ApiError::job_not_found)?;
    let key = match spec.key {
        Some(id) => keys::load(&app.db, id).await?.map(|key| KeyName { id, prefix: key.prefix, name: key.name }),
        None => None,
    };
    let crawl = match job.kind {
        JobKind::Crawl => {
            let counts = crawls::counts(&app.db, job.id).await?.unwrap_or_default();
            crawls::asked(&app.db, job.id).await?.map(|(start, _, limit)| Crawl {
                start,
                discovered: counts.discovered,
                blocked: counts.blocked,
                limit,
                warning: counts.warning,
            })
        }
        _ => None,
    };
    let request = if zero_retention { None } else { asked(app, &job, &spec).await? };
    let waiting = job.waiting();
    let states = States {
        queued: if job.status == JobStatus::Scraping { waiting.queued } else { 0 },
        running: waiting.running,
        done: job.completed,
        failed: job.failed,
    };
    let names = TeamNames::load(app).await?;
    Ok(Detail {
        origin,
        key,
        zero_retention,
        max_concurrency: job.max_concurrency,
        request,
        webhook: job.webhook.as_ref().map(|hook| Webhook { url: without_user(&hook.url), events: hook.events.clone() }),
        crawl,
        states,
        page,
        job: Job::new(&job, &names, app.db.now()),
    })
}

impl Asked {
    fn new(path: &'static str, body: Map<String, Value>, hidden: Vec<String>) -> Self {
        Self { method: "POST", path, body, hidden, is_whole: true, file: None }
    }
}

/// The request that makes such a job.
async fn asked(app: &App, job: &JobRow, spec: &JobSpec) -> ApiResult<Option<Asked>> {
    let file = spec.options.upload.as_ref().map(|upload| upload.name.clone());
    let mut options = fields(wire_form(&spec.options));
    options.remove("upload");
    let asked = match job.kind {
        JobKind::Scrape => Some(asked_scrape(app, job, options, file).await?),
        JobKind::Batch => Some(asked_batch(app, job, options).await?),
        JobKind::Crawl => asked_crawl(app, job, spec, options).await?,
        JobKind::Map => asked_map(app, job).await?,
        JobKind::Search => Some(asked_search(job, options)),
        JobKind::Extract | JobKind::Agent => asked_task(app, job, options).await?,
    };
    let Some(mut asked) = asked else { return Ok(None) };
    if let Some(hook) = &job.webhook {
        let mut hook = fields(serde_json::to_value(hook).unwrap_or_default());
        asked.hidden.extend(without_headers(&mut hook, "webhook."));
        asked.hidden.extend(without_users(&mut hook, "webhook."));
        // It says how deliveries are written, and comes from the route.
        hook.remove("version");
        asked.body.insert("webhook".to_owned(), hook.into());
    }
    asked.body.retain(|_, value| !value.is_null());
    Ok(Some(asked))
}

/// Whether the page of a job of one page was asked for with a name or a password in its address: they are not shown.
async fn hidden_user(app: &App, job: &JobRow) -> ApiResult<Option<String>> {
    let page = pages::list(&app.db, job.id, None, 1).await?;
    Ok(page.first().filter(|page| page.has_user).map(|_| "url".to_owned()))
}

async fn asked_scrape(
    app: &App,
    job: &JobRow,
    mut options: Map<String, Value>,
    file: Option<String>,
) -> ApiResult<Asked> {
    let mut hidden = without_headers(&mut options, "");
    hidden.extend(hidden_user(app, job).await?);
    let mut body = Map::new();
    if file.is_none() {
        body.insert("url".to_owned(), job.target.clone().into());
    }
    body.extend(options);
    let path = if file.is_some() { "/v2/parse" } else { "/v2/scrape" };
    Ok(Asked { file, ..Asked::new(path, body, hidden) })
}

async fn asked_batch(app: &App, job: &JobRow, mut options: Map<String, Value>) -> ApiResult<Asked> {
    let mut hidden = without_headers(&mut options, "");
    let (pages, more) = page_lists::list(&app.db, job.id, job.team_id, Wanted::default(), START, URLS_SHOWN).await?;
    hidden.extend(pages.iter().find(|page| page.has_user).map(|_| "urls".to_owned()));
    let urls: Vec<Value> = pages.into_iter().map(|page| page.url.into()).collect();
    let mut body = Map::new();
    body.insert("urls".to_owned(), urls.into());
    body.extend(options);
    Ok(Asked { is_whole: more.is_none(), ..Asked::new("/v2/batch/scrape", body, hidden) })
}

async fn asked_crawl(
    app: &App,
    job: &JobRow,
    spec: &JobSpec,
    mut options: Map<String, Value>,
) -> ApiResult<Option<Asked>> {
    let Some((start, asked, _)) = crawls::asked(&app.db, job.id).await? else { return Ok(None) };
    let mut hidden = without_headers(&mut options, "scrapeOptions.");
    let login = spec.crawl.as_ref().and_then(|crawl| crawl.login.as_ref());
    hidden.extend(login.map(|_| "url".to_owned()));
    let mut body = Map::new();
    body.insert("url".to_owned(), start.into());
    body.extend(fields(serde_json::to_value(&asked).unwrap_or_default()));
    body.insert("scrapeOptions".to_owned(), options.into());
    Ok(Some(Asked::new("/v2/crawl", body, hidden)))
}

async fn asked_map(app: &App, job: &JobRow) -> ApiResult<Option<Asked>> {
    let Some(asked) = maps::options(&app.db, job.id).await? else { return Ok(None) };
    let mut body = fields(serde_json::to_value(&asked).unwrap_or_default());
    let mut hidden = without_headers(&mut body, "");
    hidden.extend(hidden_user(app, job).await?);
    for name in ["zeroRetention", "llmsTxt", "sites"] {
        body.remove(name);
    }
    // Bodies have rules about sites in a form of their own.
    let rules = ScrapeOptions { sites: asked.sites, ..ScrapeOptions::default() };
    body.extend(fields(wire_form(&rules)).remove_entry("threatProtection"));
    body.insert("url".to_owned(), job.target.clone().into());
    Ok(Some(Asked::new("/v2/map", body, hidden)))
}

/// Where it looked, and for how much, is not kept with the pages of its hits.
fn asked_search(job: &JobRow, mut options: Map<String, Value>) -> Asked {
    let hidden = without_headers(&mut options, "scrapeOptions.");
    let mut body = Map::new();
    if !job.target.is_empty() {
        body.insert("query".to_owned(), job.target.clone().into());
    }
    body.insert("scrapeOptions".to_owned(), options.into());
    Asked { is_whole: false, ..Asked::new("/v2/search", body, hidden) }
}

async fn asked_task(app: &App, job: &JobRow, mut options: Map<String, Value>) -> ApiResult<Option<Asked>> {
    let Some(task) = tasks::load(&app.db, job.id).await? else { return Ok(None) };
    let (path, place) = if job.kind == JobKind::Agent { ("/v2/agent", "") } else { ("/v2/extract", "scrapeOptions.") };
    let mut hidden = without_headers(&mut options, place);
    let mut body = task_body(&task.spec, options);
    hidden.extend(without_users(&mut body, ""));
    Ok(Some(Asked::new(path, body, hidden)))
}

/// The body of a task: its fields by the names that bodies have for them.
fn task_body(spec: &TaskSpec, mut options: Map<String, Value>) -> Map<String, Value> {
    let mut body = fields(serde_json::to_value(spec).unwrap_or_default());
    // What of it is the service's own is not a body's.
    for name in ["kind", "before", "warning", "version", "learn"] {
        body.remove(name);
    }
    for (own, name) in [("webSearch", "enableWebSearch"), ("strict", "strictConstrainToURLs")] {
        if let Some(value) = body.remove(own) {
            body.insert(name.to_owned(), value);
        }
    }
    match spec {
        TaskSpec::Extract(spec) => {
            // What is read of its pages is the extraction's to say.
            options.remove("formats");
            body.insert("scrapeOptions".to_owned(), options.into());
            if spec.learn {
                body.insert("mode".to_owned(), "learn".into());
            }
        }
        TaskSpec::Agent(_) => {
            let own = ["location", "threatProtection"].into_iter().filter_map(|name| options.remove_entry(name));
            body.extend(own);
        }
    }
    body
}

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Takes the headers out, among which are keys and cookies, and says their names: a value that stood for the real one
/// would be sent to sites by whoever sends the request again.
fn without_headers(fields: &mut Map<String, Value>, place: &str) -> Vec<String> {
    let Some(Value::Object(headers)) = fields.remove("headers") else { return Vec::new() };
    headers.into_iter().map(|(name, _)| format!("{place}headers.{name}")).collect()
}

/// Takes names and passwords out of the addresses, and says of which.
fn without_users(fields: &mut Map<String, Value>, place: &str) -> Vec<String> {
    let mut hidden = Vec::new();
    for name in ["url", "urls"] {
        let given = match fields.get_mut(name) {
            Some(Value::Array(list)) => list.as_mut_slice(),
            Some(one) => std::slice::from_mut(one),
            None => &mut [],
        };
        let mut has_some = false;
        for value in given {
            if let Value::String(url) = value {
                let shown = without_user(url);
                has_some |= shown != *url;
                *url = shown;
            }
        }
        hidden.extend(has_some.then(|| format!("{place}{name}")));
    }
    hidden
}

/// Where a list of pages goes on, as text.
fn place(after: After) -> String {
    format!("{}.{}", after.at, after.idx)
}

fn read_place(text: &str) -> Option<After> {
    let (at, idx) = text.split_once('.')?;
    Some(After { at: at.parse().ok()?, idx: idx.parse().ok()? })
}

/// `GET /console/api/jobs/{id}/pages`.
///
/// # Errors
/// As [`show`], 400.
pub async fn pages(app: AppData, request: HttpRequest, id: Path<String>) -> ApiResult<HttpResponse> {
    let viewer = enter(&app, &request).await?;
    let query: PageQuery = body::query(&request)?;
    let state = word::<PageState>("status", query.status.as_deref())?;
    let wrong = || ApiError::new(ErrorCode::BadRequest, "The cursor is none of ours");
    let after = not_empty(query.cursor.as_deref()).map_or(Some(START), read_place).ok_or_else(wrong)?;
    let limit = limit(query.limit)?;
    let job = load(&app, &viewer, path_id(&id)?).await?;
    let wanted = Wanted { state, part: not_empty(query.url.as_deref()) };
    let (rows, next) = page_lists::list(&app.db, job.id, job.team_id, wanted, after, limit).await?;
    let pages = rows.into_iter().map(Page::from).collect();
    Ok(HttpResponse::Ok().json(Pages { pages, next: next.map(place) }))
}

/// `GET /console/api/jobs/{id}/webhooks`.
///
/// # Errors
/// As [`show`], 400.
pub async fn deliveries(app: AppData, request: HttpRequest, id: Path<String>) -> ApiResult<HttpResponse> {
    let viewer = enter(&app, &request).await?;
    let query: ListQuery = body::query(&request)?;
    let (after, limit) = (cursor::<DeliveryId>(query.cursor.as_deref())?, limit(query.limit)?);
    let job = load(&app, &viewer, path_id(&id)?).await?;
    let rows = webhooks::of_job(&app.db, job.id, after, None, limit).await?;
    let ids: Vec<DeliveryId> = rows.iter().map(|row| row.id).collect();
    let tries = webhooks::tries(&app.db, &ids).await?;
    let next = rows.last().filter(|_| rows.len() as i64 == limit).map(|row| row.id.to_string());
    let delivery = |row: webhooks::DeliveryRow| Delivery {
        id: row.id,
        event: row.event,
        page_id: row.page_id,
        state: row.state.as_str(),
        attempts: row.attempt,
        created_at: row.created_at.to_iso(),
        next_at: (row.state == DeliveryState::Waiting).then(|| row.next_at.to_iso()),
        last_status: row.last_status,
        last_error: row.last_error,
        tries: tries.iter().filter(|one| one.delivery_id == row.id).map(one_try).collect(),
    };
    let deliveries = rows.into_iter().map(delivery).collect();
    Ok(HttpResponse::Ok().json(Deliveries { deliveries, next }))
}

fn one_try(row: &webhooks::TryRow) -> Try {
    Try {
        number: row.attempt,
        at: row.at.to_iso(),
        duration_ms: row.duration_ms,
        status: row.status,
        error: row.error.clone(),
    }
}

/// `POST /console/api/jobs/{id}/webhooks/replay`.
///
/// # Errors
/// As [`show`].
pub async fn replay(app: AppData, request: HttpRequest, id: Path<String>, payload: Payload) -> ApiResult<HttpResponse> {
    let viewer = enter(&app, &request).await?;
    body::no_query(&request)?;
    let given: ReplayRequest = body::read(&request, payload).await?;
    let job = load(&app, &viewer, path_id(&id)?).await?;
    let dead = match given.id {
        Some(one) if webhooks::job_of(&app.db, one).await? == Some(job.id) => vec![one],
        Some(_) => return Err(ApiError::new(ErrorCode::NotFound, "Delivery not found")),
        None => {
            let rows = webhooks::of_job(&app.db, job.id, None, Some(DeliveryState::Dead), REPLAYED).await?;
            rows.into_iter().map(|row| row.id).collect()
        }
    };
    let work = app.clone();
    let replaying = async move {
        let mut done = 0;
        for id in dead {
            let mut tx = work.db.begin().await?;
            done += usize::from(webhooks::replay(&mut tx, id, work.db.now()).await?);
            tx.commit().await?;
        }
        Ok(done)
    };
    let done = app.beside_database(replaying).await?;
    Ok(HttpResponse::Ok().json(Replayed { done }))
}

/// An ISO time, where there is one.
pub(super) fn iso(at: Option<Timestamp>) -> Option<String> {
    at.map(Timestamp::to_iso)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_written() {
        for after in [START, After { at: 5, idx: 7 }] {
            assert_eq!(read_place(&place(after)), Some(after));
        }
        assert_eq!(read_place("x.1"), None);
        assert_eq!(read_place("5"), None);
    }

    #[test]
    fn of_headers_only_their_names_are_told() {
        let mut options = fields(json!({"headers": {"Authorization": "Bearer x"}, "formats": []}));
        assert_eq!(without_headers(&mut options, "webhook."), ["webhook.headers.Authorization"]);
        assert_eq!(Value::from(options), json!({"formats": []}));
        assert!(without_headers(&mut Map::new(), "").is_empty());
    }

    #[test]
    fn of_names_and_passwords_it_is_told_where_they_were() {
        let mut body =
            fields(json!({"url": "https://x.test/?a", "urls": ["https://me:hush@x.test/a", "https://x.test/b"]}));
        assert_eq!(without_users(&mut body, "webhook."), ["webhook.urls"]);
        assert_eq!(
            Value::from(body),
            json!({"url": "https://x.test/?a", "urls": ["https://x.test/a", "https://x.test/b"]})
        );
        assert!(without_users(&mut Map::new(), "").is_empty());
    }
}
