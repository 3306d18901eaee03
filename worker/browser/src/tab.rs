//! A tab of a browser in a context of its own: opened, told what every page needs, left by one page and cleared for the next,
//! closed.

use std::sync::Arc;
use std::time::Duration;

use headless_chrome::protocol::cdp::types::Method;
use headless_chrome::protocol::cdp::{Browser, Inspector, Network, Page, Runtime, Storage, Target};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;
use url::Url;
use weir_sandbox::OwnExit;
use weir_shared::clock;

use super::browser_process::BrowserProcess;
use super::cdp::{CdpError, Events, Pending};
use super::error::RenderError;
use super::kept::{Conduct, TabKey};
use super::wait::WaitScript;

/// Time for each step that involves no page: contexts, targets, disposal. Far above what it takes under load.
const STEP: Duration = Duration::from_secs(10);

/// Pages in one tab: what a process has gathered ends with it.
const MAX_PAGES: u32 = 16;

/// Time for a kept tab to be cleared; a page that needs longer than that to end is not worth it.
const CLEAR: Duration = Duration::from_millis(500);

/// The address a page is opened with: it is run instead of gone to, so that the page that is asked for is the first
/// document of its frame. `about:blank` would be loaded first, as any page, for a seventh of the CPU of a whole render.
const NO_DOCUMENT: &str = "javascript:void(0)";

/// The window of a desktop; the flags of the browser say the same.
const DESKTOP: (u32, u32) = (1280, 800);

/// A browser context of our own. Dropping it disposes the context with everything in it.
pub(super) struct Tab {
    pub process: Arc<BrowserProcess>,
    /// Its own way out; held until nothing of the page is left.
    pub exit: Option<OwnExit>,
    /// `None`: the browser's own, which stays.
    pub context: Option<String>,
    /// Also the id of its main frame.
    pub target: String,
    pub session: String,
}

impl Tab {
    fn new(process: &Arc<BrowserProcess>, context: Option<String>) -> Self {
        Self { process: Arc::clone(process), exit: None, context, target: String::new(), session: String::new() }
    }

    pub fn send<M: Method>(&self, params: impl Serialize) -> Pending<Value> {
        self.process.cdp.send_as(M::NAME, Some(&self.session), params)
    }

    pub async fn call<M: Method>(
        &self,
        params: impl Serialize,
        deadline: Instant,
    ) -> Result<M::ReturnObject, CdpError> {
        self.process.cdp.call::<M>(Some(&self.session), params, deadline).await
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        // Sent now, whoever dropped us; the answer only tells that the browser still obeys.
        let Some(context) = &self.context else { return };
        let context = json!({ "browserContextId": context });
        let disposed = self.process.cdp.send_as::<Value>(Target::DisposeBrowserContext::NAME, None, context);
        let (process, exit) = (Arc::clone(&self.process), self.exit.take());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            match disposed.by(clock::deadline(STEP)).await {
                Err(CdpError::Timeout { .. }) => process.give_up("a page could not be closed"),
                Err(CdpError::Closed) => {}
                _ => process.refill_spare(),
            }
            drop(exit);
        });
    }
}

/// A blank page, attached, and told what every render needs.
pub(super) struct BlankPage {
    pub tab: Tab,
    pub events: Events,
    /// Answers of the calls that prepared it, not yet looked at.
    pub prepared: Vec<Pending<Value>>,
    /// Pages that were in the tab before. It has the settings of the next one already, then.
    pub pages: u32,
}

impl BlankPage {
    /// Opens one, behind `proxy` instead of the browser's own when given. A failure leaves nothing open.
    pub async fn open(
        process: &Arc<BrowserProcess>,
        proxy: Option<&str>,
        deadline: Instant,
    ) -> Result<Self, RenderError> {
        let deadline = deadline.min(clock::deadline(STEP));
        let cdp = &process.cdp;
        let mut params = json!({ "disposeOnDetach": true });
        if let Some(proxy) = proxy {
            params["proxyServer"] = proxy.into();
            params["proxyBypassList"] = "<-loopback>".into();
        }
        let context = cdp.call::<Target::CreateBrowserContext>(None, params, deadline).await?.browser_context_id;
        // From here on, a failure disposes the context.
        Self::in_tab(Tab::new(process, Some(context)), deadline).await
    }

    /// Opens one in the browser's own profile.
    pub async fn open_in_profile(process: &Arc<BrowserProcess>, deadline: Instant) -> Result<Self, RenderError> {
        let deadline = deadline.min(clock::deadline(STEP));
        Self::in_tab(Tab::new(process, None), deadline).await
    }

