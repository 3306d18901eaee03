//! `WEIR_REPLAY_CRON`: pages and webhook deliveries that failed for a reason that may have passed are done again.
//!
//! One worker among all runs it, by lease; each page or delivery goes back into the queue in a transaction of its own,
//! so a worker that dies half-way has done half of it and the next run does the rest.

use std::sync::Arc;
use std::time::Duration;

use weir_shared::error_code::ErrorCode;
use weir_shared::schedule::Schedule;
use weir_shared::store::StoreResult;
use weir_shared::store::work::page::replay::{self, Replay, ReplayFilter};
use weir_shared::store::work::webhooks;
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
/// A clock that is set back by more than this was wrong before, milliseconds.
const WRONG_MS: i64 = 86_400_000;

/// Waits for each moment of the schedule, until the worker stops. Without a schedule there is nothing to do.
pub async fn run(context: Arc<WorkerContext>) {
    let Some(schedule) = context.process.settings.replay.clone() else { return };
    let db = &context.process.db;
    let mut moments = Moments { schedule, done: db.now() };
    loop {
        let now = db.now();
        let Some(pause) = moments.pause(now) else { return };
        if pause.is_zero() {
            moments.pass(now);
            if let Err(error) = one(&context, &moments.schedule).await {
                tracing::warn!(%error, "a scheduled replay failed; the next one follows");
            }
            moments.pass(db.now());
            continue;
        }
        tokio::select! {
            () = db.clock().sleep(pause) => {}
            () = context.draining.cancelled() => return,
            () = context.fenced.cancelled() => return,
        }
    }
}

/// The moments of a schedule, each of which is due once: a clock that was set back shows them again.
struct Moments {
    schedule: Schedule,
    /// Those up to then are done, or were not this worker's.
    done: Timestamp,
}

impl Moments {
    /// How long to sleep before the next look; zero: a moment is due. `None`: none is any more.
    fn pause(&mut self, now: Timestamp) -> Option<Duration> {
        if self.done.ms_since(now) > WRONG_MS {
            self.done = now;
        }
        let due = self.schedule.next_after(self.done)?;
        Some(Duration::from_millis(due.ms_since(now).min(LONGEST_SLEEP_MS).unsigned_abs()))
    }

    /// What has passed by then is done: of several moments that nobody saw, one is made up.
    fn pass(&mut self, now: Timestamp) {
        self.done = self.done.max(now);
    }
}

async fn one(context: &WorkerContext, schedule: &Schedule) -> StoreResult<()> {
    let now = context.process.db.now();
    // Workers whose clocks are a little late find the lease taken until the next moment.
    let next = schedule.next_after(now).map_or(now, |next| next.plus_ms(-1));
    if !lease::hold(context, LEASE, now, next).await? {
        return Ok(());
    }
    let pages = replay_pages(context, now).await?;
    let deliveries = replay_deliveries(context, now).await?;
    if pages > 0 || deliveries > 0 {
        tracing::info!(pages, deliveries, "failures that were worth it go back into the queue");
    }
    Ok(())
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

async fn replay_pages(context: &WorkerContext, now: Timestamp) -> StoreResult<usize> {
    let db = &context.process.db;
    let worth = ErrorCode::ALL.iter().filter(|code| code.is_worth_replaying());
    let filter = ReplayFilter {
        codes: worth.filter_map(|code| code.code()).map(str::to_owned).collect(),
        most_replays: Some(MOST_REPLAYS),
        background: true,
        limit: MOST_IN_RUN,
        ..ReplayFilter::default()
    };
    let mut replayed = 0;
    for (done, page) in replay::replayable(db, &filter, now).await?.iter().enumerate() {
        if !may_go_on(context, done).await? {
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
    Ok(replayed)
}

async fn replay_deliveries(context: &WorkerContext, now: Timestamp) -> StoreResult<usize> {
    let db = &context.process.db;
    let mut replayed = 0;
    for (done, id) in webhooks::worth_replaying(db, MOST_REPLAYS, now, MOST_IN_RUN).await?.iter().enumerate() {
        if !may_go_on(context, done).await? {
            break;
        }
        let mut tx = db.begin().await?;
        if webhooks::replay(&mut tx, *id, context.process.db.now()).await? {
            replayed += 1;
        }
        tx.commit().await?;
    }
    context.process.metrics.replays.with_label_values(&["delivery"]).inc_by(replayed as u64);
    Ok(replayed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_moment_is_due_once_and_soon_whatever_becomes_of_the_clock() {
        let at = |text: &str| Timestamp::from_iso(text).unwrap();
        let moments = |cron: &str, done: &str| Moments { schedule: cron.parse().unwrap(), done: at(done) };
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
