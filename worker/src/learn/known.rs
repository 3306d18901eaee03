//! What a worker remembers of extractors and of pages that wait for one. None of it is needed: the rows know.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use weir_shared::clock::Stopwatch;
use weir_shared::ids::{ExtractorId, PageId};
use weir_shared::store::contents::extractors::{self, Stored, Topic};
use weir_shared::store::{Db, StoreResult};

use super::learned::Learned;
use crate::extract::extractor::Extractor;

/// Extractors, topics and pages that are remembered.
const MOST: usize = 2_000;
/// Pages of an extractor that are counted at once.
const COUNTED: i64 = 10;
/// Pages that wait, as far as they are remembered.
const WAITING: usize = 50_000;
/// How long a page is put off at once: at least, longer for each page that waits, and at most.
const LEAST_PAUSE_MS: i64 = 500;
const MORE_PAUSE_MS: i64 = 2;
const MOST_PAUSE_MS: i64 = 15_000;
/// How long one page is put off altogether.
const PUT_OFF: Duration = Duration::from_secs(180);

/// An extractor, ready to be used.
#[derive(Debug)]
pub struct Known {
    pub id: ExtractorId,
    pub epoch: i64,
    pub learned: Learned,
    pub extractor: Extractor,
}

/// What a worker remembers.
#[derive(Debug, Default)]
pub struct Extractors {
    known: Mutex<HashMap<ExtractorId, Arc<Known>>>,
    /// Pages that are read and not counted yet.
    pages: Mutex<HashMap<ExtractorId, i64>>,
    /// What there were extractors for when it was looked last.
    topics: Mutex<HashSet<Topic>>,
    /// Pages that were put off, and since when.
    waiting: Mutex<HashMap<PageId, Stopwatch>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Extractors {
    /// The extractors in use, the newest first. One that this release cannot read is left out.
    pub async fn in_use(&self, db: &Db, topic: &Topic) -> StoreResult<Vec<(Stored, Arc<Known>)>> {
        let mut found = Vec::new();
        for stored in extractors::in_use(db, topic).await? {
            let known = lock(&self.known).get(&stored.id).filter(|known| known.epoch == stored.epoch).map(Arc::clone);
            let known = match known {
                Some(known) => known,
                None => match self.read(db, stored.id).await? {
                    Some(known) => known,
                    None => continue,
                },
            };
            found.push((stored, known));
        }
        let mut topics = lock(&self.topics);
        if found.is_empty() {
            topics.remove(topic);
        } else {
            if topics.len() >= MOST {
                topics.clear();
            }
            topics.insert(topic.clone());
        }
        Ok(found)
    }

    async fn read(&self, db: &Db, id: ExtractorId) -> StoreResult<Option<Arc<Known>>> {
        let Some((epoch, body)) = extractors::form(db, id).await? else { return Ok(None) };
        let Ok(learned) = serde_json::from_str::<Learned>(&body) else { return Ok(None) };
        let Ok(extractor) = Extractor::new(&learned.form) else { return Ok(None) };
        let known = Arc::new(Known { id, epoch, learned, extractor });
        let mut all = lock(&self.known);
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(id, Arc::clone(&known));
        Ok(Some(known))
    }

    /// Whether there lately were extractors for it.
    pub fn has_some(&self, topic: &Topic) -> bool {
        lock(&self.topics).contains(topic)
    }

    /// Counts a page that an extractor has read.
    pub async fn count(&self, db: &Db, id: ExtractorId) -> StoreResult<()> {
        let due = {
            let mut pages = lock(&self.pages);
            if pages.len() >= MOST {
                pages.clear();
            }
            let pages = pages.entry(id).or_default();
            *pages += 1;
            if *pages < COUNTED { 0 } else { std::mem::take(pages) }
        };
        if due > 0 { extractors::count(db, id, due, db.now()).await } else { Ok(()) }
    }

    /// Whether a page was put off before.
    pub fn waits(&self, page: PageId) -> bool {
        lock(&self.waiting).contains_key(&page)
    }

    /// A page is to be put off: for how many milliseconds, longer the more others wait. `None`: it was put off for long
    /// enough.
    pub fn put_off(&self, page: PageId) -> Option<i64> {
        let mut waiting = lock(&self.waiting);
        if waiting.len() >= WAITING && !waiting.contains_key(&page) {
            waiting.clear();
        }
        let pause_ms = (LEAST_PAUSE_MS + waiting.len() as i64 * MORE_PAUSE_MS).min(MOST_PAUSE_MS);
        (waiting.entry(page).or_insert_with(Stopwatch::start).elapsed() < PUT_OFF).then_some(pause_ms)
    }

    /// A page goes on.
    pub fn goes_on(&self, page: PageId) {
        lock(&self.waiting).remove(&page);
    }
}
