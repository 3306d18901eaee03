//! Many browsers, many pages: lends pages, watches browsers, replaces those that die or have served long.
//!
//! Each of the N slots is looked after by one task:
//!
//! ```text
//!            +--- backoff, breaker after repeated failures ---+
//!            v                                                |
//! (asked?) launch --ok--> accepting --crash, given up--> stop-+
//!                             |
//!                             +-- served enough pages, old, too much memory:
//!                                 launch the next one first, then drain and stop this one
//! ```
//!
//! A page that is lent always comes back or dies with its browser; a page under which a browser was lost is rendered once
//! more in one of its own (`alone`).

mod alone;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::bail;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use weir_fetch::AdHosts;
use weir_sandbox::{BrowserSpec, Purpose, Sandbox};
use weir_shared::clock::{self, Stopwatch};
use weir_shared::guests::{Guests, Holder, STILL};
use weir_shared::{blocking, lasting, random};

use super::browser_process::{BrowserProcess, PageAccess};
use super::error::RenderError;
use super::outgrown::{self, PageBounds};
use super::{RenderRequest, Rendered, flooding, page};

/// Pause after the first failed launch; doubles up to [`MAX_BACKOFF`].
const BACKOFF: Duration = Duration::from_millis(250);
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// Launches that fail in a row before renders are refused instead of kept waiting.
const BREAKER: u32 = 3;

/// How often a browser is asked whether it lives. Death is seen at once, on the socket; this finds hangs.
const PING_EVERY: Duration = Duration::from_secs(10);

/// How often its memory is looked at, in pings; it takes some milliseconds.
const WEIGH_EVERY: u32 = 3;

/// Idle time after which the browser for screenshots is stopped, unless the configuration says another.
const PICTURES_IDLE: Duration = Duration::from_secs(60);

/// How long the pages of a browser that is replaced may still run.
const DRAIN: Duration = Duration::from_secs(60);

/// The same for a browser that no longer obeys.
const SHORT_DRAIN: Duration = Duration::from_secs(2);

/// How a pool is made.
#[derive(Debug, Clone)]
pub struct BrowserConfig {
    /// Browsers that run at once; one more runs while screenshots are taken.
    pub browsers: usize,
    /// Pages that run in one browser at once.
    pub pages_per_browser: usize,
    /// The worker's own address of the egress proxy, to ask why it refused a page.
    pub egress_proxy: SocketAddr,
    /// The same of those that go on through the operator's proxies, by place.
    pub upstreams: Arc<[SocketAddr]>,
    /// What pages whose callers want no ads are kept from.
    pub ads: Arc<AdHosts>,
    /// Pages after which a browser is replaced.
    pub pages_per_life: u32,
    /// Age at which a browser is replaced.
    pub max_age: Duration,
    /// Memory of all its processes at which a browser is replaced, bytes.
    pub memory_limit: u64,
    /// Memory of a page's process at which that page is ended, bytes.
    pub page_memory: u64,
    /// Browsers start with the first page that asks for one, and stop when they had none for this long; `None`: they
    /// start with the pool and stay.
    pub idle_stop: Option<Duration>,
    /// Further flags, for tests and odd hosts.
    pub extra_flags: Vec<String>,
}

impl Default for BrowserConfig {
    fn default() -> Self {
        Self {
            browsers: 1,
            pages_per_browser: 8,
            egress_proxy: SocketAddr::from(([127, 0, 0, 1], 9)),
            upstreams: Arc::default(),
            ads: Arc::new(AdHosts::builtin()),
            pages_per_life: 500,
            max_age: Duration::from_secs(60 * 60),
            memory_limit: 1_500 << 20,
            page_memory: 1 << 30,
            idle_stop: None,
            extra_flags: Vec::new(),
        }
    }
}

impl BrowserConfig {
    /// Ways out that pages of one browser may have to themselves: as many as pages, and as many again for those that are
    /// being closed.
    fn own_exits(&self) -> u16 {
        u16::try_from(2 * (self.pages() + self.guests())).unwrap_or(u16::MAX)
    }

    fn pages(&self) -> usize {
        self.pages_per_browser.max(1)
    }

    /// Pages of one browser that may run beside those, while others take long.
    fn guests(&self) -> usize {
        self.pages().div_ceil(2)
    }
}

