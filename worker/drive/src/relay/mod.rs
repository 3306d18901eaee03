//! Between the users of a session and its Chromium.
//!
//! ```text
//! CDP client ──WebSocket──> routes, upgrade ──> pipe ──filter──> Chromium (one WebSocket per client, unix socket)
//! code box   ──cdp.sock───> socket ─────────────^
//! viewer     ──WebSocket──> routes, upgrade ──> live: one screencast for all viewers, input of those with control
//! ```
//!
//! Nobody but [`pipe`] and [`live`] speaks to a session's Chromium, and what a client says passes [`filter`] first.
//! Nothing here queues without a bound: a side that does not read makes the other side wait, and a viewer that does
//! not keep up misses frames.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use weir_shared::clock::Clock;
use weir_shared::ids::SessionId;
use weir_shared::time::Timestamp;

use crate::sandbox::BrowserBox;

mod filter;
pub mod live;
mod meter;
mod pipe;
pub mod routes;
mod socket;
mod upgrade;

pub use filter::{Rules, Verdict, judge};
pub use live::LiveView;
pub use meter::Budget;
pub use pipe::{RelayEnd, Source, Upstream, relay_cdp};
pub use socket::serve_cdp_socket;

/// Largest message to a client, bytes: a screenshot of a long page passes, the library's default does not.
pub const MAX_MESSAGE: usize = 256 << 20;
/// Largest message of a client, bytes: Chromium itself takes no more.
pub const MAX_REQUEST: usize = 100 << 20;
/// CDP clients of one session at once.
pub const CLIENTS: usize = 64;
/// Pings keep proxies on the way from closing a quiet connection.
pub const PING: Duration = Duration::from_secs(20);
/// Who says nothing for so long, not even a pong, is gone.
pub const SILENCE: Duration = Duration::from_secs(65);

/// A session's Chromium, as far as the relay needs it.
pub trait Browser: Send + Sync {
    /// A new connection to its DevTools port.
    fn connect(&self) -> BoxFuture<'_, io::Result<TcpStream>>;
    /// Path of the browser-level WebSocket: `/devtools/browser/<uuid>`.
    fn ws_path(&self) -> String;
}

impl Browser for BrowserBox {
    fn connect(&self) -> BoxFuture<'_, io::Result<TcpStream>> {
        Box::pin(Self::connect(self))
    }

    fn ws_path(&self) -> String {
        Self::ws_path(self).to_owned()
    }
}

/// When a session was last used, by how many CDP clients it is used now, and how often its browser was told to do something.
/// Cheap enough for every message.
#[derive(Debug)]
pub struct Activity {
    clock: Clock,
    born: Instant,
    /// Milliseconds from `born` to the last use.
    last_ms: AtomicU64,
    clients: AtomicUsize,
    /// Those of ours among them, who drive the browser past the relay.
    ours: AtomicUsize,
    /// Counted twice for each thing that the browser is told, before and after, and for what it tells of its tabs.
    said: AtomicU64,
}

impl Activity {
    /// Used now, by nobody yet.
    pub fn new(clock: Clock) -> Self {
        let born = clock.instant();
        let (clients, ours) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { clock, born, last_ms: AtomicU64::new(0), clients, ours, said: AtomicU64::new(0) }
    }

    /// Notes a use now.
    pub fn touch(&self) {
        self.last_ms.fetch_max(self.age().as_millis() as u64, Ordering::Relaxed);
    }

    fn age(&self) -> Duration {
        self.clock.instant() - self.born
    }

    /// Time since the last use, by the monotonic clock.
    pub fn idle(&self) -> Duration {
        self.age().saturating_sub(Duration::from_millis(self.last_ms.load(Ordering::Relaxed)))
    }

    /// The last use by the wall clock, for rows and people.
    pub fn last_used(&self) -> Timestamp {
        self.clock.now().plus_ms(-i64::try_from(self.idle().as_millis()).unwrap_or(i64::MAX))
    }

    /// Counts one more client until the returned value is dropped: somebody of ours drives the browser.
    pub fn join(&self) -> Joined<'_> {
        Joined { _counted: [Counted::new(&self.clients), Counted::new(&self.ours)], activity: self }
    }

    /// Notes that the browser is told something, before it is and when it was, or has told of a tab.
    pub fn say(&self) {
        self.said.fetch_add(1, Ordering::SeqCst);
    }

    /// How often that was noted: while it is the same, nobody drives the browser and its tabs are the same. `None`: somebody of
    /// ours drives it.
    pub fn said(&self) -> Option<u64> {
        (self.ours.load(Ordering::SeqCst) == 0).then(|| self.said.load(Ordering::SeqCst))
    }

    /// CDP clients connected now, code boxes included.
    pub fn clients(&self) -> usize {
        self.clients.load(Ordering::Relaxed)
    }
}

/// Somebody of ours who drives the browser, until dropped.
pub struct Joined<'a> {
    _counted: [Counted<'a>; 2],
    activity: &'a Activity,
}

impl Drop for Joined<'_> {
    fn drop(&mut self) {
        self.activity.say();
    }
}

/// What a session offers to connections. Its owner keeps one, and cancels `ended` when the session takes no more calls.
pub struct SessionHandle {
    pub browser: Arc<dyn Browser>,
    pub rules: Arc<Rules>,
    pub activity: Arc<Activity>,
    /// `None`: the session was made with `streamWebView: false`.
    pub live: Option<Arc<LiveView>>,
    /// What its clients may hold in memory together.
    pub budget: Budget,
    /// Places of its clients, code and those outside alike: [`CLIENTS`] of them.
    pub places: Arc<Semaphore>,
    /// Ends every connection of the session.
    pub ended: CancellationToken,
}

/// The sessions of this worker.
pub trait Sessions: Send + Sync {
    /// The session, while it takes calls.
    fn find(&self, id: SessionId) -> Option<Arc<SessionHandle>>;
}

/// What the relays of this process have done, for `/metrics`.
#[derive(Debug)]
pub struct Figures {
    /// CDP clients connected now.
    pub clients: AtomicUsize,
    /// Viewers connected now.
    pub viewers: AtomicUsize,
    /// Bytes of messages from CDP clients.
    pub bytes_in: AtomicU64,
    /// Bytes of messages to CDP clients.
    pub bytes_out: AtomicU64,
    /// Commands refused by the filter.
    pub refused: AtomicU64,
    /// Frames of screencasts taken from browsers.
    pub frames: AtomicU64,
    /// Frames sent to viewers.
    pub frames_sent: AtomicU64,
}

/// The process's figures.
pub static FIGURES: Figures = Figures {
    clients: AtomicUsize::new(0),
    viewers: AtomicUsize::new(0),
    bytes_in: AtomicU64::new(0),
    bytes_out: AtomicU64::new(0),
    refused: AtomicU64::new(0),
    frames: AtomicU64::new(0),
    frames_sent: AtomicU64::new(0),
};

/// One more in a count, until dropped.
pub struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
pub(crate) mod tests;
