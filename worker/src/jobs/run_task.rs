//! An extraction or agent may go on: it begins, its pages have ended, or its worker is gone.

use std::sync::{Arc, LazyLock};

use weir_shared::ids::JobId;
use weir_shared::queue::{TASK_QUEUE, Wakeup};
use weir_shared::store::StoreResult;
use weir_shared::store::work::tasks;

use super::job::Job;
use super::places::Places;
use crate::context::WorkerContext;
use crate::task;

/// Tasks that are driven at once, in all and of one team. Those that wait for pages are not among them.
static PLACES: LazyLock<Places> = LazyLock::new(|| Places::new(96, 24));

/// The task's job.
pub struct RunTask {
    job: JobId,
}

impl Job for RunTask {
    const NAME: &'static str = "run_task";
    const QUEUE: &'static str = TASK_QUEUE;
    const AT_ONCE: usize = 256;

    fn of(wakeup: Wakeup) -> Option<Self> {
        match wakeup {
            Wakeup::Task { job, .. } => Some(Self { job }),
            _ => None,
        }
    }

    async fn run(self, context: Arc<WorkerContext>) -> StoreResult<()> {
        let Some(team) = tasks::team(&context.process.db, self.job).await? else { return Ok(()) };
        let _place = PLACES.take(team, &context).await?;
        task::run(&context, self.job).await
    }
}
