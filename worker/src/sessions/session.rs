//! One open session: its browser, what is connected to it, and its end.

use std::os::unix::fs::{DirBuilderExt as _, chown};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::UnixListener;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use weir_shared::blocking;
use weir_shared::clock::{self, Stopwatch};
use weir_shared::domain::profile::ProfileUse;
use weir_shared::domain::session::{EndReason, Language};
use weir_shared::ids::{SessionId, TeamId};
use weir_shared::llm::{Asker, TokenMeter};
use weir_shared::store::sessions::SessionRow;
use weir_shared::worker_api::sessions::RunBounds;

use url::Url;

use super::boxes::Boxes;
use super::continuation;
use super::cookies::settable;
use super::proxy_route::{SessionRoute, Wanted};
use super::resources::{OpenError, SessionResources};
use super::save::{Archive, Ending, NOT_SAVED, not_saved};
use super::start::{load, owner, start_cold};
use super::warm::WarmPool;
use crate::agent::{self, AgentError, Home, Keep, Limits};
use crate::browser::Companion;
use crate::browser::cdp::Cdp;
use crate::exec::{ExecError, Execution, Runners};
use crate::fetch::{Chosen, ProxyPools};
use crate::relay::{self, Activity, Budget, LiveView, Rules, SessionHandle};
use crate::sandbox::{self, BrowserBox, Exit, SessionDir};

/// One call to the browser while a session opens or closes.
const CALL: Duration = Duration::from_secs(3);
/// How long a browser may take to end by itself; past it the profile is not saved.
const CLOSE: Duration = Duration::from_secs(5);
/// Time to store a profile, while the place of blobs or the database is away.
const STORE: Duration = Duration::from_secs(120);
/// How long a proxy may take to accept a connection when something has failed.
const PROXY_ANSWER: Duration = Duration::from_secs(2);
/// How often running code counts as use.
const IDLE_CHECK: Duration = Duration::from_secs(1);

/// How far a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    Ending(EndReason),
    Ended,
}

/// An open session.
pub struct Session {
    pub id: SessionId,
    pub team: TeamId,
    /// The version of its profile that was loaded.
    pub profile_version: Option<i64>,
    /// What of its way out is not as it was asked for.
    pub warning: Option<&'static str>,
    /// The operator's proxy that it goes through for as long as it lives, with its place among them.
    proxy: Option<Chosen>,
    proxies: Arc<ProxyPools>,
    profile: Option<ProfileUse>,
    expires: Instant,
    idle_limit: Duration,
    dir: Arc<SessionDir>,
    browser: Arc<BrowserBox>,
    runners: Runners,
    handle: Arc<SessionHandle>,
    /// What keeps its appearance up, if it has one of its own.
    companion: OnceLock<Companion>,
    /// Of a session that continues a scrape: where the scrape ended.
    scraped: OnceLock<Url>,
    /// Held by the prompt that is worked on.
    agent: tokio::sync::Mutex<()>,
    phase: watch::Sender<Phase>,
    /// The listener of the code boxes' way to the browser.
    socket: Mutex<Option<tokio::task::JoinHandle<()>>>,
}

impl Session {
    /// Opens the session of a row in state `opening`, and starts the runner of `language` beside it. Nothing is left
    /// running on an error.
    pub(super) async fn open(
        resources: &SessionResources,
        warm: &WarmPool,
        row: &SessionRow,
        language: Option<Language>,
    ) -> Result<Arc<Self>, OpenError> {
        let began = Stopwatch::start();
        let wanted = Wanted::of(resources, row).await?;
        let route = SessionRoute::choose(resources, &wanted).await?;
        let mut version = None;
        let mut saved = None;
        if let Some(profile) = &row.profile
            && let Some((number, archive)) = load(resources, row.team_id, &profile.name).await?
        {
            version = Some(number);
            saved = Some(archive);
        }
        // A browser that waits has an empty data directory of its own, which serves an empty profile as well.
        let waiting = if saved.is_none() { warm.take().await } else { None };
        let is_warm = waiting.is_some();
        let started = match waiting {
            Some(started) => started,
            None => start_cold(&resources.sandbox, saved).await?,
        };
        let cookies = started.cookies.clone();
        let (dir, browser) = (Arc::clone(&started.dir), Arc::clone(&started.browser));
        let session = match Self::around(resources, row, version, route, dir, browser) {
            Ok(session) => session,
            Err(error) => {
                started.discard().await;
                return Err(OpenError::Browser(error.to_string()));
            }
        };
        if let Some(cookies) = cookies
            && let Err(error) = session.import_cookies(&cookies).await
        {
            session.kill().await;
            return Err(OpenError::Profile(error.to_string()));
        }
        if let Some(language) = language {
            session.runners.warm(language).await;
        }
        if let Err(error) = session.dress(resources, wanted).await {
            session.kill().await;
            return Err(error);
        }
        resources.metrics.session_opened(is_warm, version.is_some(), began.elapsed().as_secs_f64());
        Ok(session)
    }

