//! Carries out the actions of a request on a page at rest (wire 3.6), one after another.
//!
//! ```text
//! find, aim (act.js) -> mouse and keyboard events of the protocol -> a moment -> the page at rest again -> next
//! ```
//!
//! The same for a page that is scraped and for the session that continues it; the latter has no use for pictures, files
//! and copies of the page. A page may do what it likes meanwhile: what waits for it ends with the page's deadline, and
//! what comes from it is measured before it travels.

mod keys;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use headless_chrome::protocol::cdp::types::Method as _;
use headless_chrome::protocol::cdp::{Emulation, IO, Input, Page, Runtime};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;
use weir_shared::clock;
use weir_shared::domain::action::{Action, ActionResults, Direction, Pdf, Returned, Scraped, Wait};
use weir_shared::domain::json_schema::{MAX_NESTING, depth};
use weir_shared::domain::screenshot::Screenshot;
use weir_shared::{random, texts};

use super::cdp::{CdpError, Pending};
use super::shot::Camera;
use super::wait::{self, Look, Settled, WaitScript};
use super::{Acting, RenderError, ScreenshotRequest};

const ACT: &str = include_str!("act.js");

/// How long the element of a click or a scroll is looked for, and how often.
const PATIENCE: Duration = Duration::from_millis(1_500);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long an element is waited for (wire 3.6).
const WAIT_FOR_ELEMENT: Duration = Duration::from_secs(30);
/// What the page gets to begin with what an action leads to.
const MOMENT: Duration = Duration::from_millis(50);
/// How long a page is waited for after an action, and one that comes in its place.
const CALM: Duration = Duration::from_secs(2);
const NEXT_PAGE: Duration = Duration::from_secs(10);
/// Clicks of one action.
const CLICKS: usize = 200;
/// Text up to this many characters is typed key by key, a longer one is put in at once.
const TYPED: usize = 2_000;
/// How long a script may take.
const SCRIPT: Duration = Duration::from_secs(30);
/// The value of a script as JSON, UTF-16 units.
const SCRIPT_VALUE: usize = 1 << 20;
/// All results of a page together, bytes.
const RESULTS: usize = 64 << 20;
/// One printed file, bytes, and how much of it comes at once.
const PDF: usize = 32 << 20;
const PDF_PART: usize = 1 << 20;
/// All waits of a replay together: a session is waited for by somebody.
const REPLAYED_WAITS: Duration = Duration::from_secs(20);

/// Where actions are carried out.
pub(super) struct Runner<'a> {
    pub camera: Camera<'a>,
    pub script: &'a WaitScript,
    /// By when they should be done, so that the page can still be read.
    pub end: Instant,
}

/// Why an action did not work.
enum Trouble {
    /// It cannot be carried out.
    Failed(String),
    /// There is no page any more.
    Lost(RenderError),
}

impl From<RenderError> for Trouble {
    fn from(error: RenderError) -> Self {
        Self::Lost(error)
    }
}

impl From<CdpError> for Trouble {
    fn from(error: CdpError) -> Self {
        Self::Lost(error.into())
    }
}