/// Figures for metrics and readiness.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Browsers that take pages now.
    pub alive: usize,
    /// Pages lent now.
    pub pages: usize,
    /// Renders that wait for a page now.
    pub waiting: usize,
    /// Browsers that died on their own, since the start.
    pub crashes: u64,
    /// Browsers started.
    pub launches: u64,
    /// Launches that failed.
    pub failed_launches: u64,
    /// Browsers replaced for age, memory or disobedience.
    pub recycled: u64,
    /// Renders finished, failed ones included.
    pub renders: u64,
    /// Pages rendered in the tab of another page of their site.
    pub followers: u64,
}

struct PoolState {
    /// Browsers that take pages.
    accepting: Vec<Arc<BrowserProcess>>,
    /// What went wrong last with the browsers' start, until one has started.
    trouble: Option<String>,
    /// It has gone wrong for so long that nobody is kept waiting.
    is_broken: bool,
    waiting: usize,
    guests: Guests,
}

impl PoolState {
    fn new(config: &BrowserConfig) -> Self {
        let guests = Guests::new(config.pages());
        Self { accepting: Vec::new(), trouble: None, is_broken: false, waiting: 0, guests }
    }

    /// Why nobody is kept waiting, while that is so.
    fn broken(&self) -> Option<&str> {
        self.trouble.as_deref().filter(|_| self.is_broken)
    }

    /// What a page has met that has waited for a browser of this kind until its time was over: the page is not to blame
    /// where there is none.
    fn end_of_wait(&self, kind: Kind) -> RenderError {
        match &self.trouble {
            Some(trouble) if !self.accepting.iter().any(|c| c.kind() == kind) => {
                RenderError::Unavailable(trouble.clone())
            }
            _ => RenderError::Timeout,
        }
    }
}

#[derive(Default)]
struct Counters {
    crashes: AtomicU64,
    launches: AtomicU64,
    failed_launches: AtomicU64,
    recycled: AtomicU64,
    renders: AtomicU64,
    followers: AtomicU64,
}

struct Inner {
    config: BrowserConfig,
    sandbox: Arc<Sandbox>,
    state: Mutex<PoolState>,
    /// A page came back, a browser started, or the pool changed in another way.
    freed: Notify,
    /// Somebody wants a page without pictures, or with them.
    asked: Notify,
    asked_pictures: Notify,
    suspects: alone::Suspects,
    counters: Counters,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// The browsers of a worker. Dropping it ends them.
pub struct BrowserPool {
    inner: Arc<Inner>,
}

impl BrowserPool {
    /// Prepares the pool and returns; browsers start in the background.
    ///
    /// # Errors
    /// When there is no Chromium.
    pub fn start(sandbox: Arc<Sandbox>, config: BrowserConfig) -> anyhow::Result<Arc<Self>> {
        let Some(program) = &sandbox.status().chromium else { bail!(sandbox.no_chromium()) };
        tracing::info!(browser.path = %program.display(), "using Chromium");
        let inner = Arc::new(Inner {
            sandbox,
            state: Mutex::new(PoolState::new(&config)),
            freed: Notify::new(),
            asked: Notify::new(),
            asked_pictures: Notify::new(),
            suspects: alone::Suspects::default(),
            counters: Counters::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            config,
        });
        for _ in 0..inner.config.browsers.max(1) {
            inner.tasks.spawn(keep_slot(Arc::clone(&inner), Kind::Blind));
        }
        inner.tasks.spawn(keep_slot(Arc::clone(&inner), Kind::Pictures));
        Ok(Arc::new(Self { inner }))
    }

    /// Renders one page by the deadline of the request.
    ///
    /// # Errors
    /// See [`RenderError`]; [`RenderError::is_retryable`] tells failures of ours from those of the page.
    pub async fn render(&self, mut request: RenderRequest) -> Result<Rendered, RenderError> {
        match self.render_once(&request).await {
            Err(error) if request.wants_ads_after(&error) => {
                request.block_ads = false;
                self.render_once(&request).await
            }
            outcome => outcome,
        }
    }

