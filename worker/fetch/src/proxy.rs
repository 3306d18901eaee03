//! The filtering proxy that browsers are forced through. It is their only way out, so what it refuses
//! cannot be reached by a page, its frames, workers or sockets.
//!
//! ```text
//! Chromium --CONNECT host:443--> resolve + judge -> connect to the judged address -> bytes both ways
//!          --GET http://host/--> resolve + judge -> connect to the judged address -> request, answer
//! ```
//!
//! Refusals carry `X-Weir-Egress`: `blocked` (403, not a public address), `filtered` (403, block list, or hosts that this listener refuses),
//! `vendor` (403, the browser maker's own services), `dns` (502), `connect` (502), `answer` (502, a target that hangs up or
//! speaks no HTTP), `upstream` (502, the operator's proxy cannot be reached), `invalid` (400). Their text says the same, after
//! a mark that no site knows beforehand: see [`refusal_in`].
//! Requests are parsed and written anew by one library on both sides, with one length each: a
//! `Content-Length` beside `Transfer-Encoding` never gets past. Nothing here logs a host or a URL.

mod connection;
mod metered;
mod patient;
mod target;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};
use weir_shared::domain::site_rules::RefusedHosts;
use weir_shared::guard::AddressGuard;

use self::connection::ClientConnection;
use self::metered::Metered;
pub use self::target::refusal_in;
use super::upstream::ProxyUrl;

/// Idle time of a connection unless the options say otherwise.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// Largest request or answer head, bytes.
const MAX_HEAD: usize = 64 * 1024;

/// Open connections of one proxy unless the options say otherwise.
const MAX_CONNECTIONS: usize = 1024;

/// Ports of every proxy of this process: none of them may be a target, or a page could have one
/// proxy call another in a circle.
static LISTENING: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// Decides on hosts by name, for instance an ad list.
pub trait HostFilter: Send + Sync {
    /// Whether requests to `host` (lower case, no port, no trailing dot) are refused.
    fn blocks(&self, host: &str) -> bool;
}

/// What a proxy has done since it started. Several proxies may share one.
#[derive(Debug, Default)]
pub struct EgressMetrics {
    /// Plain HTTP requests, refused ones included.
    pub requests: AtomicU64,
    /// `CONNECT` requests, refused ones included.
    pub tunnels: AtomicU64,
    /// Refused by the address guard.
    pub denied_address: AtomicU64,
    /// Refused by the block list.
    pub denied_filter: AtomicU64,
    /// Refused as the browser maker's own service.
    pub denied_vendor: AtomicU64,
    /// Not a request a proxy can serve.
    pub invalid: AtomicU64,
    /// Names without an address.
    pub dns_failures: AtomicU64,
    /// Targets that could not be connected to, or answered no HTTP.
    pub connect_failures: AtomicU64,
    /// Connections closed for being idle.
    pub idle_closed: AtomicU64,
}

/// Choices of a proxy beside the guard.
#[derive(Default)]
pub struct EgressOptions {
    /// Proxy that all connections go through.
    pub upstream: Option<ProxyUrl>,
    /// Block list.
    pub filter: Option<Arc<dyn HostFilter>>,
    /// Where to count; absent: counters of its own.
    pub metrics: Option<Arc<EgressMetrics>>,
    /// Most open connections; further ones wait to be accepted. Absent: 1,024.
    pub max_connections: Option<usize>,
    /// A connection without a byte in either direction for this long, give or take a quarter, is
    /// closed. Absent: 120 s.
    pub idle_timeout: Option<Duration>,
}

/// A running proxy. Dropping it stops listening and closes every connection through it.
pub struct EgressProxy {
    address: SocketAddr,
    metrics: Arc<EgressMetrics>,
    shared: Arc<Shared>,
}

impl EgressProxy {
    /// Listens on a free port of 127.0.0.1. Fails when no port can be bound.
    pub async fn start(guard: AddressGuard, upstream: Option<ProxyUrl>) -> anyhow::Result<Self> {
        Self::start_with(guard, EgressOptions { upstream, ..EgressOptions::default() }).await
    }

