//! Tasks that one worker does for all: it holds the task's lease.

use weir_shared::store::{StoreResult, leases};
use weir_shared::time::Timestamp;

use crate::context::WorkerContext;

/// Takes or renews the lease of a task. `false`: another worker does it.
pub async fn hold(context: &WorkerContext, task: &str, now: Timestamp, until: Timestamp) -> StoreResult<bool> {
    let mut tx = context.process.db.begin_relaxed().await?;
    let mine = leases::take(&mut tx, task, context.id, now, until).await?;
    tx.commit().await?;
    Ok(mine)
}