    /// Beside other pages, or alone once a browser was lost under it.
    async fn render_once(&self, request: &RenderRequest) -> Result<Rendered, RenderError> {
        let kind = if request.shows_pictures() { Kind::Pictures } else { Kind::Blind };
        let now = clock::instant();
        // Alone it has half of its time at least; otherwise it comes back with all of it.
        let until = now + request.deadline.saturating_duration_since(now) / 2;
        if !self.inner.suspects.hold(request, now) {
            match self.render_beside_others(kind, request).await {
                Err(RenderError::BrowserLost) if !self.inner.stop.is_cancelled() => {}
                outcome => return outcome,
            }
            self.inner.suspects.note(request, clock::instant());
            if request.acting.has_begun() {
                return Err(RenderError::BrowserLost);
            }
        }
        alone::render(&self.inner, kind, request, until).await
    }

    async fn render_beside_others(&self, kind: Kind, request: &RenderRequest) -> Result<Rendered, RenderError> {
        let lease = self.inner.lend(kind, request.holder, request.deadline).await?;
        let outcome = page::render(&lease.process, request).await;
        self.inner.counters.renders.fetch_add(1, Ordering::Relaxed);
        if outcome.as_ref().is_ok_and(|rendered| rendered.is_follower) {
            self.inner.counters.followers.fetch_add(1, Ordering::Relaxed);
        }
        match outcome {
            // A step of the browser's own ran out of time, not the page.
            Err(RenderError::Timeout) if clock::instant() < request.deadline => {
                lease.process.give_up("a call got no answer");
                Err(RenderError::BrowserLost)
            }
            Err(e) if e.is_retryable() && lease.process.cdp.closed().is_cancelled() => Err(RenderError::BrowserLost),
            outcome => outcome,
        }
    }

    /// Figures of now.
    pub fn stats(&self) -> PoolStats {
        let state = self.inner.lock();
        let counters = &self.inner.counters;
        PoolStats {
            alive: state.accepting.len(),
            pages: state.accepting.iter().map(|c| c.open.load(Ordering::Relaxed)).sum(),
            waiting: state.waiting,
            crashes: counters.crashes.load(Ordering::Relaxed),
            launches: counters.launches.load(Ordering::Relaxed),
            failed_launches: counters.failed_launches.load(Ordering::Relaxed),
            recycled: counters.recycled.load(Ordering::Relaxed),
            renders: counters.renders.load(Ordering::Relaxed),
            followers: counters.followers.load(Ordering::Relaxed),
        }
    }

    /// Whether a page would be rendered now: a browser runs, or would be started for it.
    pub fn ready(&self) -> bool {
        let state = self.inner.lock();
        let would_start = self.inner.config.idle_stop.is_some();
        !self.inner.stop.is_cancelled()
            && !state.is_broken
            && (would_start || state.accepting.iter().any(|c| !c.access.has_pictures))
    }

    /// Why no browser can be started, while that is so and nobody is kept waiting for one.
    pub fn problem(&self) -> Option<String> {
        self.inner.lock().broken().map(str::to_owned)
    }

    /// Main processes of the browsers that take pages, for fault tests.
    pub fn pids(&self) -> Vec<u32> {
        self.inner.lock().accepting.iter().map(|c| c.pid).collect()
    }

    /// Ends all browsers and waits until they are gone, 15 s at most. Renders under way fail.
    pub async fn shutdown(&self) {
        self.inner.stop.cancel();
        self.inner.freed.notify_waiters();
        self.inner.tasks.close();
        let _ = tokio::time::timeout(Duration::from_secs(15), self.inner.tasks.wait()).await;
    }
}

impl Drop for BrowserPool {
    fn drop(&mut self) {
        self.inner.stop.cancel();
    }
}

/// A page of a browser, counted until dropped.
struct Lease {
    process: Arc<BrowserProcess>,
    inner: Arc<Inner>,
    holder: Option<Holder>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(holder) = self.holder {
            self.inner.lock().guests.uncount(holder);
        }
        let open = self.process.open.fetch_sub(1, Ordering::AcqRel) - 1;
        self.process.returned.notify_waiters();
        // Beside all pages there is room for guests only, who may be any of those that wait.
        if open < self.inner.config.pages() {
            self.inner.freed.notify_one();
        } else {
            self.inner.freed.notify_waiters();
        }
    }
}

