//! What tasks do besides asking the model and scraping pages: they search the web and map sites. Neither changes anything, so
//! what was broken off is done again.

use serde::{Deserialize, Serialize};
use serde_json::json;
use weir_shared::clock;
use weir_shared::domain::map::{self, MapOptions};
use weir_shared::domain::search::{self, Query, Source};
use weir_shared::domain::target::without_user;
use weir_shared::domain::task::StepKind;
use weir_shared::guests::Urgency;
use weir_shared::llm::Spent;
use weir_shared::search::SearchError;

use super::journal::{Done, Halt, Journal, Passing, Step};
use crate::map::work;

/// Bound on one search.
const SEARCHING: std::time::Duration = std::time::Duration::from_secs(30);
/// Links of a map that are kept.
const LINKS: usize = 1_000;

/// A hit as a task keeps it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Hit {
    pub url: String,
    #[serde(default)]
    pub title: String,
    #[serde(default)]
    pub description: String,
}

/// What a search came to.
pub(super) struct Searched {
    pub hits: Vec<Hit>,
    /// Sentences on what the backend could not do: where there are no hits, they may be why.
    pub warnings: Vec<String>,
}

/// Searches the web; the inner error is for whoever reads of it.
pub(super) async fn search(
    journal: &Journal,
    key: &str,
    words: &str,
    limit: usize,
) -> Result<Result<Searched, String>, Halt> {
    let step = Step {
        key,
        kind: StepKind::Search,
        says: json!({ "query": words }),
        credits: search::price(limit, journal.options.zero_retention),
        repeats: true,
        lost: Spent::default(),
    };
    let work = async {
        let process = &journal.context.process;
        let query = Query { words: words.to_owned(), ..Query::default() };
        let by = clock::deadline(SEARCHING);
        let holder = (journal.task.team, Urgency::Background);
        match process.search.find(holder, &query, &[Source::Web], limit, by, process.db.now()).await {
            Ok(found) => {
                let sites = &journal.options.sites;
                let hits = found.hits.into_iter().flat_map(|(_, hits)| hits);
                let hits = hits.filter(|hit| url::Url::parse(&hit.url).is_ok_and(|url| sites.allows(&url)));
                let hits: Vec<Hit> =
                    hits.map(|hit| Hit { url: hit.url, title: hit.title, description: hit.text }).collect();
                let is_free = hits.is_empty();
                Ok(Done { is_free, ..Done::of(json!({ "hits": hits, "warnings": found.warnings })) })
            }
            Err(error @ (SearchError::NotConfigured | SearchError::NotTaken)) => {
                Ok(Done::of(json!({ "error": error.to_string() })))
            }
            Err(error) => Err(Passing(error.to_string())),
        }
    };
    let outcome = journal.step(step, work).await?;
    Ok(match outcome["error"].as_str() {
        Some(why) => Err(why.to_owned()),
        None => {
            let hits = serde_json::from_value(outcome["hits"].clone()).unwrap_or_default();
            let warnings = serde_json::from_value(outcome["warnings"].clone()).unwrap_or_default();
            Ok(Searched { hits, warnings })
        }
    })
}

/// Lists the addresses of a site. `url`: with what the task's own addresses say of the caller.
pub(super) async fn map(
    journal: &Journal,
    key: &str,
    url: &str,
    options: MapOptions,
) -> Result<Result<Vec<String>, String>, Halt> {
    let step = Step {
        key,
        kind: StepKind::Map,
        says: json!({ "url": without_user(url), "search": options.search }),
        credits: map::CREDITS,
        repeats: true,
        lost: Spent::default(),
    };
    let work = async {
        match work::links(&journal.context, journal.task.team, url, options).await {
            Ok(links) => {
                let links: Vec<&str> = links.iter().take(LINKS).map(|link| &*link.url).collect();
                Ok(Done::of(json!({ "links": links })))
            }
            Err(error) => Ok(Done::of(json!({ "error": error.message }))),
        }
    };
    let outcome = journal.step(step, work).await?;
    Ok(match outcome["error"].as_str() {
        Some(why) => Err(why.to_owned()),
        None => Ok(serde_json::from_value(outcome["links"].clone()).unwrap_or_default()),
    })
}
