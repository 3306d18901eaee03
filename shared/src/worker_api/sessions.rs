//! Calls about browser sessions: open, close, execute, prompt, and what Chromium says of itself.
//!
//! Opening answers when the session's row is active, closing when it is destroyed. Work that was begun goes on when the
//! caller hangs up. A caller repeats `execute` and `prompt` only where the worker never saw the call.
//!
//! What a run may take, from the call of a client that waits 5 s past its timeout (wire 1.10):
//!
//! ```text
//! called          asked                                                     answer      + timeout + 5 s
//!   |-- opening ----|-- in line ----|-- run --------------|-- last output ----|-- way --------|
//!                   |<---------------- RunBounds::answer -------------------->|
//!
//! API, interact   OPENING_FREE      of the opening takes nothing from the run
//!                 LAST_RUN          is left of the answer's time, or the opening is waited for no more
//!                 RUN_AT_LEAST      is what the run gets, whatever the opening took
//!                 MARGIN            past its timeout the answer is due
//! API, execute    ANSWER_GRACE      past its run the answer is due
//! worker, drive   IN_LINE_AT_LEAST  before the run has to end, or all of it, nobody stands in line any more
//!                 LAST_MOMENT       before the answer is due the run ends
//! worker          LAST_WORD         before the answer is due nothing more is asked about a failure
//! ```

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::SessionPath;
use crate::domain::session::Language;
use crate::ids::{KeyId, SessionId};

/// `POST` an [`OpenSession`], answered with [`Done`].
pub const OPEN: &str = "/sessions";
/// `DELETE`, answered with [`Done`]. Harmless when repeated.
pub const CLOSE: SessionPath = SessionPath("/sessions/{id}");
/// `POST` an [`ExecuteCode`], answered with a [`CodeOutput`].
pub const EXECUTE: SessionPath = SessionPath("/sessions/{id}/execute");
/// `POST` a [`RunPrompt`], answered with a [`PromptOutput`].
pub const PROMPT: SessionPath = SessionPath("/sessions/{id}/prompt");
/// `GET`, answered with a JSON object: Chromium's `/json/version` without its addresses.
pub const VERSION: SessionPath = SessionPath("/sessions/{id}/version");

/// What the answer of a run may take past the run's own timeout: clients wait 5 s longer (wire 1.10).
pub const ANSWER_GRACE: Duration = Duration::from_secs(4);

/// Start the browser of a session that is placed on this worker.
#[derive(Debug, Serialize, Deserialize)]
pub struct OpenSession {
    pub id: SessionId,
    /// Whose runner is started beside the browser. A worker of another release may not know it, and starts none.
    #[serde(default, deserialize_with = "known_language")]
    pub language: Option<Language>,
}

/// What a run may take, seen from the moment at which the worker is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WireBounds", into = "WireBounds")]
pub struct RunBounds {
    /// So long what is run may take.
    pub run: Duration,
    /// So long its answer is waited for: longer than the run.
    pub answer: Duration,
}

impl RunBounds {
    /// Of a run whose answer may take [`ANSWER_GRACE`] more.
    pub const fn of(run: Duration) -> Self {
        Self { run, answer: run.saturating_add(ANSWER_GRACE) }
    }
}

/// As it stands in bodies, milliseconds. Without the second it is that of [`RunBounds::of`].
#[derive(Serialize, Deserialize)]
struct WireBounds {
    timeout_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer_in_ms: Option<u64>,
}

impl From<WireBounds> for RunBounds {
    fn from(wire: WireBounds) -> Self {
        let of_run = Self::of(Duration::from_millis(wire.timeout_ms));
        Self { answer: wire.answer_in_ms.map_or(of_run.answer, Duration::from_millis), ..of_run }
    }
}

impl From<RunBounds> for WireBounds {
    fn from(bounds: RunBounds) -> Self {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let is_usual = bounds == RunBounds::of(bounds.run);
        Self { timeout_ms: ms(bounds.run), answer_in_ms: (!is_usual).then(|| ms(bounds.answer)) }
    }
}

fn known_language<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Language>, D::Error> {
    let word = Option::<String>::deserialize(value)?;
    Ok(word.and_then(|word| word.parse().ok()))
}

/// It is done; there is nothing to say of it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Done {}

/// Run code in a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExecuteCode<'a> {
    pub code: Cow<'a, str>,
    pub language: Language,
    #[serde(flatten)]
    pub bounds: RunBounds,
}

/// What code left (spec 2.2).
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CodeOutput {
    pub stdout: Option<String>,
    /// The value of the last expression, or the output.
    pub result: Option<String>,
    pub stderr: Option<String>,
    pub exit_code: Option<i64>,
    /// It ran into its timeout.
    #[serde(default)]
    pub killed: bool,
    pub error: Option<String>,
    /// Output was cut.
    #[serde(default)]
    pub truncated: bool,
}

/// Have the agent work on a task in a session.
#[derive(Debug, Serialize, Deserialize)]
pub struct RunPrompt<'a> {
    pub prompt: Cow<'a, str>,
    #[serde(flatten)]
    pub bounds: RunBounds,
    /// Whose tokens it spends.
    #[serde(default)]
    pub key: Option<KeyId>,
}

/// What the agent left.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptOutput {
    /// The model says that the task is done.
    pub success: bool,
    /// Its final answer.
    pub output: Option<String>,
    /// The last snapshot of the page.
    pub result: Option<String>,
    pub error: Option<String>,
    /// It ran into the timeout.
    pub killed: bool,
    /// What it saw, did and why: a JSON list, which the API passes on as it is.
    pub steps: Box<RawValue>,
}
