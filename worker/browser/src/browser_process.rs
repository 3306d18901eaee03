//! One running browser as the pool sees it: its connection, its spare blank page, and whether it is still good.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use headless_chrome::protocol::cdp::Browser as BrowserDomain;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use weir_fetch::AdHosts;
use weir_sandbox::{BrowserBox, DiskUse, Exit, OwnExit, Sandbox, SessionDir, Version};
use weir_shared::clock;
use weir_shared::domain::site_rules::RefusedHosts;

use super::cdp::Cdp;
use super::error::RenderError;
use super::kept::{self, KeptTabs, TabKey};
use super::tab::{BlankPage, KeptTab};
use super::wait::WaitScript;

/// How long a browser may take to say its version, which is also the health check.
const PING: Duration = Duration::from_secs(10);

/// A browser and what is known of it. Shared by the pages that run in it.
pub(super) struct BrowserProcess {
    pub cdp: Cdp,
    browser: BrowserBox,
    dir: Mutex<Option<SessionDir>>,
    /// The box's first process, for logs and fault tests.
    pub pid: u32,
    pub wait: WaitScript,
    pub version: Version,
    pub access: PageAccess,
    pub born: Instant,
    /// Pages lent out now.
    pub open: AtomicUsize,
    /// Told when one is lent out.
    pub lent: Notify,
    /// Pages lent out ever.
    pub used: AtomicU32,
    /// Pages that were ended because they took too much memory.
    pub outgrown: AtomicU32,
    /// The same of those that kept the browser's own process from the others.
    pub flooding: AtomicU32,
    /// Fires when a page comes back.
    pub returned: Notify,
    /// The browser no longer obeys: take it out of use at once.
    pub given_up: CancellationToken,
    spare: Mutex<Option<BlankPage>>,
    kept: KeptTabs<KeptTab>,
    is_refilling: AtomicBool,
    is_retired: AtomicBool,
}

/// How many pages of a browser were ended for what they took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ended {
    outgrown: u32,
    flooding: u32,
}

/// What the pages of a browser may reach and load.
pub struct PageAccess {
    /// The worker's own address of the proxy that lets everything public through.
    pub egress: SocketAddr,
    /// The same of those that go on through the operator's proxies, by place.
    pub upstreams: Arc<[SocketAddr]>,
    pub has_pictures: bool,
    /// Pages that run in it at once.
    pub pages: usize,
    /// What pages whose callers want no ads are kept from.
    pub ads: Arc<AdHosts>,
    /// Gives a page a way out of its own; `None`: the browser has one page, and its way out is that page's.
    pub sandbox: Option<Arc<Sandbox>>,
}

impl BrowserProcess {
    /// Connects to a browser that has just started. On an error nothing of it is left.
    pub async fn connect(browser: BrowserBox, dir: SessionDir, access: PageAccess) -> anyhow::Result<Arc<Self>> {
        let process = Self::begin(browser, dir, access).await?;
        process.refill_spare();
        Ok(process)
    }

    /// The same for a browser that serves one page, in its own profile: no spare page is opened.
    pub async fn connect_alone(
        browser: BrowserBox,
        dir: SessionDir,
        egress: SocketAddr,
        ads: Arc<AdHosts>,
    ) -> anyhow::Result<Arc<Self>> {
        let access = PageAccess { egress, upstreams: Arc::default(), has_pictures: true, pages: 1, ads, sandbox: None };
        let process = Self::begin(browser, dir, access).await?;
        process.retire();
        Ok(process)
    }

    async fn begin(browser: BrowserBox, dir: SessionDir, access: PageAccess) -> anyhow::Result<Arc<Self>> {
        let greet = async {
            let cdp = Cdp::connect_over(browser.connect().await?, browser.ws_path()).await?;
            let version = cdp.call::<BrowserDomain::GetVersion>(None, json!({}), clock::deadline(PING)).await?;
            anyhow::Ok((cdp, Version::from_product(&version.product)))
        };
        let (cdp, version) = match greet.await {
            Ok(greeted) => greeted,
            Err(error) => {
                browser.kill().await;
                dir.remove().await;
                return Err(error);
            }
        };
        Ok(Arc::new(Self {
            cdp,
            pid: browser.pid().unwrap_or_default(),
            browser,
            dir: Mutex::new(Some(dir)),
            wait: WaitScript::with_own_key(),
            version,
            access,
            born: clock::instant(),
            open: AtomicUsize::new(0),
            lent: Notify::new(),
            used: AtomicU32::new(0),
            outgrown: AtomicU32::new(0),
            flooding: AtomicU32::new(0),
            returned: Notify::new(),
            given_up: CancellationToken::new(),
            spare: Mutex::default(),
            kept: KeptTabs::default(),
            is_refilling: AtomicBool::new(false),
            is_retired: AtomicBool::new(false),
        }))
    }

    /// Resolves when nothing of the browser is left.
    pub async fn exited(&self) {
        self.browser.exited().await;
    }

