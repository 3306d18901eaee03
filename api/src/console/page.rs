//! `/console/api/jobs/{id}/pages/{page}`: one page with its attempts and its document, and its hostile parts by addresses
//! of their own, where nothing of them runs.

use actix_web::http::header;
use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use base64::Engine as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use weir_shared::blocking;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{JobId, PageId};
use weir_shared::store::StoreError;
use weir_shared::store::console::history;
use weir_shared::store::work::documents;
use weir_shared::store::work::page::replay::Replay;
use weir_shared::store::work::pages::{self, PageRow};

use super::body;
use super::job::{any_object, iso, load};
use super::jobs::{Done, of_teams, replay_page};
use super::session::enter;
use super::wire::Page;
use crate::app::{App, AppData};
use crate::error::{ApiError, ApiResult};
use crate::http::extract::path_id;
use crate::openapi::{Group, Operation};

/// A document up to here is shown as it is, bytes of JSON.
const WHOLE: usize = 4 << 20;
/// Of larger ones each text is cut to this many bytes.
const CUT: usize = 256 << 10;

/// What the HTML of a page may do where it is shown: nothing. It has an origin of its own, loads nothing and runs nothing.
const HTML_POLICY: &str = "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; font-src data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsolePageDetail")]
struct Detail {
    #[serde(flatten)]
    page: Page,
    attempts: Vec<Attempt>,
    /// What the attempt that gave the document did.
    steps: Vec<Step>,
    /// As the public API gives it.
    #[schemars(schema_with = "document_schema")]
    document: Option<Map<String, Value>>,
    /// Why there is none although the page is done.
    document_error: Option<String>,
    document_bytes: Option<usize>,
    /// Fields whose texts were cut.
    cut: Vec<String>,
}

fn document_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mut schema = any_object(generator);
    schema.insert("type".to_owned(), json!(["object", "null"]));
    schema
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsoleAttempt")]
struct Attempt {
    number: i64,
    worker: Option<String>,
    #[schemars(extend("format" = "date-time"))]
    started_at: Option<String>,
    #[schemars(extend("format" = "date-time"))]
    ended_at: String,
    code: Option<String>,
    error: String,
}

