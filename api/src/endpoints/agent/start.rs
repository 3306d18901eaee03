//! `POST /v2/agent` (wire 23): accept an agent, answer before it begins.

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;
use weir_shared::domain::api_version::ApiVersion;
use weir_shared::domain::describe::Reading;
use weir_shared::domain::job::{JobKind, JobStatus};
use weir_shared::domain::reach;
use weir_shared::domain::scrape_request::{AgentRequest, parse_agent};
use weir_shared::domain::target::RequestContext;
use weir_shared::domain::task::{AgentSpec, Before, TaskSpec};
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::JobId;
use weir_shared::random;
use weir_shared::store::work::{jobs, tasks};

use crate::app::{App, AppData};
use crate::callers::auth::Caller;
use crate::callers::limits::Bucket;
use crate::endpoints::retention;
use crate::endpoints::tasks::{Wanted, accept, refuse_without_model, thread_busy};
use crate::error::{ApiError, ApiResult};
use crate::http::extract;
use crate::openapi::{Group, Operation};

/// Earlier runs of a thread that the model is told of, and how much of each answer, bytes.
const BEFORE: i64 = 5;
const ANSWER: usize = 4_000;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AgentStarted")]
struct Body {
    success: bool,
    id: JobId,
    /// Given back as `threadId`, the next run goes on from this one.
    #[schemars(with = "String", extend("format" = "uuid"))]
    thread_id: Uuid,
    /// The run's place in its thread, from 1.
    thread_turn: i64,
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "Has an agent look for what the prompt asks: it searches (where this service has a search backend), maps, reads \
        pages and uses forms, step by step, until it knows or meets a bound. It answers by `schema`, or in words with its \
        sources, and outlives any process.";
    let read = |body: &Value| parse_agent(body, RequestContext::ANYWHERE).map(Reading::of);
    let schema = json!({"type": "object", "properties": {"founded": {"type": "integer"}}, "required": ["founded"]});
    Operation::new(Group::Agent, "startAgent", "Start an agent", text)
        .body(
            "AgentRequest",
            read,
            vec![
                ("A question", json!({"prompt": "When was the company at https://example.com founded?"})),
                (
                    "Data of named pages",
                    json!({"prompt": "When was the company founded?", "urls": ["https://example.com/about"],
                        "schema": schema, "strictConstrainToURLs": true, "maxCredits": 50}),
                ),
            ],
        )
        .answer::<Body>("It is accepted.")
        .example(json!({
            "success": true, "id": "0197f2a0-3c5e-7cc1-b1a5-0e7d1c2b3a4f",
            "threadId": "0197f2a0-3c5e-7cc1-b1a5-0e7d1c2b3a50", "threadTurn": 1,
        }))
        .errors(&[402, 403, 404, 409])
}

/// Handles the request.
///
/// # Errors
/// The rows of wire 2.1 that name agents.
pub async fn handle(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Crawl).await?;
    let read = |body: &Value| app.parse(|context| parse_agent(body, context));
    let (mut wanted, _room) = extract::json(&app, &caller, &request, payload, read).await?;
    refuse_without_model(&app, "An agent")?;
    retention::settle(&caller, &mut wanted.scrape)?;
    let thread = place(&app, &caller, &mut wanted).await?;
    for url in &wanted.spec.urls {
        app.check_target(url)?;
    }
    let AgentRequest { spec, scrape, webhook, origin, .. } = wanted;
    let spec = TaskSpec::Agent(spec);
    let task = Wanted {
        kind: JobKind::Agent,
        spec: &spec,
        scrape: &scrape,
        webhook: webhook.as_ref(),
        origin: origin.as_deref(),
        version: ApiVersion::V2,
        thread: Some(thread),
    };
    let id = accept(&app, &caller, &task).await?;
    Ok(HttpResponse::Ok().json(Body { success: true, id, thread_id: thread.0, thread_turn: thread.1 }))
}

/// The run's thread and its place there. A follow-up inherits what it does not say, and is told of the runs before.
async fn place(app: &App, caller: &Caller, wanted: &mut AgentRequest) -> ApiResult<(Uuid, i64)> {
    let Some(thread) = wanted.thread else { return Ok((random::id(), 1)) };
    let not_found = || ApiError::new(ErrorCode::ThreadNotFound, "There is no such thread of this team.");
    let runs = tasks::thread(&app.db, caller.team_id(), thread, BEFORE).await?;
    let last = runs.last().ok_or_else(not_found)?;
    if jobs::load(&app.db, last.job).await?.is_some_and(|job| job.status == JobStatus::Scraping) {
        return Err(thread_busy());
    }
    if let TaskSpec::Agent(before) = &last.spec {
        inherit(&mut wanted.spec, before);
    }
    if wanted.spec.strict {
        wanted.scrape.sites.documents = reach::hosts_of(&wanted.spec.urls);
    }
    wanted.spec.before = runs
        .iter()
        .map(|run| Before {
            prompt: run.spec.prompt().unwrap_or_default().to_owned(),
            answer: tasks::answer_of(run.outcome.as_ref(), ANSWER),
        })
        .collect();
    Ok((thread, last.turn + 1))
}

fn inherit(spec: &mut AgentSpec, before: &AgentSpec) {
    if spec.urls.is_empty() {
        spec.urls.clone_from(&before.urls);
        spec.strict |= before.strict;
    }
    if spec.schema.is_none() {
        spec.schema.clone_from(&before.schema);
    }
    spec.mode = spec.mode.or(before.mode);
}
