//! The session's browser as the agent holds it: one connection of its own, the tab it works in, and what happens there.
//!
//! One task reads all events and keeps the little that matters: which tabs there are, whether a document is on its way,
//! whether a dialog is open. Nothing waits for a page without a bound, and nothing at all while a dialog holds it up.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use headless_chrome::protocol::cdp::types::Method as _;
use headless_chrome::protocol::cdp::{Fetch, Page, Target};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use weir_shared::clock;

use super::browser_state::{
    Active, BrowserState, Detached, Dialog, Info, NavigationGuard, PAUSED, Paused, Tab, TargetRef, wants,
};
use super::site::Home;
use super::snapshot::{Element, Refs, Tree, Writer, cut};
use crate::browser::cdp::{Cdp, CdpError, Events};
use crate::browser::wait::{self, Look, WaitScript};
use crate::exec::Free;
use crate::front::{Seen, in_front};

/// Bound on one call to the browser or to a page.
const CALL: Duration = Duration::from_secs(5);
/// How long a click or a key may take to set a document on its way.
const BEGINNING: Duration = Duration::from_millis(120);
/// How long a tab that was opened may take to set out for its address.
const OPENING: Duration = Duration::from_secs(2);
/// How long a page is waited for.
const LOADING: Duration = Duration::from_secs(10);
/// Tabs that are tried before a new one is opened.
const TRIES: usize = 3;
/// Frames that are read, and tabs that are told of.
const FRAMES: usize = 12;
const TABS: usize = 20;

/// Why an action was not done; the text is for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum DriverError {
    /// The browser is gone: nothing more can be done.
    #[error("the browser is gone")]
    Lost,
    #[error("{0}")]
    Refused(String),
}

impl From<CdpError> for DriverError {
    fn from(error: CdpError) -> Self {
        match error {
            CdpError::Closed => Self::Lost,
            CdpError::Timeout { .. } => Self::Refused("the page did not answer in time".to_owned()),
            CdpError::Refused { message, .. } => Self::Refused(cut(&message, 200)),
            CdpError::Shape { reason, .. } => Self::Refused(cut(&reason, 200)),
        }
    }
}

/// The refusal of a page that did not answer and was freed: it answers from now on.
const FREED: &str = "the page did not answer, because a script of it ran without end; that script was stopped";

pub(super) type DriverResult<T> = Result<T, DriverError>;