    async fn in_tab(mut tab: Tab, deadline: Instant) -> Result<Self, RenderError> {
        let process = Arc::clone(&tab.process);
        let cdp = &process.cdp;
        let mut downloads = json!({ "behavior": "deny" });
        let mut blank = json!({ "url": NO_DOCUMENT, "width": DESKTOP.0, "height": DESKTOP.1 });
        if let Some(context) = &tab.context {
            downloads["browserContextId"] = context.as_str().into();
            blank["browserContextId"] = context.as_str().into();
        }
        cdp.post::<Browser::SetDownloadBehavior>(None, downloads);
        tab.target = cdp.call::<Target::CreateTarget>(None, blank, deadline).await?.target_id;
        let attach = json!({ "targetId": tab.target, "flatten": true });
        tab.session = cdp.call::<Target::AttachToTarget>(None, attach, deadline).await?.session_id;
        let events = cdp.events(&tab.session, is_wanted);
        let prepared = vec![
            tab.send::<Page::Enable>(json!({})),
            tab.send::<Inspector::Enable>(json!({})),
            tab.send::<Page::AddScriptToEvaluateOnNewDocument>(json!({ "source": process.wait.source() })),
        ];
        Ok(Self { tab, events, prepared, pages: 0 })
    }
}

/// A tab that a page has left to the next one of its site.
pub(super) struct KeptTab {
    tab: Tab,
    events: Events,
    conduct: Conduct,
    /// Pages that were in it.
    pages: u32,
    /// The origin of the document that has been told to end.
    quit: Pending<Quit>,
}

impl KeptTab {
    /// Lets the page of `key` go that was in `page`, and keeps its tab if nothing of it goes on there.
    pub fn leave(process: &Arc<BrowserProcess>, key: TabKey, page: BlankPage, conduct: Conduct) {
        let BlankPage { tab, events, pages, .. } = page;
        let pages = pages + 1;
        if pages >= MAX_PAGES || !conduct.ends_with_document() {
            return;
        }
        let quit = json!({ "expression": process.wait.quit(), "returnByValue": true });
        let quit = process.cdp.send_as(Runtime::Evaluate::NAME, Some(&tab.session), quit);
        process.keep(key, Self { tab, events, conduct, pages, quit });
    }

    /// Clears what the last page has left, before `next` comes. `None`: that cannot be done for certain, and the tab is
    /// closed.
    pub async fn cleared(self, key: &TabKey, next: &Url) -> Option<BlankPage> {
        let Self { tab, mut events, conduct, pages, quit } = self;
        let deadline = clock::deadline(CLEAR);
        if quit.by(deadline).await.ok()?.result.value.as_deref() != Some(key.origin.as_str()) {
            return None;
        }
        let of_context = json!({ "browserContextId": tab.context.as_deref()? });
        let all = json!({ "origin": key.origin, "storageTypes": "all" });
        let calls = [
            tab.process.cdp.send_as::<Value>(Storage::ClearCookies::NAME, None, of_context),
            tab.send::<Storage::ClearDataForOrigin>(all),
            tab.send::<Network::ClearBrowserCache>(json!({})),
            tab.send::<Runtime::Evaluate>(json!({ "expression": WaitScript::stand_at(next) })),
        ];
        for call in calls {
            // A page that has changed its address too often may not do so again for a while.
            if call.by(deadline).await.ok()?.get("exceptionDetails").is_some() {
                return None;
            }
        }
        while let Some(event) = events.next_now() {
            conduct.note(&event, &tab.target);
        }
        let is_clear = conduct.ends_with_document() && !events.has_lagged();
        is_clear.then(|| BlankPage { tab, events, prepared: Vec::new(), pages })
    }
}

#[derive(Debug, Deserialize)]
struct Quit {
    result: QuitOrigin,
}

#[derive(Debug, Deserialize)]
struct QuitOrigin {
    value: Option<String>,
}

/// Events of a page that somebody looks at: what it waits for, how far it is, and what it leaves beside its document.
fn is_wanted(method: &str) -> bool {
    matches!(
        method,
        "Fetch.requestPaused"
            | "Security.certificateError"
            | "Page.javascriptDialogOpening"
            | "Page.frameStartedLoading"
            | "Page.loadEventFired"
            | "Page.frameStoppedLoading"
            | "Page.frameRequestedNavigation"
            | "Page.downloadWillBegin"
            | "Page.frameNavigated"
            | "Page.navigatedWithinDocument"
            | "Page.frameDetached"
            | "Page.windowOpen"
            | "Inspector.targetCrashed"
    )
}
