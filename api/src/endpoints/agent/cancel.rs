//! `DELETE /v2/agent/{id}` (wire 23): the agent ends, whatever it is at.

use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use weir_shared::domain::job::JobStatus;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::JobId;
use weir_shared::store::work::cancel;
use weir_shared::store::work::jobs::{self, JobRow};

use super::own_agent;
use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::endpoints::outage::commit;
use crate::error::{ApiError, ApiResult};
use crate::http::extract;
use crate::openapi::{Group, Operation};

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AgentCancelled")]
struct Body {
    success: bool,
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "The agent ends within a second: waiting pages never start, and what it was at is broken off. What it has used \
        is billed.";
    Operation::new(Group::Agent, "cancelAgent", "Cancel an agent", text)
        .answer::<Body>("It is cancelled.")
        .errors(&[400, 404, 409])
}

/// Handles the request.
///
/// # Errors
/// 404 for an unknown, expired or foreign agent, 409 for one that has ended.
pub async fn handle(app: AppData, request: HttpRequest, id: Path<String>) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let id: JobId = extract::path_id(&id)?;
    own_agent(&app, &caller, id).await?;
    let mut tx = app.db.begin().await?;
    let moved = cancel::job(&mut tx, id, app.db.now()).await?;
    let has_ended = |job: JobRow| job.status != JobStatus::Scraping;
    commit(&app, tx, || async { Ok(jobs::load(&app.db, id).await?.is_none_or(has_ended)) }).await?;
    if moved {
        return Ok(HttpResponse::Ok().json(Body { success: true }));
    }
    let (job, _) = own_agent(&app, &caller, id).await?;
    let text = match job.status {
        JobStatus::Cancelled => "Agent is already cancelled",
        _ => "Agent already finished",
    };
    Err(ApiError::new(ErrorCode::Conflict, text))
}
