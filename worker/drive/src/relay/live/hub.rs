//! The one task behind a live view: follows the active tab, paces its screencast, carries out orders.
//!
//! ```text
//! events        what the browser tells, read
//! view_state    what viewers see of it, and what they are told
//! commands      what the browser is asked; answers come back as results
//! clipboard     the order of copies and input
//! upload        files for the page that asked for some
//! ```
//!
//! It has a connection of its own to Chromium and a flat session on one tab at a time, so CDP clients of the same
//! browser see nothing of it but what a person at the window would cause. Two things are the exception, because having
//! a session with the `Page` domain takes them over: dialogs and, while somebody with control watches, file choosers.
//! A dialog that nobody could answer (no viewer with control, no CDP client) is answered as a browser without a
//! debugger would answer it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use weir_shared::clock;

use super::clipboard::Clipboard;
use super::commands::{Commands, Done};
use super::events::{self, Picture, TabEvent};
use super::input::{self, File, Order};
use super::tabs::Tabs;
use super::upload;
use super::view_state::ViewState;
use super::{FIGURES, LiveView};
use crate::browser::cdp::{Cdp, CdpError, Event, Events};
use crate::relay::Upstream;
use crate::relay::meter::{Budget, Meter};

/// Time between two pictures, which is kept by acknowledging them late: 10 in a second.
const PACE: Duration = Duration::from_millis(98);
/// How long the view goes on after its last viewer left: a page that reloads comes back at once.
const LINGER: Duration = Duration::from_secs(2);
/// How often titles are asked for.
const TITLES: Duration = Duration::from_millis(1_000);

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

struct Hub {
    view: Arc<LiveView>,
    /// Of the connection: the client behind `commands` takes every message at once.
    meter: Meter,
    events: Events,
    commands: Commands,
    state: ViewState,
    clipboard: Clipboard,
    /// When the next picture is acknowledged at the earliest.
    next_ack: Instant,
    /// When the view may follow the work to another tab.
    follow_at: Option<Instant>,
    /// File choosers are taken over.
    intercepts: bool,
}

