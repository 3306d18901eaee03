//! Many pages in the background (SPEC 2.4, CONTRACT 4 to 6).

pub mod cancel;
pub mod errors;
pub mod start;
pub mod status;
pub mod watch;

use weir_shared::domain::job::JobKind;
use weir_shared::ids::JobId;
use weir_shared::store::jobs::{self, JobRow};
use weir_shared::time::Timestamp;

use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult};

/// Path of a batch, below the base URL.
fn path(id: JobId) -> String {
    format!("/v2/batch/scrape/{id}")
}

/// The batch, whoever owns it: 404 when it is unknown, or when its results are gone.
async fn load(app: &App, id: JobId) -> ApiResult<JobRow> {
    let job = jobs::load(&app.db, id).await?.filter(|job| job.kind == JobKind::Batch);
    let job = job.ok_or_else(ApiError::job_not_found)?;
    if job.expires_at <= Timestamp::now() { Err(ApiError::job_expired()) } else { Ok(job) }
}

/// The caller's batch. Another team's looks like an unknown one (CONTRACT 14: 404 for status and cancel).
async fn load_own(app: &App, caller: &Caller, id: JobId) -> ApiResult<JobRow> {
    let job = load(app, id).await;
    let foreign = job.as_ref().is_ok_and(|job| job.team_id != caller.team_id());
    if foreign { Err(ApiError::job_not_found()) } else { job }
}
