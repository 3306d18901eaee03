//! `POST /v2/scrape/{jobId}/interact` (spec 4.5): code or a task in the browser that continues a scrape.
//!
//! The first call opens the session, and every further one finds it by the scrape's page. A 502 is sent only when
//! nothing was done: the official clients send the same request again (wire 1.6).

use std::time::Duration;

use actix_web::web::{Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;
use weir_shared::clock;
use weir_shared::domain::action::Action;
use weir_shared::domain::describe::Reading;
use weir_shared::domain::interact::{Instruction, InteractRequest, parse_interact};
use weir_shared::domain::job::{JobKind, PageState};
use weir_shared::domain::profile::ProfileUse;
use weir_shared::domain::session::{CreateSession, EndReason, SessionState};
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{PageId, SessionId};
use weir_shared::store::contents::retention;
use weir_shared::store::sessions::{self, SessionRow};
use weir_shared::store::work::{jobs, pages};
use weir_shared::worker_api::Refusal;
use weir_shared::worker_api::sessions::{CodeOutput, ExecuteCode, PromptOutput, RunBounds, RunPrompt};

use super::{forbidden, opened, still_opening};
use crate::app::{App, AppData};
use crate::callers::auth::Caller;
use crate::callers::limits::Bucket;
use crate::endpoints::browser::execute::Ran;
use crate::endpoints::browser::opening::{self, OfScrape, Wanted};
use crate::endpoints::browser::{Addresses, destroy_row, execute, gone, joined, load_own};
use crate::error::{ApiError, ApiResult};
use crate::http::extract;
use crate::openapi::{Group, Operation};
use crate::workers::worker_client::CallError;

/// What an answer may take past `timeout`: clients wait 5 s longer (wire 1.10).
const MARGIN: Duration = Duration::from_millis(4_500);
/// How much of that the opening of a session may use before it takes time from what is run.
const OPENING_FREE: Duration = Duration::from_secs(2);
/// What is run gets at least this long.
const RUN_AT_LEAST: Duration = Duration::from_secs(1);
/// What is kept of the time for a run that begins at the last moment, and for its answer.
const LAST_RUN: Duration = Duration::from_secs(2);

/// How long the failure of an opening that nobody has waited for is kept for the next call.
const FAILURE_KEPT_MS: i64 = 600_000;

const NO_MODEL: &str = "Prompts need a language model, and none is configured on this server (WEIR_LLM_URL, \
    WEIR_LLM_MODEL). Code works without one.";

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Body {
    success: bool,
    session_id: SessionId,
    #[serde(flatten)]
    addresses: Addresses,
    #[schemars(extend("format" = "date-time"))]
    expires_at: String,
    #[serde(flatten)]
    done: Done,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

/// What came of the call (spec 2.2).
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Done {
    #[serde(flatten)]
    ran: Ran,
    /// The agent's final answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    /// What the agent saw, did and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Box<RawValue>>,
}

impl From<CodeOutput> for Done {
    fn from(output: CodeOutput) -> Self {
        Self { ran: output.into(), output: None, steps: None }
    }
}

impl From<PromptOutput> for Done {
    fn from(done: PromptOutput) -> Self {
        let ran = Ran {
            stdout: None,
            result: done.result,
            stderr: None,
            exit_code: Some(i64::from(!done.success)),
            killed: done.killed,
            error: done.error,
            truncated: false,
        };
        Self {
            ran,
            // Clients read the field whenever there was a prompt.
            output: Some(done.output.unwrap_or_default()),
            steps: Some(done.steps),
        }
    }
}

impl Done {
    /// Whether it was done without errors (wire 8.2).
    fn is_success(&self) -> bool {
        self.ran.exit_code == Some(0) && !self.ran.killed
    }
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "Runs code, or has an agent work on a prompt, in a browser that stands on the scraped page. The first call \
        opens it; every further one finds it as the last left it. Exactly one of `code` and `prompt`; prompts need a \
        language model. `id` is a document's `metadata.scrapeId`.";
    let read = |body: &Value| parse_interact(body).map(Reading::of);
    Operation::new(Group::Interact, "interact", "Go on from a scrape", text)
        .body(
            "InteractRequest",
            read,
            vec![
                ("Code", json!({"code": "await page.title()"})),
                ("A prompt", json!({"prompt": "Which links are there?", "timeout": 120})),
            ],
        )
        .answer::<Body>("It was done; `success` says whether without errors.")
        .errors(&[402, 403, 404, 409, 410, 502])
}

/// Handles the request.
///
/// # Errors
/// Every row of spec 7 for interact; 400 for the body or a malformed id.
pub async fn handle(app: AppData, request: HttpRequest, id: Path<String>, payload: Payload) -> ApiResult<HttpResponse> {
    let called = clock::instant();
    let caller = app.authorize(&request, Bucket::Execute).await?;
    let id: PageId = extract::path_id(&id)?;
    let (wanted, _room) = extract::json(&app, &caller, &request, payload, parse_interact).await?;
    let outcome = interact(&app, &caller, id, &wanted, called).await;
    let word = match &outcome {
        Ok((_, done)) if done.ran.killed => "killed",
        Ok((_, done)) if done.is_success() => "ok",
        Ok(_) => "failed",
        Err(_) => "error",
    };
    app.metrics.executed(wanted.instruction.word(), word);
    let (row, done) = outcome?;
    let warning = joined(wanted.warning, row.warning);
    Ok(HttpResponse::Ok().json(Body {
        success: done.is_success(),
        session_id: row.id,
        addresses: Addresses::new(&app.base_url(&request), &app.internal_secret, row.id),
        expires_at: row.expires_at.to_iso(),
        done,
        warning,
    }))
}

async fn interact(
    app: &AppData,
    caller: &Caller,
    page: PageId,
    wanted: &InteractRequest,
    called: Instant,
) -> ApiResult<(SessionRow, Done)> {
    let timeout = Duration::from_millis(wanted.timeout_ms.unsigned_abs());
    let row = session(app, caller, page, wanted, called + timeout + MARGIN - LAST_RUN).await?;
    if row.state != SessionState::Active {
        return Err(gone());
    }
    let bounds = left(timeout, called.elapsed());
    let done = match &wanted.instruction {
        Instruction::Code { code, language } => {
            let code = ExecuteCode { code: code.into(), language: *language, bounds };
            execute::run(app, caller, &row, &code).await?.into()
        }
        Instruction::Prompt(prompt) => ask(app, caller, &row, prompt, bounds).await?.into(),
    };
    Ok((row, done))
}

/// What a run may take when so much of the call has passed. What the opening took beyond its share is taken from the run, so
/// that the caller still waits for the answer.
fn left(timeout: Duration, passed: Duration) -> RunBounds {
    let run = timeout.saturating_sub(passed.saturating_sub(OPENING_FREE)).max(RUN_AT_LEAST);
    RunBounds { run, answer: (timeout + MARGIN).saturating_sub(passed) }
}

/// The scrape's session: as it is, or made now.
async fn session(
    app: &AppData,
    caller: &Caller,
    page: PageId,
    wanted: &InteractRequest,
    deadline: Instant,
) -> ApiResult<SessionRow> {
    check_page(app, caller, page).await?;
    if matches!(wanted.instruction, Instruction::Prompt(_)) && app.settings.model.is_none() {
        return Err(ApiError::new(ErrorCode::BrowserNotConfigured, NO_MODEL));
    }
    loop {
        if let Some(row) = opened(app, page, deadline).await? {
            // Loaded again, because a session whose worker is dead is destroyed first.
            return load_own(app, caller, row.id).await;
        }
        let (profile, acts) = check_replay(app, caller, page).await?;
        // Not begun anew silently: this call may be the first to hear of it, and what was done is done again.
        if let Some(why) = untold_failure(app, caller, page).await? {
            let again = if acts { " and repeats the scrape's actions" } else { "" };
            let text = format!(
                "{why} This came of an earlier call, which had gone by then. The same request begins anew{again}."
            );
            return Err(ApiError::new(ErrorCode::Conflict, text));
        }
        let language = match &wanted.instruction {
            Instruction::Code { language, .. } => Some(*language),
            Instruction::Prompt(_) => None,
        };
        let start = Wanted {
            session: CreateSession { profile, ..wanted.session.clone() },
            scrape: Some(OfScrape { page, acts, language }),
        };
        // A task of its own: the session opens also when nobody waits any more.
        let started = actix_web::rt::spawn(opening::start(app.clone(), caller.clone(), start));
        match tokio::time::timeout_at(deadline, started).await {
            Ok(started) => match started.map_err(|e| ApiError::internal(&e))? {
                // Another call was first: its session is there, or on its way.
                Err(error) if error.code() == ErrorCode::Conflict && has_session(app, page).await? => {}
                Err(error) => {
                    // This caller hears it.
                    untold_failure(app, caller, page).await?;
                    return Err(error);
                }
                Ok(row) => return Ok(row),
            },
            Err(_) => return Err(still_opening()),
        }
    }
}

/// Why the session of an earlier call did not open, if that call did not wait for it. Nobody is told it a second time.
async fn untold_failure(app: &App, caller: &Caller, page: PageId) -> ApiResult<Option<String>> {
    let since = app.db.now().plus_ms(-FAILURE_KEPT_MS);
    Ok(sessions::take_failure(&app.db, caller.team_id(), page, since).await?)
}

async fn has_session(app: &App, page: PageId) -> ApiResult<bool> {
    Ok(sessions::of_page(&app.db, page).await?.is_some())
}

/// # Errors
/// 404 when there is no such scrape (any more), 403 when it is another team's.
async fn check_page(app: &App, caller: &Caller, id: PageId) -> ApiResult<()> {
    let not_found = || ApiError::new(ErrorCode::NotFound, "Job not found.");
    let page = pages::load(&app.db, id).await?.ok_or_else(not_found)?;
    if page.team_id != caller.team_id() {
        return Err(forbidden());
    }
    let job = jobs::load(&app.db, page.job_id).await?;
    if job.is_none_or(|job| job.kind == JobKind::Map || job.has_expired(app.db.now())) {
        return Err(not_found());
    }
    Ok(())
}

/// What of a scrape the session begins with besides its page: its profile, and whether actions are done again.
///
/// # Errors
/// 409 when the scrape left nothing that could be brought back.
async fn check_replay(app: &App, caller: &Caller, id: PageId) -> ApiResult<(Option<ProfileUse>, bool)> {
    let page = pages::load(&app.db, id).await?.filter(|page| page.state == PageState::Done);
    if let Some(page) = page
        && !caller.team.zero_data_retention
        && !retention::is_zero(&app.db, page.job_id).await?
    {
        let options = jobs::spec(&app.db, page.job_id).await?.map(|spec| spec.options).unwrap_or_default();
        return Ok((options.profile, options.actions.iter().any(Action::acts_again)));
    }
    let text = "Replay context is unavailable for this scrape. Rerun the scrape and try again.";
    Err(ApiError::new(ErrorCode::Conflict, text))
}

/// Has the agent work on a task.
async fn ask(app: &App, caller: &Caller, row: &SessionRow, prompt: &str, bounds: RunBounds) -> ApiResult<PromptOutput> {
    let failed = |why: &str| {
        let text = format!("Browser agent failed to execute the task: {why}.");
        ApiError::new(ErrorCode::BrowserFailed, text)
    };
    let owner = row.worker.as_ref().ok_or_else(gone)?;
    let task = RunPrompt { prompt: prompt.into(), bounds, key: caller.key };
    match app.workers.prompt(&owner.address, row.id, &task).await {
        Ok(Ok(output)) => Ok(output),
        Ok(Err(refused)) => match refused.refusal() {
            Some(Refusal::Ended) => Err(gone()),
            Some(Refusal::NoModel) => Err(ApiError::new(ErrorCode::BrowserNotConfigured, NO_MODEL)),
            Some(Refusal::Conflict) => {
                let text = "Another prompt is still being worked on in this session. Please try again.";
                Err(ApiError::new(ErrorCode::Unavailable, text))
            }
            Some(Refusal::UnknownSession) => {
                // As for code: its worker was restarted and does not have the session.
                destroy_row(app, row.id, EndReason::Crashed, row.last_activity).await?;
                Err(gone())
            }
            _ => {
                tracing::warn!(session.id = %row.id, why = refused.text, "a prompt was not worked on");
                Err(failed(&refused.text))
            }
        },
        Err(error) => {
            tracing::warn!(session.id = %row.id, %error, "a prompt got no answer");
            let row = load_own(app, caller, row.id).await?;
            match error {
                _ if row.state != SessionState::Active => Err(gone()),
                CallError::Unreachable(_) => Err(failed("its worker cannot be reached")),
                CallError::Lost(_) | CallError::Late(_) => {
                    let text = "The connection to the browser session was lost while the agent worked; \
                        some of the task may be done.";
                    Err(ApiError::new(ErrorCode::Unavailable, text))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_comes_while_its_caller_waits_however_long_the_opening_takes() {
        let seconds = Duration::from_secs_f64;
        let bounds = |run, answer| RunBounds { run: seconds(run), answer: seconds(answer) };
        assert_eq!(left(seconds(30.0), seconds(0.5)), bounds(30.0, 34.0));
        assert_eq!(left(seconds(5.0), seconds(3.5)), bounds(3.5, 6.0));
        for timeout in [1.0, 5.0, 30.0] {
            let latest = seconds(timeout) + MARGIN - LAST_RUN;
            for passed in [0.0, 1.9, 2.1, 3.0, 5.0, 20.0, 40.0].map(seconds).into_iter().filter(|at| *at <= latest) {
                let RunBounds { run, answer } = left(seconds(timeout), passed);
                // Clients wait so long (wire 1.10).
                assert!(passed + answer < seconds(timeout + 5.0), "{timeout} {passed:?}");
                assert!(run >= RUN_AT_LEAST && run < answer, "{timeout} {passed:?}: {run:?} of {answer:?}");
            }
        }
    }
}
