//! The filtering proxy that browsers are forced through. It is their only way out, so what it refuses
//! cannot be reached by a page, its frames, workers or sockets.
//!
//! ```text
//! Chromium --CONNECT host:443--> resolve + judge -> connect to the judged address -> bytes both ways
//!          --GET http://host/--> resolve + judge -> connect to the judged address -> request, answer
//! ```
//!
//! Refusals carry `X-Weir-Egress`: `blocked` (403, not a public address), `filtered` (403, block list),
//! `vendor` (403, the browser maker's own services), `dns` (502), `connect` (502), `invalid` (400).
//! Requests are parsed and written anew by one library on both sides, with one length each: a
//! `Content-Length` beside `Transfer-Encoding` never gets past. Nothing here logs a host or a URL.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http_body_util::{Either, Empty, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};
use weir_shared::guard::{AddressGuard, GuardError};

use super::upstream::{self, BoxStream, ProxyUrl};

/// Longest time to make a connection, all addresses of a name together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest time for one address while the name has others to try.
const CONNECT_EACH: Duration = Duration::from_secs(4);

/// Idle time of a connection unless the options say otherwise.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// Largest request or answer head, bytes.
const MAX_HEAD: usize = 64 * 1024;

/// Buffer of a tunnel, bytes, each way.
const TUNNEL_BUFFER: usize = 16 * 1024;

/// Open connections of one proxy unless the options say otherwise.
const MAX_CONNECTIONS: usize = 1024;

/// Header that says why a request was refused.
const EGRESS: HeaderName = HeaderName::from_static("x-weir-egress");

/// Hosts the browser calls for its maker's services: updates, hints, safe browsing, autofill, sync,
/// push. None serves page content. Hosts that also do (`accounts.google.com`, `www.gstatic.com`) are
/// left alone: their background use is switched off by the browser's flags.
const VENDOR_HOSTS: &[&str] = &[
    "update.googleapis.com",
    "optimizationguide-pa.googleapis.com",
    "safebrowsing.googleapis.com",
    "safebrowsing.google.com",
    "sb-ssl.google.com",
    "content-autofill.googleapis.com",
    "passwordsleakcheck-pa.googleapis.com",
    "clients1.google.com",
    "clients2.google.com",
    "clients4.google.com",
    "android.clients.google.com",
    "mtalk.google.com",
    "edgedl.me.gvt1.com",
    "redirector.gvt1.com",
];

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
    address: Option<SocketAddr>,
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
        Ok(Self::run(listener, Some(address), guard, options))
    }

    /// Listens on a Unix socket at `path`, for a boxed browser that has no network. A socket left
    /// there is replaced. Who may connect is decided by the permissions of the directory. Fails when
    /// the socket cannot be made.
    pub async fn start_unix(path: &Path, guard: AddressGuard, options: EgressOptions) -> anyhow::Result<Self> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error).context("old egress socket"),
            _ => {}
        }
        let listener = UnixListener::bind(path).context("egress proxy cannot listen on its socket")?;
        Ok(Self::run(listener, None, guard, options))
    }

    /// Where it listens; for a Unix socket the unspecified address with port 0.
    pub fn addr(&self) -> SocketAddr {
        self.address.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))
    }

    /// What serves further listeners by the same rules and counters.
    pub fn door(&self) -> EgressDoor {
        EgressDoor { shared: Arc::clone(&self.shared) }
    }

    /// Its counters.
    pub fn metrics(&self) -> &Arc<EgressMetrics> {
        &self.metrics
    }

    fn run<L: Listener>(listener: L, address: Option<SocketAddr>, guard: AddressGuard, options: EgressOptions) -> Self {
        let metrics = options.metrics.unwrap_or_default();
        let shared = Arc::new(Shared {
            guard,
            upstream: options.upstream,
            filter: options.filter,
            metrics: metrics.clone(),
            idle_timeout: options.idle_timeout.unwrap_or(IDLE_TIMEOUT),
            stop: CancellationToken::new(),
        });
        let limit = Arc::new(Semaphore::new(options.max_connections.unwrap_or(MAX_CONNECTIONS)));
        tokio::spawn(accept(listener, Arc::clone(&shared), limit));
        Self { address, metrics, shared }
    }
}

/// A proxy's rules, for listeners in networks of their own: those of boxes. Ends with its proxy.
#[derive(Clone)]
pub struct EgressDoor {
    shared: Arc<Shared>,
}