    /// The folder of its data; `None` once it is stopped.
    pub fn home(&self) -> Option<PathBuf> {
        self.dir.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|dir| dir.home.clone())
    }

    /// Resolves once its directory holds more than a session's may.
    pub async fn overfull(&self) -> DiskUse {
        let disk = self.dir.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(SessionDir::disk);
        match disk {
            Some(disk) => disk.overfull().await,
            None => std::future::pending().await,
        }
    }

    /// The proxy that lets everything public through, for a context of the browser; its own refuses ads.
    pub fn open_proxy(&self) -> String {
        format!("http://{}", self.browser.proxy())
    }

    /// The proxy that goes on through one of the operator's, with or without ads; `None`: there is none at that place.
    pub fn upstream_proxy(&self, place: usize, refuses_ads: bool) -> Option<String> {
        self.browser.upstream(place, refuses_ads).map(|address| format!("http://{address}"))
    }

    /// A way out for one page alone, which does not lead to the hosts that are refused; `None`: it has the browser's.
    pub fn own_exit(&self, exit: Exit, refused: Option<RefusedHosts>) -> Result<Option<OwnExit>, RenderError> {
        let (Some(sandbox), Some(refused)) = (&self.access.sandbox, refused) else { return Ok(None) };
        let own = sandbox.own_exit(&self.browser, exit, refused);
        own.map(Some).map_err(|error| RenderError::Unavailable(error.to_string()))
    }

    /// The same where the kernel counts it, which is cheap; `None` where it does not.
    pub async fn counted_memory(&self) -> Option<u64> {
        self.browser.counted_memory().await
    }

    /// Memory of all its processes, bytes.
    pub async fn memory(&self) -> u64 {
        self.browser.memory().await
    }

    /// Ends the browser; nothing of it is left when this returns.
    pub async fn stop(&self) {
        self.cdp.close();
        self.browser.kill().await;
        let dir = self.dir.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(dir) = dir {
            dir.remove().await;
        }
    }

    /// Whether the browser still answers.
    pub async fn answers(&self) -> bool {
        self.cdp.call::<BrowserDomain::GetVersion>(None, json!({}), clock::deadline(PING)).await.is_ok()
    }

    /// Resolves once a page is lent out, at once when one is.
    pub async fn busy(&self) {
        loop {
            let lent = self.lent.notified();
            tokio::pin!(lent);
            lent.as_mut().enable();
            if self.open.load(Ordering::Acquire) > 0 {
                return;
            }
            lent.await;
        }
    }

    /// Pages that we have ended so far.
    pub fn ended(&self) -> Ended {
        Ended { outgrown: self.outgrown.load(Ordering::Acquire), flooding: self.flooding.load(Ordering::Acquire) }
    }

    /// Why a page has crashed that began when `before` was so: for what it took, if one was ended for that since.
    pub fn explained(&self, before: Ended, error: RenderError) -> RenderError {
        let now = self.ended();
        match error {
            RenderError::PageCrashed if now.outgrown != before.outgrown => RenderError::OutOfMemory,
            RenderError::PageCrashed if now.flooding != before.flooding => RenderError::Flooding,
            error => error,
        }
    }

    /// Marks the browser as one that no longer obeys. Its pages are lost soon.
    pub fn give_up(&self, reason: &str) {
        if !self.given_up.is_cancelled() {
            tracing::warn!(browser.pid = self.pid, reason, "browser is given up");
            self.given_up.cancel();
        }
    }

    /// The blank page that is kept ready, if it is.
    pub fn take_spare(&self) -> Option<BlankPage> {
        self.lock_spare().take()
    }

    /// Opens a spare page in the background unless there is one. Called when a page was closed, so that
    /// the work does not compete with the page that is being loaded.
    pub fn refill_spare(self: &Arc<Self>) {
        if self.is_retired.load(Ordering::Acquire)
            || self.lock_spare().is_some()
            || self.is_refilling.swap(true, Ordering::AcqRel)
        {
            return;
        }
        let process = Arc::clone(self);
        tokio::spawn(async move {
            let page = BlankPage::open(&process, None, clock::deadline(PING)).await;
            process.is_refilling.store(false, Ordering::Release);
            if let Ok(page) = page {
                let surplus = if process.is_retired.load(Ordering::Acquire) {
                    Some(page)
                } else {
                    process.lock_spare().replace(page)
                };
                drop(surplus);
            }
        });
    }

    /// Notes that a page begins which may share its tab. Whether another one of its site did lately.
    pub fn begins(&self, key: &TabKey) -> bool {
        self.kept.begin(key)
    }

    /// The tab that the last page of the site has left, if it is still there.
    pub fn take_kept(&self, key: &TabKey) -> Option<KeptTab> {
        self.kept.take(key)
    }

    /// Leaves a tab to the next page of its site. Tabs and pages together stay as many as pages may run at once.
    pub fn keep(self: &Arc<Self>, key: TabKey, tab: KeptTab) {
        let Ok(number) = self.kept.put(key, tab) else { return };
        // The page that leaves it still counts.
        self.make_room(1);
        let process = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(kept::KEEP).await;
            drop(process.kept.expire(number));
        });
    }

    /// Closes what is kept too much beside the pages that are open, `leaving` of which are about to end.
    pub fn make_room(&self, leaving: usize) {
        let open = self.open.load(Ordering::Acquire).saturating_sub(leaving);
        drop(self.kept.surplus(self.access.pages.saturating_sub(open)));
    }

    /// No further page will be lent: the spare page goes, and what is kept.
    pub fn retire(&self) {
        self.is_retired.store(true, Ordering::Release);
        let spare = self.take_spare();
        drop((spare, self.kept.close()));
    }

    fn lock_spare(&self) -> MutexGuard<'_, Option<BlankPage>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
