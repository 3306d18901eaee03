//! What is counted of pages that end, and how such counts are added up and read.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::TeamId;

/// Upper ends of the buckets of a page's time from claim to result, milliseconds; one more bucket is for what is longer.
pub const LATENCY_MS: [u64; 15] =
    [2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000];
/// Pages that ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ended {
    #[serde(skip_serializing_if = "is_none")]
    pub done: u64,
    #[serde(skip_serializing_if = "is_none")]
    pub failed: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// How things stood at the end of a span, of the process or of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Gauges {
    /// Of the queue, which the API knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_ms: Option<i64>,
    /// Of the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browsers: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<i64>,
}

/// What was done in a span.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Figures {
    /// Pages by the engine that got them: `http`, `browser`, `cache`, `map`, `upload`, and `none` for those that failed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pages: BTreeMap<String, Ended>,
    /// Failures by code.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
    /// Pages by [`LATENCY_MS`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latency: Vec<u64>,
    pub credits: i64,
    pub gauges: Gauges,
}

impl Figures {
    /// Adds what another process, or another span, has. Gauges are left alone: who adds knows what is to be added.
    pub fn add(&mut self, other: &Self) {
        for (engine, ended) in &other.pages {
            let own = self.pages.entry(engine.clone()).or_default();
            own.done += ended.done;
            own.failed += ended.failed;
        }
        for (code, count) in &other.errors {
            *self.errors.entry(code.clone()).or_default() += count;
        }
        if self.latency.len() < other.latency.len() {
            self.latency.resize(other.latency.len(), 0);
        }
        for (own, count) in self.latency.iter_mut().zip(&other.latency) {
            *own += count;
        }
        self.credits += other.credits;
    }

    /// Pages that ended.
    pub fn ended(&self) -> Ended {
        self.pages.values().fold(Ended::default(), |sum, ended| Ended {
            done: sum.done + ended.done,
            failed: sum.failed + ended.failed,
        })
    }

    /// The time that `part` of a hundred pages needed at most, milliseconds, read off the buckets; `None`: there were none.
    pub fn percentile(&self, part: u64) -> Option<u64> {
        let all: u64 = self.latency.iter().sum();
        let rank = (all * part).div_ceil(100).max(1);
        let mut seen = 0;
        for (bucket, count) in self.latency.iter().enumerate() {
            if seen + count >= rank {
                let low = if bucket == 0 { 0 } else { LATENCY_MS[bucket - 1] };
                let high = LATENCY_MS.get(bucket).copied().unwrap_or(low * 2);
                // As if the pages of a bucket were spread over it.
                return Some(low + (high - low) * (rank - seen) / count);
            }
            seen += count;
        }
        None
    }

    /// Counts a page.
    pub fn count(&mut self, end: PageEnd<'_>) {
        let engine = match self.pages.get_mut(end.engine) {
            Some(engine) => engine,
            None => self.pages.entry(end.engine.to_owned()).or_default(),
        };
        match end.code {
            None => engine.done += 1,
            Some(code) => {
                engine.failed += 1;
                match self.errors.get_mut(code) {
                    Some(count) => *count += 1,
                    None => drop(self.errors.insert(code.to_owned(), 1)),
                }
            }
        }
        self.observe(end.duration);
        self.credits += end.credits;
    }

    fn observe(&mut self, duration: Duration) {
        self.latency.resize(LATENCY_MS.len() + 1, 0);
        let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let bucket = LATENCY_MS.iter().position(|end| ms <= *end).unwrap_or(LATENCY_MS.len());
        self.latency[bucket] += 1;
    }
}

/// A page that ended.
#[derive(Debug, Clone, Copy)]
pub struct PageEnd<'a> {
    pub team: TeamId,
    pub engine: &'static str,
    /// Why it failed; `None`: it did not.
    pub code: Option<&'a str>,
    pub duration: Duration,
    pub credits: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_read_off_the_buckets() {
        let team = TeamId::new();
        let end =
            |team, ms| PageEnd { team, engine: "http", code: None, duration: Duration::from_millis(ms), credits: 1 };
        let mut figures = Figures::default();
        assert_eq!(figures.percentile(50), None);
        for ms in 1..=100 {
            figures.count(end(team, ms));
        }
        assert_eq!(
            (figures.percentile(50), figures.percentile(95), figures.percentile(100)),
            (Some(50), Some(95), Some(100))
        );
        figures.count(end(team, 1_000_000));
        assert_eq!(figures.percentile(100), Some(120_000), "beyond the last bucket");
    }
}
