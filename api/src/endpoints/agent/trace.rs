//! `GET /v2/agent/{id}/trace` (wire 23): what an agent has done so far, as events. They are made of its steps when they are
//! asked for: the same steps give the same events.

use std::collections::HashMap;

use actix_web::{HttpRequest, HttpResponse, web};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use weir_shared::domain::job::JobStatus;
use weir_shared::domain::session::SessionState;
use weir_shared::domain::task::{StepKind, StopReason};
use weir_shared::ids::{JobId, PageId, SessionId};
use weir_shared::store::sessions;
use weir_shared::store::work::jobs::JobRow;
use weir_shared::store::work::tasks::{self, StepRow, TaskRow};
use weir_shared::time::Timestamp;

use super::thread::outcome;
use super::{CANCELLED, own_agent};
use crate::app::{App, AppData};
use crate::callers::limits::Bucket;
use crate::endpoints::browser::live_addresses;
use crate::error::ApiResult;
use crate::http::extract;
use crate::openapi::{Group, Operation};

/// The window of a browser, CSS pixels.
const VIEWPORT: (u32, u32) = (1280, 720);

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AgentTrace")]
struct Body {
    success: bool,
    id: JobId,
    /// Each with `type`, `eventId`, `occurredAt`, `producerSequence`, `agent`, and what its type has besides.
    events: Vec<Value>,
    credits_used: i64,
    /// With `liveView`: the browsers that the agent uses now.
    #[serde(skip_serializing_if = "Option::is_none")]
    active_browser_sessions: Option<Vec<Browser>>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AgentBrowser")]
struct Browser {
    id: SessionId,
    live_view_url: String,
    viewport: Viewport,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AgentViewport")]
struct Viewport {
    width: u32,
    height: u32,
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "The steps of an agent as events: its thoughts, its tools with what they were given and what came of them, and \
        the pages that it read.";
    Operation::new(Group::Agent, "getAgentTrace", "Trace of an agent", text)
        .query("liveView", json!({"type": "boolean", "default": false}), "With the browsers that it uses now.")
        .answer::<Body>("The events so far.")
        .errors(&[400, 404])
}

/// Handles the request.
///
/// # Errors
/// 400 for a malformed id, 404 for an agent that is unknown, expired or another team's.
pub async fn handle(
    app: AppData,
    request: HttpRequest,
    id: web::Path<String>,
    query: web::Query<HashMap<String, String>>,
) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let id: JobId = extract::path_id(&id)?;
    let (job, task) = own_agent(&app, &caller, id).await?;
    let steps = tasks::steps(&app.db, id).await?;
    let browsers = match query.get("liveView").is_some_and(|word| word == "true") {
        true => Some(browsers(&app, &app.base_url(&request), &steps).await?),
        false => None,
    };
    let events = Trace::of(&job, &task, &steps);
    let credits_used = job.credits_used;
    Ok(HttpResponse::Ok().json(Body { success: true, id, events, credits_used, active_browser_sessions: browsers }))
}

async fn browsers(app: &App, base: &str, steps: &[StepRow]) -> ApiResult<Vec<Browser>> {
    let mut found = Vec::new();
    let open = steps.iter().filter(|step| step.kind == StepKind::Interact.as_str() && step.ended_at.is_none());
    for step in open {
        let Ok(page) = serde_json::from_value::<PageId>(value(&step.says)["page"].clone()) else { continue };
        let row = sessions::of_page(&app.db, page).await?.filter(|row| row.state == SessionState::Active);
        if let Some(row) = row {
            let (live_view_url, _) = live_addresses(base, &app.internal_secret, row.id);
            let viewport = Viewport { width: VIEWPORT.0, height: VIEWPORT.1 };
            found.push(Browser { id: row.id, live_view_url, viewport });
        }
    }
    Ok(found)
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// Events as they are put together.
struct Trace {
    run: JobId,
    events: Vec<Value>,
}

impl Trace {
    fn of(job: &JobRow, task: &TaskRow, steps: &[StepRow]) -> Vec<Value> {
        let mut trace = Self { run: job.id, events: Vec::new() };
        trace.add("run.started", "start", job.created_at, json!({}));
        for step in steps {
            match step.kind.as_str() {
                kind if kind == StepKind::Model.as_str() => trace.thought(step),
                _ => trace.tool(step),
            }
        }
        if job.status == JobStatus::Cancelled {
            let at = job.finished_at.unwrap_or(job.created_at);
            trace.add("run.cancel_requested", "cancel", at, json!({ "reason": "user" }));
        }
        if let Some(at) = job.finished_at {
            let ended = task.outcome.clone().unwrap_or_default();
            let word = outcome(job.status, ended.stop_reason);
            let error = match job.status {
                JobStatus::Completed => Value::Null,
                JobStatus::Cancelled => error("cancelled", "system", CANCELLED),
                _ => {
                    let why = ended.error.unwrap_or_default();
                    match ended.stop_reason {
                        Some(StopReason::CreditLimit) => error("credit_limit_reached", "billing", &why),
                        Some(StopReason::Refused) => error("refused", "agent", &why),
                        _ => error("internal", "agent", &why),
                    }
                }
            };
            trace.add("run.finished", "end", at, json!({ "outcome": word, "error": error }));
        }
        trace.events
    }

    fn add(&mut self, kind: &str, mark: &str, at: Timestamp, more: Value) {
        let number = self.events.len() + 1;
        let mut event = json!({
            "type": kind, "schemaVersion": 1, "eventId": format!("{}-{mark}", self.run), "runId": self.run,
            "occurredAt": at.to_iso(), "producerSequence": number,
            "agent": {"id": self.run, "role": "orchestrator", "name": "agent"},
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            event[name.as_str()] = value.clone();
        }
        self.events.push(event);
    }

    /// What the model thought, where it said so.
    fn thought(&mut self, step: &StepRow) {
        let (Some(outcome), Some(at)) = (&step.outcome, step.ended_at) else { return };
        let said = value(outcome);
        if let Some(thought) = said["answer"]["thought"].as_str().filter(|text| !text.is_empty()) {
            self.add("reasoning.summary", &step.id, at, json!({ "text": thought }));
        } else if let Some(why) = said["error"].as_str() {
            let error = error("internal", "agent", why);
            self.add("error.occurred", &step.id, at, json!({ "error": error }));
        }
    }

    fn tool(&mut self, step: &StepRow) {
        let tool = if step.kind == StepKind::Pages.as_str() { "scrape" } else { step.kind.as_str() };
        let says = value(&step.says);
        let begun = json!({ "toolCallId": step.id, "toolName": tool, "parameters": says });
        self.add("tool_call.started", &format!("{}-begun", step.id), step.started_at, begun);
        let (Some(outcome), Some(at)) = (&step.outcome, step.ended_at) else { return };
        let done = json!({ "toolCallId": step.id, "toolName": tool, "result": value(outcome) });
        self.add("tool_call.finished", &format!("{}-done", step.id), at, done);
        for page in says["pages"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let artifact = json!({
                "kind": "markdown", "artifactId": page, "snapshotId": page, "change": "init", "sourceToolCallId": step.id,
            });
            self.add("artifact.updated", page, at, json!({ "artifact": artifact }));
        }
    }
}

fn error(code: &str, source: &str, message: &str) -> Value {
    json!({ "code": code, "source": source, "retryable": false, "message": message })
}
