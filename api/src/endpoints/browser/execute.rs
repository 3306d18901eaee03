//! `POST /v2/browser/{id}/execute` (spec 4.4, wire 8.2): code that drives the session's browser.
//!
//! Code that failed or ran into its timeout is a normal answer. A 502 is sent only when the code was not run: the
//! official clients send the same request again (wire 1.6).

use std::time::Duration;

use actix_web::web::{Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use weir_shared::domain::describe::Reading;
use weir_shared::domain::session::{EndReason, SessionState, parse_execute};
use weir_shared::error_code::ErrorCode;
use weir_shared::store::sessions::SessionRow;
use weir_shared::worker_api::Refusal;
use weir_shared::worker_api::sessions::{CodeOutput, ExecuteCode, RunBounds};

use super::{destroy_row, gone, load_own, session_id};
use crate::app::{App, AppData};
use crate::callers::auth::Caller;
use crate::callers::limits::Bucket;
use crate::error::{ApiError, ApiResult};
use crate::http::extract;
use crate::openapi::{Group, Operation};
use crate::workers::worker_client::CallError;

/// Seconds after which a session may have ended what it runs.
const BUSY_SECONDS: u64 = 2;
/// What `error` says when code failed without a word.
const FAILED: &str = "Execution failed";

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Body {
    /// The code was run, whatever came of it.
    success: bool,
    #[serde(flatten)]
    ran: Ran,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

// What came of code, as this answer and that of interact have it (spec 2.2). The API's document would show a doc comment.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::endpoints) struct Ran {
    pub stdout: Option<String>,
    pub result: Option<String>,
    pub stderr: Option<String>,
    pub exit_code: Option<i64>,
    pub killed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

impl From<CodeOutput> for Ran {
    fn from(output: CodeOutput) -> Self {
        let error = error_of(&output);
        Self {
            // The last expression's value if there is one, else the output (wire 14).
            result: output.result.or_else(|| output.stdout.clone()),
            stdout: output.stdout,
            stderr: output.stderr,
            exit_code: output.exit_code,
            killed: output.killed,
            error,
            truncated: output.truncated,
        }
    }
}

/// What to say of code that failed: its own words, or that it did. `None`: it did not.
fn error_of(output: &CodeOutput) -> Option<String> {
    let failed = output.killed || output.exit_code != Some(0);
    let said = output.stderr.as_deref().map(str::trim).filter(|text| !text.is_empty()).unwrap_or(FAILED);
    output.error.clone().or_else(|| failed.then(|| said.to_owned()))
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "Runs code in a box beside the session's browser: node and python have `page`, `context` and `browser` of \
        Playwright and keep their state from call to call, bash has agent-browser. Code that failed or ran into its timeout \
        is a normal answer with an `error`.";
    let read = |body: &serde_json::Value| parse_execute(body).map(Reading::of);
    Operation::new(Group::Browser, "executeInBrowserSession", "Run code", text)
        .body(
            "ExecuteRequest",
            read,
            vec![
                ("Playwright in node", json!({"code": "await page.goto('https://example.com'); await page.title()"})),
                ("The same in python", json!({"code": "await page.title()", "language": "python", "timeout": 60})),
                ("agent-browser", json!({"code": "agent-browser snapshot -i", "language": "bash"})),
            ],
        )
        .answer::<Body>("The code was run.")
        .example(json!({
            "success": true, "stdout": "", "result": "Example Domain", "stderr": "", "exitCode": 0, "killed": false,
        }))
        .errors(&[403, 404, 410, 502])
}

/// Handles the request.
///
/// # Errors
/// 400 for the body, 404 for an unknown or forgotten session, 403 for another team's, 410 for one that has ended, 502
/// when the code was not run, 503 when it may have been and its outcome is lost, or other code took all its time.
pub async fn handle(app: AppData, request: HttpRequest, id: Path<String>, payload: Payload) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Execute).await?;
    let id = session_id(&id)?;
    let (mut wanted, _room) = extract::json(&app, &caller, &request, payload, parse_execute).await?;
    let warning = wanted.warning.take();
    let row = load_own(&app, &caller, id).await?;
    let bounds = RunBounds::of(Duration::from_secs(wanted.timeout.unsigned_abs()));
    let code = ExecuteCode { code: wanted.code.into(), language: wanted.language, bounds };
    let output = run(&app, &caller, &row, &code).await;
    app.metrics.executed(wanted.language.as_str(), outcome(&output));
    Ok(HttpResponse::Ok().json(Body { success: true, ran: output?.into(), warning }))
}

