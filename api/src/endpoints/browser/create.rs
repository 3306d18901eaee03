//! `POST /v2/browser` (SPEC 4.1, CONTRACT 8.1): a browser of the caller's own.
//!
//! One transaction takes the team's place, the credits, the profile's lease and a worker's slot; then that worker is
//! asked to start the browser. What fails after that leaves nothing: the row is destroyed and not billed.

use std::time::{Duration, Instant};

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use weir_shared::domain::session::{CreateSession, EndReason, SessionKind, SessionState, parse_create};
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{SessionId, WorkerId};
use weir_shared::store::sessions::{self, NewSession, Placed, Refusal, SessionRow};
use weir_shared::time::Timestamp;

use super::{Addresses, destroy_row, end_orphans};
use crate::app::{App, State};
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult};
use crate::extract;
use crate::limits::Bucket;
use crate::worker_client::{CallError, Opening};

/// Seconds after which a place may be free again.
const RETRY_SECONDS: u64 = 5;
/// How long a call waits for workers that have just started, and how often it looks.
const TRIAL_WAIT: Duration = Duration::from_secs(5);
const TRIAL_LOOK: Duration = Duration::from_millis(100);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    success: bool,
    id: SessionId,
    #[serde(flatten)]
    addresses: Addresses,
    expires_at: String,
    /// What was asked for and has no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

/// Handles the request.
///
/// # Errors
/// 400 for the body, 402 without credits for the ttl, 409 while another session saves the profile, 429 over the team's
/// number of sessions, 502 when the browser did not start, 503 when no worker takes a session now.
pub async fn handle(app: State, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Browser).await?;
    let body = extract::optional_json(&request, payload).await?;
    let wanted = parse_create(&body)?;
    let warning = wanted.warning.clone();
    // A task of its own: a client that hangs up must not leave a session half open.
    let row = actix_web::rt::spawn(start(app.clone(), caller, wanted)).await;
    let row = row.map_err(|e| ApiError::internal(&e))??;
    let addresses = Addresses::new(&app.base_url(&request), &app.internal_secret, row.id);
    let expires_at = row.expires_at.to_iso();
    Ok(HttpResponse::Ok().json(Body { success: true, id: row.id, addresses, expires_at, warning }))
}

/// Places a session and has it opened. A worker that cannot be reached at all is passed over once.
async fn start(app: State, caller: Caller, wanted: CreateSession) -> ApiResult<SessionRow> {
    let began = Instant::now();
    let mut avoid = None;
    let outcome = loop {
        let placed = match place(&app, &caller, &wanted, avoid).await {
            Ok(placed) => placed,
            Err(error) => break Err(("refused", error)),
        };
        match open(&app, &placed).await {
            Ok(row) => break Ok(row),
            Err(NotOpened::Unreachable) if avoid.is_none() => avoid = Some(placed.worker),
            Err(NotOpened::Unreachable) => {
                let text = "The worker of the browser session cannot be reached. Please try again.";
                break Err(("failed", ApiError::new(ErrorCode::Unavailable, text)));
            }
            Err(NotOpened::Failed) => {
                let text = "Failed to create browser session.";
                break Err(("failed", ApiError::new(ErrorCode::BrowserFailed, text)));
            }
            Err(NotOpened::Store(error)) => break Err(("failed", error)),
        }
    };
    match outcome {
        Ok(row) => {
            app.metrics.session_opened(began.elapsed());
            Ok(row)
        }
        Err((word, error)) => {
            app.metrics.session_not_opened(word);
            Err(error)
        }
    }
}

/// Takes everything a session needs. What only the dead hold is freed first.
async fn place(app: &App, caller: &Caller, wanted: &CreateSession, avoid: Option<WorkerId>) -> ApiResult<Placed> {
    let began = Instant::now();
    let refusal = loop {
        match try_place(app, caller, wanted, avoid).await? {
            Ok(placed) => return Ok(placed),
            Err(Refusal::NotYet) if began.elapsed() < TRIAL_WAIT => actix_web::rt::time::sleep(TRIAL_LOOK).await,
            Err(refusal) => break refusal,
        }
    };
    let refusal = match refusal {
        Refusal::TooMany { .. } | Refusal::Short { .. } | Refusal::ProfileBusy if end_orphans(app).await? => {
            match try_place(app, caller, wanted, avoid).await? {
                Ok(placed) => return Ok(placed),
                Err(refusal) => refusal,
            }
        }
        refusal => refusal,
    };
    Err(refused(&refusal, wanted))
}