/// Milliseconds from the attempt's beginning.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsoleStep")]
struct Step {
    /// fetch, render or extract.
    name: String,
    began_ms: u64,
    took_ms: u64,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConsoleHistory")]
struct History {
    history: Vec<Change>,
    /// False: there are more scrapes of the site than were looked through.
    whole: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsoleChange")]
struct Change {
    #[schemars(extend("format" = "date-time"))]
    at: Option<String>,
    page_id: PageId,
    job_id: JobId,
    /// `changeTracking` of its document; null where it was not asked for.
    #[schemars(schema_with = "document_schema")]
    change_tracking: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct HtmlQuery {
    raw: Option<String>,
}

/// `GET /console/api/jobs/{id}/pages/{page}` in the API's document.
pub fn doc() -> Operation {
    let text = "The page with its failed tries and its document. Texts of documents over 4 MB are cut.";
    of_teams(Operation::new(Group::Console, "consoleGetPage", "A page", text)).answer::<Detail>("The page.")
}

/// `GET /console/api/jobs/{id}/pages/{page}/html` in the API's document.
pub fn doc_html() -> Operation {
    let text = "The page's HTML for a frame: nothing of it runs, and nothing is loaded.";
    of_teams(Operation::new(Group::Console, "consoleGetPageHtml", "HTML of a page", text))
        .query("raw", json!({"type": "string"}), "1: as the site sent it.")
        .text_answer("The HTML.", "text/html; charset=utf-8")
}

/// `GET /console/api/jobs/{id}/pages/{page}/screenshot` in the API's document.
pub fn doc_screenshot() -> Operation {
    of_teams(Operation::new(Group::Console, "consoleGetScreenshot", "Screenshot of a page", "The picture."))
        .bare_answer(200, "The picture: PNG or JPEG.")
}

/// `GET /console/api/jobs/{id}/pages/{page}/history` in the API's document.
pub fn doc_history() -> Operation {
    let text = "Scrapes and batches of the same address by the same team that are still kept, newest first.";
    of_teams(Operation::new(Group::Console, "consoleGetHistory", "History of a page", text))
        .answer::<History>("The scrapes.")
}

/// `POST /console/api/jobs/{id}/pages/{page}/replay` in the API's document.
pub fn doc_replay() -> Operation {
    let text = "Puts this page back into the queue, if it has failed; other pages of its job stay as they are.";
    of_teams(Operation::new(Group::Console, "consoleReplayPage", "Replay a page", text))
        .answer::<Done>("Whether it was put back.")
}

async fn load_page(app: &App, request: &HttpRequest, path: &(String, String)) -> ApiResult<PageRow> {
    let viewer = enter(app, request).await?;
    let job = load(app, &viewer, path_id(&path.0)?).await?;
    let id: PageId = path_id(&path.1)?;
    let page = pages::load(&app.db, id).await?.filter(|page| page.job_id == job.id && page.idx >= 0);
    page.ok_or_else(|| ApiError::new(ErrorCode::NotFound, "Page not found"))
}

async fn document(app: &App, request: &HttpRequest, page: &PageRow) -> ApiResult<Option<(Map<String, Value>, usize)>> {
    let Some(packed) = documents::packed(&app.db, page.id).await? else { return Ok(None) };
    let (stored, room) = app.unpack(page.team_id, packed).await?;
    room.keep_for_answer(request);
    let bytes = stored.json.get().len();
    let read = move || serde_json::from_str(stored.json.get());
    let document = blocking::run(read).await.map_err(|error| ApiError::internal(&error))?;
    document.map(|document| Some((document, bytes))).map_err(|error| ApiError::internal(&error))
}

/// `GET /console/api/jobs/{id}/pages/{page}`.
///
/// # Errors
/// Those of [`enter`], 404.
pub async fn show(app: AppData, request: HttpRequest, path: Path<(String, String)>) -> ApiResult<HttpResponse> {
    body::no_query(&request)?;
    let page = load_page(&app, &request, &path).await?;
    let attempts = pages::attempts_of(&app.db, page.id).await?;
    let steps = documents::steps(&app.db, page.id).await?;
    let (found, document_error) = match document(&app, &request, &page).await {
        // It is lost: what is known of the page is shown all the same.
        Err(error) if error.code() == ErrorCode::NotFound => (None, Some(error.to_string())),
        found => (found?, None),
    };
    let (mut document, bytes) = found.map_or((None, None), |(document, bytes)| (Some(document), Some(bytes)));
    let cut = match (&mut document, bytes) {
        (Some(document), Some(bytes)) if bytes > WHOLE => cut_texts(document),
        _ => Vec::new(),
    };
    let attempt = |row: pages::AttemptRow| Attempt {
        number: row.epoch,
        worker: row.worker,
        started_at: iso(row.started_at),
        ended_at: row.ended_at.to_iso(),
        code: row.code,
        error: row.error,
    };
    let detail = Detail {
        page: page.into(),
        attempts: attempts.into_iter().map(attempt).collect(),
        steps: steps.as_deref().map(read_steps).unwrap_or_default(),
        document,
        document_error,
        document_bytes: bytes,
        cut,
    };
    Ok(HttpResponse::Ok().json(detail))
}

/// What is stored of them; none where it was written otherwise.
fn read_steps(text: &str) -> Vec<Step> {
    let steps: Vec<(String, u64, u64)> = serde_json::from_str(text).unwrap_or_default();
    steps.into_iter().map(|(name, began_ms, took_ms)| Step { name, began_ms, took_ms }).collect()
}

/// Cuts what is long of a document; returns the fields.
fn cut_texts(document: &mut Map<String, Value>) -> Vec<String> {
    let mut cut = Vec::new();
    for (name, value) in document.iter_mut() {
        match value {
            Value::String(text) if text.len() > CUT => {
                // A picture that was cut shows nothing: it has an address of its own.
                text.truncate(if name == "screenshot" { 0 } else { text.floor_char_boundary(CUT) });
                cut.push(name.clone());
            }
            Value::String(_) => {}
            other if other.to_string().len() > CUT => {
                *other = Value::Null;
                cut.push(name.clone());
            }
            _ => {}
        }
    }
    cut
}

/// `GET /console/api/jobs/{id}/pages/{page}/html`.
///
/// # Errors
/// Those of [`enter`], 404 when the format was not asked for.
pub async fn html(app: AppData, request: HttpRequest, path: Path<(String, String)>) -> ApiResult<HttpResponse> {
    let query: HtmlQuery = body::query(&request)?;
    let field = if query.raw.as_deref() == Some("1") { "rawHtml" } else { "html" };
    let page = load_page(&app, &request, &path).await?;
    let found = document(&app, &request, &page).await?.and_then(|(mut document, _)| document.remove(field));
    let Some(Value::String(text)) = found else {
        return Err(ApiError::new(ErrorCode::NotFound, format!("The page was not asked for the format {field}")));
    };
    Ok(HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((header::CONTENT_SECURITY_POLICY, HTML_POLICY))
        .insert_header((header::X_FRAME_OPTIONS, "SAMEORIGIN"))
        .body(text))
}

/// `GET /console/api/jobs/{id}/pages/{page}/screenshot`.
///
/// # Errors
/// Those of [`enter`], 404 when there is none.
pub async fn screenshot(app: AppData, request: HttpRequest, path: Path<(String, String)>) -> ApiResult<HttpResponse> {
    body::no_query(&request)?;
    let page = load_page(&app, &request, &path).await?;
    let found = document(&app, &request, &page).await?.and_then(|(mut document, _)| document.remove("screenshot"));
    let picture = found.as_ref().and_then(Value::as_str).and_then(picture);
    let (kind, bytes) = picture.ok_or_else(|| ApiError::new(ErrorCode::NotFound, "The page has no screenshot"))?;
    Ok(HttpResponse::Ok().content_type(kind).body(bytes))
}

/// The picture in a data URI of the kinds that browsers make.
fn picture(uri: &str) -> Option<(&'static str, Vec<u8>)> {
    let rest = uri.strip_prefix("data:")?;
    let (kind, text) = rest.split_once(";base64,")?;
    let kind = ["image/png", "image/jpeg"].into_iter().find(|known| *known == kind)?;
    Some((kind, base64::engine::general_purpose::STANDARD.decode(text).ok()?))
}

/// `POST /console/api/jobs/{id}/pages/{page}/replay`.
///
/// # Errors
/// Those of [`enter`], 404.
pub async fn replay(app: AppData, request: HttpRequest, path: Path<(String, String)>) -> ApiResult<HttpResponse> {
    body::no_query(&request)?;
    let page = load_page(&app, &request, &path).await?;
    let done = usize::from(replay_page(&app, page.id).await? == Replay::Queued);
    Ok(HttpResponse::Ok().json(Done { done, skipped: 1 - done, pages: done, next: None }))
}

/// `GET /console/api/jobs/{id}/pages/{page}/history`.
///
/// # Errors
/// Those of [`enter`], 404.
pub async fn history(app: AppData, request: HttpRequest, path: Path<(String, String)>) -> ApiResult<HttpResponse> {
    body::no_query(&request)?;
    let page = load_page(&app, &request, &path).await?;
    let work = app.clone();
    let (history, whole) = app
        .beside_database(async move {
            let (rows, whole) = history::of_address(&work.db, &page, work.db.now()).await?;
            let mut history = Vec::new();
            for row in rows {
                let document = match documents::by_page(&work.db, &work.blobs, row.id).await {
                    Err(StoreError::Lost(_)) => None,
                    other => other?,
                };
                #[derive(Deserialize)]
                #[serde(rename_all = "camelCase")]
                struct Tracked {
                    change_tracking: Option<Value>,
                }
                let tracked = document.and_then(|found| serde_json::from_str::<Tracked>(found.json.get()).ok());
                let change_tracking = tracked.and_then(|tracked| tracked.change_tracking);
                history.push(Change { at: iso(row.finished_at), page_id: row.id, job_id: row.job_id, change_tracking });
            }
            Ok((history, whole))
        })
        .await?;
    Ok(HttpResponse::Ok().json(History { history, whole }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_at_a_character_and_named() {
        let mut document = Map::new();
        document.insert("markdown".to_owned(), "é".repeat(CUT).into());
        document.insert("screenshot".to_owned(), format!("data:{}", "x".repeat(CUT)).into());
        document.insert("links".to_owned(), json!(["y".repeat(CUT)]));
        document.insert("metadata".to_owned(), json!({"title": "t"}));
        assert_eq!(cut_texts(&mut document), ["markdown", "screenshot", "links"]);
        assert!(document["markdown"].as_str().is_some_and(|text| text.len() <= CUT));
        assert_eq!((&document["screenshot"], &document["links"]), (&json!(""), &Value::Null));
        assert_eq!(document["metadata"]["title"], "t");
    }

    #[test]
    fn only_pictures_that_browsers_make_are_pictures() {
        assert_eq!(picture("data:image/png;base64,AAAA"), Some(("image/png", vec![0, 0, 0])));
        for wrong in
            ["data:image/svg+xml;base64,AAAA", "data:text/html;base64,AAAA", "https://x/y.png", "data:image/png,AA"]
        {
            assert_eq!(picture(wrong), None, "{wrong}");
        }
    }
}
