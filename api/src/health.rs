//! Whether the process lives, whether it can do its work, and its figures: the paths of operators.

use std::time::Duration;

use actix_web::HttpResponse;
use schemars::{JsonSchema, json_schema};
use serde::Serialize;
use tokio::time::{Instant, timeout_at};
use weir_shared::store::sessions;
use weir_shared::store::work::nodes::{self, Condition};
use weir_shared::store::work::{queue_depth, webhooks};
use weir_shared::{blocking, clock};

use crate::app::{App, AppData};
use crate::error::{ApiError, ApiResult};
use crate::openapi::Operation;

/// How long all checks together may take, side by side, before what has not answered counts as failed: load balancers wait a
/// few seconds.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);
/// Bound on reading the queue's figures.
const FIGURES_TIMEOUT: Duration = Duration::from_secs(3);

/// `GET /healthz` in the API's document.
pub fn doc_alive() -> Operation {
    Operation::public("isAlive", "Does the process live?", "For supervisors.").answer_with(
        200,
        "It does.",
        "application/json",
        |_| json_schema!({"type": "object", "properties": {"status": {"const": "ok"}}, "required": ["status"]}),
    )
}

/// `GET /readyz` in the API's document.
pub fn doc_ready() -> Operation {
    let text = "Whether database, blobs and at least one live worker are there. For load balancers.";
    Operation::public("isReady", "Can it do its work?", text)
        .answer_with(200, "It can.", "application/json", Readiness::json_schema)
        .answer_with(503, "It cannot, and why.", "application/json", Readiness::json_schema)
}

/// `GET /metrics` in the API's document.
pub fn doc_metrics() -> Operation {
    Operation::public("getMetrics", "Figures", "Prometheus text.")
        .text_answer("The figures.", "text/plain; version=0.0.4")
        .errors(&[500])
}

/// `GET /healthz`: 200 while the process lives.
pub async fn alive() -> HttpResponse {
    HttpResponse::Ok().json(serde_json::json!({"status": "ok"}))
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Readiness {
    #[schemars(extend("enum" = ["ready", "unavailable"]))]
    status: &'static str,
    /// Live workers.
    workers: usize,
    /// Browser sessions that they can hold.
    session_slots: i64,
    /// Why workers take none although they should; pages are scraped all the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sessions_refused: Vec<String>,
    /// Why workers can start no browser for pages: those that need one fail there, others are scraped all the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    browser_problems: Vec<String>,
    /// What keeps each worker's boxes within their memory and processes: a cgroup, or in its absence something weaker.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    box_limits: Vec<String>,
    /// What is missing; empty when ready.
    reasons: Vec<String>,
}

/// `GET /readyz`: 200 when database, blobs and at least one live worker are there; else 503 with the reasons.
pub async fn ready(app: AppData) -> HttpResponse {
    let mut reasons = Vec::new();
    let end = clock::deadline(CHECK_TIMEOUT);
    let blobs = app.blobs.clone();
    let blobs = timeout_at(end, blocking::run(move || blobs.check()));
    let (live, blobs) = tokio::join!(live_workers(&app, end, &mut reasons), blobs);
    let workers = live.len();
    let session_slots = live.iter().map(|node| node.session_slots).sum();
    let refused = live.iter().filter_map(|node| Some(format!("{}: {}", node.name, node.sessions_refused.as_ref()?)));
    let sessions_refused = refused.collect();
    // Without a worker there are none to tell of, and a database that is away is not asked again.
    let conditions = match workers {
        0 => Vec::new(),
        _ => match timeout_at(end, nodes::conditions(&app.db, app.db.now())).await {
            Ok(Ok(conditions)) => conditions,
            _ => Vec::new(),
        },
    };
    let told = |of: fn(&Condition) -> Option<&String>| -> Vec<String> {
        conditions.iter().filter_map(|one| Some(format!("{}: {}", one.name, of(one)?))).collect()
    };
    let browser_problems = told(|one| one.browser_problem.as_ref());
    let box_limits = told(|one| one.box_limits.as_ref());
    if !matches!(blobs, Ok(Ok(Ok(())))) {
        reasons.push("blobs: cannot be written".to_owned());
    }
    if app.stopping.is_cancelled() {
        reasons.push("process: stopping".to_owned());
    }
    let is_ready = reasons.is_empty();
    let status = if is_ready { "ready" } else { "unavailable" };
    let mut answer = if is_ready { HttpResponse::Ok() } else { HttpResponse::ServiceUnavailable() };
    answer.json(Readiness { status, workers, session_slots, sessions_refused, browser_problems, box_limits, reasons })
}

/// The live workers. With none, says why.
async fn live_workers(app: &App, end: Instant, reasons: &mut Vec<String>) -> Vec<nodes::NodeRow> {
    match timeout_at(end, nodes::live(&app.db, app.db.now())).await {
        Ok(Ok(live)) => {
            // The process tries that all the while ([`crate::server`]). Workers cannot give a sign of life either where nobody
            // can write, so with none of them it is tried now: a try may be waiting for somebody's lock.
            let has_written = app.witness.written().is_some();
            let can_write = async || matches!(timeout_at(end, app.db.try_write()).await, Ok(Ok(())));
            if !has_written || (live.is_empty() && !can_write().await) {
                reasons.push("database: cannot be written".to_owned());
            }
            if live.is_empty() {
                reasons.push("workers: no live worker".to_owned());
            }
            live
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, "not ready");
            reasons.push("database: does not answer".to_owned());
            Vec::new()
        }
        Err(_) => {
            reasons.push("database: does not answer in time".to_owned());
            Vec::new()
        }
    }
}

/// `GET /metrics`: Prometheus text. Figures of the queue keep their last value while the database is away.
///
/// # Errors
/// When the figures cannot be written as text.
pub async fn metrics(app: AppData) -> ApiResult<HttpResponse> {
    let read = async {
        let queue = queue_depth::queue_stats(&app.db).await?;
        let webhooks = webhooks::counts(&app.db).await?;
        let now = app.db.now();
        app.metrics.set_store(&queue, webhooks, now);
        app.metrics.set_sessions(&sessions::counts(&app.db, now).await?);
        app.metrics.set_conditions(&nodes::conditions(&app.db, now).await?);
        Ok::<(), weir_shared::store::StoreError>(())
    };
    match tokio::time::timeout(FIGURES_TIMEOUT, read).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "cannot read the queue's figures"),
        Err(_) => tracing::warn!("reading the queue's figures takes too long"),
    }
    let text = app.metrics.text().map_err(|e| ApiError::internal(&e))?;
    Ok(HttpResponse::Ok().content_type("text/plain; version=0.0.4").body(text))
}
