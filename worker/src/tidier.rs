//! One worker at a time, by lease: removes what nobody needs any more, and finishes what was begun in slices.
//!
//! A task of its own, so that nothing here stands before the sweeper's rescues, however much there is to remove; blobs have
//! another one, because a bucket may be silent.

use std::sync::Arc;
use std::time::Duration;

use weir_shared::domain::activity::WINDOW_MS;
use weir_shared::store::accounts::{activity, ledger};
use weir_shared::store::contents::orphans::Orphans;
use weir_shared::store::contents::{cache, extractors, retention, site_templates, snapshots, uploads, waste};
use weir_shared::store::db::slices::Slices;
use weir_shared::store::upkeep::removal::Removals;
use weir_shared::store::upkeep::{attention, sweep};
use weir_shared::store::work::cancel;
use weir_shared::store::{StoreResult, monitors, sessions};

use crate::context::WorkerContext;
use crate::lease::Lease;

/// Pause between rounds.
const EVERY: Duration = Duration::from_secs(5);
/// Pause between two times that it is told which stored pages were read.
const TELL_EVERY: Duration = Duration::from_secs(60);
/// The lease outlives a few rounds, so that one worker keeps the task. Two at once do no harm.
const LEASE_MS: i64 = 30_000;
/// Names of files that were sent go, SQLite's file and log shrink every so many rounds.
const SHRINK_EVERY: u32 = 4;
/// What grows slowly is looked at, the cache and the tracked pages are weighed every so many rounds.
const WEIGH_EVERY: u32 = 12;
/// What is kept for months is looked through every so many rounds, which is each hour.
const FORGET_EVERY: u32 = 720;
/// Rounds of removals in a row, before the other tasks have their turn.
const EXPIRE_ROUNDS: u32 = 200;

/// Tidies until the worker stops.
pub async fn run(context: Arc<WorkerContext>) {
    tokio::select! {
        () = rows(&context) => {}
        () = waste(&context) => {}
        () = uses(&context) => {}
        () = context.draining.cancelled() => {}
        () = context.fenced.cancelled() => {}
    }
}

/// What one worker remembers from round to round.
struct Tidying {
    lease: Lease,
    slices: Slices,
    round: u32,
    orphans: Orphans,
    removals: Removals,
    /// SQLite's log may hold what is to be forgotten. True when this worker begins: it does not know what came before.
    log_is_dirty: bool,
}

async fn rows(context: &WorkerContext) {
    let mut tidying = Tidying {
        lease: Lease::new("tidy", LEASE_MS),
        slices: Slices::default(),
        round: 0,
        orphans: Orphans::default(),
        removals: Removals::default(),
        log_is_dirty: true,
    };
    loop {
        if let Err(error) = round(context, &mut tidying).await {
            tracing::warn!(%error, "what nobody needs could not be removed; it is tried again");
        }
        tidying.round = tidying.round.wrapping_add(1);
        tokio::time::sleep(EVERY).await;
    }
}

/// Which stored pages this worker has read, and what it has learned of sites: told by each.
async fn uses(context: &WorkerContext) {
    loop {
        tokio::time::sleep(TELL_EVERY).await;
        if let Err(error) = context.process.uses.tell(&context.process.db).await {
            tracing::warn!(%error, "it could not be written down which stored pages are in use");
        }
        if let Err(error) = context.process.templates.tell(&context.process.db).await {
            tracing::warn!(%error, "it could not be written down what pages of a site have in common");
        }
    }
}

/// Blobs of jobs that are gone, and of pages that are not kept any more.
async fn waste(context: &WorkerContext) {
    let mut lease = Lease::new("waste", LEASE_MS);
    loop {
        let removed = async {
            if !lease.hold(context).await? {
                return Ok(0);
            }
            let (db, blobs) = (&context.process.db, &context.process.blobs);
            let of_jobs = waste::remove_of_jobs(db, blobs, db.now()).await?;
            StoreResult::Ok(of_jobs + waste::remove(db, blobs, db.now()).await?)
        };
        match removed.await {
            Ok(0) => tokio::time::sleep(EVERY).await,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "blobs of expired jobs could not be removed; it is tried again");
                tokio::time::sleep(EVERY).await;
            }
        }
    }
}

