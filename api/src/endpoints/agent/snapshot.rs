//! `GET /v2/agent/{id}/snapshots/{page}` (wire 23): a page as an agent read it.

use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use weir_shared::domain::document::Document;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{JobId, PageId};
use weir_shared::store::work::{documents, pages};

use super::own_agent;
use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::error::{ApiError, ApiResult};
use crate::http::extract;
use crate::openapi::{Group, Operation};

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AgentSnapshot")]
struct Body {
    success: bool,
    id: JobId,
    snapshot_id: PageId,
    /// The page's markdown.
    snapshot: String,
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "The text of a page that an agent has read, by the `snapshotId` of an event of its trace.";
    Operation::new(Group::Agent, "getAgentSnapshot", "A page that an agent read", text)
        .answer::<Body>("The page's text.")
        .errors(&[400, 404])
}

/// Handles the request.
///
/// # Errors
/// 400 for a malformed id, 404 where there is no such agent or it has no such page.
pub async fn handle(app: AppData, request: HttpRequest, ids: Path<(String, String)>) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let (id, page): (JobId, PageId) = (extract::path_id(&ids.0)?, extract::path_id(&ids.1)?);
    own_agent(&app, &caller, id).await?;
    let not_found = || ApiError::new(ErrorCode::NotFound, "Snapshot not found");
    pages::load(&app.db, page).await?.filter(|row| row.job_id == id).ok_or_else(not_found)?;
    let packed = documents::packed(&app.db, page).await?.ok_or_else(not_found)?;
    let (stored, room) = app.unpack(caller.team_id(), packed).await?;
    room.keep_for_answer(&request);
    let document: Document = serde_json::from_str(stored.json.get()).map_err(|error| ApiError::internal(&error))?;
    let snapshot = document.markdown.unwrap_or_default();
    Ok(HttpResponse::Ok().json(Body { success: true, id, snapshot_id: page, snapshot }))
}