    /// Has the browser appear as it is wanted, and brings back what a scrape left.
    async fn dress(&self, resources: &SessionResources, wanted: Wanted) -> Result<(), OpenError> {
        let Some(scrape) = wanted.scrape else {
            if let Some(location) = &wanted.location {
                let companion = continuation::appear_from(location, self.own_cdp().await?).await?;
                let _ = self.companion.set(companion);
            }
            return Ok(());
        };
        let let_ads_in = || {
            let exit = Exit { upstream: self.proxy.as_ref().map(|chosen| chosen.place), refuses_ads: false };
            let refused = scrape.kept.options.sites.refused();
            wanted.refuses_ads && resources.sandbox.let_out(&self.browser, exit, refused).is_ok()
        };
        let cdp = self.own_cdp().await?;
        match Companion::bring_back(cdp, &scrape.request(), &scrape.end, &let_ads_in).await {
            // Set once: a session continues one scrape.
            Ok(companion) => _ = self.companion.set(companion),
            Err(_) if self.proxy_trouble().await.is_some() => return Err(OpenError::NoProxy),
            Err(error) => return Err(continuation::not_replayed(&error)),
        }
        let _ = self.scraped.set(scrape.end);
        Ok(())
    }

    async fn own_cdp(&self) -> Result<Cdp, OpenError> {
        self.cdp().await.map_err(|error| OpenError::Browser(error.to_string()))
    }