struct Shared {
    state: Mutex<BrowserState>,
    changed: watch::Sender<()>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, BrowserState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See the module.
pub(super) struct BrowserDriver {
    cdp: Cdp,
    shared: Arc<Shared>,
    script: WaitScript,
    refs: Refs,
    free: Free,
    _events: AbortOnDropHandle<()>,
}

impl Drop for BrowserDriver {
    fn drop(&mut self) {
        self.cdp.close();
    }
}

/// What the agent sees.
#[derive(Debug, Clone, Default)]
pub(super) struct View {
    pub url: String,
    pub title: String,
    /// The page as text; empty while a dialog holds it up.
    pub snapshot: String,
    /// One line a tab, if there are several.
    pub tabs: Vec<String>,
    pub dialog: Option<Dialog>,
    /// A picture as a data URI, if they are wanted.
    pub picture: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameTree {
    frame_tree: Frames,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Frames {
    frame: Frame,
    #[serde(default)]
    child_frames: Vec<Frames>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Frame {
    id: String,
    loader_id: String,
    #[serde(default)]
    url: String,
    /// With its `#`.
    url_fragment: Option<String>,
}

impl Frames {
    /// Whether something is so of the address of one of these frames.
    fn any(&self, is_so: &impl Fn(&str) -> bool) -> bool {
        is_so(&self.frame.url) || self.child_frames.iter().any(|frames| frames.any(is_so))
    }

    /// The frames below, at most [`FRAMES`].
    fn below<'a>(&'a self, found: &mut Vec<&'a Frame>) {
        for child in &self.child_frames {
            if found.len() < FRAMES {
                found.push(&child.frame);
                child.below(found);
            }
        }
    }
}

/// Every request for a document.
fn documents() -> Value {
    json!([{"urlPattern": "*", "resourceType": "Document", "requestStage": "Request"}])
}

/// Lets a request go on, or ends it without a word to the page.
fn answer(cdp: &Cdp, session: &str, paused: &Paused, goes_on: bool) {
    // What the whole browser is held back at belongs to no tab.
    let session = Some(session).filter(|session| !session.is_empty());
    let (method, params) = match goes_on {
        true => (Fetch::ContinueRequest::NAME, json!({"requestId": paused.request_id})),
        false => (Fetch::FailRequest::NAME, json!({"requestId": paused.request_id, "errorReason": "Aborted"})),
    };
    drop(cdp.send_as::<Value>(method, session, params));
}

impl BrowserDriver {
    /// Takes hold of the tab that the browser shows in front.
    ///
    /// With `confined` no document of any tab or frame is fetched that it does not let in, from here on. Where a page does not
    /// answer `free` is called: nobody who comes later can do anything about a page that is blocked.
    pub async fn open(cdp: Cdp, confined: Option<&Home>, free: Free) -> DriverResult<Self> {
        let shared = Arc::new(Shared { state: Mutex::default(), changed: watch::Sender::new(()) });
        let mut events: Events = cdp.every_event(wants);
        let (reader, gate) = (Arc::clone(&shared), cdp.clone());
        let task = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                if event.method == PAUSED {
                    if let Some(paused) = event.params::<Paused>() {
                        answer(&gate, &event.session, &paused, reader.lock().lets_through(&paused));
                        reader.changed.send_replace(());
                    }
                    continue;
                }
                reader.lock().take(&event);
                reader.changed.send_replace(());
            }
        });
        let mut driver = Self {
            cdp,
            shared,
            script: WaitScript::with_own_key(),
            refs: Refs::default(),
            free,
            _events: AbortOnDropHandle::new(task),
        };
        let discover = json!({"discover": true, "filter": [{"type": "page"}]});
        driver.browser::<Value>("Target.setDiscoverTargets", discover).await?;
        if let Some(home) = confined {
            let gate = NavigationGuard { home: home.clone(), refused: None, tabs: Vec::new() };
            driver.shared.lock().gate = Some(gate);
            driver.browser::<Value>("Fetch.enable", json!({ "patterns": documents() })).await?;
        }
        driver.take_a_tab().await?;
        Ok(driver)
    }

