//! The `actions` of a request (CONTRACT 3.6): judged by their rules, though no engine performs them yet.

use serde_json::Value;

use super::formats::read_viewport;
use crate::domain::validation::{Fields, Issues, Path};

const MAX_ACTIONS: i64 = 50;
/// `waitFor` and every wait together, milliseconds.
const MAX_WAIT_MS: i64 = 60_000;
/// What a wait for an element counts as, milliseconds.
const SELECTOR_WAIT_MS: i64 = 1_000;
const MAX_SELECTOR: std::ops::RangeInclusive<i64> = 1..=1_000;
const MAX_TEXT: std::ops::RangeInclusive<i64> = 0..=100_000;

const TYPES: &[&str] =
    &["wait", "click", "screenshot", "write", "press", "scroll", "scrape", "executeJavascript", "pdf"];
const PAPER: &[&str] = &["A0", "A1", "A2", "A3", "A4", "A5", "A6", "Letter", "Legal", "Tabloid", "Ledger"];

/// Reads `actions`; whether there are any.
pub(super) fn read(fields: &mut Fields<'_, '_>, wait_for: i64) -> bool {
    let Some(list) = fields.array("actions", MAX_ACTIONS) else { return false };
    let mut waits = wait_for;
    for (i, action) in list.iter().enumerate() {
        let mut path = fields.path_of("actions");
        path.push(i.into());
        waits = waits.saturating_add(read_one(action, path, fields.issues).unwrap_or(0));
    }
    if !list.is_empty() && waits > MAX_WAIT_MS {
        let message = "Total wait time (waitFor + wait actions) must not exceed 60 seconds";
        fields.issues.rule(fields.path_of("actions"), message);
    }
    !list.is_empty()
}

/// One action; how long it waits, in milliseconds.
fn read_one(action: &Value, path: Path, issues: &mut Issues) -> Option<i64> {
    let mut fields = Fields::open(action, path, issues)?.nulls_are_absent();
    fields.required("type")?;
    let kind = fields.choice("type", TYPES)?;
    let mut waits = 0;
    match kind {
        "wait" => waits = read_wait(&mut fields),
        "click" => {
            needed(&mut fields, "selector", MAX_SELECTOR);
            fields.bool("all");
        }
        "screenshot" => {
            fields.bool("fullPage");
            // The Rust client writes it so.
            fields.bool("full_page");
            fields.integer("quality", 1..=100);
            read_viewport(&mut fields);
        }
        "write" => needed(&mut fields, "text", MAX_TEXT),
        "press" => needed(&mut fields, "key", 1..=100),
        "scroll" => {
            fields.choice("direction", &["up", "down"]);
            fields.text("selector", MAX_SELECTOR);
        }
        "executeJavascript" => needed(&mut fields, "script", MAX_TEXT),
        "pdf" => {
            fields.choice("format", PAPER);
            fields.bool("landscape");
            if let Some(value) = fields.get("scale")
                && !value.is_number()
            {
                fields.issues.wrong_type(fields.path_of("scale"), "number", Some(value));
            }
        }
        _ => {}
    }
    fields.finish();
    Some(waits)
}

fn needed(fields: &mut Fields<'_, '_>, name: &'static str, length: std::ops::RangeInclusive<i64>) {
    if fields.required(name).is_some() {
        fields.text(name, length);
    }
}

/// Exactly one of `milliseconds` and `selector`.
fn read_wait(fields: &mut Fields<'_, '_>) -> i64 {
    let given = (fields.get("milliseconds").is_some(), fields.get("selector").is_some());
    let milliseconds = fields.integer("milliseconds", 1..=i64::MAX);
    fields.text("selector", MAX_SELECTOR);
    if given.0 == given.1 {
        fields
            .issues
            .rule(fields.path_of("type"), "Either 'milliseconds' or 'selector' must be provided, but not both.");
    }
    milliseconds.unwrap_or(if given.1 { SELECTOR_WAIT_MS } else { 0 })
}