    /// What is to be said of a failure in a session whose proxy takes no connections. `None`: that is not the cause.
    pub async fn proxy_trouble(&self) -> Option<&'static str> {
        let chosen = self.proxy.as_ref()?;
        if chosen.proxy.answers(PROXY_ANSWER).await {
            return None;
        }
        self.proxies.failed(chosen.place);
        Some("The proxy that this session goes through cannot be reached, and the session never goes past it.")
    }

    fn around(
        resources: &SessionResources,
        row: &SessionRow,
        profile_version: Option<i64>,
        route: SessionRoute,
        dir: Arc<SessionDir>,
        browser: Arc<BrowserBox>,
    ) -> anyhow::Result<Arc<Self>> {
        resources.sandbox.let_out(&browser, route.exit, route.refused)?;
        let activity = Arc::new(Activity::new(resources.db.clock().clone()));
        let ended = CancellationToken::new();
        // The session's files, where its browser sees them.
        let files = if resources.sandbox.status().boxed { PathBuf::from(sandbox::HOME) } else { dir.work.clone() };
        let rules = Arc::new(Rules { downloads: files.join("downloads"), uploads: vec![files] });
        let shared: Arc<dyn relay::Browser> = Arc::clone(&browser) as _;
        let live = row.stream_web_view.then(|| LiveView::new(Arc::clone(&shared), Arc::clone(&activity)));
        let handle = Arc::new(SessionHandle {
            browser: shared,
            rules,
            activity,
            live,
            budget: Budget::of(row.team_id),
            places: Arc::new(Semaphore::new(relay::CLIENTS)),
            ended: ended.clone(),
        });
        let path = dir.io.join("cdp.sock");
        let listener = UnixListener::bind(&path)?;
        let socket = tokio::spawn(relay::serve_cdp_socket(listener, Arc::clone(&handle)));
        let tmp = dir.root.join("tmp");
        std::fs::DirBuilder::new().mode(0o700).create(&tmp)?;
        let (uid, gid) = dir.owner();
        chown(&tmp, Some(uid), Some(gid))?;
        let boxes = Boxes {
            sandbox: Arc::clone(&resources.sandbox),
            dir: Arc::clone(&dir),
            tmp,
            cdp: path.clone(),
            // What code asks for is what its author wants, by the session's proxy all the same.
            exit: Exit { refuses_ads: false, ..route.exit },
        };
        let runners = Runners::new(Arc::new(boxes), path, &handle.activity, Arc::clone(&resources.assets));
        Ok(Arc::new(Self {
            id: row.id,
            team: row.team_id,
            profile_version,
            warning: route.proxy.warning,
            proxy: route.proxy.chosen,
            proxies: Arc::clone(&resources.proxies),
            profile: row.profile.clone(),
            expires: clock::deadline(Duration::from_millis(row.ttl_ms.unsigned_abs())),
            idle_limit: Duration::from_millis(row.activity_ttl_ms.unsigned_abs()),
            dir,
            browser,
            runners,
            handle,
            companion: OnceLock::new(),
            scraped: OnceLock::new(),
            agent: tokio::sync::Mutex::default(),
            phase: watch::Sender::new(Phase::Open),
            socket: Mutex::new(Some(socket)),
        }))
    }

    /// What connections need of the session; `None` once it takes no more calls.
    pub fn handle(&self) -> Option<Arc<SessionHandle>> {
        (!self.handle.ended.is_cancelled()).then(|| Arc::clone(&self.handle))
    }

    /// When it was last used.
    pub fn activity(&self) -> &Activity {
        &self.handle.activity
    }

    /// Memory of its browser, bytes.
    pub async fn memory(&self) -> u64 {
        self.browser.memory().await
    }

    /// Has the agent work on a task in it, at the cost that `meter` then tells; prompts stand in line. `None`: the session takes no more calls, or was never
    /// one that continues a scrape.
    pub async fn prompt(
        &self,
        model: &Asker,
        task: &str,
        timeout: Duration,
        meter: &TokenMeter,
    ) -> Option<Result<agent::TaskOutcome, PromptError>> {
        let home = Home::new(self.scraped.get()?, task);
        self.prompt_within(model, task, timeout, (home, meter, None)).await
    }

    /// The same where the agent may do no more than `home` allows, and `keep` has each answer of the model first.
    pub async fn prompt_within(
        &self,
        model: &Asker,
        task: &str,
        timeout: Duration,
        (home, meter, keep): (Home, &TokenMeter, Option<&Keep>),
    ) -> Option<Result<agent::TaskOutcome, PromptError>> {
        let handle = self.handle()?;
        self.scraped.get()?;
        let deadline = clock::deadline(timeout);
        let work = async {
            let in_line = tokio::time::timeout_at(deadline - timeout / 2, self.agent.lock()).await;
            let _turn = in_line.map_err(|_| PromptError::Busy)?;
            let _client = handle.activity.join();
            let cdp = self.cdp().await.map_err(|_| AgentError::Browser)?;
            let tell = |text: &str| {
                if let Some(live) = &handle.live {
                    live.announce(text);
                }
            };
            let limits = Limits { home, deadline, meter, keep, free: self.runners.free() };
            Ok(agent::work(cdp, model, task, limits, tell).await?)
        };
        tokio::select! {
            outcome = work => Some(outcome),
            () = stays_busy(&handle) => None,
            () = handle.ended.cancelled() => None,
        }
    }

    /// Runs code in it. `None`: the session takes no more calls.
    pub async fn execute(
        &self,
        language: Language,
        code: &str,
        bounds: RunBounds,
    ) -> Option<Result<Execution, ExecError>> {
        let handle = self.handle()?;
        let result = tokio::select! {
            result = self.runners.execute(language, code, bounds) => result,
            () = stays_busy(&handle) => return None,
            () = handle.ended.cancelled() => return None,
        };
        handle.activity.touch();
        Some(result)
    }

    /// Asks the session to end; the first reason stands.
    pub fn ask_to_end(&self, reason: EndReason) {
        self.phase.send_if_modified(|phase| {
            let first = *phase == Phase::Open;
            if first {
                *phase = Phase::Ending(reason);
            }
            first
        });
    }

    /// Waits until the session has ended and its row says so.
    pub async fn until_ended(&self) {
        let mut phase = self.phase.subscribe();
        let _ = phase.wait_for(|phase| *phase == Phase::Ended).await;
    }

    pub(super) fn ended(&self) {
        self.phase.send_replace(Phase::Ended);
    }

    /// Waits for the first thing that ends the session.
    pub(super) async fn until_end(&self) -> EndReason {
        let mut phase = self.phase.subscribe();
        let asked = async {
            match phase.wait_for(|phase| *phase != Phase::Open).await.map(|phase| *phase) {
                Ok(Phase::Ending(reason)) => reason,
                Ok(_) | Err(_) => EndReason::Deleted,
            }
        };
        let idle = async {
            loop {
                let left = self.idle_limit.saturating_sub(self.activity().idle());
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left.max(Duration::from_millis(20))).await;
            }
        };
        let full = async {
            let used = self.dir.disk().overfull().await;
            tracing::warn!(session.id = %self.id, ?used, "a session that filled more disk than it may is ended");
        };
        tokio::select! {
            biased;
            reason = asked => reason,
            () = self.browser.exited() => EndReason::Crashed,
            () = full => EndReason::Crashed,
            () = tokio::time::sleep_until(self.expires) => EndReason::Ttl,
            () = idle => EndReason::Idle,
        }
    }

    /// Ends every connection and refuses new ones.
    pub(super) fn takes_no_more_calls(&self) {
        if let Some(live) = &self.handle.live {
            live.end("The session has ended.");
        }
        self.handle.ended.cancel();
        if let Some(socket) = self.socket.lock().unwrap_or_else(PoisonError::into_inner).take() {
            socket.abort();
        }
    }

    /// Ends the browser: by asking it when a profile is to be saved, by force otherwise. Returns what is to be written with
    /// its end. Every process and the directory are gone when this returns.
    pub(super) async fn shut(&self, resources: &SessionResources, reason: EndReason) -> Ending {
        self.runners.close().await;
        let mut ending = Ending::default();
        if let Some(profile) = self.profile.as_ref().filter(|profile| profile.save_changes)
            && reason != EndReason::Crashed
        {
            match self.close_and_pack(resources, profile).await {
                Ok(packed) => ending.archive = Some(packed),
                Err(error) => {
                    ending.warning = Some(not_saved(&error));
                    resources.metrics.profile_failures.inc();
                    tracing::warn!(
                        session.id = %self.id, error = format!("{error:#}"),
                        "the profile is not saved; its last version stays"
                    );
                }
            }
        }
        self.kill().await;
        ending
    }

    /// What is said of a session that had to be killed at the end.
    pub(super) fn cut_short(&self) -> Ending {
        let saves = self.profile.as_ref().is_some_and(|profile| profile.save_changes);
        Ending { archive: None, warning: saves.then(|| NOT_SAVED.to_owned()) }
    }

    async fn close_and_pack(&self, resources: &SessionResources, profile: &ProfileUse) -> anyhow::Result<Archive> {
        let cdp = self.cdp().await?;
        let by = clock::deadline(CALL);
        let mut all: Value = cdp.send_as("Storage.getCookies", None, json!({})).by(by).await?;
        let mut cookies: Vec<Value> = serde_json::from_value(all["cookies"].take())?;
        if let Some(companion) = self.companion.get() {
            companion.brought.leave_out(&mut cookies);
        }
        let cookies = serde_json::to_vec(&cookies)?;
        // The answer may or may not come before the connection ends.
        let _ = cdp.send_as::<Value>("Browser.close", None, json!({})).by(clock::deadline(CALL)).await;
        drop(cdp);
        tokio::time::timeout(CLOSE, self.browser.exited())
            .await
            .map_err(|_| anyhow::anyhow!("the browser did not end within {CLOSE:?}"))?;
        let (vault, home, owner) = (resources.vault.clone(), self.dir.home.clone(), owner(self.team, &profile.name));
        let packed = blocking::run(move || vault.pack(&home, &cookies, &owner)).await??;
        let (key, by) = (format!("profiles/{}/{}.bin", self.team, self.id), clock::deadline(STORE));
        let archive = Archive::store(&resources.db, &resources.blobs, key, packed, by).await?;
        resources.metrics.profile_bytes.inc_by(archive.size.unsigned_abs());
        Ok(archive)
    }

    async fn import_cookies(&self, cookies: &[u8]) -> anyhow::Result<()> {
        let cookies: Vec<Value> = serde_json::from_slice(cookies)?;
        let cookies: Vec<Value> = cookies.into_iter().map(settable).collect();
        if cookies.is_empty() {
            return Ok(());
        }
        let cdp = self.cdp().await?;
        let by = clock::deadline(CALL);
        cdp.send_as::<Value>("Storage.setCookies", None, json!({ "cookies": cookies })).by(by).await?;
        Ok(())
    }

    async fn cdp(&self) -> anyhow::Result<Cdp> {
        let stream = tokio::time::timeout(CALL, self.browser.connect()).await??;
        tokio::time::timeout(CALL, Cdp::connect_over(stream, self.browser.ws_path())).await?
    }

    /// Kills everything of the session and removes its directory; safe to repeat.
    pub(super) async fn kill(&self) {
        self.takes_no_more_calls();
        self.runners.close().await;
        self.browser.kill().await;
    }
}

/// What runs is use, however quiet it is: keeps the session from being idle, and never ends.
async fn stays_busy(handle: &SessionHandle) {
    loop {
        handle.activity.touch();
        tokio::time::sleep(IDLE_CHECK).await;
    }
}

/// Why a prompt was not worked on: nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    #[error("another prompt is still being worked on")]
    Busy,
    #[error(transparent)]
    Agent(#[from] AgentError),
}
