//! The life of a worker: it announces itself, beats, works, and either drains or is fenced and starts again.
//!
//! The heartbeat has its own thread, runtime and connection, so that neither a full pool nor long CPU work silences it.
//! Without a heartbeat for [`nodes::FENCE_MS`] the worker abandons everything before the others may declare it dead.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use weir_shared::config::{DatabaseUrl, SandboxChoice, Settings};
use weir_shared::ids::WorkerId;
use weir_shared::store::{self, Db, PoolUse, nodes};
use weir_shared::time::Timestamp;
use weir_shared::wake::Wake;

use crate::browser::{BrowserConfig, BrowserPool, is_ad_host};
use crate::context::{Process, WorkerContext};
use crate::dispatch::slots::PageSlots;
use crate::exec::Assets;
use crate::fetch::{EgressOptions, EgressProxy, FetchConfig, HostFilter, HttpFetcher, Poster, ProxyPools};
use crate::finisher::Finisher;
use crate::metrics::Metrics;
use crate::page::scripted_hosts::ScriptedHosts;
use crate::sandbox::{Sandbox, SandboxConfig, SandboxMode};
use crate::sessions::{Keeper, Sessions, Vault};
use crate::site::RobotsStore;
use crate::{listener, queue, replayer, sweeper, tidier};

/// How long a drain may take; what is not done by then goes back to the queue.
const DRAIN: Duration = Duration::from_secs(12);
/// Connections for the ends of pages of teams whose lock somebody holds, at most.
const LATE_ENDS: u32 = 4;
/// Bound on writing the last results.
const LAST_WRITES: Duration = Duration::from_secs(5);
/// Bound on the end of the last boxes.
const LAST_BOXES: Duration = Duration::from_secs(5);

/// Runs a worker until `stop` is cancelled and its work is drained.
pub async fn run(settings: Settings, stop: CancellationToken) -> anyhow::Result<()> {
    let db = Db::connect(&settings.database_url, 8, PoolUse::Rows).await?;
    // On SQLite the queue library stands in line with our own writers.
    let tickets = match &db {
        Db::Sqlite(_) => db.clone(),
        Db::Postgres(_) => Db::connect(&settings.database_url, 6, PoolUse::Tickets).await?,
    };
    // Ends of pages have a connection of their own: what they need is warm in one server process, not cold in eight.
    // Those of teams whose lock somebody holds have others.
    let (ends, late_ends) = match &db {
        Db::Sqlite(_) => (db.clone(), db.clone()),
        Db::Postgres(_) => (
            Db::connect(&settings.database_url, 1, PoolUse::Ends).await?,
            Db::connect(&settings.database_url, LATE_ENDS, PoolUse::LateEnds).await?,
        ),
    };
    wait_for_tables(&db).await?;
    let secret = store::settings::internal_secret(&db, settings.internal_secret.as_deref()).await?;
    let process = Arc::new(prepare(settings, db.clone(), secret).await?);
    let socket = std::net::TcpListener::bind(process.settings.worker.bind)
        .with_context(|| format!("WEIR_WORKER_BIND={}: cannot listen there", process.settings.worker.bind))?;
    let (address, server) = listener::start(socket, Arc::clone(&process))?;
    let server_handle = server.handle();
    tokio::spawn(server);
    tracing::info!(%address, slots = process.settings.worker.concurrency, "the worker is ready");
    while !stop.is_cancelled() {
        if life(&process, &tickets, [&ends, &late_ends], &address.to_string(), &stop).await? == End::Drained {
            break;
        }
        tracing::warn!("this worker counted as dead; it starts again under a new id");
    }
    if let Some(browsers) = &process.browsers {
        browsers.shutdown().await;
    }
    process.sandbox.close(LAST_BOXES).await;
    server_handle.stop(false).await;
    tickets.close().await;
    ends.close().await;
    late_ends.close().await;
    db.close().await;
    Ok(())
}

