//! What every job of a worker shares.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use weir_shared::blobs::Blobs;
use weir_shared::config::Settings;
use weir_shared::ids::{JobId, KeyId, PageId, TeamId, WorkerId};
use weir_shared::llm::Spent;
use weir_shared::store::jobs::JobSpec;
use weir_shared::store::pages::Claimed;
use weir_shared::store::{Db, StoreResult, crawls, jobs, model_usage};
use weir_shared::time::Timestamp;
use weir_shared::wake::Wake;

use crate::browser::BrowserPool;
use crate::fetch::{EgressProxy, HttpFetcher, Poster, ProxyPools};
use crate::finisher::Finisher;
use crate::frontier_memory::FrontierMemory;
use crate::gate::Gate;
use crate::metrics::Metrics;
use crate::sandbox::Sandbox;
use crate::sessions::{SessionResources, Sessions};
use crate::site::RobotsStore;

/// What lives as long as the process.
pub struct Process {
    pub settings: Settings,
    pub db: Db,
    pub blobs: Blobs,
    pub fetcher: HttpFetcher,
    pub poster: Poster,
    /// The robots.txt files of sites lately visited.
    pub robots: RobotsStore,
    /// What the browsers are forced through.
    pub egress: EgressProxy,
    /// The same without the hosts of ads and trackers.
    pub ad_free: EgressProxy,
    /// The operator's proxies.
    pub proxies: ProxyPools,
    /// What browsers reach each of them through: with and without ads.
    pub upstreams: Vec<[EgressProxy; 2]>,
    /// Where browsers and users' code run.
    pub sandbox: Arc<Sandbox>,
    pub browsers: Option<Arc<BrowserPool>>,
    pub wake: Wake,
    pub metrics: Metrics,
    pub gate: Gate,
    /// Hosts whose pages lately needed a browser.
    pub scripted_hosts: HostMemory,
    /// What crawls are known to have met.
    pub frontiers: Arc<FrontierMemory>,
    /// What sessions need; found out after the start.
    pub session_resources: OnceCell<Arc<SessionResources>>,
    /// What API and workers know each other by.
    pub secret: String,
    /// The sessions of the life the worker is in.
    pub sessions: RwLock<Option<Arc<Sessions>>>,
    /// The life the worker is in.
    pub life: RwLock<Weak<WorkerContext>>,
    /// The runtime that pages are worked on in; the listener has another.
    pub runtime: tokio::runtime::Handle,
}

impl Process {
    /// Writes down a language model's tokens.
    pub async fn spent(&self, team: TeamId, key: Option<KeyId>, spent: Spent) {
        self.metrics.model_tokens.with_label_values(&["sent"]).inc_by(spent.sent.unsigned_abs());
        self.metrics.model_tokens.with_label_values(&["received"]).inc_by(spent.received.unsigned_abs());
        model_usage::record(&self.db, team, key, spent).await;
    }

