//! `POST /v1/batch/scrape` (wire 26): accept a batch.

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use serde_json::{Value, json};
use weir_shared::domain::describe::Reading;
use weir_shared::domain::scrape_request::{BatchRequest, parse_v1_batch};
use weir_shared::domain::target::RequestContext;

use crate::app::AppData;
use crate::endpoints::batch_scrape::start::{Body, run};
use crate::endpoints::jobs::idempotency;
use crate::error::ApiResult;
use crate::openapi::{Group, Operation};

/// What the API's document says of it.
pub fn doc() -> Operation {
    let read = |body: &Value| {
        let request = parse_v1_batch(body, RequestContext::ANYWHERE)?;
        Ok(Reading::of(BatchRequest { has_options: false, ..request }))
    };
    let text = "As in version 2. Options of pages are those of a scrape of version 1, and an invalid address fails the \
        request unless `ignoreInvalidURLs` says otherwise.";
    Operation::new(Group::V1, "startBatchScrapeV1", "Start a batch", text)
        .header("x-idempotency-key", json!({"type": "string", "format": "uuid"}), idempotency::TEXT)
        .body(
            "BatchRequestV1",
            read,
            vec![("Two pages", json!({"urls": ["https://example.com", "https://example.org"]}))],
        )
        .answer::<Body>("The batch is accepted.")
        .example(json!({
            "success": true, "id": "0197f2a0-3c5e-7cc1-b1a5-0e7d1c2b3a4f",
            "url": "http://127.0.0.1:3002/v1/batch/scrape/0197f2a0-3c5e-7cc1-b1a5-0e7d1c2b3a4f",
        }))
        .errors(&[402, 403, 404, 409])
}

/// Handles the request.
///
/// # Errors
/// Those of a batch of version 2.
pub async fn handle(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    run(&app, &request, payload, parse_v1_batch).await
}
