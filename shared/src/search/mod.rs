//! Searches of the web by the backends of the installation (`WEIR_SEARCH_URL`): asked in their order, the next one where
//! one fails. What they answer is data from outside: bounded, judged, and freed of duplicates here.
//!
//! ```text
//! mod       whose turn it is, the order of backends, and from answers to hits
//! pace      which backends rest, for how long, and who waits for that
//! searxng   SearXNG's JSON
//! brave     the Brave Search API
//! hits      what was found, one page once
//! ```

mod brave;
mod hits;
mod pace;
mod searxng;

use std::time::Duration;

use reqwest::header::HeaderMap;
use tokio::time::Instant;

use hits::Collected;
pub use hits::Hit;
use pace::{Pace, REST};

use crate::config::{SearchBackend, SearchSettings};
use crate::domain::search::{Age, Query, Source};
use crate::guests::Holder;
use crate::operator_http::{self, ReadError};
use crate::retry_after;
use crate::slots::Slots;
use crate::texts;
use crate::time::Timestamp;

/// Largest answer read, bytes.
const MAX_ANSWER: usize = 8 << 20;
/// Bound on one answer of a backend: another one may be asked then.
const ANSWER_TIME: Duration = Duration::from_secs(15);
/// Rests of the backends that a search waits for, altogether.
const PATIENCE: Duration = Duration::from_secs(10);
/// Searches that are asked of the backends at a time; whoever waits has a turn before another one's crowd.
const AT_A_TIME: usize = 8;
/// An address that everybody takes, bytes. Servers refuse longer ones by their own measure, some without saying so.
const USUAL_ADDRESS: usize = 2_000;
/// Pages of hits that are asked for, for one source.
const MAX_PAGES: usize = 10;
/// Said where the caller's time was over before there were as many hits as wanted.
const CUT_SHORT: &str = "The timeout has ended the search before the backend had given all hits.";

/// The backends of an installation, with what is known of them.
#[derive(Debug)]
pub struct Backends {
    backends: Vec<(SearchBackend, Pace)>,
    turns: Slots,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// For each source that was asked for, its hits in their order.
    pub hits: Vec<(Source, Vec<Hit>)>,
    /// Sentences on what the backend could not do.
    pub warnings: Vec<String>,
}

/// Why nothing can be said of the web. The texts are for the caller: no address, no key, no words of the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    #[error("No search backend is configured on this service. Its operator sets WEIR_SEARCH_URL.")]
    NotConfigured,
    /// With the seconds after which another try makes sense.
    #[error("The search backend did not answer as it should. Please try again later.")]
    Failed { retry_after: u64 },
    /// Nor would it be another time.
    #[error("The search backend does not take this search. Please shorten the query or name fewer domains.")]
    NotTaken,
    #[error("Request timed out")]
    Timeout,
}

/// What those backends say that have nothing.
#[derive(Default)]
struct Told<'a> {
    /// The search's time was over while one was asked.
    is_late: bool,
    /// What is known where all engines behind one were silent.
    silent: Option<Collected<'a>>,
    is_not_taken: bool,
    is_broken: bool,
    /// Which of them rest.
    resting: Vec<usize>,
}

/// Why a backend gave nothing.
#[derive(Debug)]
enum Failure {
    /// It refuses for so long.
    Refused(Duration),
    /// It does not take this search, which says nothing of others.
    NotTaken,
    /// Another try may go well.
    Broken,
}

impl Backends {
    pub fn new(settings: SearchSettings) -> Self {
        let backends = settings.backends.into_iter().map(|backend| (backend, Pace::default())).collect();
        Self { backends, turns: Slots::new(AT_A_TIME) }
    }

    /// Finds up to `limit` hits for each source, never later than `deadline`.
    ///
    /// # Errors
    /// As [`SearchError`] says.
    pub async fn find(
        &self,
        holder: Holder,
        query: &Query,
        sources: &[Source],
        limit: usize,
        deadline: Instant,
        now: Timestamp,
    ) -> Result<Found, SearchError> {
        if self.backends.is_empty() {
            return Err(SearchError::NotConfigured);
        }
        let turn = tokio::time::timeout_at(deadline, self.turns.acquire(holder)).await;
        let _turn = turn.map_err(|_| SearchError::Timeout)?;
        let of = sources.iter().map(|source| self.find_of(query, *source, limit, deadline, now));
        let all = futures_util::future::join_all(of).await;
        let has_hits = all.iter().any(|outcome| outcome.as_ref().is_ok_and(|(hits, _)| !hits.is_empty()));
        let mut found = Found::default();
        for (source, outcome) in sources.iter().zip(all) {
            let (hits, warnings) = match outcome {
                // What one source gave is not lost with another one.
                Err(SearchError::Timeout) if has_hits => (Vec::new(), vec![CUT_SHORT.to_owned()]),
                outcome => outcome?,
            };
            found.hits.push((*source, hits));
            for warning in warnings {
                if !found.warnings.contains(&warning) {
                    found.warnings.push(warning);
                }
            }
        }
        Ok(found)
    }

