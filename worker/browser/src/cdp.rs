//! The CDP client: one WebSocket to one Chromium, shared by all its pages (flat sessions).
//!
//! `headless_chrome` names the protocol's methods and replies; traffic goes through here (the crate's own documentation
//! says why). A call is *sent* at once and *awaited* later, so callers can pipeline:
//!
//! ```text
//! caller            writer task          Chromium           reader task
//!   | send #7,#8,#9 --->| one flush ------->|                    |
//!   |                   |                   |--- reply 7..9 --->| pending map -> oneshot
//!   | wait #9 <---------------------------------------------------|
//!   |                   |                   |--- event {session}->| that session's channel, or dropped
//! ```
//!
//! When the socket closes, the pending map is dropped, so every caller fails at once. Nothing here may
//! block on a slow subscriber: an event that finds its channel full is dropped and the session is marked.

use std::borrow::Cow;
use std::collections::HashMap;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::Range;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_util::{SinkExt, StreamExt};
use headless_chrome::protocol::cdp::types::Method;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_util::sync::CancellationToken;
use weir_shared::texts;

/// Largest message in either direction, bytes: a full-page screenshot passes, the library's default does not.
const MAX_MESSAGE: usize = 256 << 20;

/// Events a session may fall behind before they are dropped.
const EVENT_BACKLOG: usize = 1024;

/// Stands for all sessions among the subscribers; no session has this id.
const EVERY: &str = "*";

/// Why a call gave no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CdpError {
    /// The socket is gone: Chromium died, was recycled, or closed the connection.
    #[error("the browser connection is closed")]
    Closed,
    /// No answer before the deadline of the call.
    #[error("{method} got no answer in time")]
    Timeout {
        /// The CDP method.
        method: &'static str,
    },
    /// Chromium answered with an error.
    #[error("{method}: {message} ({code})")]
    Refused {
        /// The CDP method.
        method: &'static str,
        /// JSON-RPC code.
        code: i64,
        /// Chromium's own words.
        message: String,
    },
    /// The answer does not have the expected shape.
    #[error("{method}: unexpected answer: {reason}")]
    Shape {
        /// The CDP method.
        method: &'static str,
        /// The parser's words.
        reason: String,
    },
}

/// One event, its parameters unparsed.
#[derive(Debug)]
pub struct Event {
    /// The session it belongs to; empty: the browser itself.
    pub session: String,
    /// For example `Page.javascriptDialogOpening`.
    pub method: String,
    text: Utf8Bytes,
    params: Range<usize>,
}

impl Event {
    /// The parameters as `T`, or `None` when they do not have that shape.
    pub fn params<'a, T: Deserialize<'a>>(&'a self) -> Option<T> {
        serde_json::from_str(self.text.get(self.params.clone())?).ok()
    }
}

/// Which events a session wants, by method name. Others cost a comparison and nothing else.
pub type EventFilter = fn(&str) -> bool;

struct Subscriber {
    wants: EventFilter,
    tx: mpsc::Sender<Event>,
    lagged: Arc<AtomicBool>,
}

/// The events of one session; unsubscribes when dropped.
pub struct Events {
    session: String,
    rx: mpsc::Receiver<Event>,
    lagged: Arc<AtomicBool>,
    cdp: Cdp,
}

impl Events {
    /// The next event; `None` once the connection is closed.
    pub async fn next(&mut self) -> Option<Event> {
        tokio::select! {
            biased;
            event = self.rx.recv() => event,
            () = self.cdp.inner.closed.cancelled() => None,
        }
    }

    /// The next event if it has come already.
    pub fn next_now(&mut self) -> Option<Event> {
        self.rx.try_recv().ok()
    }

    /// Whether events were dropped because nobody read them in time.
    pub fn has_lagged(&self) -> bool {
        self.lagged.load(Ordering::Relaxed)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.cdp.subscribers().remove(&self.session);
    }
}

struct Reply {
    text: Utf8Bytes,
    body: Body,
}

enum Body {
    Result(Range<usize>),
    Error { code: i64, message: String },
}

struct Inner {
    tx: mpsc::UnboundedSender<Message>,
    next_id: AtomicU64,
    pending: Mutex<HashMap<u64, oneshot::Sender<Reply>>>,
    subscribers: Mutex<HashMap<String, Subscriber>>,
    closed: CancellationToken,
}

/// A handle to the connection; clones share it.
#[derive(Clone)]
pub struct Cdp {
    inner: Arc<Inner>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    session_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<WireError<'a>>,
}

#[derive(Deserialize)]
struct WireError<'a> {
    code: i64,
    #[serde(borrow)]
    message: Cow<'a, str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Call<'a, P> {
    id: u64,
    method: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    params: P,
}

