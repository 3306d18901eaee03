//! One life of a worker, under one id: it announces itself, works, and either drains or is fenced.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use weir_shared::ids::WorkerId;
use weir_shared::store::StoreError;
use weir_shared::{blocking, lasting};

use super::pools::Pools;
use super::{heartbeat, registration, session_offer};
use crate::context::{Process, WorkerContext};
use crate::finisher::Finisher;
use crate::{monitors, queue, replayer, set_back, sweeper, tidier};

/// How long a drain may take; what is not done by then goes back to the queue.
const DRAIN: Duration = Duration::from_secs(12);
/// And so long in all for pages whose actions have begun, which nobody begins with again; what is not done by then has failed. A
/// process that is told to stop has 45 s at least in our units and manifests.
const DRAIN_ACTING: Duration = Duration::from_secs(30);
/// How long their ends may take to be handed in.
const LAST_ENDS: Duration = Duration::from_secs(1);
/// Bound on writing the last results.
const LAST_WRITES: Duration = Duration::from_secs(5);
/// How long a consumer of wake-ups may take to notice the end.
const LAST_WAKEUPS: Duration = Duration::from_secs(2);

/// What a worker does beside pages begins so long after it has announced itself: on a machine that starts, callers already
/// wait for pages, and all of it at once would stand before them.
const PAGES_FIRST: Duration = Duration::from_millis(250);

/// Times that a worker tries to announce itself to a database that refuses it for good.
const ANNOUNCEMENTS: u32 = 5;
/// Pause between two of them, and between two tries to write.
const PAUSE: Duration = Duration::from_millis(500);

/// How a life ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LifeEnd {
    Drained,
    /// The others count the worker as dead.
    Fenced,
}

/// Lives until `stop` is cancelled, the operator asks for a drain, or the worker is fenced.
pub(super) async fn live(
    process: &Arc<Process>,
    pools: &Pools,
    address: &str,
    stop: &CancellationToken,
) -> anyhow::Result<LifeEnd> {
    let id = match announced(process, address, stop).await? {
        Some(id) => id,
        None => return Ok(LifeEnd::Drained),
    };
    let (draining, fenced, beat_over) = (stop.child_token(), CancellationToken::new(), CancellationToken::new());
    let heartbeat = heartbeat::start(process, id, draining.clone(), fenced.clone(), beat_over.clone())?;
    let (finisher, mut writer) = Finisher::start(
        pools.ends.clone(),
        pools.late_ends.clone(),
        process.blobs.clone(),
        process.metrics.clone(),
        Arc::clone(&process.frontiers),
    );
    let context = Arc::new(WorkerContext::new(Arc::clone(process), id, finisher, draining.clone(), fenced.clone()));
    *process.life.write().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&context);
    let consumers = queue::start::start(&context, &pools.wakeups);
    let chores = [
        chore("sweeper", &context, sweeper::run),
        chore("tidier", &context, tidier::run),
        chore("replayer", &context, replayer::run),
        chore("monitors", &context, monitors::run),
        chore("set back", &context, set_back::run),
    ];
    let offer = {
        let (process, draining, fenced) = (Arc::clone(process), draining.clone(), fenced.clone());
        move || session_offer::run(Arc::clone(&process), id, draining.clone(), fenced.clone())
    };
    let offering = later(lasting::again("offer of sessions", offer));

    tokio::select! {
        () = draining.cancelled() => {}
        () = fenced.cancelled() => {}
        // It ends after everybody who hands in ends of pages, unless it broke.
        ended = &mut writer => {
            tracing::error!(?ended, "what writes results broke; the worker begins anew");
            fenced.cancel();
        }
    }
    let end = if fenced.is_cancelled() { LifeEnd::Fenced } else { LifeEnd::Drained };
    context.tasks.close();
    offering.abort();
    let _ = offering.await;
    if end == LifeEnd::Drained {
        drain(process, &context).await;
        // What is lost of it is learned again.
        let _ = tokio::time::timeout(LAST_WRITES, process.templates.tell(&process.db)).await;
    }
    if let Some(sessions) = process.set_sessions(None) {
        sessions.stop().await;
    }
    for consumer in consumers {
        let _ = tokio::time::timeout(LAST_WAKEUPS, consumer).await;
    }
    chores.iter().for_each(JoinHandle::abort);
    drop(context);
    if end == LifeEnd::Fenced {
        wait_for_writes(process, stop).await;
    }
    if !writer.is_finished() {
        let _ = tokio::time::timeout(LAST_WRITES, &mut writer).await;
    }
    beat_over.cancel();
    registration::retire(process, id, LAST_WRITES).await;
    let _ = blocking::run_at_last(move || heartbeat.join()).await;
    Ok(end)
}

