//! Request rates (SPEC 7.2, CONTRACT 11.1): a fixed minute per team and bucket, all keys of a team together.
//!
//! Counted in this process: with several API processes each admits the full rate.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use weir_shared::error_code::ErrorCode;
use weir_shared::ids::TeamId;
use weir_shared::time::Timestamp;

use crate::auth::Caller;
use crate::error::{ApiError, ApiResult};

/// Length of a window, milliseconds.
const WINDOW_MS: i64 = 60_000;

/// Requests that are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bucket {
    Scrape,
    Map,
    Search,
    /// Starts of crawls, batches, extracts and agents.
    Crawl,
    /// Reads of a job's status, its errors and results, and cancels.
    Status,
    Browser,
    Execute,
}

impl Bucket {
    /// Its name in `WEIR_RATE_LIMITS` and `weir team set --rate`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scrape => "scrape",
            Self::Map => "map",
            Self::Search => "search",
            Self::Crawl => "crawl",
            Self::Status => "status",
            Self::Browser => "browser",
            Self::Execute => "execute",
        }
    }
}

/// Counts of the current minute.
#[derive(Default)]
pub struct Limiter(Mutex<Window>);

#[derive(Default)]
struct Window {
    /// Number of the minute since 1970.
    minute: i64,
    counts: HashMap<(TeamId, Bucket), u32>,
}

impl Limiter {
    /// Counts a request. `rates` are the installation's; the team's own come first; `None` means no limit at all.
    ///
    /// # Errors
    /// 429 when the minute's number is used up.
    pub fn admit(&self, caller: &Caller, bucket: Bucket, rates: Option<&BTreeMap<String, u32>>) -> ApiResult<()> {
        let Some(rates) = rates else { return Ok(()) };
        let name = bucket.as_str();
        let Some(limit) = caller.team.rates.get(name).or_else(|| rates.get(name)).copied() else { return Ok(()) };
        self.admit_at(caller.team_id(), bucket, limit, Timestamp::now())
    }

    fn admit_at(&self, team: TeamId, bucket: Bucket, limit: u32, now: Timestamp) -> ApiResult<()> {
        let minute = now.0.div_euclid(WINDOW_MS);
        let consumed = {
            let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if window.minute != minute {
                window.minute = minute;
                window.counts.clear();
            }
            let count = window.counts.entry((team, bucket)).or_default();
            *count = count.saturating_add(1);
            *count
        };
        if consumed <= limit {
            return Ok(());
        }
        let resets = Timestamp((minute + 1) * WINDOW_MS);
        let seconds = resets.ms_since(now).unsigned_abs().div_ceil(1_000).max(1);
        let message = format!(
            "Rate limit exceeded. Consumed (req/min): {consumed}, Remaining (req/min): 0. \
             Please retry after {seconds}s, resets at {resets}"
        );
        Err(ApiError::new(ErrorCode::RateLimited, message).retry_after(seconds))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_minute_is_shared_by_a_team_and_starts_anew() {
        let (limiter, team) = (Limiter::default(), TeamId::new());
        let start = Timestamp(120_000);
        for _ in 0..3 {
            limiter.admit_at(team, Bucket::Scrape, 3, start).unwrap();
        }
        let error = limiter.admit_at(team, Bucket::Scrape, 3, start.plus_ms(30_500)).unwrap_err();
        assert!(error.to_string().contains("retry after 30s"), "{error}");
        limiter.admit_at(team, Bucket::Status, 3, start).unwrap();
        limiter.admit_at(TeamId::new(), Bucket::Scrape, 3, start).unwrap();
        limiter.admit_at(team, Bucket::Scrape, 3, start.plus_ms(60_000)).unwrap();
    }

    #[test]
    fn every_bucket_has_a_default_rate() {
        use Bucket::{Browser, Crawl, Execute, Map, Scrape, Search, Status};
        let known: Vec<&str> = weir_shared::config::RATE_BUCKETS.iter().map(|(name, _)| *name).collect();
        for bucket in [Scrape, Map, Search, Crawl, Status, Browser, Execute] {
            assert!(known.contains(&bucket.as_str()));
        }
    }
}
