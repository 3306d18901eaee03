//! `DELETE` of a batch or crawl (wire 5.5): waiting pages never start, running ones may still finish.

use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use weir_shared::domain::job::JobStatus;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::JobId;
use weir_shared::store::work::cancel;
use weir_shared::store::work::jobs::{self, JobRow};

use super::{Names, Served, load_own, served_by};
use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::endpoints::outage::commit;
use crate::error::{ApiError, ApiResult};
use crate::http::extract;
use crate::openapi::Operation;

#[derive(Serialize, JsonSchema)]
struct Body {
    success: bool,
    #[schemars(extend("const" = "cancelled"))]
    status: &'static str,
}

/// What the API's document says of it, for the jobs of a route.
pub fn doc(served: Served) -> Operation {
    let names = Names::of(served);
    let text = "Waiting pages never start, running ones may still finish. What is done stays readable. Told again, it \
        answers the same; a job that has ended by itself is a 409.";
    Operation::new(names.group, names.cancel, "Cancel", text)
        .answer::<Body>("It is cancelled.")
        .errors(&[400, 404, 409])
}

/// Handles the request. A second cancel is answered like the first.
///
/// # Errors
/// 404 for an unknown, expired or foreign job, 409 for one that has ended by itself.
pub async fn handle(app: AppData, request: HttpRequest, id: Path<String>) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let (served, id): (_, JobId) = (served_by(&request)?, extract::path_id(&id)?);
    let job = load_own(&app, &caller, served, id).await?;
    if job.status == JobStatus::Scraping {
        let mut tx = app.db.begin().await?;
        let moved = cancel::job(&mut tx, id, app.db.now()).await?;
        let has_ended = |job: JobRow| job.status != JobStatus::Scraping;
        commit(&app, tx, || async { Ok(jobs::load(&app.db, id).await?.is_none_or(has_ended)) }).await?;
        // Somebody else may have moved it first.
        if !moved && load_own(&app, &caller, served, id).await?.status != JobStatus::Cancelled {
            return Err(already_completed());
        }
    } else if job.status != JobStatus::Cancelled {
        return Err(already_completed());
    }
    Ok(HttpResponse::Ok().json(Body { success: true, status: JobStatus::Cancelled.as_str() }))
}

fn already_completed() -> ApiError {
    ApiError::new(ErrorCode::Conflict, "Crawl is already completed")
}
