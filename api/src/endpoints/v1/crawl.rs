//! `POST /v1/crawl` (wire 26): accept a crawl.

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use serde_json::{Value, json};
use weir_shared::domain::describe::Reading;
use weir_shared::domain::scrape_request::parse_v1_crawl;
use weir_shared::domain::target::RequestContext;

use crate::app::AppData;
use crate::endpoints::crawl::start::{Body, run};
use crate::endpoints::jobs::idempotency;
use crate::error::ApiResult;
use crate::openapi::{Group, Operation};

/// What the API's document says of it.
pub fn doc() -> Operation {
    let read = |body: &Value| parse_v1_crawl(body, RequestContext::ANYWHERE).map(Reading::of);
    let text = "As in version 2, without `prompt`. `scrapeOptions` are those of a scrape of version 1.";
    Operation::new(Group::V1, "startCrawlV1", "Start a crawl", text)
        .header("x-idempotency-key", json!({"type": "string", "format": "uuid"}), idempotency::TEXT)
        .body(
            "CrawlRequestV1",
            read,
            vec![
                ("A site", json!({"url": "https://example.com"})),
                (
                    "Its upper pages",
                    json!({"url": "https://example.com", "maxDepth": 2, "limit": 50, "ignoreSitemap": true,
                        "scrapeOptions": {"formats": ["markdown"]}}),
                ),
            ],
        )
        .answer::<Body>("The crawl is accepted.")
        .example(json!({
            "success": true, "id": "0197f2a0-3c5e-7cc1-b1a5-0e7d1c2b3a4f",
            "url": "http://127.0.0.1:3002/v1/crawl/0197f2a0-3c5e-7cc1-b1a5-0e7d1c2b3a4f",
        }))
        .errors(&[402, 403, 409])
}

/// Handles the request.
///
/// # Errors
/// Those of a crawl of version 2.
pub async fn handle(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    run(&app, &request, payload, parse_v1_crawl).await
}
