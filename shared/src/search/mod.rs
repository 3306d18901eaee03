//! Searches of the web by the backends of the installation (`WEIR_SEARCH_URL`): asked in their order, the next one where
//! one fails. What they answer is data from outside: bounded, judged, and freed of duplicates here.
//!
//! ```text
//! mod       the order of backends, which of them rest, and from answers to hits
//! searxng   SearXNG's JSON
//! brave     the Brave Search API
//! hits      what was found, one page once
//! ```

mod brave;
mod hits;
mod searxng;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use hits::Collected;
pub use hits::Hit;

use crate::clock;
use crate::config::{SearchBackend, SearchSettings};
use crate::domain::search::{Age, Query, Source};
use crate::operator_http::{self, ReadError};
use crate::retry_after;
use crate::time::Timestamp;

/// Largest answer read, bytes.
const MAX_ANSWER: usize = 8 << 20;
/// Bound on one answer of a backend: another one may be asked then.
const ANSWER_TIME: Duration = Duration::from_secs(15);
/// How long a backend rests that refuses, when it does not say, and at most.
const REST: Duration = Duration::from_secs(60);
const MAX_REST: Duration = Duration::from_secs(600);
/// An address that everybody takes, bytes. Servers refuse longer ones by their own measure, some without saying so.
const USUAL_ADDRESS: usize = 2_000;
/// Pages of hits that are asked for, for one source.
const MAX_PAGES: usize = 10;

/// The backends of an installation, with what is known of them.
#[derive(Debug)]
pub struct Backends {
    settings: SearchSettings,
    /// Until when each rests.
    resting: Mutex<Vec<Option<Instant>>>,
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

/// Why a backend gave nothing.
#[derive(Debug)]
enum Failure {
    /// It refuses for now: it rests for so long.
    Refused(Duration),
    /// It does not take this search, which says nothing of others.
    NotTaken,
    /// Another try may go well.
    Broken,
}

impl Backends {
    pub fn new(settings: SearchSettings) -> Self {
        let resting = Mutex::new(vec![None; settings.backends.len()]);
        Self { settings, resting }
    }

    /// Finds up to `limit` hits for each source, never later than `deadline`.
    ///
    /// # Errors
    /// As [`SearchError`] says.
    pub async fn find(
        &self,
        query: &Query,
        sources: &[Source],
        limit: usize,
        deadline: Instant,
        now: Timestamp,
    ) -> Result<Found, SearchError> {
        if self.settings.backends.is_empty() {
            return Err(SearchError::NotConfigured);
        }
        let of = sources.iter().map(|source| self.find_of(query, *source, limit, now));
        let all = tokio::time::timeout_at(deadline, futures_util::future::join_all(of)).await;
        let mut found = Found::default();
        for (source, outcome) in sources.iter().zip(all.map_err(|_| SearchError::Timeout)?) {
            let (hits, warnings) = outcome?;
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
        now: Timestamp,
    ) -> Result<(Vec<Hit>, Vec<String>), SearchError> {
        let (mut silent, mut is_not_taken, mut may_come) = (None, false, false);
        for (n, backend) in self.settings.backends.iter().enumerate() {
            if self.rest_of(n).is_some() {
                may_come = true;
                continue;
            }
            let mut collected = Collected::new(query, source, limit, now);
            match self.ask(backend, query, &mut collected).await {
                // Engines that were all refused found nothing, which says nothing of the web.
                Ok(()) if collected.is_silent() => silent = Some(collected),
                Ok(()) => return Ok(collected.finish()),
                // What the first pages gave is not lost with a later one.
                Err(_) if !collected.is_empty() => return Ok(collected.finish()),
                // It is the caller who hears of it.
                Err(Failure::NotTaken) => is_not_taken = true,
                Err(failure) => {
                    may_come = true;
                    tracing::warn!(backend = n, ?failure, "a search backend did not answer as it should");
                    if let Failure::Refused(rest) = failure {
                        self.resting.lock().unwrap_or_else(PoisonError::into_inner)[n] = Some(clock::deadline(rest));
                    }
                }
            }
        }
        if let Some(collected) = silent {
            return Ok(collected.finish());
        }
        if is_not_taken && !may_come {
            return Err(SearchError::NotTaken);
        }
        let rests = (0..self.settings.backends.len()).filter_map(|n| self.rest_of(n));
        let retry_after = rests.min().map_or(5, |rest| rest.as_secs().max(1));
        Err(SearchError::Failed { retry_after })
    }

    /// How long a backend still rests.
    fn rest_of(&self, n: usize) -> Option<Duration> {
        let until = self.resting.lock().unwrap_or_else(PoisonError::into_inner)[n]?;
        until.checked_duration_since(clock::instant()).filter(|rest| !rest.is_zero())
    }

    /// Pages of hits until there are enough, or no new ones.
    async fn ask(&self, backend: &SearchBackend, query: &Query, collected: &mut Collected<'_>) -> Result<(), Failure> {
        for page in 0..MAX_PAGES {
            let is_over = match backend {
                SearchBackend::Searxng(base) => searxng::page(base, query, page, collected).await?,
                SearchBackend::Brave { base, key } => brave::page(base, key, query, page, collected).await?,
            };
            if is_over || collected.is_full() {
                break;
            }
        }
        Ok(())
    }
}

/// The JSON that a backend answers with.
async fn get(request: reqwest::RequestBuilder) -> Result<serde_json::Value, Failure> {
    let answered = tokio::time::timeout(ANSWER_TIME, async {
        let request = request.build().map_err(|_| Failure::NotTaken)?;
        let is_long = request.url().as_str().len() > USUAL_ADDRESS;
        let response = operator_http::client().execute(request).await.map_err(|_| Failure::Broken)?;
        let status = response.status().as_u16();
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let asked = retry_after::asked(response.headers());
        let is_page = header("content-type").is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/html"));
        match status {
            429 => return Err(Failure::Refused(asked.unwrap_or(REST).clamp(Duration::from_secs(1), MAX_REST))),
            413 | 414 | 431 => return Err(Failure::NotTaken),
            // Of it, or of what stands before it and takes less.
            400 | 422 if is_long => return Err(Failure::NotTaken),
            _ if is_page && is_long => return Err(Failure::NotTaken),
            // It has something against this search or, as for a wrong key, against all: one that rests would be taken from others.
            400 | 422 => return Err(Failure::Broken),
            // A page for people: its JSON is off, or something stands before it.
            _ if is_page => return Err(Failure::Refused(REST)),
            401..=403 => return Err(Failure::Refused(REST)),
            200..=299 => {}
            _ => return Err(Failure::Broken),
        }
        let body = operator_http::read(response, MAX_ANSWER).await.map_err(|error| match error {
            ReadError::TooLong => Failure::Refused(REST),
            ReadError::Cut => Failure::Broken,
        })?;
        serde_json::from_slice(&body).map_err(|_| Failure::Refused(REST))
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
