//! One CDP client and its own WebSocket to Chromium, so that sessions and auto-attach of clients stay apart.
//!
//! ```text
//! client ──> reader: filter ──────────────────────> Chromium
//!               │ answers to refused commands
//!               v
//! client <── writer: answers, pings <──────────────── Chromium
//! ```
//!
//! Each direction holds one message (or a few small ones) and waits until it is taken: that is the backpressure.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{FutureExt, SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::coop;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message, Utf8Bytes};
use weir_shared::blocking;
use weir_shared::clock::{self, Clock};

use super::filter::{Rules, Verdict, judge};
use super::meter::{Budget, Meter, Metered};
use super::{Activity, Browser, Counted, FIGURES, MAX_MESSAGE, MAX_REQUEST, PING, SILENCE, SessionHandle};

/// Time to connect to a Chromium that lives.
const CONNECT: Duration = Duration::from_secs(10);
/// Time for the goodbye.
const FAREWELL: Duration = Duration::from_secs(2);
/// A client that takes nothing for so long is gone.
const STALLED: Duration = Duration::from_secs(120);
/// Bytes sent to a client before a flush, unless nothing more is there.
const FLUSH_AT: usize = 128 << 10;

/// How Chromium begins to tell of a tab that has come, changed or gone.
const TAB_EVENT: &str = r#"{"method":"Target."#;
/// Bytes of a message from which on it is judged on a thread of its own: this one serves all sessions.
const JUDGED_HERE: usize = 64 << 10;

/// How a relay ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelayEnd {
    /// The client left, asked to close its browser, fell silent or broke the protocol.
    Client,
    /// Chromium is gone.
    Browser,
    /// The session ended.
    Session,
}

pub(super) fn config(largest: usize) -> WebSocketConfig {
    // Small read buffers: there is one per client, and a large message gets its own.
    WebSocketConfig::default()
        .max_message_size(Some(largest))
        .max_frame_size(Some(largest))
        .read_buffer_size(32 << 10)
        .write_buffer_size(32 << 10)
}

/// A WebSocket to Chromium that no client uses yet.
pub struct Upstream {
    socket: WebSocketStream<Metered<TcpStream>>,
    meter: Meter,
}

impl Upstream {
    /// Connects to the browser, within ten seconds. What it answers counts for `budget`.
    ///
    /// # Errors
    /// When Chromium is gone or does not answer.
    pub async fn connect(browser: &dyn Browser, budget: &Budget) -> io::Result<Self> {
        let open = async {
            let meter = Meter::default();
            let stream = Metered::new(browser.connect().await?, meter.clone(), &budget.answered, &budget.large);
            let url = format!("ws://localhost{}", browser.ws_path());
            let opened = tokio_tungstenite::client_async_with_config(url, stream, Some(config(MAX_MESSAGE))).await;
            opened.map(|(socket, _)| Self { socket, meter }).map_err(io::Error::other)
        };
        tokio::time::timeout(CONNECT, open).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// The socket, and what says that a message of it is dealt with.
    pub(super) fn into_parts(self) -> (WebSocketStream<Metered<TcpStream>>, Meter) {
        (self.socket, self.meter)
    }
}

/// Who is at the other end of a relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A client outside: what it sends is use of the session.
    Client,
    /// A box of the session's own code, which answers a busy page by itself: only a call of execute is use.
    Code,
}

