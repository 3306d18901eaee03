//! Whether the process lives, whether it can do its work, and its figures: the paths of operators.

use std::time::Duration;

use actix_web::{HttpResponse, web};
use schemars::{JsonSchema, json_schema};
use serde::Serialize;
use weir_shared::store::{nodes, queue_depth, sessions, webhooks};

use crate::app::AppData;
use crate::error::{ApiError, ApiResult};
use crate::openapi::Operation;

/// How long one check may take before it counts as failed.
const CHECK_TIMEOUT: Duration = Duration::from_secs(3);

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
    /// What keeps each worker's boxes within their memory and processes: a cgroup, or in its absence something weaker.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    box_limits: Vec<String>,
    /// What is missing; empty when ready.
    reasons: Vec<String>,
}

/// `GET /readyz`: 200 when database, blobs and at least one live worker are there; else 503 with the reasons.
pub async fn ready(app: AppData) -> HttpResponse {
    let mut reasons = Vec::new();
    let (mut session_slots, mut sessions_refused) = (0, Vec::new());
    let workers = match tokio::time::timeout(CHECK_TIMEOUT, nodes::live(&app.db, app.db.now())).await {
        Ok(Ok(live)) => {
            if live.is_empty() {
                reasons.push("workers: no live worker".to_owned());
            }
            session_slots = live.iter().map(|node| node.session_slots).sum();
            let refused = |node: &nodes::NodeRow| Some(format!("{}: {}", node.name, node.sessions_refused.as_ref()?));
            sessions_refused = live.iter().filter_map(refused).collect();
            live.len()
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, "not ready");
            reasons.push("database: does not answer".to_owned());
            0
        }
        Err(_) => {
            reasons.push("database: does not answer in time".to_owned());
            0
        }
    };
    let box_limits = match tokio::time::timeout(CHECK_TIMEOUT, nodes::box_limits(&app.db, app.db.now())).await {
        Ok(Ok(limits)) => limits.into_iter().map(|(name, limits)| format!("{name}: {limits}")).collect(),
        // That the database is away has been told.
        _ => Vec::new(),
    };
    let blobs = app.blobs.clone();
    match tokio::time::timeout(CHECK_TIMEOUT, web::block(move || blobs.check())).await {
        Ok(Ok(Ok(()))) => {}
        _ => reasons.push("blobs: cannot be written".to_owned()),
    }
    if app.stopping.is_cancelled() {
        reasons.push("process: stopping".to_owned());
    }
    let is_ready = reasons.is_empty();
    let status = if is_ready { "ready" } else { "unavailable" };
    let mut answer = if is_ready { HttpResponse::Ok() } else { HttpResponse::ServiceUnavailable() };
    answer.json(Readiness { status, workers, session_slots, sessions_refused, box_limits, reasons })
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
        Ok::<(), weir_shared::store::StoreError>(())
    };
    match tokio::time::timeout(CHECK_TIMEOUT, read).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "cannot read the queue's figures"),
        Err(_) => tracing::warn!("reading the queue's figures takes too long"),
    }
    let text = app.metrics.text().map_err(|e| ApiError::internal(&e))?;
    Ok(HttpResponse::Ok().content_type("text/plain; version=0.0.4").body(text))
}
