//! The one task behind a live view: follows the active tab, paces its screencast, carries out orders.
//!
//! It has a connection of its own to Chromium and a flat session on one tab at a time, so CDP clients of the same
//! browser see nothing of it but what a person at the window would cause. Two things are the exception, because having
//! a session with the `Page` domain takes them over: dialogs and, while somebody with control watches, file choosers.
//! A dialog that nobody could answer (no viewer with control, no CDP client) is answered as a browser without a
//! debugger would answer it.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine as _;
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use weir_shared::clock;

use super::input::{self, File, Order};
use super::tabs::{Tab, Tabs};
use super::{FIGURES, LiveView};
use crate::browser::cdp::{Cdp, CdpError, Event, Events};
use crate::relay::Upstream;
use crate::relay::meter::{Budget, Meter};

/// Time between two pictures, which is kept by acknowledging them late: 10 in a second.
const PACE: Duration = Duration::from_millis(98);
/// Size and quality of the pictures.
const SIZE: (u32, u32) = (1280, 720);
const QUALITY: u8 = 60;
/// How long the last viewer's chair is kept warm: a page that reloads comes back at once.
const LINGER: Duration = Duration::from_secs(2);
/// Time for an answer of the browser itself, which no page can hold up.
const ANSWER: Duration = Duration::from_secs(5);
/// Time for an answer that a page can hold up.
const PAGE_ANSWER: Duration = Duration::from_secs(20);
/// Time for a tab to say whether it is visible.
const GLANCE: Duration = Duration::from_millis(500);
/// Tabs asked for that.
const GLANCES: usize = 8;
/// How long a tab stays on show before the view follows the work elsewhere by itself.
const HOLD: Duration = Duration::from_millis(700);
/// How often titles are asked for: Chromium tells of a new address, not of a new title.
const TITLES: Duration = Duration::from_millis(1_000);
/// Shortest time between two descriptions of the state.
const STATE_PACE: Duration = Duration::from_millis(50);
/// Inputs that Chromium has not answered: beyond the first number moves are dropped, beyond the second everything.
const INPUTS: (usize, usize) = (16, 512);
/// Longest dialog text told to viewers, characters.
const DIALOG_TEXT: usize = 2_000;

/// Runs until nobody watches, the session ends or the browser is gone.
pub async fn run(view: Arc<LiveView>, orders: mpsc::Receiver<(u64, Order)>) {
    view.frames.send_replace(None);
    view.state.send_replace("".into());
    match Hub::start(Arc::clone(&view)).await {
        Ok(hub) => hub.run(orders).await,
        Err(error) => tracing::debug!(%error, "a live view could not start"),
    }
    // Whatever is left in the slots is old from now on. `orders` is dropped, which tells the viewers.
    view.frames.send_replace(None);
    view.state.send_replace("".into());
}

