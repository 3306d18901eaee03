//! Starts and stops the HTTP server.
//!
//! A stop accepts nothing more, cuts short whoever waits for news, answers what was accepted, and ends within a bound.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use actix_web::web;
use anyhow::Context;
use tokio::net::TcpSocket;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use weir_shared::blobs::Blobs;
use weir_shared::config::{DatabaseUrl, Settings};
use weir_shared::lasting;
use weir_shared::llm::Model;
use weir_shared::memory;
use weir_shared::search::Backends;
use weir_shared::store::{self, Db, PoolUse};
use weir_shared::traces;
use weir_shared::wake::Wake;
use weir_shared::witness::Witness;
use weir_shared::{clock, descriptors};

use crate::app::{App, AppData};
use crate::callers::auth::CallerCache;
use crate::callers::ended_jobs::EndedJobs;
use crate::callers::first_key::{self, FirstKey};
use crate::callers::limits::Limiter;
use crate::callers::places::Places;
use crate::callers::queue_headroom::QueueHeadroom;
use crate::callers::turns::Turns;
use crate::console::minute;
use crate::console::state::Console;
use crate::http::answers::Answers;
use crate::http::bodies::Bodies;
use crate::http::handed_over;
use crate::http_server::{HttpServer, most_connections};
use crate::metrics::Metrics;
use crate::workers::direct_dispatch::DirectDispatch;
use crate::workers::relay_target::{RelayTargets, RowTargets};
use crate::workers::silent_workers::SilentWorkers;
use crate::workers::worker_client::WorkerClient;

/// From the stop signal to the end, whoever is still connected. The packages' own bounds on a stop are longer.
const STOP_BOUND: Duration = Duration::from_secs(30);
/// Connections that wait to be accepted, at most.
const LINE: u32 = 2_048;
/// Between two looks whether the database takes what is written.
const WATCH_EVERY: Duration = Duration::from_secs(2);
/// Bound on writing the last minute's figures.
const LAST_FIGURES: Duration = Duration::from_secs(2);

/// A server that answers.
pub struct Running {
    /// Where it listens; with port 0 in the settings, the one it got.
    pub address: SocketAddr,
    /// The default team's key.
    pub key: FirstKey,
    db: Db,
    server: HttpServer,
    stopping: CancellationToken,
    minutes: Option<JoinHandle<()>>,
}

/// Opens the pool of an operator's command: who waits for it hears at once where the database is not there.
///
/// # Errors
/// When the database cannot be reached.
pub async fn connect(settings: &Settings, usage: PoolUse) -> anyhow::Result<Db> {
    Db::connect_at_once(&settings.database_url, connections(&settings.database_url), usage).await
}

/// As [`connect`], but a server that is not there yet is waited for. `None`: `stop` was cancelled meanwhile.
///
/// # Errors
/// As [`Db::connect_patiently`].
pub async fn connect_patiently(
    settings: &Settings,
    usage: PoolUse,
    stop: &CancellationToken,
) -> anyhow::Result<Option<Db>> {
    let url = &settings.database_url;
    Db::connect_patiently(url, connections(url), usage, stop).await
}

/// Most connections of a pool. SQLite: each is a thread with a cache of its own.
fn connections(url: &DatabaseUrl) -> u32 {
    match url {
        DatabaseUrl::Sqlite(_) => 4,
        DatabaseUrl::Postgres(_) => 12,
    }
}

/// A token that SIGTERM or SIGINT cancels.
///
/// # Errors
/// When the signals cannot be listened for.
pub fn stop_signal() -> anyhow::Result<CancellationToken> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stop = CancellationToken::new();
    let stopper = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stopper.cancel();
    });
    Ok(stop)
}

/// Makes the default team and its key in a database that is up to date, and listens.
///
/// # Errors
/// When the blobs, the key file, the address or the tables cannot be used.
pub async fn start(settings: Settings, db: Db) -> anyhow::Result<Running> {
    let key = first_key::ensure(&db, &settings.api).await?;
    let bind = settings.api.bind;
    let app = build(settings, db.clone()).await?;
    let stopping = app.stopping.clone();
    let minutes = minute::start(&app);
    watch_database(&app);
    let (socket, is_ours) = match handed_over::socket(bind)? {
        Some(socket) => (socket, false),
        None => (listen(bind).with_context(|| format!("cannot listen on {bind}"))?, true),
    };
    let address = socket.local_addr()?;
    let server = HttpServer::start(&app, socket, is_ours)?;
    tracing::info!(%address, "the API listens");
    Ok(Running { address, key, db, server, stopping, minutes })
}

