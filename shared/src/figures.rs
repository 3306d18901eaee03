//! What a process does, counted in memory and written down once a minute: a row for the process, and one for each team
//! whose pages it worked on. The console draws its charts from these rows; nothing else reads them.
//!
//! To count costs a page one short lock. A process that is killed takes the minute with it: figures are for looking at, and
//! what is billed stands in the ledger.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::domain::figures::{Figures, Gauges, PageEnd};
use crate::ids::TeamId;
use crate::random;
use crate::store::console::figures::{self, Row, Span};
use crate::store::{Db, StoreResult};
use crate::time::Timestamp;

/// Teams that have a row of their own in one minute; the others are in the process's row only.
const MOST_TEAMS: usize = 1_000;
/// The end of a minute is looked for so often at least: the clock may be set.
const LOOK: Duration = Duration::from_secs(10);
/// And not more often than this.
const SOONEST: Duration = Duration::from_millis(20);

/// What a process has counted.
#[derive(Debug)]
pub struct Counter {
    /// An id of this process.
    process: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Since the process began.
    total: Figures,
    /// Since the last minute was written: of the process, and of each team.
    fresh: Figures,
    of_team: HashMap<TeamId, Figures>,
    /// Of the hour that goes on, as it was written last.
    hour: i64,
    of_hour: Figures,
    of_team_hour: HashMap<TeamId, Figures>,
}

/// What is being written: what was fresh, and the hour with it.
struct Taken {
    fresh: Figures,
    of_team: HashMap<TeamId, Figures>,
    hour: i64,
    of_hour: Figures,
    /// Of those teams alone that have something fresh.
    of_team_hour: HashMap<TeamId, Figures>,
}

impl State {
    fn settle(&mut self, taken: Taken) {
        if self.hour != taken.hour {
            self.of_team_hour.clear();
        }
        (self.hour, self.of_hour) = (taken.hour, taken.of_hour);
        self.of_team_hour.extend(taken.of_team_hour);
    }

    /// What was not written is fresh again, and the hour is without it.
    fn put_back(&mut self, taken: Taken) {
        self.fresh.add(&taken.fresh);
        for (team, figures) in taken.of_team {
            self.of_team.entry(team).or_default().add(&figures);
        }
    }
}

impl Default for Counter {
    fn default() -> Self {
        Self { process: random::id().to_string(), state: Mutex::default() }
    }
}

impl Counter {
    /// Counts a page.
    pub fn page(&self, end: PageEnd<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { total, fresh, of_team, .. } = &mut *state;
        total.count(end);
        fresh.count(end);
        if of_team.len() < MOST_TEAMS || of_team.contains_key(&end.team) {
            of_team.entry(end.team).or_default().count(end);
        }
    }

    /// What was counted since the process began.
    pub fn total(&self) -> Figures {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).total.clone()
    }

    /// Writes down what was counted since the last time as that of the minute of `now`. What cannot be written is told with
    /// the next minute.
    pub async fn write(&self, db: &Db, gauges: Gauges, now: Timestamp) -> StoreResult<()> {
        let (rows, taken) = self.take(gauges, now);
        let written = figures::write(db, &rows).await;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match written {
            Ok(()) => state.settle(taken),
            Err(_) => state.put_back(taken),
        }
        written
    }

    fn take(&self, gauges: Gauges, now: Timestamp) -> (Vec<Row>, Taken) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (fresh, of_team) = (std::mem::take(&mut state.fresh), std::mem::take(&mut state.of_team));
        let (minute_at, hour_at) = (Span::Minute.start(now), Span::Hour.start(now));
        let is_same_hour = state.hour == hour_at.0;
        let mut of_hour = if is_same_hour { state.of_hour.clone() } else { Figures::default() };
        of_hour.add(&fresh);
        of_hour.gauges = gauges;
        let mut of_team_hour = HashMap::new();
        let row = |span, team, at, figures: &Figures| Row {
            span,
            team,
            at,
            process: self.process.clone(),
            figures: figures.clone(),
        };
        let mut rows = vec![
            row(Span::Minute, None, minute_at, &Figures { gauges, ..fresh.clone() }),
            row(Span::Hour, None, hour_at, &of_hour),
        ];
        for (team, figures) in &of_team {
            let mut sum = state.of_team_hour.get(team).filter(|_| is_same_hour).cloned().unwrap_or_default();
            sum.add(figures);
            rows.push(row(Span::Minute, Some(*team), minute_at, figures));
            rows.push(row(Span::Hour, Some(*team), hour_at, &sum));
            of_team_hour.insert(*team, sum);
        }
        (rows, Taken { fresh, of_team, hour: hour_at.0, of_hour, of_team_hour })
    }

    /// Writes a row at the end of each minute, and a last one at the end.
    pub async fn run<F: Future<Output = Gauges>>(&self, db: &Db, gauges: impl Fn() -> F, over: CancellationToken) {
        let mut minute = Span::Minute.start(db.now());
        loop {
            let left = minute.plus_ms(Span::Minute.ms()).ms_since(db.now()).max(0).unsigned_abs();
            tokio::select! {
                () = db.clock().sleep(Duration::from_millis(left).clamp(SOONEST, LOOK)) => {}
                () = over.cancelled() => {}
            }
            let now = Span::Minute.start(db.now());
            if now == minute && !over.is_cancelled() {
                continue;
            }
            // What was counted is of the minute that has just ended.
            let end = now.plus_ms(if over.is_cancelled() { 0 } else { -1 });
            if let Err(error) = self.write(db, gauges().await, end).await {
                tracing::debug!(%error, "the minute's figures could not be written; they are told with the next ones");
            }
            minute = now;
            if over.is_cancelled() {
                return;
            }
        }
    }
}

