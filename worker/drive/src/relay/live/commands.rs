//! What the live view asks of the browser, and the answers that it does not wait for.

use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::time::Instant;
use weir_shared::clock;

use super::clipboard::SELECTED;
use super::events::{Chooser, SessionId, TargetInfo, TargetList};
use super::input::{self, File, Order};
use super::tabs::Tabs;
use super::upload;
use crate::browser::cdp::{Cdp, CdpError};
use crate::front::{Seen, in_front};

/// Time for an answer of the browser itself, which no page can hold up.
pub const ANSWER: Duration = Duration::from_secs(5);
/// Time for an answer that a page can hold up.
const PAGE_ANSWER: Duration = Duration::from_secs(20);
/// Size and quality of the pictures.
const SIZE: (u32, u32) = (1280, 720);
const QUALITY: u8 = 60;
/// Inputs that Chromium has not answered: beyond the first number moves are dropped, beyond the second everything.
const INPUTS: (usize, usize) = (16, 512);

/// What came of a command whose answer was not waited for.
pub enum Done {
    /// An input was taken.
    Input,
    /// The tab to show.
    Found(Option<String>),
    /// Whether the tab of this session can go back and forward.
    History {
        session: String,
        back: bool,
        forward: bool,
    },
    /// All targets as they are now.
    Targets(Vec<TargetInfo>),
    /// Something to tell a viewer.
    Notice(u64, String),
    /// What was selected, for the viewer who copied.
    Copied(u64, Option<String>),
    Nothing,
}

/// The connection to the browser and the commands at work on it.
///
/// Commands of a page name its session, `session`. Those that return nothing are sent, and what matters of their
/// answers comes as a result from [`Commands::next`]. Those that return a future have been sent before it is awaited.
pub struct Commands {
    cdp: Cdp,
    work: FuturesUnordered<BoxFuture<'static, Done>>,
    inputs: usize,
}

impl Commands {
    pub fn new(cdp: Cdp) -> Self {
        Self { cdp, work: FuturesUnordered::new(), inputs: 0 }
    }

    /// The next result; for ever pending where nothing is at work.
    pub async fn next(&mut self) -> Done {
        match self.work.next().await {
            Some(done) => done,
            None => std::future::pending().await,
        }
    }

    /// Inputs that Chromium has not answered.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// One of them is answered.
    pub fn input_answered(&mut self) {
        self.inputs = self.inputs.saturating_sub(1);
    }

    /// Ends the connection. Chromium ends the screencast and whatever else hung on its sessions.
    pub fn close(&self) {
        self.cdp.close();
    }

    /// Sends a command to the browser itself (no session) or to a page.
    fn post(&self, session: Option<&str>, method: &'static str, params: Value) {
        drop(self.cdp.send_as::<Value>(method, session, params));
    }

