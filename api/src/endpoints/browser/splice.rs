//! Joins a client's upgraded connection to the worker's: bytes in both directions, frames unread.
//!
//! ```text
//! client ──request's body──> task ──> TCP ──> worker
//! client <──answer's body <───────── TCP <── worker
//! ```
//!
//! Neither direction holds more than a buffer; a side that does not read makes the other wait.

use std::fmt::Display;
use std::io;
use std::time::Duration;

use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use actix_web::web::{Bytes, Payload};
use actix_web::{HttpRequest, HttpResponse};
use futures_util::{Stream, StreamExt, stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio_util::io::ReaderStream;
use tokio_util::sync::CancellationToken;
use weir_shared::error_code::ErrorCode;
use weir_shared::hang_up::HangUp;
use weir_shared::shares::Share;
use weir_shared::worker_api::{Refusal, SECRET_HEADER};

use super::gone;
use crate::error::{ApiError, ApiResult};

/// Time to reach a worker.
const CONNECT: Duration = Duration::from_secs(3);
/// Time for its answer: it connects to Chromium first.
const ANSWER: Duration = Duration::from_secs(15);
/// Largest head of an answer, bytes.
const HEAD: usize = 16 << 10;
/// Bytes that one read takes at most.
const BUFFER: usize = 64 << 10;

/// A WebSocket handshake that was asked for.
pub struct Handshake {
    key: String,
}

impl Handshake {
    /// Reads the handshake of a client's request.
    ///
    /// # Errors
    /// 400 when the request is not a WebSocket handshake.
    pub fn of(request: &HttpRequest) -> ApiResult<Self> {
        let text = |name| text(request.headers(), name);
        let key = text(header::SEC_WEBSOCKET_KEY);
        let is_upgrade = text(header::UPGRADE).split(',').any(|p| p.trim().eq_ignore_ascii_case("websocket"));
        let is_key = key.len() == 24 && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b));
        if !is_upgrade || text(header::SEC_WEBSOCKET_VERSION) != "13" || !is_key {
            return Err(ApiError::new(ErrorCode::Invalid, "This address takes WebSocket connections only."));
        }
        Ok(Self { key: key.to_owned() })
    }

    /// The client's key, which the answer proves to have been read.
    pub fn key(&self) -> &[u8] {
        self.key.as_bytes()
    }

    /// One of our own: the key proves nothing but that the other side speaks WebSocket.
    pub fn own() -> Self {
        Self { key: "d2VpciBsaXZlIHNvY2tldA==".to_owned() }
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> &str {
    headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
}

/// What a client's connection has for as long as it lives: what ends it, and its team's place.
pub type Held = (Option<HangUp>, Share);

/// A worker's side of a WebSocket, past the handshake.
pub struct WorkerSocket {
    /// The answer to the handshake's key.
    accept: HeaderValue,
    /// What came with the head.
    first: Bytes,
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
}

impl WorkerSocket {
    /// Asks the worker at `address` to open the WebSocket at `path`.
    ///
    /// # Errors
    /// 410 when the session is not there any more, 502 when its browser does not answer, 503 when the worker does not.
    pub async fn open(address: &str, path: &str, secret: &str, handshake: &Handshake) -> ApiResult<Self> {
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {}\r\n{SECRET_HEADER}: {secret}\r\n\r\n",
            handshake.key
        );
        let (answer, stream) = ask(address, &head).await?;
        if answer.status != 101 {
            return Err(refused(Refusal::of_status(answer.status), &answer.status));
        }
        let accept = answer.accept.ok_or_else(|| ApiError::internal(&"a worker's handshake has no key"))?;
        let (from, to) = stream.into_split();
        Ok(Self { accept, first: answer.body, from, to })
    }

    /// The answer to a client that asked for this very handshake, and the connection that it opens.
    pub fn pass_on(self, payload: Payload, held: Held, stopping: &CancellationToken) -> HttpResponse {
        let accept = self.accept.clone();
        HttpResponse::SwitchingProtocols()
            .upgrade("websocket")
            .insert_header((header::SEC_WEBSOCKET_ACCEPT, accept))
            .streaming(self.join(payload, Bytes::new(), held, stopping))
    }

    /// Sends on what the client sends, `ahead` first, and gives what is for the client, until one side is done or the
    /// process stops. The client's connection ends with it.
    pub fn join(
        mut self,
        mut payload: Payload,
        ahead: Bytes,
        held: Held,
        stopping: &CancellationToken,
    ) -> impl Stream<Item = io::Result<Bytes>> + use<> {
        // Whoever drops the answer ends the other direction too, also while it waits for the worker.
        let over = CancellationToken::new();
        let guard = over.clone().drop_guard();
        actix_web::rt::spawn(async move {
            let forward = async {
                let mut piece = ahead;
                while self.to.write_all(&piece).await.is_ok() {
                    piece = match payload.next().await {
                        Some(Ok(bytes)) => bytes,
                        // The client left; the worker learns of it by the end of the stream.
                        Some(Err(_)) | None => break,
                    };
                }
            };
            over.run_until_cancelled(forward).await;
            let _ = self.to.shutdown().await;
        });
        let first = stream::iter((!self.first.is_empty()).then_some(Ok(self.first)));
        let all = first.chain(ReaderStream::with_capacity(self.from, BUFFER));
        all.take_until(stopping.clone().cancelled_owned()).inspect(move |_| {
            let _held = (&guard, &held);
        })
    }
}