    /// Attaches to the tab in front; to a new one when those that there are have crashed or do not answer.
    async fn take_a_tab(&mut self) -> DriverResult<()> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Found {
            target_infos: Vec<Info>,
        }
        let filter = json!({"filter": [{"type": "page"}]});
        let Found { target_infos } = self.browser("Target.getTargets", filter).await?;
        let tabs = target_infos.into_iter().filter(Info::is_tab);
        let tabs: Vec<Seen> = tabs.map(|tab| Seen { target: tab.target_id, url: tab.url }).collect();
        // Their order says nothing. One alone need not be asked.
        let tabs = match &tabs[..] {
            [tab] => vec![tab.target.clone()],
            _ => in_front(&self.cdp, tabs).await,
        };
        for target in tabs.iter().take(TRIES) {
            let mut attached = self.attach(target).await;
            if matches!(&attached, Err(DriverError::Refused(why)) if why == FREED) {
                attached = self.attach(target).await;
            }
            match attached {
                Err(DriverError::Refused(_)) => {}
                attached => return attached,
            }
        }
        let target = self.create_tab().await?;
        self.attach(&target).await
    }

    async fn create_tab(&self) -> DriverResult<String> {
        let made: TargetRef = self.browser(Target::CreateTarget::NAME, json!({"url": "about:blank"})).await?;
        Ok(made.target_id)
    }

    async fn attach(&mut self, target: &str) -> DriverResult<()> {
        let old = {
            let mut state = self.shared.lock();
            (state.dialog, state.loading, state.crashed) = (None, false, false);
            state.active.take()
        };
        if let Some(old) = old {
            drop(self.cdp.send_as::<Value>(Target::DetachFromTarget::NAME, None, json!({"sessionId": old.session})));
        }
        let attach = json!({"targetId": target, "flatten": true});
        let Detached { session_id } = self.browser(Target::AttachToTarget::NAME, attach).await?;
        self.shared.lock().active = Some(Active { target: target.to_owned(), session: session_id });
        // Says at once whether the tab has crashed, in which nothing else is answered.
        drop(self.send("Inspector.enable", json!({})));
        let enabled = tokio::select! {
            enabled = self.page::<Value>("Page.enable", json!({})) => enabled.map(drop),
            () = self.until_ever(|state| state.crashed) => Err(DriverError::Refused("the tab has crashed".to_owned())),
        };
        if self.dialog().is_none() {
            enabled?;
        }
        self.until(clock::deadline(CALL), |state| state.tabs.iter().any(|tab| tab.target == target)).await;
        drop(self.send("Page.addScriptToEvaluateOnNewDocument", json!({"source": self.script.source()})));
        // Input goes to the tab in front alone.
        drop(self.send("Page.bringToFront", json!({})));
        Ok(())
    }

    /// A call to the browser itself.
    async fn browser<T: DeserializeOwned>(&self, method: &'static str, params: Value) -> DriverResult<T> {
        Ok(self.cdp.send_as(method, None, params).by(clock::deadline(CALL)).await?)
    }

    fn send(&self, method: &'static str, params: Value) -> crate::browser::cdp::Pending<Value> {
        let session = self.shared.lock().active.as_ref().map(|active| active.session.clone());
        self.cdp.send_as(method, session.as_deref(), params)
    }

    /// A call to the page; an error while a dialog holds the page up.
    pub async fn page<T: DeserializeOwned>(&self, method: &'static str, params: Value) -> DriverResult<T> {
        let Some(session) = self.shared.lock().active.as_ref().map(|active| active.session.clone()) else {
            return Err(DriverError::Refused("the tab is closed".to_owned()));
        };
        let call = self.cdp.send_as(method, Some(&session), params).by(clock::deadline(CALL));
        tokio::select! {
            biased;
            answer = call => {
                // A site may be slow as well: then no page is blocked.
                if matches!(answer, Err(CdpError::Timeout { .. })) && (self.free)().await > 0 {
                    return Err(DriverError::Refused(FREED.to_owned()));
                }
                Ok(answer?)
            }
            () = self.dialog_opens() => Err(DriverError::Refused("a dialog is open".to_owned())),
        }
    }

    /// A call that a dialog may cut short, as a click does that opens one.
    pub async fn input(&self, method: &'static str, params: Value) -> DriverResult<()> {
        match self.page::<Value>(method, params).await {
            Err(DriverError::Refused(_)) if self.dialog().is_some() => Ok(()),
            done => done.map(drop),
        }
    }

    async fn dialog_opens(&self) {
        self.until_ever(|state| state.dialog.is_some()).await;
    }

    async fn until_ever(&self, is_so: impl Fn(&BrowserState) -> bool) {
        let mut changed = self.shared.changed.subscribe();
        while !is_so(&self.shared.lock()) {
            if changed.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Waits until something is so, at most until `by`; whether it is.
    async fn until(&self, by: Instant, is_so: impl Fn(&BrowserState) -> bool) -> bool {
        tokio::time::timeout_at(by, self.until_ever(is_so)).await.is_ok()
    }

    /// The dialog that is open.
    pub fn dialog(&self) -> Option<Dialog> {
        self.shared.lock().dialog.clone()
    }

    /// The address of the tab, as the browser says.
    pub fn url(&self) -> String {
        let state = self.shared.lock();
        let target = state.target();
        state.tabs.iter().find(|tab| Some(tab.target.as_str()) == target).map(|tab| tab.url.clone()).unwrap_or_default()
    }

    /// The element that the last snapshot showed under this name.
    pub fn find(&self, name: &str) -> Option<&Element> {
        self.refs.find(name)
    }

    /// Tabs there are now.
    pub fn tab_count(&self) -> usize {
        self.shared.lock().tabs.len()
    }

    /// Waits until the page is at rest after an action, and follows it to a tab that it opened. Returns what is worth
    /// telling.
    pub async fn rest(&mut self, tabs_before: usize) -> DriverResult<Option<String>> {
        self.until(clock::deadline(BEGINNING), |state| state.loading || state.dialog.is_some()).await;
        let mut told = None;
        if self.tab_count() > tabs_before {
            let opened = {
                let state = self.shared.lock();
                let newest =
                    state.tabs.last().filter(|tab| tab.opener.is_some() && tab.opener.as_deref() == state.target());
                newest.map(|tab| (tab.target.clone(), tab.name.clone()))
            };
            if let Some((target, name)) = opened
                && !self.shut_out(&target).await
            {
                self.attach(&target).await?;
                told = Some(format!("It opened a new tab, {name}, which is the one you see now."));
            }
        }
        if self.shared.lock().active.is_none() {
            self.take_a_tab().await?;
            told = Some("The tab closed; this is another one.".to_owned());
        }
        self.settle().await?;
        Ok(told)
    }

    /// Closes a tab that was opened for an address that may not be; whether it was.
    async fn shut_out(&self, target: &str) -> bool {
        if !self.shared.lock().gate.as_ref().is_some_and(|gate| gate.home.is_confined()) {
            return false;
        }
        let is_refused =
            |state: &BrowserState| state.gate.as_ref().is_some_and(|gate| gate.tabs.iter().any(|tab| tab == target));
        let has_page = |state: &BrowserState| {
            state.tabs.iter().any(|tab| tab.target == target && !matches!(tab.url.as_str(), "" | "about:blank"))
        };
        self.until(clock::deadline(OPENING), |state| is_refused(state) || has_page(state)).await;
        if !is_refused(&self.shared.lock()) {
            return false;
        }
        let _ = self.browser::<Value>("Target.closeTarget", json!({ "targetId": target })).await;
        self.until(clock::deadline(CALL), |state| state.tabs.iter().all(|tab| tab.target != target)).await;
        true
    }

    /// Waits for the page, or a dialog.
    pub async fn settle(&self) -> DriverResult<()> {
        let by = clock::deadline(LOADING);
        for _ in 0..3 {
            let (session, is_blank) = {
                let state = self.shared.lock();
                if state.dialog.is_some() || state.crashed {
                    return Ok(());
                }
                let Some(active) = &state.active else { return Ok(()) };
                let is_blank = state.tabs.iter().any(|tab| tab.target == active.target && tab.url == "about:blank")
                    && !state.loading;
                (active.session.clone(), is_blank)
            };
            if is_blank {
                return Ok(());
            }
            let look = Look::only_rest(by);
            tokio::select! {
                // A page that does not come to rest in time is shown as it is then.
                _ = wait::settle(&self.cdp, &session, &self.script, look, by) => {}
                () = self.dialog_opens() => return Ok(()),
                () = self.cdp.closed().cancelled() => return Err(DriverError::Lost),
            }
            if !self.shared.lock().loading || clock::instant() >= by {
                break;
            }
        }
        Ok(())
    }

    /// Sends the tab to an address, and keeps it from every other that this leads to and that is not the task's.
    pub async fn navigate(&mut self, url: &str, home: &Home) -> DriverResult<()> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Began {
            error_text: Option<String>,
        }
        self.shared.lock().gate = Some(NavigationGuard { home: home.clone(), refused: None, tabs: Vec::new() });
        if !home.is_confined() {
            self.page::<Value>("Fetch.enable", json!({ "patterns": documents() })).await?;
        }
        let began = match self.page::<Began>("Page.navigate", json!({ "url": url })).await {
            // The page asks by a dialog whether it may be left.
            Err(DriverError::Refused(_)) if self.dialog().is_some() => return Ok(()),
            began => began?,
        };
        match began.error_text.filter(|error| !error.is_empty()) {
            // TargetEvent once the page is at rest.
            Some(_) if self.shared.lock().gate.as_ref().is_some_and(|gate| gate.refused.is_some()) => Ok(()),
            Some(error) => Err(DriverError::Refused(format!("the address could not be opened ({error})"))),
            None => Ok(()),
        }
    }

    /// The document that the tab shows: what tells it from every other, and its address. `None`: it cannot be asked now.
    pub async fn document(&self) -> DriverResult<Option<(String, String)>> {
        match self.page::<FrameTree>("Page.getFrameTree", json!({})).await {
            Ok(FrameTree { frame_tree: Frames { frame, .. } }) => {
                Ok(Some((frame.loader_id, frame.url + &frame.url_fragment.unwrap_or_default())))
            }
            Err(DriverError::Refused(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Where the tab was kept from going since this was last asked.
    pub fn kept_from(&self) -> Option<String> {
        self.shared.lock().gate.as_mut().and_then(|gate| gate.refused.take())
    }

    /// Lets the tab go wherever its page leads.
    pub async fn let_go(&self) -> DriverResult<()> {
        {
            let mut state = self.shared.lock();
            if state.gate.as_ref().is_none_or(|gate| gate.home.is_confined()) {
                return Ok(());
            }
            state.gate = None;
        }
        match self.page::<Value>("Fetch.disable", json!({})).await {
            // The tab is closed, or holds a dialog: without a gate every request goes on.
            Err(DriverError::Refused(_)) => Ok(()),
            done => done.map(drop),
        }
    }

    /// A world of the agent's own in a frame, which shares the document with the page and nothing else.
    pub async fn world(&self, frame: &str) -> DriverResult<i64> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct World {
            execution_context_id: i64,
        }
        let world = json!({"frameId": frame, "worldName": "weir"});
        let World { execution_context_id } = self.page("Page.createIsolatedWorld", world).await?;
        Ok(execution_context_id)
    }

    /// Whether the page shows, or the browser has anywhere, frames that are not the task's.
    pub async fn has_foreign_frames(&self, home: &Home) -> DriverResult<bool> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Targets {
            target_infos: Vec<Target>,
        }
        #[derive(Deserialize)]
        struct Target {
            url: String,
        }
        // Frames without an address of their own are written by the page.
        let is_foreign = |url: &str| !url.is_empty() && !url.starts_with("about:") && !home.holds_text(url);
        let FrameTree { frame_tree } = self.page("Page.getFrameTree", json!({})).await?;
        if frame_tree.child_frames.iter().any(|frames| frames.any(&is_foreign)) {
            return Ok(true);
        }
        let apart = json!({"filter": [{"type": "iframe"}]});
        let Targets { target_infos } = self.browser("Target.getTargets", apart).await?;
        Ok(target_infos.iter().any(|target| is_foreign(&target.url)))
    }

    /// The window's document, in that world.
    pub async fn main_document(&self) -> DriverResult<String> {
        #[derive(Deserialize)]
        struct Found {
            result: Document,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Document {
            object_id: Option<String>,
        }
        let Some(frame) = self.shared.lock().target().map(str::to_owned) else {
            return Err(DriverError::Refused("the tab is closed".to_owned()));
        };
        let question = json!({"expression": "document", "contextId": self.world(&frame).await?});
        let found: Found = self.page("Runtime.evaluate", question).await?;
        found.result.object_id.ok_or_else(|| DriverError::Refused("there is no page".to_owned()))
    }

    /// Goes back in the tab's history.
    pub async fn back(&mut self) -> DriverResult<()> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct History {
            current_index: usize,
            entries: Vec<Entry>,
        }
        #[derive(Deserialize)]
        struct Entry {
            id: i64,
        }
        let history: History = self.page("Page.getNavigationHistory", json!({})).await?;
        let before = history.current_index.checked_sub(1).and_then(|at| history.entries.get(at));
        let before = before.ok_or_else(|| DriverError::Refused("there is nothing before this page".to_owned()))?;
        self.input("Page.navigateToHistoryEntry", json!({"entryId": before.id})).await
    }

    /// Opens a tab and goes there.
    pub async fn new_tab(&mut self) -> DriverResult<()> {
        if self.tab_count() >= TABS {
            return Err(DriverError::Refused("there are too many tabs".to_owned()));
        }
        let target = self.create_tab().await?;
        self.attach(&target).await
    }

    /// Goes to the tab of this name.
    pub async fn switch_tab(&mut self, name: &str) -> DriverResult<()> {
        let target = {
            let state = self.shared.lock();
            state.tabs.iter().find(|tab| tab.name == name.trim()).map(|tab| tab.target.clone())
        };
        let target = target.ok_or_else(|| DriverError::Refused(format!("there is no tab {}", cut(name, 20))))?;
        self.attach(&target).await
    }

    /// Answers the open dialog.
    pub async fn answer_dialog(&self, accept: bool, text: Option<&str>) -> DriverResult<()> {
        let mut params = json!({ "accept": accept });
        if let Some(text) = text {
            params["promptText"] = text.into();
        }
        // Not through `page`, which refuses while a dialog is open.
        self.send(Page::HandleJavaScriptDialog::NAME, params).by(clock::deadline(CALL)).await?;
        self.until(clock::deadline(CALL), |state| state.dialog.is_none()).await;
        Ok(())
    }

    /// What there is to see now, with a picture if one is wanted.
    pub async fn look(&mut self, wants_picture: bool) -> DriverResult<View> {
        if self.shared.lock().active.is_none() {
            self.take_a_tab().await?;
        }
        let mut view = self.outside();
        if view.dialog.is_some() {
            return Ok(view);
        }
        match self.read().await {
            // Chromium tells of new addresses, not of new titles.
            Ok((url, title, text)) => (view.url, view.title, view.snapshot) = (url, title, text),
            Err(DriverError::Lost) => return Err(DriverError::Lost),
            Err(DriverError::Refused(why)) => {
                view = self.outside();
                if view.dialog.is_none() {
                    view.snapshot = format!("(the page cannot be read: {why})\n");
                }
            }
        }
        if wants_picture && view.dialog.is_none() {
            #[derive(Deserialize)]
            struct Shot {
                data: String,
            }
            let params = json!({"format": "jpeg", "quality": 60, "optimizeForSpeed": true});
            let shot = self.page::<Shot>("Page.captureScreenshot", params).await.ok();
            view.picture = shot.map(|shot| format!("data:image/jpeg;base64,{}", shot.data));
        }
        Ok(view)
    }

    /// What is known of the page without asking it, which a dialog would hold up.
    fn outside(&self) -> View {
        let state = self.shared.lock();
        let target = state.target();
        let active = state.tabs.iter().find(|tab| Some(tab.target.as_str()) == target);
        let line = |tab: &Tab| {
            let here = if Some(tab.target.as_str()) == target { " (this one)" } else { "" };
            format!("{}{here}: {} {}", tab.name, cut(&tab.title, 100), cut(&tab.url, 150))
        };
        View {
            url: active.map(|tab| tab.url.clone()).unwrap_or_default(),
            title: active.map(|tab| cut(&tab.title, 200)).unwrap_or_default(),
            tabs: if state.tabs.len() > 1 { state.tabs.iter().take(TABS).map(line).collect() } else { Vec::new() },
            dialog: state.dialog.clone(),
            ..View::default()
        }
    }

    /// Address, title and text of the page.
    async fn read(&mut self) -> DriverResult<(String, String, String)> {
        let FrameTree { frame_tree } = self.page("Page.getFrameTree", json!({})).await?;
        let tree: Tree = self.page("Accessibility.getFullAXTree", json!({})).await?;
        let mut frames = Vec::new();
        frame_tree.below(&mut frames);
        let mut inner = Vec::new();
        for frame in frames {
            // A frame in a process of its own is not readable from here.
            match self.page::<Tree>("Accessibility.getFullAXTree", json!({"frameId": frame.id})).await {
                Ok(tree) => inner.push((frame, tree)),
                Err(DriverError::Lost) => return Err(DriverError::Lost),
                Err(DriverError::Refused(_)) => {}
            }
        }
        self.refs.begin(&frame_tree.frame.loader_id);
        let mut writer = Writer::new(&mut self.refs, &frame_tree.frame.url);
        writer.add(&tree, &frame_tree.frame.id, None);
        for (frame, tree) in &inner {
            writer.add(tree, &frame.id, Some(&frame.url));
        }
        Ok((frame_tree.frame.url.clone(), tree.title(), writer.finish()))
    }
}
