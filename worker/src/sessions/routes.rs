//! The API's calls about sessions ([`weir_shared::worker_api::sessions`]). WebSockets are in [`crate::relay::routes`].

use std::sync::Arc;
use std::time::Duration;

use actix_web::web::{self, Data, Json, Path};
use serde_json::value::to_raw_value;
use tokio::time::timeout_at;
use weir_shared::clock;
use weir_shared::domain::session::EndReason;
use weir_shared::guests::Urgency;
use weir_shared::ids::SessionId;
use weir_shared::llm::TokenMeter;
use weir_shared::worker_api::Refusal;
use weir_shared::worker_api::sessions::{
    CLOSE, CodeOutput, Done, EXECUTE, ExecuteCode, OPEN, OpenSession, PROMPT, PromptOutput, RunPrompt,
};

use super::{OpenError, PromptError, Session};
use crate::agent::TaskOutcome;
use crate::calls::{FromApi, Refused};
use crate::context::Process;
use crate::exec::{ExecError, Execution};

/// What is kept of the time for an answer when more is looked for that could be said in it.
const LAST_WORD: Duration = Duration::from_millis(500);

/// Registers the calls.
pub fn configure(config: &mut web::ServiceConfig) {
    config
        .route(OPEN, web::post().to(open))
        .route(CLOSE.pattern(), web::delete().to(close))
        .route(EXECUTE.pattern(), web::post().to(execute))
        .route(PROMPT.pattern(), web::post().to(prompt));
}

type Reply<T> = Result<Json<T>, Refused>;

async fn open(_: FromApi, process: Data<Process>, body: Json<OpenSession>) -> Reply<Done> {
    let sessions = process.sessions().ok_or_else(|| Refused::new(Refusal::NotHere, "this worker takes no sessions"))?;
    match sessions.open(body.id, body.language).await {
        Ok(()) => Ok(Json(Done {})),
        Err(error @ OpenError::NoProxy) => Err(Refused::new(Refusal::NoProxy, error)),
        Err(OpenError::Replay(why)) => Err(Refused::new(Refusal::NotReplayed, why)),
        Err(error @ (OpenError::NotOurs | OpenError::Stopping)) => Err(Refused::new(Refusal::NotHere, error)),
        Err(error @ OpenError::NotOpening) => Err(Refused::new(Refusal::Conflict, error)),
        Err(error) => Err(Refused::new(Refusal::Unavailable, error)),
    }
}

async fn close(_: FromApi, process: Data<Process>, id: Path<SessionId>) -> Reply<Done> {
    let sessions = process.sessions().ok_or_else(Refused::unknown_session)?;
    // In a task of its own: the end goes on when the caller hangs up.
    let closing = tokio::spawn(async move { sessions.close(*id, EndReason::Deleted).await });
    match closing.await {
        Ok(true) => Ok(Json(Done {})),
        Ok(false) => Err(Refused::unknown_session()),
        Err(error) => Err(Refused::new(Refusal::Unavailable, error)),
    }
}

/// The open session.
fn find(process: &Process, id: SessionId) -> Result<Arc<Session>, Refused> {
    process.sessions().and_then(|sessions| sessions.find(id)).ok_or_else(Refused::unknown_session)
}

fn ended() -> Refused {
    Refused::new(Refusal::Ended, "the session has ended")
}