struct Waiting<'a>(&'a Inner);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting -= 1;
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A page of the least busy browser; waits for one until `deadline`.
    async fn lend(
        self: &Arc<Self>,
        kind: Kind,
        holder: Option<Holder>,
        deadline: Instant,
    ) -> Result<Lease, RenderError> {
        self.lock().waiting += 1;
        let _waiting = Waiting(self);
        let (pages, guests) = (self.config.pages(), self.config.guests());
        let guest_from = clock::deadline(STILL);
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if self.stop.is_cancelled() {
                return Err(RenderError::Unavailable("the worker is stopping".into()));
            }
            let has_waited = clock::instant() >= guest_from;
            {
                let mut state = self.lock();
                let is_guest = has_waited && holder.is_some_and(|holder| state.guests.may_enter(holder));
                let most = if is_guest { pages + guests } else { pages };
                let best = state
                    .accepting
                    .iter()
                    .filter(|c| {
                        c.kind() == kind && !c.cdp.closed().is_cancelled() && c.open.load(Ordering::Acquire) < most
                    })
                    .min_by_key(|c| c.open.load(Ordering::Acquire))
                    .map(Arc::clone);
                if let Some(process) = best {
                    // Under the lock, so the limit holds.
                    process.open.fetch_add(1, Ordering::AcqRel);
                    process.used.fetch_add(1, Ordering::AcqRel);
                    process.lent.notify_waiters();
                    if let Some(holder) = holder {
                        state.guests.count(holder);
                    }
                    return Ok(Lease { process, inner: Arc::clone(self), holder });
                }
                if let Some(reason) = state.broken() {
                    return Err(RenderError::Unavailable(reason.to_owned()));
                }
            }
            self.asked_for(kind).notify_one();
            let until = if has_waited { deadline } else { deadline.min(guest_from) };
            if tokio::time::timeout_at(until, freed).await.is_err() && clock::instant() >= deadline {
                return Err(self.lock().end_of_wait(kind));
            }
        }
    }

    fn asked_for(&self, kind: Kind) -> &Notify {
        match kind {
            Kind::Blind => &self.asked,
            Kind::Pictures => &self.asked_pictures,
        }
    }

    /// What was asked for while the browser was busy starts no other one; who still waits asks again.
    async fn forget_asked(&self, kind: Kind) {
        tokio::select! {
            biased;
            () = self.asked_for(kind).notified() => {}
            () = std::future::ready(()) => {}
        }
        self.freed.notify_waiters();
    }

    /// Has a browser take pages, until what this gives is dropped.
    fn publish(self: &Arc<Self>, process: Arc<BrowserProcess>) -> Published {
        let mut state = self.lock();
        state.trouble = None;
        let was_broken = std::mem::take(&mut state.is_broken);
        state.accepting.push(Arc::clone(&process));
        drop(state);
        if was_broken {
            tracing::info!(browser.pid = process.pid, "browsers start again");
        }
        self.freed.notify_waiters();
        Published { inner: Arc::clone(self), process, is_withdrawn: false }
    }

    /// Notes why there is no browser. `refuses`: those that wait are not kept waiting. The log says so when that begins, and
    /// not for each page that is refused.
    fn note_trouble(&self, why: String, refuses: bool) {
        let mut state = self.lock();
        if refuses && !state.is_broken {
            tracing::error!(why, "no browser can be started: until one can, pages that need one fail");
        }
        state.trouble = Some(why);
        state.is_broken |= refuses;
        drop(state);
        if refuses {
            self.freed.notify_waiters();
        }
    }

    /// Starts a browser and connects to it. `None` when the pool stops meanwhile.
    async fn start_browser(&self, kind: Kind) -> Option<anyhow::Result<Arc<BrowserProcess>>> {
        let start = async {
            let has_pictures = kind == Kind::Pictures;
            let began = Stopwatch::start();
            let spec = BrowserSpec {
                purpose: Purpose::Pages { has_pictures, own_exits: self.config.own_exits() },
                exit: None,
                extra_flags: self.config.extra_flags.clone(),
            };
            let (name, maker) = (format!("p{}", random::hex::<4>()), Arc::clone(&self.sandbox));
            let dir = blocking::run(move || maker.session_dir(&name)).await??;
            let browser = match self.sandbox.start_browser(&dir, spec).await {
                Ok(browser) => browser,
                Err(error) => {
                    dir.remove().await;
                    return Err(weir_sandbox::explained(error));
                }
            };
            let (egress, upstreams) = (self.config.egress_proxy, Arc::clone(&self.config.upstreams));
            let ads = Arc::clone(&self.config.ads);
            let sandbox = Some(Arc::clone(&self.sandbox));
            let pages = self.config.pages();
            let access = PageAccess { egress, upstreams, has_pictures, pages, ads, sandbox };
            let process = BrowserProcess::connect(browser, dir, access).await?;
            let bounds = PageBounds { page: self.config.page_memory, all: self.config.memory_limit };
            self.tasks.spawn(outgrown::watch(Arc::clone(&process), bounds));
            self.tasks.spawn(flooding::watch(Arc::clone(&process)));
            let duration_ms = began.elapsed().as_millis() as u64;
            tracing::info!(browser.pid = process.pid, duration_ms, "browser started");
            Ok(process)
        };
        let started = tokio::select! {
            started = start => started,
            () = self.stop.cancelled() => return None,
        };
        let counter = if started.is_ok() { &self.counters.launches } else { &self.counters.failed_launches };
        counter.fetch_add(1, Ordering::Relaxed);
        Some(started)
    }

    /// Starts a browser, trying again with growing pauses. `None` when the pool stops.
    async fn start_at_last(&self, kind: Kind) -> Option<Arc<BrowserProcess>> {
        let mut failures = 0;
        loop {
            match self.start_browser(kind).await? {
                Ok(process) => return Some(process),
                Err(e) => {
                    failures += 1;
                    let error = format!("{e:#}");
                    if failures == 1 {
                        tracing::warn!(error, "a browser cannot be started; it is tried again");
                    } else {
                        tracing::debug!(error, failures, "a browser cannot be started again");
                    }
                    self.note_trouble(error, failures >= BREAKER);
                }
            }
            let pause = (BACKOFF * 2_u32.saturating_pow(failures.min(10) - 1)).min(MAX_BACKOFF);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.stop.cancelled() => return None,
            }
        }
    }
}

