//! Pages that somebody waits for: the next one of the queue, a named one, or one that the API dispatches directly.

use std::sync::Arc;
use std::time::Duration;

use weir_shared::clock::Stopwatch;
use weir_shared::fault::FaultPoint;
use weir_shared::guests::Urgency;
use weir_shared::ids::{PageId, TeamId};
use weir_shared::queue::{self, Turn};
use weir_shared::slots::Slot;
use weir_shared::store::work::jobs::JobSpec;
use weir_shared::store::work::page::rows::Claimed;
use weir_shared::store::work::page::{claim, fast};
use weir_shared::store::{StoreError, StoreResult};
use weir_shared::worker_api::direct::DirectScrape;

use super::team::{serve_later, slot, start, work_on};
use crate::context::{WorkerContext, stopping};
use crate::finisher::EndSender;

/// How long a wake-up of the library's waits for a slot here.
const PATIENCE: Duration = Duration::from_secs(5);

/// Claims and starts the next page that somebody waits for, whichever it is. `false`: none was claimed, and the queue
/// library is to deliver the wake-ups.
pub async fn serve_next(context: &Arc<WorkerContext>) -> StoreResult<bool> {
    let _claiming = context.tasks.token();
    let slot = tokio::select! {
        biased;
        // A worker that stops leaves its wake-ups to the others.
        () = context.draining.cancelled() => return Ok(true),
        slot = context.process.slots.acquire_for_anybody() => slot,
    };
    let Some(slot) = slot else { return Ok(false) };
    let limit = context.process.settings.limits.team_concurrency;
    let claimed = fast::claim_next(&context.process.db, context.id, limit, context.process.db.now()).await?;
    let Some((page, spec)) = claimed else { return Ok(false) };
    context.process.db.faults().reach(FaultPoint::AfterClaim)?;
    let slot = slot.is_for((page.team_id, Urgency::Direct));
    begin(context, page, spec, slot);
    Ok(true)
}

/// Claims and starts a page that somebody waits for. At its team's limit it stays queued; the next page of the team that
/// ends sends a wake-up for it. Where the worker has no slot for long its wake-up goes back to the queue, for any worker.
pub async fn serve(context: &Arc<WorkerContext>, team: TeamId, page: PageId) -> StoreResult<()> {
    let _claiming = context.tasks.token();
    let holder = (team, Urgency::Direct);
    let slot = match context.process.slots.try_acquire(holder) {
        Some(slot) => Some(slot),
        None => match tokio::time::timeout(PATIENCE, slot(context, holder)).await {
            Ok(slot) => slot,
            Err(_) => {
                let mut tx = context.process.db.begin().await?;
                queue::page_wakeup(&mut tx, team, page, Turn::default()).await?;
                return tx.commit().await;
            }
        },
    };
    let Some(slot) = slot else { return Err(stopping()) };
    let limit = context.process.settings.limits.team_concurrency;
    let claimed = claim::claim_one(&context.process.db, team, page, context.id, limit, context.process.db.now()).await;
    if claimed.as_ref().is_err_and(StoreError::is_lock_wait) {
        // A dispatcher takes pages that somebody waits for first.
        serve_later(context, team);
        return Ok(());
    }
    if let Some((page, spec)) = claimed? {
        context.process.db.faults().reach(FaultPoint::AfterClaim)?;
        begin(context, page, spec, slot);
    }
    Ok(())
}

fn begin(context: &Arc<WorkerContext>, page: Claimed, spec: JobSpec, slot: Slot) {
    context.keep_spec(page.job_id, Arc::new(spec));
    let held = context.held.hold(&page);
    start(context, page, held, slot);
}

/// Works on a page that the API dispatches to this worker past the queue. `false`: nothing is written, for no slot is free,
/// the worker stops, its team is at its limit or somebody holds its lock; the queue is the place for it.
pub async fn dispatched(
    context: &Arc<WorkerContext>,
    scrape: DirectScrape,
    end_sender: EndSender,
) -> StoreResult<bool> {
    if context.draining.is_cancelled() || context.fenced.is_cancelled() {
        return Ok(false);
    }
    let rows = scrape.rows();
    let Some(slot) = context.process.slots.try_acquire((scrape.team, Urgency::Direct)) else { return Ok(false) };
    let limit = context.process.settings.limits.team_concurrency;
    let db = &context.process.db;
    let started = Stopwatch::start();
    let claimed = fast::insert_claimed(db, &rows, context.id, limit, context.process.db.now()).await;
    context.process.metrics.claim_seconds.observe(started.elapsed().as_secs_f64());
    if claimed.as_ref().is_err_and(StoreError::is_lock_wait) {
        return Ok(false);
    }
    let Some(page) = claimed? else { return Ok(false) };
    db.faults().reach(FaultPoint::AfterClaim)?;
    let spec = JobSpec {
        kind: rows.job.kind,
        key: scrape.key,
        options: scrape.options,
        webhook: None,
        crawl: None,
        given: Vec::new(),
    };
    context.keep_spec(page.job_id, Arc::new(spec));
    let held = context.held.hold(&page);
    work_on(context, page, held, slot, Some(end_sender)).await;
    Ok(true)
}