impl Cdp {
    /// Speaks to a browser over a connection to its debugging port; `ws_path` is the path of its WebSocket.
    ///
    /// # Errors
    /// When the upgrade is refused.
    pub async fn connect_over(stream: TcpStream, ws_path: &str) -> anyhow::Result<Self> {
        let config = WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE)).max_frame_size(Some(MAX_MESSAGE));
        let url = format!("ws://127.0.0.1{ws_path}");
        let (socket, _) = tokio_tungstenite::client_async_with_config(url, stream, Some(config)).await?;
        Ok(Self::over(socket))
    }

    /// Speaks over a WebSocket that is already open.
    pub fn over<S>(socket: WebSocketStream<S>) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (mut sink, mut stream) = socket.split();
        let (tx, mut rx) = mpsc::unbounded_channel::<Message>();
        let cdp = Self {
            inner: Arc::new(Inner {
                tx,
                next_id: AtomicU64::new(1),
                pending: Mutex::default(),
                subscribers: Mutex::default(),
                closed: CancellationToken::new(),
            }),
        };

        let closed = cdp.inner.closed.clone();
        tokio::spawn(async move {
            loop {
                let message = tokio::select! {
                    message = rx.recv() => message,
                    () = closed.cancelled() => None,
                };
                let Some(message) = message else { break };
                if sink.feed(message).await.is_err() {
                    break;
                }
                // Whatever else is queued goes out with the same flush.
                while let Ok(message) = rx.try_recv() {
                    if sink.feed(message).await.is_err() {
                        break;
                    }
                }
                if sink.flush().await.is_err() {
                    break;
                }
            }
            closed.cancel();
            let _ = sink.close().await;
        });

        let inner = Arc::downgrade(&cdp.inner);
        let closed = cdp.inner.closed.clone();
        tokio::spawn(async move {
            loop {
                let message = tokio::select! {
                    message = stream.next() => message,
                    () = closed.cancelled() => break,
                };
                match message {
                    Some(Ok(Message::Text(text))) => match inner.upgrade() {
                        Some(inner) => inner.dispatch(text),
                        None => break,
                    },
                    Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                    Some(Ok(_)) => {}
                }
            }
            closed.cancel();
            if let Some(inner) = inner.upgrade() {
                // Dropping the senders fails every caller now.
                lock(&inner.pending).clear();
                lock(&inner.subscribers).clear();
            }
        });
        cdp
    }

    /// Sends one call; the answer is awaited on the returned value.
    ///
    /// `M` names the method and the shape of the answer; `params` is any serialisable value, so a
    /// call states only the parameters it uses.
    pub fn send<M: Method>(&self, session: Option<&str>, params: impl Serialize) -> Pending<M::ReturnObject> {
        self.send_as(M::NAME, session, params)
    }

    /// As [`Cdp::send`], for an answer shape of our own.
    pub fn send_as<T>(&self, method: &'static str, session: Option<&str>, params: impl Serialize) -> Pending<T> {
        let id = self.inner.next_id.fetch_add(1, Ordering::Relaxed);
        let (tx, rx) = oneshot::channel();
        let text = serde_json::to_string(&Call { id, method, session_id: session, params });
        if let Ok(text) = text {
            lock(&self.inner.pending).insert(id, tx);
            // Checked after the insert: the reader clears the map after it has set the flag.
            if self.inner.closed.is_cancelled() || self.inner.tx.send(Message::text(text)).is_err() {
                lock(&self.inner.pending).remove(&id);
            }
        }
        Pending { id, method, rx, cdp: self.clone(), _shape: PhantomData }
    }

    /// Sends one call and forgets the answer.
    pub fn post<M: Method>(&self, session: Option<&str>, params: impl Serialize) {
        drop(self.send::<M>(session, params));
    }

    /// Sends one call and waits for its answer.
    ///
    /// # Errors
    /// See [`CdpError`].
    pub async fn call<M: Method>(
        &self,
        session: Option<&str>,
        params: impl Serialize,
        deadline: Instant,
    ) -> Result<M::ReturnObject, CdpError> {
        self.send::<M>(session, params).by(deadline).await
    }

    /// The events of `session` that `wants` accepts. A second subscription replaces the first.
    pub fn events(&self, session: &str, wants: EventFilter) -> Events {
        let (tx, rx) = mpsc::channel(EVENT_BACKLOG);
        let lagged = Arc::new(AtomicBool::new(false));
        self.subscribers().insert(session.to_owned(), Subscriber { wants, tx, lagged: Arc::clone(&lagged) });
        Events { session: session.to_owned(), rx, lagged, cdp: self.clone() }
    }

    /// The events that `wants` accepts of the browser itself and of every session without a subscription of its own,
    /// in their order. A second subscription replaces the first.
    pub fn every_event(&self, wants: EventFilter) -> Events {
        self.events(EVERY, wants)
    }

    /// Cancelled once the connection is gone.
    pub fn closed(&self) -> &CancellationToken {
        &self.inner.closed
    }

    /// Ends the connection; every pending call fails.
    pub fn close(&self) {
        self.inner.closed.cancel();
    }

    fn subscribers(&self) -> MutexGuard<'_, HashMap<String, Subscriber>> {
        lock(&self.inner.subscribers)
    }
}