/// The tables come with `weir migrate` or the first `weir serve`; a worker started first waits for them.
async fn wait_for_tables(db: &Db) -> anyhow::Result<()> {
    let end = Instant::now() + Duration::from_secs(30);
    let mut told = false;
    loop {
        match nodes::list(db).await {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() > end => {
                return Err(error).context("the database has no tables yet: run `weir migrate` first");
            }
            Err(_) => {
                if !told {
                    tracing::info!("waiting for the database's tables (`weir migrate`)");
                    told = true;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn prepare(settings: Settings, db: Db, secret: String) -> anyhow::Result<Process> {
    let guard = settings.net.guard();
    let blobs = weir_shared::blobs::Blobs::at(&settings.blobs)?;
    let egress = EgressProxy::start(guard.clone(), None).await?;
    let ad_free = EgressOptions { filter: Some(Arc::new(AdHosts)), ..EgressOptions::default() };
    let ad_free = EgressProxy::start_with(guard.clone(), ad_free).await?;
    let proxies = ProxyPools::new(&settings.net);
    let mut upstreams = Vec::new();
    for proxy in proxies.proxies() {
        let through = |filter| EgressOptions { upstream: Some(proxy.clone()), filter, ..EgressOptions::default() };
        let ad_free: Arc<dyn HostFilter> = Arc::new(AdHosts);
        upstreams.push([
            EgressProxy::start_with(guard.clone(), through(None)).await?,
            EgressProxy::start_with(guard.clone(), through(Some(ad_free))).await?,
        ]);
    }
    let config = SandboxConfig {
        run_dirs: settings.worker.run_dirs.clone(),
        mode: match settings.browser.sandbox {
            SandboxChoice::Strict => SandboxMode::Strict,
            SandboxChoice::Degraded => SandboxMode::Degraded,
            SandboxChoice::Off => SandboxMode::Off,
        },
        egress: egress.door(),
        ad_free: ad_free.door(),
        upstreams: upstreams.iter().map(|[open, ad_free]| [open.door(), ad_free.door()]).collect(),
        allow_ports: settings.net.allow_ports.clone(),
        chromium: settings.browser.chromium.clone(),
        program: None,
    };
    let sandbox = Arc::new(tokio::task::spawn_blocking(move || Sandbox::prepare(config)).await??);
    let browsers = if settings.browser.page_browsers == 0 {
        None
    } else {
        let config = BrowserConfig {
            browsers: settings.browser.page_browsers,
            pages_per_browser: settings.browser.pages_per_browser,
            egress_proxy: egress.addr(),
            upstreams: upstreams.iter().map(|[open, _]| open.addr()).collect(),
            ..BrowserConfig::default()
        };
        Some(BrowserPool::start(Arc::clone(&sandbox), config)?)
    };
    let fetcher = HttpFetcher::new(guard.clone(), FetchConfig::default())?;
    store::clock::follow(&db);
    Ok(Process {
        wake: Wake::start_for_tickets(&settings.database_url, &db).await?,
        robots: RobotsStore::new(fetcher.clone()),
        fetcher,
        poster: Poster::new(guard)?,
        egress,
        ad_free,
        proxies,
        upstreams,
        slots: PageSlots::new(settings.worker.concurrency),
        metrics: Metrics::new()?,
        scripted_hosts: ScriptedHosts::default(),
        frontiers: Arc::default(),
        keeper: OnceCell::new(),
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

/// The hosts that `blockAds` keeps out, for the browsers' second proxy.
struct AdHosts;

impl HostFilter for AdHosts {
    fn blocks(&self, host: &str) -> bool {
        is_ad_host(host)
    }
}

/// How a life ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Drained,
    Fenced,
}

async fn life(
    process: &Arc<Process>,
    tickets: &Db,
    [ends, late_ends]: [&Db; 2],
    address: &str,
    stop: &CancellationToken,
) -> anyhow::Result<End> {
    let id = WorkerId::new();
    announce(process, id, address).await?;
    let draining = stop.child_token();
    let fenced = CancellationToken::new();
    let beat_over = CancellationToken::new();
    let heartbeat = start_heartbeat(process, id, draining.clone(), fenced.clone(), beat_over.clone())?;
    let (finisher, mut writer) = Finisher::start(
        ends.clone(),
        late_ends.clone(),
        process.blobs.clone(),
        process.metrics.clone(),
        Arc::clone(&process.frontiers),
    );
    let context = Arc::new(WorkerContext::new(Arc::clone(process), id, finisher, draining.clone(), fenced.clone()));
    *process.life.write().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&context);
    let consumers = queue::start::start(&context, tickets);
    let sweeping = tokio::spawn(sweeper::run(Arc::clone(&context)));
    let tidying = tokio::spawn(tidier::run(Arc::clone(&context)));
    let replaying = tokio::spawn(replayer::run(Arc::clone(&context)));
    let offering = tokio::spawn(offer_sessions(Arc::clone(process), id, draining.clone(), fenced.clone()));

    tokio::select! {
        () = draining.cancelled() => {}
        () = fenced.cancelled() => {}
    }
    let end = if fenced.is_cancelled() { End::Fenced } else { End::Drained };
    context.tasks.close();
    offering.abort();
    let sessions = process.sessions();
    if end == End::Drained {
        let open = sessions.as_ref().map_or(0, |sessions| sessions.count());
        tracing::info!(pages = context.tasks.len(), sessions = open, "draining");
        let pages = async {
            if tokio::time::timeout(DRAIN, context.tasks.wait()).await.is_err() {
                let pages = context.tasks.len();
                tracing::warn!(pages, "the drain took too long; what is left goes back to the queue");
            }
        };
        let ends = async {
            if let Some(sessions) = &sessions {
                sessions.close_all(DRAIN).await;
            }
        };
        tokio::join!(pages, ends);
    }
    if let Some(sessions) = process.set_sessions(None) {
        sessions.stop().await;
    }
    for consumer in consumers {
        let _ = tokio::time::timeout(Duration::from_secs(2), consumer).await;
    }
    sweeping.abort();
    tidying.abort();
    replaying.abort();
    drop(context);
    if end == End::Fenced {
        wait_for_answers(process, stop).await;
    }
    let _ = tokio::time::timeout(LAST_WRITES, &mut writer).await;
    beat_over.cancel();
    retire(process, id).await;
    let _ = tokio::task::spawn_blocking(move || heartbeat.join()).await;
    Ok(end)
}

/// Until the database answers again, or the worker is to stop: what was fetched before the silence is written then, and
/// the claims of this life are given back, before the next one begins.
async fn wait_for_answers(process: &Process, stop: &CancellationToken) {
    let answers = async {
        while !matches!(tokio::time::timeout(LAST_WRITES, process.db.ping()).await, Ok(Ok(()))) {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    tokio::select! {
        () = answers => {}
        () = stop.cancelled() => {}
    }
}

/// Tries the sandbox, then takes sessions or says why not and tries again. Pages do not wait for it.
async fn offer_sessions(process: Arc<Process>, id: WorkerId, draining: CancellationToken, fenced: CancellationToken) {
    let wanted = process.settings.worker.sessions;
    if wanted == 0 {
        return;
    }
    let mut pause = Duration::from_secs(1);
    loop {
        match process.keeper.get_or_try_init(|| prepare_sessions(&process)).await {
            Ok(keeper) => {
                process.set_sessions(Some(Sessions::start(Arc::clone(keeper), id, draining.clone(), fenced.clone())));
                return write_offer(&process, id, wanted as i64, None, &draining, &fenced).await;
            }
            Err(why) => {
                tracing::error!(why, "this worker takes no browser sessions; it is tried again");
                write_offer(&process, id, 0, Some(&why), &draining, &fenced).await;
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(60));
    }
}

async fn write_offer(
    process: &Process,
    id: WorkerId,
    slots: i64,
    refused: Option<&str>,
    draining: &CancellationToken,
    fenced: &CancellationToken,
) {
    while !draining.is_cancelled() && !fenced.is_cancelled() {
        let offer = async {
            let mut tx = process.db.begin().await?;
            nodes::offer_sessions(&mut tx, id, slots, refused).await?;
            tx.commit().await
        };
        match offer.await {
            Ok(()) => return,
            Err(error) => {
                tracing::warn!(%error, "sessions cannot be offered yet");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

async fn prepare_sessions(process: &Arc<Process>) -> Result<Arc<Keeper>, String> {
    let (settings, sandbox) = (&process.settings, Arc::clone(&process.sandbox));
    sandbox.probe().await.map_err(|e| e.to_string())?;
    let (runners, dir) = (settings.worker.runners.clone(), sandbox.dir().to_owned());
    let assets = tokio::task::spawn_blocking(move || Assets::find(&runners, &dir))
        .await
        .map_err(|e| e.to_string())?
        .map_err(|e| format!("{e:#}"))?;
    Ok(Arc::new(Keeper {
        db: process.db.clone(),
        blobs: process.blobs.clone(),
        assets: Arc::new(assets),
        sandbox,
        vault: Vault::new(process.secret.as_bytes()),
        metrics: process.metrics.clone(),
        warm: settings.browser.warm,
    }))
}

/// Declares the worker dead and gives back at once what it still held.
async fn retire(process: &Process, id: WorkerId) {
    let work = async {
        let mut tx = process.db.begin().await?;
        nodes::set_state(&mut tx, id, "dead").await?;
        store::page::rescue::give_back(&mut tx, id, Timestamp::now()).await?;
        tx.commit().await?;
        store::sessions::end_orphans(&process.db).await
    };
    match tokio::time::timeout(LAST_WRITES, work).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(%error, "the worker could not sign off; the others will notice"),
        Err(_) => tracing::warn!("the worker could not sign off in time; the others will notice"),
    }
}

async fn announce(process: &Process, id: WorkerId, address: &str) -> anyhow::Result<()> {
    let now = Timestamp::now();
    let pid = std::process::id();
    let host_name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_else(|_| "worker".to_owned());
    let node = nodes::NodeRow {
        id,
        name: format!("{}-{pid}", host_name.trim()),
        host: host_identity(),
        pid: i64::from(pid),
        address: address.to_owned(),
        state: "live".to_owned(),
        slots: process.settings.worker.concurrency as i64,
        // Offered when the sandbox has been tried.
        session_slots: 0,
        sessions_refused: None,
        started_at: now,
        heartbeat_at: now,
    };
    let mut tx = process.db.begin().await?;
    bury_neighbours(&mut tx, &node).await?;
    nodes::insert(&mut tx, &node).await?;
    let found = process.sandbox.status();
    let limits = if found.boxed { found.limits.name() } else { "there are no boxes (WEIR_SANDBOX=off)" };
    nodes::say_box_limits(&mut tx, id, limits).await?;
    tx.commit().await?;
    store::sessions::end_orphans(&process.db).await?;
    Ok(())
}

/// Tells machines and their boots apart.
fn host_identity() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", boot.trim(), namespace.display())
}

/// Workers of this machine whose process is gone are dead now, not after their heartbeat's time.
async fn bury_neighbours(tx: &mut store::Tx, me: &nodes::NodeRow) -> anyhow::Result<()> {
    for other in nodes::neighbours(tx, &me.host).await? {
        if other.pid == me.pid || !std::path::Path::new(&format!("/proc/{}", other.pid)).exists() {
            tracing::info!(worker = other.name, "a worker of this machine died; its pages go back to the queue");
            nodes::set_state(tx, other.id, "dead").await?;
        }
    }
    Ok(())
}

/// The heartbeat on a thread of its own.
fn start_heartbeat(
    process: &Arc<Process>,
    id: WorkerId,
    draining: CancellationToken,
    fenced: CancellationToken,
    over: CancellationToken,
) -> anyhow::Result<std::thread::JoinHandle<()>> {
    let url = process.settings.database_url.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("heartbeat runtime")?;
    std::thread::Builder::new()
        .name("heartbeat".to_owned())
        .spawn(move || runtime.block_on(beat(url, id, draining, fenced, over)))
        .context("heartbeat thread")
}

async fn beat(
    url: DatabaseUrl,
    id: WorkerId,
    draining: CancellationToken,
    fenced: CancellationToken,
    over: CancellationToken,
) {
    let every = Duration::from_millis(nodes::HEARTBEAT_MS.unsigned_abs());
    let patience = Duration::from_millis(nodes::FENCE_MS.unsigned_abs());
    let mut last_good = Instant::now();
    let mut db: Option<Db> = None;
    while !over.is_cancelled() {
        let sign = async {
            if db.is_none() {
                db = Some(Db::connect(&url, 1, PoolUse::Heartbeats).await.map_err(|e| e.to_string())?);
            }
            let Some(db) = &db else { return Err("no connection".to_owned()) };
            sign(db, id).await.map_err(|e| e.to_string())
        };
        match tokio::time::timeout(every, sign).await.unwrap_or_else(|_| Err("no answer in time".to_owned())) {
            Ok(Some(state)) => {
                last_good = Instant::now();
                if state == "draining" {
                    draining.cancel();
                }
            }
            Ok(None) => {
                tracing::warn!("the others declared this worker dead");
                return fenced.cancel();
            }
            Err(error) => {
                tracing::warn!(error, "a heartbeat failed");
                db = None;
                if last_good.elapsed() > patience {
                    return fenced.cancel();
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            () = over.cancelled() => {}
        }
    }
    if let Some(db) = db {
        db.close().await;
    }
}

async fn sign(db: &Db, id: WorkerId) -> store::StoreResult<Option<String>> {
    let mut tx = db.begin_relaxed().await?;
    let state = nodes::heartbeat(&mut tx, id, Timestamp::now()).await?;
    tx.commit().await?;
    Ok(state)
}
