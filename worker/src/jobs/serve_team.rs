//! Tickets about pages: claim for a team, or the one page somebody waits for, and set the pages going.
//!
//! At most one lane a team claims in a worker. It waits for a slot, claims as many pages as there are slots (more where
//! slots come back quickly), starts them and goes on for a short turn; with more to claim it sends the next ticket to the
//! back of the queue, where the teams' tickets take turns.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_shared::ids::{PageId, TeamId};
use weir_shared::queue;
use weir_shared::store::finish::{Finished, Outcome};
use weir_shared::store::jobs::{self, JobSpec};
use weir_shared::store::pages::{self, Claimed};
use weir_shared::store::{StoreError, StoreResult};
use weir_shared::time::Timestamp;
use weir_shared::worker_api::direct::DirectScrape;

use crate::context::{HeldPage, WorkerContext};
use crate::finisher::Told;
use crate::gate::{Slot, Urgency};

use super::scrape_page;

/// Turn of a lane.
const TURN: Duration = Duration::from_millis(500);
/// Pages in one claim at most.
const CLAIM: usize = 32;
/// A lane whose slots come back within this time claims pages ahead of them: the claims are fewer and larger, and no
/// slot waits for one.
const AHEAD: Duration = Duration::from_millis(100);
/// After this time without a slot another worker is invited, which may have one, and pages that were claimed ahead go
/// back.
const PATIENCE: Duration = Duration::from_secs(1);
/// A team whose lock somebody holds is served this much later, milliseconds.
const LOCKED_MS: i64 = 500;
/// A page put off for longer, in milliseconds, is left to its ticket.
const FAR_MS: i64 = 90_000;
/// Tickets for what is left after a turn: one for this worker, one for another to join.
const NEXT: usize = 2;

/// Claimed pages that are not started yet, and the slots that are there for the first of them.
#[derive(Default)]
struct Ready {
    pages: Vec<(HeldPage, Claimed)>,
    slots: Vec<Slot>,
}

/// Serves a team until nothing can be claimed or the turn is over.
pub async fn lane(context: &Arc<WorkerContext>, team: TeamId) -> StoreResult<()> {
    if !context.lanes.open(team) {
        return Ok(());
    }
    let end = Instant::now() + TURN;
    loop {
        match turn(context, team, end).await {
            Ok(Some(rest)) => {
                context.lanes.abandon(team);
                return tokio::join!(invite(context, team, NEXT), hand_out(context, rest)).0;
            }
            Ok(None) if context.lanes.close(team) => return Ok(()),
            Ok(None) => {}
            Err(error) => {
                context.lanes.abandon(team);
                return Err(error);
            }
        }
    }
}

/// Claims and starts pages until there are none (`None`) or the turn is over: then what is claimed and not started.
async fn turn(context: &Arc<WorkerContext>, team: TeamId, end: Instant) -> StoreResult<Option<Ready>> {
    let mut has_started = false;
    loop {
        let waits = Instant::now();
        let mut first = pin!(slot(context, Urgency::Background));
        let first = loop {
            match tokio::time::timeout(PATIENCE, &mut first).await {
                Ok(first) => break first,
                Err(_) => invite(context, team, 1).await?,
            }
        };
        let Some(first) = first else { return Ok(Some(Ready::default())) };
        let mut is_quick = has_started && waits.elapsed() < AHEAD;
        let mut slots = vec![first];
        slots.extend(context.process.gate.take_free(CLAIM - 1));
        let most = if is_quick { CLAIM } else { slots.len() };
        let (pages, mut has_more) = claim(context, team, most).await?;
        let mut ready = Ready { pages, slots };
        while is_quick && has_more && Instant::now() < end {
            let began = Instant::now();
            let ((), next) = tokio::join!(hand_out(context, ready), claim(context, team, CLAIM));
            is_quick = began.elapsed() < AHEAD;
            ready = Ready::default();
            (ready.pages, has_more) = next?;
        }
        if has_more && Instant::now() >= end {
            return Ok(Some(ready));
        }
        hand_out(context, ready).await;
        if !has_more {
            return Ok(None);
        }
        has_started = true;
    }
}

