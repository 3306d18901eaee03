//! Tickets about pages: claim for a team, or the one page somebody waits for, and set the pages going.
//!
//! A worker has at most one lane a team. A lane waits for a slot, claims as many pages as there are slots, starts them
//! and goes on for a short turn; with more to claim it sends the next ticket to the back of the queue, where the
//! teams' tickets take turns.

use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_shared::hand_over::HandedScrape;
use weir_shared::ids::{PageId, TeamId};
use weir_shared::queue;
use weir_shared::store::finish::{Finished, Outcome};
use weir_shared::store::jobs::{self, JobSpec};
use weir_shared::store::pages::{self, Claimed};
use weir_shared::store::{StoreError, StoreResult};
use weir_shared::time::Timestamp;

use crate::context::{HeldPage, WorkerContext};
use crate::finisher::Told;
use crate::gate::{Slot, Urgency};

use super::scrape_page;

/// Turn of a lane.
const TURN: Duration = Duration::from_millis(500);
/// Pages in one claim at most.
const CLAIM: usize = 16;
/// A lane whose last claim found its slots within this time claims pages ahead of the slots: they will not wait longer
/// than that here, and the claims are fewer and larger.
const AHEAD: Duration = Duration::from_millis(25);
/// A page put off for longer, in milliseconds, is left to its ticket.
const FAR_MS: i64 = 90_000;
/// Tickets for what is left after a turn: one for this worker, one for another to join.
const NEXT: usize = 2;

/// Serves a team until nothing can be claimed or the turn is over.
pub async fn lane(context: &Arc<WorkerContext>, team: TeamId) -> StoreResult<()> {
    if !context.lanes.open(team) {
        return Ok(());
    }
    let end = Instant::now() + TURN;
    loop {
        match turn(context, team, end).await {
            Ok(true) => {
                context.lanes.abandon(team);
                let mut tx = context.process.db.begin().await?;
                queue::page_tickets(&mut tx, team, NEXT).await?;
                tx.commit().await?;
                return Ok(());
            }
            Ok(false) if context.lanes.close(team) => return Ok(()),
            Ok(false) => {}
            Err(error) => {
                context.lanes.abandon(team);
                return Err(error);
            }
        }
    }
}

/// Claims and starts pages. `true`: the turn is over and there is more.
async fn turn(context: &Arc<WorkerContext>, team: TeamId, end: Instant) -> StoreResult<bool> {
    let mut is_quick = false;
    loop {
        let Some(first) = slot(context, Urgency::Background).await else { return Ok(true) };
        let mut slots = vec![first];
        slots.extend(context.process.gate.take_free(CLAIM - 1));
        let want = if is_quick { CLAIM } else { slots.len() };
        let started = Instant::now();
        let mut tx = context.process.db.begin_relaxed().await?;
        let limit = context.process.settings.limits.team_concurrency;
        let claim = pages::claim(&mut tx, team, context.id, want, limit, Timestamp::now()).await?;
        tx.commit().await?;
        context.process.metrics.claim_seconds.observe(started.elapsed().as_secs_f64());
        let claimed = Instant::now();
        let mut slots = slots.into_iter();
        let pages: Vec<_> = claim.pages.into_iter().map(|page| (context.held.hold(&page), page)).collect();
        for (held, page) in pages {
            let free = match slots.next() {
                Some(slot) => Some(slot),
                None => slot(context, Urgency::Background).await,
            };
            match free {
                Some(slot) => start(context, page, held, slot),
                None => {
                    let end = Finished { page, kind: None, key: None, outcome: Outcome::GivenBack };
                    context.finisher.submit(end).await;
                }
            }
        }
        if let Some(at) = claim.next_at {
            look_again(context, team, at);
        }
        is_quick = claimed.elapsed() < AHEAD;
        if !claim.more {
            return Ok(false);
        }
        if Instant::now() >= end {
            return Ok(true);
        }
    }
}

