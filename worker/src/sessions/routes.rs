//! The API's calls about sessions on the worker's private listener. WebSockets are in [`crate::relay::routes`].

use std::sync::Arc;
use std::time::Duration;

use actix_web::web::{self, Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use serde::Deserialize;
use serde_json::json;
use weir_shared::domain::session::{EndReason, Language};
use weir_shared::ids::{KeyId, SessionId};
use weir_shared::llm::Meter;

use super::{OpenError, PromptError};
use crate::agent;
use crate::context::Process;
use crate::relay::routes::Relays;

/// Registers the calls.
pub fn configure(config: &mut web::ServiceConfig) {
    config
        .route("/sessions", web::post().to(open))
        .route("/sessions/{id}", web::delete().to(close))
        .route("/sessions/{id}/execute", web::post().to(execute))
        .route("/sessions/{id}/prompt", web::post().to(prompt));
}

#[derive(Deserialize)]
struct Open {
    id: SessionId,
    /// Whose runner is started beside the browser.
    language: Option<String>,
}

async fn open(process: Data<Process>, relays: Data<Relays>, request: HttpRequest, body: Json<Open>) -> HttpResponse {
    if !relays.admits(&request) {
        return forbidden();
    }
    let Some(sessions) = process.sessions() else { return unavailable("this worker takes no sessions") };
    let language = body.language.as_deref().and_then(|word| word.parse::<Language>().ok());
    match sessions.open(body.id, language).await {
        Ok(()) => HttpResponse::Ok().json(json!({})),
        Err(OpenError::Replay(why)) => HttpResponse::FailedDependency().json(json!({"error": why})),
        Err(error @ OpenError::NotOurs) => HttpResponse::Conflict().json(json!({"error": error.to_string()})),
        Err(error) => unavailable(&error.to_string()),
    }
}

async fn close(
    process: Data<Process>,
    relays: Data<Relays>,
    request: HttpRequest,
    id: Path<SessionId>,
) -> HttpResponse {
    if !relays.admits(&request) {
        return forbidden();
    }
    let Some(sessions) = process.sessions() else { return unknown() };
    // In a task of its own: the end goes on when the caller hangs up.
    let closing = tokio::spawn(async move { sessions.close(*id, EndReason::Deleted).await });
    match closing.await {
        Ok(true) => HttpResponse::Ok().json(json!({})),
        Ok(false) => unknown(),
        Err(error) => unavailable(&error.to_string()),
    }
}

#[derive(Deserialize)]
struct Execute {
    code: String,
    language: String,
    timeout_ms: u64,
}

async fn execute(
    process: Data<Process>,
    relays: Data<Relays>,
    request: HttpRequest,
    id: Path<SessionId>,
    body: Json<Execute>,
) -> HttpResponse {
    if !relays.admits(&request) {
        return forbidden();
    }
    let Some(session) = process.sessions().and_then(|sessions| sessions.find(*id)) else { return unknown() };
    let Execute { code, language, timeout_ms } = body.into_inner();
    let Ok(language) = language.parse::<Language>() else {
        return HttpResponse::BadRequest().json(json!({"error": "no such language"}));
    };
    let metrics = process.metrics.clone();
    // The code goes on when the caller hangs up, as it would for one who waits.
    let running =
        tokio::spawn(async move { session.execute(language, &code, Duration::from_millis(timeout_ms)).await });
    match running.await {
        Ok(Some(Ok(done))) => {
            metrics.executed(
                language.as_str(),
                if done.killed {
                    "killed"
                } else if done.exit_code == 0 {
                    "ok"
                } else {
                    "failed"
                },
            );
            HttpResponse::Ok().json(json!({
                "stdout": done.stdout, "result": done.result, "stderr": done.stderr, "exitCode": done.exit_code,
                "killed": done.killed, "error": done.error, "truncated": done.truncated,
            }))
        }
        Ok(Some(Err(error))) => {
            metrics.executed(language.as_str(), "error");
            tracing::warn!(session.id = %id, %error, "code could not be run");
            HttpResponse::BadGateway().json(json!({"error": error.to_string()}))
        }
        Ok(None) => HttpResponse::Gone().json(json!({"error": "the session has ended"})),
        Err(error) => HttpResponse::BadGateway().json(json!({"error": error.to_string()})),
    }
}

#[derive(Deserialize)]
struct Prompt {
    prompt: String,
    timeout_ms: u64,
    /// Whose tokens it spends.
    #[serde(default)]
    key: Option<KeyId>,
}

async fn prompt(
    process: Data<Process>,
    relays: Data<Relays>,
    request: HttpRequest,
    id: Path<SessionId>,
    body: Json<Prompt>,
) -> HttpResponse {
    if !relays.admits(&request) {
        return forbidden();
    }
    let Some(session) = process.sessions().and_then(|sessions| sessions.find(*id)) else { return unknown() };
    let Some(model) = process.settings.model.clone() else {
        return HttpResponse::NotImplemented().json(json!({"error": "this worker has no language model"}));
    };
    let Prompt { prompt, timeout_ms, key } = body.into_inner();
    // The agent goes on when the caller hangs up, as code does.
    let timeout = Duration::from_millis(timeout_ms);
    let inner = process.clone();
    let running = tokio::spawn(async move {
        let meter = Meter::default();
        let outcome = session.prompt(&model, &prompt, timeout, &meter).await;
        inner.spent(session.team, key, meter.read()).await;
        outcome
    });
    let (word, answer) = match running.await {
        Ok(Some(Ok(outcome))) => {
            process.metrics.agent_steps.inc_by(outcome.steps.len() as u64);
            let word = match &outcome {
                agent::Outcome { killed: true, .. } => "killed",
                agent::Outcome { success: true, .. } => "ok",
                _ => "failed",
            };
            (word, HttpResponse::Ok().json(outcome))
        }
        Ok(Some(Err(PromptError::Busy))) => {
            ("error", HttpResponse::Conflict().json(json!({"error": PromptError::Busy.to_string()})))
        }
        Ok(Some(Err(error))) => {
            tracing::warn!(session.id = %id, %error, "a prompt was not worked on");
            ("error", HttpResponse::BadGateway().json(json!({"error": error.to_string()})))
        }
        Ok(None) => ("error", HttpResponse::Gone().json(json!({"error": "the session has ended"}))),
        Err(_) => ("error", HttpResponse::BadGateway().json(json!({"error": "internal error"}))),
    };
    process.metrics.executed("prompt", word);
    answer
}

fn forbidden() -> HttpResponse {
    HttpResponse::Forbidden().json(json!({"error": "the internal secret is missing or wrong"}))
}

fn unknown() -> HttpResponse {
    HttpResponse::NotFound().json(json!({"error": "no such session here"}))
}

fn unavailable(why: &str) -> HttpResponse {
    HttpResponse::ServiceUnavailable().json(json!({"error": why}))
}

/// The sessions of whichever life the worker is in, for the relay.
pub struct OfProcess(pub Arc<Process>);

impl crate::relay::Sessions for OfProcess {
    fn find(&self, id: SessionId) -> Option<Arc<crate::relay::SessionHandle>> {
        self.0.sessions()?.find(id)?.handle()
    }
}
