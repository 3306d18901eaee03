//! Monitors (wire 24): makes the checks that are due, and carries them on until they end.
//!
//! ```text
//! tick ──> due: one transaction moves a monitor on and makes its check
//!     └──> checks: claimed for a while, each by one worker ──> start    jobs of its targets, one transaction
//!                                                         ├──> collect  what their pages came to, as they end
//!                                                         ├──> search   hits that are new
//!                                                         └──> finish   counts, credits, webhook
//! ```
//!
//! Every worker does so, and none has to: all that is known of a check stands in its row, each step is one transaction
//! that is fenced by the check's epoch, and a step whose worker dies is done again when its lease ends. While nothing is
//! due, a tick is one look at two indexes.

mod collect;
mod found;
mod search;
mod start;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use weir_shared::fault::FaultPoint;
use weir_shared::search::Backends;
use weir_shared::store::StoreResult;
use weir_shared::store::monitors::checks::{self, CheckRow};
use weir_shared::store::monitors::due;
use weir_shared::time::Timestamp;

use crate::context::WorkerContext;

/// Pause between ticks.
const EVERY: Duration = Duration::from_secs(1);
/// Monitors that are moved on in one transaction.
const DUE_AT_ONCE: i64 = 50;
/// Checks that a worker carries on at once.
const CHECKS_AT_ONCE: usize = 8;
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
    /// Where searches are made.
    search: Backends,
}

/// Looks after monitors until the worker stops.
pub async fn run(context: Arc<WorkerContext>) {
    let search = Backends::new(context.process.settings.search.clone());
    let monitors = Arc::new(Monitors { context: Arc::clone(&context), search });
    let mut steps = JoinSet::new();
    let mut highest = Highest::default();
    while !context.draining.is_cancelled() && !context.fenced.is_cancelled() {
        if let Err(error) = tick(&monitors, &mut steps, &mut highest).await {
            tracing::warn!(%error, "monitors cannot be looked after; it is tried again");
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = some_end(&mut steps) => {}
            () = context.draining.cancelled() => {}
            () = context.fenced.cancelled() => return,
        }
        while steps.try_join_next().is_some() {}
    }
    let last = async { while steps.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(LAST_STEPS, last).await;
}

/// Waits until half of the places are free: the next checks are claimed together, in one transaction.
async fn some_end(steps: &mut JoinSet<()>) {
    while steps.join_next().await.is_some() {
        if steps.len() <= CHECKS_AT_ONCE / 2 {
            return;
        }
    }
    std::future::pending().await
}

/// The latest time that this worker has seen, after which everything due was looked at.
#[derive(Default)]
struct Highest(Option<Timestamp>);

impl Highest {
    /// Whether the clock was set back since, by more than clocks are put right in passing. It may have been while this
    /// worker was not there.
    fn is_set_back(&self, now: Timestamp) -> bool {
        self.0.is_none_or(|highest| highest.ms_since(now) > due::SET_BACK_MS)
    }
}

async fn tick(monitors: &Arc<Monitors>, steps: &mut JoinSet<()>, highest: &mut Highest) -> StoreResult<()> {
    let db = &monitors.context.process.db;
    let now = db.now();
    if highest.is_set_back(now) {
        let moved = due::set_back(db, || db.now()).await?;
        if moved > 0 {
            tracing::warn!(moved, "the clock was set back: monitors and checks are due earlier than was reckoned");
        }
        highest.0 = Some(now);
    }
    highest.0 = highest.0.max(Some(now));
    let work = due::look(db, now).await?;
    if work.monitors {
        loop {
            let mut tx = db.begin().await?;
            let made = due::claim(&mut tx, now, DUE_AT_ONCE).await?;
            db.faults().reach(FaultPoint::BeforeCommit)?;
            tx.commit().await?;
            db.faults().reach(FaultPoint::AfterCommit)?;
            if (made as i64) < DUE_AT_ONCE {
                break;
            }
        }
    }
    let places = CHECKS_AT_ONCE.saturating_sub(steps.len());
    if places == 0 || !(work.checks || work.monitors) {
        return Ok(());
    }
    let mut tx = db.begin().await?;
    let claimed = checks::claim(&mut tx, now, now.plus_ms(LEASE_MS), places as i64).await?;
    tx.commit().await?;
    for check in claimed {
        let monitors = Arc::clone(monitors);
        steps.spawn(async move { monitors.step(check).await });
    }
    Ok(())
}

impl Monitors {
    /// One step of a check. What fails is tried again soon, by whoever comes first.
    async fn step(&self, check: CheckRow) {
        let outcome = match check.started_at {
            None => self.start(&check).await,
            Some(_) => self.carry_on(&check).await,
        };
        let Err(error) = outcome else { return };
        tracing::warn!(%error, check.id = %check.id, monitor.id = %check.monitor_id, "a step of a check failed; it is done again");
        let db = &self.context.process.db;
        let put_off = async {
            let mut tx = db.begin().await?;
            checks::put_off(&mut tx, &check, db.now().plus_ms(AGAIN_MS)).await?;
            tx.commit().await
        };
        if let Err(error) = put_off.await {
            tracing::debug!(%error, check.id = %check.id, "the check waits for the end of its lease");
        }
    }
}