impl EgressDoor {
    /// Serves `listener` until the result is dropped, with at most `max_connections` open; further ones wait.
    pub fn serve(&self, listener: TcpListener, max_connections: usize) -> Serving {
        let shared = Arc::new(Shared { stop: self.shared.stop.child_token(), ..(*self.shared).clone() });
        let serving = Serving { _stop: shared.stop.clone().drop_guard() };
        tokio::spawn(accept(listener, shared, Arc::new(Semaphore::new(max_connections))));
        serving
    }
}

/// A listener that is being served. Dropping it stops that and closes every connection through it.
#[derive(Debug)]
pub struct Serving {
    _stop: DropGuard,
}

impl Drop for EgressProxy {
    fn drop(&mut self) {
        self.shared.stop.cancel();
        if let Some(address) = self.address {
            listening().remove(&address.port());
        }
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
    metrics: Arc<EgressMetrics>,
    idle_timeout: Duration,
    stop: CancellationToken,
}

/// The two kinds of sockets a browser may come by.
trait Listener: Send + Sync + 'static {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    fn accept_one(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl Listener for TcpListener {
    type Stream = TcpStream;
    async fn accept_one(&self) -> io::Result<TcpStream> {
        let (stream, _) = self.accept().await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;
    async fn accept_one(&self) -> io::Result<UnixStream> {
        Ok(self.accept().await?.0)
    }
}

async fn accept<L: Listener>(listener: L, shared: Arc<Shared>, limit: Arc<Semaphore>) {
    let stop = shared.stop.clone();
    let serve = async {
        loop {
            // At the limit nobody is accepted: the browser's connections queue in the kernel.
            let Ok(permit) = limit.clone().acquire_owned().await else { return };
            match listener.accept_one().await {
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
async fn serve<S>(stream: S, shared: Arc<Shared>, permit: OwnedSemaphorePermit)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
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
        async move { Ok::<_, Infallible>(client.handle::<S>(request).await) }
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

type Answer = Response<Either<Incoming, Full<Bytes>>>;
type OriginBody = Either<Incoming, Empty<Bytes>>;

/// What belongs to one connection of the browser.
struct ClientConnection {
    shared: Arc<Shared>,
    /// Grows with every byte; see [`Shared::idle`].
    activity: Arc<AtomicU64>,
    /// The connection to the last origin, for the next request to it. Requests of one connection
    /// follow each other, so one is enough.
    origin: Mutex<Option<Origin>>,
    /// Held by the connection and by the tunnel it may become.
    permit: Arc<OwnedSemaphorePermit>,
}

struct Origin {
    authority: String,
    sender: SendRequest<OriginBody>,
}

/// A target as the request names it.
struct Target {
    /// As written, an IPv6 literal in brackets.
    host: String,
    port: u16,
}

/// Why a request goes nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Address,
    Filter,
    Vendor,
    Invalid,
    Dns,
    Connect,
}

impl ClientConnection {
    async fn handle<S>(self: Arc<Self>, request: Request<Incoming>) -> Answer
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let metrics = &self.shared.metrics;
        let is_connect = request.method() == Method::CONNECT;
        count(if is_connect { &metrics.tunnels } else { &metrics.requests });
        let outcome = if is_connect { self.clone().connect::<S>(request).await } else { self.forward(request).await };
        outcome.unwrap_or_else(|refusal| {
            count(match refusal {
                Refusal::Address => &metrics.denied_address,
                Refusal::Filter => &metrics.denied_filter,
                Refusal::Vendor => &metrics.denied_vendor,
                Refusal::Invalid => &metrics.invalid,
                Refusal::Dns => &metrics.dns_failures,
                Refusal::Connect => &metrics.connect_failures,
            });
            refusal.answer()
        })
    }

    /// `CONNECT host:port`: bytes both ways until one side ends.
    async fn connect<S>(self: Arc<Self>, mut request: Request<Incoming>) -> Result<Answer, Refusal>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let target = Target::of(request.uri(), None)?;
        let checked = self.shared.judge(&target).await?;
        let mut origin = self.shared.open(&target, &checked).await?;
        let upgrade = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let Ok(upgraded) = upgrade.await else { return };
            // The concrete stream behind the upgrade spares a dynamic call for each read and write.
            match upgraded.downcast::<TokioIo<Metered<S>>>() {
                Ok(parts) => {
                    if origin.write_all(&parts.read_buf).await.is_ok() {
                        self.copy(parts.io.into_inner(), origin).await;
                    }
                }
                Err(upgraded) => self.copy(TokioIo::new(upgraded), origin).await,
            }
        });
        Ok(Response::new(Either::Right(Full::default())))
    }

