//! What an installation asks outside of itself, where it is configured: the language model and the search backends. Each is
//! asked once, as pages and callers ask it.

use std::time::Duration;

use serde_json::json;
use weir_shared::clock::{self, Stopwatch};
use weir_shared::config::{ModelSettings, SearchBackend, SearchSettings, Settings};
use weir_shared::domain::search::{Query, Source};
use weir_shared::guests::{Holder, Urgency};
use weir_shared::ids::TeamId;
use weir_shared::llm::{Allowance, Model, ModelError, Question, Role, TokenMeter, strict_object};
use weir_shared::search::{self, Backends, Trouble};

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
    for backend in &settings.search.backends {
        checks.push(("search", search(backend).await));
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

/// Whether a search by this backend finds anything.
async fn search(backend: &SearchBackend) -> Finding {
    let backends = Backends::new(SearchSettings { backends: vec![backend.clone()] });
    let query = Query { words: "weather".to_owned(), ..Query::default() };
    let (took, deadline) = (Stopwatch::start(), clock::deadline(PATIENCE));
    let found = backends.find(nobody(), &query, &[Source::Web], 1, deadline, clock::of_machine()).await;
    let name = search_name(backend);
    match found {
        Ok(found) if found.hits.iter().any(|(_, hits)| !hits.is_empty()) => {
            Finding::good(format!("{name} finds something in {} ms", took.elapsed().as_millis()))
        }
        Ok(_) => {
            let what = format!("{name}: a search for `weather` finds nothing");
            Finding::weak(what, "look at the engines that the backend asks")
        }
        Err(_) => {
            let trouble = search::trouble(backend, &query).await;
            Finding::bad(format!("{name} {trouble}"), search_mend(backend, trouble))
        }
    }
}

/// The backend without its key, and what in its address may be one.
fn search_name(backend: &SearchBackend) -> String {
    let (name, base) = match backend {
        SearchBackend::Searxng(base) => ("SearXNG", base),
        SearchBackend::Brave { base, .. } => ("Brave", base),
    };
    let port = base.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{name} at {}{port}", base.host_str().unwrap_or_default())
}

fn search_mend(backend: &SearchBackend, trouble: Trouble) -> &'static str {
    let is_brave = matches!(backend, SearchBackend::Brave { .. });
    match trouble {
        Trouble::Unreachable if is_brave => "see that this machine reaches it, or set WEIR_BRAVE_URL to where it is",
        Trouble::Unreachable => "start it, or set WEIR_SEARCH_URL to where it is",
        Trouble::Silent => "look at its load, and at the engines that it asks",
        Trouble::Status(401 | 403 | 422) if is_brave => "set WEIR_SEARCH_KEY to a key that it takes",
        Trouble::Status(401) => {
            "something before it asks for a password: put it into WEIR_SEARCH_URL, or let this machine through"
        }
        Trouble::Status(403) => {
            "name `json` in `search.formats` of its settings.yml, and let this machine through its limiter"
        }
        Trouble::Status(402 | 429) => "its limit is reached: ask it less often, or have it allow more",
        Trouble::Status(300..=399 | 404) => {
            "set WEIR_SEARCH_URL (of Brave WEIR_BRAVE_URL) to its base, without `/search`"
        }
        Trouble::Status(_) => "look at its log",
        Trouble::NoJson | Trouble::NoHits if is_brave => {
            "set WEIR_BRAVE_URL to the base of the Brave Search API (…/res/v1)"
        }
        Trouble::NoJson | Trouble::NoHits => {
            "set WEIR_SEARCH_URL to the base of a SearXNG, and name `json` in `search.formats` of its settings.yml"
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_search_backend_is_named_without_its_secrets() {
        let searxng = SearchBackend::Searxng("http://user:word@127.0.0.1:8888/searx?token=word".parse().unwrap());
        assert_eq!(search_name(&searxng), "SearXNG at 127.0.0.1:8888");
        let base = "https://api.search.brave.com/res/v1".parse().unwrap();
        let brave = SearchBackend::Brave { base, key: "word".to_owned() };
        assert_eq!(search_name(&brave), "Brave at api.search.brave.com");
        assert!(search_mend(&brave, Trouble::Status(401)).contains("WEIR_SEARCH_KEY"));
        assert!(search_mend(&searxng, Trouble::Status(403)).contains("json"));
    }
}
