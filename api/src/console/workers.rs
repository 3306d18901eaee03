//! `/console/api/workers`: worker processes, for operators.

use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use weir_shared::domain::node::NodeState;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::WorkerId;
use weir_shared::store::work::nodes::{self, NodeStory};
use weir_shared::time::Timestamp;

use super::body;
use super::session::enter;
use crate::app::AppData;
use crate::error::{ApiError, ApiResult};
use crate::http::extract::path_id;
use crate::openapi::{Group, Operation};

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConsoleWorkers")]
struct Workers {
    workers: Vec<Worker>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsoleWorker")]
struct Worker {
    id: WorkerId,
    name: String,
    /// live, draining or dead.
    state: &'static str,
    /// It gave a sign of life lately.
    is_alive: bool,
    slots: i64,
    busy: i64,
    session_slots: i64,
    sessions: i64,
    /// Why it takes no sessions although it should.
    sessions_refused: Option<String>,
    /// What keeps its boxes within their bounds.
    box_limits: Option<String>,
    browsers: i64,
    /// Why it can start no browser for pages, while that is so.
    browser_problem: Option<String>,
    memory_bytes: Option<i64>,
    /// Null: it is of an earlier release, or has only just begun.
    version: Option<String>,
    #[schemars(extend("format" = "date-time"))]
    started_at: String,
    #[schemars(extend("format" = "date-time"))]
    heartbeat_at: String,
}

/// `GET /console/api/workers` in the API's document.
pub fn doc_list() -> Operation {
    Operation::new(Group::Console, "consoleListWorkers", "List workers", "Newest first; for operators.")
        .answer::<Workers>("The workers.")
        .errors(&[400, 403, 404])
}

/// `POST /console/api/workers/{id}/drain` in the API's document.
pub fn doc_drain() -> Operation {
    let text = "It finishes what it has and stops. For operators.";
    Operation::new(Group::Console, "consoleDrainWorker", "Drain a worker", text)
        .bare_answer(204, "It drains.")
        .errors(&[400, 403, 404])
}

fn shown(story: NodeStory, now: Timestamp) -> Worker {
    let NodeStory { node, load, box_limits } = story;
    let version = load.as_ref().map(|load| load.version.clone());
    let load = load.unwrap_or_default();
    let is_alive = node.state != NodeState::Dead && now.ms_since(node.heartbeat_at) < nodes::DEAD_MS;
    Worker {
        id: node.id,
        name: node.name,
        state: node.state.as_str(),
        is_alive,
        slots: node.slots,
        busy: if is_alive { load.busy } else { 0 },
        session_slots: node.session_slots,
        sessions: if is_alive { load.sessions } else { 0 },
        sessions_refused: node.sessions_refused,
        box_limits,
        browsers: if is_alive { load.browsers } else { 0 },
        browser_problem: load.browser_problem.filter(|_| is_alive),
        memory_bytes: load.memory_bytes.filter(|_| is_alive),
        version,
        started_at: node.started_at.to_iso(),
        heartbeat_at: node.heartbeat_at.to_iso(),
    }
}

/// `GET /console/api/workers`.
///
/// # Errors
/// Those of [`enter`], 403 for teams.
pub async fn list(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    let viewer = enter(&app, &request).await?;
    body::no_query(&request)?;
    viewer.only_operators()?;
    let now = app.db.now();
    let workers = nodes::stories(&app.db).await?.into_iter().map(|story| shown(story, now)).collect();
    Ok(HttpResponse::Ok().json(Workers { workers }))
}

/// `POST /console/api/workers/{id}/drain`.
///
/// # Errors
/// Those of [`enter`], 403 for teams, 404 when no such worker is live.
pub async fn drain(app: AppData, request: HttpRequest, id: Path<String>) -> ApiResult<HttpResponse> {
    let viewer = enter(&app, &request).await?;
    body::no_query(&request)?;
    viewer.only_operators()?;
    let id: WorkerId = path_id(&id)?;
    let mut tx = app.db.begin().await?;
    let done = nodes::drain(&mut tx, &id.to_string()).await?;
    tx.commit().await?;
    if !done {
        return Err(ApiError::new(ErrorCode::NotFound, "No such worker is live"));
    }
    Ok(HttpResponse::NoContent().finish())
}
