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

/// How many rows the next slice has, by what the last ones took.
#[derive(Debug)]
pub struct Slices {
    rows: i64,
}

impl Default for Slices {
    fn default() -> Self {
        Self { rows: FIRST }
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

    /// The same after rows that a caller waits for. Only on SQLite does everybody stand behind them; on Postgres they are
    /// the team's own, and a pause would make nobody faster.
    pub async fn give_way(&mut self, db: &Db, began: Stopwatch) {
        match db {
            Db::Sqlite(_) => self.pause(began).await,
            Db::Postgres(_) => self.learn(began.elapsed()),
        }
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
}
