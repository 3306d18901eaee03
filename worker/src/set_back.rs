//! Notices that the clock was set back, for those who look after what waits for a time: all that was reckoned while it was ahead
//! lies too far away.

use std::sync::Arc;
use std::time::Duration;

use weir_shared::clock::APART_MS;
use weir_shared::store::StoreResult;
use weir_shared::store::upkeep::set_back;
use weir_shared::time::Timestamp;

use crate::context::WorkerContext;
use crate::lease;

/// Between two looks at the clock.
const EVERY: Duration = Duration::from_secs(1);
/// One worker sees to it, and the others have noticed it by the end of this, milliseconds.
const LEASE_MS: i64 = 60_000;
const LEASE: &str = "set back";

/// The latest time that this worker has seen, after which everything due was looked at.
#[derive(Default)]
pub struct Highest(Option<Timestamp>);

impl Highest {
    /// By how much the clock was set back since, milliseconds, if by more than clocks are put right in passing; 0: it may have
    /// been while this worker was not there.
    pub fn set_back_by(&self, now: Timestamp) -> Option<i64> {
        match self.0 {
            None => Some(0),
            Some(highest) => Some(highest.ms_since(now)).filter(|by_ms| *by_ms > APART_MS),
        }
    }

    /// Everything was looked at by this time.
    pub fn seen(&mut self, now: Timestamp) {
        self.0 = if self.set_back_by(now).is_some() { Some(now) } else { self.0.max(Some(now)) };
    }
}

/// Looks after pages, turns, webhooks and tasks until the worker stops. Monitors look after themselves.
pub async fn run(context: Arc<WorkerContext>) {
    let mut highest = Highest::default();
    while !context.draining.is_cancelled() && !context.fenced.is_cancelled() {
        let now = context.process.db.now();
        let done = match highest.set_back_by(now) {
            Some(by_ms) => release(&context, by_ms, now).await,
            None => Ok(()),
        };
        match done {
            Ok(()) => highest.seen(now),
            Err(error) => tracing::warn!(%error, "the clock was set back, and what waits is not reckoned anew yet"),
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = context.draining.cancelled() => {}
            () = context.fenced.cancelled() => {}
        }
    }
}

async fn release(context: &WorkerContext, by_ms: i64, now: Timestamp) -> StoreResult<()> {
    // Who begins does not know of anything to put back by, and may do what another one does.
    if by_ms > 0 && !lease::hold(context, LEASE, now, now.plus_ms(LEASE_MS)).await? {
        return Ok(());
    }
    let released = set_back::release(&context.process.db, by_ms, now).await?;
    if released > 0 {
        tracing::warn!(
            released,
            "the clock was set back: pages, webhooks and the like are due earlier than was reckoned"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_put_right_in_passing_is_not_set_back() {
        let (mut highest, at) = (Highest::default(), |ms: i64| Timestamp(1_000_000_000 + ms));
        assert_eq!(highest.set_back_by(at(0)), Some(0), "what came before is not known");
        for (now, by) in
            [(0, None), (5_000, None), (-4_000, None), (-5_001, Some(10_001)), (-5_000, None), (9_000, None)]
        {
            if now != 0 {
                assert_eq!(highest.set_back_by(at(now)), by, "{now}");
            }
            highest.seen(at(now));
        }
        assert_eq!(highest.set_back_by(at(-3_000_000)), Some(3_009_000));
    }
}