async fn execute(
    _: FromApi,
    process: Data<Process>,
    id: Path<SessionId>,
    body: Json<ExecuteCode<'static>>,
) -> Reply<CodeOutput> {
    let session = find(&process, *id)?;
    let wanted = body.into_inner();
    let (language, bounds) = (wanted.language, wanted.bounds);
    let told_by = clock::deadline(bounds.answer.saturating_sub(LAST_WORD));
    // The code goes on when the caller hangs up, as it would for one who waits.
    let running = tokio::spawn(async move {
        let mut done = session.execute(language, &wanted.code, bounds).await;
        if let Some(Ok(run)) = &mut done
            && (run.killed || run.exit_code != 0)
            && let Ok(Some(why)) = timeout_at(told_by, session.proxy_trouble()).await
        {
            let said = run.error.take().unwrap_or_else(|| run.stderr.trim().to_owned());
            run.error = Some(with_cause(&said, why));
        }
        done
    });
    let metrics = &process.metrics;
    match running.await {
        Ok(Some(Ok(run))) => {
            metrics.executed(language.as_str(), word(run.killed, run.exit_code == 0));
            Ok(Json(output(run)))
        }
        Ok(Some(Err(error))) => {
            metrics.executed(language.as_str(), "error");
            tracing::warn!(session.id = %id, %error, "code could not be run");
            let refusal = match error {
                ExecError::Busy => Refusal::Conflict,
                ExecError::Blocked => Refusal::PageBlocked,
                _ => Refusal::Failed,
            };
            Err(Refused::new(refusal, error))
        }
        Ok(None) => Err(ended()),
        Err(error) => Err(Refused::new(Refusal::Failed, error)),
    }
}

/// What was said of a failure, with what is behind it.
fn with_cause(said: &str, why: &str) -> String {
    if said.is_empty() { why.to_owned() } else { format!("{said}\n{why}") }
}

fn output(run: Execution) -> CodeOutput {
    CodeOutput {
        stdout: Some(run.stdout),
        result: run.result,
        stderr: Some(run.stderr),
        exit_code: Some(i64::from(run.exit_code)),
        killed: run.killed,
        error: run.error,
        truncated: run.truncated,
    }
}

/// How a call ended, for the figures.
fn word(killed: bool, is_success: bool) -> &'static str {
    match (killed, is_success) {
        (true, _) => "killed",
        (false, true) => "ok",
        (false, false) => "failed",
    }
}

async fn prompt(
    _: FromApi,
    process: Data<Process>,
    id: Path<SessionId>,
    body: Json<RunPrompt<'static>>,
) -> Reply<PromptOutput> {
    let session = find(&process, *id)?;
    let Some(model) = process.asker((session.team, Urgency::Direct)) else {
        return Err(Refused::new(Refusal::NoModel, "this worker has no language model"));
    };
    let RunPrompt { prompt, bounds, key } = body.into_inner();
    // The agent goes on when the caller hangs up, as code does.
    let inner = process.clone();
    let running = tokio::spawn(async move {
        let meter = TokenMeter::default();
        let mut outcome = session.prompt(&model, &prompt, bounds.run, &meter).await;
        if let Some(Ok(done)) = &mut outcome
            && !done.success
            && let Some(why) = session.proxy_trouble().await
        {
            done.error = Some(with_cause(done.error.as_deref().unwrap_or_default(), why));
        }
        inner.spent(session.team, key, meter.read()).await;
        outcome
    });
    let refused = match running.await {
        Ok(Some(Ok(outcome))) => {
            process.metrics.agent_steps.inc_by(outcome.steps.len() as u64);
            process.metrics.executed("prompt", word(outcome.killed, outcome.success));
            return prompt_output(outcome).map(Json);
        }
        Ok(Some(Err(PromptError::Busy))) => Refused::new(Refusal::Conflict, PromptError::Busy),
        Ok(Some(Err(error))) => {
            tracing::warn!(session.id = %id, %error, "a prompt was not worked on");
            Refused::new(Refusal::Failed, error)
        }
        Ok(None) => ended(),
        Err(_) => Refused::new(Refusal::Failed, "internal error"),
    };
    process.metrics.executed("prompt", "error");
    Err(refused)
}

fn prompt_output(outcome: TaskOutcome) -> Result<PromptOutput, Refused> {
    let TaskOutcome { success, output, result, error, killed, steps } = outcome;
    let steps = to_raw_value(&steps).map_err(|error| Refused::new(Refusal::Failed, error))?;
    Ok(PromptOutput { success, output, result, error, killed, steps })
}

/// The sessions of whichever life the worker is in, for the relay.
pub struct OfProcess(pub Arc<Process>);

impl crate::relay::Sessions for OfProcess {
    fn find(&self, id: SessionId) -> Option<Arc<crate::relay::SessionHandle>> {
        self.0.sessions()?.find(id)?.handle()
    }
}