    /// A request with a whole `http://` URL: sent on, and the answer back, both as streams.
    async fn forward(&self, request: Request<Incoming>) -> Result<Answer, Refusal> {
        if request.uri().scheme_str() != Some("http") {
            return Err(Refusal::Invalid);
        }
        let target = Target::of(request.uri(), Some(80))?;
        let checked = self.shared.judge(&target).await?;
        let authority = target.authority();

        let (mut parts, body) = request.into_parts();
        let websocket = is_websocket(&parts.headers);
        let browser_upgrade = websocket.then(|| parts.extensions.remove::<OnUpgrade>()).flatten();
        strip_hop_by_hop(&mut parts.headers, websocket);
        parts.headers.remove(header::EXPECT);
        let host = if target.port == 80 { target.host.clone() } else { authority.clone() };
        parts.headers.insert(header::HOST, HeaderValue::try_from(host).map_err(|_| Refusal::Invalid)?);
        match self.shared.request_proxy() {
            Some(proxy) => {
                if let Some(value) = proxy.basic_auth() {
                    let value = HeaderValue::try_from(value).map_err(|_| Refusal::Invalid)?;
                    parts.headers.insert(header::PROXY_AUTHORIZATION, value);
                }
            }
            None => {
                let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
                parts.uri = Uri::try_from(path).map_err(|_| Refusal::Invalid)?;
            }
        }

        let is_bodiless = body.is_end_stream();
        let body = if is_bodiless { Either::Right(Empty::new()) } else { Either::Left(body) };
        let kept = self.keep().take().filter(|origin| origin.authority == authority && !origin.sender.is_closed());
        let again = (is_bodiless && kept.is_some() && parts.method.is_safe()).then(|| {
            let mut again = Request::new(Either::Right(Empty::new()));
            *again.method_mut() = parts.method.clone();
            *again.uri_mut() = parts.uri.clone();
            *again.headers_mut() = parts.headers.clone();
            again
        });
        let request = Request::from_parts(parts, body);
        let (origin, mut answer) = match kept {
            Some(mut origin) => match origin.send(request).await {
                Ok(answer) => (origin, answer),
                // The origin closed the kept connection meanwhile: once more on a new one.
                Err(unsent) => {
                    let request = unsent.or(again).ok_or(Refusal::Connect)?;
                    self.send_anew(&target, &checked, authority, request).await?
                }
            },
            None => self.send_anew(&target, &checked, authority, request).await?,
        };

        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            let Some(browser_upgrade) = browser_upgrade else { return Err(Refusal::Connect) };
            let origin_upgrade = hyper::upgrade::on(&mut answer);
            self.join(browser_upgrade, origin_upgrade);
            strip_hop_by_hop(answer.headers_mut(), true);
        } else {
            strip_hop_by_hop(answer.headers_mut(), false);
            // Ready again once the answer's body has been read to its end.
            *self.keep() = Some(origin);
        }
        Ok(answer.map(Either::Left))
    }

    async fn send_anew(
        &self,
        target: &Target,
        checked: &[SocketAddr],
        authority: String,
        request: Request<OriginBody>,
    ) -> Result<(Origin, Response<Incoming>), Refusal> {
        let stream = match self.shared.request_proxy() {
            Some(proxy) => within(CONNECT_TIMEOUT, upstream::connect_to(proxy)).await?,
            None => self.shared.open(target, checked).await?,
        };
        let (sender, connection) = hyper::client::conn::http1::Builder::new()
            .max_buf_size(MAX_HEAD)
            .max_headers(256)
            .preserve_header_case(true)
            .ignore_invalid_headers_in_responses(true)
            .handshake::<_, OriginBody>(TokioIo::new(stream))
            .await
            .map_err(|_| Refusal::Connect)?;
        let stop = self.shared.stop.clone();
        tokio::spawn(async move {
            // Ends when the origin closes, or when nobody holds the sender and no body is left.
            tokio::select! {
                _ = connection.with_upgrades() => {}
                () = stop.cancelled() => {}
            }
        });
        let mut origin = Origin { authority, sender };
        let answer = origin.send(request).await.map_err(|_| Refusal::Connect)?;
        Ok((origin, answer))
    }

    /// Joins both sides of a WebSocket once both have switched.
    fn join(&self, browser: OnUpgrade, origin: OnUpgrade) {
        let (activity, shared, permit) = (self.activity.clone(), self.shared.clone(), self.permit.clone());
        tokio::spawn(async move {
            let _permit = permit;
            if let (Ok(browser), Ok(origin)) = tokio::join!(browser, origin) {
                copy(TokioIo::new(browser), TokioIo::new(origin), &activity, &shared).await;
            }
        });
    }

    async fn copy<A>(self: Arc<Self>, browser: A, origin: BoxStream)
    where
        A: AsyncRead + AsyncWrite + Unpin,
    {
        copy(browser, origin, &self.activity, &self.shared).await;
    }

    fn keep(&self) -> MutexGuard<'_, Option<Origin>> {
        self.origin.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Origin {
    /// The answer; on failure the request when nothing of it was sent.
    async fn send(&mut self, request: Request<OriginBody>) -> Result<Response<Incoming>, Option<Request<OriginBody>>> {
        if self.sender.ready().await.is_err() {
            return Err(Some(request));
        }
        self.sender.try_send_request(request).await.map_err(|mut error| error.take_message())
    }
}

