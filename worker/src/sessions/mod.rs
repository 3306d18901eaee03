//! Browser sessions of this worker (spec 2.1, 3): opened when the API asks, closed by it, by time or with the worker.
//!
//! ```text
//! row `opening` ──open──> Chromium in its box, profile unpacked, runners and views ready ──> row `active`
//!               of a scrape: its page brought back before that
//!               delete, ttl, activityTtl, drain: close in good order, archive the profile ──> row `destroyed`
//!               Chromium dies, the box cannot start: no archive                           ──> row `destroyed`
//!               this worker is fenced or killed: the others write the row; boxes die with the process
//! ```
//!
//! A session ends once, whoever asks first: everybody else waits for that end. Its row is billed in the transaction
//! that destroys it.

mod boxes;
mod continuation;
mod cookies;
pub mod page;
mod profile;
mod proxy_route;
mod resources;
pub mod routes;
mod save;
mod session;
mod start;
mod warm;

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use weir_shared::domain::session::{EndReason, Language, SessionState};
use weir_shared::ids::{SessionId, WorkerId};
use weir_shared::lasting;
use weir_shared::store::StoreResult;
use weir_shared::store::sessions as rows;
use weir_shared::time::Timestamp;

pub use profile::Vault;
pub use resources::{OpenError, SessionResources};
use save::Ending;
pub use session::{PromptError, Session};
use warm::WarmPool;

/// How often the time of last activity is written down.
const TOUCH_EVERY: Duration = Duration::from_secs(5);

/// The sessions of one life of the worker.
pub struct Sessions {
    resources: Arc<SessionResources>,
    worker: WorkerId,
    warm: WarmPool,
    open: Mutex<HashMap<SessionId, Arc<Session>>>,
    /// Those on their way to be open.
    opening: watch::Sender<HashSet<SessionId>>,
    tasks: TaskTracker,
    draining: CancellationToken,
    /// The others count this worker as dead: nothing may be written, everything is killed.
    fenced: CancellationToken,
}

impl Sessions {
    /// Starts warming browsers. Sessions end when `fenced` fires, or in good order with [`Sessions::close_all`].
    pub fn start(
        resources: Arc<SessionResources>,
        worker: WorkerId,
        draining: CancellationToken,
        fenced: CancellationToken,
    ) -> Arc<Self> {
        let warm = WarmPool::start(Arc::clone(&resources.sandbox), resources.warm, &draining);
        let sessions = Arc::new(Self {
            resources,
            worker,
            warm,
            open: Mutex::default(),
            opening: watch::Sender::default(),
            tasks: TaskTracker::new(),
            draining,
            fenced,
        });
        let writer = Arc::clone(&sessions);
        let writing = move || {
            let writer = Arc::clone(&writer);
            async move { writer.write_activity().await }
        };
        sessions.tasks.spawn(lasting::again("activity of sessions", writing));
        sessions
    }

