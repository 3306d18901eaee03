//! What every job of a worker shares: what lives as long as the process, and what lives until the worker is fenced.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use weir_shared::blobs::Blobs;
use weir_shared::config::Settings;
use weir_shared::figures::Counter;
use weir_shared::guests::Holder;
use weir_shared::ids::{JobId, KeyId, TeamId, WorkerId};
use weir_shared::llm::{Asker, Model, Spent};
use weir_shared::search::Backends;
use weir_shared::slots::Slots;
use weir_shared::store::accounts::model_usage;
use weir_shared::store::contents::cache::Uses;
use weir_shared::store::contents::finder::Finder;
use weir_shared::store::work::crawls;
use weir_shared::store::work::jobs::{self, JobSpec};
use weir_shared::store::{Db, StoreError, StoreResult};
use weir_shared::wake::Wake;
use weir_shared::witness::Witness;

use crate::browser::BrowserPool;
use crate::crawl::frontier_memory::FrontierMemory;
use crate::dispatch::dispatchers::TeamDispatchers;
use crate::dispatch::held::HeldPages;
use crate::fetch::{AdHosts, EgressProxy, HttpFetcher, Poster, ProxyPools};
use crate::finisher::Finisher;
use crate::learn::Extractors;
use crate::metrics::Metrics;
use crate::page::scripted_hosts::ScriptedHosts;
use crate::page::templates::Templates;
use crate::sandbox::Sandbox;
use crate::sessions::{SessionResources, Sessions};
use crate::site::RobotsStore;
use crate::task::driven::DrivenTasks;

/// What lives as long as the process.
pub struct Process {
    pub settings: Settings,
    pub db: Db,
    pub blobs: Blobs,
    pub fetcher: HttpFetcher,
    pub poster: Poster,
    /// The language model, where there is one.
    pub model: Option<Arc<Model>>,
    /// Where the searches of tasks are made.
    pub search: Backends,
    /// The robots.txt files of sites lately visited.
    pub robots: RobotsStore,
    /// What the browsers are forced through.
    pub egress: EgressProxy,
    /// The same without the hosts of ads and trackers.
    pub ad_free: EgressProxy,
    /// The operator's proxies.
    pub proxies: Arc<ProxyPools>,
    /// The hosts that `blockAds` keeps browsers from.
    pub ads: Arc<AdHosts>,
    /// The egress proxies that browsers reach each of them through: one lets ads pass, one does not.
    pub upstreams: Vec<[EgressProxy; 2]>,
    /// Where browsers and users' code run.
    pub sandbox: Arc<Sandbox>,
    pub browsers: Option<Arc<BrowserPool>>,
    pub wake: Wake,
    /// Whether other workers may be judged by their silence.
    pub witness: Witness,
    pub metrics: Metrics,
    /// What is counted for the console.
    pub figures: Arc<Counter>,
    pub slots: Slots,
    /// Hosts whose pages lately needed a browser.
    pub scripted_hosts: ScriptedHosts,
    /// Looks for what is kept of pages.
    pub finder: Finder,
    /// What of the store of pages was read lately.
    pub uses: Uses,
    /// What pages of the sites lately visited have in common.
    pub templates: Templates,
    /// The extractors lately used.
    pub extractors: Extractors,
    /// The addresses that are known to be in the frontiers of crawls.
    pub frontiers: Arc<FrontierMemory>,
    /// What sessions need; prepared after the start.
    pub session_resources: OnceCell<Arc<SessionResources>>,
    /// The secret that the API shows in its calls.
    pub secret: String,
    /// The sessions of the life the worker is in.
    pub sessions: RwLock<Option<Arc<Sessions>>>,
    /// The life the worker is in.
    pub life: RwLock<Weak<WorkerContext>>,
    /// The runtime that pages are worked on in; the listener has another.
    pub runtime: tokio::runtime::Handle,
}

impl Process {
    /// The language model as the holder asks it, where there is one.
    pub fn asker(&self, holder: Holder) -> Option<Asker> {
        self.model.as_ref().map(|model| model.asked_by(holder))
    }

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

    /// Replaces the open sessions, and gives back those of before.
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
    /// Work under way, and claims of more: a drain waits for them.
    pub tasks: TaskTracker,
    /// Of these the pages whose actions have begun: nobody begins with them again, so a drain waits for them longer.
    pub acting: TaskTracker,
    /// The drain takes too long for pages that others can begin anew: they go back.
    pub giving_back: CancellationToken,
    /// And for those that nobody can: they end.
    pub giving_up: CancellationToken,
    pub dispatchers: TeamDispatchers,
    pub held: Arc<HeldPages>,
    pub driven: DrivenTasks,
    specs: Mutex<HashMap<JobId, Arc<JobSpec>>>,
}

/// Jobs whose options are kept in memory.
const SPECS: usize = 500;

/// Why a worker that stops does not serve a wake-up, which the queue then delivers again.
pub fn stopping() -> StoreError {
    StoreError::Conflict("the worker is stopping; the wake-up goes back".to_owned())
}

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
        let (tasks, dispatchers, held) = (TaskTracker::new(), TeamDispatchers::default(), Arc::default());
        let driven = DrivenTasks::default();
        Self {
            process,
            id,
            finisher,
            draining,
            fenced,
            tasks,
            acting: TaskTracker::new(),
            giving_back: CancellationToken::new(),
            giving_up: CancellationToken::new(),
            dispatchers,
            held,
            driven,
            specs,
        }
    }

    /// The part of a job that never changes or is settled, from memory when it was used lately. `None`: the job is removed.
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
