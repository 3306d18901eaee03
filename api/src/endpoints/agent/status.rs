//! `GET /v2/agent/{id}` (wire 23): how far an agent is, and its answer. It reads two rows, however many steps there are.

use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;
use weir_shared::domain::job::JobStatus;
use weir_shared::domain::task::{StopReason, TaskSpec};
use weir_shared::ids::JobId;

use super::{CANCELLED, own_agent, word};
use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::error::{ApiError, ApiResult};
use crate::http::extract;
use crate::openapi::{Group, Operation};

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AgentStatus")]
struct Body {
    success: bool,
    id: JobId,
    #[schemars(extend("enum" = ["processing", "completed", "failed"]))]
    status: &'static str,
    /// When it is completed: what fits the schema, or an answer in words with its sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
    /// Why it has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// What was found before it stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    partial: Option<Value>,
    /// Whether that fits the schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    partial_schema_valid: Option<bool>,
    /// Which bound it met.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = reasons()))]
    stop_reason: Option<&'static str>,
    model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'static str>,
    /// The answer in words of a run in mode `chat`.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// Pages that the answer comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    sources: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "uuid"))]
    thread_id: Option<Uuid>,
    thread_turn: i64,
    #[schemars(extend("format" = "date-time"))]
    expires_at: String,
    credits_used: i64,
}

fn reasons() -> Vec<&'static str> {
    StopReason::ALL.iter().map(|reason| reason.as_str()).collect()
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text =
        "Its state, and the answer when it is completed. A cancelled run reads as failed, with `stopReason` cancelled.";
    Operation::new(Group::Agent, "getAgent", "Status of an agent", text)
        .answer::<Body>("The state.")
        .errors(&[400, 404])
}

/// Handles the request.
///
/// # Errors
/// 400 for a malformed id, 404 for one that is unknown, expired or another team's.
pub async fn handle(app: AppData, request: HttpRequest, id: Path<String>) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let id: JobId = extract::path_id(&id)?;
    let (job, task) = own_agent(&app, &caller, id).await?;
    let TaskSpec::Agent(spec) = task.spec else { return Err(ApiError::internal(&"an agent's row is another task's")) };
    let outcome = task.outcome.unwrap_or_default();
    let (error, stop_reason) = match job.status {
        JobStatus::Cancelled => (Some(CANCELLED.to_owned()), Some(StopReason::Cancelled)),
        JobStatus::Failed => (outcome.error, outcome.stop_reason),
        _ => (None, None),
    };
    Ok(HttpResponse::Ok().json(Body {
        success: true,
        id,
        status: word(job.status),
        data: outcome.data,
        error,
        partial: outcome.partial,
        partial_schema_valid: outcome.partial_schema_valid,
        stop_reason: stop_reason.map(StopReason::as_str),
        model: spec.model,
        effort: spec.effort.map(|effort| effort.as_str()),
        mode: spec.mode.map(|mode| mode.as_str()),
        message: outcome.message,
        sources: outcome.sources,
        thread_id: task.thread,
        thread_turn: task.turn,
        expires_at: job.expires_at.to_iso(),
        credits_used: job.credits_used,
    }))
}