/// Runs code in a session of the caller's.
///
/// # Errors
/// As [`handle`] says of 410, 502 and 503.
pub(in crate::endpoints) async fn run(
    app: &App,
    caller: &Caller,
    row: &SessionRow,
    code: &ExecuteCode<'_>,
) -> ApiResult<CodeOutput> {
    if row.state != SessionState::Active {
        return Err(gone());
    }
    let not_run = || ApiError::new(ErrorCode::BrowserFailed, "Failed to execute code in browser session.");
    let owner = row.worker.as_ref().ok_or_else(gone)?;
    match app.workers.execute(&owner.address, row.id, code).await {
        Ok(Ok(output)) => Ok(output),
        Ok(Err(refused)) => match refused.refusal() {
            Some(Refusal::Ended) => Err(gone()),
            // Clients would send again at once what is answered 502 (wire 1.6).
            Some(Refusal::Conflict) => {
                let text = "Other code is still running in this session; this was not run. Please try again.";
                Err(ApiError::new(ErrorCode::Unavailable, text).retry_after(BUSY_SECONDS))
            }
            Some(Refusal::PageBlocked) => {
                let text = "Failed to execute code in browser session: a page of it did not answer, because a script of \
                    the page ran without end. Nothing was run. The script was stopped where that was possible.";
                Err(ApiError::new(ErrorCode::BrowserFailed, text))
            }
            Some(Refusal::UnknownSession) => {
                // Its worker was restarted, or another one has its address now: billed up to the last use only.
                destroy_row(app, row.id, EndReason::Crashed, row.last_activity).await?;
                Err(gone())
            }
            _ => {
                tracing::warn!(session.id = %row.id, why = %refused, "code was not run");
                Err(not_run())
            }
        },
        Err(error) => {
            tracing::warn!(session.id = %row.id, %error, "an execution got no answer");
            let row = load_own(app, caller, row.id).await?;
            match error {
                _ if row.state != SessionState::Active => Err(gone()),
                CallError::Unreachable(_) => Err(not_run()),
                CallError::Lost(_) | CallError::Late(_) => {
                    let text = "The connection to the browser session was lost while the code ran; it may have run.";
                    Err(ApiError::new(ErrorCode::Unavailable, text))
                }
            }
        }
    }
}

/// The word for the figures.
fn outcome(output: &ApiResult<CodeOutput>) -> &'static str {
    match output {
        Ok(output) if output.killed => "killed",
        Ok(output) if output.exit_code == Some(0) => "ok",
        Ok(_) => "failed",
        Err(_) => "error",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::{Value, json};

    use super::*;

    fn body(output: Value) -> Value {
        let output: CodeOutput = serde_json::from_value(output).unwrap();
        serde_json::to_value(Body { success: true, ran: output.into(), warning: None }).unwrap()
    }

    #[test]
    fn a_result_is_the_last_value_or_else_the_output() {
        let ran = json!({"stdout": "a\n", "result": "1", "stderr": "", "exitCode": 0, "killed": false, "error": null});
        let mut expected = json!({"success": true, "stdout": "a\n", "result": "1", "stderr": "", "exitCode": 0});
        expected["killed"] = json!(false);
        assert_eq!(body(ran), expected);
        let silent = body(json!({"stdout": "a\n", "result": null, "stderr": "", "exitCode": 0}));
        assert_eq!(silent["result"], "a\n");
    }

    #[test]
    fn code_that_failed_says_so_in_words() {
        let failed = body(json!({"stdout": "", "stderr": " no such page\n", "exitCode": 1}));
        assert_eq!((&failed["success"], &failed["error"]), (&json!(true), &json!("no such page")));
        let mute = body(json!({"stdout": "", "stderr": "", "exitCode": 137, "killed": true, "truncated": true}));
        assert_eq!((&mute["error"], &mute["truncated"]), (&json!(FAILED), &json!(true)));
        let told = body(json!({"stderr": "x", "exitCode": 124, "killed": true, "error": "Timed out after 3 s"}));
        assert_eq!(told["error"], "Timed out after 3 s");
    }
}
