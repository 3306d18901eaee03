//! `DELETE /v2/browser/{id}` and `DELETE /v2/browser` (spec 4.3): ends a session. Told again, it answers the same.

use actix_web::web::{Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use weir_shared::domain::describe::Reading;
use weir_shared::domain::session::{EndReason, SessionState, parse_delete};
use weir_shared::ids::SessionId;
use weir_shared::store::sessions;
use weir_shared::worker_api::Refusal;

use super::{destroy_row, load_own, not_found, session_id};
use crate::app::{App, AppData};
use crate::callers::auth::Caller;
use crate::callers::limits::Bucket;
use crate::error::ApiResult;
use crate::http::extract;
use crate::openapi::{Group, Operation};
use crate::workers::worker_client::CallError;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Body {
    success: bool,
    status: &'static str,
    session_duration_ms: i64,
    credits_billed: i64,
    /// The browser is still shutting down and its profile being saved; the numbers are final.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cleanup_queued: bool,
    /// What was asked for and is not so, as a profile that could not be saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

/// The form with the id in the path in the API's document.
pub fn doc_by_path() -> Operation {
    let text = "Ends a session, saves its profile, and bills it. Told again, it answers the same and bills nothing.";
    answers(Operation::new(Group::Browser, "deleteBrowserSession", "End a session", text)).errors(&[403, 404])
}

/// The form with the id in the body in the API's document.
pub fn doc_by_body() -> Operation {
    let text = "The same as with the id in the path.";
    let example = json!({"id": "0197f2a0-3c5e-7cc1-b1a5-0e7d1c2b3a4f"});
    answers(Operation::new(Group::Browser, "deleteBrowserSessionByBody", "End a session named in the body", text))
        .body("DeleteBrowserRequest", |body| parse_delete(body).map(Reading::of), vec![("A session", example)])
        .errors(&[403, 404])
}

/// The answer of every route that ends a session.
pub(in crate::endpoints) fn answers(operation: Operation) -> Operation {
    operation.answer::<Body>("The session has ended; this is its bill.").example(json!({
        "success": true, "status": SessionState::Destroyed.as_str(), "sessionDurationMs": 61_250, "creditsBilled": 3,
    }))
}

/// Handles the form with the id in the path.
///
/// # Errors
/// 404 for an unknown or forgotten session, 403 for another team's.
pub async fn by_path(app: AppData, request: HttpRequest, id: Path<String>) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    end(&app, &caller, session_id(&id)?).await
}

/// Handles the form with the id in the body.
///
/// # Errors
/// 400 without an id, and as [`by_path`].
pub async fn by_body(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let (id, _room) = extract::json(&app, &caller, &request, payload, parse_delete).await?;
    end(&app, &caller, session_id(&id)?).await
}

/// Ends a session of the caller's, for each of its routes.
pub(in crate::endpoints) async fn end(app: &App, caller: &Caller, id: SessionId) -> ApiResult<HttpResponse> {
    let asked_at = app.db.now();
    let mut row = load_own(app, caller, id).await?;
    if row.state != SessionState::Destroyed {
        let address = row.worker.as_ref().map(|owner| owner.address.as_str());
        let closing = ask_to_close(app, address, id).await;
        row = sessions::load(&app.db, id).await?.ok_or_else(not_found)?;
        // A worker that still saves the profile is left to it; the time it takes is not billed. One that does not have
        // the session, cannot be reached or forgot about it is done without.
        let is_busy = row.state == SessionState::Closing && closing != CloseOutcome::Unknown;
        if row.is_live() && !is_busy {
            destroy_row(app, id, EndReason::Deleted, asked_at).await?;
            row = sessions::load(&app.db, id).await?.ok_or_else(not_found)?;
        }
    }
    let bill = row.bill(asked_at);
    Ok(HttpResponse::Ok().json(Body {
        success: true,
        status: SessionState::Destroyed.as_str(),
        session_duration_ms: bill.duration_ms,
        credits_billed: bill.credits,
        cleanup_queued: row.is_live(),
        warning: row.warning,
    }))
}

/// What the worker made of it.
#[derive(Debug, PartialEq, Eq)]
enum CloseOutcome {
    /// It has the session, or had it and ended it.
    Heard,
    /// It does not have it, or there is no such worker.
    Unknown,
    /// It does not answer.
    Silent,
}

/// Asks the worker to close the session, a second time when the connection failed.
async fn ask_to_close(app: &App, address: Option<&str>, id: SessionId) -> CloseOutcome {
    let Some(address) = address else { return CloseOutcome::Unknown };
    for attempt in 1..=2 {
        match app.workers.close(address, id).await {
            Ok(Ok(_)) => return CloseOutcome::Heard,
            Ok(Err(refused)) if refused.refusal() == Some(Refusal::UnknownSession) => return CloseOutcome::Unknown,
            Ok(Err(why)) => {
                tracing::warn!(session.id = %id, %why, "the worker could not close a browser session");
                return CloseOutcome::Heard;
            }
            Err(error) => {
                tracing::warn!(session.id = %id, attempt, %error, "cannot close a browser session");
                if matches!(error, CallError::Late(_)) {
                    break;
                }
            }
        }
    }
    CloseOutcome::Silent
}