impl Hub {
    async fn start(view: Arc<LiveView>) -> anyhow::Result<Self> {
        let upstream = Upstream::connect(view.browser.as_ref(), &Budget::default()).await?;
        let (socket, meter) = upstream.into_parts();
        let cdp = Cdp::over(socket);
        let mut events = cdp.every_event(events::wants);
        let commands = Commands::new(cdp);
        commands.discover().await?;
        let mut tabs = Tabs::default();
        // The tabs that are there came before the answer.
        while let Some(Some(event)) = events.next().now_or_never() {
            if let Some(TabEvent::Created(tab)) = TabEvent::read(&event) {
                tabs.created(&tab.target_id, &tab.title, &tab.url, false);
            }
        }
        if let Some(target) = commands.find_visible(&tabs).await {
            tabs.show(&target);
        }
        Ok(Self {
            view,
            meter,
            events,
            commands,
            state: ViewState::new(tabs),
            clipboard: Clipboard::default(),
            next_ack: clock::instant(),
            follow_at: None,
            intercepts: false,
        })
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
            if let Some(description) = self.state.description(clock::instant()) {
                self.view.state.send_replace(description.to_string().into());
            }
            let ack_at = self.state.shown().is_some_and(|tab| !tab.unacknowledged.is_empty()).then_some(self.next_ack);
            tokio::select! {
                biased;
                () = view.ended.cancelled() => break,
                event = self.events.next() => match event {
                    Some(event) => self.take_event(&event),
                    None => break,
                },
                Some((viewer, order)) = orders.recv() => self.carry_out(viewer, order),
                done = self.commands.next() => self.take_result(done),
                () = sleep_until(ack_at) => self.acknowledge(),
                () = sleep_until(self.state.due()) => {}
                () = sleep_until(self.follow_at) => {}
                _ = titles.tick() => self.commands.ask_titles(),
                () = view.seats.notified() => self.mind_the_viewers(),
                () = sleep_until(empty_since) => {
                    // Held so that no viewer joins a hub that is about to stop.
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
        self.commands.close();
    }

    /// Puts the active tab on show.
    async fn follow(&mut self) {
        self.follow_at = self.state.stays_until(clock::instant());
        if self.follow_at.is_some() {
            return;
        }
        // A tab may be gone by the time its turn comes; then the next one has it.
        while !self.state.shows_active() {
            if let Some(old) = self.state.hide() {
                self.commands.detach(&old.session);
                self.view.frames.send_replace(None);
            }
            let Some(target) = self.state.tabs().active().map(str::to_owned) else { return };
            match self.commands.attach(&target).await {
                Ok(session) => {
                    self.commands.start_screencast(&session);
                    if self.intercepts {
                        self.commands.intercept_choosers(&session, true);
                    }
                    self.commands.ask_history(&session);
                    self.state.show(target, session);
                }
                Err(CdpError::Closed) => return,
                Err(error) => {
                    tracing::debug!(%error, "a tab could not be shown");
                    self.state.tab_destroyed(&target);
                }
            }
        }
    }

    /// After viewers came or went: who can answer dialogs and choose files has changed.
    fn mind_the_viewers(&mut self) {
        let has_control = self.view.controllers.load(Ordering::Relaxed) > 0;
        if has_control != self.intercepts {
            self.intercepts = has_control;
            self.on_page(|commands, session| commands.intercept_choosers(session, has_control));
            if !has_control {
                self.set_viewport(None);
                self.state.take_chooser();
            }
        }
        self.answer_for_nobody();
    }

    /// A dialog that nobody can answer is answered as without a debugger: questions with no, the rest with yes.
    fn answer_for_nobody(&mut self) {
        let Some((tab, dialog)) = self.state.shown().and_then(|tab| Some((tab, tab.dialog()?))) else { return };
        if self.view.controllers.load(Ordering::Relaxed) == 0 && self.view.activity.clients() == 0 {
            let accept = matches!(dialog.kind.as_str(), "alert" | "beforeunload");
            self.commands.end_dialog(&tab.session, accept);
        }
    }

    fn set_viewport(&mut self, size: Option<(u32, u32)>) {
        if self.state.set_viewport(size) {
            self.on_page(|commands, session| commands.set_viewport(session, size));
        }
    }

    fn take_event(&mut self, event: &Event) {
        let Some(read) = TabEvent::read(event) else { return };
        match read {
            TabEvent::Created(tab) => self.state.tab_created(&tab),
            TabEvent::Changed(tab) => self.state.tab_changed(&tab),
            TabEvent::Destroyed(target) => self.state.tab_destroyed(&target),
            TabEvent::Crashed(target) => self.state.tab_crashed(&target),
            TabEvent::FrameAttached(session) => {
                if self.state.frame_attached(&event.session, &session) {
                    self.commands.watch_frame(&session);
                }
            }
            TabEvent::FrameDetached(session) => self.state.frame_detached(&session),
            of_page => {
                let Some(tab) = self.state.shown() else { return };
                if event.session == tab.session {
                    self.take_page_event(of_page);
                } else if let TabEvent::ChooserOpened(chooser) = of_page
                    && tab.has_frame(&event.session)
                {
                    self.state.chooser_opened(chooser);
                }
            }
        }
    }

    /// An event of the page on show itself.
    fn take_page_event(&mut self, event: TabEvent<'_>) {
        match event {
            TabEvent::Picture(picture) => self.take_picture(&picture),
            TabEvent::Hidden => self.commands.ask_visible(self.state.tabs()),
            TabEvent::Loading { frame, is_loading } => {
                if self.state.loading(&frame, is_loading) && !is_loading {
                    self.on_page(Commands::ask_history);
                    self.commands.ask_titles();
                }
            }
            TabEvent::Navigated => {
                self.state.take_chooser();
                self.on_page(Commands::ask_history);
            }
            TabEvent::NavigatedWithinDocument => self.on_page(Commands::ask_history),
            TabEvent::DialogOpened(dialog) => {
                self.state.set_dialog(Some(dialog));
                self.answer_for_nobody();
            }
            TabEvent::DialogClosed => self.state.set_dialog(None),
            TabEvent::ChooserOpened(chooser) => self.state.chooser_opened(chooser),
            TabEvent::Created(_)
            | TabEvent::Changed(_)
            | TabEvent::Destroyed(_)
            | TabEvent::Crashed(_)
            | TabEvent::FrameAttached(_)
            | TabEvent::FrameDetached(_) => {}
        }
    }

    /// Shows a picture to all viewers.
    fn take_picture(&mut self, picture: &Picture<'_>) {
        let Some(tab) = self.state.shown_mut() else { return };
        FIGURES.frames.fetch_add(1, Ordering::Relaxed);
        tab.offset_top = picture.metadata.offset_top;
        tab.unacknowledged.push_back(picture.number);
        if let Ok(jpeg) = BASE64.decode(picture.data.as_bytes()) {
            self.view.frames.send_replace(Some(picture.metadata.message(&jpeg)));
        }
    }

    /// Lets the next picture come.
    fn acknowledge(&mut self) {
        let Some(tab) = self.state.shown_mut() else { return };
        let Some(number) = tab.unacknowledged.pop_front() else { return };
        self.commands.acknowledge(&tab.session, number);
        self.next_ack = clock::deadline(PACE);
    }

    fn take_result(&mut self, done: Done) {
        self.view.activity.say();
        match done {
            Done::Input => {
                self.commands.input_answered();
                self.read_selection();
            }
            Done::Copied(viewer, text) => {
                if let Some(text) = text {
                    self.view.tell(viewer, &json!({"type": "clipboard", "text": text}));
                }
                self.end_copying();
            }
            Done::Found(Some(target)) => self.state.bring_to_front(&target),
            Done::History { session, back, forward } => self.state.history(&session, back, forward),
            Done::Targets(targets) => targets.iter().for_each(|target| self.state.tab_changed(target)),
            Done::Notice(viewer, text) => self.view.notice(viewer, &text),
            Done::Found(None) | Done::Nothing => {}
        }
    }

    fn carry_out(&mut self, viewer: u64, order: Order) {
        self.view.activity.say();
        let offset_top = self.state.shown().map_or(0.0, |tab| tab.offset_top);
        let command = order.command(offset_top);
        if self.clipboard.is_busy() && (command.is_some() || matches!(order, Order::Copy)) {
            return self.clipboard.hold(viewer, order);
        }
        if let Some((method, params)) = command {
            return self.input(&order, method, params);
        }
        match order {
            Order::Tab { id } => {
                if self.state.pick(&id) {
                    self.commands.activate_tab(&id);
                }
            }
            Order::NewTab => self.commands.open_tab(),
            Order::CloseTab { id } => self.close_tab(&id),
            Order::CancelChooser => {
                self.state.take_chooser();
                self.state.tell_again();
            }
            Order::Viewport { width, height } => {
                self.set_viewport(width.zip(height));
                self.state.tell_again();
            }
            Order::Copy => {
                self.clipboard.begin(viewer);
                self.read_selection();
            }
            Order::Upload(files) => self.upload(viewer, files),
            Order::Navigate { url } => match input::address(&url) {
                Ok(url) => self.on_page(|commands, session| commands.navigate(session, viewer, &url)),
                Err(why) => self.view.notice(viewer, why),
            },
            Order::Back => self.on_page(|commands, session| commands.go(session, -1)),
            Order::Forward => self.on_page(|commands, session| commands.go(session, 1)),
            Order::Reload => self.on_page(Commands::reload),
            Order::Stop => self.on_page(Commands::stop),
            Order::Dialog { accept, text } => {
                self.on_page(|commands, session| commands.answer_dialog(session, viewer, accept, text));
                self.state.set_dialog(None);
            }
            // Inputs became commands above; acknowledgements stay with the viewer's connection.
            Order::Ack
            | Order::Mouse { .. }
            | Order::Wheel { .. }
            | Order::Key { .. }
            | Order::Text { .. }
            | Order::Compose { .. }
            | Order::Touch { .. } => {}
        }
    }

    /// Asks something of the page on show, if there is one.
    fn on_page(&self, ask: impl FnOnce(&Commands, &str)) {
        if let Some(tab) = self.state.shown() {
            ask(&self.commands, &tab.session);
        }
    }

    /// Gives the page on show an input, unless it waits with a dialog.
    fn input(&mut self, order: &Order, method: &'static str, params: Value) {
        if let Some(tab) = self.state.shown().filter(|tab| tab.dialog().is_none()) {
            self.commands.input(&tab.session, order, method, params);
        }
    }

    fn close_tab(&self, id: &str) {
        if !self.state.tabs().contains(id) {
            return;
        }
        if self.state.tabs().len() == 1 {
            // A session always has a tab.
            self.commands.open_tab();
        }
        self.commands.close_tab(id);
    }

    /// Asks for the selection once nothing that was typed before the copy is on its way.
    fn read_selection(&mut self) {
        let Some(viewer) = self.clipboard.ask(self.commands.inputs()) else { return };
        match self.state.shown().map(|tab| tab.session.as_str()) {
            Some(session) => self.commands.read_selection(session, viewer),
            None => self.end_copying(),
        }
    }

    /// Goes on with what waited for the copy, up to the next one.
    fn end_copying(&mut self) {
        let mut held = self.clipboard.end();
        while let Some((viewer, order)) = held.pop_front() {
            self.carry_out(viewer, order);
            self.clipboard.hold_rest(&mut held);
        }
    }

    fn upload(&mut self, viewer: u64, files: Vec<File>) {
        let Some(chooser) = self.state.take_chooser() else {
            return self.view.notice(viewer, "The page no longer asks for a file.");
        };
        match upload::input_of(&chooser, &files) {
            Ok(node) => self.commands.upload(viewer, chooser, node, files),
            Err(why) => self.view.notice(viewer, why),
        }
    }
}

/// Waits until then; for ever where there is no such time.
async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