impl Shared {
    /// The checked addresses of a target, after the lists of names.
    async fn judge(&self, target: &Target) -> Result<Vec<SocketAddr>, Refusal> {
        let name = target.host.to_ascii_lowercase();
        let name = name.strip_suffix('.').unwrap_or(&name);
        if VENDOR_HOSTS.contains(&name) {
            return Err(Refusal::Vendor);
        }
        if self.filter.as_ref().is_some_and(|filter| filter.blocks(name)) {
            return Err(Refusal::Filter);
        }
        let addresses = self.guard.resolve(&target.host, target.port).await.map_err(|error| match error {
            GuardError::Blocked { .. } => Refusal::Address,
            GuardError::Dns { .. } | GuardError::Timeout => Refusal::Dns,
            GuardError::InvalidHost { .. } | GuardError::Unsupported => Refusal::Invalid,
        })?;
        let is_own = |address: &SocketAddr| {
            let ip = address.ip().to_canonical();
            (ip.is_loopback() || ip.is_unspecified()) && listening().contains(&address.port())
        };
        if addresses.iter().any(is_own) { Err(Refusal::Address) } else { Ok(addresses) }
    }

    /// A connection to one of the checked addresses, through the upstream proxy if there is one.
    async fn open(&self, target: &Target, checked: &[SocketAddr]) -> Result<BoxStream, Refusal> {
        within(CONNECT_TIMEOUT, async {
            match (&self.upstream, checked.first()) {
                (Some(proxy), Some(first)) => upstream::tunnel(proxy, &target.host, target.port, *first).await,
                _ => connect_to_any(checked).await.map(|stream| Box::new(stream) as BoxStream),
            }
        })
        .await
    }

    /// Returns when `activity` has not grown for the idle time.
    async fn idle(&self, activity: &AtomicU64) {
        let mut last = activity.load(Ordering::Relaxed);
        let mut quiet = 0;
        while quiet < 4 {
            tokio::time::sleep(self.idle_timeout / 4).await;
            let now = activity.load(Ordering::Relaxed);
            quiet = if now == last { quiet + 1 } else { 0 };
            last = now;
        }
        count(&self.metrics.idle_closed);
    }

    /// The upstream proxy when it is one that plain requests are handed to as they are.
    fn request_proxy(&self) -> Option<&ProxyUrl> {
        self.upstream.as_ref().filter(|proxy| proxy.takes_requests())
    }
}

impl Target {
    /// Reads host and port; `None` for the default port demands one. User information is refused.
    fn of(uri: &Uri, default_port: Option<u16>) -> Result<Self, Refusal> {
        let authority = uri.authority().ok_or(Refusal::Invalid)?;
        let port = authority.port_u16().or(default_port.filter(|_| authority.port().is_none()));
        let is_plain = !authority.as_str().contains('@') && !authority.host().is_empty();
        match port {
            Some(port) if port != 0 && is_plain => Ok(Self { host: authority.host().to_owned(), port }),
            _ => Err(Refusal::Invalid),
        }
    }

    fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

impl Refusal {
    fn answer(self) -> Answer {
        let (status, reason, text) = match self {
            Self::Address => (StatusCode::FORBIDDEN, "blocked", "This address is not allowed.\n"),
            Self::Filter => (StatusCode::FORBIDDEN, "filtered", "This host is on the block list.\n"),
            Self::Vendor => (StatusCode::FORBIDDEN, "vendor", "The browser's own services are not reached.\n"),
            Self::Invalid => (StatusCode::BAD_REQUEST, "invalid", "This is no request for a proxy.\n"),
            Self::Dns => (StatusCode::BAD_GATEWAY, "dns", "The host cannot be resolved.\n"),
            Self::Connect => (StatusCode::BAD_GATEWAY, "connect", "The host cannot be connected to.\n"),
        };
        let mut answer = Response::new(Either::Right(Full::from(text)));
        *answer.status_mut() = status;
        answer.headers_mut().insert(EGRESS, HeaderValue::from_static(reason));
        answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        answer
    }
}

/// The first address that accepts, in order.
async fn connect_to_any(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for (at, address) in addresses.iter().enumerate() {
        let limit = if at + 1 == addresses.len() { CONNECT_TIMEOUT } else { CONNECT_EACH };
        match tokio::time::timeout(limit, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                stream.set_nodelay(true)?;
                // A loopback port in the ephemeral range can be answered by the asking socket itself.
                if stream.local_addr()? == stream.peer_addr()? {
                    failure = io::ErrorKind::ConnectionRefused.into();
                    continue;
                }
                return Ok(stream);
            }
            Ok(Err(error)) => failure = error,
            Err(_) => failure = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(failure)
}

async fn within<T>(limit: Duration, connecting: impl Future<Output = io::Result<T>>) -> Result<T, Refusal> {
    match tokio::time::timeout(limit, connecting).await {
        Ok(Ok(stream)) => Ok(stream),
        _ => Err(Refusal::Connect),
    }
}

/// Bytes both ways until both sides have ended, one broke, nothing moved for long, or the proxy stops.
async fn copy<A, B>(mut browser: A, mut origin: B, activity: &AtomicU64, shared: &Shared)
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    tokio::select! {
        _ = tokio::io::copy_bidirectional_with_sizes(&mut browser, &mut origin, TUNNEL_BUFFER, TUNNEL_BUFFER) => {}
        () = shared.idle(activity) => {}
        () = shared.stop.cancelled() => {}
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn is_websocket(headers: &HeaderMap) -> bool {
    let has = |name: HeaderName, word: &str| {
        headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .any(|value| value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word)))
    };
    has(header::CONNECTION, "upgrade") && has(header::UPGRADE, "websocket")
}

/// Removes what is meant for this connection only: the fixed set, and what `Connection` names. The
/// length headers are written anew by the HTTP library.
fn strip_hop_by_hop(headers: &mut HeaderMap, keep_upgrade: bool) {
    const FIXED: [HeaderName; 8] = [
        header::CONNECTION,
        header::UPGRADE,
        header::TE,
        header::TRAILER,
        header::PROXY_AUTHORIZATION,
        header::PROXY_AUTHENTICATE,
        HeaderName::from_static("proxy-connection"),
        HeaderName::from_static("keep-alive"),
    ];
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        // What says where the message goes and ends is no matter of the connection.
        .filter(|name| ![header::HOST, header::CONTENT_LENGTH, header::TRANSFER_ENCODING].contains(name))
        .collect();
    let upgrade = keep_upgrade.then(|| headers.get(header::UPGRADE).cloned()).flatten();
    for name in named.into_iter().chain(FIXED) {
        headers.remove(name);
    }
    if let Some(upgrade) = upgrade {
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, upgrade);
    }
}

/// A stream that counts what passes, for [`Shared::idle`].
struct Metered<S> {
    stream: S,
    activity: Arc<AtomicU64>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        if polled.is_ready() {
            count(&self.activity);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, buf);
        if polled.is_ready() {
            count(&self.activity);
        }
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        if polled.is_ready() {
            count(&self.activity);
        }
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::net::IpAddr;
    use tokio::io::AsyncReadExt as _;