/// Relays between a client, whose stream is already upgraded, and Chromium until one of them leaves or the session
/// ends.
pub async fn relay_cdp<S>(client: S, upstream: Upstream, source: Source, session: &SessionHandle) -> RelayEnd
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let SessionHandle { rules, activity, ended, .. } = session;
    let _counted = (Counted::new(&FIGURES.clients), Counted::new(&activity.clients));
    let is_use = source == Source::Client;
    if is_use {
        activity.touch();
    }
    let client_meter = Meter::default();
    let client = Metered::new(client, client_meter.clone(), &session.budget.asked, &session.budget.large);
    let client = WebSocketStream::from_raw_socket(client, Role::Server, Some(config(MAX_REQUEST))).await;
    let (client_out, client_in) = client.split();
    let (browser, browser_meter) = upstream.into_parts();
    let (browser_out, browser_in) = browser.split();
    let (answers_in, answers_out) = mpsc::channel(4);
    let heard = Activity::new(Clock::system());
    let meters = (&client_meter, &browser_meter);
    let mut reader = Reader {
        from: client_in,
        to: browser_out,
        answers: answers_in,
        rules,
        activity,
        is_use,
        heard: &heard,
        meter: meters.0,
        is_too_much: false,
    };
    let mut writer = Writer { from: browser_in, to: client_out, answers: answers_out, activity, heard: &heard, meters };
    let end = tokio::select! {
        end = reader.run() => end,
        end = writer.run() => end,
        () = ended.cancelled() => RelayEnd::Session,
    };
    let (code, reason) = match end {
        RelayEnd::Client if reader.is_too_much => (CloseCode::Size, "a message has more than 100 MiB"),
        RelayEnd::Client => (CloseCode::Normal, ""),
        RelayEnd::Browser => (CloseCode::Away, "the browser is gone"),
        RelayEnd::Session => (CloseCode::Away, "the session has ended"),
    };
    let farewell = async {
        // The answer to `Browser.close` may still be waiting.
        while let Ok(answer) = writer.answers.try_recv() {
            let _ = writer.to.feed(answer).await;
        }
        // Refused when the client has said goodbye first: then what it said is its answer, and goes out with the read.
        let goodbye = CloseFrame { code, reason: Utf8Bytes::from_static(reason) };
        let _ = writer.to.send(Message::Close(Some(goodbye))).await;
        // The other side closes; until then what it still sends is of no interest.
        while let Some(Ok(_)) = reader.from.next().await {}
    };
    let _ = tokio::join!(tokio::time::timeout(FAREWELL, farewell), tokio::time::timeout(FAREWELL, reader.to.close()),);
    end
}

struct Reader<'a, S> {
    from: SplitStream<WebSocketStream<Metered<S>>>,
    to: SplitSink<WebSocketStream<Metered<TcpStream>>, Message>,
    answers: mpsc::Sender<Message>,
    rules: &'a Arc<Rules>,
    activity: &'a Activity,
    /// What the client sends is use of the session.
    is_use: bool,
    /// When the client last sent anything at all.
    heard: &'a Activity,
    meter: &'a Meter,
    /// The client has sent a message that is too large.
    is_too_much: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Reader<'_, S> {
    async fn run(&mut self) -> RelayEnd {
        loop {
            let message = match self.from.next().await {
                Some(Ok(message)) => message,
                ended => {
                    self.is_too_much = matches!(ended, Some(Err(Error::Capacity(_))));
                    return RelayEnd::Client;
                }
            };
            self.heard.touch();
            // A crowd of small messages is read without waiting, pings among them: others have their turn between.
            coop::consume_budget().await;
            let text = match message {
                Message::Text(text) => text,
                Message::Close(_) => return RelayEnd::Client,
                // The protocol is text; what Chromium makes of anything else is not for a client to find out.
                Message::Binary(_) => {
                    let _ = self.answers.send(refuse_binary()).await;
                    return RelayEnd::Client;
                }
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => continue,
            };
            self.activity.say();
            if self.is_use {
                self.activity.touch();
            }
            FIGURES.bytes_in.fetch_add(text.len() as u64, Ordering::Relaxed);
            let Some(verdict) = judged(&text, self.rules).await else { return RelayEnd::Client };
            let sent = match verdict {
                Verdict::Pass => self.to.send(Message::Text(text)).await.map_err(|_| RelayEnd::Browser),
                Verdict::Replace(text) => self.to.send(Message::text(text)).await.map_err(|_| RelayEnd::Browser),
                Verdict::Close(answer) => {
                    let _ = self.answers.send(Message::text(answer)).await;
                    Err(RelayEnd::Client)
                }
                Verdict::Answer(answer) => {
                    FIGURES.refused.fetch_add(1, Ordering::Relaxed);
                    self.answers.send(Message::text(answer)).await.map_err(|_| RelayEnd::Client)
                }
            };
            if let Err(end) = sent {
                return end;
            }
            self.activity.say();
            self.meter.reset();
        }
    }
}

