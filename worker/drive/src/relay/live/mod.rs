//! The live view of a session: one screencast for all its viewers, and the input of those with control.
//!
//! ```text
//! viewer ──orders──┐                           ┌── its own connection, flat sessions
//! viewer ──────────┼──> hub (one task) ──CDP───┤
//! viewer <─frames──┘    while anybody watches  └── Page.startScreencast of the active tab
//! ```
//!
//! To a viewer: `hello` once, `state` whenever something changed (the whole of it, so that nothing queues), pictures as
//! binary messages, `notice` and `clipboard` for one viewer, `ended` at the end. A picture has a head of eight bytes:
//! version 1, a zero, then width, height and the offset of the page from the top in CSS pixels, 16 bits each, big
//! endian; a JPEG follows.
//!
//! A viewer acknowledges each picture; one that is behind by [`AHEAD`] gets no more until it has, and then the latest.
//! What a viewer without control sends, other than that, is dropped here.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, broadcast, mpsc, watch};
use tokio::task::coop;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_util::sync::CancellationToken;
use weir_shared::worker_api::relay::close_code::{ENDED, FULL, TRY_AGAIN};

mod clipboard;
mod commands;
mod events;
mod hub;
mod input;
mod tabs;
mod upload;
mod view_state;

use input::Order;
use weir_shared::clock::{self, Clock};

use super::{Activity, Browser, FIGURES, PING, SILENCE};

/// Most viewers of one session.
pub const VIEWERS: usize = 50;
/// Pictures on the way to a viewer that it has not acknowledged.
const AHEAD: u32 = 3;
/// Orders waiting for the hub.
const ORDERS: usize = 256;
/// A viewer that takes nothing for so long is gone.
const STALLED: Duration = Duration::from_secs(30);
/// Time for the goodbye.
const FAREWELL: Duration = Duration::from_secs(2);

/// A picture with its head.
type Frame = Option<Bytes>;

/// Stands for all viewers; they are numbered from 1.
const EVERYBODY: u64 = 0;

/// Something for one viewer, or for [`EVERYBODY`].
#[derive(Debug, Clone)]
struct Notice {
    viewer: u64,
    text: Arc<str>,
}

/// The live view of one session. Does nothing while nobody watches.
pub struct LiveView {
    browser: Arc<dyn Browser>,
    activity: Arc<Activity>,
    /// Sends orders to the running hub; `None`: it does not run.
    hub: Mutex<Option<mpsc::Sender<(u64, Order)>>>,
    frames: watch::Sender<Frame>,
    state: watch::Sender<Arc<str>>,
    notices: broadcast::Sender<Notice>,
    viewers: AtomicUsize,
    controllers: AtomicUsize,
    /// Woken when viewers come or go.
    seats: Notify,
    next_viewer: AtomicU64,
    ended: CancellationToken,
    reason: OnceLock<String>,
}

/// Who watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveStats {
    pub viewers: usize,
    /// Those of them with control.
    pub controllers: usize,
}

impl LiveView {
    /// A view of this browser. Input of viewers with control counts as activity.
    pub fn new(browser: Arc<dyn Browser>, activity: Arc<Activity>) -> Arc<Self> {
        Arc::new(Self {
            browser,
            activity,
            hub: Mutex::default(),
            frames: watch::Sender::new(None),
            state: watch::Sender::new("".into()),
            notices: broadcast::Sender::new(64),
            viewers: AtomicUsize::new(0),
            controllers: AtomicUsize::new(0),
            seats: Notify::new(),
            next_viewer: AtomicU64::new(1),
            ended: CancellationToken::new(),
            reason: OnceLock::new(),
        })
    }

    /// Tells every viewer that the session has ended, and takes no more.
    pub fn end(&self, why: &str) {
        let _ = self.reason.set(why.to_owned());
        self.ended.cancel();
    }

    /// Who watches now.
    pub fn stats(&self) -> LiveStats {
        LiveStats {
            viewers: self.viewers.load(Ordering::Relaxed),
            controllers: self.controllers.load(Ordering::Relaxed),
        }
    }