/// A browser that takes pages. Dropped, as by a keeper that broke, it takes none, and is ended.
struct Published {
    inner: Arc<Inner>,
    process: Arc<BrowserProcess>,
    is_withdrawn: bool,
}

impl Published {
    /// It takes no further page from now on. Who has it ends it.
    fn withdraw(mut self) -> Arc<BrowserProcess> {
        self.is_withdrawn = true;
        Arc::clone(&self.process)
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        self.inner.lock().accepting.retain(|c| !Arc::ptr_eq(c, &self.process));
        self.process.retire();
        if !self.is_withdrawn
            && let Ok(runtime) = Handle::try_current()
        {
            let (process, stop) = (Arc::clone(&self.process), self.inner.stop.clone());
            runtime.spawn(self.inner.tasks.track_future(async move { drain(&process, DRAIN, &stop).await }));
        }
    }
}

/// Lets the pages finish, for `limit` at most, then ends the browser.
async fn drain(process: &BrowserProcess, limit: Duration, stop: &CancellationToken) {
    process.retire();
    let empty = async {
        loop {
            let returned = process.returned.notified();
            tokio::pin!(returned);
            returned.as_mut().enable();
            if process.open.load(Ordering::Acquire) == 0 || process.cdp.closed().is_cancelled() {
                return;
            }
            returned.await;
        }
    };
    tokio::select! {
        _ = tokio::time::timeout(limit, empty) => {}
        () = stop.cancelled() => {}
    }
    process.stop().await;
}

/// What a slot's browsers are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Text: no pictures, no fonts of the site.
    Blind,
    /// Screenshots. Started for the first one, stopped when there are no more.
    Pictures,
}