impl Inner {
    fn dispatch(&self, text: Utf8Bytes) {
        // Scripts cut strings anywhere, and Chromium passes on what is left of a character.
        let text = match texts::mended(&text) {
            Cow::Owned(mended) => mended.into(),
            Cow::Borrowed(_) => text,
        };
        let Ok(envelope) = serde_json::from_str::<Envelope<'_>>(&text) else {
            tracing::debug!("unreadable CDP message dropped");
            return;
        };
        if let Some(id) = envelope.id {
            let Some(waiting) = lock(&self.pending).remove(&id) else { return };
            let body = match envelope.error {
                Some(error) => Body::Error { code: error.code, message: error.message.into_owned() },
                None => Body::Result(envelope.result.map_or(0..0, |raw| span(&text, raw))),
            };
            let _ = waiting.send(Reply { text, body });
            return;
        }
        let Some(method) = envelope.method else { return };
        let session = envelope.session_id.unwrap_or_default();
        let subscribers = lock(&self.subscribers);
        let Some(subscriber) = subscribers.get(session.as_ref()).or_else(|| subscribers.get(EVERY)) else { return };
        if !(subscriber.wants)(&method) {
            return;
        }
        let params = envelope.params.map_or(0..0, |raw| span(&text, raw));
        let session = session.into_owned();
        let event = Event { session, method: method.into_owned(), text: text.clone(), params };
        if subscriber.tx.try_send(event).is_err() {
            subscriber.lagged.store(true, Ordering::Relaxed);
        }
    }
}

/// Where `raw` lies inside `text`, from which it was borrowed.
fn span(text: &str, raw: &RawValue) -> Range<usize> {
    let start = (raw.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    start..start + raw.get().len()
}

/// A lock that outlives whoever panics with it: what it guards is whole at each moment.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call under way. Dropping it forgets the answer.
#[must_use = "a call fails silently unless its answer is awaited"]
pub struct Pending<T> {
    id: u64,
    method: &'static str,
    rx: oneshot::Receiver<Reply>,
    cdp: Cdp,
    _shape: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Pending<T> {
    /// The answer, or [`CdpError::Timeout`] at `deadline`.
    ///
    /// # Errors
    /// See [`CdpError`].
    pub async fn by(self, deadline: Instant) -> Result<T, CdpError> {
        let method = self.method;
        tokio::time::timeout_at(deadline, self).await.unwrap_or(Err(CdpError::Timeout { method }))
    }
}

impl<T: DeserializeOwned> Future for Pending<T> {
    type Output = Result<T, CdpError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let method = self.method;
        let answer = match Pin::new(&mut self.rx).poll(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(_)) => return Poll::Ready(Err(CdpError::Closed)),
            Poll::Ready(Ok(answer)) => answer,
        };
        Poll::Ready(match answer.body {
            Body::Error { code, message } => Err(CdpError::Refused { method, code, message }),
            Body::Result(range) => serde_json::from_str(answer.text.get(range).unwrap_or("{}"))
                .map_err(|e| CdpError::Shape { method, reason: e.to_string() }),
        })
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        // An unanswered call leaves nothing behind; an answered one is no longer in the map.
        lock(&self.cdp.inner.pending).remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;

    #[tokio::test]
    async fn half_a_character_of_a_page_spoils_no_answer_and_no_event() {
        let (browser, client) = tokio::io::duplex(4_096);
        let cdp = Cdp::over(WebSocketStream::from_raw_socket(client, Role::Client, None).await);
        let mut browser = WebSocketStream::from_raw_socket(browser, Role::Server, None).await;
        let mut events = cdp.events("S", |_| true);
        let asked = cdp.send_as::<serde_json::Value>("Runtime.evaluate", None, ());
        browser.next().await.expect("a call").expect("a call");
        for message in [
            r#"{"method":"Page.javascriptDialogOpening","sessionId":"S","params":{"message":"a\ud83d"}}"#,
            r#"{"id":1,"result":{"result":{"value":"\ude00b\ud83d\ude00"}}}"#,
        ] {
            browser.send(Message::text(message)).await.expect("it is open");
        }
        let answer = asked.await.expect("an answer");
        assert_eq!(answer["result"]["value"], "\u{fffd}b\u{1f600}");
        let event = events.next().await.expect("an event");
        let told = event.params::<serde_json::Value>().expect("parameters");
        assert_eq!(told["message"], "a\u{fffd}");
    }

    #[test]
    fn the_span_of_a_raw_value_is_its_place_in_the_message() {
        let text = r#"{"id":7,"result":{"a":[1,2]},"sessionId":"S"}"#;
        let envelope: Envelope<'_> = serde_json::from_str(text).expect("valid");
        let range = span(text, envelope.result.expect("result"));
        assert_eq!(&text[range], r#"{"a":[1,2]}"#);
        assert_eq!(envelope.session_id.as_deref(), Some("S"));
    }
}