async fn try_place(
    app: &App,
    caller: &Caller,
    wanted: &CreateSession,
    avoid: Option<WorkerId>,
) -> ApiResult<Result<Placed, Refusal>> {
    let new = NewSession {
        team: caller.team_id(),
        key: caller.key,
        kind: SessionKind::Browser,
        page: None,
        request: wanted,
        default_limit: app.settings.limits.team_sessions,
        metered: app.settings.limits.metered,
        avoid,
    };
    let mut tx = app.db.begin().await?;
    let placed = sessions::create(&mut tx, &new, Timestamp::now()).await?;
    if placed.is_ok() {
        tx.commit().await?;
    }
    Ok(placed)
}

fn refused(refusal: &Refusal, wanted: &CreateSession) -> ApiError {
    match refusal {
        Refusal::TooMany { limit } => {
            let text = format!(
                "You have reached the maximum number of concurrent jobs ({limit}) for browser sessions. \
                 Please destroy one, or try again later."
            );
            ApiError::new(ErrorCode::TooManySessions, text).retry_after(RETRY_SECONDS)
        }
        Refusal::Short { need, left } => ApiError::new(
            ErrorCode::InsufficientCredits,
            format!(
                "Insufficient credits for a {}s browser session. It needs {need}, and {} are left.",
                wanted.ttl,
                left.max(&0)
            ),
        ),
        Refusal::ProfileBusy => ApiError::new(
            ErrorCode::Conflict,
            "Another session is currently writing to this profile. Destroy it first, or set saveChanges to false.",
        ),
        Refusal::Full => {
            ApiError::new(ErrorCode::Unavailable, "Every browser of this server is taken. Please try again shortly.")
        }
        Refusal::NotYet => {
            let text = "The workers have just started and do not take sessions yet. Please try again shortly.";
            ApiError::new(ErrorCode::Unavailable, text).retry_after(RETRY_SECONDS)
        }
        Refusal::NotOffered { why } => {
            let why = why.as_deref().map_or_else(String::new, |why| format!(" ({why})"));
            let text = format!("Browser feature is not configured on this server: no worker takes sessions{why}.");
            ApiError::new(ErrorCode::BrowserNotConfigured, text).retry_after(60)
        }
        Refusal::NoWorker => ApiError::new(ErrorCode::Unavailable, "No worker is running. Please try again."),
    }
}

/// Why a session that was placed is not there.
enum NotOpened {
    /// Its worker never heard of it.
    Unreachable,
    Failed,
    Store(ApiError),
}

impl From<ApiError> for NotOpened {
    fn from(error: ApiError) -> Self {
        Self::Store(error)
    }
}

/// Has the worker start the browser; answers when the row is active. Otherwise the row is destroyed, unbilled.
async fn open(app: &State, placed: &Placed) -> Result<SessionRow, NotOpened> {
    let id = placed.id;
    let failure = match app.workers.open(&placed.address, id).await {
        Ok(Opening::Opened) => {
            let row = sessions::load(&app.db, id).await.map_err(ApiError::from)?;
            if let Some(row) = row.filter(|row| row.state == SessionState::Active) {
                tracing::info!(session.id = %id, worker.id = %placed.worker, "a browser session is open");
                return Ok(row);
            }
            NotOpened::Failed
        }
        Ok(Opening::Failed(why)) => {
            tracing::warn!(session.id = %id, worker.id = %placed.worker, why, "a browser session was not opened");
            NotOpened::Failed
        }
        Err(error @ CallError::Unreachable(_)) => {
            tracing::warn!(session.id = %id, worker.id = %placed.worker, %error, "a browser session was not opened");
            NotOpened::Unreachable
        }
        Err(error @ (CallError::Lost(_) | CallError::Late(_))) => {
            tracing::warn!(session.id = %id, worker.id = %placed.worker, %error, "a browser session was not opened");
            NotOpened::Failed
        }
    };
    destroy_row(app, id, EndReason::NotOpened, Timestamp::now()).await?;
    if matches!(failure, NotOpened::Failed) {
        // It may have a browser all the same. Nobody waits for its end.
        let (app, address) = (app.clone(), placed.address.clone());
        actix_web::rt::spawn(async move {
            if let Err(error) = app.workers.close(&address, id).await {
                tracing::warn!(session.id = %id, %error, "the browser of a session that was given up may still run");
            }
        });
    }
    Err(failure)
}
