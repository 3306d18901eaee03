//! The `actions` of a request (wire 3.6).

use serde_json::Value;

use super::formats::read_screenshot;
use crate::domain::action::{Action, Direction, Paper, Pdf, Wait};
use crate::domain::screenshot::Screenshot;
use crate::domain::validation::{Fields, Issues, Path};

const MAX_ACTIONS: i64 = 50;
/// `waitFor` and every wait together, milliseconds.
const MAX_WAIT_MS: i64 = 60_000;
/// What a wait for an element counts as, milliseconds.
const SELECTOR_WAIT_MS: i64 = 1_000;
const MAX_SELECTOR: std::ops::RangeInclusive<i64> = 1..=1_000;
const MAX_TEXT: std::ops::RangeInclusive<i64> = 0..=100_000;
/// As far as a browser prints.
const SCALE: std::ops::RangeInclusive<f64> = 0.1..=2.0;

const TYPES: &[&str] =
    &["wait", "click", "screenshot", "write", "press", "scroll", "scrape", "executeJavascript", "pdf"];

/// Reads `actions`; empty when there are none.
pub(super) fn read(fields: &mut Fields<'_, '_>, wait_for: i64) -> Vec<Action> {
    let Some(list) = fields.array("actions", MAX_ACTIONS) else { return Vec::new() };
    let mut waits = wait_for;
    let mut actions = Vec::with_capacity(list.len());
    for (i, action) in list.iter().enumerate() {
        let mut path = fields.path_of("actions");
        path.push(i.into());
        let Some(action) = read_one(action, path, fields.issues) else { continue };
        waits = waits.saturating_add(match &action {
            Action::Wait(Wait::Time { milliseconds }) => i64::from(*milliseconds),
            Action::Wait(Wait::Element { .. }) => SELECTOR_WAIT_MS,
            _ => 0,
        });
        actions.push(action);
    }
    if !list.is_empty() && waits > MAX_WAIT_MS {
        let message = "Total wait time (waitFor + wait actions) must not exceed 60 seconds";
        fields.issues.rule(fields.path_of("actions"), message);
    }
    actions
}

/// One action; `None`, with an issue, when it is wrong.
fn read_one(action: &Value, path: Path, issues: &mut Issues) -> Option<Action> {
    let mut fields = Fields::open(action, path, issues)?.nulls_are_absent();
    fields.required("type")?;
    let kind = fields.choice("type", TYPES)?;
    let action = match kind {
        "wait" => read_wait(&mut fields).map(Action::Wait),
        "click" => {
            let selector = needed(&mut fields, "selector", MAX_SELECTOR);
            let all = fields.bool("all").unwrap_or(false);
            selector.map(|selector| Action::Click { selector, all })
        }
        "screenshot" => {
            // The Rust client writes it so.
            let full_page = fields.bool("full_page") == Some(true);
            let shot = read_screenshot(&mut fields);
            Some(Action::Screenshot(Screenshot { full_page: shot.full_page || full_page, ..shot }))
        }
        "write" => needed(&mut fields, "text", MAX_TEXT).map(|text| Action::Write { text }),
        "press" => needed(&mut fields, "key", 1..=100).map(|key| Action::Press { key }),
        "scroll" => {
            let direction = match fields.choice("direction", &["up", "down"]) {
                Some("up") => Direction::Up,
                _ => Direction::Down,
            };
            Some(Action::Scroll { direction, selector: read_selector(&mut fields) })
        }
        "scrape" => Some(Action::Scrape),
        "executeJavascript" => {
            needed(&mut fields, "script", MAX_TEXT).map(|script| Action::ExecuteJavascript { script })
        }
        _ => Some(Action::Pdf(read_pdf(&mut fields))),
    };
    fields.finish();
    action
}

fn read_pdf(fields: &mut Fields<'_, '_>) -> Pdf {
    let names: Vec<&'static str> = Paper::NAMES.iter().map(|(name, _)| *name).collect();
    let named = fields.choice("format", &names);
    let paper = Paper::NAMES.iter().find(|(name, _)| Some(*name) == named);
    Pdf {
        format: paper.map_or(Paper::Letter, |(_, paper)| *paper),
        landscape: fields.bool("landscape").unwrap_or(false),
        scale: fields.number("scale", SCALE).unwrap_or(1.0),
    }
}

fn needed(fields: &mut Fields<'_, '_>, name: &'static str, length: std::ops::RangeInclusive<i64>) -> Option<String> {
    fields.required(name)?;
    fields.text(name, length).map(str::to_owned)
}

/// A selector that an action can do without. n8n sends the one of a form that was left empty, which is none.
fn read_selector(fields: &mut Fields<'_, '_>) -> Option<String> {
    fields.text("selector", 0..=*MAX_SELECTOR.end()).filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

/// Exactly one of `milliseconds` and `selector`.
fn read_wait(fields: &mut Fields<'_, '_>) -> Option<Wait> {
    let is_empty = |value: &Value| value.as_str().is_some_and(|text| text.trim().is_empty());
    let has_selector = fields.get("selector").is_some_and(|value| !is_empty(value));
    let given = (fields.get("milliseconds").is_some(), has_selector);
    let milliseconds = fields.integer("milliseconds", 1..=i64::MAX);
    let selector = read_selector(fields);
    if given.0 == given.1 {
        fields
            .issues
            .rule(fields.path_of("type"), "Either 'milliseconds' or 'selector' must be provided, but not both.");
        return None;
    }
    match milliseconds {
        // Anything this long is refused for the sum of all waits.
        Some(wait) => Some(Wait::Time { milliseconds: u32::try_from(wait).unwrap_or(u32::MAX) }),
        None => selector.map(|selector| Wait::Element { selector }),
    }
}
