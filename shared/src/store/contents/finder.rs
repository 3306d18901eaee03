//! Looks for what is kept of many pages at once. Every page is looked for before its site is asked; those that come while
//! the database answers are looked for together, in one statement.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, oneshot};

use crate::domain::cache::Lookup;
use crate::store::{Db, StoreResult};
use crate::time::Timestamp;

use super::cache::{self, Found};

/// Pages of one statement: their contents, as far as they lie in rows, are in memory at once.
const MOST: usize = 16;
/// Statements at once.
const AT_ONCE: usize = 2;

/// Looks for all pages of a process.
#[derive(Debug)]
pub struct Finder {
    db: Db,
    queue: Mutex<Queue>,
    statements: Semaphore,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Waiting>,
    /// How many were taken out of it so far: who came as the n-th is in it as long as this is not above n.
    taken: usize,
}

#[derive(Debug)]
struct Waiting {
    lookup: Lookup,
    /// Dropped where it could not be looked for with the others.
    answer: oneshot::Sender<Vec<Found>>,
}

impl Finder {
    /// Looks in this database.
    pub fn new(db: Db) -> Self {
        Self { db, queue: Mutex::default(), statements: Semaphore::new(AT_ONCE) }
    }

    /// The answers that were stored where it is looked, as [`cache::find`] gives them.
    ///
    /// # Errors
    /// When the database cannot be asked.
    pub async fn find(&self, lookup: Lookup) -> StoreResult<Vec<Found>> {
        // What was before is asked for seldom.
        if lookup.to != Timestamp(i64::MAX) {
            return cache::find(&self.db, &lookup).await;
        }
        let (answer, mut answered) = oneshot::channel();
        let place = {
            let mut queue = self.lock();
            queue.waiting.push(Waiting { lookup: lookup.clone(), answer });
            queue.taken + queue.waiting.len() - 1
        };
        let found = loop {
            tokio::select! {
                biased;
                found = &mut answered => break found,
                Ok(statement) = self.statements.acquire() => {
                    let has_waited = self.answer_some(place).await;
                    drop(statement);
                    if !has_waited {
                        break answered.await;
                    }
                }
            }
        };
        match found {
            Ok(found) => Ok(found),
            // What went wrong with the others, or with who asked for them, is not this one's fault.
            Err(_) => cache::find(&self.db, &lookup).await,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers those that have waited for longest, whoever they are. `false`: nothing is done, as somebody else is about to
    /// answer who came as the `place`-th.
    async fn answer_some(&self, place: usize) -> bool {
        let waiting: Vec<Waiting> = {
            let mut queue = self.lock();
            if place < queue.taken {
                return false;
            }
            let count = queue.waiting.len().min(MOST);
            queue.taken += count;
            queue.waiting.drain(..count).filter(|one| !one.answer.is_closed()).collect()
        };
        let lookups: Vec<&Lookup> = waiting.iter().map(|one| &one.lookup).collect();
        match cache::find_newest(&self.db, &lookups).await {
            Ok(found) => {
                for (one, found) in waiting.into_iter().zip(found) {
                    // Who has hung up meanwhile needs no answer.
                    let _ = one.answer.send(found);
                }
            }
            Err(error) => tracing::debug!(%error, pages = waiting.len(), "stored pages are looked for one by one"),
        }
        true
    }
}
