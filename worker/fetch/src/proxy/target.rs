//! Where a request wants to go, whether it may, and the connection to it.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;

use http_body_util::{Either, Full};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, StatusCode, Uri};
use tokio::net::TcpStream;
use weir_shared::guard::GuardError;
use weir_shared::random;

use super::connection::Answer;
use super::{Shared, listening};
use crate::upstream::{self, BoxStream, ProxyUrl};

/// Longest time to make a connection, all addresses of a name together.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest time for one address while the name has others to try.
const CONNECT_EACH: Duration = Duration::from_secs(4);

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

/// A target as the request names it.
pub(super) struct Target {
    /// As written, an IPv6 literal in brackets.
    pub(super) host: String,
    pub(super) port: u16,
}

/// Why a request goes nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    Address,
    Filter,
    Vendor,
    Invalid,
    Dns,
    /// The name may exist, and could not be looked up.
    NameServer,
    Connect,
    /// The target was reached, and hung up or spoke no HTTP.
    Answer,
    /// The upstream proxy cannot be reached.
    Upstream,
}

impl Shared {
    /// The checked addresses of a target, after the lists of names.
    pub(super) async fn judge(&self, target: &Target) -> Result<Vec<SocketAddr>, Refusal> {
        let name = target.host.to_ascii_lowercase();
        let name = name.strip_suffix('.').unwrap_or(&name);
        if VENDOR_HOSTS.contains(&name) {
            return Err(Refusal::Vendor);
        }
        let is_refused = self.refused.as_ref().is_some_and(|refused| refused(name, target.port));
        if is_refused || self.filter.as_ref().is_some_and(|filter| filter.blocks(name)) {
            return Err(Refusal::Filter);
        }
        let addresses = self.guard.resolve(&target.host, target.port).await.map_err(|error| match error {
            GuardError::Blocked { .. } | GuardError::Port { .. } => Refusal::Address,
            GuardError::Dns { .. } => Refusal::Dns,
            GuardError::NameServer { .. } | GuardError::Timeout => Refusal::NameServer,
            GuardError::InvalidHost { .. } | GuardError::Unsupported => Refusal::Invalid,
        })?;
        let is_own = |address: &SocketAddr| {
            let ip = address.ip().to_canonical();
            (ip.is_loopback() || ip.is_unspecified()) && listening().contains(&address.port())
        };
        if addresses.iter().any(is_own) { Err(Refusal::Address) } else { Ok(addresses) }
    }

    /// A connection to one of the checked addresses, through the upstream proxy if there is one.
    pub(super) async fn open(&self, target: &Target, checked: &[SocketAddr]) -> Result<BoxStream, Refusal> {
        match (&self.upstream, checked.first()) {
            (Some(proxy), Some(first)) => {
                let tunnel = upstream::tunnel(proxy, &target.host, target.port, *first);
                // A proxy that refuses a target works: that is not counted against it.
                let is_refused = |error: &io::Error| error.kind() == io::ErrorKind::Other;
                let tunnel = within(CONNECT_TIMEOUT, tunnel).await;
                tunnel.map_err(|error| if is_refused(&error) { Refusal::Connect } else { Refusal::Upstream })
            }
            _ => {
                let stream = within(CONNECT_TIMEOUT, connect_to_any(checked)).await;
                stream.map(|stream| Box::new(stream) as BoxStream).map_err(|_| Refusal::Connect)
            }
        }
    }

    /// The upstream proxy when it is one that plain requests are handed to as they are.
    pub(super) fn request_proxy(&self) -> Option<&ProxyUrl> {
        self.upstream.as_ref().filter(|proxy| proxy.takes_requests())
    }
}

impl Target {
    /// Reads host and port; `None` for the default port demands one. User information is refused.
    pub(super) fn of(uri: &Uri, default_port: Option<u16>) -> Result<Self, Refusal> {
        let authority = uri.authority().ok_or(Refusal::Invalid)?;
        let port = authority.port_u16().or(default_port.filter(|_| authority.port().is_none()));
        let is_plain = !authority.as_str().contains('@') && !authority.host().is_empty();
        match port {
            Some(port) if port != 0 && is_plain => Ok(Self { host: authority.host().to_owned(), port }),
            _ => Err(Refusal::Invalid),
        }
    }

    pub(super) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

/// What the proxies of this process say before the reason in the text of a refusal. Browsers show that text as the page of a
/// site; a site that says the same has read it there, and says no more with it than that it cannot be reached.
fn mark() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| format!("weir-egress-{} ", random::hex::<16>()))
}

/// The reason of a refusal, if a document's text is one: a word as `X-Weir-Egress` has it.
pub fn refusal_in(text: &str) -> Option<&str> {
    text.split_once(mark()).map(|(_, reason)| reason.trim_end())
}

impl Refusal {
    pub(super) fn answer(self) -> Answer {
        let (status, reason, text) = match self {
            Self::Address => (StatusCode::FORBIDDEN, "blocked", "This address is not allowed.\n"),
            Self::Filter => {
                (StatusCode::FORBIDDEN, "filtered", "This host is on the list of ads and trackers (blockAds).\n")
            }
            Self::Vendor => (StatusCode::FORBIDDEN, "vendor", "The browser's own services are not reached.\n"),
            Self::Invalid => (StatusCode::BAD_REQUEST, "invalid", "This is no request for a proxy.\n"),
            Self::Dns => (StatusCode::BAD_GATEWAY, "dns", "The host cannot be resolved.\n"),
            Self::NameServer => (StatusCode::BAD_GATEWAY, "lookup", "The host cannot be looked up at the moment.\n"),
            Self::Connect => (StatusCode::BAD_GATEWAY, "connect", "The host cannot be connected to.\n"),
            Self::Answer => (StatusCode::BAD_GATEWAY, "answer", "The host gave no answer that is HTTP.\n"),
            Self::Upstream => (StatusCode::BAD_GATEWAY, "upstream", "The proxy cannot be reached.\n"),
        };
        let text = format!("{text}{}{reason}\n", mark());
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

pub(super) async fn within<T>(limit: Duration, connecting: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(limit, connecting).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
