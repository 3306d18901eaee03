//! Monitors (wire 24): makes the checks that are due, and carries them on until they end.
//!
//! ```text
//! tick ──> due: one transaction moves monitors on and makes their checks
//!     └──> checks: claimed for a while, each by one worker ──> start    jobs of their targets, a transaction for a team's
//!                                                         ├──> group    those whose pages are all there end together
//!                                                         ├──> collect  what others came to, as their pages end
//!                                                         ├──> search   hits that are new
//!                                                         └──> finish   counts, credits, webhook
//! ```
//!
//! Every worker does so, and none has to: all that is known of a check stands in its row, each step is one transaction
//! that is fenced by the check's epoch, and a step whose worker dies is done again when its lease ends. While nothing is
//! due, a tick is one look at two indexes.
//!
//! Most checks have a few pages that are soon there: what is done about them is done for many at once, in a few statements.
//! A check that takes a step of its own takes one of a few places, of which no team has them all.

mod collect;
mod found;
mod group;
mod places;
mod search;
mod start;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;
use weir_shared::fault::FaultPoint;
use weir_shared::ids::TeamId;
use weir_shared::store::StoreResult;
use weir_shared::store::monitors::checks::{self, CheckRow};
use weir_shared::store::monitors::due;
use weir_shared::time::Timestamp;

use self::places::Places;
use crate::context::WorkerContext;
use crate::set_back::Highest;

/// Longest pause between ticks, where no monitor runs by itself and no check is under way, and where one does; the least,
/// when something is due.
const AT_REST: Duration = Duration::from_millis(2_500);
const EVERY: Duration = Duration::from_secs(1);
const SOONEST: Duration = Duration::from_millis(20);
/// Monitors that are moved on in one transaction, and how often before checks have their turn.
const DUE_AT_ONCE: i64 = 64;
const DUE_IN_A_ROW: usize = 4;
/// Checks that a worker has in hand at most. The next are claimed together when half of them are done.
const IN_HAND: usize = 128;
/// A step that is not done by then has died with its worker: longer than one of its transactions takes with what is read
/// for it. A search takes its own.
const LEASE_MS: i64 = 20_000;
const _: () = assert!(LEASE_MS < due::LONGEST_LEASE_MS && AGAIN_MS < due::LONGEST_LEASE_MS);
/// When a step that failed is tried again.
const AGAIN_MS: i64 = 5_000;
/// How long steps may take that are under way when the worker is to stop.
const LAST_STEPS: Duration = Duration::from_secs(8);

/// What the steps share.
struct Monitors {
    context: Arc<WorkerContext>,
    places: Arc<Places>,
    /// Steps that checks take each by itself.
    own_steps: TaskTracker,
}

/// Looks after monitors until the worker stops.
pub async fn run(context: Arc<WorkerContext>) {
    let (places, own_steps) = (Arc::default(), TaskTracker::new());
    let monitors = Arc::new(Monitors { context: Arc::clone(&context), places, own_steps });
    let (mut steps, mut highest) = (Steps::default(), Highest::default());
    while !context.draining.is_cancelled() && !context.fenced.is_cancelled() {
        let pause = tick(&monitors, &mut steps, &mut highest).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "monitors cannot be looked after; it is tried again");
            EVERY
        });
        tokio::select! {
            () = context.process.db.clock().sleep(pause) => {}
            () = steps.some_end() => {}
            () = context.draining.cancelled() => {}
            () = context.fenced.cancelled() => return,
        }
    }
    monitors.own_steps.close();
    let last = async {
        steps.end().await;
        monitors.own_steps.wait().await;
    };
    let _ = tokio::time::timeout(LAST_STEPS, last).await;
}

/// Steps of several checks that are under way.
#[derive(Default)]
struct Steps {
    /// Each gives how many checks it was about.
    tasks: JoinSet<usize>,
    in_hand: usize,
}

impl Steps {
    fn spawn(&mut self, checks: usize, step: impl Future<Output = ()> + Send + 'static) {
        self.in_hand += checks;
        self.tasks.spawn(async move {
            step.await;
            checks
        });
    }

    /// How many more checks may be claimed.
    fn room(&self) -> usize {
        if self.in_hand > IN_HAND / 2 { 0 } else { IN_HAND - self.in_hand }
    }