/// Bytes of memory that the process holds, as the kernel counts them; `None`: it does not say.
pub fn memory_bytes() -> Option<i64> {
    const PAGE: i64 = 4_096;
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    text.split_whitespace().nth(1)?.parse::<i64>().ok().map(|pages| pages * PAGE)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::config::DatabaseUrl;
    use crate::domain::figures::Ended;
    use crate::store::{PoolUse, testing};

    fn end(team: TeamId, ms: u64, code: Option<&str>) -> PageEnd<'_> {
        let engine = if code.is_some() { "none" } else { "http" };
        PageEnd { team, engine, code, duration: Duration::from_millis(ms), credits: 1 }
    }

    #[tokio::test]
    async fn a_minute_is_written_for_the_process_and_each_team_and_the_hour_adds_up() {
        for db in testing::databases().await {
            let (acme, other) = (testing::team(&db, "acme").await, testing::team(&db, "other").await);
            let counter = Counter::default();
            let start = Timestamp(10 * 3_600_000);
            counter.page(end(acme, 7, None));
            counter.page(end(other, 70, Some("SCRAPE_TIMEOUT")));
            let gauges = Gauges { queued: Some(3), ..Gauges::default() };
            counter.write(&db, gauges, start.plus_ms(59_999)).await.unwrap();
            counter.page(end(acme, 8, None));
            counter.write(&db, Gauges::default(), start.plus_ms(119_999)).await.unwrap();
            let read =
                async |span, team| figures::read(&db, span, team, start, start.plus_ms(3_600_000)).await.unwrap();
            let minutes = read(Span::Minute, None).await;
            assert_eq!(minutes.len(), 2);
            assert_eq!((minutes[0].0, minutes[1].0), (start, start.plus_ms(60_000)));
            assert_eq!(minutes[0].1.ended(), Ended { done: 1, failed: 1 });
            assert_eq!((minutes[0].1.gauges.queued, minutes[1].1.gauges.queued), (Some(3), None));
            assert_eq!(minutes[0].1.errors["SCRAPE_TIMEOUT"], 1);
            let hours = read(Span::Hour, None).await;
            assert_eq!((hours.len(), hours[0].1.ended(), hours[0].1.credits), (1, Ended { done: 2, failed: 1 }, 3));
            assert_eq!(read(Span::Hour, Some(acme)).await[0].1.ended(), Ended { done: 2, failed: 0 });
            assert_eq!(read(Span::Minute, Some(other)).await.len(), 1);
            assert_eq!(counter.total().ended(), Ended { done: 2, failed: 1 });

            // What cannot be written, as to a database without tables, is told once, in the minute after.
            let root = std::env::temp_dir().join(format!("weir-figures-{}", random::id()));
            let bare = Db::connect(&DatabaseUrl::Sqlite(root.join("weir.db")), 1, PoolUse::Rows).await.unwrap();
            counter.page(end(acme, 9, None));
            for ms in [179_999, 239_999] {
                counter.write(&bare, Gauges::default(), start.plus_ms(ms)).await.unwrap_err();
            }
            bare.close().await;
            std::fs::remove_dir_all(root).unwrap();
            counter.page(end(acme, 9, None));
            counter.write(&db, Gauges::default(), start.plus_ms(299_999)).await.unwrap();
            assert_eq!(read(Span::Minute, None).await[2].1.ended(), Ended { done: 2, failed: 0 });
            assert_eq!(read(Span::Hour, None).await[0].1.ended(), Ended { done: 4, failed: 1 });
            assert_eq!(read(Span::Hour, Some(acme)).await[0].1.ended(), Ended { done: 4, failed: 0 });

            let mut tx = db.begin().await.unwrap();
            figures::expire(&mut tx, start.plus_ms(figures::MINUTES_KEPT_MS + 60_000)).await.unwrap();
            tx.commit().await.unwrap();
            assert_eq!((read(Span::Minute, None).await.len(), read(Span::Hour, None).await.len()), (2, 1));
        }
    }
}