    fn guard() -> AddressGuard {
        let host = |name: &str, ip: &str| (name.to_owned(), ip.parse::<IpAddr>().unwrap());
        let hosts = [host("site.test", "127.0.0.1"), host("inner.test", "10.0.0.1"), host("ads.test", "127.0.0.1")];
        AddressGuard::new(vec!["127.0.0.1/32".parse().unwrap()], HashMap::from(hosts))
    }

    struct NoAds;
    impl HostFilter for NoAds {
        fn blocks(&self, host: &str) -> bool {
            host == "ads.test"
        }
    }

    async fn proxy() -> EgressProxy {
        let options = EgressOptions { filter: Some(Arc::new(NoAds)), ..EgressOptions::default() };
        EgressProxy::start_with(guard(), options).await.unwrap()
    }

    /// Sends what it was sent back as the body of its answer; `/ws` switches and echoes.
    async fn origin() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let mut part = vec![0; 64 * 1024];
                    while let Ok(read @ 1..) = stream.read(&mut part).await {
                        let seen = String::from_utf8_lossy(&part[..read]).into_owned();
                        let answer = if seen.starts_with("GET /ws ") {
                            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
                                .into()
                        } else if seen.starts_with("GET ") || seen.starts_with("POST ") {
                            let length = seen.len();
                            format!(
                                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nKeep-Alive: timeout=5\r\nConnection: keep-alive\r\n\r\n{seen}"
                            )
                        } else {
                            seen
                        };
                        stream.write_all(answer.as_bytes()).await.unwrap();
                    }
                });
            }
        });
        port
    }

    async fn ask(proxy: &EgressProxy, request: &str) -> String {
        let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        read_some(&mut stream).await
    }

    /// What arrives until nothing more does for a moment.
    async fn read_some<S: AsyncRead + Unpin>(stream: &mut S) -> String {
        let (mut all, mut part) = (Vec::new(), vec![0; 64 * 1024]);
        let mut patience = Duration::from_secs(3);
        while let Ok(Ok(read @ 1..)) = tokio::time::timeout(patience, stream.read(&mut part)).await {
            all.extend_from_slice(&part[..read]);
            patience = Duration::from_millis(100);
        }
        String::from_utf8_lossy(&all).into_owned()
    }

    #[tokio::test]
    async fn requests_go_out_in_origin_form_without_the_proxys_headers() {
        let (proxy, port) = (proxy().await, origin().await);
        let answer = ask(
            &proxy,
            &format!(
                "GET http://site.test:{port}/a?b=c HTTP/1.1\r\nHost: wrong.test\r\nProxy-Connection: keep-alive\r\n\
                 Proxy-Authorization: Basic eA==\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nX-Own: stays\r\n\
                 Upgrade: h2c\r\nTE: trailers\r\n\r\n"
            ),
        )
        .await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        let (head, seen) = answer.split_once("\r\n\r\n").unwrap();
        assert!(!head.to_lowercase().contains("keep-alive"), "{head}");
        assert!(seen.starts_with(&format!("GET /a?b=c HTTP/1.1\r\nHost: site.test:{port}\r\n")), "{seen}");
        assert!(seen.contains("X-Own: stays"));
        for gone in ["proxy-", "x-hop", "upgrade", "te:", "wrong.test"] {
            assert!(!seen.to_lowercase().contains(gone), "{gone} in {seen}");
        }
    }

    #[tokio::test]
    async fn one_connection_serves_many_requests_to_several_origins() {
        let (proxy, one, two) = (proxy().await, origin().await, origin().await);
        let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
        for port in [one, one, two, one] {
            let request =
                format!("POST http://site.test:{port}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
            stream.write_all(request.as_bytes()).await.unwrap();
            let answer = read_some(&mut stream).await;
            assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(&format!("site.test:{port}")), "{answer}");
        }
        assert_eq!(proxy.metrics().requests.load(Ordering::Relaxed), 4);
    }

    #[tokio::test]
    async fn inner_addresses_are_refused_in_every_form_and_on_both_ways() {
        let proxy = proxy().await;
        for host in [
            "10.0.0.1",
            "127.0.0.2",
            "127.2",
            "0x7f.2",
            "2130706434",
            "[::1]",
            "[::ffff:10.0.0.1]",
            "[64:ff9b::a00:1]",
            "0.0.0.0",
            "169.254.169.254",
            "inner.test",
            "INNER.test.",
            "[fd00::1]",
        ] {
            let plain = ask(&proxy, &format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
            assert!(plain.starts_with("HTTP/1.1 403") && plain.contains("x-weir-egress: blocked"), "{host}: {plain}");
            let tunnel = ask(&proxy, &format!("CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n")).await;
            assert!(
                tunnel.starts_with("HTTP/1.1 403") && tunnel.contains("x-weir-egress: blocked"),
                "{host}: {tunnel}"
            );
        }
        assert_eq!(proxy.metrics().denied_address.load(Ordering::Relaxed), 26);
    }

    #[tokio::test]
    async fn lists_of_names_come_first() {
        let proxy = proxy().await;
        for (target, word) in [
            ("ads.test:443", "filtered"),
            ("ADS.test.:443", "filtered"),
            ("update.googleapis.com:443", "vendor"),
            ("Clients2.Google.com:443", "vendor"),
        ] {
            let answer = ask(&proxy, &format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")).await;
            assert!(answer.starts_with("HTTP/1.1 403") && answer.contains(word), "{target}: {answer}");
        }
    }

    #[tokio::test]
    async fn no_proxy_of_this_process_is_a_target() {
        let (first, second) = (proxy().await, proxy().await);
        for address in [first.addr(), second.addr()] {
            let answer = ask(&first, &format!("GET http://{address}/ HTTP/1.1\r\nHost: x\r\n\r\n")).await;
            assert!(answer.contains("x-weir-egress: blocked"), "{answer}");
            let named = format!("CONNECT site.test:{} HTTP/1.1\r\nHost: x\r\n\r\n", address.port());
            assert!(ask(&first, &named).await.contains("x-weir-egress: blocked"));
        }
    }

    #[tokio::test]
    async fn broken_requests_are_refused() {
        let (proxy, port) = (proxy().await, origin().await);
        let at = format!("http://site.test:{port}/");
        for request in [
            "GET / HTTP/1.1\r\nHost: site.test\r\n\r\n".to_owned(),
            "GET https://site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n".to_owned(),
            "GET ftp://site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n".to_owned(),
            "CONNECT site.test HTTP/1.1\r\nHost: site.test\r\n\r\n".to_owned(),
            "CONNECT site.test:0 HTTP/1.1\r\nHost: site.test\r\n\r\n".to_owned(),
            format!("GET http://u:p@site.test:{port}/ HTTP/1.1\r\nHost: x\r\n\r\n"),
            format!("POST {at} HTTP/1.1\r\nHost: x\r\nContent-Length: 5x\r\n\r\nhello"),
            format!("POST {at} HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\nhello"),
            format!("POST {at} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
            format!("POST {at} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\nhello"),
            format!("GET {at} HTTP/1.1\r\nHost: x\r\nBad Header: x\r\n\r\n"),
            format!("GET {at} HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "y".repeat(2 * MAX_HEAD)),
        ] {
            let answer = ask(&proxy, &request).await;
            assert!(answer.starts_with("HTTP/1.1 4"), "{}: {answer}", &request[..request.len().min(90)]);
        }
    }

    #[tokio::test]
    async fn a_second_length_never_passes() {
        let (proxy, port) = (proxy().await, origin().await);
        let smuggle = format!(
            "POST http://site.test:{port}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n\
             5\r\nhello\r\n0\r\n\r\n"
        );
        let answer = ask(&proxy, &smuggle).await.to_lowercase();
        let seen = answer.split_once("\r\n\r\n").unwrap().1;
        assert!(seen.contains("transfer-encoding: chunked") && !seen.contains("content-length"), "{answer}");
    }

    #[tokio::test]
    async fn unreachable_targets_say_so() {
        let proxy = proxy().await;
        let unused = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        for request in [
            format!("GET http://site.test:{unused}/ HTTP/1.1\r\nHost: x\r\n\r\n"),
            format!("CONNECT site.test:{unused} HTTP/1.1\r\nHost: x\r\n\r\n"),
        ] {
            let answer = ask(&proxy, &request).await;
            assert!(answer.starts_with("HTTP/1.1 502") && answer.contains("x-weir-egress: connect"), "{answer}");
        }
    }

    #[tokio::test]
    async fn tunnels_carry_bytes_both_ways_until_the_proxy_goes() {
        let (proxy, port) = (proxy().await, origin().await);
        let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
        // The first bytes for the target may come with the request itself.
        stream
            .write_all(format!("CONNECT site.test:{port} HTTP/1.1\r\nHost: x\r\n\r\nearly").as_bytes())
            .await
            .unwrap();
        let answer = read_some(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("early"), "{answer}");
        stream.write_all(b"late").await.unwrap();
        assert_eq!(read_some(&mut stream).await, "late");
        drop(proxy);
        let ended = tokio::time::timeout(Duration::from_secs(3), stream.read(&mut [0; 8])).await;
        assert!(matches!(ended, Ok(Ok(0) | Err(_))));
    }

    #[tokio::test]
    async fn websockets_pass_without_a_tunnel() {
        let (proxy, port) = (proxy().await, origin().await);
        let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
        let request = format!(
            "GET http://site.test:{port}/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = read_some(&mut stream).await.to_lowercase();
        assert!(answer.starts_with("http/1.1 101") && answer.contains("upgrade: websocket"), "{answer}");
        stream.write_all(b"frame").await.unwrap();
        assert_eq!(read_some(&mut stream).await, "frame");
    }

    #[tokio::test]
    async fn a_unix_socket_serves_the_same() {
        let directory = std::env::temp_dir().join(format!("weir-egress-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("egress.sock");
        for _ in 0..2 {
            let _proxy = EgressProxy::start_unix(&path, guard(), EgressOptions::default()).await.unwrap();
            let mut stream = UnixStream::connect(&path).await.unwrap();
            stream.write_all(b"GET http://10.0.0.1/ HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
            assert!(read_some(&mut stream).await.contains("x-weir-egress: blocked"));
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[tokio::test]
    async fn an_upstream_proxy_is_used_after_the_judgement() {
        let upstream = origin().await;
        let options = EgressOptions {
            upstream: Some(format!("http://u:p@127.0.0.1:{upstream}").parse().unwrap()),
            ..Default::default()
        };
        let proxy = EgressProxy::start_with(guard(), options).await.unwrap();
        let answer = ask(&proxy, "GET http://site.test/x HTTP/1.1\r\nHost: y\r\n\r\n").await;
        let seen = answer.split_once("\r\n\r\n").unwrap().1;
        assert!(seen.starts_with("GET http://site.test/x HTTP/1.1\r\nHost: site.test\r\n"), "{answer}");
        assert!(seen.to_lowercase().contains("proxy-authorization: basic dtpw"), "{answer}");
        let answer = ask(&proxy, "GET http://inner.test/x HTTP/1.1\r\nHost: y\r\n\r\n").await;
        assert!(answer.contains("x-weir-egress: blocked"));
    }

    #[tokio::test]
    async fn connections_over_the_limit_wait() {
        let port = origin().await;
        let options = EgressOptions { max_connections: Some(1), ..EgressOptions::default() };
        let proxy = EgressProxy::start_with(guard(), options).await.unwrap();
        let first = TcpStream::connect(proxy.addr()).await.unwrap();
        let mut second = TcpStream::connect(proxy.addr()).await.unwrap();
        let request = format!("GET http://site.test:{port}/ HTTP/1.1\r\nHost: x\r\n\r\n");
        second.write_all(request.as_bytes()).await.unwrap();
        let early = tokio::time::timeout(Duration::from_millis(150), second.read(&mut [0; 8])).await;
        assert!(early.is_err(), "served beside the first");
        drop(first);
        assert!(read_some(&mut second).await.starts_with("HTTP/1.1 200"));
    }

    #[tokio::test]
    async fn idle_connections_and_tunnels_are_closed_and_busy_ones_are_not() {
        let port = origin().await;
        let options = EgressOptions { idle_timeout: Some(Duration::from_millis(400)), ..EgressOptions::default() };
        let proxy = EgressProxy::start_with(guard(), options).await.unwrap();
        let mut tunnel = TcpStream::connect(proxy.addr()).await.unwrap();
        tunnel.write_all(format!("CONNECT site.test:{port} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
        assert!(read_some(&mut tunnel).await.starts_with("HTTP/1.1 200"));
        for _ in 0..10 {
            tunnel.write_all(b"ping").await.unwrap();
            assert_eq!(read_some(&mut tunnel).await, "ping");
        }
        let mut unused = TcpStream::connect(proxy.addr()).await.unwrap();
        for stream in [&mut tunnel, &mut unused] {
            let ended = tokio::time::timeout(Duration::from_secs(3), stream.read(&mut [0; 8])).await;
            assert!(matches!(ended, Ok(Ok(0) | Err(_))), "{ended:?}");
        }
    }
}
