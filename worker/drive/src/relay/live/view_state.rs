//! What viewers see of the browser: its tabs, the one on show, and the description that they are sent. No IO.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use weir_shared::clock;

use super::events::{Chooser, Dialog, TargetInfo};
use super::tabs::Tabs;

/// Shortest time between two descriptions.
const PACE: Duration = Duration::from_millis(50);
/// How long a tab stays on show before the view follows the work elsewhere by itself.
const HOLD: Duration = Duration::from_millis(700);

/// The tab on show.
pub struct ShownTab {
    /// The tab's id, which is also that of its main frame.
    pub target: String,
    /// The live view's session on it.
    pub session: String,
    since: Instant,
    /// Sessions of frames in processes of their own, for their file choosers.
    frames: HashSet<String>,
    is_loading: bool,
    can_go_back: bool,
    can_go_forward: bool,
    has_crashed: bool,
    dialog: Option<Dialog>,
    chooser: Option<Chooser>,
    /// Height of what the last picture shows above the page, CSS pixels.
    pub offset_top: f64,
    /// Pictures to acknowledge, the oldest first.
    pub unacknowledged: VecDeque<i64>,
    viewport: Option<(u32, u32)>,
}

impl ShownTab {
    fn new(target: String, session: String) -> Self {
        Self {
            target,
            session,
            since: clock::instant(),
            frames: HashSet::new(),
            is_loading: false,
            can_go_back: false,
            can_go_forward: false,
            has_crashed: false,
            dialog: None,
            chooser: None,
            offset_top: 0.0,
            unacknowledged: VecDeque::new(),
            viewport: None,
        }
    }

    /// The dialog that the page waits with.
    pub fn dialog(&self) -> Option<&Dialog> {
        self.dialog.as_ref()
    }

    /// Whether this session is that of one of its frames in processes of their own.
    pub fn has_frame(&self, session: &str) -> bool {
        self.frames.contains(session)
    }
}

/// All that viewers are told, and whether they have to be told again.
pub struct ViewState {
    tabs: Tabs,
    shown: Option<ShownTab>,
    is_old: bool,
    /// The next description goes out at this time at the earliest.
    next: Instant,
}

impl ViewState {
    /// Nothing on show yet.
    pub fn new(tabs: Tabs) -> Self {
        Self { tabs, shown: None, is_old: true, next: clock::instant() }
    }

    pub fn tabs(&self) -> &Tabs {
        &self.tabs
    }

    pub fn shown(&self) -> Option<&ShownTab> {
        self.shown.as_ref()
    }

    pub fn shown_mut(&mut self) -> Option<&mut ShownTab> {
        self.shown.as_mut()
    }

    /// When the viewers are to be told again, if they are.
    pub fn due(&self) -> Option<Instant> {
        self.is_old.then_some(self.next)
    }

    /// The description for viewers, once it has changed, and not more often than they can follow.
    pub fn description(&mut self, now: Instant) -> Option<Value> {
        if self.due().is_none_or(|due| now < due) {
            return None;
        }
        self.is_old = false;
        self.next = now + PACE;
        let shown = self.shown.as_ref();
        let dialog = shown.and_then(|tab| tab.dialog.as_ref()).map(|dialog| {
            json!({"kind": dialog.kind, "message": dialog.message, "default": dialog.default, "url": dialog.url})
        });
        let chooser = shown.and_then(|tab| tab.chooser.as_ref());
        Some(json!({
            "type": "state",
            "tabs": self.tabs.told(shown.map(|tab| tab.target.as_str())),
            "active": shown.map(|tab| &tab.target),
            "loading": shown.is_some_and(|tab| tab.is_loading),
            "back": shown.is_some_and(|tab| tab.can_go_back),
            "forward": shown.is_some_and(|tab| tab.can_go_forward),
            "crashed": shown.is_some_and(|tab| tab.has_crashed),
            "dialog": dialog,
            "chooser": chooser.map(|chooser| json!({"multiple": chooser.multiple})),
            "viewport": shown.and_then(|tab| tab.viewport),
        }))
    }

    /// Until when the tab on show stays there although the work went elsewhere by itself; `None`: it need not.
    pub fn stays_until(&self, now: Instant) -> Option<Instant> {
        let shown = self.shown.as_ref()?;
        let may_stay = self.tabs.contains(&shown.target) && self.tabs.can_wait();
        let until = shown.since + HOLD;
        (may_stay && self.tabs.active() != Some(&shown.target) && now < until).then_some(until)
    }