    /// [`EgressProxy::start`] with all options.
    pub async fn start_with(guard: AddressGuard, options: EgressOptions) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("egress proxy cannot listen")?;
        let address = listener.local_addr().context("egress proxy has no address")?;
        listening().insert(address.port());
        let metrics = options.metrics.unwrap_or_default();
        let shared = Arc::new(Shared {
            guard,
            upstream: options.upstream,
            filter: options.filter,
            refused: None,
            metrics: metrics.clone(),
            idle_timeout: options.idle_timeout.unwrap_or(IDLE_TIMEOUT),
            stop: CancellationToken::new(),
        });
        let limit = Arc::new(Semaphore::new(options.max_connections.unwrap_or(MAX_CONNECTIONS)));
        tokio::spawn(accept(listener, Arc::clone(&shared), limit));
        Ok(Self { address, metrics, shared })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// What serves further listeners by the same rules and counters.
    pub fn door(&self) -> EgressDoor {
        let shared = Arc::clone(&self.shared);
        Arc::new(move |listener, places, refused| {
            let shared = Arc::new(Shared { stop: shared.stop.child_token(), refused, ..(*shared).clone() });
            let stop = shared.stop.clone().drop_guard();
            tokio::spawn(accept(listener, shared, places));
            stop
        })
    }

    /// Its counters.
    pub fn metrics(&self) -> &Arc<EgressMetrics> {
        &self.metrics
    }
}

/// A proxy's rules, for listeners in networks of their own: those of boxes. Called with a listener and the places for
/// connections through it (further ones wait; listeners may share them), it serves that listener until the guard is dropped
/// or the proxy is, which closes every connection through it. Hosts that the last one names are refused to this listener.
///
/// A function and no type of this crate, so that what makes boxes need not depend on what fetches pages.
pub type EgressDoor = Arc<dyn Fn(TcpListener, Arc<Semaphore>, Option<RefusedHosts>) -> DropGuard + Send + Sync>;

impl Drop for EgressProxy {
    fn drop(&mut self) {
        self.shared.stop.cancel();
        listening().remove(&self.address.port());
    }
}

fn listening() -> MutexGuard<'static, BTreeSet<u16>> {
    LISTENING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the connections of one proxy share.
#[derive(Clone)]
struct Shared {
    guard: AddressGuard,
    upstream: Option<ProxyUrl>,
    filter: Option<Arc<dyn HostFilter>>,
    refused: Option<RefusedHosts>,
    metrics: Arc<EgressMetrics>,
    idle_timeout: Duration,
    stop: CancellationToken,
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, limit: Arc<Semaphore>) {
    let stop = shared.stop.clone();
    let serve = async {
        loop {
            // At the limit nobody is accepted: the browser's connections queue in the kernel.
            let Ok(permit) = limit.clone().acquire_owned().await else { return };
            let accepted = listener.accept().await.and_then(|(stream, _)| stream.set_nodelay(true).map(|()| stream));
            match accepted {
                Ok(stream) => {
                    tokio::spawn(serve(stream, shared.clone(), permit));
                }
                Err(error) => {
                    tracing::warn!(%error, "egress proxy cannot accept");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = serve => {}
    }
}

/// One connection of the browser, from its first request to its end or its upgrade to a tunnel.
async fn serve(stream: TcpStream, shared: Arc<Shared>, permit: OwnedSemaphorePermit) {
    let client = Arc::new(ClientConnection {
        shared: shared.clone(),
        activity: Arc::new(AtomicU64::new(0)),
        origin: Mutex::new(None),
        permit: Arc::new(permit),
    });
    let activity = client.activity.clone();
    let io = TokioIo::new(Metered { stream, activity: activity.clone() });
    let service = service_fn(move |request| {
        let client = client.clone();
        async move { Ok::<_, Infallible>(client.handle(request).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.idle_timeout)
        .max_buf_size(MAX_HEAD)
        .preserve_header_case(true)
        .serve_connection(io, service)
        .with_upgrades();
    tokio::select! {
        // A client that breaks HTTP or goes away is its own affair.
        _ = connection => {}
        () = shared.idle(&activity) => {}
        () = shared.stop.cancelled() => {}
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests;
