//! `GET /v2/monitor` (wire 24): the team's monitors, newest first.

use actix_web::{HttpRequest, HttpResponse};
use weir_shared::store::StoreResult;
use weir_shared::store::monitors;

use super::wire::{Body, Monitor};
use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::error::ApiResult;
use crate::openapi::{Group, Operation};

/// What the API's document says of it.
pub fn doc() -> Operation {
    let operation =
        Operation::new(Group::Monitor, "listMonitors", "List monitors", "The team's monitors, newest first.");
    super::doc_listing(operation, "offset").answer::<Body<Vec<Monitor>>>("The monitors.")
}

/// Handles the request.
///
/// # Errors
/// 400 for parameters out of range.
pub async fn handle(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let listing = super::listing(request.query_string(), "offset", &[])?;
    let rows = monitors::list(&app.db, caller.team_id(), listing.limit, listing.skip).await?;
    let data = rows.iter().map(Monitor::of).collect::<StoreResult<Vec<_>>>()?;
    Ok(HttpResponse::Ok().json(Body::new(data)))
}
