//! How a session comes to be, for `POST /v2/browser` and for the first interaction with a scrape.
//!
//! One transaction takes the team's place, the credits, the profile's lease and a worker's slot; then that worker is
//! asked to start the browser. What fails after that leaves nothing: the row is destroyed and not billed.

use std::time::Duration;

use weir_shared::clock::Stopwatch;
use weir_shared::domain::session::{CreateSession, EndReason, Language, SessionKind, SessionState};
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{PageId, SessionId, WorkerId};
use weir_shared::store::sessions::{self, NewSession, NotPlaced, Placed, SessionRow};
use weir_shared::worker_api::Refusal;
use weir_shared::worker_api::sessions::OpenSession;

use super::{destroy_row, end_orphans};
use crate::app::{App, AppData};
use crate::callers::auth::Caller;
use crate::endpoints::outage::commit;
use crate::error::{ApiError, ApiResult};
use crate::workers::worker_client::CallError;

/// Seconds after which a place may be free again.
const RETRY_SECONDS: u64 = 5;
/// The same for a proxy that cannot be reached: as long as it rests at first.
const PROXY_RETRY_SECONDS: u64 = 30;
/// How long a call waits for workers that have just started, or come back, and how often it looks.
const OTHERS_WAIT: Duration = Duration::from_secs(5);
const OTHERS_LOOK: Duration = Duration::from_millis(100);
/// How often it is looked whether the worker that is to open a session still counts as alive.
const LOST_LOOK: Duration = Duration::from_secs(1);
/// How long after its beginning a call still turns to another worker that is there: one may be lost late.
const OTHERS_BOUND: Duration = Duration::from_secs(30);

const ACTED: &str = "Failed to create browser session: the scrape was being brought back, and its actions may have been \
    done. Look at the site first; the same request does them again.";

/// A session to be made.
pub struct Wanted {
    pub session: CreateSession,
    /// The scrape that it continues.
    pub scrape: Option<OfScrape>,
}

/// What a session that continues a scrape needs besides.
#[derive(Clone, Copy)]
pub struct OfScrape {
    pub page: PageId,
    /// Actions are done again as its page is brought back.
    pub acts: bool,
    /// What the first call is written in: its runner starts beside the page.
    pub language: Option<Language>,
}

