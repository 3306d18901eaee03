//! `POST /v2/crawl/params-preview` (spec 4.10, wire 5.2): a sentence as the options of a crawl, without starting one.

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use weir_shared::crawl_prompt;
use weir_shared::domain::describe::Reading;
use weir_shared::domain::scrape_request::parse_preview;
use weir_shared::domain::target::{RequestContext, fetch_url};
use weir_shared::error_code::ErrorCode;
use weir_shared::llm::TokenMeter;
use weir_shared::store::accounts::model_usage;

use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::error::{ApiError, ApiResult};
use crate::http::extract;
use crate::openapi::{Group, Operation};

#[derive(Serialize, JsonSchema)]
struct Body {
    success: bool,
    data: Map<String, Value>,
    /// What was not understood.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "Turns a sentence into the options of a crawl, without starting one. It costs nothing.";
    let read = |body: &Value| parse_preview(body, RequestContext::ANYWHERE).map(Reading::of);
    let example = json!({"url": "https://example.com", "prompt": "Only the blog, at most 20 pages"});
    Operation::new(Group::Crawl, "previewCrawl", "Preview a crawl's options", text)
        .body("PreviewRequest", read, vec![("A blog", example)])
        .answer::<Body>("The options.")
        .example(json!({"success": true, "data": {"url": "https://example.com", "includePaths": ["^/blog(/.*)?$"], "limit": 20}}))
        .errors(&[403])
}

/// Handles the request. It costs nothing.
///
/// # Errors
/// The rows of wire 2.1 that name params-preview.
pub async fn handle(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Map).await?;
    let read = |body: &Value| app.parse(|context| parse_preview(body, context));
    let (preview, _room) = extract::json(&app, &caller, &request, payload, read).await?;
    app.check_target(&preview.url)?;
    let url = fetch_url(&preview.url).map_err(|e| ApiError::new(ErrorCode::BadRequest, e.to_string()))?;
    let meter = TokenMeter::default();
    let model = app.asker(caller.team_id());
    let read = crawl_prompt::read(model.as_ref(), &url, &preview.prompt, &meter).await;
    model_usage::record(&app.db, caller.team_id(), caller.key, meter.read()).await;
    let read = read.map_err(|e| ApiError::new(ErrorCode::Invalid, e.to_string()))?;
    let mut data = Map::new();
    data.insert("url".to_owned(), Value::String(preview.url));
    data.extend(read.options);
    let warnings: Vec<String> = read.warning.into_iter().chain(whole_delay(&mut data)).collect();
    let warning = (!warnings.is_empty()).then(|| warnings.join(" "));
    Ok(HttpResponse::Ok().json(Body { success: true, data, warning }))
}

/// The official Python client takes whole seconds only (wire 1.7b). Returns a sentence when the delay was changed.
fn whole_delay(data: &mut Map<String, Value>) -> Option<String> {
    let delay = data.get("delay")?.as_f64()?;
    let whole = delay.ceil() as i64;
    data.insert("delay".to_owned(), Value::from(whole));
    (delay.fract() > 0.0).then(|| format!("A delay of {delay} s is given as {whole}, in whole seconds."))
}