/// Serves the team again at `at`, when a page is due that was put off. Tickets have whole seconds and come late; they
/// are there for the case that this worker is not.
pub fn look_again(context: &Arc<WorkerContext>, team: TeamId, at: Timestamp) {
    let pause = at.ms_since(Timestamp::now()).max(0);
    if pause > FAR_MS || !context.lanes.set_alarm(team, at) {
        return;
    }
    let worker = Arc::clone(context);
    tokio::spawn(async move {
        tokio::select! {
            () = worker.draining.cancelled() => return,
            () = worker.fenced.cancelled() => return,
            // A page that is due is a millisecond old.
            () = tokio::time::sleep(Duration::from_millis(pause.unsigned_abs() + 1)) => {}
        }
        if worker.lanes.take_alarm(team, at)
            && let Err(error) = lane(&worker, team).await
        {
            tracing::warn!(%error, "a team could not be served; its ticket follows");
        }
    });
}

/// The next page somebody waits for, whichever it is. `false`: none was claimed, and the library is to deliver what
/// tickets there are.
pub async fn next_direct(context: &Arc<WorkerContext>) -> StoreResult<bool> {
    // A worker that stops leaves its tickets to the others.
    let Some(slot) = slot(context, Urgency::Direct).await else { return Ok(true) };
    let limit = context.process.settings.limits.team_concurrency;
    let claimed = pages::claim_next(&context.process.db, context.id, limit, Timestamp::now()).await?;
    Ok(match claimed {
        Some((page, spec)) => {
            context.keep_spec(page.job_id, Arc::new(spec));
            let held = context.held.hold(&page);
            start(context, page, held, slot);
            true
        }
        None => false,
    })
}

/// The page somebody waits for. At its team's limit it stays queued; the next page of the team that ends sends for it.
pub async fn direct(context: &Arc<WorkerContext>, team: TeamId, page: PageId) -> StoreResult<()> {
    let Some(slot) = slot(context, Urgency::Direct).await else {
        return Err(StoreError::Conflict("the worker is stopping; the ticket goes back".to_owned()));
    };
    let limit = context.process.settings.limits.team_concurrency;
    let claimed = pages::claim_one(&context.process.db, team, page, context.id, limit, Timestamp::now()).await?;
    if let Some((page, spec)) = claimed {
        context.keep_spec(page.job_id, Arc::new(spec));
        let held = context.held.hold(&page);
        start(context, page, held, slot);
    }
    Ok(())
}

/// Works on a page that the API hands to this worker past the queue. `false`: nothing is written, for no slot is free,
/// the worker stops, or its team is at its limit; the queue is the place for it.
pub async fn handed(context: &Arc<WorkerContext>, scrape: HandedScrape, told: Told) -> StoreResult<bool> {
    if context.draining.is_cancelled() || context.fenced.is_cancelled() {
        return Ok(false);
    }
    let Some(slot) = context.process.gate.take_free(1).pop() else { return Ok(false) };
    let limit = context.process.settings.limits.team_concurrency;
    let rows = scrape.rows();
    let db = &context.process.db;
    let started = Instant::now();
    let claimed = jobs::insert_scrape_claimed(db, &rows, context.id, limit, Timestamp::now()).await?;
    context.process.metrics.claim_seconds.observe(started.elapsed().as_secs_f64());
    let Some(page) = claimed else { return Ok(false) };
    let spec = JobSpec { kind: rows.job.kind, key: scrape.key, options: scrape.options, webhook: None, crawl: None };
    context.keep_spec(page.job_id, Arc::new(spec));
    let held = context.held.hold(&page);
    work(context, page, held, slot, Some(told)).await;
    Ok(true)
}

/// A slot, unless the worker drains first.
async fn slot(context: &WorkerContext, urgency: Urgency) -> Option<Slot> {
    tokio::select! {
        biased;
        () = context.draining.cancelled() => None,
        slot = context.process.gate.acquire(urgency) => Some(slot),
    }
}

fn start(context: &Arc<WorkerContext>, page: Claimed, held: HeldPage, slot: Slot) {
    let worker = Arc::clone(context);
    context.tasks.spawn(async move { work(&worker, page, held, slot, None).await });
}

async fn work(context: &Arc<WorkerContext>, page: Claimed, _held: HeldPage, slot: Slot, told: Option<Told>) {
    context.process.metrics.slots_busy.inc();
    scrape_page::run(context, page, slot, told).await;
    context.process.metrics.slots_busy.dec();
}
