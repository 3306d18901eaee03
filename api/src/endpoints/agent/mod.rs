//! `/v2/agent` (wire 23): answers that an agent looks for.

pub mod cancel;
pub mod list;
pub mod snapshot;
pub mod start;
pub mod status;
pub mod thread;
pub mod trace;

use weir_shared::domain::job::JobStatus;
use weir_shared::ids::JobId;
use weir_shared::store::work::jobs::JobRow;
use weir_shared::store::work::tasks::TaskRow;

use super::tasks::own;
use crate::app::App;
use crate::callers::auth::Caller;
use crate::error::ApiResult;

/// What a cancelled run says.
const CANCELLED: &str = "Agent cancelled by user";

/// The caller's agent.
async fn own_agent(app: &App, caller: &Caller, id: JobId) -> ApiResult<(JobRow, TaskRow)> {
    own(app, caller, id, &[weir_shared::domain::job::JobKind::Agent], "Agent job not found").await
}

/// The word for clients. They know of no cancelled run, so that is one that failed.
const fn word(status: JobStatus) -> &'static str {
    match status {
        JobStatus::Scraping => "processing",
        JobStatus::Completed => "completed",
        JobStatus::Failed | JobStatus::Cancelled => "failed",
    }
}
