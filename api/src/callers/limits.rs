//! Request rates (spec 7.2, wire 11.1): a fixed minute per team and bucket, all keys of a team together.
//!
//! The minute's count is a row that all API processes share. Each admits a small part of the limit by itself before it
//! writes down how many those were and learns how many the others admitted, so that a read of a status seldom costs a
//! write.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use weir_shared::error_code::ErrorCode;
use weir_shared::ids::TeamId;
use weir_shared::store::Db;
use weir_shared::store::accounts::rates;
use weir_shared::time::Timestamp;

use crate::callers::auth::Caller;
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
    counts: HashMap<(TeamId, Bucket), Count>,
}

/// What one team and bucket have consumed.
#[derive(Default)]
struct Count {
    /// Admitted by this process.
    own: u32,
    /// Of those, not written down yet.
    pending: u32,
    /// Admitted by the other processes, as far as known: never more than it was.
    others: u32,
}

/// What to do with a request.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Admit,
    /// Admitted, if the minute is not over with these that have to be written down.
    Tell(u32),
    Refuse {
        consumed: u32,
    },
}

/// Requests that a process may admit before it writes them down and hears of the others': a hundredth of the limit, so
/// that five processes admit 5 % too many at most. Small limits are exact, and cost a write each.
fn slice(limit: u32) -> u32 {
    (limit / 100).max(1)
}

impl Limiter {
    /// Counts a request. `rates` are the installation's; the team's own come first; `None` means no limit at all.
    ///
    /// # Errors
    /// 429 when the minute's number is used up, 503 when the count cannot be written.
    pub async fn admit(
        &self,
        db: &Db,
        caller: &Caller,
        bucket: Bucket,
        rates: Option<&BTreeMap<String, u32>>,
    ) -> ApiResult<()> {
        let Some(rates) = rates else { return Ok(()) };
        let name = bucket.as_str();
        let Some(limit) = caller.team.rates.get(name).or_else(|| rates.get(name)).copied() else { return Ok(()) };
        let (key, now) = ((caller.team_id(), bucket), db.now());
        let minute = now.0.div_euclid(WINDOW_MS);
        let consumed = match self.step(key, limit, minute) {
            Step::Admit => return Ok(()),
            Step::Refuse { consumed } => consumed,
            Step::Tell(count) => {
                let total = rates::add(db, key.0, name, minute, i64::from(count)).await;
                let total = total.map(|total| u32::try_from(total).unwrap_or(u32::MAX));
                self.told(key, minute, count, total.as_ref().ok().copied());
                match total? {
                    total if total <= limit => return Ok(()),
                    total => total,
                }
            }
        };
        Err(refusal(consumed, minute, now))
    }

    fn step(&self, key: (TeamId, Bucket), limit: u32, minute: i64) -> Step {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if window.minute != minute {
            window.minute = minute;
            window.counts.clear();
        }
        let count = window.counts.entry(key).or_default();
        let consumed = count.own.saturating_add(count.others);
        if consumed >= limit {
            return Step::Refuse { consumed };
        }
        count.own += 1;
        count.pending += 1;
        if count.pending < slice(limit) { Step::Admit } else { Step::Tell(std::mem::take(&mut count.pending)) }
    }

    /// `count` requests are in `total`, the number of all processes; or `None`: they could not be written down.
    fn told(&self, key: (TeamId, Bucket), minute: i64, count: u32, total: Option<u32>) {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if window.minute != minute {
            return;
        }
        let seen = window.counts.entry(key).or_default();
        match total {
            // Others of ours may be on their way, so this is the least that is not ours.
            Some(total) => seen.others = seen.others.max(total.saturating_sub(seen.own - seen.pending)),
            None => seen.pending += count,
        }
    }
}

fn refusal(consumed: u32, minute: i64, now: Timestamp) -> ApiError {
    let resets = Timestamp((minute + 1) * WINDOW_MS);
    let seconds = resets.ms_since(now).unsigned_abs().div_ceil(1_000).max(1);
    let message = format!(
        "Rate limit exceeded. Consumed (req/min): {consumed}, Remaining (req/min): 0. \
         Please retry after {seconds}s, resets at {resets}"
    );
    ApiError::new(ErrorCode::RateLimited, message).retry_after(seconds)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_small_limit_is_written_down_each_time_and_the_next_minute_starts_anew() {
        let (limiter, key) = (Limiter::default(), (TeamId::new(), Bucket::Scrape));
        for total in 1..=3 {
            assert_eq!(limiter.step(key, 3, 7), Step::Tell(1));
            limiter.told(key, 7, 1, Some(total));
        }
        assert_eq!(limiter.step(key, 3, 7), Step::Refuse { consumed: 3 });
        assert_eq!(limiter.step((key.0, Bucket::Map), 3, 7), Step::Tell(1));
        assert_eq!(limiter.step((TeamId::new(), Bucket::Scrape), 3, 7), Step::Tell(1));
        assert_eq!(limiter.step(key, 3, 8), Step::Tell(1));
        let error = refusal(4, 2, Timestamp(120_000).plus_ms(30_500));
        assert!(error.to_string().contains("Consumed (req/min): 4") && error.to_string().contains("retry after 30s"));
    }

    #[test]
    fn processes_together_stay_within_five_percent() {
        const LIMIT: u32 = 1_000;
        let key = (TeamId::new(), Bucket::Status);
        let processes: Vec<Limiter> = (0..5).map(|_| Limiter::default()).collect();
        let (mut written, mut admitted, mut writes) = (0, 0, 0);
        for n in 0..3_000 {
            // One after another, then one of them alone.
            let limiter = &processes[if n < 600 { n % 5 } else { 0 }];
            match limiter.step(key, LIMIT, 1) {
                Step::Refuse { .. } => continue,
                Step::Admit => admitted += 1,
                // One write in seven is lost, and told with the next ones.
                Step::Tell(count) if n % 7 == 6 => {
                    limiter.told(key, 1, count, None);
                    admitted += 1;
                }
                Step::Tell(count) => {
                    written += count;
                    writes += 1;
                    limiter.told(key, 1, count, Some(written));
                    admitted += u32::from(written <= LIMIT);
                }
            }
        }
        assert!((LIMIT..=LIMIT + LIMIT / 20).contains(&admitted), "{admitted}");
        assert!(writes <= 110, "{writes}");
    }

    #[test]
    fn what_is_on_its_way_is_not_counted_twice() {
        let (limiter, key) = (Limiter::default(), (TeamId::new(), Bucket::Scrape));
        for _ in 0..6 {
            assert_eq!(limiter.step(key, 10, 1), Step::Tell(1));
        }
        // All six are written before the first one's answer is read.
        limiter.told(key, 1, 1, Some(6));
        for _ in 0..4 {
            assert_eq!(limiter.step(key, 10, 1), Step::Tell(1));
        }
        assert_eq!(limiter.step(key, 10, 1), Step::Refuse { consumed: 10 });
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