    /// The open session with this id.
    pub fn find(&self, id: SessionId) -> Option<Arc<Session>> {
        self.lock().get(&id).cloned()
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    /// Browsers that wait started.
    pub fn warm_count(&self) -> usize {
        self.warm.count()
    }

    /// Opens the session whose row says `opening` and this worker. On an error the row is destroyed, unbilled. The
    /// runner of `language` is started beside it.
    pub async fn open(self: &Arc<Self>, id: SessionId, language: Option<Language>) -> Result<(), OpenError> {
        let opening = Opening::of(Arc::clone(self), id);
        // In a task of its own: a caller who hangs up does not leave half a session behind.
        let opened = self.tasks.spawn(async move { Arc::clone(&opening.0).open_now(id, language).await }).await;
        opened.unwrap_or_else(|panic| Err(OpenError::Browser(format!("internal error: {panic}"))))
    }

    async fn open_now(self: Arc<Self>, id: SessionId, language: Option<Language>) -> Result<(), OpenError> {
        if self.draining.is_cancelled() || self.fenced.is_cancelled() {
            self.give_up(id, None).await;
            return Err(OpenError::Stopping);
        }
        let row = rows::load(&self.resources.db, id).await?.ok_or(OpenError::NotOpening)?;
        if row.worker_id != self.worker {
            return Err(OpenError::NotOurs);
        }
        if row.state != SessionState::Opening {
            return Err(OpenError::NotOpening);
        }
        let session = match Session::open(&self.resources, &self.warm, &row, language).await {
            Ok(session) => session,
            Err(error) => {
                tracing::warn!(session.id = %id, %error, "a session could not be opened");
                // Kept with the row: its caller may have gone, and another one asks for the same scrape.
                let why = if let OpenError::Replay(why) = &error { Some(why.clone()) } else { None };
                self.give_up(id, why).await;
                return Err(error);
            }
        };
        self.lock().insert(id, Arc::clone(&session));
        let found = rows::Found { profile: session.profile_version, warning: session.warning };
        let activated = unbroken(self.activate(id, found)).await;
        if !matches!(activated, Some(Ok(true))) {
            self.lock().remove(&id);
            session.kill().await;
            activated.transpose()?;
            return Err(OpenError::NotOpening);
        }
        tracing::info!(session.id = %id, team.id = %row.team_id, "session opened");
        let sessions = Arc::clone(&self);
        self.tasks.spawn(async move { sessions.live(session).await });
        Ok(())
    }

    async fn activate(&self, id: SessionId, found: rows::Found<'_>) -> StoreResult<bool> {
        let mut tx = self.resources.db.begin().await?;
        let activated = rows::activate(&mut tx, id, found, self.resources.db.now()).await?;
        tx.commit().await?;
        Ok(activated)
    }

    /// A session that never came to life is destroyed, unbilled, with what is to be said of it.
    async fn give_up(&self, id: SessionId, warning: Option<String>) {
        let ending = Ending { archive: None, warning };
        if let Err(error) = save::destroy(&self.resources.db, id, EndReason::NotOpened, &ending).await {
            tracing::warn!(session.id = %id, %error, "a session that did not open is left to the sweeper");
        }
    }

    /// Waits for what ends the session, and ends it. Nobody else does: where that breaks, the session has crashed.
    async fn live(self: Arc<Self>, session: Arc<Session>) {
        let end = tokio::select! {
            biased;
            () = self.fenced.cancelled() => None,
            end = unbroken(self.until_shut(&session)) => Some(end),
        };
        let Some(end) = end else {
            self.lock().remove(&session.id);
            session.kill().await;
            return;
        };
        let (reason, ending) = match end {
            Some(end) => end,
            None => {
                tracing::error!(session.id = %session.id, "what looks after a session broke; the session is ended");
                lasting::again("kill of a session", || session.kill()).await;
                (EndReason::Crashed, session.cut_short())
            }
        };
        lasting::again("end of a session", || self.write_end(session.id, reason, &ending)).await;
        // Forgotten only after its row has ended: a session that is active in the rows and unknown here counts as lost.
        self.lock().remove(&session.id);
        session.ended();
        self.resources.metrics.sessions_ended.with_label_values(&[reason.as_str()]).inc();
        tracing::info!(session.id = %session.id, reason = reason.as_str(), "session ended");
    }

    /// Waits for what ends the session and shuts it.
    async fn until_shut(&self, session: &Session) -> (EndReason, Ending) {
        let reason = session.until_end().await;
        session.takes_no_more_calls();
        self.write_close(session.id, reason).await;
        (reason, session.shut(&self.resources, reason).await)
    }

    /// Destroys the row, with the profile's state. Tried until it is written, or the others do it.
    async fn write_end(&self, id: SessionId, reason: EndReason, ending: &Ending) {
        let mut pause = Duration::from_millis(100);
        loop {
            match save::destroy(&self.resources.db, id, reason, ending).await {
                Ok(()) => break,
                Err(error) if self.fenced.is_cancelled() => {
                    tracing::warn!(session.id = %id, %error, "the session's end is left to the others");
                    break;
                }
                Err(error) => {
                    tracing::warn!(session.id = %id, %error, "the session's end cannot be written yet");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(2));
                }
            }
        }
    }

