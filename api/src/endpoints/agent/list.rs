//! `GET /v2/agent` (wire 23): the team's agents, newest first.

use std::collections::HashMap;

use actix_web::{HttpRequest, HttpResponse, web};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use weir_shared::domain::target::without_user;
use weir_shared::domain::task::TaskSpec;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::JobId;
use weir_shared::store::work::jobs::{self, JobRow};
use weir_shared::store::work::tasks;
use weir_shared::time::Timestamp;

use super::word;
use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Group, Operation};

/// Agents of one page.
const PAGE: i64 = 20;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AgentList")]
struct Body {
    success: bool,
    agents: Vec<Item>,
    /// The next page's address; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AgentItem")]
struct Item {
    id: JobId,
    #[schemars(extend("format" = "date-time"))]
    created_at: String,
    target_hint: String,
    origin: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    integration: Option<String>,
    settings: Settings,
    #[schemars(extend("enum" = ["processing", "completed", "failed"]))]
    status: &'static str,
    options: Options,
}

#[derive(Default, Serialize, JsonSchema)]
#[schemars(rename = "AgentSettings")]
struct Settings {
    hidden: bool,
    starred: bool,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AgentOptions")]
struct Options {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    urls: Vec<String>,
    prompt: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<Value>,
    model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "The team's agents, newest first, 20 a page.";
    let time = json!({"type": "integer", "minimum": 0});
    Operation::new(Group::Agent, "listAgents", "List agents", text)
        .query("before", time, "Only agents that began before this time, milliseconds since 1970.")
        .answer::<Body>("The agents.")
        .errors(&[400])
}

/// Handles the request.
///
/// # Errors
/// 400 when `before` is no time.
pub async fn handle(
    app: AppData,
    request: HttpRequest,
    query: web::Query<HashMap<String, String>>,
) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let wrong = || ApiError::new(ErrorCode::BadRequest, "before must be a time in milliseconds since 1970");
    let before = query.get("before").map(|text| text.parse::<i64>().map_err(|_| wrong())).transpose()?;
    let before = Timestamp(before.unwrap_or(i64::MAX));
    let mut rows = tasks::agents(&app.db, caller.team_id(), before, PAGE * 2).await?;
    // The next page begins before a millisecond, so those that began in the last one of this page are on it.
    let last = rows.get(PAGE as usize - 1).map(|row| row.created_at);
    let end = rows.iter().position(|row| last.is_some_and(|last| row.created_at < last)).unwrap_or(rows.len());
    let has_more = end < rows.len();
    rows.truncate(end);
    let ids: Vec<JobId> = rows.iter().map(|row| row.job).collect();
    let jobs: HashMap<JobId, JobRow> =
        jobs::by_ids(&app.db, &ids).await?.into_iter().map(|job| (job.id, job)).collect();
    let base = app.base_url(&request);
    let next = rows.last().filter(|_| has_more).map(|last| format!("{base}/v2/agent?before={}", last.created_at.0));
    let mut agents = Vec::new();
    for row in rows {
        let (Some(job), TaskSpec::Agent(spec)) = (jobs.get(&row.job), row.spec) else { continue };
        let origin = jobs::origin(&app.db, job.id).await?.and_then(|(origin, _)| origin);
        agents.push(Item {
            id: row.job,
            created_at: row.created_at.to_iso(),
            target_hint: job.target.clone(),
            origin: origin.unwrap_or_else(|| "api".to_owned()),
            integration: spec.integration,
            settings: Settings::default(),
            status: word(job.status),
            options: Options {
                urls: spec.urls.iter().map(|url| without_user(url)).collect(),
                prompt: spec.prompt,
                schema: spec.schema,
                model: spec.model,
                effort: spec.effort.map(|effort| effort.as_str()),
            },
        });
    }
    Ok(HttpResponse::Ok().json(Body { success: true, agents, next }))
}
