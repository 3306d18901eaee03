//! Commits the ends of pages in groups: one transaction for as many as are ready, at once for pages somebody waits
//! for, after a short pause otherwise.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use weir_shared::domain::job::JobKind;
use weir_shared::ids::PageId;
use weir_shared::store::finish::{Body, Finished, Outcome, finish};
use weir_shared::store::{Db, StoreError};
use weir_shared::time::Timestamp;

use crate::frontier_memory::FrontierMemory;
use crate::metrics::Metrics;

/// Pages in one transaction at most.
const GROUP: usize = 64;
/// How long a background page waits for company.
const LINGER: Duration = Duration::from_millis(15);
/// Ends waiting to be written; beyond it pages wait for the database.
const BACKLOG: usize = 256;

/// The written end of a page, for whoever handed it to this worker.
#[derive(Debug)]
pub enum WrittenEnd {
    /// It is done: its document in compressed form, and the bytes of its text.
    Document { size: i64, packed: Vec<u8> },
    /// It has ended; its rows say how.
    Over,
    /// It is back in the queue.
    PutBack,
}

/// Who is told of a written end. Dropped, it says that this attempt wrote none.
pub type Told = oneshot::Sender<WrittenEnd>;

/// An end and who is told of it.
#[derive(Debug)]
struct Submitted {
    end: Finished,
    told: Option<Told>,
}

/// Where pages hand in their ends. The committing task ends when every handle is dropped.
#[derive(Debug, Clone)]
pub struct Finisher {
    sender: mpsc::Sender<Submitted>,
}

impl Finisher {
    /// Starts the committing task. `fenced`: this worker counts as dead, so nothing may be written any more.
    pub fn start(
        db: Db,
        blobs: weir_shared::blobs::Blobs,
        metrics: Metrics,
        frontiers: Arc<FrontierMemory>,
        fenced: CancellationToken,
    ) -> (Self, tokio::task::JoinHandle<()>) {
        let (sender, receiver) = mpsc::channel(BACKLOG);
        let task = tokio::spawn(run(Store { db, blobs, frontiers }, metrics, fenced, receiver));
        (Self { sender }, task)
    }

    /// Hands in the end of an attempt. It is written unless this worker is fenced first.
    pub async fn submit(&self, end: Finished) {
        self.submit_and_tell(end, None).await;
    }

    /// The same; `told` hears of it when it is written.
    pub async fn submit_and_tell(&self, end: Finished, told: Option<Told>) {
        if self.sender.send(Submitted { end, told }).await.is_err() {
            tracing::warn!("a page ended after its worker was fenced; another attempt follows");
        }
    }
}

/// Where ends are written, and what is learned from that.
struct Store {
    db: Db,
    blobs: weir_shared::blobs::Blobs,
    frontiers: Arc<FrontierMemory>,
}

async fn run(store: Store, metrics: Metrics, fenced: CancellationToken, mut receiver: mpsc::Receiver<Submitted>) {
    while let Some(first) = receiver.recv().await {
        let mut urgent = is_urgent(&first.end);
        let mut group = vec![first];
        let deadline = tokio::time::Instant::now() + LINGER;
        while group.len() < GROUP {
            let next = if urgent {
                receiver.try_recv().ok()
            } else {
                tokio::time::timeout_at(deadline, receiver.recv()).await.ok().flatten()
            };
            let Some(next) = next else { break };
            urgent |= is_urgent(&next.end);
            group.push(next);
        }
        let started = Instant::now();
        let size = group.len();
        tokio::select! {
            () = commit(&store, group) => {}
            () = fenced.cancelled() => return,
        }
        metrics.commit_seconds.observe(started.elapsed().as_secs_f64());
        metrics.commit_pages.observe(size as f64);
    }
}

fn is_urgent(end: &Finished) -> bool {
    end.kind.is_some_and(JobKind::is_direct)
}

/// Writes a group, again and again while the database is away. A group that can never be written is split, so that
/// one bad page does not hold up the others.
async fn commit(store: &Store, group: Vec<Submitted>) {
    let mut pause = Duration::from_millis(50);
    let mut told = HashMap::new();
    let group = group.into_iter().map(|submitted| {
        told.extend(submitted.told.map(|told| (submitted.end.page.id, told)));
        submitted.end
    });
    let mut waiting = vec![group.collect::<Vec<_>>()];
    // After an error nobody knows what was committed before it.
    let mut is_first = true;
    while let Some(group) = waiting.pop() {
        let written = write(&store.db, &group).await;
        let was_first = is_first;
        is_first &= written.is_ok();
        match written {
            Ok(written) => store.conclude(group, &written, was_first, &mut told),
            Err(StoreError::Unavailable(error)) => {
                tracing::warn!(%error, pages = group.len(), "results cannot be written; they are kept and tried again");
                waiting.push(group);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(1));
            }
            Err(error) if group.len() > 1 => {
                tracing::warn!(%error, pages = group.len(), "a group of results is refused; it is written page by page");
                waiting.extend(group.into_iter().map(|end| vec![end]));
            }
            Err(error) => {
                let page = &group[0].page;
                tracing::error!(%error, page.id = %page.id, job.id = %page.job_id, "a result is refused by the database");
            }
        }
    }
}

async fn write(db: &Db, group: &[Finished]) -> Result<Vec<PageId>, StoreError> {
    Ok(finish(db, group, Timestamp::now()).await?.written)
}

impl Store {
    /// What a crawl has now is remembered, and who waits is `told`. Blobs of attempts that another has overtaken belong to nobody; where the
    /// other may be an earlier write of the same attempt (not `is_first`), they stay until their job goes.
    fn conclude(&self, group: Vec<Finished>, written: &[PageId], is_first: bool, told: &mut HashMap<PageId, Told>) {
        for end in group {
            if written.contains(&end.page.id) {
                if let Outcome::Crawled { discovery, .. } = &end.outcome {
                    self.frontiers.learn(end.page.job_id, discovery);
                }
                if let Some(told) = told.remove(&end.page.id) {
                    // Who waited may have left.
                    let _ = told.send(written_end(end.outcome));
                }
                continue;
            }
            tracing::info!(page.id = %end.page.id, page.epoch = end.page.epoch, "an overtaken attempt is dropped");
            if is_first
                && let Outcome::Done { document, .. } | Outcome::Crawled { document: Some(document), .. } = &end.outcome
                && let Body::Blob(key) = &document.body
            {
                let (blobs, key) = (self.blobs.clone(), key.clone());
                tokio::task::spawn_blocking(move || blobs.remove(&key));
            }
        }
    }
}

fn written_end(outcome: Outcome) -> WrittenEnd {
    match outcome {
        Outcome::Done { document, .. } => match document.body {
            Body::Inline(packed) => WrittenEnd::Document { size: document.size, packed },
            Body::Blob(_) => WrittenEnd::Over,
        },
        Outcome::Retry { .. } | Outcome::Postponed { .. } | Outcome::Lost { .. } | Outcome::GivenBack => {
            WrittenEnd::PutBack
        }
        Outcome::Failed { .. } | Outcome::Crawled { .. } | Outcome::Blocked { .. } | Outcome::SitemapsRead { .. } => {
            WrittenEnd::Over
        }
    }
}
