//! What is known of a browser by its events: its tabs, whether a document is on its way, whether a dialog is open.

use serde::Deserialize;

use super::site::Home;
use super::snapshot::cut;
use crate::browser::cdp::Event;

/// Longest text of a dialog, characters.
const DIALOG: usize = 500;

/// A dialog that holds the page up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dialog {
    /// `alert`, `confirm`, `prompt` or `beforeunload`.
    pub kind: String,
    pub message: String,
    /// The address of the frame that opened it.
    pub url: String,
}

/// An open tab.
#[derive(Debug, Clone)]
pub(super) struct Tab {
    /// Its name for the model.
    pub name: String,
    pub target: String,
    pub url: String,
    pub title: String,
    pub opener: Option<String>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct BrowserState {
    pub tabs: Vec<Tab>,
    last_name: usize,
    pub active: Option<Active>,
    pub loading: bool,
    pub dialog: Option<Dialog>,
    pub crashed: bool,
    pub gate: Option<NavigationGuard>,
}

/// Stands before the documents of an address that the agent has named, wherever its redirects lead.
#[derive(Debug)]
pub(super) struct NavigationGuard {
    pub home: Home,
    /// The first address that was refused.
    pub refused: Option<String>,
    /// Tabs that were opened for an address that was refused.
    pub tabs: Vec<String>,
}

/// A request that was stopped and waits for a decision.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Paused {
    pub request_id: String,
    #[serde(default)]
    frame_id: String,
    /// The request whose answer has led here.
    redirected_request_id: Option<String>,
    request: Request,
}

#[derive(Deserialize)]
struct Request {
    url: String,
}

/// The tab that the agent works in.
#[derive(Debug, Clone)]
pub(super) struct Active {
    /// Also the id of its main frame.
    pub target: String,
    pub session: String,
}

/// A request waits at the gate.
pub(super) const PAUSED: &str = "Fetch.requestPaused";

/// The events that are read: by [`BrowserState::take`], and the one that waits.
pub(super) fn wants(method: &str) -> bool {
    matches!(
        method,
        "Target.targetCreated"
            | "Target.targetInfoChanged"
            | "Target.targetDestroyed"
            | "Target.detachedFromTarget"
            | "Page.frameStartedLoading"
            | "Page.frameStoppedLoading"
            | "Page.javascriptDialogOpening"
            | "Page.javascriptDialogClosed"
            | "Inspector.targetCrashed"
            | PAUSED
    )
}

/// What the browser says of a target.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Info {
    pub target_id: String,
    r#type: String,
    #[serde(default)]
    pub url: String,
    #[serde(default)]
    title: String,
    opener_id: Option<String>,
}

impl Info {
    /// Whether it is a page that a person would see as a tab.
    pub fn is_tab(&self) -> bool {
        self.r#type == "page" && !self.url.starts_with("devtools://")
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TargetEvent {
    target_info: Info,
}

/// A target's id: of one that is gone, or of one that was made.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TargetRef {
    pub target_id: String,
}

/// A session's id: of one that was ended, or of one that was made.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Detached {
    pub session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfFrame {
    frame_id: String,
}

#[derive(Deserialize)]
struct Opening {
    #[serde(default)]
    url: String,
    #[serde(default)]
    message: String,
    r#type: String,
}

impl BrowserState {
    /// Takes in what has happened.
    pub fn take(&mut self, event: &Event) {
        let is_active = self.active.as_ref().is_some_and(|active| active.session == event.session);
        let is_main = || {
            let frame = event.params::<OfFrame>();
            is_active && frame.is_some_and(|f| self.active.as_ref().is_some_and(|a| a.target == f.frame_id))
        };
        match event.method.as_str() {
            "Target.targetCreated" | "Target.targetInfoChanged" => {
                if let Some(TargetEvent { target_info }) = event.params() {
                    self.take_tab(target_info);
                }
            }
            "Target.targetDestroyed" => {
                if let Some(TargetRef { target_id }) = event.params() {
                    self.tabs.retain(|tab| tab.target != target_id);
                }
            }
            "Target.detachedFromTarget" => {
                let gone = event.params::<Detached>().map(|detached| detached.session_id);
                if self.active.as_ref().is_some_and(|active| Some(&active.session) == gone.as_ref()) {
                    self.active = None;
                }
            }
            "Page.frameStartedLoading" if is_main() => self.loading = true,
            "Page.frameStoppedLoading" if is_main() => self.loading = false,
            "Page.javascriptDialogOpening" if is_active => {
                if let Some(Opening { url, message, r#type }) = event.params() {
                    self.dialog = Some(Dialog { kind: r#type, message: cut(&message, DIALOG), url });
                }
            }
            "Page.javascriptDialogClosed" if is_active => self.dialog = None,
            "Inspector.targetCrashed" if is_active => self.crashed = true,
            _ => {}
        }
    }

    /// Whether a request may go on: all do but those for a document in the window that is not the task's; of a task of its
    /// own, for one in any window and frame.
    pub fn lets_through(&mut self, paused: &Paused) -> bool {
        let is_main = self.target() == Some(paused.frame_id.as_str());
        let is_tab = self.tabs.iter().any(|tab| tab.target == paused.frame_id);
        let Some(gate) = self.gate.as_mut().filter(|gate| is_main || gate.home.is_confined()) else { return true };
        let is_home = gate.home.lets_in(&paused.request.url, paused.redirected_request_id.is_some());
        if !is_home && is_tab && !is_main {
            gate.tabs.push(paused.frame_id.clone());
        }
        if !is_home && (is_main || is_tab) {
            gate.refused.get_or_insert_with(|| paused.request.url.clone());
        }
        is_home
    }

    fn take_tab(&mut self, info: Info) {
        if !info.is_tab() {
            return;
        }
        if let Some(tab) = self.tabs.iter_mut().find(|tab| tab.target == info.target_id) {
            (tab.url, tab.title) = (info.url, info.title);
            return;
        }
        self.last_name += 1;
        let name = format!("t{}", self.last_name);
        let Info { target_id: target, url, title, opener_id: opener, .. } = info;
        self.tabs.push(Tab { name, target, url, title, opener });
    }

    /// The tab that is worked in.
    pub fn target(&self) -> Option<&str> {
        self.active.as_ref().map(|active| active.target.as_str())
    }
}