fn fail<T>(why: impl Into<String>) -> Result<T, Trouble> {
    Err(Trouble::Failed(why.into()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Evaluated<T> {
    result: Remote<T>,
    exception_details: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Remote<T> {
    value: Option<T>,
    object_id: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Aim {
    gone: bool,
    x: Option<f64>,
    y: Option<f64>,
}

#[derive(Deserialize)]
struct Ran {
    r#type: Option<String>,
    json: Option<String>,
    problem: Option<String>,
}

#[derive(Deserialize)]
struct Printed {
    stream: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    #[serde(default)]
    base_64_encoded: bool,
    data: String,
    eof: bool,
}

/// Whether a call failed because the page has gone to another document under it.
fn has_moved(error: &CdpError) -> bool {
    const WORDS: [&str; 4] = ["navigated", "context", "Promise was collected", "Could not find object"];
    matches!(error, CdpError::Refused { message, .. } if WORDS.iter().any(|words| message.contains(words)))
}

impl Runner<'_> {
    /// Carries them out for a scrape. Those that may have an effect on the site begin when `acting` says so.
    ///
    /// # Errors
    /// [`RenderError::Action`] for the first that cannot be carried out; [`RenderError::ActedBefore`]; otherwise what became
    /// of the page.
    pub async fn perform(&self, actions: &[Action], acting: &Acting) -> Result<ActionResults, RenderError> {
        self.focus(true).await?;
        let mut results = ActionResults::default();
        let mut room = RESULTS;
        for (index, action) in actions.iter().enumerate() {
            let before = size(&results);
            if action.may_have_effect() {
                acting.begin().await?;
            }
            self.one(action, &mut results).await.map_err(|trouble| named(index, action, trouble))?;
            let Some(left) = room.checked_sub(size(&results) - before) else {
                let why = format!("the results are larger than {} MiB altogether", RESULTS >> 20);
                return Err(named(index, action, Trouble::Failed(why)));
            };
            room = left;
        }
        Ok(results)
    }

    /// Carries out again what changes the page, for the session that continues its scrape.
    ///
    /// # Errors
    /// As [`Self::perform`].
    pub async fn replay(&self, actions: &[Action]) -> Result<(), RenderError> {
        self.focus(true).await?;
        let mut waits = REPLAYED_WAITS;
        for (index, action) in actions.iter().enumerate() {
            let done = match action {
                Action::Wait(Wait::Time { milliseconds }) => {
                    let wait = Duration::from_millis(u64::from(*milliseconds)).min(waits);
                    waits -= wait;
                    tokio::time::sleep(wait).await;
                    Ok(())
                }
                _ if action.is_replayed() => self.one(action, &mut ActionResults::default()).await,
                _ => Ok(()),
            };
            done.map_err(|trouble| named(index, action, trouble))?;
        }
        // The page is its own again.
        self.focus(false).await
    }

    /// Keys go to a page that has the focus, and many pages share a browser.
    async fn focus(&self, enabled: bool) -> Result<(), RenderError> {
        let focus = self.send::<Value>(Emulation::SetFocusEmulationEnabled::NAME, json!({ "enabled": enabled }));
        focus.by(self.camera.deadline).await?;
        Ok(())
    }

    async fn one(&self, action: &Action, results: &mut ActionResults) -> Result<(), Trouble> {
        match action {
            Action::Wait(Wait::Time { milliseconds }) => {
                tokio::time::sleep(Duration::from_millis(u64::from(*milliseconds))).await;
                return Ok(());
            }
            Action::Wait(Wait::Element { selector }) => return self.wait_for(selector).await,
            Action::Click { selector, all } => self.click(selector, *all).await?,
            Action::Write { text } => self.write(text).await?,
            Action::Press { key } => {
                let Some(events) = keys::press(key) else { return fail(format!("there is no key {key:?}")) };
                self.type_all(events.into_iter().map(key_event)).await?;
            }
            Action::Scroll { direction, selector } => self.scroll(*direction, selector.as_deref()).await?,
            Action::ExecuteJavascript { script } => results.javascript_returns.push(self.run(script).await?),
            Action::Screenshot(shot) => {
                results.screenshots.push(self.screenshot(shot).await?);
                return Ok(());
            }
            Action::Scrape => {
                let look = Look { document: true, ..self.rest() };
                let page = self.settle(look).await?;
                let Some(html) = page.html else { return fail("the page is larger than 50 MiB") };
                results.scrapes.push(Scraped { url: page.url, html });
                return Ok(());
            }
            Action::Pdf(pdf) => {
                results.pdfs.push(self.print(pdf).await?);
                return Ok(());
            }
        }
        tokio::time::sleep(MOMENT).await;
        if self.settle(self.rest()).await?.leaving {
            let budget = clock::deadline(NEXT_PAGE).min(self.end);
            self.settle(Look { budget, ..self.rest() }).await?;
        }
        Ok(())
    }

    fn rest(&self) -> Look {
        Look { next: NEXT_PAGE, ..Look::only_rest(clock::deadline(CALM).min(self.end)) }
    }

    async fn settle(&self, look: Look) -> Result<Settled, RenderError> {
        let Camera { cdp, session, deadline, .. } = self.camera;
        wait::settle(cdp, session, self.script, look, deadline).await
    }

    fn send<T>(&self, method: &'static str, params: Value) -> Pending<T> {
        self.camera.cdp.send_as(method, Some(self.camera.session), params)
    }

    /// Evaluates an expression over [`ACT`]; `None` when the page went elsewhere meanwhile.
    async fn evaluate<T: DeserializeOwned>(
        &self,
        what: &str,
        by_value: bool,
    ) -> Result<Option<Evaluated<T>>, CdpError> {
        let params = json!({
            "expression": format!("({ACT}).{what}"), "returnByValue": by_value, "objectGroup": "weir-actions",
            "userGesture": true,
        });
        let answer = self.send::<Evaluated<T>>(Runtime::Evaluate::NAME, params).by(self.camera.deadline).await;
        match answer {
            Err(error) if has_moved(&error) => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// Asks the elements that were found.
    async fn ask<T: DeserializeOwned>(&self, found: &str, what: &str) -> Result<Option<T>, CdpError> {
        let params = json!({
            "objectId": found, "functionDeclaration": format!("function() {{ return {what}; }}"),
            "returnByValue": true, "userGesture": true,
        });
        let answer = self.send::<Evaluated<T>>(Runtime::CallFunctionOn::NAME, params).by(self.camera.deadline).await;
        match answer {
            Err(error) if has_moved(&error) => Ok(None),
            answer => Ok(answer?.result.value),
        }
    }

    /// The elements that match, as an object of the page.
    async fn find(&self, selector: &str) -> Result<String, Trouble> {
        let what = format!("find({})", json!(selector));
        let what = format!("{what}.length ? ({ACT}).{what} : null");
        let until = clock::deadline(PATIENCE).min(self.end);
        loop {
            if let Some(looked) = self.evaluate::<Value>(&what, false).await? {
                if looked.exception_details.is_some() {
                    return fail(format!("{selector:?} is not a valid selector"));
                }
                if let Some(object) = looked.result.object_id {
                    return Ok(object);
                }
            }
            if clock::instant() >= until {
                return fail(format!("no element matches {selector:?}"));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn wait_for(&self, selector: &str) -> Result<(), Trouble> {
        let what = format!("find({}).length", json!(selector));
        let until = clock::deadline(WAIT_FOR_ELEMENT).min(self.end);
        loop {
            match self.evaluate::<u64>(&what, true).await? {
                Some(looked) if looked.exception_details.is_some() => {
                    return fail(format!("{selector:?} is not a valid selector"));
                }
                Some(looked) if looked.result.value > Some(0) => return Ok(()),
                _ => {}
            }
            if clock::instant() >= until {
                return fail(format!("no element that matches {selector:?} has come in time"));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn click(&self, selector: &str, all: bool) -> Result<(), Trouble> {
        let found = self.find(selector).await?;
        let count = if all { self.ask::<usize>(&found, "this.length").await?.unwrap_or(0) } else { 1 };
        if count > CLICKS {
            return fail(format!("{count} elements match {selector:?}, and at most {CLICKS} are clicked"));
        }
        for i in 0..count {
            match self.ask::<Aim>(&found, &format!("({ACT}).aim.call(this, {i})")).await? {
                // A click has led to another page.
                None => break,
                Some(Aim { gone: true, .. }) if !all => return fail("the element has left the page"),
                Some(Aim { x: Some(x), y: Some(y), .. }) => self.mouse(x, y).await?,
                Some(_) => {}
            }
        }
        drop(self.send::<Value>(Runtime::ReleaseObjectGroup::NAME, json!({ "objectGroup": "weir-actions" })));
        Ok(())
    }

    async fn mouse(&self, x: f64, y: f64) -> Result<(), CdpError> {
        let event = |kind: &str, buttons: u8| {
            let mut event = json!({ "type": kind, "x": x, "y": y, "buttons": buttons });
            if kind != "mouseMoved" {
                event["button"] = "left".into();
                event["clickCount"] = 1.into();
            }
            (Input::DispatchMouseEvent::NAME, event)
        };
        self.type_all([event("mouseMoved", 0), event("mousePressed", 1), event("mouseReleased", 0)]).await
    }

    /// Sends input in its order, and waits until the page has had it.
    async fn type_all(&self, inputs: impl IntoIterator<Item = (&'static str, Value)>) -> Result<(), CdpError> {
        let sent: Vec<Pending<Value>> = inputs.into_iter().map(|(method, params)| self.send(method, params)).collect();
        for input in sent {
            match input.by(self.camera.deadline).await {
                // The page that it was for has gone: an earlier one did that.
                Ok(_) | Err(CdpError::Refused { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn write(&self, text: &str) -> Result<(), CdpError> {
        let put = |text: String| (Input::InsertText::NAME, json!({ "text": text }));
        if text.chars().count() > TYPED {
            return self.type_all([put(text.to_owned())]).await;
        }
        let mut inputs = Vec::new();
        for letter in text.chars() {
            match letter {
                '\r' => {}
                '\n' => inputs.extend(keys::press("Enter").into_iter().flatten().map(key_event)),
                '\t' => inputs.extend(keys::press("Tab").into_iter().flatten().map(key_event)),
                ' '..='~' => inputs.extend(keys::character(letter, 0).map(key_event)),
                // No key of a keyboard writes it.
                other => inputs.push(put(other.to_string())),
            }
        }
        self.type_all(inputs).await
    }

    async fn scroll(&self, direction: Direction, selector: Option<&str>) -> Result<(), Trouble> {
        let step = if direction == Direction::Down { 1 } else { -1 };
        let Some(selector) = selector else {
            self.evaluate::<Value>(&format!("scroll({step})"), true).await?;
            return Ok(());
        };
        let found = self.find(selector).await?;
        let scrolled = self.ask::<Aim>(&found, &format!("({ACT}).scroll.call(this, {step}, 0)")).await?;
        if scrolled.is_some_and(|aim| aim.gone) { fail("the element has left the page") } else { Ok(()) }
    }

    async fn run(&self, script: &str) -> Result<Returned, Trouble> {
        let mark = format!("_{}", random::hex::<8>());
        let until = clock::deadline(SCRIPT).min(self.end);
        let params = json!({
            "expression": format!("({ACT}).run({}, {SCRIPT_VALUE}, '{mark}')", json!(script)),
            "awaitPromise": true, "returnByValue": true, "userGesture": true,
            // Ends a script that does not end itself; one that only waits is left to itself.
            "timeout": until.saturating_duration_since(clock::instant()).as_millis() as u64,
        });
        let nothing = || Returned { r#type: "undefined".to_owned(), value: Value::Null };
        let ran = match self.send::<Evaluated<Ran>>(Runtime::Evaluate::NAME, params).by(until).await {
            Ok(Evaluated { result: Remote { value: Some(ran), .. }, .. }) => ran,
            // It took the page elsewhere.
            Err(error) if has_moved(&error) => return Ok(nothing()),
            Ok(_) | Err(CdpError::Timeout { .. } | CdpError::Refused { .. }) => {
                return fail("the script did not end in time");
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(problem) = ran.problem {
            return fail(problem);
        }
        let Ok(value) = ran.json.as_deref().map(texts::read).transpose() else {
            return fail("its value cannot be read");
        };
        let value: Value = value.unwrap_or_default();
        if depth(&value) > MAX_NESTING {
            return fail(format!("its value is nested more than {MAX_NESTING} levels deep"));
        }
        Ok(Returned { r#type: ran.r#type.unwrap_or_default(), value })
    }

    async fn screenshot(&self, shot: &Screenshot) -> Result<String, Trouble> {
        let camera = &self.camera;
        let window = shot.viewport.map(|window| (window.width, window.height));
        if let Some(window) = window {
            camera.resize(window).await?;
        }
        let page = self.settle(self.rest()).await?;
        let wanted = ScreenshotRequest { full_page: shot.full_page, quality: shot.quality, viewport: window };
        let (data, mime) = match camera.take(&wanted, (page.width, page.height)).await {
            Err(CdpError::Refused { message, .. }) => return fail(format!("no picture could be taken ({message})")),
            taken => taken?,
        };
        if window.is_some() {
            camera.restore().await?;
        }
        Ok(format!("data:{mime};base64,{data}"))
    }

    async fn print(&self, pdf: &Pdf) -> Result<String, Trouble> {
        let (width, height) = pdf.format.inches();
        let params = json!({
            "landscape": pdf.landscape, "scale": pdf.scale, "paperWidth": width, "paperHeight": height,
            "printBackground": true, "transferMode": "ReturnAsStream",
        });
        let printed = self.send::<Printed>(Page::PrintToPDF::NAME, params).by(self.camera.deadline).await;
        let stream = match printed {
            Err(CdpError::Refused { message, .. }) => return fail(format!("the page cannot be printed ({message})")),
            printed => printed?.stream,
        };
        let Some(stream) = stream else { return fail("the page cannot be printed") };
        let mut file = Vec::new();
        loop {
            let read = json!({ "handle": stream, "size": PDF_PART });
            let part: Part = self.send(IO::Read::NAME, read).by(self.camera.deadline).await?;
            if part.base_64_encoded {
                let bytes = STANDARD.decode(&part.data).map_err(|e| RenderError::Internal(format!("pdf: {e}")))?;
                file.extend_from_slice(&bytes);
            } else {
                file.extend_from_slice(part.data.as_bytes());
            }
            if part.eof || file.len() > PDF {
                break;
            }
        }
        drop(self.send::<Value>(IO::Close::NAME, json!({ "handle": stream })));
        if file.len() > PDF {
            return fail(format!("the file is larger than {} MiB", PDF >> 20));
        }
        Ok(format!("data:application/pdf;base64,{}", STANDARD.encode(&file)))
    }
}

fn key_event(event: Value) -> (&'static str, Value) {
    (Input::DispatchKeyEvent::NAME, event)
}

fn named(index: usize, action: &Action, trouble: Trouble) -> RenderError {
    match trouble {
        Trouble::Failed(why) => RenderError::Action(format!("actions[{index}] ({}) failed: {why}.", action.name())),
        Trouble::Lost(error) => error,
    }
}

/// Bytes of the results so far, the small ones by their bound.
fn size(results: &ActionResults) -> usize {
    let texts = results.screenshots.iter().chain(&results.pdfs).map(String::len).sum::<usize>();
    texts
        + results.scrapes.iter().map(|page| page.html.len()).sum::<usize>()
        + results.javascript_returns.len() * SCRIPT_VALUE
}