async fn round(context: &WorkerContext, tidying: &mut Tidying) -> StoreResult<()> {
    if !tidying.lease.hold(context).await? {
        return Ok(());
    }
    let db = &context.process.db;
    if attention::is_untidy(db, db.now(), result_ttl_ms(context)).await? {
        tidy(context, tidying).await?;
    }
    let Tidying { slices, round, orphans, log_is_dirty, .. } = tidying;
    if round.is_multiple_of(SHRINK_EVERY) {
        let mut tx = db.begin_relaxed().await?;
        uploads::expire(&mut tx, db.now()).await?;
        tx.commit().await?;
        if *log_is_dirty {
            *log_is_dirty = !retention::empty_log(db).await?;
        }
        sweep::shrink(db).await?;
    }
    if round.is_multiple_of(WEIGH_EVERY) {
        slowly(context, slices).await?;
        let settings = &context.process.settings;
        let dropped = cache::evict(db, settings.cache_size, context.process.db.now()).await?;
        if dropped > 0 {
            tracing::info!(pages = dropped, "pages left the cache");
            orphans.expect();
        }
        snapshots::weigh(db).await?;
    }
    orphans.remove(db, slices).await?;
    if round.is_multiple_of(FORGET_EVERY) {
        monitors::removal::forget(db, slices, context.process.db.now()).await?;
    }
    Ok(())
}

fn result_ttl_ms(context: &WorkerContext) -> i64 {
    context.process.settings.result_ttl.as_millis() as i64
}

/// What was cancelled, is done with or past its time. A step that is added here is asked for in [`attention::is_untidy`],
/// too, or its turn does not come.
async fn tidy(context: &WorkerContext, tidying: &mut Tidying) -> StoreResult<()> {
    let Tidying { lease, slices, orphans, removals, log_is_dirty, .. } = tidying;
    let db = &context.process.db;
    cancel::drop_rest(db, slices, context.process.db.now()).await?;
    sweep::prune_wakeups(db, slices).await?;
    loop {
        let mut tx = db.begin_relaxed().await?;
        let more = retention::shorten(&mut tx).await?;
        tx.commit().await?;
        if !more {
            break;
        }
    }
    sweep::keep_running(db, slices, context.process.db.now(), result_ttl_ms(context)).await?;
    // Asked before the jobs that keep nothing are removed, because their rows say so.
    *log_is_dirty |= retention::any(db).await?;
    for _ in 0..EXPIRE_ROUNDS {
        if sweep::expire(db, slices, context.process.db.now()).await? == 0 || !lease.hold(context).await? {
            break;
        }
    }
    sweep::remove_drafts(db, slices, context.process.db.now()).await?;
    let old = monitors::removal::remove(db, slices, context.process.db.now()).await?;
    if old > 0 {
        tracing::info!(checks = old, "checks of monitors are past their retention");
    }
    let removed = removals.go_on(db, slices, orphans).await?;
    if removed.rows > 0 {
        *log_is_dirty = true;
        tracing::info!(rows = removed.rows, "rows of teams that were removed are gone");
    }
    Ok(())
}

/// What may wait a minute longer.
async fn slowly(context: &WorkerContext, slices: &mut Slices) -> StoreResult<()> {
    let db = &context.process.db;
    let now = context.process.db.now();
    let mut tx = db.begin().await?;
    sessions::remove_old(&mut tx, now.plus_ms(-result_ttl_ms(context))).await?;
    sweep::prune(&mut tx, now).await?;
    tx.commit().await?;
    loop {
        let mut tx = db.begin().await?;
        let more = activity::forget(&mut tx, now.plus_ms(-WINDOW_MS)).await?
            | extractors::expire(&mut tx, now).await?
            | site_templates::expire(&mut tx, now).await?;
        tx.commit().await?;
        if !more {
            break;
        }
    }
    let merged = ledger::merge(db, slices, now).await?;
    if merged > 0 {
        tracing::info!(entries = merged, "old entries of the ledger were merged");
    }
    Ok(())
}
