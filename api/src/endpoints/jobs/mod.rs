//! What batches and crawls share once they are started: status, errors, cancel and the WebSocket (wire 5 and 6).

pub mod cancel;
pub mod errors;
pub mod idempotency;
mod inlet;
mod outlet;
pub mod status;
pub mod watch;

use actix_web::HttpRequest;
use weir_shared::domain::api_version::ApiVersion;
use weir_shared::domain::job::JobKind;
use weir_shared::ids::JobId;
use weir_shared::store::work::jobs::{self, JobRow};
use weir_shared::time::Timestamp;

use crate::app::App;
use crate::callers::auth::Caller;
use crate::error::{ApiError, ApiResult};
use crate::openapi::Group;

/// Which jobs a route serves, by which version of the API: `routes.rs` says so.
#[derive(Debug, Clone, Copy)]
pub struct Served {
    pub version: ApiVersion,
    kind: JobKind,
}

impl Served {
    pub const fn new(version: ApiVersion, kind: JobKind) -> Self {
        Self { version, kind }
    }

    /// Version 1 serves batches at the path of crawls as well: its clients read and watch them there (wire 26).
    fn serves(self, kind: JobKind) -> bool {
        kind == self.kind || (self.version == ApiVersion::V1 && kind == JobKind::Batch)
    }

    /// Path of a job, below the base URL.
    pub fn path(self, id: JobId) -> String {
        let version = self.version.as_str();
        match self.kind {
            JobKind::Crawl => format!("/{version}/crawl/{id}"),
            _ => format!("/{version}/batch/scrape/{id}"),
        }
    }
}

/// What the operations of a route are called in the API's document.
struct Names {
    group: Group,
    status: &'static str,
    errors: &'static str,
    cancel: &'static str,
}

impl Names {
    fn of(served: Served) -> Self {
        match (served.version, served.kind) {
            (ApiVersion::V1, JobKind::Crawl) => {
                Self { group: Group::V1, status: "getCrawlV1", errors: "getCrawlErrorsV1", cancel: "cancelCrawlV1" }
            }
            (ApiVersion::V1, _) => Self {
                group: Group::V1,
                status: "getBatchScrapeV1",
                errors: "getBatchScrapeErrorsV1",
                cancel: "cancelBatchScrapeV1",
            },
            (ApiVersion::V2, JobKind::Crawl) => {
                Self { group: Group::Crawl, status: "getCrawl", errors: "getCrawlErrors", cancel: "cancelCrawl" }
            }
            (ApiVersion::V2, _) => Self {
                group: Group::Batch,
                status: "getBatchScrape",
                errors: "getBatchScrapeErrors",
                cancel: "cancelBatchScrape",
            },
        }
    }
}

/// What the request's route serves.
fn served_by(request: &HttpRequest) -> ApiResult<Served> {
    let served = request.app_data::<Served>().copied();
    served.ok_or_else(|| ApiError::internal(&"the route does not say which jobs it serves"))
}

/// The job, whoever owns it: 404 when it is unknown or of another kind, or when its results are gone.
async fn load(app: &App, served: Served, id: JobId) -> ApiResult<JobRow> {
    let job = jobs::load(&app.db, id).await?.filter(|job| served.serves(job.kind));
    not_expired(job.ok_or_else(ApiError::job_not_found)?, app.db.now())
}

fn not_expired(job: JobRow, now: Timestamp) -> ApiResult<JobRow> {
    if job.has_expired(now) { Err(ApiError::job_expired()) } else { Ok(job) }
}

/// The caller's job. Another team's looks like an unknown one (wire 14: 404 for status and cancel).
async fn load_own(app: &App, caller: &Caller, served: Served, id: JobId) -> ApiResult<JobRow> {
    own(caller, load(app, served, id).await?)
}

/// The same as it was read a moment ago, if it had ended then. Who takes it holds it against its row.
fn remembered_own(app: &App, caller: &Caller, served: Served, id: JobId) -> ApiResult<Option<JobRow>> {
    let job = app.ended_jobs.get(id, app.db.clock().instant()).filter(|job| served.serves(job.kind));
    job.map(|job| own(caller, not_expired(job, app.db.now())?)).transpose()
}

fn own(caller: &Caller, job: JobRow) -> ApiResult<JobRow> {
    if job.team_id == caller.team_id() { Ok(job) } else { Err(ApiError::job_not_found()) }
}
