//! `DELETE /v2/monitor/{id}` (wire 24): ends the check that runs, too.

use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use weir_shared::ids::MonitorId;
use weir_shared::store::monitors;

use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::endpoints::outage::commit;
use crate::error::ApiResult;
use crate::http::extract;
use crate::openapi::{Group, Operation};

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MonitorDeleted")]
struct Body {
    success: bool,
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "Ends a monitor and the check that runs. Its checks and what they found are gone, too.";
    Operation::new(Group::Monitor, "deleteMonitor", "Delete a monitor", text)
        .answer::<Body>("It is deleted.")
        .errors(&[400, 404])
}

/// Handles the request.
///
/// # Errors
/// 404 for a monitor that the team does not have.
pub async fn handle(app: AppData, request: HttpRequest, id: Path<String>) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let id: MonitorId = extract::path_id(&id)?;
    let mut tx = app.db.begin().await?;
    if !monitors::delete(&mut tx, caller.team_id(), id, app.db.now()).await? {
        return Err(super::not_found());
    }
    commit(&app, tx, || async { Ok(monitors::load(&app.db, caller.team_id(), id).await?.is_none()) }).await?;
    Ok(HttpResponse::Ok().json(Body { success: true }))
}
