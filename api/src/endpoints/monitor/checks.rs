//! `GET /v2/monitor/{id}/checks` (wire 24): a monitor's checks, newest first.

use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use serde_json::json;
use weir_shared::domain::monitor::CheckStatus;
use weir_shared::store::StoreResult;
use weir_shared::store::monitors::checks;

use super::wire::{Body, Check};
use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::error::ApiResult;
use crate::http::extract;
use crate::openapi::{Group, Operation};

fn statuses() -> Vec<&'static str> {
    CheckStatus::ALL.iter().map(|status| status.as_str()).collect()
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "The checks of a monitor with their counts, newest first, as long as they are kept.";
    let operation = Operation::new(Group::Monitor, "listMonitorChecks", "List checks", text);
    super::doc_listing(operation, "offset")
        .query("status", json!({"type": "string", "enum": statuses()}), "Only checks of this state.")
        .answer::<Body<Vec<Check>>>("The checks.")
        .errors(&[404])
}

/// Handles the request.
///
/// # Errors
/// 404 for a monitor that the team does not have, 400 for parameters that are wrong.
pub async fn handle(app: AppData, request: HttpRequest, id: Path<String>) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let monitor = super::owned(&app, &caller, extract::path_id(&id)?).await?;
    let listing = super::listing(request.query_string(), "offset", &statuses())?;
    let status = listing.status.and_then(|word| word.parse().ok());
    let rows = checks::list(&app.db, monitor.id, status, listing.limit, listing.skip).await?;
    let data = rows.iter().map(Check::of).collect::<StoreResult<Vec<_>>>()?;
    Ok(HttpResponse::Ok().json(Body::new(data)))
}
