//! `DELETE /v2/browser/profiles/{name}` (wire 8.1): forgets what was saved under a name.

use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use weir_shared::domain::profile;
use weir_shared::error_code::ErrorCode;
use weir_shared::store::sessions::profiles::{self, Removal};

use super::end_orphans;
use crate::app::{App, AppData};
use crate::callers::auth::Caller;
use crate::callers::limits::Bucket;
use crate::endpoints::outage::commit;
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Group, Operation};

#[derive(Serialize, JsonSchema)]
struct Body {
    success: bool,
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "Forgets what is saved under a name. While a session is going to save it, that is a 409.";
    Operation::new(Group::Browser, "deleteBrowserProfile", "Forget a profile", text)
        .answer::<Body>("It is forgotten.")
        .errors(&[400, 404, 409])
}

/// Handles the request.
///
/// # Errors
/// 400 for a name that none can have, 404 when nothing is saved under it, 409 while a session will save it.
pub async fn remove(app: AppData, request: HttpRequest, name: Path<String>) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    profile::check_name(&name)?;
    let mut removal = try_remove(&app, &caller, &name).await?;
    if removal == Removal::Busy && end_orphans(&app).await? {
        removal = try_remove(&app, &caller, &name).await?;
    }
    match removal {
        // A session that loads it at this moment either has it already or begins with an empty profile.
        Removal::Removed => Ok(HttpResponse::Ok().json(Body { success: true })),
        Removal::Missing => Err(ApiError::new(ErrorCode::NotFound, "Profile not found.")),
        Removal::Busy => Err(ApiError::new(
            ErrorCode::Conflict,
            "Another session is currently writing to this profile. Destroy it first.",
        )),
    }
}

async fn try_remove(app: &App, caller: &Caller, name: &str) -> ApiResult<Removal> {
    let mut tx = app.db.begin().await?;
    let removal = profiles::remove(&mut tx, caller.team_id(), name, app.db.now()).await?;
    if removal == Removal::Removed {
        commit(app, tx, || async { Ok(profiles::current(&app.db, caller.team_id(), name).await?.is_none()) }).await?;
    }
    Ok(removal)
}