    /// Lets a command run and gives its result to `then`.
    fn later<F>(&self, session: &str, method: &'static str, params: Value, patience: Duration, then: F)
    where
        F: FnOnce(Result<Value, CdpError>) -> Done + Send + 'static,
    {
        let pending = self.cdp.send_as::<Value>(method, Some(session), params);
        let deadline = clock::deadline(patience);
        self.work.push(async move { then(pending.by(deadline).await) }.boxed());
    }

    /// Has the browser tell of its tabs. Those that there are come as events before this returns.
    pub fn discover(&self) -> impl Future<Output = Result<(), CdpError>> + Send + use<> {
        let params = json!({"discover": true, "filter": [{"type": "page"}]});
        let discovered = self.cdp.send_as::<Value>("Target.setDiscoverTargets", None, params);
        async move { discovered.by(clock::deadline(ANSWER)).await.map(drop) }
    }

    /// A session on a tab.
    pub fn attach(&self, target: &str) -> impl Future<Output = Result<String, CdpError>> + Send + use<> {
        attach(&self.cdp, target, clock::deadline(ANSWER))
    }

    /// Ends a session.
    pub fn detach(&self, session: &str) {
        self.post(None, "Target.detachFromTarget", json!({"sessionId": session}));
    }

    /// Begins the screencast of a page.
    pub fn start_screencast(&self, session: &str) {
        self.post(Some(session), "Page.enable", json!({}));
        let (width, height) = SIZE;
        let params = json!({"format": "jpeg", "quality": QUALITY, "maxWidth": width, "maxHeight": height});
        self.post(Some(session), "Page.startScreencast", params);
    }

    /// Lets the picture after this one come.
    pub fn acknowledge(&self, session: &str, number: i64) {
        self.post(Some(session), "Page.screencastFrameAck", json!({"sessionId": number}));
    }

    /// Takes over the file choosers of a page or a frame, or leaves them.
    pub fn intercept_choosers(&self, session: &str, enabled: bool) {
        self.post(Some(session), "Page.setInterceptFileChooserDialog", json!({"enabled": enabled}));
        // Frames of other sites live elsewhere and have sessions of their own.
        let params = json!({
            "autoAttach": enabled, "waitForDebuggerOnStart": false, "flatten": true, "filter": [{"type": "iframe"}],
        });
        self.post(Some(session), "Target.setAutoAttach", params);
    }

    /// Has a frame with a session of its own tell of its file choosers.
    pub fn watch_frame(&self, session: &str) {
        self.post(Some(session), "Page.enable", json!({}));
        self.intercept_choosers(session, true);
    }

    /// Asks where the history of a page leads.
    pub fn ask_history(&self, session: &str) {
        let own = session.to_owned();
        self.later(session, "Page.getNavigationHistory", json!({}), ANSWER, move |history| match history {
            Ok(history) => {
                let index = history["currentIndex"].as_u64().unwrap_or(0) as usize;
                let entries = history["entries"].as_array().map_or(0, Vec::len);
                Done::History { session: own, back: index > 0, forward: index + 1 < entries }
            }
            Err(_) => Done::Nothing,
        });
    }

    /// Asks for the titles of all tabs: Chromium tells of a new address, not of a new title.
    pub fn ask_titles(&self) {
        let params = json!({"filter": [{"type": "page"}]});
        let pending = self.cdp.send_as::<TargetList>("Target.getTargets", None, params);
        let deadline = clock::deadline(ANSWER);
        let work =
            async move { pending.by(deadline).await.map_or(Done::Nothing, |list| Done::Targets(list.target_infos)) };
        self.work.push(work.boxed());
    }

    /// The tab that the browser shows in front, or where something was loaded last.
    pub fn find_visible(&self, tabs: &Tabs) -> impl Future<Output = Option<String>> + Send + use<> {
        let cdp = self.cdp.clone();
        let seen = tabs.newest_first().map(|tab| Seen { target: tab.id.clone(), url: tab.url.clone() }).collect();
        async move { in_front(&cdp, seen).await.into_iter().next() }
    }

    /// The same without waiting for it.
    pub fn ask_visible(&self, tabs: &Tabs) {
        self.work.push(self.find_visible(tabs).map(Done::Found).boxed());
    }

    /// Gives a page an input, unless too many are on their way.
    pub fn input(&mut self, session: &str, order: &Order, method: &'static str, params: Value) {
        let (some, many) = INPUTS;
        if self.inputs >= many || (order.is_passing() && self.inputs >= some) {
            return;
        }
        self.inputs += 1;
        self.later(session, method, params, PAGE_ANSWER, |_| Done::Input);
    }

    /// Opens an address; a failure is told to the viewer.
    pub fn navigate(&self, session: &str, viewer: u64, url: &str) {
        self.later(session, "Page.navigate", json!({"url": url}), PAGE_ANSWER, move |answer| {
            let failure = answer.ok().and_then(|a| a["errorText"].as_str().map(str::to_owned));
            match failure {
                // A download or another navigation took its place.
                Some(text) if text != "net::ERR_ABORTED" => {
                    Done::Notice(viewer, format!("The page did not load: {text}"))
                }
                _ => Done::Nothing,
            }
        });
    }

    /// Goes so many entries through the history of a page.
    pub fn go(&self, session: &str, by: i64) {
        let (cdp, session) = (self.cdp.clone(), session.to_owned());
        let deadline = clock::deadline(ANSWER);
        let work = async move {
            let history =
                cdp.send_as::<Value>("Page.getNavigationHistory", Some(&session), json!({})).by(deadline).await;
            let Ok(history) = history else { return Done::Nothing };
            let index = history["currentIndex"].as_i64().unwrap_or(0) + by;
            let entry = usize::try_from(index).ok().and_then(|index| history["entries"][index]["id"].as_i64());
            if let Some(entry) = entry {
                let params = json!({"entryId": entry});
                drop(cdp.send_as::<Value>("Page.navigateToHistoryEntry", Some(&session), params));
            }
            Done::Nothing
        };
        self.work.push(work.boxed());
    }

    pub fn reload(&self, session: &str) {
        self.post(Some(session), "Page.reload", json!({}));
    }

    pub fn stop(&self, session: &str) {
        self.post(Some(session), "Page.stopLoading", json!({}));
    }

    pub fn open_tab(&self) {
        self.post(None, "Target.createTarget", json!({"url": "about:blank"}));
    }

    pub fn activate_tab(&self, target: &str) {
        self.post(None, "Target.activateTarget", json!({"targetId": target}));
    }

    pub fn close_tab(&self, target: &str) {
        self.post(None, "Target.closeTarget", json!({"targetId": target}));
    }

    /// Answers a dialog for a viewer, who is told when somebody else has.
    pub fn answer_dialog(&self, session: &str, viewer: u64, accept: bool, text: Option<String>) {
        let mut params = json!({"accept": accept});
        if let Some(text) = text.filter(|_| accept) {
            params["promptText"] = json!(text);
        }
        self.later(session, "Page.handleJavaScriptDialog", params, ANSWER, move |answer| match answer {
            Err(CdpError::Refused { .. }) => {
                Done::Notice(viewer, "The dialog was already answered by somebody else.".to_owned())
            }
            _ => Done::Nothing,
        });
    }

    /// Answers a dialog for nobody.
    pub fn end_dialog(&self, session: &str, accept: bool) {
        self.post(Some(session), "Page.handleJavaScriptDialog", json!({"accept": accept}));
    }

    /// Gives a page a window of this size, CSS pixels; `None`: the browser's own.
    pub fn set_viewport(&self, session: &str, size: Option<(u32, u32)>) {
        match size {
            Some((width, height)) => {
                let params = json!({"width": width, "height": height, "deviceScaleFactor": 0, "mobile": false});
                self.post(Some(session), "Emulation.setDeviceMetricsOverride", params);
            }
            None => self.post(Some(session), "Emulation.clearDeviceMetricsOverride", json!({})),
        }
    }

    /// Reads what is selected on a page, for a viewer.
    pub fn read_selection(&self, session: &str, viewer: u64) {
        let params = json!({"expression": SELECTED, "returnByValue": true, "timeout": 500});
        self.later(session, "Runtime.evaluate", params, ANSWER, move |answer| {
            let text = answer.ok().and_then(|a| a["result"]["value"].as_str().map(str::to_owned));
            Done::Copied(viewer, text.filter(|text| !text.is_empty() && text.len() <= input::TEXT_MESSAGE))
        });
    }

    /// Gives a viewer's files to the input with this number, and tells the viewer what came of it.
    pub fn upload(&self, viewer: u64, chooser: Chooser, node: i64, files: Vec<File>) {
        let cdp = self.cdp.clone();
        let work = async move {
            let deadline = clock::deadline(PAGE_ANSWER);
            let text = match upload::set_files(&cdp, &chooser, node, &files, deadline).await {
                Ok(true) => "The file was handed over.",
                Ok(false) | Err(_) => "The page did not take the file.",
            };
            Done::Notice(viewer, text.to_owned())
        };
        self.work.push(work.boxed());
    }
}

fn attach(cdp: &Cdp, target: &str, deadline: Instant) -> impl Future<Output = Result<String, CdpError>> + Send + use<> {
    let params = json!({"targetId": target, "flatten": true});
    let attached = cdp.send_as::<SessionId>("Target.attachToTarget", None, params);
    async move { Ok(attached.by(deadline).await?.session_id) }
}
