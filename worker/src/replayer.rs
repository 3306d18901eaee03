//! `WEIR_REPLAY_CRON`: pages and webhook deliveries that failed for a reason that may have passed are done again.
//!
//! One worker among all runs it, by lease; each page or delivery goes back into the queue in a transaction of its own,
//! so a worker that dies half-way has done half of it and another one does the rest. Until when the moments are done stands in
//! a row: one that nobody saw, or that fell into an outage, is made up.

use std::sync::Arc;
use std::time::Duration;

use weir_shared::error_code::ErrorCode;
use weir_shared::schedule::Schedule;
use weir_shared::store::db::settings;
use weir_shared::store::work::page::replay::{self, Replay, ReplayFilter};
use weir_shared::store::work::webhooks;
use weir_shared::store::{Db, StoreResult};
use weir_shared::time::Timestamp;

use crate::context::WorkerContext;
use crate::lease;

/// Runs of the schedule that try one page, or one delivery.
const MOST_REPLAYS: i64 = 3;
/// Pages, and deliveries, in one run.
const MOST_IN_RUN: i64 = 1_000;
/// Name of its lease.
const LEASE: &str = "replay";
/// The lease is renewed after so many, and lasts this long beyond.
const RENEW_EVERY: usize = 50;
const LEASE_MS: i64 = 15_000;
/// Longest sleep: a machine that is suspended, or whose clock is set, has slept for another time than was reckoned.
const LONGEST_SLEEP_MS: i64 = 60_000;
/// Pause before a run that did not come to its end is tried again, or looked after where it is another worker's.
const AGAIN: Duration = Duration::from_secs(5);
/// A clock that is set back by more than this was wrong before, milliseconds.
const WRONG_MS: i64 = 86_400_000;

/// Waits for each moment of the schedule, until the worker stops. Without a schedule there is nothing to do.
pub async fn run(context: Arc<WorkerContext>) {
    let db = &context.process.db;
    let Some(schedule) = context.process.settings.replay.clone() else {
        if let Err(error) = settings::forget_replays(db).await {
            tracing::warn!(%error, "an earlier schedule of replays is not forgotten");
        }
        return;
    };
    let mut moments = Moments::of(schedule);
    loop {
        let ran = match moments.due(db).await {
            Ok(Some(due)) => {
                let ran = one(&context, &moments.schedule, due).await;
                moments.ended(db, ran).await
            }
            Ok(None) => Ok(Ran::Done),
            Err(error) => Err(error),
        };
        let Some(pause) = moments.rest(ran, db.now()) else { return };
        tokio::select! {
            () = db.clock().sleep(pause) => {}
            () = context.draining.cancelled() => return,
            () = context.fenced.cancelled() => return,
        }
    }
}

/// How a look at a moment that is due ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ran {
    /// It is done, whoever did it.
    Done,
    /// It is not done yet: another worker is at it, or this one stops.
    Unfinished,
}

/// The moments of a schedule, each of which is due once: a clock that was set back shows them again.
struct Moments {
    schedule: Schedule,
    /// Those up to then are done. `None`: the row that says so was not read yet.
    done: Option<Timestamp>,
    /// The row says so, too.
    is_written: bool,
}

impl Moments {
    fn of(schedule: Schedule) -> Self {
        Self { schedule, done: None, is_written: false }
    }

    /// The moment that is due, if one is.
    async fn due(&mut self, db: &Db) -> StoreResult<Option<Timestamp>> {
        self.read(db).await?;
        let now = db.now();
        let done = self.known(now);
        Ok(self.schedule.next_after(done).filter(|due| *due <= now))
    }

    /// What comes of a run for a moment that was due. An error that stays is left to the next moment.
    async fn ended(&mut self, db: &Db, ran: StoreResult<Ran>) -> StoreResult<Ran> {
        let ran = match ran {
            Err(error) if !error.may_pass() => {
                tracing::warn!(%error, "a scheduled replay failed; the next one follows");
                Ran::Done
            }
            ran => ran?,
        };
        if ran == Ran::Done {
            self.pass(db.now());
            self.write(db).await?;
        }
        Ok(ran)
    }

    /// How long to sleep after a look that ended so. `None`: nothing is due any more.
    fn rest(&mut self, ran: StoreResult<Ran>, now: Timestamp) -> Option<Duration> {
        match ran {
            Ok(Ran::Done) => self.pause(now),
            Ok(Ran::Unfinished) => Some(AGAIN),
            Err(error) => {
                tracing::warn!(%error, "a scheduled replay waits for the database");
                Some(AGAIN)
            }
        }
    }

    /// Reads where the workers are, once. A schedule that is new has nothing to make up for.
    async fn read(&mut self, db: &Db) -> StoreResult<()> {
        if self.done.is_none() {
            let found = settings::replayed_until(db, &self.schedule).await?;
            self.is_written = found.is_some();
            self.done = Some(found.unwrap_or_else(|| db.now()));
        }
        self.write(db).await
    }

    async fn write(&mut self, db: &Db) -> StoreResult<()> {
        if let Some(done) = self.done.filter(|_| !self.is_written) {
            settings::set_replayed_until(db, &self.schedule, done).await?;
            self.is_written = true;
        }
        Ok(())
    }