    async fn find_of(
        &self,
        query: &Query,
        source: Source,
        limit: usize,
        deadline: Instant,
        now: Timestamp,
    ) -> Result<(Vec<Hit>, Vec<String>), SearchError> {
        let nothing = || Collected::new(query, source, limit, now);
        let mut told = Told::default();
        // While there are others to ask, nobody waits for one that rests.
        for n in 0..self.backends.len() {
            if let Some(collected) = self.ask(n, query, nothing(), (Duration::ZERO, deadline), &mut told).await {
                return Ok(collected.finish());
            }
        }
        // Then for the one that rests the shortest.
        if told.silent.is_none()
            && let Some(n) = (0..told.resting.len()).min_by_key(|n| self.backends[told.resting[*n]].1.rest())
        {
            let n = told.resting.swap_remove(n);
            if let Some(collected) = self.ask(n, query, nothing(), (PATIENCE, deadline), &mut told).await {
                return Ok(collected.finish());
            }
        }
        if let Some(collected) = told.silent {
            return Ok(collected.finish());
        }
        if told.is_late {
            return Err(SearchError::Timeout);
        }
        if told.is_not_taken && !told.is_broken && told.resting.is_empty() {
            return Err(SearchError::NotTaken);
        }
        let rests = self.backends.iter().filter_map(|(_, pace)| pace.rest());
        let retry_after = rests.min().map_or(5, |rest| rest.as_secs().max(1));
        Err(SearchError::Failed { retry_after })
    }

    /// What a backend has found by the deadline, its rests waited for so long; `None`: nothing, for what is told then.
    async fn ask<'a>(
        &self,
        n: usize,
        query: &Query,
        mut collected: Collected<'a>,
        (patience, deadline): (Duration, Instant),
        told: &mut Told<'a>,
    ) -> Option<Collected<'a>> {
        let asked = tokio::time::timeout_at(deadline, self.pages(n, query, &mut collected, patience)).await;
        let Ok(asked) = asked else {
            told.is_late = true;
            return (!collected.is_empty()).then(|| {
                collected.warn(vec![CUT_SHORT.to_owned()]);
                collected
            });
        };
        match asked {
            // Engines that were all refused found nothing, which says nothing of the web.
            Ok(()) if collected.is_silent() => told.silent = Some(collected),
            Ok(()) => return Some(collected),
            // What the first pages gave is not lost with a later one.
            Err(_) if !collected.is_empty() => return Some(collected),
            // It is the caller who hears of it.
            Err(Failure::NotTaken) => told.is_not_taken = true,
            Err(Failure::Refused(_)) => told.resting.push(n),
            Err(Failure::Broken) => told.is_broken = true,
        }
        None
    }

    /// Pages of hits until there are enough, or no new ones. Rests are waited for out of `patience`.
    async fn pages(
        &self,
        n: usize,
        query: &Query,
        collected: &mut Collected<'_>,
        mut patience: Duration,
    ) -> Result<(), Failure> {
        let (backend, pace) = &self.backends[n];
        for page in 0..MAX_PAGES {
            let is_over = loop {
                let _turn = pace.turn(&mut patience).await.map_err(Failure::Refused)?;
                let asked = match backend {
                    SearchBackend::Searxng(base) => searxng::page(base, pace, query, page, collected).await,
                    SearchBackend::Brave { base, key } => brave::page(base, key, pace, query, page, collected).await,
                };
                let failure = match asked {
                    Ok(is_over) => break is_over,
                    Err(failure) => failure,
                };
                if let Failure::Refused(rest) = failure {
                    // That further pages are refused for long says nothing of searches that ask for none.
                    if page == 0 || rest <= PATIENCE {
                        pace.rest_for(rest);
                    }
                    if rest <= patience {
                        continue;
                    }
                }
                tracing::warn!(backend = n, ?failure, "a search backend did not answer as it should");
                return Err(failure);
            };
            if is_over || collected.is_full() {
                break;
            }
            // Nobody else can give the rest of what has begun here.
            patience = PATIENCE;
        }
        Ok(())
    }
}

