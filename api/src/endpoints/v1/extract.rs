//! `POST /v1/extract` (wire 26): accept an extraction. Its status is that of version 2.

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use serde_json::Value;
use weir_shared::domain::describe::Reading;
use weir_shared::domain::scrape_request::parse_v1_extract;
use weir_shared::domain::target::RequestContext;

use crate::app::AppData;
use crate::endpoints::extract::start::{Body, examples, run};
use crate::error::ApiResult;
use crate::openapi::{Group, Operation};

/// What the API's document says of it.
pub fn doc() -> Operation {
    let read = |body: &Value| parse_v1_extract(body, RequestContext::ANYWHERE).map(Reading::of);
    let text = "As in version 2, but that invalid addresses fail the request unless `ignoreInvalidURLs` is given.";
    Operation::new(Group::V1, "startExtractV1", "Start an extraction", text)
        .body("ExtractRequestV1", read, examples())
        .answer::<Body>("It is accepted.")
        .errors(&[402, 403])
}

/// Handles the request.
///
/// # Errors
/// Those of an extraction of version 2.
pub async fn handle(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    run(&app, &request, payload, parse_v1_extract).await
}
