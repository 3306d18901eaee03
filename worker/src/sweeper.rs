//! One worker at a time, by lease: buries dead workers, takes back their pages, ends their sessions, reminds of lost
//! wake-ups. What may take long is not done here, for dead workers' pages would wait for it: see [`crate::tidier`].

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use weir_shared::clock;
use weir_shared::ids::{JobId, PageId};
use weir_shared::store::StoreResult;
use weir_shared::store::accounts::team_lock;
use weir_shared::store::sessions::{self, profiles};
use weir_shared::store::upkeep::attention;
use weir_shared::store::work::page::rescue::{self, Loss};
use weir_shared::store::work::page::rows::Claimed;
use weir_shared::store::work::{nodes, tasks, webhooks};
use weir_shared::time::Timestamp;

use crate::context::WorkerContext;
use crate::lease::Lease;

/// Pause between sweeps.
const EVERY: Duration = Duration::from_millis(2_500);
/// The lease outlives a few sweeps, so that one worker keeps the task.
const LEASE_MS: i64 = 8_000;
/// Work that was due for this long without being taken gets a new wake-up.
const FORGOTTEN_MS: i64 = 5_000;
/// A worker compares what the rows say it has with what it knows of: every so many sweeps.
const COMPARE_EVERY: u32 = 2;
/// Orphans taken back in one transaction.
const ORPHANS: i64 = 200;
/// Teams whose lock is waited for in one sweep, to take back their pages.
const LOCKED_TEAMS: i64 = 5;

/// Sweeps until the worker stops.
pub async fn run(context: Arc<WorkerContext>) {
    let mut round = 0_u32;
    let mut lease = Lease::new("sweep", LEASE_MS);
    let (mut unknown, mut undriven) = (HashSet::new(), HashSet::new());
    while !context.draining.is_cancelled() && !context.fenced.is_cancelled() {
        if let Err(error) = one(&context, &mut lease).await {
            tracing::warn!(%error, "a sweep failed; the next one follows");
        }
        if round.is_multiple_of(COMPARE_EVERY) {
            if let Err(error) = compare(&context, &mut unknown).await {
                tracing::warn!(%error, "pages that may have been lost cannot be looked for; it is tried again");
            }
            if let Err(error) = compare_tasks(&context, &mut undriven).await {
                tracing::warn!(%error, "tasks that may have been lost cannot be looked for; it is tried again");
            }
        }
        round = round.wrapping_add(1);
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = context.draining.cancelled() => {}
        }
    }
}

/// Takes back the pages that are this worker's by the rows, and that it knew nothing of at the last look (`unknown`)
/// and knows nothing of now: their claim's answer was lost, or their work broke off.
async fn compare(context: &WorkerContext, unknown: &mut HashSet<(PageId, i64)>) -> StoreResult<()> {
    let broken = context.held.broken();
    let mut tx = context.process.db.begin_relaxed().await?;
    let held = rescue::held_by(&mut tx, context.id).await?;
    tx.commit().await?;
    let strange: Vec<_> = held.into_iter().filter(|page| !context.held.contains(page)).collect();
    let found: HashSet<_> = strange.iter().map(|page| (page.id, page.epoch)).collect();
    let lost: Vec<_> = strange.into_iter().filter(|page| unknown.contains(&(page.id, page.epoch))).collect();
    context.held.forget_broken(broken.difference(&found));
    *unknown = found;
    if lost.is_empty() {
        return Ok(());
    }
    tracing::warn!(pages = lost.len(), "pages of this worker that it does not know of go back to the queue");
    let loss = |page: Claimed| match broken.contains(&(page.id, page.epoch)) {
        true => (page, Loss::BrokeOff),
        false => (page, Loss::NeverBegun),
    };
    let mut tx = context.process.db.begin_claim().await?;
    rescue::rescue(&mut tx, lost.into_iter().map(loss).collect(), context.process.db.now()).await?;
    tx.commit().await
}

/// The same for tasks: nobody else drives one whose owner lives.
async fn compare_tasks(context: &WorkerContext, undriven: &mut HashSet<(JobId, i64)>) -> StoreResult<()> {
    let db = &context.process.db;
    let held = tasks::held_by(db, context.id).await?;
    let found: HashSet<_> = held.into_iter().filter(|claim| !context.driven.contains(claim)).collect();
    let lost: Vec<_> = found.intersection(undriven).copied().collect();
    *undriven = found;
    if lost.is_empty() {
        return Ok(());
    }
    tracing::warn!(tasks = lost.len(), "tasks of this worker that it does not drive are called for again");
    let mut tx = db.begin().await?;
    tasks::put_back(&mut tx, context.id, &lost, db.now()).await?;
    tx.commit().await
}

/// Takes back the pages of dead workers. A team whose lock somebody holds keeps no other one waiting; it has a moment
/// afterwards, and else the next sweep.
async fn rescue(context: &WorkerContext, now: Timestamp) -> StoreResult<usize> {
    let db = &context.process.db;
    let mut tx = db.begin().await?;
    let mut orphans = rescue::rescue_orphans(&mut tx, now, ORPHANS).await?;
    tx.commit().await?;
    for team in rescue::orphaned_teams(db, LOCKED_TEAMS).await? {
        let mut tx = db.begin_claim().await?;
        match team_lock::lock(&mut tx, team).await {
            Err(error) if error.is_lock_wait() => continue,
            locked => locked?,
        };
        orphans += rescue::rescue_orphans(&mut tx, now, ORPHANS).await?;
        tx.commit().await?;
    }
    Ok(orphans)
}

async fn one(context: &WorkerContext, lease: &mut Lease) -> StoreResult<()> {
    let db = &context.process.db;
    if !lease.hold(context).await? {
        return Ok(());
    }
    let now = context.process.db.now();
    let forgotten = now.plus_ms(-FORGOTTEN_MS);
    if !attention::is_wanted(db, now, forgotten).await? {
        return Ok(());
    }
    // Committed before the rows of teams are touched: in every transaction a team's lock comes first.
    let mut tx = db.begin().await?;
    let may_judge = context.process.witness.may_judge(clock::instant(), db.now());
    let buried = if may_judge { nodes::bury(&mut tx, db.now()).await? } else { 0 };
    tx.commit().await?;
    if buried > 0 {
        tracing::warn!(buried, "workers without a heartbeat are declared dead");
    }
    // Done before everything that may wait for a team's lock.
    let orphans = rescue(context, now).await?;
    if orphans > 0 {
        context.process.metrics.orphans.add(orphans as i64);
        tracing::info!(orphans, "pages of dead workers are back in the queue");
    }
    let overdue = if may_judge { sessions::end_overdue(db, now).await? } else { 0 };
    let ended = sessions::end_orphans(db).await? + overdue;
    if ended > 0 {
        tracing::warn!(ended, "browser sessions that nobody ended are destroyed");
    }
    let mut tx = db.begin().await?;
    profiles::free_abandoned(&mut tx).await?;
    tx.commit().await?;
    let mut tx = db.begin().await?;
    rescue::remind_teams(&mut tx, forgotten).await?;
    webhooks::remind(&mut tx, forgotten).await?;
    tx.commit().await?;
    tasks::remind(db, forgotten, now).await
}
