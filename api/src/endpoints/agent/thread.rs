//! `GET /v2/agent/threads/{id}` (wire 23): the runs of a thread.

use std::collections::HashMap;

use actix_web::{HttpRequest, HttpResponse, web};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;
use weir_shared::domain::job::JobStatus;
use weir_shared::domain::target::without_user;
use weir_shared::domain::task::{StopReason, TaskSpec};
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::JobId;
use weir_shared::store::work::{jobs, tasks};

use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::error::{ApiError, ApiResult};
use crate::http::extract;
use crate::openapi::{Group, Operation};

/// The last runs of a thread that are shown.
const RUNS: i64 = 100;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AgentThreadAnswer")]
struct Body {
    success: bool,
    thread: Thread,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AgentThread")]
struct Thread {
    #[schemars(with = "String", extend("format" = "uuid"))]
    id: Uuid,
    #[schemars(extend("format" = "date-time"))]
    created_at: String,
    #[schemars(extend("format" = "date-time"))]
    updated_at: String,
    #[schemars(extend("enum" = ["idle", "running"]))]
    status: &'static str,
    runs: Vec<Run>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AgentRun")]
struct Run {
    id: JobId,
    turn: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'static str>,
    prompt: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    urls: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[schemars(extend("enum" = ["processing", "succeeded", "failed", "cancelled", "refused", "credit_limit_reached"]))]
    status: &'static str,
    #[schemars(extend("format" = "date-time"))]
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    finished_at: Option<String>,
    credits_used: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// With `includeData`.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<&'static str>,
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "A thread of agents: each run goes on from those before.";
    Operation::new(Group::Agent, "getAgentThread", "A thread of agents", text)
        .query("includeData", json!({"type": "boolean", "default": false}), "With the answers of the runs.")
        .answer::<Body>("The thread with its runs, oldest first.")
        .errors(&[400, 404])
}

/// How a run ended.
pub(super) fn outcome(status: JobStatus, reason: Option<StopReason>) -> &'static str {
    match (status, reason) {
        (JobStatus::Scraping, _) => "processing",
        (JobStatus::Completed, _) => "succeeded",
        (JobStatus::Cancelled, _) => "cancelled",
        (JobStatus::Failed, Some(StopReason::Refused)) => "refused",
        (JobStatus::Failed, Some(StopReason::CreditLimit)) => "credit_limit_reached",
        (JobStatus::Failed, _) => "failed",
    }
}

/// Handles the request.
///
/// # Errors
/// 400 for a malformed id, 404 where the team has no such thread.
pub async fn handle(
    app: AppData,
    request: HttpRequest,
    id: web::Path<String>,
    query: web::Query<HashMap<String, String>>,
) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let id: Uuid = extract::path_id(&id)?;
    let includes_data = query.get("includeData").is_some_and(|word| word == "true");
    let rows = tasks::thread(&app.db, caller.team_id(), id, RUNS).await?;
    let mut runs = Vec::new();
    let mut updated = None;
    let mut is_running = false;
    for row in rows {
        let (Some(job), TaskSpec::Agent(spec)) = (jobs::load(&app.db, row.job).await?, row.spec) else { continue };
        let outcome_row = row.outcome.unwrap_or_default();
        is_running |= job.status == JobStatus::Scraping;
        updated = job.finished_at.or(Some(job.created_at)).max(updated);
        runs.push(Run {
            id: row.job,
            turn: row.turn,
            mode: spec.mode.map(|mode| mode.as_str()),
            prompt: spec.prompt,
            urls: spec.urls.iter().map(|url| without_user(url)).collect(),
            schema: spec.schema,
            effort: spec.effort.map(|effort| effort.as_str()),
            status: outcome(job.status, outcome_row.stop_reason),
            created_at: row.created_at.to_iso(),
            finished_at: job.finished_at.map(|at| at.to_iso()),
            credits_used: job.credits_used,
            message: outcome_row.message,
            data: outcome_row.data.filter(|_| includes_data),
            stop_reason: outcome_row.stop_reason.map(StopReason::as_str),
        });
    }
    let not_found = || ApiError::new(ErrorCode::ThreadNotFound, "There is no such thread of this team.");
    let first = runs.first().ok_or_else(not_found)?;
    let thread = Thread {
        id,
        created_at: first.created_at.clone(),
        updated_at: updated.map(|at| at.to_iso()).unwrap_or_default(),
        status: if is_running { "running" } else { "idle" },
        runs,
    };
    Ok(HttpResponse::Ok().json(Body { success: true, thread }))
}
