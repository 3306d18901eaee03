//! What is big goes in slices: each is a transaction of its own, short enough for whoever waits for it.
//!
//! On SQLite there is one writer at a time, and a scrape, a claim or a heartbeat that comes during a slice stands behind it.
//! Processes that wait for the file's lock sleep between two looks at it, so a slice is followed by a pause of its length.
//! Slices that callers wait for come one after the other, pauses included, and teams in turn: twenty large batches at once
//! would fill each other's pauses.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::clock::{self, Stopwatch};
use crate::ids::TeamId;
use crate::shares::{Share, Shares};
use crate::store::Db;

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
}

/// Who of this process may write a slice that a caller waits for.
#[derive(Debug)]
pub struct Bulk {
    turns: Shares,
    owed: Mutex<Owed>,
}

/// How long slices have followed each other without a pause, and when the last one ended.
#[derive(Debug, Default)]
struct Owed {
    time: Duration,
    ended: Option<Instant>,
}

/// The turn to write a slice, given back when it is dropped. On Postgres everybody has it: rows are their team's own there.
#[derive(Debug)]
pub struct BulkTurn(Option<(Share, Arc<Bulk>)>);

impl Default for Slices {
    fn default() -> Self {
        Self { rows: FIRST }
    }
}

impl Default for Bulk {
    fn default() -> Self {
        Self { turns: Shares::new(1, 1), owed: Mutex::default() }
    }
}

impl Bulk {
    /// Counts a slice that has ended now; the pause that is due after it.
    fn owe(&self, took: Duration, now: Instant) -> Option<Duration> {
        let mut owed = self.owed.lock().unwrap_or_else(PoisonError::into_inner);
        let began = now.checked_sub(took).unwrap_or(now);
        // Others have had their time where nothing was written for as long.
        if owed.ended.is_some_and(|ended| began.saturating_duration_since(ended) >= owed.time) {
            owed.time = Duration::ZERO;
        }
        owed.time += took;
        owed.ended = Some(now);
        (owed.time >= UNNOTICED).then(|| std::mem::take(&mut owed.time).min(LONGEST_PAUSE))
    }
}

impl Db {
    /// Waits for the turn to write a slice for this team.
    pub async fn bulk_turn(&self, team: TeamId) -> BulkTurn {
        match self {
            Self::Sqlite(db) => BulkTurn(Some((db.bulk.turns.take(&team.to_string()).await, Arc::clone(&db.bulk)))),
            Self::Postgres(_) => BulkTurn(None),
        }
    }
}

impl BulkTurn {
    /// Gives way to others after the slice whose transaction began then: slices share a pause, so that what is soon done has
    /// none.
    pub async fn end(self, began: Stopwatch) {
        if let Some((_share, bulk)) = &self.0
            && let Some(pause) = bulk.owe(began.elapsed(), clock::instant())
        {
            tokio::time::sleep(pause).await;
        }
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

    /// The same after rows that a caller waits for, at the end of their turn.
    pub async fn give_way(&mut self, turn: BulkTurn, began: Stopwatch) {
        self.learn(began.elapsed());
        turn.end(began).await;
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
        let (bulk, at) = (Bulk::default(), clock::instant() + Duration::from_secs(60));
        let owe = |took, after| bulk.owe(Duration::from_millis(took), at + Duration::from_millis(after));
        assert_eq!(owe(40, 40), None);
        assert_eq!(owe(40, 80), None);
        assert_eq!(owe(40, 120), Some(Duration::from_millis(120)));
        assert_eq!(owe(40, 280), None, "counted anew");
        assert_eq!(owe(90, 1_000), None, "nothing was written for long");
        assert_eq!(owe(5_000, 6_010), Some(LONGEST_PAUSE));
    }
}