/// What is wrong with a backend, for its operator. No words of the backend and no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    #[error("cannot be reached")]
    Unreachable,
    #[error("does not answer in {} s", ANSWER_TIME.as_secs())]
    Silent,
    #[error("answers with status {0}")]
    Status(u16),
    #[error("does not answer with JSON")]
    NoJson,
    /// Of another interface, or it goes well now.
    #[error("answers with JSON in which nothing was found")]
    NoHits,
}

/// Asks a backend of which nothing came once more, to see what it answers.
pub async fn trouble(backend: &SearchBackend, query: &Query) -> Trouble {
    let request = match backend {
        SearchBackend::Searxng(base) => searxng::request(base, query, Source::Web, 0),
        SearchBackend::Brave { base, key } => {
            brave::request(base, key, query, &query.with_operators(), (Source::Web, 0, 1))
        }
    };
    let answered = tokio::time::timeout(ANSWER_TIME, async {
        let Ok(response) = request.send().await else { return Trouble::Unreachable };
        if !response.status().is_success() {
            return Trouble::Status(response.status().as_u16());
        }
        let body = operator_http::read(response, MAX_ANSWER).await.unwrap_or_default();
        match serde_json::from_slice::<serde_json::Value>(&body) {
            Ok(_) => Trouble::NoHits,
            Err(_) => Trouble::NoJson,
        }
    });
    answered.await.unwrap_or(Trouble::Silent)
}

/// The JSON that a backend answers with. `spent` reads from an answer how long nothing is left of what may be asked.
async fn get(
    request: reqwest::RequestBuilder,
    pace: &Pace,
    spent: fn(&HeaderMap) -> Option<Duration>,
) -> Result<serde_json::Value, Failure> {
    let answered = tokio::time::timeout(ANSWER_TIME, async {
        let request = request.build().map_err(|_| Failure::NotTaken)?;
        let is_long = request.url().as_str().len() > USUAL_ADDRESS;
        let response = operator_http::client().execute(request).await.map_err(|_| Failure::Broken)?;
        let status = response.status().as_u16();
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let spent = spent(response.headers());
        let asked = retry_after::asked(response.headers()).or(spent);
        let is_page = header("content-type").is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/html"));
        match status {
            429 => return Err(Failure::Refused(asked.unwrap_or(REST))),
            413 | 414 | 431 => return Err(Failure::NotTaken),
            // Of it, or of what stands before it and takes less.
            400 | 422 if is_long => return Err(Failure::NotTaken),
            _ if is_page && is_long => return Err(Failure::NotTaken),
            // It has something against this search or, as for a wrong key, against all: one that rests would be taken from others.
            400 | 422 => return Err(Failure::Broken),
            // It leads elsewhere: to what these words name, or, for an address that is not quite right, all of them.
            300..=399 => return Err(Failure::Broken),
            // A page for people: its JSON is off, or something stands before it.
            _ if is_page => return Err(Failure::Refused(REST)),
            401..=403 => return Err(Failure::Refused(REST)),
            // This answer was the last for a moment.
            200..=299 => spent.into_iter().for_each(|rest| pace.rest_for(rest)),
            _ => return Err(Failure::Broken),
        }
        let body = operator_http::read(response, MAX_ANSWER).await.map_err(|error| match error {
            ReadError::TooLong => Failure::Refused(REST),
            ReadError::Cut => Failure::Broken,
        })?;
        let text = std::str::from_utf8(&body).map_err(|_| Failure::Refused(REST))?;
        texts::read(text).map_err(|_| Failure::Refused(REST))
    });
    answered.await.unwrap_or(Err(Failure::Broken))
}

/// What none of the backends can do of a query, in sentences. `has_range` and the like: what this one can.
fn shortcomings(query: &Query, has_hours: bool, has_ranges: bool, has_places: bool) -> Vec<String> {
    let mut short = Vec::new();
    match query.age {
        Age::Hour if !has_hours => short.push(
            "The search backend does not know hours: of the last day, hits that are known to be older are left out.",
        ),
        Age::Between(..) if !has_ranges => short
            .push("The search backend does not know ranges of dates: hits that are known to lie outside are left out."),
        _ => {}
    }
    let mut short: Vec<String> = short.into_iter().map(str::to_owned).collect();
    if query.by_date {
        short.push("Hits are in the order of their dates as far as those are known.".to_owned());
    }
    if query.location.is_some() && !has_places {
        short.push("The search backend does not know places: location has no effect.".to_owned());
    }
    if !query.not_understood.is_empty() {
        short.push(format!("Without effect: {}.", query.not_understood.join(", ")));
    }
    short
}

#[cfg(test)]
mod tests;