/// Starts `work` when pages have had their time.
fn later(work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(async move {
        tokio::time::sleep(PAGES_FIRST).await;
        work.await;
    })
}

/// Starts a chore. One that panics, as over something that nobody foresaw, begins again: the worker's pages and sessions
/// have no part in it.
fn chore<F>(name: &'static str, context: &Arc<WorkerContext>, run: fn(Arc<WorkerContext>) -> F) -> JoinHandle<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    let context = Arc::clone(context);
    later(lasting::again(name, move || run(Arc::clone(&context))))
}

/// The id under which the worker has announced itself. What passes is waited for, however long that takes: a database that
/// restarts at this moment, or takes no writes. A refusal that stays is an error. `None`: `stop` was cancelled meanwhile.
async fn announced(process: &Process, address: &str, stop: &CancellationToken) -> anyhow::Result<Option<WorkerId>> {
    let mut refusals = 0;
    while !stop.is_cancelled() {
        let id = WorkerId::new();
        let Err(error) = registration::announce(process, id, address).await else { return Ok(Some(id)) };
        if !error.downcast_ref::<StoreError>().is_some_and(StoreError::may_pass) {
            refusals += 1;
            if refusals == ANNOUNCEMENTS {
                return Err(error);
            }
        }
        tracing::warn!(%error, "the worker cannot announce itself yet");
        let _ = tokio::time::timeout(PAUSE, stop.cancelled()).await;
        wait_for_writes(process, stop).await;
    }
    Ok(None)
}

/// Finishes the pages in work and ends the sessions in good order, within a bound.
async fn drain(process: &Process, context: &WorkerContext) {
    let sessions = process.sessions();
    let open = sessions.as_ref().map_or(0, |sessions| sessions.count());
    tracing::info!(pages = context.tasks.len(), sessions = open, "draining");
    let pages = async {
        if tokio::time::timeout(DRAIN, context.tasks.wait()).await.is_ok() {
            return;
        }
        context.acting.close();
        let (pages, acting) = (context.tasks.len(), context.acting.len());
        tracing::warn!(
            pages,
            acting,
            "the drain takes too long; what is left and has not acted goes back to the queue"
        );
        context.giving_back.cancel();
        if tokio::time::timeout(DRAIN_ACTING - DRAIN, context.acting.wait()).await.is_err() {
            let pages = context.acting.len();
            tracing::warn!(pages, "pages end under their actions");
            context.giving_up.cancel();
            let _ = tokio::time::timeout(LAST_ENDS, context.acting.wait()).await;
        }
    };
    let ends = async {
        if let Some(sessions) = &sessions {
            sessions.close_all(DRAIN).await;
        }
    };
    tokio::join!(pages, ends);
}

/// Until the database takes what is written, or the worker is to stop: what was fetched before is written then, and the claims
/// of this life are given back, before the next one begins. One that only answers is not enough: it may be read-only, or full.
async fn wait_for_writes(process: &Process, stop: &CancellationToken) {
    let writes = async {
        while !matches!(tokio::time::timeout(LAST_WRITES, process.db.try_write()).await, Ok(Ok(()))) {
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::select! {
        () = writes => {}
        () = stop.cancelled() => {}
    }
}
