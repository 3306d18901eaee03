//! The dispatcher of a team: claims its pages and sets them going.
//!
//! A worker has at most one dispatcher a team. It waits for a slot, claims as many pages as there are slots (more where
//! slots come back quickly), starts them and goes on for a short turn; with more to claim it sends the next wake-up to the
//! back of the queue, where the teams' wake-ups take turns.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use weir_shared::clock::{self, Stopwatch};
use weir_shared::fault::FaultPoint;
use weir_shared::guests::{Holder, Urgency};
use weir_shared::ids::TeamId;
use weir_shared::queue;
use weir_shared::slots::Slot;
use weir_shared::store::StoreResult;
use weir_shared::store::work::page::claim;
use weir_shared::store::work::page::end::{Finished, Outcome};
use weir_shared::store::work::page::rows::Claimed;
use weir_shared::time::Timestamp;

use super::held::HeldPage;
use crate::context::WorkerContext;
use crate::finisher::EndSender;
use crate::page::work;

/// Turn of a dispatcher.
const TURN: Duration = Duration::from_millis(500);
/// Pages in one claim at most.
const CLAIM: usize = 32;
/// A dispatcher whose slots come back within this time claims pages ahead of them: the claims are fewer and larger, and no
/// slot waits for one.
const AHEAD: Duration = Duration::from_millis(100);
/// After this time without a slot a wake-up calls another worker, which may have one, and pages that were claimed ahead
/// go back to the queue.
const PATIENCE: Duration = Duration::from_secs(1);
/// A team whose lock somebody holds is served this much later, milliseconds.
const LOCKED_MS: i64 = 500;
/// A page put off for longer, in milliseconds, is left to its wake-up.
const FAR_MS: i64 = 90_000;
/// Wake-ups for what is left after a turn: one for this worker, one for another to join.
const NEXT: usize = 2;

/// Claimed pages that are not started yet, and the slots that are there for the first of them.
#[derive(Default)]
struct Ready {
    pages: Vec<(HeldPage, Claimed)>,
    slots: Vec<Slot>,
}

/// Serves a team until nothing can be claimed or the turn is over.
pub async fn dispatch(context: &Arc<WorkerContext>, team: TeamId) -> StoreResult<()> {
    if !context.dispatchers.start(team) {
        return Ok(());
    }
    let _claiming = context.tasks.token();
    let end = clock::deadline(TURN);
    loop {
        match turn(context, team, end).await {
            Ok(Some(rest)) => {
                context.dispatchers.abandon(team);
                return tokio::join!(send_wakeups(context, team, NEXT), start_each(context, rest)).0;
            }
            Ok(None) if context.dispatchers.end(team) => return Ok(()),
            Ok(None) => {}
            Err(error) => {
                context.dispatchers.abandon(team);
                return Err(error);
            }
        }
    }
}

/// Claims and starts pages until none is left (`None`) or the turn is over; then the answer is what is claimed and not yet
/// started.
async fn turn(context: &Arc<WorkerContext>, team: TeamId, end: Instant) -> StoreResult<Option<Ready>> {
    let holder = (team, Urgency::Background);
    let mut has_started = false;
    loop {
        let waits = Stopwatch::start();
        let mut first = pin!(slot(context, holder));
        let first = loop {
            match tokio::time::timeout(PATIENCE, &mut first).await {
                Ok(first) => break first,
                Err(_) => send_wakeups(context, team, 1).await?,
            }
        };
        let Some(first) = first else { return Ok(Some(Ready::default())) };
        let mut is_quick = has_started && waits.elapsed() < AHEAD;
        let mut slots = vec![first];
        slots.extend(context.process.slots.take_free(CLAIM - 1, holder));
        let most = if is_quick { CLAIM } else { slots.len() };
        let (pages, mut has_more) = claim(context, team, most).await?;
        let mut ready = Ready { pages, slots };
        while is_quick && has_more && clock::instant() < end {
            let began = Stopwatch::start();
            let ((), next) = tokio::join!(start_each(context, ready), claim(context, team, CLAIM));
            is_quick = began.elapsed() < AHEAD;
            ready = Ready::default();
            (ready.pages, has_more) = next?;
        }
        if has_more && clock::instant() >= end {
            return Ok(Some(ready));
        }
        start_each(context, ready).await;
        if !has_more {
            return Ok(None);
        }
        has_started = true;
    }
}