    /// Waits until one of them has ended.
    async fn some_end(&mut self) {
        let Some(mut ended) = self.tasks.join_next().await else { return std::future::pending().await };
        loop {
            match ended {
                Ok(checks) => self.in_hand -= checks,
                // What it had in hand waits for the end of its lease.
                Err(error) => tracing::error!(%error, "a step of checks panicked"),
            }
            let Some(next) = self.tasks.try_join_next() else { break };
            ended = next;
        }
        if self.tasks.is_empty() {
            self.in_hand = 0;
        }
    }

    async fn end(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

/// Sees to what is due. Returns how long nothing else is, as far as that is known.
async fn tick(monitors: &Arc<Monitors>, steps: &mut Steps, highest: &mut Highest) -> StoreResult<Duration> {
    let db = &monitors.context.process.db;
    let now = db.now();
    if highest.set_back_by(now).is_some() {
        let moved = due::set_back(db, || db.now()).await?;
        if moved > 0 {
            tracing::warn!(moved, "the clock was set back: monitors and checks are due earlier than was reckoned");
        }
    }
    highest.seen(now);
    let work = due::look(db, now).await?;
    let mut is_all = true;
    if work.monitors {
        is_all = make_checks(monitors, now).await?;
    }
    let room = steps.room();
    if room > 0 && (work.checks || work.monitors) {
        let mut tx = db.begin().await?;
        let claimed = checks::claim(&mut tx, now, now.plus_ms(LEASE_MS), room as i64).await?;
        tx.commit().await?;
        is_all &= claimed.len() < room;
        share_out(monitors, steps, claimed);
    }
    if !is_all && steps.room() > 0 {
        return Ok(Duration::ZERO);
    }
    let Some(next) = work.next_at else { return Ok(AT_REST) };
    let next = Duration::from_millis(next.ms_since(now).max(0).unsigned_abs());
    // What is due now is in hand, here or elsewhere; when it is due again is not known yet.
    Ok(if next.is_zero() { EVERY } else { next.clamp(SOONEST, EVERY) })
}

/// Makes checks of monitors that are due. Returns whether of all: checks of other teams do not wait for very many.
async fn make_checks(monitors: &Monitors, now: Timestamp) -> StoreResult<bool> {
    let db = &monitors.context.process.db;
    for _ in 0..DUE_IN_A_ROW {
        let mut tx = db.begin().await?;
        let made = due::claim(&mut tx, now, DUE_AT_ONCE).await?;
        db.faults().reach(FaultPoint::BeforeCommit)?;
        tx.commit().await?;
        db.faults().reach(FaultPoint::AfterCommit)?;
        if (made as i64) < DUE_AT_ONCE {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Sets the claimed checks going: those that begin by their team, whose lock they need, the others together.
fn share_out(monitors: &Arc<Monitors>, steps: &mut Steps, claimed: Vec<CheckRow>) {
    let (begun, new): (Vec<CheckRow>, Vec<CheckRow>) =
        claimed.into_iter().partition(|check| check.started_at.is_some());
    let mut teams: BTreeMap<TeamId, Vec<CheckRow>> = BTreeMap::new();
    for check in new {
        teams.entry(check.team_id).or_default().push(check);
    }
    for checks in teams.into_values() {
        let monitors = Arc::clone(monitors);
        steps.spawn(checks.len(), async move {
            let outcome = monitors.start(&checks).await;
            monitors.again(outcome, &checks).await;
        });
    }
    if !begun.is_empty() {
        let monitors = Arc::clone(monitors);
        steps.spawn(begun.len(), async move { monitors.look_after(begun).await });
    }
}

impl Monitors {
    /// A step of checks that failed is tried again soon, by whoever comes first.
    async fn again(&self, outcome: StoreResult<()>, checks: &[CheckRow]) {
        let Err(error) = outcome else { return };
        tracing::warn!(%error, checks = checks.len(), "a step of checks failed; it is done again");
        let db = &self.context.process.db;
        let put_off = self.put_off(checks.iter().collect(), db.now().plus_ms(AGAIN_MS));
        if let Err(error) = put_off.await {
            tracing::debug!(%error, "the checks wait for the end of their lease");
        }
    }

    /// Puts checks off.
    async fn put_off(&self, checks: Vec<&CheckRow>, until: Timestamp) -> StoreResult<()> {
        if checks.is_empty() {
            return Ok(());
        }
        let mut tx = self.context.process.db.begin().await?;
        checks::put_off(&mut tx, &checks, until).await?;
        tx.commit().await
    }
}