    /// Whether the active tab is the one on show.
    pub fn shows_active(&self) -> bool {
        self.tabs.active() == self.shown.as_ref().map(|tab| tab.target.as_str())
    }

    /// Takes the tab on show away.
    pub fn hide(&mut self) -> Option<ShownTab> {
        self.is_old = true;
        self.shown.take()
    }

    /// Puts a tab on show.
    pub fn show(&mut self, target: String, session: String) {
        self.shown = Some(ShownTab::new(target, session));
    }

    /// The browser has this tab in front.
    pub fn bring_to_front(&mut self, target: &str) {
        self.tabs.show(target);
        self.is_old = true;
    }

    /// A viewer wants to see this tab. `false`: there is none.
    pub fn pick(&mut self, target: &str) -> bool {
        let is_known = self.tabs.pick(target);
        self.is_old |= is_known;
        is_known
    }

    pub fn tab_created(&mut self, tab: &TargetInfo) {
        self.tabs.created(&tab.target_id, &tab.title, &tab.url, true);
        self.is_old = true;
    }

    pub fn tab_changed(&mut self, tab: &TargetInfo) {
        self.is_old |= self.tabs.changed(&tab.target_id, &tab.title, &tab.url);
    }

    pub fn tab_destroyed(&mut self, target: &str) {
        self.tabs.destroyed(target);
        self.is_old = true;
    }

    pub fn tab_crashed(&mut self, target: &str) {
        if let Some(shown) = self.shown.as_mut().filter(|shown| shown.target == target) {
            shown.has_crashed = true;
            self.is_old = true;
        }
    }

    /// A frame of the tab on show has a session of its own. `false`: it belongs to another tab.
    pub fn frame_attached(&mut self, parent: &str, session: &str) -> bool {
        let Some(shown) = &mut self.shown else { return false };
        if shown.session != parent && !shown.frames.contains(parent) {
            return false;
        }
        shown.frames.insert(session.to_owned());
        true
    }

    pub fn frame_detached(&mut self, session: &str) {
        if let Some(shown) = &mut self.shown {
            shown.frames.remove(session);
        }
    }

    /// A frame of the tab on show began or ended to load. `false`: not its main frame.
    pub fn loading(&mut self, frame: &str, is_loading: bool) -> bool {
        let Some(shown) = self.shown.as_mut().filter(|shown| shown.target == frame) else { return false };
        shown.is_loading = is_loading;
        shown.has_crashed = false;
        self.is_old = true;
        true
    }

    /// Where the history of the tab with this session leads.
    pub fn history(&mut self, session: &str, back: bool, forward: bool) {
        if let Some(shown) = self.shown.as_mut().filter(|shown| shown.session == session) {
            self.is_old |= (shown.can_go_back, shown.can_go_forward) != (back, forward);
            (shown.can_go_back, shown.can_go_forward) = (back, forward);
        }
    }

    /// The dialog of the tab on show, or that there is none any more.
    pub fn set_dialog(&mut self, dialog: Option<Dialog>) {
        if let Some(shown) = &mut self.shown {
            shown.dialog = dialog;
            self.is_old = true;
        }
    }

    pub fn chooser_opened(&mut self, chooser: Chooser) {
        if let Some(shown) = &mut self.shown {
            shown.chooser = Some(chooser);
            self.is_old = true;
        }
    }

    /// Takes the file chooser away; `None`: there is none.
    pub fn take_chooser(&mut self) -> Option<Chooser> {
        let chooser = self.shown.as_mut()?.chooser.take();
        self.is_old |= chooser.is_some();
        chooser
    }

    /// Notes the window that the page is given; `None`: the browser's own. Returns whether that is another one.
    pub fn set_viewport(&mut self, size: Option<(u32, u32)>) -> bool {
        let Some(shown) = self.shown.as_mut().filter(|shown| shown.viewport != size) else { return false };
        shown.viewport = size;
        true
    }

    /// Has the viewers told again, whether anything changed or not: one of them asked for something.
    pub fn tell_again(&mut self) {
        self.is_old = true;
    }
}
