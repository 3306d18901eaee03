//! Extractions and agents (wire 22, 23): what a task is asked for, what bounds it, and what came of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::api_version::ApiVersion;
use super::words::words;

/// Credits that a team must have for a task to begin (wire 22, 23).
pub const UP_FRONT: i64 = 20;
/// What the language model's reading of one document costs, and one turn of an agent (docs/decisions).
pub const READING: i64 = 4;
pub const TURN: i64 = 1;
/// Most credits of an agent that does not say.
pub const DEFAULT_MAX_CREDITS: i64 = 2_500;
/// Most addresses that an extraction is given.
pub const MAX_URLS: i64 = 10;
/// Most addresses that an agent is given.
pub const MAX_AGENT_URLS: i64 = 100;
/// Most pages of one task.
pub const MAX_PAGES: usize = 200;
/// Pages of an extraction that does not say.
pub const DEFAULT_PAGES: usize = 50;
/// Longest prompt, characters.
pub const MAX_PROMPT: i64 = 10_000;
/// Tokens sent and received by one task.
pub const MAX_TOKENS: i64 = 2_000_000;
/// How long a task may take, milliseconds.
pub const MAX_TIME_MS: i64 = 30 * 60_000;
/// Documents and questions that are read at once.
pub const AT_ONCE: usize = 4;

/// What a task is to do, as it lies in its row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum TaskSpec {
    Extract(ExtractSpec),
    Agent(AgentSpec),
}

impl TaskSpec {
    /// The addresses that were given.
    pub fn urls(&self) -> &[String] {
        match self {
            Self::Extract(spec) => &spec.urls,
            Self::Agent(spec) => &spec.urls,
        }
    }

    /// What is asked for in words.
    pub fn prompt(&self) -> Option<&str> {
        match self {
            Self::Extract(spec) => spec.prompt.as_deref(),
            Self::Agent(spec) => Some(&spec.prompt),
        }
    }
}

/// Data out of named pages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExtractSpec {
    /// As they came; one that ends in `/*` is a whole site below that path.
    pub urls: Vec<String>,
    pub prompt: Option<String>,
    pub schema: Option<Value>,
    /// What the caller says to the model besides.
    pub system_prompt: Option<String>,
    /// Pages are looked for by a search, too.
    pub web_search: bool,
    pub include_subdomains: bool,
    pub ignore_sitemap: bool,
    /// The answer says which pages each field comes from.
    pub show_sources: bool,
    /// Pages are read as they are scraped, without the language model once it is known how; there is a schema.
    pub learn: bool,
    /// Most pages, 1 upwards.
    pub limit: usize,
    /// For everything, milliseconds.
    pub timeout: i64,
    /// What the caller is to know of how it was read.
    pub warning: Option<String>,
    pub version: ApiVersion,
}

/// An answer that is looked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentSpec {
    pub prompt: String,
    pub urls: Vec<String>,
    pub schema: Option<Value>,
    pub max_credits: i64,
    /// Only the given addresses are opened.
    pub strict: bool,
    /// As the caller has it; it is told again.
    pub model: String,
    pub effort: Option<Effort>,
    pub mode: Option<AgentMode>,
    pub integration: Option<String>,
    /// Prompts of the thread before this one, with what came of them, oldest first.
    pub before: Vec<Before>,
}

/// An earlier run of the thread.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Before {
    pub prompt: String,
    /// Its answer, cut.
    pub answer: String,
}

words! {
    /// How hard an agent tries.
    Effort {
        Low = "low",
        Medium = "medium",
        High = "high",
    }
    /// What an agent answers with.
    AgentMode {
        /// Data.
        Extract = "extract",
        /// Words, in `message`.
        Chat = "chat",
    }
    /// What a step of a task is.
    StepKind {
        Model = "model",
        Search = "search",
        Map = "map",
        Pages = "pages",
        Interact = "interact",
    }
    /// Why a task ended before it was done.
    StopReason {
        CreditLimit = "credit_limit_reached",
        StepLimit = "step_limit_reached",
        TokenLimit = "token_limit_reached",
        TimeLimit = "time_limit_reached",
        Cancelled = "cancelled",
        /// The model says that it cannot be done.
        Refused = "refused",
        Failed = "failed",
    }
}

impl AgentSpec {
    /// Turns of the task's model.
    pub fn most_turns(&self) -> usize {
        match self.effort {
            Some(Effort::Low) => 10,
            None | Some(Effort::Medium) => 25,
            Some(Effort::High) => 50,
        }
    }

    /// The task's own words.
    pub fn words(&self) -> String {
        let schema = self.schema.as_ref().map(ToString::to_string).unwrap_or_default();
        let before: String = self.before.iter().map(|run| format!("{}\n", run.prompt)).collect();
        format!("{before}{}\n{schema}", self.prompt)
    }
}

/// What came of a task, as it lies in its row.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskOutcome {
    /// Absent: it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// The answer in words of an agent in mode `chat`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Which pages each field comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources: Option<Value>,
    /// What was found before it stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_schema_valid: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// Pages that were read.
    pub pages: i64,
}

impl TaskOutcome {
    /// A failure.
    pub fn failed(reason: StopReason, error: impl Into<String>) -> Self {
        Self { error: Some(error.into()), stop_reason: Some(reason), ..Self::default() }
    }
}
