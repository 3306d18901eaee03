//! One connection of a browser: its requests, one after the other, and the tunnel it may become.

use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http_body_util::{Either, Empty, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use super::metered::Metered;
use super::patient::{Heads, Patient};
use super::target::{CONNECT_TIMEOUT, Refusal, Target, within};
use super::{MAX_HEAD, Shared, count};
use crate::upstream::{self, BoxStream};

/// Buffer of a tunnel, bytes, each way.
const TUNNEL_BUFFER: usize = 16 * 1024;

pub(super) type Answer = Response<Either<Incoming, Full<Bytes>>>;
type OriginBody = Either<Incoming, Empty<Bytes>>;

/// What belongs to one connection of the browser.
pub(super) struct ClientConnection {
    pub(super) shared: Arc<Shared>,
    /// Grows with every byte; see [`Shared::idle`].
    pub(super) activity: Arc<AtomicU64>,
    /// The connection to the last origin, for the next request to it. Requests of one connection
    /// follow each other, so one is enough.
    pub(super) origin: Mutex<Option<Origin>>,
    /// Held by the connection and by the tunnel it may become.
    pub(super) permit: Arc<OwnedSemaphorePermit>,
}

pub(super) struct Origin {
    authority: String,
    sender: SendRequest<OriginBody>,
    heads: Heads,
}

impl ClientConnection {
    pub(super) async fn handle(self: Arc<Self>, request: Request<Incoming>) -> Answer {
        let metrics = &self.shared.metrics;
        let is_connect = request.method() == Method::CONNECT;
        count(if is_connect { &metrics.tunnels } else { &metrics.requests });
        let outcome = if is_connect { self.clone().connect(request).await } else { self.forward(request).await };
        outcome.unwrap_or_else(|refusal| {
            count(match refusal {
                Refusal::Address => &metrics.denied_address,
                Refusal::Filter => &metrics.denied_filter,
                Refusal::Vendor => &metrics.denied_vendor,
                Refusal::Invalid => &metrics.invalid,
                Refusal::Dns | Refusal::NameServer => &metrics.dns_failures,
                Refusal::Connect | Refusal::Answer | Refusal::Upstream => &metrics.connect_failures,
            });
            refusal.answer()
        })
    }

    /// `CONNECT host:port`: bytes both ways until one side ends.
    async fn connect(self: Arc<Self>, mut request: Request<Incoming>) -> Result<Answer, Refusal> {
        let target = Target::of(request.uri(), None)?;
        let checked = self.shared.judge(&target).await?;
        let mut origin = self.shared.open(&target, &checked).await?;
        let upgrade = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let Ok(upgraded) = upgrade.await else { return };
            // The concrete stream behind the upgrade spares a dynamic call for each read and write.
            match upgraded.downcast::<TokioIo<Metered<TcpStream>>>() {
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
                    let request = unsent.or(again).ok_or(Refusal::Answer)?;
                    self.send_anew(&target, &checked, authority, request).await?
                }
            },
            None => self.send_anew(&target, &checked, authority, request).await?,
        };

        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            let Some(browser_upgrade) = browser_upgrade else { return Err(Refusal::Answer) };
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
            Some(proxy) => {
                let stream = within(CONNECT_TIMEOUT, upstream::connect_to(proxy)).await;
                stream.map_err(|_| Refusal::Upstream)?
            }
            None => self.shared.open(target, checked).await?,
        };
        let heads = Heads::default();
        let stream = Patient { stream, heads: heads.clone() };
        let (sender, connection) = hyper::client::conn::http1::Builder::new()
            .max_buf_size(MAX_HEAD)
            .max_headers(256)
            .preserve_header_case(true)
            .ignore_invalid_headers_in_responses(true)
            .handshake::<_, OriginBody>(TokioIo::new(stream))
            .await
            .map_err(|_| Refusal::Answer)?;
        let stop = self.shared.stop.clone();
        tokio::spawn(async move {
            // Ends when the origin closes, or when nobody holds the sender and no body is left.
            tokio::select! {
                _ = connection.with_upgrades() => {}
                () = stop.cancelled() => {}
            }
        });
        let mut origin = Origin { authority, sender, heads };
        let answer = origin.send(request).await.map_err(|_| Refusal::Answer)?;
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
    async fn send(
        &mut self,
        mut request: Request<OriginBody>,
    ) -> Result<Response<Incoming>, Option<Request<OriginBody>>> {
        if self.sender.ready().await.is_err() {
            return Err(Some(request));
        }
        self.heads.count_for(&mut request);
        self.sender.try_send_request(request).await.map_err(|mut error| error.take_message())
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
        // Where the message goes and where it ends does not belong to the connection, whatever `Connection` names.
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
