//! `GET /v2/monitor/{id}` (wire 24).

use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};

use super::wire::{Body, Monitor};
use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::error::ApiResult;
use crate::http::extract;
use crate::openapi::{Group, Operation};

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "What is watched, when it is looked at next, and what the last check came to.";
    Operation::new(Group::Monitor, "getMonitor", "Show a monitor", text)
        .answer::<Body<Monitor>>("The monitor.")
        .errors(&[400, 404])
}

/// Handles the request.
///
/// # Errors
/// 404 for a monitor that the team does not have.
pub async fn handle(app: AppData, request: HttpRequest, id: Path<String>) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let row = super::owned(&app, &caller, extract::path_id(&id)?).await?;
    Ok(HttpResponse::Ok().json(Body::new(Monitor::of(&row)?)))
}
