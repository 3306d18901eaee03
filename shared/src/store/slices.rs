//! What is big goes in slices: each is a transaction of its own, short enough for whoever waits for it.
//!
//! On SQLite there is one writer at a time, and a scrape, a claim or a heartbeat that comes during a slice stands behind it.
//! Processes that wait for the file's lock sleep between two looks at it, so a slice is followed by a pause of its length.

use std::time::Duration;

use super::Db;
use crate::clock::Stopwatch;

/// What a slice should take: enough to be worth its commit.
const AIM: Duration = Duration::from_millis(30);
/// Rows of the first slice, and the bounds of the others.
const FIRST: i64 = 500;
const LEAST: i64 = 50;
const MOST: i64 = 4_000;
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// So long may rows that a caller waits for hold others up before the first pause: a batch of ten thousand needs none.
const UNNOTICED: Duration = Duration::from_millis(100);

/// How many rows the next slice has, by what the last ones took.
#[derive(Debug)]
pub struct Slices {
    rows: i64,
    /// How long slices have followed each other without a pause.
    owed: Duration,
}

impl Default for Slices {
    fn default() -> Self {
        Self { rows: FIRST, owed: Duration::ZERO }
    }
}

impl Slices {
    /// Rows of the next slice.
    pub fn rows(&self) -> i64 {
        self.rows
    }

    /// Waits for others after a slice whose transaction began then.
    pub async fn pause(&mut self, began: Stopwatch) {
        let took = began.elapsed();
        self.learn(took);
        tokio::time::sleep(took.clamp(Duration::from_millis(1), LONGEST_PAUSE)).await;
    }

    /// The same after rows that a caller waits for: several slices share a pause, so that what is soon done has none. Only
    /// on SQLite does everybody stand behind them; on Postgres they are the team's own, and a pause would make nobody
    /// faster.
    pub async fn give_way(&mut self, db: &Db, began: Stopwatch) {
        let took = began.elapsed();
        self.learn(took);
        if let (Db::Sqlite(_), Some(pause)) = (db, self.owe(took)) {
            tokio::time::sleep(pause).await;
        }
    }

    /// Counts a slice; the pause that is due after it.
    fn owe(&mut self, took: Duration) -> Option<Duration> {
        self.owed += took;
        (self.owed >= UNNOTICED).then(|| std::mem::take(&mut self.owed).min(LONGEST_PAUSE))
    }

    fn learn(&mut self, took: Duration) {
        if took > AIM * 2 {
            self.rows = (self.rows / 2).max(LEAST);
        } else if took < AIM / 2 {
            self.rows = (self.rows * 2).min(MOST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_grow_while_they_are_short_and_shrink_when_they_are_long() {
        let mut slices = Slices::default();
        for _ in 0..20 {
            slices.learn(Duration::from_millis(1));
        }
        assert_eq!(slices.rows(), MOST);
        slices.learn(AIM);
        assert_eq!(slices.rows(), MOST, "as it should be");
        for _ in 0..20 {
            slices.learn(Duration::from_secs(1));
        }
        assert_eq!(slices.rows(), LEAST);
    }

    #[test]
    fn slices_that_a_caller_waits_for_share_a_pause_as_long_as_they_were() {
        let mut slices = Slices::default();
        assert_eq!(slices.owe(Duration::from_millis(40)), None);
        assert_eq!(slices.owe(Duration::from_millis(40)), None);
        assert_eq!(slices.owe(Duration::from_millis(40)), Some(Duration::from_millis(120)));
        assert_eq!(slices.owe(Duration::from_millis(40)), None, "counted anew");
        assert_eq!(slices.owe(Duration::from_secs(5)), Some(LONGEST_PAUSE));
    }
}
