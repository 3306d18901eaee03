//! Dispatches scrapes that somebody waits for directly to workers with a free slot, past the queue
//! ([`weir_shared::worker_api::direct`]): of the time that one page takes, the queue's share is the largest.
//!
//! A worker that is away, full or slow to answer costs a moment: then the scrape takes the queue.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::web::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::time::Instant;
use weir_shared::clock::Clock;
use weir_shared::ids::WorkerId;
use weir_shared::store::Db;
use weir_shared::store::work::documents;
use weir_shared::store::work::nodes::{self, NodeRow};
use weir_shared::worker_api::direct::{DirectAnswer, DirectScrape, LIMIT, SIZE_HEADER};

use crate::workers::worker_client::{Connection, WorkerClient};

/// From here on the list of workers is read again, beside the scrapes.
const STALE: Duration = Duration::from_secs(1);
/// An older list is not used.
const OLD: Duration = Duration::from_secs(6);
/// How long a worker that refused for want of a slot is left alone.
const FULL: Duration = Duration::from_millis(20);
/// How long a worker that could not be reached, or does not know the call, is left alone.
const AWAY: Duration = Duration::from_secs(5);
/// An idle connection is used again within this; the worker keeps it longer.
const IDLE: Duration = Duration::from_secs(30);
/// Idle connections kept to a worker.
const KEPT: usize = 32;

/// What became of a scrape that was dispatched.
#[derive(Debug)]
pub enum Dispatched {
    /// It is done.
    Document(Box<RawValue>),
    /// It has ended; its rows say how.
    Ended,
    /// Nothing is written.
    Refused,
    /// Its rows say, if there are any.
    Unknown,
}

/// The workers that scrapes may be dispatched to.
pub struct DirectDispatch {
    db: Db,
    client: Arc<WorkerClient>,
    /// Where the list is read.
    runtime: Handle,
    known: Arc<Mutex<KnownWorkers>>,
}

#[derive(Default)]
struct KnownWorkers {
    /// When the list was read.
    read_at: Option<Instant>,
    is_reading: bool,
    workers: HashMap<WorkerId, KnownWorker>,
}

/// One worker.
struct KnownWorker {
    address: Arc<str>,
    slots: i64,
    /// Direct scrapes of this process in work there.
    busy: i64,
    not_before: Instant,
    idle: Vec<(Connection, Instant)>,
}

impl DirectDispatch {
    /// Knows no worker yet.
    pub fn new(db: Db, client: Arc<WorkerClient>, runtime: Handle) -> Self {
        Self { db, client, runtime, known: Arc::default() }
    }

    /// Dispatches a scrape to the least busy worker with a free slot. `None`: none is known, and the scrape is for the queue.
    /// Until the future is polled nothing is sent; dropped, it leaves the worker at it.
    pub fn offer(&self, scrape: &DirectScrape) -> Option<BoxFuture<'static, Dispatched>> {
        let body = serde_json::to_vec(scrape).ok().filter(|body| body.len() <= LIMIT)?;
        let now = self.db.clock().instant();
        let mut known = lock(&self.known);
        if known.read_at.is_none_or(|at| now - at > STALE) && !known.is_reading {
            known.is_reading = true;
            self.runtime.spawn(read(Arc::clone(&self.known), self.db.clone()));
        }
        known.read_at.filter(|at| now - *at < OLD)?;
        let free =
            known.workers.iter_mut().filter(|(_, worker)| worker.busy < worker.slots && worker.not_before <= now);
        let (id, worker) = free.min_by_key(|(_, worker)| worker.busy)?;
        worker.busy += 1;
        // The one used last first, so that surplus connections stay idle and are closed.
        let kept = worker.idle.pop().filter(|(_, since)| now - *since < IDLE).map(|(kept, _)| kept);
        let (id, address, client) = (*id, Arc::clone(&worker.address), Arc::clone(&self.client));
        drop(known);
        let slot = BusySlot { known: Arc::clone(&self.known), id, clock: self.db.clock().clone() };
        Some(async move { slot.dispatch(&client, &address, kept, body.into()).await }.boxed())
    }
}

