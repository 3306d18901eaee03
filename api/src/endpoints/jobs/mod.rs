//! What batches and crawls share once they are started: status, errors, cancel and the WebSocket (wire 5 and 6).

pub mod cancel;
pub mod errors;
pub mod idempotency;
pub mod status;
pub mod watch;

use actix_web::HttpRequest;
use weir_shared::domain::job::JobKind;
use weir_shared::ids::JobId;
use weir_shared::store::jobs::{self, JobRow};
use weir_shared::time::Timestamp;

use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult};
use crate::openapi::Group;

/// What the operations of a kind are called in the API's document.
struct Names {
    group: Group,
    status: &'static str,
    errors: &'static str,
    cancel: &'static str,
}

impl Names {
    fn of(kind: JobKind) -> Self {
        match kind {
            JobKind::Crawl => {
                Self { group: Group::Crawl, status: "getCrawl", errors: "getCrawlErrors", cancel: "cancelCrawl" }
            }
            _ => Self {
                group: Group::Batch,
                status: "getBatchScrape",
                errors: "getBatchScrapeErrors",
                cancel: "cancelBatchScrape",
            },
        }
    }
}

/// Path of a job, below the base URL.
pub fn path(kind: JobKind, id: JobId) -> String {
    match kind {
        JobKind::Crawl => format!("/v2/crawl/{id}"),
        _ => format!("/v2/batch/scrape/{id}"),
    }
}

/// The kind that a route serves: `routes.rs` says so.
fn kind_of(request: &HttpRequest) -> ApiResult<JobKind> {
    let kind = request.app_data::<JobKind>().copied();
    kind.ok_or_else(|| ApiError::internal(&"the route does not say which jobs it serves"))
}

/// The job, whoever owns it: 404 when it is unknown or of another kind, or when its results are gone.
async fn load(app: &App, kind: JobKind, id: JobId) -> ApiResult<JobRow> {
    let job = jobs::load(&app.db, id).await?.filter(|job| job.kind == kind);
    not_expired(job.ok_or_else(ApiError::job_not_found)?, app.db.now())
}

fn not_expired(job: JobRow, now: Timestamp) -> ApiResult<JobRow> {
    if job.expires_at <= now { Err(ApiError::job_expired()) } else { Ok(job) }
}

/// The caller's job. Another team's looks like an unknown one (wire 14: 404 for status and cancel).
async fn load_own(app: &App, caller: &Caller, kind: JobKind, id: JobId) -> ApiResult<JobRow> {
    own(caller, load(app, kind, id).await?)
}

/// The same for reads: one that had ended a moment ago has still ended.
async fn read_own(app: &App, caller: &Caller, kind: JobKind, id: JobId) -> ApiResult<JobRow> {
    if let Some(job) = app.ended_jobs.get(id, app.db.clock().instant()).filter(|job| job.kind == kind) {
        return own(caller, not_expired(job, app.db.now())?);
    }
    let job = load_own(app, caller, kind, id).await?;
    app.ended_jobs.remember(&job, app.db.clock().instant());
    Ok(job)
}

fn own(caller: &Caller, job: JobRow) -> ApiResult<JobRow> {
    if job.team_id == caller.team_id() { Ok(job) } else { Err(ApiError::job_not_found()) }
}