    /// Until when they are done, as far as a clock that is at `now` may say so.
    fn known(&mut self, now: Timestamp) -> Timestamp {
        let done = self.done.filter(|done| done.ms_since(now) <= WRONG_MS).unwrap_or(now);
        self.done = Some(done);
        done
    }

    /// How long to sleep before the next look; zero: a moment is due. `None`: none is any more.
    fn pause(&mut self, now: Timestamp) -> Option<Duration> {
        let done = self.known(now);
        let due = self.schedule.next_after(done)?;
        Some(Duration::from_millis(due.ms_since(now).min(LONGEST_SLEEP_MS).unsigned_abs()))
    }

    /// What has passed by then is done: of several moments that nobody saw, one is made up.
    fn pass(&mut self, now: Timestamp) {
        self.done = Some(self.known(now).max(now));
        self.is_written = false;
    }
}

async fn one(context: &WorkerContext, schedule: &Schedule, due: Timestamp) -> StoreResult<Ran> {
    let db = &context.process.db;
    let now = db.now();
    let next = schedule.next_after(now).map_or(now, |next| next.plus_ms(-1));
    let is_ours = lease::hold(context, LEASE, now, next).await?;
    let done = settings::replayed_until(db, schedule).await?;
    if done.is_some_and(|done| done >= due && done.ms_since(now) <= WRONG_MS) {
        return Ok(Ran::Done);
    }
    if !is_ours {
        return Ok(Ran::Unfinished);
    }
    let (pages, are_all_pages) = replay_pages(context, now).await?;
    let (deliveries, are_all) = replay_deliveries(context, now).await?;
    if pages > 0 || deliveries > 0 {
        tracing::info!(pages, deliveries, "failures that were worth it go back into the queue");
    }
    Ok(if are_all_pages && are_all { Ran::Done } else { Ran::Unfinished })
}

/// Whether the work may go on after `done` pieces of it.
async fn may_go_on(context: &WorkerContext, done: usize) -> StoreResult<bool> {
    if context.draining.is_cancelled() || context.fenced.is_cancelled() {
        return Ok(false);
    }
    if done == 0 || !done.is_multiple_of(RENEW_EVERY) {
        return Ok(true);
    }
    tracing::info!(done, "a scheduled replay is under way");
    let now = context.process.db.now();
    lease::hold(context, LEASE, now, now.plus_ms(LEASE_MS)).await
}

/// How many, and whether these are all.
async fn replay_pages(context: &WorkerContext, now: Timestamp) -> StoreResult<(usize, bool)> {
    let db = &context.process.db;
    let worth = ErrorCode::ALL.iter().filter(|code| code.is_worth_replaying());
    let filter = ReplayFilter {
        codes: worth.filter_map(|code| code.code()).map(str::to_owned).collect(),
        most_replays: Some(MOST_REPLAYS),
        background: true,
        limit: MOST_IN_RUN,
        ..ReplayFilter::default()
    };
    let (mut replayed, mut are_all) = (0, true);
    for (done, page) in replay::replayable(db, &filter, now).await?.iter().enumerate() {
        if !may_go_on(context, done).await? {
            are_all = false;
            break;
        }
        let mut tx = db.begin().await?;
        let metered = context.process.settings.limits.metered;
        if replay::replay(&mut tx, page.id, metered, context.process.db.now()).await? == Replay::Queued {
            replayed += 1;
        }
        tx.commit().await?;
    }
    context.process.metrics.replays.with_label_values(&["page"]).inc_by(replayed as u64);
    Ok((replayed, are_all))
}