/// Sends wake-ups for a team, to the back of the queue.
async fn send_wakeups(context: &WorkerContext, team: TeamId, wakeups: usize) -> StoreResult<()> {
    let mut tx = context.process.db.begin().await?;
    queue::team_wakeups(&mut tx, team, wakeups).await?;
    tx.commit().await
}

/// Claims up to `most` pages of a team; with them, whether there is more.
async fn claim(
    context: &Arc<WorkerContext>,
    team: TeamId,
    most: usize,
) -> StoreResult<(Vec<(HeldPage, Claimed)>, bool)> {
    let started = Stopwatch::start();
    let mut tx = context.process.db.begin_claim().await?;
    let limit = context.process.settings.limits.team_concurrency;
    let claim = match claim::claim(&mut tx, team, context.id, most, limit, context.process.db.now()).await {
        Err(error) if error.is_lock_wait() => {
            serve_later(context, team);
            return Ok((Vec::new(), false));
        }
        claim => claim?,
    };
    tx.commit().await?;
    context.process.db.faults().reach(FaultPoint::AfterClaim)?;
    context.process.metrics.claim_seconds.observe(started.elapsed().as_secs_f64());
    if let Some(at) = claim.next_at {
        look_again(context, team, at);
    }
    Ok((claim.pages.into_iter().map(|page| (context.held.hold(&page), page)).collect(), claim.more))
}

/// Serves the team a little later, because another transaction holds its lock; the slots are for other teams meanwhile.
pub fn serve_later(context: &Arc<WorkerContext>, team: TeamId) {
    tracing::debug!(team.id = %team, "the team's rows are locked; it is served a little later");
    look_again(context, team, context.process.db.now().plus_ms(LOCKED_MS));
}

/// Starts pages as slots become free. Those that wait too long, or whose worker stops, go back to the queue.
async fn start_each(context: &Arc<WorkerContext>, ready: Ready) {
    let by = clock::deadline(PATIENCE);
    let mut slots = ready.slots.into_iter();
    for (held, page) in ready.pages {
        let free = match slots.next() {
            Some(slot) => Some(slot),
            None => {
                let holder = (page.team_id, Urgency::Background);
                tokio::time::timeout_at(by, slot(context, holder)).await.ok().flatten()
            }
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

/// Serves the team again at `at`, when a page is due that was put off. Wake-ups have whole seconds and come late;
/// they are there for the case that this worker is not.
fn look_again(context: &Arc<WorkerContext>, team: TeamId, at: Timestamp) {
    let pause = at.ms_since(context.process.db.now()).max(0);
    if pause > FAR_MS || !context.dispatchers.set_alarm(team, at) {
        return;
    }
    let worker = Arc::clone(context);
    tokio::spawn(async move {
        tokio::select! {
            () = worker.draining.cancelled() => return,
            () = worker.fenced.cancelled() => return,
            // One millisecond more, so that the page is due by the claim's clock too.
            () = tokio::time::sleep(Duration::from_millis(pause.unsigned_abs() + 1)) => {}
        }
        if worker.dispatchers.take_alarm(team, at)
            && let Err(error) = dispatch(&worker, team).await
        {
            tracing::warn!(%error, "a team could not be served; its wake-up follows");
        }
    });
}

/// A slot, unless the worker drains first.
pub async fn slot(context: &WorkerContext, holder: Holder) -> Option<Slot> {
    tokio::select! {
        biased;
        () = context.draining.cancelled() => None,
        slot = context.process.slots.acquire(holder) => Some(slot),
    }
}

/// Works on a claimed page in a task of its own.
pub fn start(context: &Arc<WorkerContext>, page: Claimed, held: HeldPage, slot: Slot) {
    let worker = Arc::clone(context);
    context.tasks.spawn(async move { work_on(&worker, page, held, slot, None).await });
}

/// Works on a claimed page; `end_sender` hears of its end. Its team is served again when the page is due once more.
pub async fn work_on(
    context: &Arc<WorkerContext>,
    page: Claimed,
    held: HeldPage,
    slot: Slot,
    end_sender: Option<EndSender>,
) {
    let team = page.team_id;
    context.process.metrics.slots_busy.inc();
    let again = work::run(context, page, held, slot, end_sender).await;
    if let Some(at) = again {
        look_again(context, team, at);
    }
    context.process.metrics.slots_busy.dec();
}