/// Sends tickets for a team, at the back of the queue.
async fn invite(context: &WorkerContext, team: TeamId, tickets: usize) -> StoreResult<()> {
    let mut tx = context.process.db.begin().await?;
    queue::page_tickets(&mut tx, team, tickets).await?;
    tx.commit().await
}

/// Claims up to `most` pages of a team; with them, whether there is more.
async fn claim(
    context: &Arc<WorkerContext>,
    team: TeamId,
    most: usize,
) -> StoreResult<(Vec<(HeldPage, Claimed)>, bool)> {
    let started = Instant::now();
    let mut tx = context.process.db.begin_claim().await?;
    let limit = context.process.settings.limits.team_concurrency;
    let claim = match pages::claim(&mut tx, team, context.id, most, limit, Timestamp::now()).await {
        Err(error) if error.is_lock_wait() => {
            come_back(context, team);
            return Ok((Vec::new(), false));
        }
        claim => claim?,
    };
    tx.commit().await?;
    context.process.metrics.claim_seconds.observe(started.elapsed().as_secs_f64());
    if let Some(at) = claim.next_at {
        look_again(context, team, at);
    }
    Ok((claim.pages.into_iter().map(|page| (context.held.hold(&page), page)).collect(), claim.more))
}

/// Somebody holds the team's lock: the slots are for others meanwhile.
fn come_back(context: &Arc<WorkerContext>, team: TeamId) {
    tracing::debug!(team.id = %team, "the team's rows are locked; it is served a little later");
    look_again(context, team, Timestamp::now().plus_ms(LOCKED_MS));
}

/// Starts pages as slots become free. Those that wait too long, or whose worker stops, go back.
async fn hand_out(context: &Arc<WorkerContext>, ready: Ready) {
    let by = tokio::time::Instant::now() + PATIENCE;
    let mut slots = ready.slots.into_iter();
    for (held, page) in ready.pages {
        let free = match slots.next() {
            Some(slot) => Some(slot),
            None => tokio::time::timeout_at(by, slot(context, Urgency::Background)).await.ok().flatten(),
        };
        match free {
            Some(slot) => start(context, page, held, slot),
            None => {
                let end = Finished { page, kind: None, key: None, outcome: Outcome::GivenBack };
                context.finisher.submit(end, held, None).await;
            }
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
    let claimed = pages::claim_one(&context.process.db, team, page, context.id, limit, Timestamp::now()).await;
    if claimed.as_ref().is_err_and(StoreError::is_lock_wait) {
        // A lane takes pages that somebody waits for first.
        come_back(context, team);
        return Ok(());
    }
    let claimed = claimed?;
    if let Some((page, spec)) = claimed {
        context.keep_spec(page.job_id, Arc::new(spec));
        let held = context.held.hold(&page);
        start(context, page, held, slot);
    }
    Ok(())
}

/// Works on a page that the API hands to this worker past the queue. `false`: nothing is written, for no slot is free,
/// the worker stops, its team is at its limit or somebody holds its lock; the queue is the place for it.
pub async fn handed(context: &Arc<WorkerContext>, scrape: DirectScrape, told: Told) -> StoreResult<bool> {
    if context.draining.is_cancelled() || context.fenced.is_cancelled() {
        return Ok(false);
    }
    let Some(slot) = context.process.gate.take_free(1).pop() else { return Ok(false) };
    let limit = context.process.settings.limits.team_concurrency;
    let rows = scrape.rows();
    let db = &context.process.db;
    let started = Instant::now();
    let claimed = jobs::insert_scrape_claimed(db, &rows, context.id, limit, Timestamp::now()).await;
    context.process.metrics.claim_seconds.observe(started.elapsed().as_secs_f64());
    if claimed.as_ref().is_err_and(StoreError::is_lock_wait) {
        return Ok(false);
    }
    let Some(page) = claimed? else { return Ok(false) };
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

async fn work(context: &Arc<WorkerContext>, page: Claimed, held: HeldPage, slot: Slot, told: Option<Told>) {
    context.process.metrics.slots_busy.inc();
    scrape_page::run(context, page, held, slot, told).await;
    context.process.metrics.slots_busy.dec();
}
