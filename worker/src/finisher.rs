//! Commits the ends of pages in groups: one transaction for as many as are ready, at once for pages somebody waits
//! for, after a short pause otherwise.
//!
//! A group is of whichever teams have something ready. While somebody holds a team's lock, that team's ends go on a
//! connection of their own and the others do not wait for them. A page is held until its end is written: however long
//! that takes, nobody fetches it again.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;
use weir_shared::blocking;
use weir_shared::clock::{self, Stopwatch};
use weir_shared::domain::job::JobKind;
use weir_shared::ids::{PageId, TeamId};
use weir_shared::store::contents::version::Body;
use weir_shared::store::work::page::end::{Finished, Outcome};
use weir_shared::store::work::page::finish::finish;
use weir_shared::store::{Db, StoreError};

use crate::crawl::frontier_memory::FrontierMemory;
use crate::dispatch::held::HeldPage;
use crate::metrics::Metrics;

/// Pages in one transaction at most.
const GROUP: usize = 64;
/// Addresses that the pages of one transaction lead a crawl to, about: SQLite has one writer, for which everybody waits.
/// One page brings few ([`crate::crawl::ahead`]).
const ADDRESSES: usize = 1_000;
/// How long a background page waits for company.
const LINGER: Duration = Duration::from_millis(15);
/// Ends waiting to be written; beyond it pages wait for the database.
const BACKLOG: usize = 256;
/// A group that takes longer than this on Postgres is tried by another connection, for its own may have fallen silent
/// unseen (see [`weir_shared::store::db::lines`], whose bound comes first). Each further try has twice as long: a database
/// may just be slow.
const PATIENCE: Duration = Duration::from_secs(14);

/// The written end of a page, for the caller that waits for it.
#[derive(Debug)]
pub enum WrittenEnd {
    /// It is done: its document in compressed form, and the bytes of its text.
    Document { size: i64, packed: Vec<u8> },
    /// It has ended; its rows say how.
    Over,
    /// It is back in the queue.
    PutBack,
}

/// Sends the written end to who waits for it. When it is dropped instead, this attempt has written none.
pub type EndSender = oneshot::Sender<WrittenEnd>;

/// An end with the hold on its page and the sender for who waits.
#[derive(Debug)]
struct Submitted {
    end: Finished,
    held: HeldPage,
    end_sender: Option<EndSender>,
}

/// Where pages hand in their ends. The committing task ends when every handle is dropped and all is written.
#[derive(Debug, Clone)]
pub struct Finisher {
    sender: mpsc::Sender<Submitted>,
}

impl Finisher {
    /// Starts the committing task. `ends` waits for nobody's lock ([`weir_shared::store::PoolUse::Ends`]), `late_ends`
    /// does. On SQLite, which has one writer at a time, they are the same.
    ///
    /// It goes on when this worker counts as dead: what was fetched is not thrown away, and every end is fenced by its
    /// page's epoch.
    pub fn start(
        ends: Db,
        late_ends: Db,
        blobs: weir_shared::blobs::Blobs,
        metrics: Metrics,
        frontiers: Arc<FrontierMemory>,
    ) -> (Self, tokio::task::JoinHandle<()>) {
        let (sender, receiver) = mpsc::channel(BACKLOG);
        let store =
            Store { ends, late_ends, blobs, metrics, frontiers, late: Mutex::default(), tasks: TaskTracker::new() };
        let task = tokio::spawn(run(Arc::new(store), receiver));
        (Self { sender }, task)
    }

    /// Hands in the end of an attempt. Its page is held until the end is written; then `end_sender` hears of it.
    pub async fn submit(&self, end: Finished, held: HeldPage, end_sender: Option<EndSender>) {
        if self.sender.send(Submitted { end, held, end_sender }).await.is_err() {
            tracing::warn!("a page ended after its worker; another attempt follows");
        }
    }
}

