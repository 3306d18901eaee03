//! Tasks that one worker does for all: it holds the task's lease.

use std::time::Duration;

use tokio::time::Instant;
use weir_shared::store::StoreResult;
use weir_shared::store::upkeep::leases;
use weir_shared::time::Timestamp;

use crate::context::WorkerContext;

/// Takes or renews the lease of a task. `false`: another worker does it.
pub async fn hold(context: &WorkerContext, task: &str, now: Timestamp, until: Timestamp) -> StoreResult<bool> {
    let mut tx = context.process.db.begin_relaxed().await?;
    let mine = leases::take(&mut tx, task, context.id, now, until).await?;
    tx.commit().await?;
    Ok(mine)
}

/// The lease of a task that one worker goes on with, round after round.
pub struct Lease {
    task: &'static str,
    /// How long it outlives its last renewal, ms.
    lasts_ms: i64,
    /// Until then it is this worker's without a question: half of its time is left.
    renew_at: Option<Instant>,
}

impl Lease {
    /// A lease that is not taken yet.
    pub fn new(task: &'static str, lasts_ms: i64) -> Self {
        Self { task, lasts_ms, renew_at: None }
    }

    /// Whether the task is this worker's, which it is for half of `lasts_ms` at least.
    pub async fn hold(&mut self, context: &WorkerContext) -> StoreResult<bool> {
        let db = &context.process.db;
        // By the time that passes: the wall clock may be set.
        let at = db.clock().instant();
        if self.renew_at.is_some_and(|renew_at| at < renew_at) {
            return Ok(true);
        }
        let now = db.now();
        let mine = hold(context, self.task, now, now.plus_ms(self.lasts_ms)).await?;
        self.renew_at = mine.then(|| at + Duration::from_millis(self.lasts_ms.unsigned_abs() / 2));
        Ok(mine)
    }
}
