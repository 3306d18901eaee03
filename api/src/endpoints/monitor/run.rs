//! `POST /v2/monitor/{id}/run` (wire 24): a check now. Some clients send `origin`, some no body at all.

use actix_web::web::{Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use weir_shared::domain::describe::Reading;
use weir_shared::domain::validation::{Fields, Issues, ValidationError};
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{CheckId, MonitorId};
use weir_shared::store::monitors::{self, checks};

use super::wire::Check;
use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::endpoints::outage::{commit, read};
use crate::error::{ApiError, ApiResult};
use crate::http::extract;
use crate::openapi::{Group, Operation};

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MonitorRun")]
struct Body {
    success: bool,
    id: CheckId,
    data: Check,
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "Looks at once, beside the schedule; a paused monitor, too. One check of a monitor runs at a time.";
    let read = |body: &Value| parse(body).map(Reading::of);
    Operation::new(Group::Monitor, "runMonitor", "Look now", text)
        .optional_body("MonitorRunRequest", read, vec![("Nothing", json!({}))])
        .answer::<Body>("The check, which waits for a worker.")
        .errors(&[404, 409])
}

fn parse(body: &Value) -> Result<(), ValidationError> {
    let mut issues = Issues::default();
    if let Some(fields) = Fields::open(body, Vec::new(), &mut issues) {
        let mut fields = fields.nulls_are_absent();
        fields.text("origin", 0..=256);
        fields.text("integration", 0..=256);
        fields.finish();
    }
    issues.into_result()
}

/// Handles the request.
///
/// # Errors
/// 404 for a monitor that the team does not have, 409 while a check runs.
pub async fn handle(app: AppData, request: HttpRequest, id: Path<String>, payload: Payload) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Crawl).await?;
    let id: MonitorId = extract::path_id(&id)?;
    let ((), _room) = extract::optional_json(&app, &caller, &request, payload, parse).await?;
    let mut tx = app.db.begin().await?;
    let row = monitors::lock(&mut tx, caller.team_id(), id).await?.ok_or_else(super::not_found)?;
    let check = checks::run_now(&mut tx, &row, app.db.now()).await?;
    let check =
        check.ok_or_else(|| ApiError::new(ErrorCode::Conflict, "A check of this monitor is already running"))?;
    commit(&app, tx, || async { Ok(checks::load(&app.db, id, check).await?.is_some()) }).await?;
    let check = read(|| async { super::owned_check(&app, &caller, id, check).await }).await?;
    Ok(HttpResponse::Ok().json(Body { success: true, id: check.id, data: Check::of(&check)? }))
}