/// Where ends are written, and what is learned from that.
struct Store {
    ends: Db,
    late_ends: Db,
    blobs: weir_shared::blobs::Blobs,
    metrics: Metrics,
    frontiers: Arc<FrontierMemory>,
    /// Ends of teams whose lock somebody holds: each such team has a task of its own until all of its ends are written.
    late: Mutex<HashMap<TeamId, VecDeque<Submitted>>>,
    tasks: TaskTracker,
}

async fn run(store: Arc<Store>, mut receiver: mpsc::Receiver<Submitted>) {
    while let Some(first) = receiver.recv().await {
        let Some(first) = store.unless_late(first) else { continue };
        let mut urgent = is_urgent(&first.end);
        let mut addresses = addresses_of(&first.end);
        let mut group = vec![first];
        let deadline = clock::deadline(LINGER);
        while group.len() < GROUP && addresses < ADDRESSES {
            let next = if urgent {
                receiver.try_recv().ok()
            } else {
                tokio::time::timeout_at(deadline, receiver.recv()).await.ok().flatten()
            };
            let Some(next) = next else { break };
            let Some(next) = store.unless_late(next) else { continue };
            urgent |= is_urgent(&next.end);
            addresses += addresses_of(&next.end);
            group.push(next);
        }
        store.commit(group).await;
    }
    store.tasks.close();
    store.tasks.wait().await;
}

fn is_urgent(end: &Finished) -> bool {
    end.kind.is_some_and(JobKind::is_direct)
}

/// Addresses that a page leads its crawl to.
fn addresses_of(end: &Finished) -> usize {
    match &end.outcome {
        Outcome::Crawled { discovery, .. } => discovery.addresses().count(),
        _ => 0,
    }
}

/// What goes with a submitted end and is not written: the hold on its page, and the sender.
type Attached = HashMap<PageId, (HeldPage, Option<EndSender>)>;

fn detach(group: impl IntoIterator<Item = Submitted>) -> (Vec<Finished>, Attached) {
    let mut attached = Attached::new();
    let ends = group.into_iter().map(|submitted| {
        attached.insert(submitted.end.page.id, (submitted.held, submitted.end_sender));
        submitted.end
    });
    (ends.collect(), attached)
}

fn by_team(group: Vec<Finished>) -> Vec<Vec<Finished>> {
    let mut teams: BTreeMap<TeamId, Vec<Finished>> = BTreeMap::new();
    for end in group {
        teams.entry(end.page.team_id).or_default().push(end);
    }
    teams.into_values().collect()
}

impl Store {
    /// Writes a group of whichever teams. Where somebody holds a team's lock, the others are written without it.
    async fn commit(self: &Arc<Self>, group: Vec<Submitted>) {
        let (ends, mut attached) = detach(group);
        self.write(&self.ends, ends, &mut attached, |group, attached| match &group[..] {
            [first, rest @ ..] if rest.iter().any(|end| end.page.team_id != first.page.team_id) => by_team(group),
            [first, ..] => {
                let team = first.page.team_id;
                let late = group.into_iter().filter_map(|end| {
                    let (held, end_sender) = attached.remove(&end.page.id)?;
                    Some(Submitted { end, held, end_sender })
                });
                self.put_late(team, late.collect());
                Vec::new()
            }
            [] => Vec::new(),
        })
        .await;
    }

    /// The end, unless its team's others stand behind a lock: then it goes behind them.
    fn unless_late(&self, submitted: Submitted) -> Option<Submitted> {
        match self.lock_late().get_mut(&submitted.end.page.team_id) {
            Some(waiting) => {
                waiting.push_back(submitted);
                None
            }
            None => Some(submitted),
        }
    }

    fn put_late(self: &Arc<Self>, team: TeamId, ends: VecDeque<Submitted>) {
        tracing::debug!(team.id = %team, pages = ends.len(), "the team's rows are locked; its results follow");
        self.lock_late().insert(team, ends);
        let store = Arc::clone(self);
        self.tasks.spawn(async move {
            while let Some(group) = store.next_late(team) {
                let (ends, mut attached) = detach(group);
                store.write(&store.late_ends, ends, &mut attached, |group, _| vec![group]).await;
            }
        });
    }

