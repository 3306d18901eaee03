//! Calls about browser sessions: open, close, execute, prompt, and what Chromium says of itself.
//!
//! Opening answers when the session's row is active, closing when it is destroyed. Work that was begun goes on when the
//! caller hangs up. A caller repeats `execute` and `prompt` only where the worker never saw the call.

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
    /// How long it may run, milliseconds.
    pub timeout_ms: u64,
    /// How long its answer is waited for, milliseconds, where that is not its timeout and [`ANSWER_GRACE`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_in_ms: Option<u64>,
}

impl ExecuteCode<'_> {
    /// How long it may run.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    /// How long its answer is waited for.
    pub fn answer_in(&self) -> Duration {
        self.answer_in_ms.map_or(self.timeout() + ANSWER_GRACE, Duration::from_millis)
    }
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
    /// How long the agent may work, milliseconds.
    pub timeout_ms: u64,
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