/// Sees whether the database takes what is written: a worker's silence says nothing while it does not, and `/readyz` tells of it.
fn watch_database(app: &AppData) {
    let app = app.clone();
    // What was before this process is not known.
    app.witness.could_not_write();
    app.runtime.clone().spawn(lasting::again("watch over the database", move || write_now_and_then(app.clone())));
}

async fn write_now_and_then(app: AppData) {
    while !app.stopping.is_cancelled() {
        match app.db.try_write().await {
            Ok(()) => app.witness.wrote(clock::instant(), app.db.now()),
            Err(_) => app.witness.could_not_write(),
        }
        tokio::select! {
            () = tokio::time::sleep(WATCH_EVERY) => {}
            () = app.stopping.cancelled() => {}
        }
    }
}

/// A socket of our own, with room for a burst of callers: the standard library's has a line of 128.
fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(LINE)?.into_std()
}

/// The process's state over a database that is up to date.
///
/// # Errors
/// When the blobs, the database or its signals cannot be used.
pub async fn build(settings: Settings, db: Db) -> anyhow::Result<AppData> {
    let relay_targets = Arc::new(RowTargets::new(db.clone()));
    build_with(settings, db, relay_targets).await
}

/// As [`build`], with another way to find sessions.
///
/// # Errors
/// As [`build`].
pub async fn build_with(settings: Settings, db: Db, relay_targets: Arc<dyn RelayTargets>) -> anyhow::Result<AppData> {
    let internal_secret = store::db::settings::internal_secret(&db, settings.internal_secret.as_deref()).await?;
    store::db::clock::follow(&db);
    let witness = Witness::new(clock::instant(), db.now());
    let (workers, runtime) = (Arc::new(WorkerClient::new(&internal_secret)?), tokio::runtime::Handle::current());
    Ok(web::Data::new(App {
        silent_workers: SilentWorkers::default(),
        direct_dispatch: DirectDispatch::new(db.clone(), Arc::clone(&workers), runtime.clone()),
        workers,
        internal_secret,
        relay_targets,
        blobs: Blobs::at(&settings.blobs)?,
        wake: Wake::start(&settings.database_url, settings.listen_url.as_deref(), &db).await?,
        db,
        guard: settings.net.guard(),
        callers: CallerCache::default(),
        console: Console::default(),
        figures: Arc::default(),
        bodies: Bodies::default(),
        answers: Answers::default(),
        ended_jobs: EndedJobs::default(),
        limiter: Limiter::default(),
        places: Places::among(most_connections(descriptors::allowed())),
        queue_headroom: QueueHeadroom::default(),
        turns: Turns::default(),
        model: settings.model.clone().map(Model::new),
        search: Backends::new(settings.search.clone()),
        witness,
        runtime,
        metrics: Metrics::new()?,
        stopping: CancellationToken::new(),
        settings,
    }))
}

impl Running {
    /// Stops within a bound: waiting scrapes are answered, whoever waits for news is cut short.
    pub async fn stop(mut self) {
        self.stopping.cancel();
        if !self.server.stop(STOP_BOUND).await {
            tracing::warn!("connections were still open at the end");
        }
        if let Some(minutes) = self.minutes {
            let _ = tokio::time::timeout(LAST_FIGURES, minutes).await;
        }
        self.db.close().await;
    }
}

/// `weir serve`: runs until SIGTERM or SIGINT.
///
/// # Errors
/// As [`connect_patiently`], [`store::migrate_patiently`] and [`start`], and when the server ends by itself.
pub async fn serve(settings: Settings) -> anyhow::Result<()> {
    let key_file = settings.api.api_key_file.display().to_string();
    let traces = settings.traces.as_ref().map(|url| traces::start(url, "weir-api")).transpose()?;
    let stop = stop_signal()?;
    let Some(db) = connect_patiently(&settings, PoolUse::Rows, &stop).await? else { return Ok(()) };
    if store::migrate_patiently(&db, &stop).await?.is_none() {
        return Ok(());
    }
    let mut running = start(settings, db).await?;
    tokio::spawn(memory::forget_the_start());
    if running.key.is_new {
        // It is in the file as well, so a terminal that has gone is no reason to stop.
        let key = &running.key.key;
        let _ = writeln!(std::io::stdout(), "API key of the default team, shown once and kept in {key_file}: {key}");
    }
    tokio::select! {
        () = stop.cancelled() => {}
        ended = running.server.ended() => return ended,
    }
    tracing::info!("stopping");
    running.stop().await;
    if let Some(traces) = traces {
        traces.finish().await;
    }
    Ok(())
}
