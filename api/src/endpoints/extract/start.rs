//! `POST /v2/extract` (wire 22): accept an extraction, answer before any page is fetched.

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use weir_shared::domain::describe::Reading;
use weir_shared::domain::job::JobKind;
use weir_shared::domain::scrape_request::{ExtractRequest, parse_extract};
use weir_shared::domain::target::RequestContext;
use weir_shared::domain::task::TaskSpec;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::JobId;
use weir_shared::search::SearchError;

use crate::app::{App, AppData};
use crate::callers::limits::Bucket;
use crate::endpoints::retention;
use crate::endpoints::tasks::{Wanted, accept, refuse_without_model};
use crate::error::{ApiError, ApiResult};
use crate::http::extract::{self, Parser};
use crate::openapi::{Group, Operation};

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ExtractStarted")]
pub(in crate::endpoints) struct Body {
    success: bool,
    id: JobId,
    /// URLs that were skipped; absent when invalid URLs fail the request.
    #[serde(rename = "invalidURLs", skip_serializing_if = "Option::is_none")]
    invalid_urls: Option<Vec<String>>,
    /// Always empty: clients of another service look for it.
    url_trace: Vec<String>,
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "Has a language model read data out of pages: of addresses, of whole sites (`https://example.com/*`), or, with \
        `enableWebSearch` or without addresses, of what a search finds. Each page is read by itself; what they say is put \
        together by the schema, and where they differ the answer's `warning` names both.";
    let read = |body: &Value| parse_extract(body, RequestContext::ANYWHERE).map(Reading::of);
    Operation::new(Group::Extract, "startExtract", "Start an extraction", text)
        .body("ExtractRequest", read, examples())
        .answer::<Body>("It is accepted.")
        .example(
            json!({"success": true, "id": "0197f2a0-3c5e-7cc1-b1a5-0e7d1c2b3a4f", "invalidURLs": [], "urlTrace": []}),
        )
        .errors(&[402, 403])
}

pub(in crate::endpoints) fn examples() -> Vec<(&'static str, Value)> {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}, "price": {"type": "number"}},
        "required": ["name"]});
    vec![
        ("By a prompt", json!({"urls": ["https://example.com"], "prompt": "Name and address of the company"})),
        ("By a schema", json!({"urls": ["https://example.com/products/*"], "schema": schema, "showSources": true})),
    ]
}

/// Handles the request.
///
/// # Errors
/// The rows of wire 2.1 that name extractions.
pub async fn handle(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    run(&app, &request, payload, parse_extract).await
}

/// Accepts the extraction that a body asks for, whichever version of the API it is of.
pub(in crate::endpoints) async fn run(
    app: &App,
    request: &HttpRequest,
    payload: Payload,
    parser: Parser<ExtractRequest>,
) -> ApiResult<HttpResponse> {
    let caller = app.authorize(request, Bucket::Crawl).await?;
    let read = |body: &Value| app.parse(|context| parser(body, context));
    let (mut wanted, _room) = extract::json(app, &caller, request, payload, read).await?;
    refuse_without_model(app, "An extraction")?;
    refuse_blocked(app, &mut wanted)?;
    if wanted.spec.web_search && app.settings.search.backends.is_empty() {
        return Err(ApiError::new(ErrorCode::SearchNotConfigured, SearchError::NotConfigured.to_string()));
    }
    retention::settle(&caller, &mut wanted.scrape)?;
    let ExtractRequest { spec, scrape, invalid_urls, webhook, origin, .. } = wanted;
    let version = spec.version;
    let spec = TaskSpec::Extract(spec);
    let task = Wanted {
        kind: JobKind::Extract,
        spec: &spec,
        scrape: &scrape,
        webhook: webhook.as_ref(),
        origin: origin.as_deref(),
        version,
        thread: None,
    };
    let id = accept(app, &caller, &task).await?;
    Ok(HttpResponse::Ok().json(Body { success: true, id, invalid_urls, url_trace: Vec::new() }))
}

/// Hosts that are plainly addresses out of bounds count as invalid URLs.
fn refuse_blocked(app: &App, wanted: &mut ExtractRequest) -> ApiResult<()> {
    let mut last = None;
    let mut blocked = Vec::new();
    wanted.spec.urls.retain(|url| match app.check_target(url.strip_suffix("/*").unwrap_or(url)) {
        Ok(()) => true,
        Err(error) => {
            blocked.push(url.clone());
            last = Some(error);
            false
        }
    });
    match (last, &mut wanted.invalid_urls) {
        (None, _) => Ok(()),
        (Some(_), Some(invalid)) if !wanted.spec.urls.is_empty() => {
            invalid.append(&mut blocked);
            Ok(())
        }
        (Some(error), _) => Err(error),
    }
}