/// The verdict on a message. `None`: nobody can be found to judge it.
async fn judged(text: &Utf8Bytes, rules: &Arc<Rules>) -> Option<Verdict> {
    if text.len() <= JUDGED_HERE {
        return Some(judge(text, rules));
    }
    let (text, rules) = (text.clone(), Arc::clone(rules));
    blocking::run(move || judge(&text, &rules)).await.ok()
}

fn refuse_binary() -> Message {
    Message::text(r#"{"error":{"code":-32600,"message":"Messages are text here"}}"#)
}

struct Writer<'a, S> {
    from: SplitStream<WebSocketStream<Metered<TcpStream>>>,
    to: SplitSink<WebSocketStream<Metered<S>>, Message>,
    answers: mpsc::Receiver<Message>,
    activity: &'a Activity,
    /// When the client last sent anything at all.
    heard: &'a Activity,
    /// What half-read messages hold: of the client, of Chromium.
    meters: (&'a Meter, &'a Meter),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Writer<'_, S> {
    async fn run(&mut self) -> RelayEnd {
        let mut ping = tokio::time::interval_at(clock::deadline(PING), PING);
        ping.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let message = tokio::select! {
                biased;
                Some(answer) = self.answers.recv() => answer,
                message = self.from.next() => match message {
                    Some(Ok(message)) => message,
                    _ => return RelayEnd::Browser,
                },
                _ = ping.tick() => {
                    if self.heard.idle() > SILENCE || self.meters.0.is_overdue() {
                        return RelayEnd::Client;
                    }
                    Message::Ping(Bytes::new())
                }
            };
            let mut waiting = match self.feed(message).await {
                Ok(bytes) => bytes,
                Err(end) => return end,
            };
            // Events come in crowds: what is there already goes out with the same flush.
            while waiting < FLUSH_AT {
                let Some(next) = self.from.next().now_or_never() else { break };
                let Some(Ok(message)) = next else { return RelayEnd::Browser };
                match self.feed(message).await {
                    Ok(bytes) => waiting += bytes,
                    Err(end) => return end,
                }
            }
            if !matches!(tokio::time::timeout(STALLED, self.to.flush()).await, Ok(Ok(()))) {
                return RelayEnd::Client;
            }
            self.meters.1.reset();
        }
    }

    /// Returns the message's size, bytes.
    async fn feed(&mut self, message: Message) -> Result<usize, RelayEnd> {
        let bytes = match &message {
            Message::Text(text) => {
                FIGURES.bytes_out.fetch_add(text.len() as u64, Ordering::Relaxed);
                if text.starts_with(TAB_EVENT) {
                    self.activity.say();
                }
                text.len()
            }
            Message::Ping(_) => 0,
            Message::Close(_) => return Err(RelayEnd::Browser),
            // Pings and pongs of Chromium's side are not for the client.
            _ => return Ok(0),
        };
        match tokio::time::timeout(STALLED, self.to.feed(message)).await {
            Ok(Ok(())) => Ok(bytes),
            Ok(Err(_)) | Err(_) => Err(RelayEnd::Client),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[tokio::test]
    async fn large_messages_are_judged_on_another_thread_and_small_ones_at_once() {
        let rules = Arc::new(Rules { downloads: "/downloads".into(), uploads: Vec::new() });
        let navigate = |length: usize| {
            let url = format!("file:///{}", "x".repeat(length));
            Utf8Bytes::from(format!(r#"{{"id":1,"method":"Page.navigate","params":{{"url":"{url}"}}}}"#))
        };
        let is_refused = |verdict: Option<Verdict>| matches!(verdict, Some(Verdict::Answer(_)));
        let small = navigate(1_000);
        assert!(is_refused(judged(&small, &rules).now_or_never().expect("no other thread is asked")));
        // Megabytes would keep the clients of all sessions waiting here.
        let large = navigate(4 << 20);
        let mut judging = Box::pin(judged(&large, &rules));
        assert!((&mut judging).now_or_never().is_none(), "it is judged where it is read");
        assert!(is_refused(judging.await));
    }
}
