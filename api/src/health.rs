//! Whether the process lives, whether it can do its work, and its figures (INTERFACE, paths beside `/v2`).

use std::time::Duration;

use actix_web::{HttpResponse, web};
use serde::Serialize;
use weir_shared::store::{jobs, nodes, webhooks};
use weir_shared::time::Timestamp;

use crate::app::State;
use crate::error::{ApiError, ApiResult};

/// How long one check may take before it counts as failed.
const CHECK_TIMEOUT: Duration = Duration::from_secs(3);

/// `GET /healthz`: 200 while the process lives.
pub async fn alive() -> HttpResponse {
    HttpResponse::Ok().json(serde_json::json!({"status": "ok"}))
}

#[derive(Serialize)]
struct Readiness {
    status: &'static str,
    /// Live workers.
    workers: usize,
    /// What is missing; empty when ready.
    reasons: Vec<String>,
}

/// `GET /readyz`: 200 when database, blobs and at least one live worker are there; else 503 with the reasons.
pub async fn ready(app: State) -> HttpResponse {
    let mut reasons = Vec::new();
    let workers = match tokio::time::timeout(CHECK_TIMEOUT, nodes::live(&app.db, Timestamp::now())).await {
        Ok(Ok(live)) => {
            if live.is_empty() {
                reasons.push("workers: no live worker".to_owned());
            }
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
    let blobs = app.blobs.clone();
    match tokio::time::timeout(CHECK_TIMEOUT, web::block(move || blobs.check())).await {
        Ok(Ok(Ok(()))) => {}
        _ => reasons.push("blobs: cannot be written".to_owned()),
    }
    if app.stopping.is_cancelled() {
        reasons.push("process: stopping".to_owned());
    }
    if reasons.is_empty() {
        return HttpResponse::Ok().json(Readiness { status: "ready", workers, reasons });
    }
    HttpResponse::ServiceUnavailable().json(Readiness { status: "unavailable", workers, reasons })
}

/// `GET /metrics`: Prometheus text. Figures of the queue keep their last value while the database is away.
///
/// # Errors
/// When the figures cannot be written as text.
pub async fn metrics(app: State) -> ApiResult<HttpResponse> {
    let read = async {
        let queue = jobs::queue_stats(&app.db).await?;
        let webhooks = webhooks::counts(&app.db).await?;
        app.metrics.set_store(&queue, webhooks, Timestamp::now());
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