    /// From here on nothing is billed, and callers hear that the session is gone. Not written, the end comes later.
    async fn write_close(&self, id: SessionId, reason: EndReason) {
        let write = async {
            let mut tx = self.resources.db.begin_relaxed().await?;
            rows::begin_close(&mut tx, id, reason, self.resources.db.now()).await?;
            tx.commit().await
        };
        match tokio::time::timeout(Duration::from_secs(2), write).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(session.id = %id, %error, "the beginning of a session's end is not written")
            }
            Err(_) => tracing::warn!(session.id = %id, "the beginning of a session's end is not written in time"),
        }
    }

    /// Ends the session in good order and waits until its row says so; one that is being opened is ended once it is open.
    /// `false`: it is not open here.
    pub async fn close(&self, id: SessionId, reason: EndReason) -> bool {
        let _ = self.opening.subscribe().wait_for(|opening| !opening.contains(&id)).await;
        let Some(session) = self.find(id) else { return false };
        session.ask_to_end(reason);
        session.until_ended().await;
        true
    }

    /// The worker stops: every session ends in good order, within `patience`; what is left is killed and its row
    /// destroyed.
    pub async fn close_all(&self, patience: Duration) {
        let open: Vec<Arc<Session>> = self.lock().values().cloned().collect();
        for session in &open {
            session.ask_to_end(EndReason::WorkerStopped);
        }
        let all = futures_util::future::join_all(open.iter().map(|session| session.until_ended()));
        if tokio::time::timeout(patience, all).await.is_err() {
            let left: Vec<Arc<Session>> = self.lock().values().cloned().collect();
            tracing::warn!(sessions = left.len(), "some sessions did not end in time; they are killed");
            for session in left {
                session.kill().await;
                let (reason, ending) = (EndReason::WorkerStopped, session.cut_short());
                if let Err(error) = save::destroy(&self.resources.db, session.id, reason, &ending).await {
                    tracing::warn!(session.id = %session.id, %error, "a session's end is left to the sweeper");
                }
            }
        }
        self.tasks.close();
    }

    /// Kills what waits started. Call when the life is over.
    pub async fn stop(&self) {
        self.warm.stop().await;
    }

    async fn write_activity(&self) {
        let mut written: HashMap<SessionId, Timestamp> = HashMap::new();
        loop {
            tokio::select! {
                () = tokio::time::sleep(TOUCH_EVERY) => {}
                () = self.draining.cancelled() => return,
                () = self.fenced.cancelled() => return,
            }
            let now: Vec<(SessionId, Timestamp)> =
                self.lock().iter().map(|(id, session)| (*id, session.activity().last_used())).collect();
            let news: Vec<_> = now.iter().filter(|(id, at)| written.get(id) != Some(at)).copied().collect();
            written = now.into_iter().collect();
            if news.is_empty() {
                continue;
            }
            let write = async {
                let mut tx = self.resources.db.begin_relaxed().await?;
                let live = rows::touch(&mut tx, &news).await?;
                tx.commit().await.map(|()| live)
            };
            match write.await {
                // Destroyed in the rows by somebody else, such as an API that did not reach us.
                Ok(live) => {
                    for (id, _) in news.iter().filter(|(id, _)| !live.contains(id)) {
                        if let Some(session) = self.find(*id) {
                            session.ask_to_end(EndReason::Deleted);
                        }
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "times of last activity cannot be written; the next write has them");
                    written.clear();
                }
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Arc<Session>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a future gives; `None`: it panicked.
async fn unbroken<T>(work: impl Future<Output = T>) -> Option<T> {
    AssertUnwindSafe(work).catch_unwind().await.ok()
}

/// A session that is being opened, for as long as it is.
struct Opening(Arc<Sessions>, SessionId);

impl Opening {
    fn of(sessions: Arc<Sessions>, id: SessionId) -> Self {
        sessions.opening.send_modify(|opening| _ = opening.insert(id));
        Self(sessions, id)
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.0.opening.send_modify(|opening| _ = opening.remove(&self.1));
    }
}