    /// The life the worker is in, until it ends.
    pub fn life(&self) -> Option<Arc<WorkerContext>> {
        self.life.read().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// The open sessions, while the worker takes any.
    pub fn sessions(&self) -> Option<Arc<Sessions>> {
        self.sessions.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes whose sessions are asked for.
    pub fn set_sessions(&self, sessions: Option<Arc<Sessions>>) -> Option<Arc<Sessions>> {
        std::mem::replace(&mut *self.sessions.write().unwrap_or_else(PoisonError::into_inner), sessions)
    }
}

/// What lives as long as this worker counts as alive; a fenced one starts again under a new id.
pub struct WorkerContext {
    pub process: Arc<Process>,
    pub id: WorkerId,
    pub finisher: Finisher,
    /// Stop taking new work.
    pub draining: CancellationToken,
    /// This worker counts as dead: abandon everything.
    pub fenced: CancellationToken,
    /// Work under way.
    pub tasks: TaskTracker,
    pub lanes: Lanes,
    pub held: Arc<HeldPages>,
    specs: Mutex<HashMap<JobId, Arc<JobSpec>>>,
}

/// Jobs whose options are kept in memory.
const SPECS: usize = 500;

impl WorkerContext {
    /// A context for one life of the worker.
    pub fn new(
        process: Arc<Process>,
        id: WorkerId,
        finisher: Finisher,
        draining: CancellationToken,
        fenced: CancellationToken,
    ) -> Self {
        let specs = Mutex::new(HashMap::new());
        let (tasks, lanes, held) = (TaskTracker::new(), Lanes::default(), Arc::default());
        Self { process, id, finisher, draining, fenced, tasks, lanes, held, specs }
    }

    /// The part of a job that does not change, or not any more, from memory when it was used lately. `None`: the job is
    /// gone.
    pub async fn spec(&self, job: JobId) -> StoreResult<Option<Arc<JobSpec>>> {
        let known = self.lock_specs().get(&job).map(Arc::clone);
        if let Some(known) = known
            && (known.is_settled() || !crawls::is_settled(&self.process.db, job).await?)
        {
            return Ok(Some(known));
        }
        let Some(spec) = jobs::spec(&self.process.db, job).await? else { return Ok(None) };
        let spec = Arc::new(spec);
        self.keep_spec(job, Arc::clone(&spec));
        Ok(Some(spec))
    }

    /// Keeps a spec that came with a claim.
    pub fn keep_spec(&self, job: JobId, spec: Arc<JobSpec>) {
        let mut specs = self.lock_specs();
        if specs.len() >= SPECS {
            specs.clear();
        }
        specs.insert(job, spec);
    }

    fn lock_specs(&self) -> std::sync::MutexGuard<'_, HashMap<JobId, Arc<JobSpec>>> {
        self.specs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pages that this worker knows it has, until their end is written. A row may say more: a claim whose answer is lost
/// with its connection, a page whose work broke off.
#[derive(Debug, Default)]
pub struct HeldPages(Mutex<Held>);

/// By page and epoch.
#[derive(Debug, Default)]
struct Held {
    pages: HashSet<(PageId, i64)>,
    /// Whose work ended without an end.
    broken: HashSet<(PageId, i64)>,
}

impl HeldPages {
    /// Holds a claimed page until the answer is dropped.
    pub fn hold(self: &Arc<Self>, page: &Claimed) -> HeldPage {
        let claim = (page.id, page.epoch);
        self.lock().pages.insert(claim);
        HeldPage { held: Arc::clone(self), claim, is_settled: false }
    }

    pub fn contains(&self, page: &Claimed) -> bool {
        self.lock().pages.contains(&(page.id, page.epoch))
    }

    /// The pages whose work broke off, by page and epoch.
    pub fn broken(&self) -> HashSet<(PageId, i64)> {
        self.lock().broken.clone()
    }

    /// Forgets those that are in work no more.
    pub fn forget_broken<'a>(&self, gone: impl Iterator<Item = &'a (PageId, i64)>) {
        let mut held = self.lock();
        for claim in gone {
            held.broken.remove(claim);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of [`HeldPages`]. Dropped, it says that the work broke off.
#[derive(Debug)]
pub struct HeldPage {
    held: Arc<HeldPages>,
    claim: (PageId, i64),
    is_settled: bool,
}

impl HeldPage {
    /// The attempt has its end: it is written, or was overtaken.
    pub fn settle(mut self) {
        self.is_settled = true;
    }
}

impl Drop for HeldPage {
    fn drop(&mut self) {
        let mut held = self.held.lock();
        held.pages.remove(&self.claim);
        if !self.is_settled {
            held.broken.insert(self.claim);
        }
    }
}

/// The teams this worker is claiming pages for: one lane each. A ticket for a team that has its lane already makes
/// that lane look once more.
#[derive(Debug, Default)]
pub struct Lanes {
    /// Team to "a ticket came meanwhile".
    open: Mutex<HashMap<TeamId, bool>>,
    /// When to look again without a ticket.
    alarms: Mutex<HashMap<TeamId, Timestamp>>,
}

impl Lanes {
    /// Opens the team's lane. `false`: it is open; it will look again.
    pub fn open(&self, team: TeamId) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        match open.get_mut(&team) {
            Some(again) => {
                *again = true;
                false
            }
            None => {
                open.insert(team, false);
                true
            }
        }
    }

    /// Closes the lane, unless a ticket came meanwhile (`false`: look again).
    pub fn close(&self, team: TeamId) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.get(&team) == Some(&true) {
            open.insert(team, false);
            return false;
        }
        open.remove(&team);
        true
    }

    /// Sets the team's alarm, of which there is one. `false`: it goes off earlier anyway.
    pub fn set_alarm(&self, team: TeamId, at: Timestamp) -> bool {
        let mut alarms = self.alarms.lock().unwrap_or_else(PoisonError::into_inner);
        if alarms.get(&team).is_some_and(|set| *set <= at) {
            return false;
        }
        alarms.insert(team, at);
        true
    }

    /// Takes the alarm that goes off now. `false`: an earlier one has replaced it.
    pub fn take_alarm(&self, team: TeamId, at: Timestamp) -> bool {
        let mut alarms = self.alarms.lock().unwrap_or_else(PoisonError::into_inner);
        let is_set = alarms.get(&team) == Some(&at);
        if is_set {
            alarms.remove(&team);
        }
        is_set
    }

    /// Closes the lane whatever came: after an error, when its ticket is delivered again.
    pub fn abandon(&self, team: TeamId) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&team);
    }
}

/// Remembers for a while which hosts need a browser.
#[derive(Debug, Default)]
pub struct HostMemory {
    hosts: Mutex<HashMap<String, (Instant, u32)>>,
}

/// How long a verdict stands.
const VERDICT: Duration = Duration::from_secs(600);
/// Verdicts kept.
const VERDICTS: usize = 10_000;
/// Scripted pages in a row before a host goes straight to the browser.
const CERTAIN: u32 = 3;

impl HostMemory {
    /// Whether pages of this host (`host:port`) should go straight to the browser.
    pub fn is_scripted(&self, host: &str) -> bool {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.get(host).is_some_and(|(at, count)| *count >= CERTAIN && at.elapsed() < VERDICT)
    }

    /// Records what a fetched page of this host looked like. One static page takes the verdict back, so a site with
    /// both kinds is fetched first each time.
    pub fn record(&self, host: &str, scripted: bool) {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if !scripted {
            hosts.remove(host);
            return;
        }
        if hosts.len() >= VERDICTS {
            hosts.clear();
        }
        let entry = hosts.entry(host.to_owned()).or_insert((Instant::now(), 0));
        *entry = (Instant::now(), entry.1.saturating_add(1));
    }
}
