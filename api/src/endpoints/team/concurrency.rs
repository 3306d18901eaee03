//! `GET /v2/team/queue-status` and `/v2/concurrency-check` (CONTRACT 10): how many of the team's pages wait and run.

use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use weir_shared::store::jobs;
use weir_shared::time::Timestamp;

use crate::app::{App, State};
use crate::auth::Caller;
use crate::error::ApiResult;
use crate::limits::Bucket;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct QueueStatus {
    success: bool,
    jobs_in_queue: i64,
    active_jobs_in_queue: i64,
    waiting_jobs_in_queue: i64,
    max_concurrency: i64,
    most_recent_success: Option<String>,
}

/// Handles `/v2/team/queue-status`.
///
/// # Errors
/// 401 without a key.
pub async fn queue_status(app: State, request: HttpRequest) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let queue = jobs::team_queue(&app.db, caller.team_id()).await?;
    Ok(HttpResponse::Ok().json(QueueStatus {
        success: true,
        jobs_in_queue: queue.running + queue.waiting,
        active_jobs_in_queue: queue.running,
        waiting_jobs_in_queue: queue.waiting,
        max_concurrency: max_concurrency(&app, &caller),
        most_recent_success: queue.last_success.map(Timestamp::to_iso),
    }))
}

#[derive(Serialize)]
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
pub async fn check(app: State, request: HttpRequest) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let concurrency = jobs::team_running(&app.db, caller.team_id()).await?;
    let max_concurrency = max_concurrency(&app, &caller);
    Ok(HttpResponse::Ok().json(Concurrency { success: true, concurrency, max_concurrency }))
}

fn max_concurrency(app: &App, caller: &Caller) -> i64 {
    caller.team.concurrency.unwrap_or(app.settings.limits.team_concurrency)
}