/// What a client is told when the worker of its session does not answer.
pub fn unreachable(address: &str, cause: &dyn Display) -> ApiError {
    tracing::warn!(worker.address = address, %cause, "a worker does not answer");
    ApiError::new(ErrorCode::Unavailable, "The session's worker does not answer. Please try again shortly.")
}

/// What a client is told when it refuses the connection.
pub fn refused(refusal: Option<Refusal>, answer: &dyn Display) -> ApiError {
    match refusal {
        Some(Refusal::UnknownSession) => gone(),
        Some(Refusal::TooManyClients) => {
            let text = "This session has as many connections as it may; retry after 5s.";
            ApiError::new(ErrorCode::RateLimited, text).retry_after(5)
        }
        Some(Refusal::Failed) => ApiError::new(ErrorCode::BrowserFailed, "The session's browser does not answer."),
        _ => ApiError::internal(&format!("a worker refused a connection: {answer}")),
    }
}

/// An answer, as far as it matters here.
struct HandshakeAnswer {
    status: u16,
    accept: Option<HeaderValue>,
    /// What has come of the body.
    body: Bytes,
}

async fn ask(address: &str, head: &str) -> ApiResult<(HandshakeAnswer, TcpStream)> {
    let unreachable = |cause: &dyn Display| unreachable(address, cause);
    let connected = tokio::time::timeout(CONNECT, TcpStream::connect(address)).await;
    let mut stream = match connected {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(unreachable(&error)),
        Err(_) => return Err(unreachable(&"no connection in time")),
    };
    let talk = async {
        stream.set_nodelay(true)?;
        stream.write_all(head.as_bytes()).await?;
        read_answer(&mut stream).await
    };
    match tokio::time::timeout(ANSWER, talk).await {
        Ok(Ok(answer)) => Ok((answer, stream)),
        Ok(Err(error)) => Err(unreachable(&error)),
        Err(_) => Err(unreachable(&"no answer in time")),
    }
}

async fn read_answer(stream: &mut TcpStream) -> io::Result<HandshakeAnswer> {
    let mut bytes = Vec::with_capacity(1024);
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
        if bytes.len() > HEAD || stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::Error::other("the answer has no head"));
        }
    };
    let broken = || io::Error::other("the answer's head is broken");
    let head = std::str::from_utf8(&bytes[..end]).map_err(|_| broken())?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|l| l.split(' ').nth(1)).and_then(|s| s.parse().ok()).ok_or_else(broken)?;
    let accept = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case(header::SEC_WEBSOCKET_ACCEPT.as_str()))
        .and_then(|(_, value)| HeaderValue::from_str(value.trim()).ok());
    Ok(HandshakeAnswer { status, accept, body: Bytes::copy_from_slice(&bytes[end..]) })
}