/// How many, and whether these are all.
async fn replay_deliveries(context: &WorkerContext, now: Timestamp) -> StoreResult<(usize, bool)> {
    let db = &context.process.db;
    let (mut replayed, mut are_all) = (0, true);
    for (done, id) in webhooks::worth_replaying(db, MOST_REPLAYS, now, MOST_IN_RUN).await?.iter().enumerate() {
        if !may_go_on(context, done).await? {
            are_all = false;
            break;
        }
        let mut tx = db.begin().await?;
        if webhooks::replay(&mut tx, *id, context.process.db.now()).await? {
            replayed += 1;
        }
        tx.commit().await?;
    }
    context.process.metrics.replays.with_label_values(&["delivery"]).inc_by(replayed as u64);
    Ok((replayed, are_all))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use weir_shared::store::{PoolUse, StoreError};

    use super::*;
    use crate::testing;

    const HOUR_MS: i64 = 3_600_000;

    /// A look at the moments, as [`run`] has it: what there was to do, which ends as `end` says.
    async fn look(db: &Db, moments: &mut Moments, end: StoreResult<Ran>) -> (Option<Duration>, Option<Timestamp>) {
        let due = moments.due(db).await.unwrap();
        let ran = match due {
            Some(_) => moments.ended(db, end).await,
            None => Ok(Ran::Done),
        };
        (moments.rest(ran, db.now()), due)
    }

    #[tokio::test]
    async fn a_moment_that_nobody_saw_to_is_made_up_once_after_an_outage_or_a_restart() {
        for url in [Some(testing::sqlite().await), testing::postgres().await].into_iter().flatten() {
            let db = Db::connect(&url, 2, PoolUse::Rows).await.unwrap();
            let hourly: Schedule = "0 * * * *".parse().unwrap();
            let wrong = || Err(StoreError::Corrupt("a row".to_owned()));
            let outage = async || {
                let gone = Db::connect(&url, 1, PoolUse::Rows).await.unwrap();
                gone.close().await;
                settings::replayed_until(&gone, &hourly).await.map(|_| Ran::Done)
            };
            let to = |at: Timestamp| {
                let by = at.ms_since(db.now());
                db.clock().advance(Duration::from_millis(by.unsigned_abs()));
            };
            let begin = hourly.next_after(db.now()).unwrap();
            let (nothing, after) = (None, |hours: i64| begin.plus_ms(hours * HOUR_MS + 1));

            // A schedule that is new has nothing to make up for.
            let mut moments = Moments::of(hourly.clone());
            assert_eq!(look(&db, &mut moments, Ok(Ran::Done)).await.1, nothing);
            to(after(0));
            assert!(outage().await.is_err_and(|error| error.may_pass()));
            for _ in 0..3 {
                assert_eq!(look(&db, &mut moments, outage().await).await, (Some(AGAIN), Some(begin)));
            }
            assert_eq!(look(&db, &mut moments, Ok(Ran::Unfinished)).await, (Some(AGAIN), Some(begin)));
            assert_eq!(look(&db, &mut moments, Ok(Ran::Done)).await.1, Some(begin));
            assert_eq!(look(&db, &mut moments, Ok(Ran::Done)).await.1, nothing, "it is done");

            // Another worker, and the same one after its restart, know that.
            let mut moments = Moments::of(hourly.clone());
            assert_eq!(look(&db, &mut moments, Ok(Ran::Done)).await.1, nothing);
            to(after(5));
            let missed = begin.plus_ms(HOUR_MS);
            let mut moments = Moments::of(hourly.clone());
            assert_eq!(look(&db, &mut moments, Ok(Ran::Unfinished)).await, (Some(AGAIN), Some(missed)));
            let mut moments = Moments::of(hourly.clone());
            assert_eq!(look(&db, &mut moments, Ok(Ran::Done)).await.1, Some(missed), "five were missed");
            assert_eq!(look(&db, &mut moments, Ok(Ran::Done)).await.1, nothing, "one is made up");

            // What stays wrong waits for the next moment.
            to(after(6));
            assert_eq!(look(&db, &mut moments, wrong()).await.1, Some(begin.plus_ms(6 * HOUR_MS)));
            assert_eq!(look(&db, &mut moments, Ok(Ran::Done)).await.1, nothing);

            // Another schedule, and one that was taken away meanwhile, begin anew.
            to(after(8));
            let mut others = Moments::of("30 * * * *".parse().unwrap());
            assert_eq!(look(&db, &mut others, Ok(Ran::Done)).await.1, nothing);
            settings::set_replayed_until(&db, &hourly, after(6)).await.unwrap();
            settings::forget_replays(&db).await.unwrap();
            let mut moments = Moments::of(hourly.clone());
            assert_eq!(look(&db, &mut moments, Ok(Ran::Done)).await.1, nothing);
            db.close().await;
        }
    }

    #[test]
    fn a_moment_is_due_once_and_soon_whatever_becomes_of_the_clock() {
        let at = |text: &str| Timestamp::from_iso(text).unwrap();
        let moments = |cron: &str, done: &str| Moments { done: Some(at(done)), ..Moments::of(cron.parse().unwrap()) };
        let mut hourly = moments("0 * * * *", "2026-03-01T08:00:00Z");
        for (now, seconds) in [
            ("2026-03-01T08:00:00Z", 60),
            ("2026-03-01T08:59:58Z", 2),
            // Set back.
            ("2026-03-01T07:59:58Z", 60),
            ("2026-03-01T08:00:00Z", 60),
            // The machine was suspended.
            ("2026-03-01T13:07:00Z", 0),
            ("2026-03-01T13:07:00Z", 60),
            ("2026-03-01T13:00:00Z", 60),
            ("2026-03-01T13:59:59Z", 1),
            ("2026-03-01T14:00:00Z", 0),
            ("2026-03-01T13:59:59Z", 60),
            ("2026-03-01T15:00:00Z", 0),
            // Ten years ahead, and put right.
            ("2036-03-01T09:00:03Z", 0),
            ("2026-03-01T15:59:30Z", 30),
            ("2026-03-01T16:00:00Z", 0),
        ] {
            let pause = hourly.pause(at(now)).unwrap();
            assert_eq!(pause, Duration::from_secs(seconds), "{now}");
            if pause.is_zero() {
                hourly.pass(at(now));
            }
        }
        assert_eq!(moments("0 0 0 1 1 * 2020", "2026-03-01T08:00:00Z").pause(at("2026-03-01T08:00:00Z")), None);
    }
}
