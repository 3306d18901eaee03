//! What a worker's process needs as long as it runs: proxies, sandbox, browsers, HTTP.

use std::sync::{Arc, RwLock};

use tokio::sync::OnceCell;
use weir_shared::blobs::Blobs;
use weir_shared::config::{SandboxChoice, Settings};
use weir_shared::guard::AddressGuard;
use weir_shared::llm::Model;
use weir_shared::search::Backends;
use weir_shared::slots::Slots;
use weir_shared::store::contents::cache;
use weir_shared::store::contents::finder::Finder;
use weir_shared::store::{self, Db};
use weir_shared::wake::Wake;
use weir_shared::witness::Witness;
use weir_shared::{blocking, clock};

use crate::browser::{BrowserConfig, BrowserPool};
use crate::context::Process;
use crate::fetch::{AdHosts, EgressOptions, EgressProxy, FetchConfig, HostFilter, HttpFetcher, Poster, ProxyPools};
use crate::metrics::Metrics;
use crate::page::scripted_hosts::ScriptedHosts;
use crate::page::templates::Templates;
use crate::sandbox::{Sandbox, SandboxConfig, SandboxMode};
use crate::site::RobotsStore;

/// Starts it all. `secret` is what API and workers know each other by.
pub(super) async fn process(settings: Settings, db: Db, secret: String) -> anyhow::Result<Process> {
    let guard = settings.net.guard();
    let blobs = Blobs::at(&settings.blobs)?;
    let proxies = Arc::new(ProxyPools::new(&settings.net));
    let lists = settings.net.ad_lists.clone();
    let ads = Arc::new(blocking::run(move || AdHosts::read(&lists)).await??);
    let doors = Doors::open(&guard, &proxies, &ads).await?;
    let config = sandbox_config(&settings, &doors);
    let sandbox = Arc::new(blocking::run(move || Sandbox::prepare(config)).await??);
    let browsers = start_browsers(&settings, &sandbox, &doors, &ads)?;
    let fetcher = HttpFetcher::new(guard.clone(), FetchConfig::default())?;
    store::db::clock::follow(&db);
    Ok(Process {
        witness: Witness::new(clock::instant(), db.now()),
        wake: Wake::start_for_worker(&settings.database_url, settings.listen_url.as_deref(), &db).await?,
        robots: RobotsStore::new(fetcher.clone()),
        extractors: Default::default(),
        fetcher,
        poster: Poster::new(guard)?,
        model: settings.model.clone().map(Model::new),
        search: Backends::new(settings.search.clone()),
        egress: doors.open,
        ad_free: doors.ad_free,
        proxies,
        ads,
        upstreams: doors.upstreams,
        slots: Slots::new(settings.worker.concurrency),
        metrics: Metrics::new()?,
        figures: Arc::default(),
        scripted_hosts: ScriptedHosts::default(),
        templates: Templates::default(),
        frontiers: Arc::default(),
        finder: Finder::new(db.clone()),
        uses: cache::Uses::default(),
        session_resources: OnceCell::new(),
        sessions: RwLock::default(),
        life: RwLock::default(),
        runtime: tokio::runtime::Handle::current(),
        secret,
        sandbox,
        browsers,
        blobs,
        db,
        settings,
    })
}

/// The egress proxies, which are all that browsers and boxes see of the network.
pub(super) struct Doors {
    open: EgressProxy,
    /// The same without the hosts of ads and trackers.
    ad_free: EgressProxy,
    /// Both for each of the operator's proxies.
    upstreams: Vec<[EgressProxy; 2]>,
}

impl Doors {
    pub(super) async fn open(guard: &AddressGuard, proxies: &ProxyPools, ads: &Arc<AdHosts>) -> anyhow::Result<Self> {
        let ad_hosts = || Some(Arc::clone(ads) as Arc<dyn HostFilter>);
        let open = EgressProxy::start(guard.clone(), None).await?;
        let ad_free = EgressOptions { filter: ad_hosts(), ..EgressOptions::default() };
        let ad_free = EgressProxy::start_with(guard.clone(), ad_free).await?;
        let mut upstreams = Vec::new();
        for proxy in proxies.proxies() {
            let through = |filter| EgressOptions { upstream: Some(proxy.clone()), filter, ..EgressOptions::default() };
            upstreams.push([
                EgressProxy::start_with(guard.clone(), through(None)).await?,
                EgressProxy::start_with(guard.clone(), through(ad_hosts())).await?,
            ]);
        }
        Ok(Self { open, ad_free, upstreams })
    }
}

pub(super) fn sandbox_config(settings: &Settings, doors: &Doors) -> SandboxConfig {
    SandboxConfig {
        run_dirs: settings.worker.run_dirs.clone(),
        mode: match settings.browser.sandbox {
            SandboxChoice::Strict => SandboxMode::Strict,
            SandboxChoice::Degraded => SandboxMode::Degraded,
            SandboxChoice::Off => SandboxMode::Off,
        },
        egress: doors.open.door(),
        ad_free: doors.ad_free.door(),
        upstreams: doors.upstreams.iter().map(|[open, ad_free]| [open.door(), ad_free.door()]).collect(),
        allow_ports: settings.net.allow_ports.clone(),
        chromium: settings.browser.chromium.clone(),
        program: None,
    }
}

/// The browsers that pages share; `None`: the operator wants none.
fn start_browsers(
    settings: &Settings,
    sandbox: &Arc<Sandbox>,
    doors: &Doors,
    ads: &Arc<AdHosts>,
) -> anyhow::Result<Option<Arc<BrowserPool>>> {
    if settings.browser.page_browsers == 0 {
        return Ok(None);
    }
    let config = BrowserConfig {
        browsers: settings.browser.page_browsers,
        pages_per_browser: settings.browser.pages_per_browser,
        idle_stop: settings.browser.page_browser_idle,
        egress_proxy: doors.open.addr(),
        upstreams: doors.upstreams.iter().map(|[open, _]| open.addr()).collect(),
        ads: Arc::clone(ads),
        ..BrowserConfig::default()
    };
    Ok(Some(BrowserPool::start(Arc::clone(sandbox), config)?))
}
