//! Many pages in the background (SPEC 2.4, CONTRACT 4 to 6).

pub mod cancel;
pub mod ended;
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
    not_expired(job.ok_or_else(ApiError::job_not_found)?)
}

fn not_expired(job: JobRow) -> ApiResult<JobRow> {
    if job.expires_at <= Timestamp::now() { Err(ApiError::job_expired()) } else { Ok(job) }
}

/// The caller's batch. Another team's looks like an unknown one (CONTRACT 14: 404 for status and cancel).
async fn load_own(app: &App, caller: &Caller, id: JobId) -> ApiResult<JobRow> {
    own(caller, load(app, id).await?)
}

/// The same for reads: one that had ended a moment ago has still ended.
async fn read_own(app: &App, caller: &Caller, id: JobId) -> ApiResult<JobRow> {
    if let Some(job) = app.ended_jobs.get(id) {
        return own(caller, not_expired(job)?);
    }
    let job = load_own(app, caller, id).await?;
    app.ended_jobs.remember(&job);
    Ok(job)
}

fn own(caller: &Caller, job: JobRow) -> ApiResult<JobRow> {
    if job.team_id == caller.team_id() { Ok(job) } else { Err(ApiError::job_not_found()) }
}