/// Places a session and has it opened. A worker that cannot be reached, or does not take it, is passed over by this call:
/// one that has just died counts as alive until it misses its heartbeats. One that does not answer comes last for a
/// minute; the call that waited for it ends, for that worker may still open its session.
///
/// # Errors
/// 402 without credits for the ttl, 409 while another session saves the profile, when the scrape has a session or
/// cannot be replayed, 429 over the team's number of sessions, 502 when the browser did not start, 503 when no worker
/// takes a session now, its proxies cannot be reached, or a scrape's actions may have been done before it failed.
pub async fn start(app: AppData, caller: Caller, wanted: Wanted) -> ApiResult<SessionRow> {
    let began = Stopwatch::start();
    let mut avoid = Vec::new();
    let outcome = loop {
        let placed = match place(&app, &caller, &wanted, &avoid, &began).await {
            Ok(placed) => placed,
            Err(error) => break Err(("refused", error)),
        };
        match open(&app, &placed, wanted.scrape).await {
            Ok(row) => break Ok(row),
            Err(NotOpened::NotBegun | NotOpened::Lost) if began.elapsed() < OTHERS_BOUND => avoid.push(placed.worker),
            Err(NotOpened::NotBegun | NotOpened::Lost) => {
                break Err(("failed", refused(&NotPlaced::Away, &wanted.session)));
            }
            Err(NotOpened::NoProxy(text)) => {
                let error = ApiError::new(ErrorCode::Unavailable, text).retry_after(PROXY_RETRY_SECONDS);
                break Err(("failed", error));
            }
            Err(NotOpened::Failed) => {
                let text = "Failed to create browser session.";
                break Err(("failed", ApiError::new(ErrorCode::BrowserFailed, text)));
            }
            // Clients send again what is answered 502 (wire 1.6).
            Err(NotOpened::Acted) => break Err(("failed", ApiError::new(ErrorCode::Unavailable, ACTED))),
            Err(NotOpened::NotReplayed(text)) => break Err(("failed", ApiError::new(ErrorCode::Conflict, text))),
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
async fn place(
    app: &App,
    caller: &Caller,
    wanted: &Wanted,
    avoid: &[WorkerId],
    began: &Stopwatch,
) -> ApiResult<Placed> {
    let refusal = loop {
        match try_place(app, caller, wanted, avoid).await? {
            Ok(placed) => return Ok(placed),
            Err(NotPlaced::NotYet | NotPlaced::Away) if began.elapsed() < OTHERS_WAIT => {
                actix_web::rt::time::sleep(OTHERS_LOOK).await;
            }
            Err(refusal) => break refusal,
        }
    };
    let refusal = match refusal {
        NotPlaced::TooMany { .. } | NotPlaced::Short { .. } | NotPlaced::ProfileBusy if end_orphans(app).await? => {
            match try_place(app, caller, wanted, avoid).await? {
                Ok(placed) => return Ok(placed),
                Err(refusal) => refusal,
            }
        }
        refusal => refusal,
    };
    Err(refused(&refusal, &wanted.session))
}

async fn try_place(
    app: &App,
    caller: &Caller,
    wanted: &Wanted,
    avoid: &[WorkerId],
) -> ApiResult<Result<Placed, NotPlaced>> {
    let silent = app.silent_workers.now(app.db.clock().instant());
    if !silent.is_empty() {
        match place_past(app, caller, wanted, &[avoid, silent.as_slice()].concat()).await? {
            Err(NotPlaced::Away) => {}
            outcome => return Ok(outcome),
        }
    }
    place_past(app, caller, wanted, avoid).await
}

async fn place_past(
    app: &App,
    caller: &Caller,
    wanted: &Wanted,
    avoid: &[WorkerId],
) -> ApiResult<Result<Placed, NotPlaced>> {
    let new = NewSession {
        team: caller.team_id(),
        key: caller.key,
        kind: if wanted.scrape.is_some() { SessionKind::Interact } else { SessionKind::Browser },
        page: wanted.scrape.map(|scrape| scrape.page),
        request: &wanted.session,
        default_limit: app.settings.limits.team_sessions,
        metered: app.settings.limits.metered,
        avoid,
        only: None,
    };
    let mut tx = app.db.begin().await?;
    let placed = sessions::create(&mut tx, &new, app.db.now()).await?;
    if let Ok(placed) = &placed {
        commit(app, tx, || async { Ok(sessions::load(&app.db, placed.id).await?.is_some()) }).await?;
    }
    Ok(placed)
}

fn refused(refusal: &NotPlaced, wanted: &CreateSession) -> ApiError {
    match refusal {
        NotPlaced::Taken => ApiError::new(ErrorCode::Conflict, "This scrape has a browser session already."),
        NotPlaced::TooMany { limit } => {
            let text = format!(
                "You have reached the maximum number of concurrent jobs ({limit}) for browser sessions. \
                 Please destroy one, or try again later."
            );
            ApiError::new(ErrorCode::TooManySessions, text).retry_after(RETRY_SECONDS)
        }
        NotPlaced::Short { need, left } => ApiError::new(
            ErrorCode::InsufficientCredits,
            format!(
                "Insufficient credits for a {}s browser session. It needs {need}, and {} are left.",
                wanted.ttl,
                left.max(&0)
            ),
        ),
        NotPlaced::ProfileBusy => ApiError::new(
            ErrorCode::Conflict,
            "Another session is currently writing to this profile. Destroy it first, or set saveChanges to false.",
        ),
        NotPlaced::Full => {
            ApiError::new(ErrorCode::Unavailable, "Every browser of this server is taken. Please try again shortly.")
        }
        NotPlaced::Away => {
            let text = "The worker of the browser session cannot be reached. Please try again.";
            ApiError::new(ErrorCode::Unavailable, text).retry_after(RETRY_SECONDS)
        }
        NotPlaced::NotYet => {
            let text = "Every browser of this server is taken or not there yet: a worker has just started. \
                Please try again shortly.";
            ApiError::new(ErrorCode::Unavailable, text).retry_after(RETRY_SECONDS)
        }
        NotPlaced::NotOffered { why } => {
            let why = why.as_deref().map_or_else(String::new, |why| format!(" ({why})"));
            let text = format!("Browser feature is not configured on this server: no worker takes sessions{why}.");
            ApiError::new(ErrorCode::BrowserNotConfigured, text).retry_after(60)
        }
        NotPlaced::NoWorker => ApiError::new(ErrorCode::Unavailable, "No worker is running. Please try again."),
    }
}

/// Why a session that was placed is not there.
enum NotOpened {
    /// Its worker never heard of it, or has said that it does not take it.
    NotBegun,
    /// Its worker was lost on the way, with nothing done to any site.
    Lost,
    /// With nothing done to any site.
    Failed,
    /// The actions of the scrape that it continues may have been done.
    Acted,
    /// The scrape could not be brought back; the text is for the caller.
    NotReplayed(String),
    /// None of the operator's proxies that it may go through can be reached; the text is for the caller.
    NoProxy(String),
    Store(ApiError),
}

impl From<ApiError> for NotOpened {
    fn from(error: ApiError) -> Self {
        Self::Store(error)
    }
}

/// Returns when the session has ended with its worker. Of a machine that is gone, or a process that hangs, nothing more comes
/// over the connection: the call would wait for all of its time, while another worker has room.
async fn lost_its_worker(app: &App, id: SessionId) {
    loop {
        actix_web::rt::time::sleep(LOST_LOOK).await;
        match sessions::load(&app.db, id).await {
            Ok(Some(row)) if row.end_reason == Some(EndReason::WorkerDied) => return,
            Ok(Some(row)) if row.is_orphan(app.db.now()) => {
                if let Err(error) = end_orphans(app).await {
                    tracing::warn!(session.id = %id, %error, "sessions of dead workers cannot be ended yet");
                }
            }
            // Of what cannot be read nothing is known; the answer may come all the same.
            Ok(_) | Err(_) => {}
        }
    }
}

/// Has the worker start the browser; answers when the row is active. Otherwise the row is destroyed, unbilled.
async fn open(app: &AppData, placed: &Placed, scrape: Option<OfScrape>) -> Result<SessionRow, NotOpened> {
    let id = placed.id;
    let or_acted = |failure| if scrape.is_some_and(|scrape| scrape.acts) { NotOpened::Acted } else { failure };
    let wanted = OpenSession { id, language: scrape.and_then(|scrape| scrape.language) };
    let answer = tokio::select! {
        biased;
        answer = app.workers.open(&placed.address, &wanted) => answer,
        () = lost_its_worker(app, id) => Err(CallError::Lost("it counts as dead".to_owned())),
    };
    let failure = match answer {
        Ok(Ok(_)) => {
            let row = sessions::load(&app.db, id).await.map_err(ApiError::from)?;
            if let Some(row) = row.filter(|row| row.state == SessionState::Active) {
                app.silent_workers.forget(placed.worker);
                tracing::info!(session.id = %id, worker.id = %placed.worker, "a browser session is open");
                return Ok(row);
            }
            or_acted(NotOpened::Failed)
        }
        Ok(Err(refused)) if refused.refusal() == Some(Refusal::NotReplayed) => {
            let why = refused.text;
            tracing::info!(session.id = %id, worker.id = %placed.worker, why, "a scrape could not be brought back");
            NotOpened::NotReplayed(why)
        }
        Ok(Err(refused)) if refused.refusal() == Some(Refusal::NoProxy) => {
            tracing::warn!(session.id = %id, worker.id = %placed.worker, "no proxy of a session can be reached");
            NotOpened::NoProxy(refused.text)
        }
        Ok(Err(refused)) if refused.refusal() == Some(Refusal::NotHere) => {
            let why = refused.text;
            tracing::info!(session.id = %id, worker.id = %placed.worker, why, "a worker does not take a browser session");
            NotOpened::NotBegun
        }
        Ok(Err(why)) => {
            tracing::warn!(session.id = %id, worker.id = %placed.worker, %why, "a browser session was not opened");
            // The others ended the session meanwhile, for they count its worker as dead.
            let is_lost = why.refusal() == Some(Refusal::Conflict);
            or_acted(if is_lost { NotOpened::Lost } else { NotOpened::Failed })
        }
        Err(error @ CallError::Unreachable(_)) => {
            tracing::warn!(session.id = %id, worker.id = %placed.worker, %error, "a browser session was not opened");
            NotOpened::NotBegun
        }
        Err(error @ (CallError::Lost(_) | CallError::Late(_))) => {
            tracing::warn!(session.id = %id, worker.id = %placed.worker, %error, "a browser session was not opened");
            let is_lost = matches!(error, CallError::Lost(_));
            if !is_lost {
                app.silent_workers.note(placed.worker, app.db.clock().instant());
            }
            or_acted(if is_lost { NotOpened::Lost } else { NotOpened::Failed })
        }
    };
    destroy_row(app, id, EndReason::NotOpened, app.db.now()).await?;
    if matches!(failure, NotOpened::Acted) {
        // For the next call, when this one's caller has gone.
        let mut tx = app.db.begin().await.map_err(ApiError::from)?;
        sessions::warn(&mut tx, id, ACTED).await.map_err(ApiError::from)?;
        tx.commit().await.map_err(ApiError::from)?;
    }
    if matches!(failure, NotOpened::Failed | NotOpened::Acted | NotOpened::Lost) {
        // The worker may have started a browser all the same; it is ended in the background.
        let (app, address) = (app.clone(), placed.address.clone());
        actix_web::rt::spawn(async move {
            if let Err(error) = app.workers.close(&address, id).await {
                tracing::warn!(session.id = %id, %error, "the browser of a session that was given up may still run");
            }
        });
    }
    Err(failure)
}