fn wants(method: &str) -> bool {
    matches!(
        method,
        "Target.targetCreated"
            | "Target.targetInfoChanged"
            | "Target.targetDestroyed"
            | "Target.targetCrashed"
            | "Target.detachedFromTarget"
            | "Target.attachedToTarget"
            | "Page.screencastFrame"
            | "Page.screencastVisibilityChanged"
            | "Page.frameStartedLoading"
            | "Page.frameStoppedLoading"
            | "Page.frameNavigated"
            | "Page.navigatedWithinDocument"
            | "Page.javascriptDialogOpening"
            | "Page.javascriptDialogClosed"
            | "Page.fileChooserOpened"
    )
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TargetInfo {
    target_id: String,
    r#type: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TargetEvent {
    target_info: TargetInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TargetList {
    target_infos: Vec<TargetInfo>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TargetGone {
    target_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionEvent {
    session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AttachedEvent {
    session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameEvent<'a> {
    data: std::borrow::Cow<'a, str>,
    metadata: Metadata,
    session_id: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    offset_top: f64,
    device_width: f64,
    device_height: f64,
}

#[derive(Deserialize)]
struct Visibility {
    visible: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LoadingEvent {
    frame_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DialogEvent {
    #[serde(default)]
    message: String,
    r#type: String,
    #[serde(default)]
    default_prompt: Option<String>,
    #[serde(default)]
    url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChooserEvent {
    frame_id: String,
    mode: String,
    #[serde(default)]
    backend_node_id: Option<i64>,
}

struct Dialog {
    kind: String,
    message: String,
    default: String,
    url: String,
}

struct Chooser {
    session: String,
    frame: String,
    node: Option<i64>,
    multiple: bool,
}

/// The tab on show.
struct Stage {
    target: String,
    session: String,
    since: Instant,
    /// Sessions of frames in processes of their own, for their file choosers.
    frames: HashSet<String>,
    loading: bool,
    back: bool,
    forward: bool,
    crashed: bool,
    dialog: Option<Dialog>,
    chooser: Option<Chooser>,
    offset_top: f64,
    /// Pictures to acknowledge, the oldest first.
    unacknowledged: VecDeque<i64>,
    viewport: Option<(u32, u32)>,
}

/// What came of work that the hub did not wait for.
enum Done {
    /// An input was taken.
    Input,
    /// The tab to show.
    Found(Option<String>),
    /// Whether the tab of this session can go back and forward.
    History(String, bool, bool),
    /// All targets as they are now.
    Targets(Vec<TargetInfo>),
    /// Something to tell a viewer.
    Tell(u64, Value),
    /// What was selected, for the viewer who copied.
    Copied(u64, Option<String>),
    Nothing,
}

/// A copy at work. The selection is read after every input before it and before any input behind it, as in a browser
/// at hand: select all, copy, cut and type may follow each other faster than a page answers.
struct Copying {
    viewer: u64,
    is_asked: bool,
    /// What came meanwhile.
    held: VecDeque<(u64, Order)>,
}

struct Hub {
    view: Arc<LiveView>,
    cdp: Cdp,
    /// Of the connection: the client behind `cdp` takes every message at once.
    meter: Meter,
    events: Events,
    tabs: Tabs,
    stage: Option<Stage>,
    work: FuturesUnordered<BoxFuture<'static, Done>>,
    inputs: usize,
    copying: Option<Copying>,
    /// When the next picture is acknowledged at the earliest.
    next_ack: Instant,
    /// When the view may follow the work to another tab.
    follow_at: Option<Instant>,
    state_is_old: bool,
    next_state: Instant,
    /// File choosers are taken over.
    intercepts: bool,
}

impl Hub {
    async fn start(view: Arc<LiveView>) -> anyhow::Result<Self> {
        let upstream = Upstream::connect(view.browser.as_ref(), &Budget::default()).await?;
        let (socket, meter) = upstream.into_parts();
        let cdp = Cdp::over(socket);
        let events = cdp.every_event(wants);
        let now = clock::instant();
        let mut hub = Self {
            view,
            cdp,
            meter,
            events,
            tabs: Tabs::default(),
            stage: None,
            work: FuturesUnordered::new(),
            inputs: 0,
            copying: None,
            next_ack: now,
            follow_at: None,
            state_is_old: true,
            next_state: now,
            intercepts: false,
        };
        let filter = json!([{"type": "page"}]);
        let discovered = hub
            .cdp
            .send_as::<Value>("Target.setDiscoverTargets", None, json!({"discover": true, "filter": filter}))
            .by(now + ANSWER)
            .await;
        discovered?;
        // The tabs that are there came before the answer.
        while let Some(Some(event)) = hub.events.next().now_or_never() {
            if let Some(TargetEvent { target_info: t }) = event.params()
                && event.method == "Target.targetCreated"
                && is_tab(&t)
            {
                hub.tabs.created(&t.target_id, &t.title, &t.url, false);
            }
        }
        let found = hub.find_visible().await;
        if let Done::Found(Some(target)) = found {
            hub.tabs.show(&target);
        }
        Ok(hub)
    }

    async fn run(mut self, mut orders: mpsc::Receiver<(u64, Order)>) {
        let view = Arc::clone(&self.view);
        let mut empty_since = None;
        let mut titles = tokio::time::interval(TITLES);
        titles.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        self.mind_the_viewers();
        loop {
            self.meter.reset();
            self.follow().await;
            self.publish();
            let ack_due = self.stage.as_ref().is_some_and(|stage| !stage.unacknowledged.is_empty());
            let state_due = self.state_is_old;
            tokio::select! {
                biased;
                () = view.ended.cancelled() => break,
                event = self.events.next() => match event {
                    Some(event) => self.take_event(&event),
                    None => break,
                },
                Some((viewer, order)) = orders.recv() => self.carry_out(viewer, order),
                Some(done) = self.work.next(), if !self.work.is_empty() => self.take_result(done),
                () = tokio::time::sleep_until(self.next_ack), if ack_due => self.acknowledge(),
                () = tokio::time::sleep_until(self.next_state), if state_due => {}
                () = sleep_until_some(self.follow_at), if self.follow_at.is_some() => {}
                _ = titles.tick() => self.ask_titles(),
                () = view.seats.notified() => self.mind_the_viewers(),
                () = sleep_until_some(empty_since), if empty_since.is_some() => {
                    // Under the lock nobody sits down and takes a hub for running that is about to stop.
                    let mut hub = view.hub.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    if view.viewers.load(Ordering::Relaxed) == 0 {
                        *hub = None;
                        break;
                    }
                }
            }
            let is_empty = view.viewers.load(Ordering::Relaxed) == 0;
            empty_since = is_empty.then(|| empty_since.unwrap_or_else(|| clock::deadline(LINGER)));
            if self.events.has_lagged() {
                tracing::warn!("a live view missed events of its browser and starts again");
                break;
            }
        }
        // Chromium ends the screencast and whatever else hung on the sessions.
        self.cdp.close();
    }

    /// Sends a command to the tab on show without waiting for its answer.
    fn post(&self, method: &'static str, params: Value) {
        if let Some(stage) = &self.stage {
            drop(self.cdp.send_as::<Value>(method, Some(&stage.session), params));
        }
    }

    /// Lets a command run and gives its result to `then`.
    fn later<F>(&self, method: &'static str, params: Value, patience: Duration, then: F)
    where
        F: FnOnce(Result<Value, CdpError>) -> Done + Send + 'static,
    {
        let Some(stage) = &self.stage else { return };
        let pending = self.cdp.send_as::<Value>(method, Some(&stage.session), params);
        let deadline = clock::deadline(patience);
        self.work.push(async move { then(pending.by(deadline).await) }.boxed());
    }

    /// Puts the active tab on show.
    async fn follow(&mut self) {
        self.follow_at = self.stage.as_ref().and_then(|stage| {
            let stays = self.tabs.contains(&stage.target) && self.tabs.can_wait();
            let until = stage.since + HOLD;
            (stays && self.tabs.active() != Some(&stage.target) && clock::instant() < until).then_some(until)
        });
        if self.follow_at.is_some() {
            return;
        }
        // A tab may be gone by the time its turn comes; then the next one has it.
        while self.tabs.active() != self.stage.as_ref().map(|stage| stage.target.as_str()) {
            if let Some(old) = self.stage.take() {
                drop(self.cdp.send_as::<Value>("Target.detachFromTarget", None, json!({"sessionId": old.session})));
                self.view.frames.send_replace(None);
            }
            self.state_is_old = true;
            let Some(target) = self.tabs.active().map(str::to_owned) else { return };
            let attach = json!({"targetId": target, "flatten": true});
            let attached = self
                .cdp
                .send_as::<SessionEvent>("Target.attachToTarget", None, attach)
                .by(clock::deadline(ANSWER))
                .await;
            match attached {
                Ok(SessionEvent { session_id }) => self.set_stage(target, session_id),
                Err(CdpError::Closed) => return,
                Err(error) => {
                    tracing::debug!(%error, "a tab could not be shown");
                    self.tabs.destroyed(&target);
                }
            }
        }
    }

    fn set_stage(&mut self, target: String, session: String) {
        self.stage = Some(Stage {
            target,
            session,
            since: clock::instant(),
            frames: HashSet::new(),
            loading: false,
            back: false,
            forward: false,
            crashed: false,
            dialog: None,
            chooser: None,
            offset_top: 0.0,
            unacknowledged: VecDeque::new(),
            viewport: None,
        });
        self.post("Page.enable", json!({}));
        let (width, height) = SIZE;
        self.post(
            "Page.startScreencast",
            json!({"format": "jpeg", "quality": QUALITY, "maxWidth": width, "maxHeight": height}),
        );
        if self.intercepts {
            self.intercept(true);
        }
        self.ask_history();
    }

    /// Takes over the file choosers of the tab on show, or leaves them.
    fn intercept(&self, enabled: bool) {
        self.post("Page.setInterceptFileChooserDialog", json!({"enabled": enabled}));
        // Frames of other sites live elsewhere and have sessions of their own.
        self.post(
            "Target.setAutoAttach",
            json!({
                "autoAttach": enabled, "waitForDebuggerOnStart": false, "flatten": true, "filter": [{"type": "iframe"}],
            }),
        );
    }

    fn ask_history(&self) {
        let Some(session) = self.stage.as_ref().map(|stage| stage.session.clone()) else { return };
        self.later("Page.getNavigationHistory", json!({}), ANSWER, move |history| match history {
            Ok(history) => {
                let index = history["currentIndex"].as_u64().unwrap_or(0) as usize;
                let entries = history["entries"].as_array().map_or(0, Vec::len);
                Done::History(session, index > 0, index + 1 < entries)
            }
            Err(_) => Done::Nothing,
        });
    }

    fn ask_titles(&self) {
        let filter = json!([{"type": "page"}]);
        let pending = self.cdp.send_as::<TargetList>("Target.getTargets", None, json!({"filter": filter}));
        let deadline = clock::deadline(ANSWER);
        let work =
            async move { pending.by(deadline).await.map_or(Done::Nothing, |list| Done::Targets(list.target_infos)) };
        self.work.push(work.boxed());
    }

    /// The tab that the browser shows in front, or where something was loaded last: asks the newest few.
    fn find_visible(&self) -> impl Future<Output = Done> + Send + use<> {
        let cdp = self.cdp.clone();
        let tabs: Vec<Tab> = self.tabs.newest_first().take(GLANCES).cloned().collect();
        async move {
            let glances = tabs.iter().map(|tab| glance(&cdp, &tab.id));
            let seen = futures_util::future::join_all(glances).await;
            // Without any answer the newest will do; an empty tab comes last.
            let mut best: Option<((bool, bool, f64), &Tab)> = None;
            for (tab, glance) in tabs.iter().zip(seen) {
                let (visible, born) = glance.unwrap_or((false, 0.0));
                let rank = (visible, tab.url != "about:blank", born);
                if best.is_none_or(|(other, _)| rank > other) {
                    best = Some((rank, tab));
                }
            }
            Done::Found(best.map(|(_, tab)| tab.id.clone()))
        }
    }

    /// After viewers came or went: who can answer dialogs and choose files has changed.
    fn mind_the_viewers(&mut self) {
        let has_control = self.view.controllers.load(Ordering::Relaxed) > 0;
        if has_control != self.intercepts {
            self.intercepts = has_control;
            self.intercept(has_control);
            if !has_control {
                self.set_viewport(None);
                if let Some(stage) = &mut self.stage {
                    self.state_is_old |= stage.chooser.take().is_some();
                }
            }
        }
        self.answer_for_nobody();
    }

    /// A dialog that nobody can answer is answered as without a debugger: questions with no, the rest with yes.
    fn answer_for_nobody(&mut self) {
        let Some(dialog) = self.stage.as_ref().and_then(|stage| stage.dialog.as_ref()) else { return };
        if self.view.controllers.load(Ordering::Relaxed) == 0 && self.view.activity.clients() == 0 {
            let accept = matches!(dialog.kind.as_str(), "alert" | "beforeunload");
            self.post("Page.handleJavaScriptDialog", json!({"accept": accept}));
        }
    }

    fn set_viewport(&mut self, size: Option<(u32, u32)>) {
        let Some(stage) = &mut self.stage else { return };
        if stage.viewport == size {
            return;
        }
        stage.viewport = size;
        match size {
            Some((width, height)) => self.post(
                "Emulation.setDeviceMetricsOverride",
                json!({"width": width, "height": height, "deviceScaleFactor": 0, "mobile": false}),
            ),
            None => self.post("Emulation.clearDeviceMetricsOverride", json!({})),
        }
    }

    fn take_event(&mut self, event: &Event) {
        match event.method.as_str() {
            "Target.targetCreated" => {
                if let Some(TargetEvent { target_info: t }) = event.params()
                    && is_tab(&t)
                {
                    self.tabs.created(&t.target_id, &t.title, &t.url, true);
                    self.state_is_old = true;
                }
            }
            "Target.targetInfoChanged" => {
                if let Some(TargetEvent { target_info: t }) = event.params()
                    && is_tab(&t)
                {
                    self.state_is_old |= self.tabs.changed(&t.target_id, &t.title, &t.url);
                }
            }
            "Target.targetDestroyed" => {
                if let Some(TargetGone { target_id }) = event.params() {
                    self.tabs.destroyed(&target_id);
                    self.state_is_old = true;
                }
            }
            "Target.targetCrashed" => {
                if let (Some(TargetGone { target_id }), Some(stage)) = (event.params(), &mut self.stage)
                    && stage.target == target_id
                {
                    stage.crashed = true;
                    self.state_is_old = true;
                }
            }
            "Target.attachedToTarget" => {
                if let Some(AttachedEvent { session_id }) = event.params() {
                    self.frame_attached(&event.session, session_id);
                }
            }
            "Target.detachedFromTarget" => {
                if let (Some(SessionEvent { session_id }), Some(stage)) = (event.params(), &mut self.stage) {
                    stage.frames.remove(&session_id);
                }
            }
            method => {
                let Some(stage) = &mut self.stage else { return };
                if event.session == stage.session {
                    self.take_page_event(method, event);
                } else if method == "Page.fileChooserOpened" && stage.frames.contains(&event.session) {
                    self.open_chooser(event);
                }
            }
        }
    }

    /// A frame of the tab on show that lives in another process.
    fn frame_attached(&mut self, parent: &str, session: String) {
        let Some(stage) = &mut self.stage else { return };
        if stage.session != parent && !stage.frames.contains(parent) {
            return;
        }
        for (method, params) in [
            ("Page.enable", json!({})),
            ("Page.setInterceptFileChooserDialog", json!({"enabled": true})),
            (
                "Target.setAutoAttach",
                json!({
                    "autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true,
                    "filter": [{"type": "iframe"}],
                }),
            ),
        ] {
            drop(self.cdp.send_as::<Value>(method, Some(&session), params));
        }
        stage.frames.insert(session);
    }

    fn take_page_event(&mut self, method: &str, event: &Event) {
        let Some(stage) = &mut self.stage else { return };
        match method {
            "Page.screencastFrame" => {
                if let Some(frame) = event.params::<FrameEvent<'_>>() {
                    self.take_frame(&frame);
                }
            }
            // Another tab was brought to the front.
            "Page.screencastVisibilityChanged" if event.params::<Visibility>().is_some_and(|v| !v.visible) => {
                self.work.push(self.find_visible().boxed());
            }
            // The main frame has the id of its target.
            "Page.frameStartedLoading" | "Page.frameStoppedLoading"
                if event.params::<LoadingEvent>().is_some_and(|e| e.frame_id == stage.target) =>
            {
                stage.loading = method == "Page.frameStartedLoading";
                stage.crashed = false;
                self.state_is_old = true;
                if method == "Page.frameStoppedLoading" {
                    self.ask_history();
                    self.ask_titles();
                }
            }
            "Page.frameNavigated" => {
                self.state_is_old |= stage.chooser.take().is_some();
                self.ask_history();
            }
            "Page.navigatedWithinDocument" => self.ask_history(),
            "Page.javascriptDialogOpening" => {
                if let Some(dialog) = event.params::<DialogEvent>() {
                    let cut = |text: &str| text.chars().take(DIALOG_TEXT).collect::<String>();
                    stage.dialog = Some(Dialog {
                        kind: dialog.r#type,
                        message: cut(&dialog.message),
                        default: cut(dialog.default_prompt.as_deref().unwrap_or_default()),
                        url: cut(&dialog.url),
                    });
                    self.state_is_old = true;
                    self.answer_for_nobody();
                }
            }
            "Page.javascriptDialogClosed" => {
                stage.dialog = None;
                self.state_is_old = true;
            }
            "Page.fileChooserOpened" => self.open_chooser(event),
            _ => {}
        }
    }

    fn open_chooser(&mut self, event: &Event) {
        let (Some(chooser), Some(stage)) = (event.params::<ChooserEvent>(), &mut self.stage) else { return };
        stage.chooser = Some(Chooser {
            session: event.session.clone(),
            frame: chooser.frame_id,
            node: chooser.backend_node_id,
            multiple: chooser.mode == "selectMultiple",
        });
        self.state_is_old = true;
    }

    /// Shows a picture to all viewers.
    fn take_frame(&mut self, frame: &FrameEvent<'_>) {
        let Some(stage) = &mut self.stage else { return };
        FIGURES.frames.fetch_add(1, Ordering::Relaxed);
        let meta = &frame.metadata;
        stage.offset_top = meta.offset_top;
        stage.unacknowledged.push_back(frame.session_id);
        if let Ok(jpeg) = base64::engine::general_purpose::STANDARD.decode(frame.data.as_bytes()) {
            self.view.frames.send_replace(Some(picture(meta, &jpeg)));
        }
    }

    /// Lets the next picture come.
    fn acknowledge(&mut self) {
        let Some(number) = self.stage.as_mut().and_then(|stage| stage.unacknowledged.pop_front()) else { return };
        self.post("Page.screencastFrameAck", json!({"sessionId": number}));
        self.next_ack = clock::deadline(PACE);
    }

    fn take_result(&mut self, done: Done) {
        match done {
            Done::Input => {
                self.inputs = self.inputs.saturating_sub(1);
                self.read_selection();
            }
            Done::Copied(viewer, text) => {
                if let Some(text) = text {
                    self.view.tell(viewer, &json!({"type": "clipboard", "text": text}));
                }
                self.end_copying();
            }
            Done::Found(Some(target)) => {
                self.tabs.show(&target);
                self.state_is_old = true;
            }
            Done::History(session, back, forward) => {
                if let Some(stage) = self.stage.as_mut().filter(|stage| stage.session == session) {
                    self.state_is_old |= (stage.back, stage.forward) != (back, forward);
                    (stage.back, stage.forward) = (back, forward);
                }
            }
            Done::Targets(targets) => {
                for target in targets {
                    self.state_is_old |= self.tabs.changed(&target.target_id, &target.title, &target.url);
                }
            }
            Done::Tell(viewer, message) => self.view.tell(viewer, &message),
            Done::Found(None) | Done::Nothing => {}
        }
    }

    /// Tells the viewers how things are, not more often than they can follow.
    fn publish(&mut self) {
        let now = clock::instant();
        if !self.state_is_old || now < self.next_state {
            return;
        }
        self.state_is_old = false;
        self.next_state = now + STATE_PACE;
        let stage = self.stage.as_ref();
        let dialog = stage.and_then(|s| s.dialog.as_ref()).map(|dialog| {
            json!({"kind": dialog.kind, "message": dialog.message, "default": dialog.default, "url": dialog.url})
        });
        let chooser = stage.and_then(|s| s.chooser.as_ref());
        let state = json!({
            "type": "state",
            "tabs": self.tabs.told(stage.map(|s| s.target.as_str())),
            "active": stage.map(|s| &s.target),
            "loading": stage.is_some_and(|s| s.loading),
            "back": stage.is_some_and(|s| s.back),
            "forward": stage.is_some_and(|s| s.forward),
            "crashed": stage.is_some_and(|s| s.crashed),
            "dialog": dialog,
            "chooser": chooser.map(|c| json!({"multiple": c.multiple})),
            "viewport": stage.and_then(|s| s.viewport),
        });
        self.view.state.send_replace(state.to_string().into());
    }

    fn carry_out(&mut self, viewer: u64, order: Order) {
        let offset_top = self.stage.as_ref().map_or(0.0, |stage| stage.offset_top);
        if let Some(copying) = &mut self.copying
            && (matches!(order, Order::Copy) || order.command(offset_top).is_some())
        {
            if copying.held.len() < INPUTS.1 && !order.is_passing() {
                copying.held.push_back((viewer, order));
            }
            return;
        }
        if let Some((method, params)) = order.command(offset_top) {
            return self.input(&order, method, params);
        }
        match order {
            Order::Navigate { url } => match input::address(&url) {
                Ok(url) => self.later("Page.navigate", json!({"url": url}), PAGE_ANSWER, move |answer| {
                    let failure = answer.ok().and_then(|a| a["errorText"].as_str().map(str::to_owned));
                    match failure {
                        // A download or another navigation took its place.
                        Some(text) if text != "net::ERR_ABORTED" => Done::Tell(
                            viewer,
                            json!({"type": "notice", "text": format!("The page did not load: {text}")}),
                        ),
                        _ => Done::Nothing,
                    }
                }),
                Err(why) => self.view.notice(viewer, why),
            },
            Order::Back => self.go(-1),
            Order::Forward => self.go(1),
            Order::Reload => self.post("Page.reload", json!({})),
            Order::Stop => self.post("Page.stopLoading", json!({})),
            Order::Tab { id } => {
                if self.tabs.pick(&id) {
                    drop(self.cdp.send_as::<Value>("Target.activateTarget", None, json!({"targetId": id})));
                    self.state_is_old = true;
                }
            }
            Order::NewTab => {
                drop(self.cdp.send_as::<Value>("Target.createTarget", None, json!({"url": "about:blank"})));
            }
            Order::CloseTab { id } => self.close_tab(&id),
            Order::Dialog { accept, text } => {
                let mut params = json!({"accept": accept});
                if let Some(text) = text.filter(|_| accept) {
                    params["promptText"] = json!(text);
                }
                self.later("Page.handleJavaScriptDialog", params, ANSWER, move |answer| match answer {
                    Err(CdpError::Refused { .. }) => Done::Tell(
                        viewer,
                        json!({"type": "notice", "text": "The dialog was already answered by somebody else."}),
                    ),
                    _ => Done::Nothing,
                });
                if let Some(stage) = &mut self.stage {
                    stage.dialog = None;
                    self.state_is_old = true;
                }
            }
            Order::CancelChooser => {
                if let Some(stage) = &mut self.stage {
                    stage.chooser = None;
                    self.state_is_old = true;
                }
            }
            Order::Viewport { width, height } => {
                self.set_viewport(width.zip(height));
                self.state_is_old = true;
            }
            Order::Copy => self.copy(viewer),
            Order::Upload(files) => self.upload(viewer, files),
            Order::Ack
            | Order::Mouse { .. }
            | Order::Wheel { .. }
            | Order::Key { .. }
            | Order::Text { .. }
            | Order::Compose { .. }
            | Order::Touch { .. } => {}
        }
    }

    fn input(&mut self, order: &Order, method: &'static str, params: Value) {
        let (some, many) = INPUTS;
        let blocked = self.stage.as_ref().is_none_or(|stage| stage.dialog.is_some());
        if blocked || self.inputs >= many || (order.is_passing() && self.inputs >= some) {
            return;
        }
        self.inputs += 1;
        self.later(method, params, PAGE_ANSWER, |_| Done::Input);
    }

    /// Goes so many entries through the history of the tab.
    fn go(&self, by: i64) {
        let Some(session) = self.stage.as_ref().map(|stage| stage.session.clone()) else { return };
        let cdp = self.cdp.clone();
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

    fn close_tab(&self, id: &str) {
        if !self.tabs.contains(id) {
            return;
        }
        if self.tabs.len() == 1 {
            // A session always has a tab.
            drop(self.cdp.send_as::<Value>("Target.createTarget", None, json!({"url": "about:blank"})));
        }
        drop(self.cdp.send_as::<Value>("Target.closeTarget", None, json!({"targetId": id})));
    }

    fn copy(&mut self, viewer: u64) {
        self.copying = Some(Copying { viewer, is_asked: false, held: VecDeque::new() });
        self.read_selection();
    }

    /// Asks for the selection once nothing that was typed before the copy is on its way.
    fn read_selection(&mut self) {
        const SELECTED: &str = "(() => { const a = document.activeElement; \
            return a && typeof a.selectionStart === 'number' && a.type !== 'password' \
                ? a.value.slice(a.selectionStart, a.selectionEnd) : String(getSelection()); })()";
        let Some(copying) = self.copying.as_mut().filter(|copying| self.inputs == 0 && !copying.is_asked) else {
            return;
        };
        copying.is_asked = true;
        let viewer = copying.viewer;
        if self.stage.is_none() {
            return self.end_copying();
        }
        let params = json!({"expression": SELECTED, "returnByValue": true, "timeout": 500});
        self.later("Runtime.evaluate", params, ANSWER, move |answer| {
            let text = answer.ok().and_then(|a| a["result"]["value"].as_str().map(str::to_owned));
            Done::Copied(viewer, text.filter(|text| !text.is_empty() && text.len() <= input::TEXT_MESSAGE))
        });
    }

    /// Goes on with what waited for the copy, up to the next one.
    fn end_copying(&mut self) {
        let mut held = self.copying.take().map(|copying| copying.held).unwrap_or_default();
        while let Some((viewer, order)) = held.pop_front() {
            self.carry_out(viewer, order);
            if let Some(copying) = &mut self.copying {
                copying.held.append(&mut held);
            }
        }
    }

    /// Gives the files to the input that asked for them, from inside the page: no file of this machine is involved.
    fn upload(&mut self, viewer: u64, files: Vec<File>) {
        let tell = |text: &str| Done::Tell(viewer, json!({"type": "notice", "text": text}));
        let Some(chooser) = self.stage.as_mut().and_then(|stage| stage.chooser.take()) else {
            return self.view.notice(viewer, "The page no longer asks for a file.");
        };
        self.state_is_old = true;
        let Some(node) = chooser.node else {
            let text = "This page opens files in a way that works only in a browser of your own.";
            return self.view.notice(viewer, text);
        };
        if files.len() > 1 && !chooser.multiple {
            return self.view.notice(viewer, "The page takes one file only.");
        }
        let cdp = self.cdp.clone();
        let done = (tell("The file was handed over."), tell("The page did not take the file."));
        let work = async move {
            match hand_over(&cdp, &chooser.session, &chooser.frame, node, &files).await {
                Ok(true) => done.0,
                Ok(false) | Err(_) => done.1,
            }
        };
        self.work.push(work.boxed());
    }
}

fn is_tab(target: &TargetInfo) -> bool {
    target.r#type == "page" && !target.url.starts_with("devtools://") && !target.url.starts_with("chrome-extension://")
}

async fn sleep_until_some(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// The picture with its head.
fn picture(meta: &Metadata, jpeg: &[u8]) -> Bytes {
    // Out of range saturates; nothing here is a number that a page cannot bend.
    let pixels = |value: f64| value.round().clamp(0.0, f64::from(u16::MAX)) as u16;
    let mut bytes = BytesMut::with_capacity(8 + jpeg.len());
    bytes.put_u8(1);
    bytes.put_u8(0);
    bytes.put_u16(pixels(meta.device_width));
    bytes.put_u16(pixels(meta.device_height));
    bytes.put_u16(pixels(meta.offset_top));
    bytes.put_slice(jpeg);
    bytes.freeze()
}

/// Whether a tab is visible and when its document began, milliseconds since 1970; `None`: it does not answer.
async fn glance(cdp: &Cdp, target: &str) -> Option<(bool, f64)> {
    let deadline = clock::deadline(GLANCE);
    let attach = json!({"targetId": target, "flatten": true});
    let attached = cdp.send_as::<SessionEvent>("Target.attachToTarget", None, attach).by(deadline).await.ok()?;
    let expression = "[document.visibilityState === 'visible', performance.timeOrigin]";
    let params = json!({"expression": expression, "returnByValue": true, "timeout": GLANCE.as_millis() as u64});
    let answer = cdp.send_as::<Value>("Runtime.evaluate", Some(&attached.session_id), params).by(deadline).await;
    drop(cdp.send_as::<Value>("Target.detachFromTarget", None, json!({"sessionId": attached.session_id})));
    let value = answer.ok()?;
    let value = &value["result"]["value"];
    Some((value[0].as_bool()?, value[1].as_f64()?))
}

/// Sets the files of an input, in a world of our own where the page has not changed what functions do.
async fn hand_over(cdp: &Cdp, session: &str, frame: &str, node: i64, files: &[File]) -> Result<bool, CdpError> {
    const SET: &str = "function(...files) { \
        if (!this.isConnected || this.type !== 'file') return false; \
        const all = new DataTransfer(); \
        for (const { name, mime, data } of files) { \
            const bytes = Uint8Array.from(atob(data), c => c.charCodeAt(0)); \
            all.items.add(new File([bytes], name, { type: mime })); \
        } \
        this.files = all.files; \
        this.dispatchEvent(new Event('input', { bubbles: true, composed: true })); \
        this.dispatchEvent(new Event('change', { bubbles: true })); \
        return true; }";
    let deadline = clock::deadline(PAGE_ANSWER);
    let call = |method: &'static str, params: Value| cdp.send_as::<Value>(method, Some(session), params).by(deadline);
    let world = call("Page.createIsolatedWorld", json!({"frameId": frame, "worldName": "weir"})).await?;
    let context = &world["executionContextId"];
    let object = call("DOM.resolveNode", json!({"backendNodeId": node, "executionContextId": context})).await?;
    let arguments: Vec<Value> = files
        .iter()
        .map(|file| {
            let data = base64::engine::general_purpose::STANDARD.encode(&file.bytes);
            json!({"value": {"name": file.name, "mime": file.mime, "data": data}})
        })
        .collect();
    let params = json!({
        "objectId": object["object"]["objectId"], "functionDeclaration": SET, "arguments": arguments,
        "returnByValue": true, "userGesture": true,
    });
    let answer = call("Runtime.callFunctionOn", params).await?;
    Ok(answer["result"]["value"].as_bool() == Some(true))
}
