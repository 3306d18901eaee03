//! Hands scrapes that somebody waits for to workers with a free place, past the queue ([`weir_shared::hand_over`]): on
//! the way of one page, the queue's share is the largest.
//!
//! A worker that is away, full or slow to answer costs a moment: then the scrape takes the queue.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::web::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use hyper::StatusCode;
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::time::Instant;
use weir_shared::clock::Clock;
use weir_shared::hand_over::{HandedScrape, LIMIT, SIZE_HEADER};
use weir_shared::ids::WorkerId;
use weir_shared::store::nodes::NodeRow;
use weir_shared::store::{Db, documents, nodes};

use crate::worker_client::{Connection, WorkerClient};

/// From here on the list of workers is read again, beside the scrapes.
const STALE: Duration = Duration::from_secs(1);
/// An older list is not used.
const OLD: Duration = Duration::from_secs(6);
/// How long a worker that refused for want of a place is left alone.
const FULL: Duration = Duration::from_millis(20);
/// How long a worker that could not be reached, or does not know the call, is left alone.
const AWAY: Duration = Duration::from_secs(5);
/// An idle connection is used again within this; the worker keeps it longer.
const IDLE: Duration = Duration::from_secs(30);
/// Idle connections kept to a worker.
const KEPT: usize = 32;

/// What became of a scrape that was handed over.
#[derive(Debug)]
pub enum Handed {
    /// It is done.
    Document(Box<RawValue>),
    /// It has ended; its rows say how.
    Over,
    /// Nothing is written.
    Refused,
    /// Its rows say, if there are any.
    Unknown,
}

/// The workers that scrapes may be handed to.
pub struct HandOver {
    db: Db,
    client: Arc<WorkerClient>,
    /// Where the list is read.
    runtime: Handle,
    places: Arc<Mutex<Places>>,
}

#[derive(Default)]
struct Places {
    /// When the list was read.
    read_at: Option<Instant>,
    is_reading: bool,
    workers: HashMap<WorkerId, Place>,
}

/// One worker.
struct Place {
    address: Arc<str>,
    slots: i64,
    /// Scrapes of this process in work there.
    busy: i64,
    not_before: Instant,
    idle: Vec<(Connection, Instant)>,
}

impl HandOver {
    /// Knows no worker yet.
    pub fn new(db: Db, client: Arc<WorkerClient>, runtime: Handle) -> Self {
        Self { db, client, runtime, places: Arc::default() }
    }

    /// Hands a scrape to the least busy worker with a free place. `None`: none is known, and the scrape is for the queue.
    /// Until the future is polled nothing is sent; dropped, it leaves the worker at it.
    pub fn offer(&self, scrape: &HandedScrape) -> Option<BoxFuture<'static, Handed>> {
        let body = serde_json::to_vec(scrape).ok().filter(|body| body.len() <= LIMIT)?;
        let now = self.db.clock().instant();
        let mut places = lock(&self.places);
        if places.read_at.is_none_or(|at| now - at > STALE) && !places.is_reading {
            places.is_reading = true;
            self.runtime.spawn(read(Arc::clone(&self.places), self.db.clone()));
        }
        places.read_at.filter(|at| now - *at < OLD)?;
        let free = places.workers.iter_mut().filter(|(_, place)| place.busy < place.slots && place.not_before <= now);
        let (id, place) = free.min_by_key(|(_, place)| place.busy)?;
        place.busy += 1;
        // The last one first, so that those that are too many grow old.
        let kept = place.idle.pop().filter(|(_, since)| now - *since < IDLE).map(|(kept, _)| kept);
        let (id, address, client) = (*id, Arc::clone(&place.address), Arc::clone(&self.client));
        drop(places);
        let held = Held { places: Arc::clone(&self.places), id, clock: self.db.clock().clone() };
        Some(async move { held.hand_over(&client, &address, kept, body.into()).await }.boxed())
    }
}

fn lock(places: &Mutex<Places>) -> MutexGuard<'_, Places> {
    places.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the list of workers again.
async fn read(places: Arc<Mutex<Places>>, db: Db) {
    let read_at = db.clock().instant();
    let found = nodes::live(&db, db.now()).await;
    let mut places = lock(&places);
    places.is_reading = false;
    match found {
        Ok(found) => {
            places.read_at = Some(read_at);
            places.workers.retain(|id, _| found.iter().any(|node| node.id == *id));
            for NodeRow { id, address, slots, .. } in found {
                places.workers.entry(id).or_insert_with(|| Place {
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

/// One of a worker's places, held for a scrape until this is dropped.
struct Held {
    places: Arc<Mutex<Places>>,
    id: WorkerId,
    clock: Clock,
}

impl Held {
    async fn hand_over(self, client: &WorkerClient, address: &str, kept: Option<Connection>, body: Bytes) -> Handed {
        let kept = match kept {
            Some(mut kept) => kept.is_ready().await.then_some(kept),
            None => None,
        };
        let mut connection = match kept {
            Some(kept) => kept,
            None => match client.connect(address).await {
                Ok(fresh) => fresh,
                Err(error) => {
                    tracing::debug!(%error, worker.id = %self.id, "no scrape can be handed to this worker");
                    self.leave_alone(AWAY);
                    return Handed::Refused;
                }
            },
        };
        let answer = match client.hand_over(&mut connection, address, body).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::debug!(%error, worker.id = %self.id, "what became of a scrape is to be seen in its rows");
                return Handed::Unknown;
            }
        };
        match answer.status {
            StatusCode::OK => {
                let size = answer.headers.get(SIZE_HEADER).and_then(|size| size.to_str().ok()?.parse().ok());
                self.keep(connection);
                match size.map(|size| documents::open(size, &answer.body)) {
                    Some(Ok(document)) => Handed::Document(document),
                    _ => Handed::Over,
                }
            }
            StatusCode::NO_CONTENT => {
                self.keep(connection);
                Handed::Over
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                self.keep(connection);
                self.leave_alone(FULL);
                Handed::Refused
            }
            // The worker is of another version, or not ours.
            status if status.is_client_error() => {
                tracing::debug!(%status, worker.id = %self.id, "this worker takes no scrapes that are handed over");
                self.leave_alone(AWAY);
                Handed::Refused
            }
            _ => Handed::Unknown,
        }
    }

    fn keep(&self, connection: Connection) {
        if let Some(place) = lock(&self.places).workers.get_mut(&self.id)
            && place.idle.len() < KEPT
        {
            place.idle.push((connection, self.clock.instant()));
        }
    }

    fn leave_alone(&self, pause: Duration) {
        if let Some(place) = lock(&self.places).workers.get_mut(&self.id) {
            place.not_before = self.clock.instant() + pause;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(place) = lock(&self.places).workers.get_mut(&self.id) {
            place.busy = (place.busy - 1).max(0);
        }
    }
}

#[cfg(test)]
#[path = "hand_over_tests.rs"]
mod tests;