/// Why a browser leaves its slot.
enum LeaveReason {
    Died,
    GivenUp,
    Due(&'static str),
    Idle,
    Stopped,
}

impl BrowserProcess {
    fn kind(&self) -> Kind {
        if self.access.has_pictures { Kind::Pictures } else { Kind::Blind }
    }
}

/// Looks after a slot for as long as the pool lives: nobody else starts its browsers. Whoever asked one that broke asks no
/// more, so the next begins without being asked.
async fn keep_slot(inner: Arc<Inner>, kind: Kind) {
    let mut must_ask = inner.config.idle_stop.is_some() || kind == Kind::Pictures;
    let broke = || inner.note_trouble("what looks after the browsers broke; it begins again".to_owned(), true);
    let keep = || look_after_slot(Arc::clone(&inner), kind, std::mem::replace(&mut must_ask, false));
    lasting::again_after("browsers", broke, keep).await;
}

async fn look_after_slot(inner: Arc<Inner>, kind: Kind, mut must_ask: bool) {
    loop {
        if must_ask {
            tokio::select! {
                () = inner.asked_for(kind).notified() => {}
                () = inner.stop.cancelled() => return,
            }
        }
        must_ask = false;
        let Some(process) = inner.start_at_last(kind).await else { return };
        let mut published = inner.publish(process);
        loop {
            let end = watch(&inner, &published.process).await;
            let pid = published.process.pid;
            match end {
                LeaveReason::Due(reason) => {
                    tracing::info!(browser.pid = pid, reason, "browser is replaced");
                    let Some(next) = inner.start_at_last(kind).await else {
                        drain(&published.withdraw(), Duration::ZERO, &inner.stop).await;
                        return;
                    };
                    inner.counters.recycled.fetch_add(1, Ordering::Relaxed);
                    let next = inner.publish(next);
                    let old = std::mem::replace(&mut published, next).withdraw();
                    let stop = inner.stop.clone();
                    inner.tasks.spawn(async move { drain(&old, DRAIN, &stop).await });
                    continue;
                }
                LeaveReason::Died => {
                    inner.counters.crashes.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!(browser.pid = pid, "browser died");
                    inner.note_trouble("the browser died".to_owned(), false);
                    published.withdraw().stop().await;
                }
                LeaveReason::GivenUp => {
                    inner.counters.recycled.fetch_add(1, Ordering::Relaxed);
                    let process = published.withdraw();
                    let stop = inner.stop.clone();
                    inner.tasks.spawn(async move { drain(&process, SHORT_DRAIN, &stop).await });
                }
                LeaveReason::Idle => {
                    tracing::info!(browser.pid = pid, "browser is idle and stopped");
                    let process = published.withdraw();
                    inner.forget_asked(kind).await;
                    drain(&process, DRAIN, &inner.stop).await;
                    must_ask = true;
                }
                LeaveReason::Stopped => {
                    drain(&published.withdraw(), Duration::ZERO, &inner.stop).await;
                    return;
                }
            }
            break;
        }
    }
}

/// Watches a browser until it has to leave its slot.
async fn watch(inner: &Inner, process: &Arc<BrowserProcess>) -> LeaveReason {
    let config = &inner.config;
    let idle_stop =
        if process.access.has_pictures { Some(config.idle_stop.unwrap_or(PICTURES_IDLE)) } else { config.idle_stop };
    let mut ticks = 0;
    let mut busy_at = clock::instant();
    let mut used_before = process.used.load(Ordering::Acquire);
    let mut tick = tokio::time::interval_at(clock::deadline(PING_EVERY), PING_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let idle_at = idle_stop.map(|idle| busy_at + idle);
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => return LeaveReason::Stopped,
            () = process.cdp.closed().cancelled() => return LeaveReason::Died,
            () = process.given_up.cancelled() => return LeaveReason::GivenUp,
            () = process.returned.notified() => busy_at = clock::instant(),
            () = tokio::time::sleep_until(idle_at.unwrap_or_else(clock::instant)), if idle_at.is_some() => {}
            _ = tick.tick() => {
                ticks += 1;
                if !process.answers().await {
                    process.give_up("no answer to the health check");
                    continue;
                }
                if ticks % WEIGH_EVERY == 0 && process.memory().await > config.memory_limit {
                    return LeaveReason::Due("memory");
                }
            }
        }
        let used = process.used.load(Ordering::Acquire);
        if used != used_before || process.open.load(Ordering::Acquire) > 0 {
            used_before = used;
            busy_at = clock::instant();
        }
        if used >= config.pages_per_life {
            return LeaveReason::Due("pages");
        }
        if used > 0 && process.born.elapsed() > config.max_age {
            return LeaveReason::Due("age");
        }
        if idle_stop.is_some_and(|idle| busy_at.elapsed() >= idle) {
            return LeaveReason::Idle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_found_no_browser_is_not_to_blame_while_none_can_be_started() {
        let mut state = PoolState::new(&BrowserConfig::default());
        assert!(matches!(state.end_of_wait(Kind::Blind), RenderError::Timeout), "nothing is known to be wrong");
        state.trouble = Some("no room".to_owned());
        let end = state.end_of_wait(Kind::Blind);
        assert!(end.is_retryable() && end.to_string().contains("no room"), "{end}");
        assert_eq!(state.broken(), None, "the next start may do");
        state.is_broken = true;
        assert_eq!(state.broken(), Some("no room"));
    }
}
