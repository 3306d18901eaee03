//! Accepts connections and answers what comes on them: one task accepts, a thread a core answers.
//!
//! actix-web's own server loses calls when it is stopped: connections that it has accepted and not begun to read, and what
//! a client has just sent on a kept one. Here a stop goes in steps that lose none:
//!
//! 1. Nothing more is accepted. What waits in line at a socket that was handed over is for the next process; what waits at
//!    one of our own is accepted before the socket is closed.
//! 2. Every connection has some time for one more call. All answers say `Connection: close` (`access_log`).
//! 3. Idle connections are closed, and the others with their answer.
//!
//! What a request opens on Postgres is served by its thread from then on, whichever request uses it. So all threads go on
//! until the server is dropped, when the connections to the database are closed.

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use actix_http::error::DispatchError;
use actix_http::{HttpService, Protocol};
use actix_service::{IntoServiceFactory as _, map_config};
use actix_web::dev::{AppConfig, Service as _, ServiceFactory};
use actix_web::middleware::from_fn;
use anyhow::{Context, anyhow};
use futures_util::future::join_all;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use weir_shared::hang_up::Line;
use weir_shared::{clock, descriptors};

use crate::app::AppData;
use crate::http::pace::Paced;
use crate::http::peers::{Peers, Place};
use crate::http::{access_log, answers, connections, cors, head};
use crate::routes;

/// How long an idle connection is kept for its next request.
const KEEP_ALIVE: Duration = Duration::from_secs(75);
/// How long a client may take to send the head of its request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a client may take to close a connection that we have closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Connections at once; further ones wait in the socket's line.
const MOST_CONNECTIONS: u64 = 50_000;
/// Blocking calls at once, of all threads together.
const BLOCKING_CALLS: usize = 512;
/// Turns of connections between two looks at what has come from others. A turn takes up to some ten milliseconds, where a
/// client sends requests without end; by itself the runtime looks after 61 of them.
const TURNS_BETWEEN_LOOKS: u32 = 8;
/// Until it is tried again when this machine has no descriptor left for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);
/// How long a connection is left open at a stop for a call that its client is just sending.
const LAST_CALL: Duration = Duration::from_secs(1);

/// A server that answers.
pub struct HttpServer {
    accepting: JoinHandle<anyhow::Result<()>>,
    stop_accepting: CancellationToken,
    close_idle: CancellationToken,
    cut_short: CancellationToken,
    /// The connections of each thread.
    connections: Vec<TaskTracker>,
    /// Ends the threads when the server is dropped.
    _over: DropGuard,
}

/// A connection on its way to the thread that answers it.
struct Accepted {
    stream: TcpStream,
    counted: Counted,
}

/// Held as long as the connection lives.
type Counted = (TaskTrackerToken, OwnedSemaphorePermit, Place);

/// Where connections are handed to.
struct Thread {
    accepted: UnboundedSender<Accepted>,
    connections: TaskTracker,
}

impl HttpServer {
    /// Answers on a socket that listens. `is_ours`: nobody else holds it, and who waits in its line at the end would be
    /// refused.
    ///
    /// # Errors
    /// When the socket or a thread cannot be had.
    pub fn start(app: &AppData, socket: TcpListener, is_ours: bool) -> anyhow::Result<Self> {
        let address = socket.local_addr().context("the server has no address")?;
        socket.set_nonblocking(true)?;
        // What is accepted has it from the socket.
        Line::expect_presence(&socket);
        let socket = tokio::net::TcpListener::from_std(socket)?;
        let (stop_accepting, over) = (CancellationToken::new(), CancellationToken::new());
        let (close_idle, cut_short) = (CancellationToken::new(), CancellationToken::new());
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let mut threads = Vec::new();
        for number in 0..cores {
            let (sender, accepted) = unbounded_channel();
            let connections = TaskTracker::new();
            let answering = Answering {
                app: app.clone(),
                address,
                accepted,
                blocking_calls: (BLOCKING_CALLS / cores).max(1),
                close_idle: close_idle.clone(),
                cut_short: cut_short.clone(),
                over: over.clone(),
            };
            let work = move || {
                if let Err(error) = answering.run() {
                    tracing::error!(%error, "a thread of the server has ended");
                }
            };
            std::thread::Builder::new().name(format!("http {number}")).spawn(work)?;
            threads.push(Thread { accepted: sender, connections });
        }
        let connections = threads.iter().map(|thread| thread.connections.clone()).collect();
        let accepting = tokio::spawn(accept(socket, threads, stop_accepting.clone(), is_ours));
        Ok(Self { accepting, stop_accepting, close_idle, cut_short, connections, _over: over.drop_guard() })
    }

    /// Ends only if the server ends by itself, which is a failure.
    ///
    /// # Errors
    /// Why it has.
    pub async fn ended(&mut self) -> anyhow::Result<()> {
        (&mut self.accepting).await.context("the task that accepts")?
    }

    /// Stops as above, within `bound`. Whether everything was answered; what was not is cut short.
    pub async fn stop(&mut self, bound: Duration) -> bool {
        let end = clock::deadline(bound);
        self.stop_accepting.cancel();
        if let Err(error) = self.ended().await {
            tracing::warn!(%error, "the server had ended by itself");
        }
        for connections in &self.connections {
            connections.close();
        }
        let all = || join_all(self.connections.iter().map(TaskTracker::wait));
        let _ = timeout(LAST_CALL, all()).await;
        self.close_idle.cancel();
        let is_done = timeout_at(end, all()).await.is_ok();
        if !is_done {
            self.cut_short.cancel();
        }
        is_done
    }
}