    /// The way to the hub, started if it does not run.
    fn hub(self: &Arc<Self>) -> mpsc::Sender<(u64, Order)> {
        let mut hub = self.hub.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = hub.as_ref().filter(|sender| !sender.is_closed()) {
            return sender.clone();
        }
        let (sender, orders) = mpsc::channel(ORDERS);
        *hub = Some(sender.clone());
        tokio::spawn(hub::run(Arc::clone(self), orders));
        sender
    }

    fn tell(&self, viewer: u64, message: &serde_json::Value) {
        // Nobody listens: the viewer has left.
        let _ = self.notices.send(Notice { viewer, text: message.to_string().into() });
    }

    /// Says something to everybody who watches, such as what the agent does.
    pub fn announce(&self, text: &str) {
        self.notice(EVERYBODY, text);
    }

    fn notice(&self, viewer: u64, text: &str) {
        self.tell(viewer, &json!({"type": "notice", "text": text}));
    }
}

/// A viewer's place; given back when dropped.
struct Seat<'a> {
    view: &'a LiveView,
    control: bool,
}

impl<'a> Seat<'a> {
    fn take(view: &'a LiveView, control: bool) -> Self {
        view.viewers.fetch_add(1, Ordering::Relaxed);
        view.controllers.fetch_add(usize::from(control), Ordering::Relaxed);
        FIGURES.viewers.fetch_add(1, Ordering::Relaxed);
        view.seats.notify_one();
        Self { view, control }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.view.viewers.fetch_sub(1, Ordering::Relaxed);
        self.view.controllers.fetch_sub(usize::from(self.control), Ordering::Relaxed);
        FIGURES.viewers.fetch_sub(1, Ordering::Relaxed);
        self.view.seats.notify_one();
    }
}

/// Serves one viewer, whose stream is already upgraded, until it leaves or the session ends.
pub async fn serve_viewer<S>(view: &Arc<LiveView>, socket: S, control: bool)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let largest = if control { input::MESSAGE } else { 4 << 10 };
    let config = WebSocketConfig::default()
        .max_message_size(Some(largest))
        .max_frame_size(Some(largest))
        .read_buffer_size(16 << 10)
        .write_buffer_size(0);
    let mut socket = WebSocketStream::from_raw_socket(socket, Role::Server, Some(config)).await;
    let farewell = if view.ended.is_cancelled() {
        Farewell::Ended
    } else if view.viewers.load(Ordering::Relaxed) >= VIEWERS {
        Farewell::Full
    } else {
        let _seat = Seat::take(view, control);
        watch(view, &mut socket, control).await
    };
    goodbye(&mut socket, view, farewell).await;
}

/// Why a viewer is let go.
enum Farewell {
    /// It left by itself, or does not answer.
    Gone,
    /// The session ended.
    Ended,
    /// The hub stopped: the browser did not answer.
    Lost,
    Full,
}

async fn goodbye<S>(socket: &mut WebSocketStream<S>, view: &LiveView, farewell: Farewell)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (code, reason) = match farewell {
        Farewell::Gone => (CloseCode::Normal, ""),
        Farewell::Ended => (CloseCode::Library(ENDED), view.reason.get().map_or("ended", String::as_str)),
        Farewell::Lost => (CloseCode::Library(TRY_AGAIN), "the browser does not answer"),
        Farewell::Full => (CloseCode::Library(FULL), "too many viewers"),
    };
    let say = async {
        if let Farewell::Ended = farewell {
            let _ = socket.send(Message::text(json!({"type": "ended", "reason": reason}).to_string())).await;
        }
        let reason: String = reason.chars().take(60).collect();
        let _ = socket.send(Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await;
        while let Some(Ok(_)) = socket.next().await {}
    };
    let _ = tokio::time::timeout(FAREWELL, say).await;
}

async fn watch<S>(view: &Arc<LiveView>, socket: &mut WebSocketStream<S>, control: bool) -> Farewell
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let viewer = Viewer {
        number: view.next_viewer.fetch_add(1, Ordering::Relaxed),
        orders: view.hub(),
        behind: AtomicU32::new(0),
        acknowledged: Notify::new(),
        heard: Activity::new(Clock::system()),
        view,
        control,
    };
    let (to, from) = socket.split();
    tokio::select! {
        farewell = viewer.listen(from) => farewell,
        farewell = viewer.tell(to) => farewell,
    }
}

