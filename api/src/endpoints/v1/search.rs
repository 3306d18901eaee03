//! `POST /v1/search` (wire 26): hits of the web in one list.

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use weir_shared::domain::describe::Reading;
use weir_shared::domain::scrape_request::parse_v1_search;
use weir_shared::ids::JobId;

use super::document;
use crate::app::AppData;
use crate::endpoints::search::answer::{self, WebHit};
use crate::endpoints::search::run;
use crate::error::ApiResult;
use crate::openapi::{Group, Operation};

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Body {
    success: bool,
    data: Vec<Hit>,
    /// What could not be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    id: JobId,
    /// With the pages that were scraped.
    credits_used: i64,
}

/// A page; one that was scraped has the fields of its document as well.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SearchHitV1")]
struct Hit {
    url: String,
    title: String,
    description: String,
    #[serde(flatten)]
    document: Map<String, Value>,
}

impl From<WebHit> for Hit {
    fn from(hit: WebHit) -> Self {
        let WebHit { url, title, description, mut document, .. } = hit;
        document::shape(&mut document);
        Self { url, title, description, document }
    }
}

impl From<answer::Body> for Body {
    fn from(body: answer::Body) -> Self {
        let answer::Body { data, warning, id, credits_used, .. } = body;
        let data = data.web.unwrap_or_default().into_iter().map(Hit::from).collect();
        Self { success: true, data, warning, id, credits_used }
    }
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "Searches the web by the search backends of this service, and scrapes the hits where `scrapeOptions` names \
        formats. A hit whose page fails stays a hit, with the reason in `metadata.error`.";
    let read = |body: &Value| parse_v1_search(body).map(Reading::of);
    Operation::new(Group::V1, "searchV1", "Search the web", text)
        .body(
            "SearchRequestV1",
            read,
            vec![
                ("Some words", json!({"query": "rust async runtimes"})),
                ("With their pages", json!({"query": "rust", "limit": 3, "scrapeOptions": {"formats": ["markdown"]}})),
            ],
        )
        .answer::<Body>("The hits.")
        .example(json!({
            "success": true, "id": "0197f2a0-3c5e-7cc1-b1a5-0e7d1c2b3a4f", "creditsUsed": 2,
            "data": [{"url": "https://tokio.rs/", "title": "Tokio", "description": "An asynchronous runtime."}],
        }))
        .errors(&[402, 403, 408])
}

/// Handles the request.
///
/// # Errors
/// Those of a search of version 2.
pub async fn handle(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    let found = run(&app, &request, payload, parse_v1_search).await?;
    Ok(HttpResponse::Ok().json(Body::from(found)))
}
