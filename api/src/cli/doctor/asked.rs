//! What an installation asks outside of itself, where it is configured: the language model and the search backends. Each is
//! asked once, as pages and callers ask it.

use std::time::Duration;

use serde_json::json;
use weir_shared::clock::{self, Stopwatch};
use weir_shared::config::{ModelSettings, Settings};
use weir_shared::domain::search::{Query, Source};
use weir_shared::guests::{Holder, Urgency};
use weir_shared::ids::TeamId;
use weir_shared::llm::{Allowance, Model, ModelError, Question, Role, TokenMeter, strict_object};
use weir_shared::search::Backends;

use super::finding::{Check, Finding};

/// How long each is waited for: a page has twice as long, unless its caller says otherwise.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest answer of the model, tokens.
const ANSWER: u32 = 200;

pub(super) async fn checks(settings: &Settings) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(settings) = &settings.model {
        checks.push(("model", model(settings).await));
    }
    if !settings.search.backends.is_empty() {
        checks.push(("search", search(settings).await));
    }
    checks
}

fn nobody() -> Holder {
    (TeamId::new(), Urgency::Direct)
}

/// Whether the model answers as pages that are read need it.
async fn model(settings: &ModelSettings) -> Finding {
    let schema = strict_object(json!({"ok": {"type": "boolean"}}));
    let question = Question {
        system: "Answer with one JSON object and nothing else.",
        turns: &[(Role::User, "Answer with `ok` set to true.".to_owned())],
        picture: None,
        name: "check",
        schema: &schema,
        strict: true,
        max_tokens: ANSWER,
    };
    let took = Stopwatch::start();
    let time = Allowance::until(clock::deadline(PATIENCE));
    let asker = Model::new(settings.clone()).asked_by(nobody());
    let said = asker.ask_for_json(&question, &time, &TokenMeter::default()).await;
    let name = format!("{} at {}", settings.name, settings.url.host_str().unwrap_or_default());
    match said {
        Ok(_) => Finding::good(format!("{name} answers in {} ms", took.elapsed().as_millis())),
        Err(error) => Finding::bad(format!("{name}: {error}"), mend(&error)),
    }
}

fn mend(error: &ModelError) -> &'static str {
    match error {
        ModelError::Unreachable => "start it, or set WEIR_LLM_URL to where it is",
        ModelError::Timeout => {
            "a short answer takes it longer than 30 s: give it more to run on, or take a smaller model"
        }
        ModelError::Status(401 | 403) => "set WEIR_LLM_KEY to a key that it takes",
        ModelError::Status(404) => {
            "WEIR_LLM_MODEL names a model that is there, WEIR_LLM_URL the base of its interface (…/v1)"
        }
        ModelError::Status(402 | 429) => {
            "its limit is reached, or nothing is left to pay with: look at the account there"
        }
        ModelError::Status(_) => "look at its log",
        ModelError::Unreadable | ModelError::NoJson(_) => {
            "WEIR_LLM_URL is to be an OpenAI-compatible chat endpoint, and its model one that follows instructions"
        }
    }
}

/// Whether a search finds anything.
async fn search(settings: &Settings) -> Finding {
    let backends = Backends::new(settings.search.clone());
    let query = Query { words: "weather".to_owned(), ..Query::default() };
    let (took, deadline) = (Stopwatch::start(), clock::deadline(PATIENCE));
    let found = backends.find(nobody(), &query, &[Source::Web], 1, deadline, clock::of_machine()).await;
    match found {
        Ok(found) if found.hits.iter().any(|(_, hits)| !hits.is_empty()) => {
            Finding::good(format!("a search finds something in {} ms", took.elapsed().as_millis()))
        }
        Ok(_) => Finding::weak("a search for `weather` finds nothing", "look at the engines that the backend asks"),
        Err(error) => Finding::bad(
            error.to_string(),
            "see that WEIR_SEARCH_URL answers from here with its JSON on, and for Brave WEIR_SEARCH_KEY",
        ),
    }
}
