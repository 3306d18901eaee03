//! `GET /v2/extract/{id}` (wire 22): how far an extraction is, and its data. Agents are read here, too (spec 4.12).

use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use weir_shared::domain::job::{JobKind, JobStatus};
use weir_shared::domain::task::StopReason;
use weir_shared::ids::JobId;

use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::endpoints::tasks::own;
use crate::error::ApiResult;
use crate::http::extract;
use crate::openapi::{Group, Operation};

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ExtractStatus")]
struct Body {
    /// False when it has failed.
    success: bool,
    id: JobId,
    #[schemars(extend("enum" = ["processing", "completed", "failed", "cancelled"]))]
    status: &'static str,
    /// An empty list while it runs, then what was read.
    data: Value,
    /// Why it has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// What the caller should know: pages that could not be read, and values on which pages differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    /// With `showSources`, the pages of each field.
    #[serde(skip_serializing_if = "Option::is_none")]
    sources: Option<Value>,
    #[schemars(extend("format" = "date-time"))]
    expires_at: String,
    credits_used: i64,
    /// Tokens of the language model.
    tokens_used: i64,
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "Its state, and the data when it is completed. Results of agents are read here as well.";
    Operation::new(Group::Extract, "getExtract", "Status of an extraction", text)
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
    let kinds = [JobKind::Extract, JobKind::Agent];
    let (job, task) = own(&app, &caller, id, &kinds, "Extract job not found").await?;
    let outcome = task.outcome.unwrap_or_default();
    let status = match job.status {
        JobStatus::Scraping => "processing",
        JobStatus::Completed => "completed",
        JobStatus::Failed => "failed",
        JobStatus::Cancelled => "cancelled",
    };
    let error = match job.status {
        JobStatus::Failed => Some(outcome.error.unwrap_or_else(|| "The extraction failed.".to_owned())),
        JobStatus::Cancelled => Some(format!("The job was {}.", StopReason::Cancelled.as_str())),
        _ => None,
    };
    let data = outcome.data.or_else(|| outcome.message.map(Value::String));
    Ok(HttpResponse::Ok().json(Body {
        success: error.is_none(),
        id,
        status,
        data: data.unwrap_or_else(|| json!([])),
        error,
        warning: outcome.warning,
        sources: outcome.sources.filter(Value::is_object),
        expires_at: job.expires_at.to_iso(),
        credits_used: job.credits_used,
        tokens_used: task.spent.sent + task.spent.received,
    }))
}