/// How many connections are taken where the process may have so many files open: a quarter of those is for the database, the
/// workers and blobs, which calls that are accepted need.
pub(crate) fn most_connections(files: u64) -> usize {
    usize::try_from(MOST_CONNECTIONS.min(files / 4 * 3).max(1)).unwrap_or(usize::MAX)
}

/// Hands each connection to the next thread, until it is told to stop. One too many of its address is closed.
async fn accept(
    socket: tokio::net::TcpListener,
    threads: Vec<Thread>,
    stop: CancellationToken,
    is_ours: bool,
) -> anyhow::Result<()> {
    let most = most_connections(descriptors::allowed());
    let (room, mut peers) = (Arc::new(Semaphore::new(most)), Peers::among(most));
    let mut turns = threads.iter().cycle();
    let mut hand_over = |stream: TcpStream, from: SocketAddr, permit: OwnedSemaphorePermit| {
        let Some(place) = peers.admit(from.ip()) else { return Ok(()) };
        let thread = turns.next().context("there are no threads")?;
        let counted = (thread.connections.token(), permit, place);
        thread.accepted.send(Accepted { stream, counted }).map_err(|_| anyhow!("a thread of the server has ended"))
    };
    let accepted = || async {
        let permit = Arc::clone(&room).acquire_owned().await.map_err(io::Error::other)?;
        let (stream, from) = socket.accept().await?;
        Ok::<_, io::Error>((stream.into_std()?, from, permit))
    };
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accepted() => accepted,
        };
        match accepted {
            Ok((stream, from, permit)) => hand_over(stream, from, permit)?,
            // The client has gone meanwhile.
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) => {}
            Err(error) => {
                tracing::error!(%error, "cannot accept connections");
                tokio::select! {
                    () = stop.cancelled() => break,
                    () = sleep(ACCEPT_PAUSE) => {}
                }
            }
        }
    }
    let socket = socket.into_std()?;
    while is_ours && let Ok(permit) = Arc::clone(&room).try_acquire_owned() {
        let Ok((stream, from)) = socket.accept() else { break };
        stream.set_nonblocking(true)?;
        hand_over(stream, from, permit)?;
    }
    Ok(())
}

/// What a thread that answers begins with.
struct Answering {
    app: AppData,
    address: SocketAddr,
    accepted: UnboundedReceiver<Accepted>,
    blocking_calls: usize,
    close_idle: CancellationToken,
    cut_short: CancellationToken,
    over: CancellationToken,
}

impl Answering {
    /// Answers until nothing more is accepted and the last connection has ended, and serves what was opened for others until
    /// that is closed.
    fn run(mut self) -> anyhow::Result<()> {
        let mut builder = Builder::new_current_thread();
        let builder =
            builder.enable_all().max_blocking_threads(self.blocking_calls).event_interval(TURNS_BETWEEN_LOOKS);
        builder.build_local(LocalOptions::default())?.block_on(async {
            let service = service(self.app.clone(), self.address, self.close_idle.clone()).new_service(()).await;
            let service = service.map_err(|()| anyhow!("the routes cannot be served"))?;
            while let Some(Accepted { stream, counted }) = self.accepted.recv().await {
                poll_fn(|cx| service.poll_ready(cx)).await.map_err(|error| anyhow!("the routes: {error}"))?;
                let Ok(stream) = tokio::net::TcpStream::from_std(stream) else { continue };
                // CDP messages are small, and their client waits for each answer: do not collect them.
                let _ = stream.set_nodelay(true);
                let peer = stream.peer_addr().ok();
                let work = service.call((Paced::new(stream, self.app.stopping.clone()), Protocol::Http1, peer));
                tokio::task::spawn_local(async move {
                    if let Err(error) = work.await {
                        tracing::debug!(%error, "a connection has broken off");
                    }
                    drop(counted);
                });
            }
            tokio::select! {
                () = self.over.cancelled() => {}
                () = self.cut_short.cancelled() => {}
            }
            Ok(())
        })
    }
}

/// A connection, what is spoken on it, and whose it is.
type Connection = (Paced, Protocol, Option<SocketAddr>);

/// What answers one connection.
fn service(
    app: AppData,
    address: SocketAddr,
    close_idle: CancellationToken,
) -> impl ServiceFactory<Connection, Config = (), Response = (), Error = DispatchError, InitError = ()> {
    let routes = actix_web::App::new()
        .app_data(app)
        .wrap(from_fn(answers::hold))
        .wrap(from_fn(head::as_get))
        .wrap(from_fn(cors::allow))
        .wrap(from_fn(access_log::observe))
        .configure(routes::configure);
    HttpService::build()
        .keep_alive(KEEP_ALIVE)
        .client_request_timeout(HEAD_TIMEOUT)
        .client_disconnect_timeout(CLOSE_TIMEOUT)
        .local_addr(address)
        .graceful_shutdown_signal(move || close_idle.clone().cancelled_owned())
        .on_connect_ext(move |connection: &Paced, known| {
            connections::remember(connection, address, known);
        })
        .finish(map_config(routes.into_factory(), |()| AppConfig::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_what_calls_need() {
        let most = [1_024, 65_536, 1_048_576, u64::MAX, 0].map(most_connections);
        assert_eq!(most, [768, 49_152, 50_000, 50_000, 1]);
    }
}
