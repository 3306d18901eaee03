//! Tasks: extractions and agents, driven step by step (wire 22, 23).
//!
//! ```text
//! wake-up ──> claim ──> steps so far ──> extract or agent ──> outcome, or: pages are on their way, later
//!                           ^                  │ a step: begun, done, written down     │
//!                           │                  v                                       v
//!                        journal <──── model, search, map, pages, interact          let go
//! ```
//!
//! The programs in `extract` and `agent` are plain code that asks the [`journal`] for every step. A step that was done before
//! answers from its row; so a program that begins anew, in whichever process, goes the same way to where it was, pays no
//! call of the model twice and repeats no effect. While pages are on their way nobody waits: the task is let go, and the
//! end of the last one calls for it.

mod act;
mod agent;
pub mod driven;
mod extract;
mod interact;
mod journal;
mod merge;
mod page;
mod words;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use weir_shared::domain::task::{StopReason, TaskOutcome, TaskSpec};
use weir_shared::ids::JobId;
use weir_shared::store::work::tasks::{self, ClaimedTask, LOOK_AGAIN_MS};
use weir_shared::store::{Db, StoreResult};

use self::journal::{Halt, Journal};
use crate::context::{WorkerContext, stopping};

/// How often it is looked whether the task was cancelled while a step is under way.
const LOOK: Duration = Duration::from_millis(400);

/// Drives a task until it has ended or has to wait.
///
/// # Errors
/// When the database could not be reached, or the worker is stopping.
pub async fn run(context: &Arc<WorkerContext>, job: JobId) -> StoreResult<()> {
    if context.draining.is_cancelled() {
        return Err(stopping());
    }
    let db = &context.process.db;
    let mut tx = db.begin().await?;
    let claimed = tasks::claim(&mut tx, job, context.id, db.now()).await?;
    tx.commit().await?;
    let Some(task) = claimed else { return Ok(()) };
    let _driven = context.driven.drive(&task);
    let gone = CancellationToken::new();
    let _watch = AbortOnDropHandle::new(tokio::spawn(watch(db.clone(), task.clone(), gone.clone())));
    let mut left = None;
    let halt = match Journal::open(context, &task, gone).await {
        Ok(Some(journal)) => {
            let came = drive(&journal).await;
            left = journal.left();
            came
        }
        // The job is removed.
        Ok(None) => Err(Halt::Gone),
        Err(error) => Err(Halt::Store(error)),
    };
    settle(db, &task, halt, left).await
}

async fn drive(journal: &Journal) -> Result<TaskOutcome, Halt> {
    let work = async {
        match &journal.task.spec {
            TaskSpec::Extract(spec) => extract::run(journal, spec).await,
            TaskSpec::Agent(spec) => agent::run(journal, spec).await,
        }
    };
    let work = AssertUnwindSafe(work).catch_unwind();
    tokio::select! {
        biased;
        () = journal.context.fenced.cancelled() => Err(Halt::Gone),
        came = work => came.unwrap_or_else(|_| {
            tracing::error!(job.id = %journal.task.job, "a task broke off");
            Ok(TaskOutcome::failed(StopReason::Failed, "An internal error ended the task."))
        }),
    }
}

/// Writes down how the turn has ended. Who has only so much time `left` is called when it is over.
async fn settle(
    db: &Db,
    task: &ClaimedTask,
    came: Result<TaskOutcome, Halt>,
    left: Option<Duration>,
) -> StoreResult<()> {
    let look_again = Duration::from_millis(LOOK_AGAIN_MS.unsigned_abs());
    let (pause, again) = match came {
        Ok(outcome) => {
            let reason = outcome.stop_reason.map_or("", StopReason::as_str);
            tracing::info!(job.id = %task.job, reason, pages = outcome.pages, "a task has ended");
            tasks::end(db, task, &outcome).await?;
            return Ok(());
        }
        Err(Halt::Wait | Halt::Gone) => match left.filter(|left| *left < look_again) {
            Some(left) => (left, Some(left)),
            None => (look_again, None),
        },
        Err(Halt::Later(pause)) => {
            let pause = left.map_or(pause, |left| pause.min(left));
            (pause, Some(pause))
        }
        Err(Halt::Stop(reason, why)) => {
            tasks::end(db, task, &TaskOutcome::failed(reason, why)).await?;
            return Ok(());
        }
        Err(Halt::Store(error)) => {
            tracing::warn!(job.id = %task.job, %error, "a task cannot go on now; it does later");
            (Duration::from_secs(1), Some(Duration::from_secs(1)))
        }
    };
    let mut tx = db.begin().await?;
    tasks::release(&mut tx, task, db.now().plus_ms(pause.as_millis() as i64), again).await?;
    tx.commit().await
}

/// Says so when the task is not this worker's any more: it was cancelled, or another worker has it.
async fn watch(db: Db, task: ClaimedTask, gone: CancellationToken) {
    loop {
        tokio::time::sleep(LOOK).await;
        if let Ok(false) = tasks::is_ours(&db, &task).await {
            return gone.cancel();
        }
    }
}
