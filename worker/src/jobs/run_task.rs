//! An extraction or agent may go on: it begins, its pages have ended, or its worker is gone.

use std::sync::Arc;

use weir_shared::ids::JobId;
use weir_shared::queue::{TASK_QUEUE, Wakeup};
use weir_shared::store::StoreResult;

use super::job::Job;
use crate::context::WorkerContext;
use crate::task;

/// The task's job.
pub struct RunTask {
    job: JobId,
}

impl Job for RunTask {
    const NAME: &'static str = "run_task";
    const QUEUE: &'static str = TASK_QUEUE;
    const AT_ONCE: usize = 24;

    fn of(wakeup: Wakeup) -> Option<Self> {
        match wakeup {
            Wakeup::Task { job, .. } => Some(Self { job }),
            _ => None,
        }
    }

    async fn run(self, context: Arc<WorkerContext>) -> StoreResult<()> {
        task::run(&context, self.job).await
    }
}
