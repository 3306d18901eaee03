//! Carries out the model's actions, within what [`Home`] allows.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;
use weir_shared::clock;

use super::driver::{BrowserDriver, DriverError, DriverResult};
use super::protocol::Action;
use super::site::Home;
use super::snapshot::cut;

/// The functions that are run in the page to ask and use elements.
const ELEMENT: &str = include_str!("element.js");
/// How long a text is waited for, and how often it is looked for.
const TEXT_PATIENCE: Duration = Duration::from_secs(10);
const TEXT_LOOK: Duration = Duration::from_millis(200);

/// The problem of a page whose focus is in a frame that is not its own.
const FOREIGN: &str = "FOREIGN";

/// The answer of [`ELEMENT`] for one element.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Said {
    problem: Option<String>,
    hidden: bool,
    x: f64,
    y: f64,
    r#where: Vec<String>,
    value: Option<String>,
    at: Option<f64>,
}

#[derive(Deserialize)]
struct Resolved {
    object: Object,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Object {
    object_id: Option<String>,
}

#[derive(Deserialize)]
struct Returned {
    result: Remote,
}

#[derive(Deserialize)]
struct Remote {
    #[serde(default)]
    value: Value,
}

fn refuse<T>(why: impl Into<String>) -> DriverResult<T> {
    Err(DriverError::Refused(why.into()))
}

/// Does what the model wants, waits for the page, and says what came of it. `Finish` is not done here.
pub(super) async fn perform(driver: &mut BrowserDriver, home: &Home, action: &Action) -> DriverResult<String> {
    if driver.dialog().is_some() && !matches!(action, Action::Dialog { .. } | Action::Wait { .. }) {
        return refuse("A dialog is open: answer it with `dialog` first.");
    }
    // What the page does by itself after an address was opened is still that address's way; what it does when it is used
    // is not.
    let uses_page = !matches!(
        action,
        Action::Scroll { .. }
            | Action::WaitFor { .. }
            | Action::Wait { .. }
            | Action::Extract { .. }
            | Action::Finish { .. }
    );
    if uses_page {
        driver.let_go().await?;
    }
    let tabs = driver.tab_count();
    let mut set_out = None;
    let mut done = match action {
        Action::Click { element } => click(driver, element).await?,
        Action::Fill { element, text, submit } => fill(driver, home, element, text, *submit).await?,
        Action::Select { element, option } => {
            let object = resolve(driver, element).await?;
            let said = ask(driver, &object, "choose", json!([option])).await?;
            format!("Chosen: {}.", said.value.unwrap_or_default())
        }
        Action::Press { key } => press(driver, home, key).await?,
        Action::Scroll { element, down } => scroll(driver, element.as_deref(), *down).await?,
        Action::WaitFor { text } => return wait_for(driver, text).await,
        Action::Wait { milliseconds } => {
            tokio::time::sleep(Duration::from_millis(*milliseconds)).await;
            "Waited.".to_owned()
        }
        Action::Extract { element } => return extract(driver, element.as_deref()).await,
        Action::Navigate { url } => {
            let url = address(home, url)?;
            set_out = set_out_for(driver, &url).await?;
            driver.navigate(url.as_str(), home).await?;
            format!("Opened {}.", cut(url.as_str(), 200))
        }
        Action::Back => {
            driver.back().await?;
            "Went back.".to_owned()
        }
        Action::NewTab { url } => {
            let url = url.as_deref().map(|url| address(home, url)).transpose()?;
            driver.new_tab().await?;
            if let Some(url) = &url {
                set_out = set_out_for(driver, url).await?;
                driver.navigate(url.as_str(), home).await?;
            }
            "Opened a tab.".to_owned()
        }
        Action::SwitchTab { tab } => {
            driver.switch_tab(tab).await?;
            "This is the tab now.".to_owned()
        }
        Action::Dialog { accept, text } => {
            let Some(dialog) = driver.dialog() else { return refuse("No dialog is open.") };
            // Both the window's address and that of the frame that asks.
            let is_home = home.holds_text(&driver.url()) && home.holds_text(&dialog.url);
            if dialog.kind == "prompt" && text.is_some() && !is_home {
                return refuse(foreign(home));
            }
            if text.as_ref().is_some_and(|text| !home.may_type(text)) {
                return refuse(foreign_words());
            }
            driver.answer_dialog(*accept, text.as_deref()).await?;
            if *accept { "The dialog was accepted.".to_owned() } else { "The dialog was dismissed.".to_owned() }
        }
        Action::Finish { .. } => String::new(),
    };
    let told = driver.rest(tabs).await?;
    if let Some(elsewhere) = driver.kept_from() {
        return refuse(format!("{} The address leads on to {}.", foreign(home), cut(&elsewhere, 100)));
    }
    if let Some(set_out) = set_out {
        has_arrived(driver, &set_out).await?;
    }
    if let Some(more) = told {
        done.push(' ');
        done.push_str(&more);
    }
    if let Some(dialog) = driver.dialog() {
        done.push_str(&format!(" A dialog opened ({}): {}", dialog.kind, dialog.message));
    }
    Ok(done)
}

/// Where a tab stands that is sent to an address.
struct SetOut {
    document: (String, String),
    url: String,
}

/// `None`: the page cannot be asked, and nothing is known of it afterwards either.
async fn set_out_for(driver: &BrowserDriver, url: &Url) -> DriverResult<Option<SetOut>> {
    Ok(driver.document().await?.map(|document| SetOut { document, url: url.as_str().to_owned() }))
}

/// Looks once whether the tab has left the document that it was sent away from: a page may keep it, and the browser's answer
/// tells only that it was sent.
async fn has_arrived(driver: &BrowserDriver, set_out: &SetOut) -> DriverResult<()> {
    match driver.dialog() {
        Some(dialog) if dialog.kind == "beforeunload" => {
            return refuse(format!(
                "The page was not left yet: it asks by a dialog whether it may be. Answer it with `dialog` ({}).",
                dialog.message
            ));
        }
        // The page that was opened has said something.
        Some(_) => return Ok(()),
        None => {}
    }
    let SetOut { document, url } = set_out;
    // An address within the document that is shown already leads nowhere.
    if document.1 != *url && driver.document().await?.as_ref() == Some(document) {
        return refuse(format!("The page did not leave: the tab is still at {}.", cut(&document.1, 200)));
    }
    Ok(())
}

/// The refusal for what the agent does on the sites of its task only.
fn foreign(home: &Home) -> String {
    format!("Refused: this is not the task's site ({}). Nothing is typed or opened elsewhere.", home.names())
}

/// The refusal for text that is not the task's own.
fn foreign_words() -> String {
    "Refused: only words that stand in the person's own task are typed.".to_owned()
}

/// An address that the model may name.
fn address(home: &Home, text: &str) -> DriverResult<Url> {
    let Ok(url) = Url::parse(text.trim()) else { return refuse("That is no complete address.") };
    let may = if home.is_confined() { home.lets_in(url.as_str(), false) } else { home.holds(&url) };
    if may { Ok(url) } else { refuse(foreign(home)) }
}

/// The object of an element of the last snapshot, in a world that shares the document with the page and nothing else: no
/// script of the page can make it say what is not so.
async fn resolve(driver: &BrowserDriver, name: &str) -> DriverResult<String> {
    let Some(element) = driver.find(name) else {
        let name = cut(name, 30);
        return refuse(format!(
            "There is no element {name} on the page as it is now. Use a reference that the tree shows."
        ));
    };
    let resolved = match driver.world(&element.frame).await {
        Ok(world) => {
            let node = json!({"backendNodeId": element.backend, "executionContextId": world});
            driver.page::<Resolved>("DOM.resolveNode", node).await
        }
        Err(error) => Err(error),
    };
    let gone = || DriverError::Refused("The element is not on the page any more.".to_owned());
    match resolved {
        Ok(resolved) => resolved.object.object_id.ok_or_else(gone),
        Err(DriverError::Refused(_)) if driver.dialog().is_none() => Err(gone()),
        Err(error) => Err(error),
    }
}

/// Asks an element something; its problem becomes the error.
async fn ask(driver: &BrowserDriver, object: &str, what: &str, arguments: Value) -> DriverResult<Said> {
    let function = format!("function(...given) {{ return ({ELEMENT}).{what}.apply(this, given); }}");
    let arguments: Vec<Value> =
        arguments.as_array().into_iter().flatten().map(|argument| json!({ "value": argument })).collect();
    let call = json!({
        "objectId": object, "functionDeclaration": function, "arguments": arguments, "returnByValue": true,
        "userGesture": true,
    });
    let returned = match driver.page::<Returned>("Runtime.callFunctionOn", call).await {
        // The action was carried out, and the page has opened a dialog over it.
        Err(DriverError::Refused(_)) if driver.dialog().is_some() => return Ok(Said::default()),
        returned => returned?,
    };
    let said = Said::deserialize(returned.result.value)
        .map_err(|_| DriverError::Refused("the element did not answer".to_owned()))?;
    match said.problem {
        Some(problem) => refuse(cut(&problem, 1_600)),
        None => Ok(said),
    }
}

async fn click(driver: &BrowserDriver, name: &str) -> DriverResult<String> {
    let object = resolve(driver, name).await?;
    let at = ask(driver, &object, "point", json!([])).await?;
    if at.hidden {
        ask(driver, &object, "click", json!([])).await?;
        return Ok("Clicked.".to_owned());
    }
    for (kind, buttons) in [("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 0)] {
        let mut event = json!({"type": kind, "x": at.x, "y": at.y, "buttons": buttons});
        if kind != "mouseMoved" {
            event["button"] = "left".into();
            event["clickCount"] = 1.into();
        }
        driver.input("Input.dispatchMouseEvent", event).await?;
    }
    Ok("Clicked.".to_owned())
}

/// Asks where what is typed would be sent to, and refuses what is not the task's. What was allowed is held to in the page,
/// in one go with the typing.
async fn judged(driver: &BrowserDriver, home: &Home, object: &str, question: &str) -> DriverResult<Vec<String>> {
    let said = match ask(driver, object, question, json!([])).await {
        Err(DriverError::Refused(why)) if why == FOREIGN => return refuse(foreign(home)),
        said => said?,
    };
    // A dialog opened before the element could be asked where it is.
    if said.r#where.is_empty() {
        return refuse("A dialog is open: answer it with `dialog` first.");
    }
    // Both the window's address and where the field's own document and form are.
    if !home.holds_text(&driver.url()) || !said.r#where.iter().all(|url| home.holds_text(url)) {
        return refuse(foreign(home));
    }
    Ok(said.r#where)
}

async fn fill(driver: &BrowserDriver, home: &Home, name: &str, text: &str, submit: bool) -> DriverResult<String> {
    if !home.may_type(text) {
        return refuse(foreign_words());
    }
    let object = resolve(driver, name).await?;
    let allowed = judged(driver, home, &object, "ready").await?;
    let holds = ask(driver, &object, "insert", json!([text, allowed])).await?.value.unwrap_or_default();
    if submit && driver.dialog().is_none() {
        let allowed = judged(driver, home, &object, "ready").await?;
        ask(driver, &object, "enter", json!([allowed])).await?;
        return Ok("Filled and sent with Enter.".to_owned());
    }
    let is_as_wanted = driver.dialog().is_some() || holds.trim() == cut(text, 200).trim_end_matches('…').trim();
    Ok(if is_as_wanted { "Filled.".to_owned() } else { format!("Filled; the field holds \"{holds}\" now.") })
}

/// Code and key number of the keys that do not write a character.
const KEYS: &[(&str, i64)] = &[
    ("Enter", 13),
    ("Tab", 9),
    ("Escape", 27),
    ("Backspace", 8),
    ("Delete", 46),
    ("ArrowLeft", 37),
    ("ArrowUp", 38),
    ("ArrowRight", 39),
    ("ArrowDown", 40),
    ("Home", 36),
    ("End", 35),
    ("PageUp", 33),
    ("PageDown", 34),
    ("Space", 32),
];

async fn press(driver: &BrowserDriver, home: &Home, wanted: &str) -> DriverResult<String> {
    let mut modifiers = 0;
    let mut name = wanted.trim();
    while let Some((modifier, rest)) = name.split_once('+').filter(|(_, rest)| !rest.is_empty()) {
        modifiers |= match modifier.to_ascii_lowercase().as_str() {
            "alt" => 1,
            "control" | "ctrl" => 2,
            "meta" => 4,
            "shift" => 8,
            _ => return refuse("There is no such key."),
        };
        name = rest;
    }
    let known = KEYS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    let mut letters = name.chars();
    let letter = letters.next().filter(|_| letters.next().is_none());
    let (key, code, number) = match (known, letter) {
        (Some(("Space", number)), _) => (" ".to_owned(), "Space".to_owned(), *number),
        (Some((known, number)), _) => ((*known).to_owned(), (*known).to_owned(), *number),
        (None, Some(letter)) => {
            let upper = letter.to_ascii_uppercase();
            let (code, number) = match letter {
                '0'..='9' => (format!("Digit{letter}"), i64::from(u32::from(upper))),
                'a'..='z' | 'A'..='Z' => (format!("Key{upper}"), i64::from(u32::from(upper))),
                _ => (String::new(), 0),
            };
            (name.to_owned(), code, number)
        }
        (None, None) => return refuse("There is no such key."),
    };
    if home.is_confined() && letter.is_some_and(|letter| !letter.is_whitespace()) && modifiers & 7 == 0 {
        return refuse("Characters are not pressed one by one: fill the field.");
    }
    if modifiers & 6 != 0 && key.eq_ignore_ascii_case("v") {
        return refuse("Nothing is pasted: fill the field with its text.");
    }
    let page = driver.main_document().await?;
    let allowed = judged(driver, home, &page, "receiver").await?;
    // Keys without a character move about, and only the browser knows all they do. But it gives them to whatever has the
    // focus when they come, which a foreign frame can be a moment after it was looked at.
    if letter.is_some() || matches!(code.as_str(), "Space" | "Enter") || driver.has_foreign_frames(home).await? {
        ask(driver, &page, "press", json!([key, code, number, modifiers, allowed])).await?;
        return Ok("Pressed.".to_owned());
    }
    let mut event = json!({
        "modifiers": modifiers, "key": key, "code": code, "windowsVirtualKeyCode": number, "type": "rawKeyDown",
    });
    driver.input("Input.dispatchKeyEvent", event.clone()).await?;
    event["type"] = "keyUp".into();
    driver.input("Input.dispatchKeyEvent", event).await?;
    Ok("Pressed.".to_owned())
}

async fn scroll(driver: &BrowserDriver, name: Option<&str>, down: bool) -> DriverResult<String> {
    let object = match name {
        Some(name) => resolve(driver, name).await?,
        None => document(driver, "document.scrollingElement || document.documentElement").await?,
    };
    let at = ask(driver, &object, "scroll", json!([if down { 1 } else { -1 }])).await?.at.unwrap_or(100.0);
    Ok(format!("Scrolled; the end of the window is at {at:.0} % of it."))
}

/// An object of the page itself.
async fn document(driver: &BrowserDriver, expression: &str) -> DriverResult<String> {
    #[derive(Deserialize)]
    struct Found {
        result: Object,
    }
    let found: Found = driver.page("Runtime.evaluate", json!({ "expression": expression })).await?;
    found.result.object_id.ok_or_else(|| DriverError::Refused("there is no page".to_owned()))
}

async fn extract(driver: &BrowserDriver, name: Option<&str>) -> DriverResult<String> {
    let object = match name {
        Some(name) => resolve(driver, name).await?,
        None => document(driver, "document.body || document.documentElement").await?,
    };
    let text = ask(driver, &object, "text", json!([])).await?.value.unwrap_or_default();
    Ok(format!("The text: {}", cut(&text, 12_000)))
}

async fn wait_for(driver: &mut BrowserDriver, text: &str) -> DriverResult<String> {
    let until = clock::deadline(TEXT_PATIENCE);
    let wanted = json!(text).to_string();
    let expression =
        format!("!!document.body && document.body.innerText.toLowerCase().includes({wanted}.toLowerCase())");
    loop {
        let looked =
            driver.page::<Returned>("Runtime.evaluate", json!({"expression": expression, "returnByValue": true}));
        match looked.await {
            Ok(Returned { result }) if result.value == Value::Bool(true) => return Ok("It is there.".to_owned()),
            Err(DriverError::Lost) => return Err(DriverError::Lost),
            Err(DriverError::Refused(why)) if driver.dialog().is_some() => return refuse(why),
            // A page on its way to another one answers later.
            _ => {}
        }
        if clock::instant() >= until {
            return refuse("It did not appear.");
        }
        tokio::time::sleep(TEXT_LOOK).await;
    }
}
