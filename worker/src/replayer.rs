//! `WEIR_REPLAY_CRON`: pages and webhook deliveries that failed for a reason that may have passed are done again.
//!
//! One worker among all runs it, by lease; each page or delivery goes back into the queue in a transaction of its own,
//! so a worker that dies half-way has done half of it and the next run does the rest.

use std::sync::Arc;
use std::time::Duration;

use weir_shared::error_code::ErrorCode;
use weir_shared::schedule::Schedule;
use weir_shared::store::page::replay::{self, Replay, ReplayFilter};
use weir_shared::store::{StoreResult, webhooks};
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

/// Waits for each moment of the schedule, until the worker stops. Without a schedule there is nothing to do.
pub async fn run(context: Arc<WorkerContext>) {
    let Some(schedule) = context.process.settings.replay.clone() else { return };
    while let Some(due) = schedule.next_after(Timestamp::now()) {
        let pause = Duration::from_millis(due.ms_since(Timestamp::now()).unsigned_abs());
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = context.draining.cancelled() => return,
            () = context.fenced.cancelled() => return,
        }
        if let Err(error) = one(&context, &schedule).await {
            tracing::warn!(%error, "a scheduled replay failed; the next one follows");
        }
    }
}

async fn one(context: &WorkerContext, schedule: &Schedule) -> StoreResult<()> {
    let now = Timestamp::now();
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
    let now = Timestamp::now();
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
        if replay::replay(&mut tx, page.id, metered, Timestamp::now()).await? == Replay::Queued {
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
        if webhooks::replay(&mut tx, *id, Timestamp::now()).await? {
            replayed += 1;
        }
        tx.commit().await?;
    }
    context.process.metrics.replays.with_label_values(&["delivery"]).inc_by(replayed as u64);
    Ok(replayed)
}
