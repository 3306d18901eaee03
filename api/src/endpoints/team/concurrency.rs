//! `GET /v2/team/queue-status` and `/v2/concurrency-check` (wire 10): how many of the team's pages wait and run.

use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use weir_shared::store::work::queue_depth;
use weir_shared::time::Timestamp;

use crate::app::{App, AppData};
use crate::callers::auth::Caller;
use crate::callers::limits::Bucket;
use crate::error::ApiResult;
use crate::openapi::{Group, Operation};

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct QueueStatus {
    success: bool,
    jobs_in_queue: i64,
    active_jobs_in_queue: i64,
    waiting_jobs_in_queue: i64,
    max_concurrency: i64,
    /// End of the newest job with a result.
    #[schemars(extend("format" = "date-time"))]
    most_recent_success: Option<String>,
}

/// `/v2/team/queue-status` in the API's document.
pub fn doc_queue_status() -> Operation {
    Operation::new(Group::Team, "getQueueStatus", "Queue status", "How many of the team's pages wait and are in work.")
        .answer::<QueueStatus>("The numbers.")
}

/// `/v2/concurrency-check` in the API's document.
pub fn doc_check() -> Operation {
    Operation::new(Group::Team, "checkConcurrency", "Concurrency", "Pages in work, and how many may be at once.")
        .answer::<Concurrency>("The numbers.")
}

/// Handles `/v2/team/queue-status`.
///
/// # Errors
/// 401 without a key.
pub async fn queue_status(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let queue = queue_depth::team_queue(&app.db, caller.team_id()).await?;
    Ok(HttpResponse::Ok().json(QueueStatus {
        success: true,
        jobs_in_queue: queue.running + queue.waiting,
        active_jobs_in_queue: queue.running,
        waiting_jobs_in_queue: queue.waiting,
        max_concurrency: max_concurrency(&app, &caller),
        most_recent_success: queue.last_success.map(Timestamp::to_iso),
    }))
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Concurrency {
    success: bool,
    concurrency: i64,
    max_concurrency: i64,
}

/// Handles `/v2/concurrency-check`.
///
/// # Errors
/// 401 without a key.
pub async fn check(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let concurrency = queue_depth::team_running(&app.db, caller.team_id()).await?;
    let max_concurrency = max_concurrency(&app, &caller);
    Ok(HttpResponse::Ok().json(Concurrency { success: true, concurrency, max_concurrency }))
}

fn max_concurrency(app: &App, caller: &Caller) -> i64 {
    caller.team.concurrency.unwrap_or(app.settings.limits.team_concurrency)
}