    /// The next late ends of a team. `None`: all of them are written, and the team's next end goes with the others'.
    fn next_late(&self, team: TeamId) -> Option<Vec<Submitted>> {
        let mut late = self.lock_late();
        let waiting = late.get_mut(&team)?;
        if waiting.is_empty() {
            late.remove(&team);
            return None;
        }
        let mut count = 0;
        let fits = |submitted: &&Submitted| {
            let is_first_or_few = count < ADDRESSES;
            count += addresses_of(&submitted.end);
            is_first_or_few
        };
        let group = waiting.iter().take(GROUP).take_while(fits).count();
        Some(waiting.drain(..group).collect())
    }

    fn lock_late(&self) -> MutexGuard<'_, HashMap<TeamId, VecDeque<Submitted>>> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a group, again and again while the database is away. A group that can never be written is split, so that
    /// one bad page does not hold up the others. `locked` says what to write of a group that met somebody else's lock.
    async fn write(
        &self,
        db: &Db,
        group: Vec<Finished>,
        attached: &mut Attached,
        locked: impl Fn(Vec<Finished>, &mut Attached) -> Vec<Vec<Finished>>,
    ) {
        let started = Stopwatch::start();
        let size = group.len();
        let (mut db, mut patience) = (db, PATIENCE);
        let mut pause = Duration::from_millis(50);
        let mut waiting = vec![group];
        // After an error it is not known whether the write was committed.
        let mut is_first = true;
        while let Some(group) = waiting.pop() {
            let finishing = finish(db, &group, db.now());
            let outcome = match db {
                Db::Sqlite(_) => finishing.await,
                Db::Postgres(_) => tokio::time::timeout(patience, finishing).await.unwrap_or_else(|_| {
                    patience *= 2;
                    Err(StoreError::Unavailable(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())))
                }),
            };
            match outcome {
                Ok(report) => {
                    self.conclude(group, &report.written, is_first, attached);
                    continue;
                }
                // The lock is taken before anything is changed, so the group may be written again.
                Err(error) if error.is_lock_wait() => {
                    waiting.extend(locked(group, attached));
                    continue;
                }
                Err(StoreError::Unavailable(error)) => {
                    tracing::warn!(%error, pages = group.len(), "results cannot be written; they are kept and tried again");
                    waiting.push(group);
                    // `ends` has one connection, which may be what failed.
                    db = &self.late_ends;
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
            is_first = false;
        }
        self.metrics.commit_seconds.observe(started.elapsed().as_secs_f64());
        self.metrics.commit_pages.observe(size as f64);
    }

    /// Remembers what a crawl has now and sends the ends to those who wait. The blobs of an overtaken attempt are removed,
    /// unless an earlier write of the same attempt may have been committed (not `is_first`): then they stay until their
    /// job is removed.
    fn conclude(&self, group: Vec<Finished>, written: &[PageId], is_first: bool, attached: &mut Attached) {
        for end in group {
            let end_sender = attached.remove(&end.page.id).and_then(|(held, end_sender)| {
                held.settle();
                end_sender
            });
            if written.contains(&end.page.id) {
                if let Outcome::Crawled { discovery, .. } = &end.outcome {
                    self.frontiers.learn(end.page.job_id, discovery.addresses());
                }
                if let Some(end_sender) = end_sender {
                    // It fails when the caller has hung up.
                    let _ = end_sender.send(written_end(end.outcome));
                }
                continue;
            }
            tracing::info!(page.id = %end.page.id, page.epoch = end.page.epoch, "an overtaken attempt is dropped");
            if is_first
                && let Outcome::Done { document, .. } | Outcome::Crawled { document: Some(document), .. } = &end.outcome
                && let Body::Blob(key) = &document.body
            {
                let (blobs, key) = (self.blobs.clone(), key.clone());
                drop(blocking::run(move || blobs.remove(&key)));
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

#[cfg(test)]
#[path = "finisher_tests.rs"]
mod tests;
