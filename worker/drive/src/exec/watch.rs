//! Frees pages that are blocked: by code that was killed, by a client, by their own scripts.
//!
//! A script without end keeps its page from answering anybody: the next runner could not even connect. Nobody can attach
//! to a blocked page either, so one connection is attached to every page from the session's beginning, with nothing
//! switched on. When code has been killed, when a runner does not reach the browser or a page does not answer the agent,
//! every page is asked for an answer, and in one that gives none the running script is terminated. A page that answers is
//! left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::CancellationToken;
use weir_shared::{clock, texts};

/// A page that has not answered by then is blocked. Also how long a termination may take.
const ANSWER_WAIT: Duration = Duration::from_secs(1);
/// Bound on connecting.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Whoever asks for pages to be freed gets their number.
type Request = oneshot::Sender<usize>;

/// Frees the blocked pages of a session and says how many there were.
pub type Free = Arc<dyn Fn() -> BoxFuture<'static, usize> + Send + Sync>;

/// The connection, made at the beginning and again when it was lost.
#[derive(Debug)]
pub(super) struct Watch {
    cdp: PathBuf,
    closed: CancellationToken,
    requests: Mutex<Option<mpsc::Sender<Request>>>,
}

impl Watch {
    /// For the browser behind `cdp`, until `closed`.
    pub fn new(cdp: PathBuf, closed: CancellationToken) -> Self {
        Self { cdp, closed, requests: Mutex::default() }
    }

    /// Has the connection on its way, so that it is there before code can block a page.
    pub fn begin(&self) -> mpsc::Sender<Request> {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(there) = requests.as_ref().filter(|sender| !sender.is_closed()) {
            return there.clone();
        }
        let (sender, receiver) = mpsc::channel(1);
        *requests = Some(sender.clone());
        let (cdp, closed) = (self.cdp.clone(), self.closed.clone());
        tokio::spawn(async move {
            let watching = async {
                let mut attached = timeout(CONNECT_LIMIT, Attached::connect(&cdp)).await??;
                attached.serve(receiver).await
            };
            tokio::select! {
                ended = watching => match ended {
                    Ok(()) => {}
                    Err(error) => tracing::debug!(%error, "the pages of a session are not watched"),
                },
                () = closed.cancelled() => {}
            }
        });
        sender
    }

    /// Terminates what blocks pages; how many there were. Failures are logged: the next runner may still get through.
    pub async fn free(&self) -> usize {
        let (answer, freed) = oneshot::channel();
        let asked = async {
            self.begin().send(answer).await.ok()?;
            freed.await.ok()
        };
        match timeout(CONNECT_LIMIT + 3 * ANSWER_WAIT, asked).await {
            Ok(Some(0)) => 0,
            Ok(Some(pages)) => {
                tracing::info!(pages, "freed pages that were blocked");
                pages
            }
            Ok(None) | Err(_) => {
                tracing::debug!("blocked pages could not be looked for");
                0
            }
        }
    }
}

/// The open connection.
struct Attached {
    socket: WebSocketStream<UnixStream>,
    last_id: i64,
    /// One session a page.
    sessions: BTreeSet<String>,
}

impl Attached {
    async fn connect(cdp: &Path) -> anyhow::Result<Self> {
        let stream = UnixStream::connect(cdp).await?;
        let (socket, _) = tokio_tungstenite::client_async("ws://localhost/", stream).await?;
        let mut this = Self { socket, last_id: 0, sessions: BTreeSet::new() };
        let pages = json!([{"type": "page"}, {"exclude": true}]);
        let params = json!({"autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true, "filter": pages});
        let asked = this.send(None, "Target.setAutoAttach", params).await?;
        // The pages that are there are told of before that is answered. Without an answer they are told of later.
        let attached = async {
            while this.next().await?.is_some_and(|answered| answered != asked) {}
            anyhow::Ok(())
        };
        if let Ok(attached) = timeout(ANSWER_WAIT, attached).await {
            attached?;
        }
        Ok(this)
    }

    async fn send(&mut self, session: Option<&str>, method: &str, params: Value) -> anyhow::Result<i64> {
        self.last_id += 1;
        let mut command = json!({"id": self.last_id, "method": method, "params": params});
        if let Some(session) = session {
            command["sessionId"] = session.into();
        }
        self.socket.send(Message::text(command.to_string())).await?;
        Ok(self.last_id)
    }

    /// Notes the pages that come and go, and serves requests one after another. Ends with the connection.
    async fn serve(&mut self, mut requests: mpsc::Receiver<Request>) -> anyhow::Result<()> {
        loop {
            tokio::select! {
                answered = self.next() => if answered?.is_none() { return Ok(()) },
                request = requests.recv() => {
                    let Some(answer) = request else { return Ok(()) };
                    let freed = self.free().await?;
                    let _ = answer.send(freed);
                }
            }
        }
    }

    /// Reads one message: the number of the command that it answers, 0 for none. `None`: the connection has ended.
    async fn next(&mut self) -> anyhow::Result<Option<i64>> {
        let Some(message) = self.socket.next().await else { return Ok(None) };
        let Ok(message) = texts::read::<Value>(message?.to_text().unwrap_or_default()) else {
            return Ok(Some(0));
        };
        if let Some(session) = message["params"]["sessionId"].as_str() {
            match message["method"].as_str() {
                Some("Target.attachedToTarget") => _ = self.sessions.insert(session.to_owned()),
                Some("Target.detachedFromTarget") => _ = self.sessions.remove(session),
                _ => {}
            }
        }
        Ok(Some(message["id"].as_i64().unwrap_or(0)))
    }

    /// Asks every page; terminates the scripts of those that do not answer. Returns their number.
    async fn free(&mut self) -> anyhow::Result<usize> {
        let everyone = self.sessions.clone();
        let blocked = self.unanswered(everyone, "Runtime.evaluate", json!({"expression": "1"})).await?;
        let number = blocked.len();
        self.unanswered(blocked, "Runtime.terminateExecution", json!({})).await?;
        Ok(number)
    }

    /// Sends a command to each session and returns those that have not answered in time.
    async fn unanswered(
        &mut self,
        sessions: BTreeSet<String>,
        method: &str,
        params: Value,
    ) -> anyhow::Result<BTreeSet<String>> {
        let mut waiting = BTreeMap::new();
        for session in sessions {
            let id = self.send(Some(&session), method, params.clone()).await?;
            waiting.insert(id, session);
        }
        let until = clock::deadline(ANSWER_WAIT);
        while !waiting.is_empty() {
            match tokio::time::timeout_at(until, self.next()).await {
                Ok(answered) => match answered? {
                    Some(id) => _ = waiting.remove(&id),
                    None => break,
                },
                Err(_) => break,
            }
        }
        waiting.retain(|_, session| self.sessions.contains(session));
        Ok(waiting.into_values().collect())
    }
}