fn lock(known: &Mutex<KnownWorkers>) -> MutexGuard<'_, KnownWorkers> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the list of workers again.
async fn read(known: Arc<Mutex<KnownWorkers>>, db: Db) {
    let read_at = db.clock().instant();
    let found = nodes::live(&db, db.now()).await;
    let mut known = lock(&known);
    known.is_reading = false;
    match found {
        Ok(found) => {
            known.read_at = Some(read_at);
            known.workers.retain(|id, _| found.iter().any(|node| node.id == *id));
            for NodeRow { id, address, slots, .. } in found {
                known.workers.entry(id).or_insert_with(|| KnownWorker {
                    address: address.into(),
                    slots,
                    busy: 0,
                    not_before: read_at,
                    idle: Vec::new(),
                });
            }
        }
        Err(error) => tracing::debug!(%error, "the workers cannot be read; scrapes take the queue"),
    }
}

/// A scrape counted as busy with its worker until this is dropped.
struct BusySlot {
    known: Arc<Mutex<KnownWorkers>>,
    id: WorkerId,
    clock: Clock,
}

impl BusySlot {
    async fn dispatch(self, client: &WorkerClient, address: &str, kept: Option<Connection>, body: Bytes) -> Dispatched {
        let kept = match kept {
            Some(mut kept) => kept.is_ready().await.then_some(kept),
            None => None,
        };
        let mut connection = match kept {
            Some(kept) => kept,
            None => match client.connect(address).await {
                Ok(fresh) => fresh,
                Err(error) => {
                    tracing::debug!(%error, worker.id = %self.id, "no scrape can be dispatched to this worker");
                    self.leave_alone(AWAY);
                    return Dispatched::Refused;
                }
            },
        };
        let answer = match client.dispatch(&mut connection, address, body).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::debug!(%error, worker.id = %self.id, "what became of a scrape is to be seen in its rows");
                return Dispatched::Unknown;
            }
        };
        match DirectAnswer::of_status(answer.status.as_u16()) {
            DirectAnswer::Document => {
                let size = answer.headers.get(SIZE_HEADER).and_then(|size| size.to_str().ok()?.parse().ok());
                self.keep(connection);
                match size.map(|size| documents::open(size, &answer.body)) {
                    Some(Ok(document)) => Dispatched::Document(document),
                    _ => Dispatched::Ended,
                }
            }
            DirectAnswer::Ended => {
                self.keep(connection);
                Dispatched::Ended
            }
            DirectAnswer::Refused => {
                self.keep(connection);
                self.leave_alone(FULL);
                Dispatched::Refused
            }
            DirectAnswer::Foreign => {
                let status = answer.status;
                tracing::debug!(%status, worker.id = %self.id, "this worker takes no direct scrapes");
                self.leave_alone(AWAY);
                Dispatched::Refused
            }
            DirectAnswer::Unknown => Dispatched::Unknown,
        }
    }

    fn keep(&self, connection: Connection) {
        if let Some(worker) = lock(&self.known).workers.get_mut(&self.id)
            && worker.idle.len() < KEPT
        {
            worker.idle.push((connection, self.clock.instant()));
        }
    }

    fn leave_alone(&self, pause: Duration) {
        if let Some(worker) = lock(&self.known).workers.get_mut(&self.id) {
            worker.not_before = self.clock.instant() + pause;
        }
    }
}

impl Drop for BusySlot {
    fn drop(&mut self) {
        if let Some(worker) = lock(&self.known).workers.get_mut(&self.id) {
            worker.busy = (worker.busy - 1).max(0);
        }
    }
}

#[cfg(test)]
#[path = "direct_dispatch_tests.rs"]
mod tests;