/// One connection of a viewer.
struct Viewer<'v> {
    view: &'v LiveView,
    /// Its number among the viewers of this view.
    number: u64,
    control: bool,
    orders: mpsc::Sender<(u64, Order)>,
    /// Pictures that it has not acknowledged.
    behind: AtomicU32,
    /// Woken with every acknowledgement.
    acknowledged: Notify,
    /// When it said something last.
    heard: Activity,
}

impl Viewer<'_> {
    /// Takes what the viewer sends, until it leaves or the hub stops.
    async fn listen<E>(&self, mut from: impl Stream<Item = Result<Message, E>> + Unpin) -> Farewell {
        loop {
            let Some(Ok(message)) = from.next().await else { return Farewell::Gone };
            self.heard.touch();
            // What came in a crowd is read without waiting: others have their turn between.
            coop::consume_budget().await;
            let order = match message {
                Message::Text(text) => Order::parse(&text),
                Message::Binary(bytes) if self.control => {
                    let upload = Order::parse_upload(&bytes);
                    if upload.is_none() {
                        let text = "These files could not be read. At most 20 files and 10 MB are possible.";
                        self.view.notice(self.number, text);
                    }
                    upload
                }
                Message::Close(_) => return Farewell::Gone,
                _ => None,
            };
            match order {
                Some(Order::Ack) => {
                    // Never below zero, whatever a viewer sends.
                    let _ = self.behind.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
                    self.acknowledged.notify_one();
                }
                Some(order) if self.control => {
                    self.view.activity.touch();
                    if order.is_passing() {
                        // A full hub loses a move of the mouse, never a click.
                        let _ = self.orders.try_send((self.number, order));
                    } else if self.orders.send((self.number, order)).await.is_err() {
                        return Farewell::Lost;
                    }
                }
                _ => {}
            }
        }
    }

    /// Sends the viewer what there is to see, until it takes nothing any more or the view ends.
    async fn tell(&self, mut to: impl Sink<Message> + Unpin) -> Farewell {
        let Self { view, behind, .. } = self;
        let mut frames = view.frames.subscribe();
        let mut state = view.state.subscribe();
        let mut notices = view.notices.subscribe();
        let mut ping = tokio::time::interval_at(clock::deadline(PING), PING);
        // What is known already goes out at once.
        frames.mark_changed();
        state.mark_changed();
        let mut message = Message::text(json!({"type": "hello", "control": self.control}).to_string());
        loop {
            match tokio::time::timeout(STALLED, to.send(message)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Farewell::Gone,
            }
            message = loop {
                let keeps_up = behind.load(Ordering::Relaxed) < AHEAD;
                tokio::select! {
                    biased;
                    () = view.ended.cancelled() => return Farewell::Ended,
                    () = self.orders.closed() => return Farewell::Lost,
                    notice = notices.recv() => match notice {
                        Ok(notice) if notice.viewer == self.number || notice.viewer == EVERYBODY => {
                            break Message::text(&*notice.text);
                        }
                        _ => {}
                    },
                    Ok(()) = state.changed() => {
                        let text = Arc::clone(&state.borrow_and_update());
                        if !text.is_empty() {
                            break Message::text(&*text);
                        }
                    }
                    Ok(()) = frames.changed(), if keeps_up => {
                        let frame = frames.borrow_and_update().clone();
                        if let Some(frame) = frame {
                            behind.fetch_add(1, Ordering::Relaxed);
                            FIGURES.frames_sent.fetch_add(1, Ordering::Relaxed);
                            break Message::Binary(frame);
                        }
                    }
                    () = self.acknowledged.notified(), if !keeps_up => {}
                    _ = ping.tick() => {
                        if self.heard.idle() > SILENCE {
                            return Farewell::Gone;
                        }
                        break Message::Ping(Bytes::new());
                    }
                }
            };
        }
    }
}
