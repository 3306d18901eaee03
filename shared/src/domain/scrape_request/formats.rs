//! The `formats` of a request (wire 3.4): strings or objects, an X and `{type: X}` being the same.

use serde_json::Value;

use super::unavailable::Unavailable;
use crate::domain::json_schema;
use crate::domain::scrape::{
    AttributeSelector, ChangeTracking, Format, Highlights, JsonFormat, Query, Question, ScrapeOptions,
};
use crate::domain::screenshot::{Screenshot, Viewport};
use crate::domain::validation::{Fields, Issues, Path};
use crate::error_code::ErrorCode;

/// Every name a format can have.
const NAMES: &[&str] = &[
    "markdown",
    "html",
    "rawHtml",
    "links",
    "images",
    "screenshot",
    "summary",
    "json",
    "changeTracking",
    "attributes",
    "branding",
    "product",
    "menu",
    "question",
    "highlights",
    "query",
    "audio",
    "video",
    "rawBase64",
    "deterministicJson",
];
/// Longest list, so that a body cannot make work of it.
pub(super) const MAX_FORMATS: i64 = 50;
/// Characters of a question, query or prompt.
const PROMPT: std::ops::RangeInclusive<i64> = 1..=10_000;
/// Most selectors of the attributes format.
const MAX_ATTRIBUTES: i64 = 200;
/// Longest tag of a history, characters.
const MAX_TAG: i64 = 256;
const MAX_VIEWPORT_WIDTH: i64 = 7_680;
const MAX_VIEWPORT_HEIGHT: i64 = 4_320;

/// Reads `formats`; `None` when they are absent or empty. Repeated plain formats count once.
pub(super) fn read(fields: &mut Fields<'_, '_>, unavailable: &mut Vec<Unavailable>) -> Option<Vec<Format>> {
    let list = fields.array("formats", MAX_FORMATS)?;
    let mut formats: Vec<Format> = Vec::with_capacity(list.len());
    let mut names: Vec<&'static str> = Vec::with_capacity(list.len());
    for (i, entry) in list.iter().enumerate() {
        let mut path = fields.path_of("formats");
        path.push(i.into());
        let Some((name, format)) = read_one(entry, path.clone(), fields.issues) else { continue };
        names.push(name);
        match format {
            Some(format) if !formats.contains(&format) => formats.push(format),
            Some(_) => {}
            None => unavailable.push(Unavailable {
                code: ErrorCode::OptionNotAvailable,
                path,
                name: format!("The format {name}"),
            }),
        }
    }
    check_together(&names, fields.path_of("formats"), fields.issues);
    (!formats.is_empty()).then_some(formats)
}

/// Rules that look at several formats at once.
pub(super) fn check_together(names: &[&str], path: Path, issues: &mut Issues) {
    let count = |name: &str| names.iter().filter(|n| **n == name).count();
    if count("screenshot") > 1 {
        issues.rule(path.clone(), "You may only specify one screenshot format");
    }
    for name in ["json", "deterministicJson", "changeTracking", "attributes"] {
        if count(name) > 1 {
            issues.rule(path.clone(), format!("You may only specify one {name} format"));
        }
    }
    for (first, second, field) in [("question", "query", "answer"), ("highlights", "highlights", "highlights")] {
        let both = if first == second { count(first) } else { count(first) + count(second) };
        if both > 1 {
            let which = if first == second { first.to_owned() } else { format!("{first} or {second}") };
            issues.rule(path.clone(), format!("You may only specify one {which} format: they are answered in {field}"));
        }
    }
    if count("rawBase64") > 0 && names.len() > 1 {
        issues.rule(path, "The rawBase64 format cannot be combined with other formats");
    }
}

/// What is compared is the markdown of a page, so that is to be asked for as well.
pub(super) fn require_compared(options: &ScrapeOptions, fields: &mut Fields<'_, '_>) {
    if options.change_tracking().is_some() && !options.wants(&Format::Markdown) {
        let text = "The changeTracking format requires the markdown format to be specified as well";
        fields.issues.rule(fields.path_of("formats"), text);
    }
}

/// One entry: its name, and the format when this build has it. `None`, with an issue, when it is wrong.
fn read_one(entry: &Value, path: Path, issues: &mut Issues) -> Option<(&'static str, Option<Format>)> {
    match entry {
        Value::String(text) if text == "screenshot@fullPage" => {
            let shot = Screenshot { full_page: true, ..Screenshot::default() };
            Some(("screenshot", Some(Format::Screenshot(shot))))
        }
        Value::String(text) => {
            let Some(name) = NAMES.iter().find(|n| *n == text).copied() else {
                issues.wrong_choice(path, NAMES);
                return None;
            };
            if let Some(field) = required_field(name) {
                let message = format!("The {name} format needs an object with its field {field}");
                issues.rule(path, message);
                return None;
            }
            Some((name, plain(name)))
        }
        Value::Object(_) => {
            let mut fields = Fields::open(entry, path, issues)?.nulls_are_absent();
            fields.required("type")?;
            let name = fields.choice("type", NAMES)?;
            if name == "screenshot" {
                // Not strict: unknown keys are ignored (wire 2.2).
                return Some((name, Some(Format::Screenshot(read_screenshot(&mut fields)))));
            }
            let format = read_fields(name, &mut fields);
            fields.finish();
            Some((name, format))
        }
        other => {
            issues.wrong_union(path, "string or object", other);
            None
        }
    }
}

/// A format without options of its own, when this build has it.
fn plain(name: &str) -> Option<Format> {
    Some(match name {
        "markdown" => Format::Markdown,
        "html" => Format::Html,
        "rawHtml" => Format::RawHtml,
        "links" => Format::Links,
        "images" => Format::Images,
        "screenshot" => Format::Screenshot(Screenshot::default()),
        "branding" => Format::Branding,
        "product" => Format::Product,
        "menu" => Format::Menu,
        "rawBase64" => Format::RawBase64,
        "audio" => Format::Audio,
        "video" => Format::Video,
        "summary" => Format::Summary,
        "json" => Format::Json(JsonFormat::default()),
        "changeTracking" => Format::ChangeTracking(ChangeTracking::default()),
        _ => return None,
    })
}

/// The field without which a format says nothing.
fn required_field(name: &str) -> Option<&'static str> {
    match name {
        "attributes" => Some("selectors"),
        "question" => Some("question"),
        "highlights" => Some("query"),
        "query" => Some("prompt"),
        _ => None,
    }
}

/// Options of a screenshot, also of one that is an action.
pub(super) fn read_screenshot(fields: &mut Fields<'_, '_>) -> Screenshot {
    Screenshot {
        full_page: fields.bool("fullPage").unwrap_or(false),
        quality: fields.integer("quality", 1..=100).map(|q| q as u8),
        viewport: read_viewport(fields),
    }
}

fn read_viewport(fields: &mut Fields<'_, '_>) -> Option<Viewport> {
    let mut viewport = fields.object("viewport")?;
    let width = viewport.required("width").and_then(|_| viewport.integer("width", 1..=MAX_VIEWPORT_WIDTH));
    let height = viewport.required("height").and_then(|_| viewport.integer("height", 1..=MAX_VIEWPORT_HEIGHT));
    Some(Viewport { width: width? as u32, height: height? as u32 })
}

/// The options of a format; `None` when this build does not have it, or they are wrong.
fn read_fields(name: &str, fields: &mut Fields<'_, '_>) -> Option<Format> {
    match name {
        "json" | "deterministicJson" => {
            let mut json = read_json(fields);
            if name == "json" {
                json.learn = read_learn(fields, json.schema.is_some());
            }
            return (name == "json").then_some(Format::Json(json));
        }
        "changeTracking" => return Some(Format::ChangeTracking(read_change_tracking(fields))),
        "attributes" => return Some(Format::Attributes { selectors: read_attributes(fields) }),
        "question" => return Some(Format::Question(Question { question: needed_text(fields, "question") })),
        "highlights" => return Some(Format::Highlights(Highlights { query: needed_text(fields, "query") })),
        "query" => {
            let prompt = needed_text(fields, "prompt");
            let direct_quote = fields.choice("mode", &["freeform", "directQuote"]) == Some("directQuote");
            return Some(Format::Query(Query { prompt, direct_quote }));
        }
        _ => {}
    }
    plain(name)
}

/// A text that must be there; empty, with an issue, when it is not.
fn needed_text(fields: &mut Fields<'_, '_>, name: &'static str) -> String {
    let text = fields.required(name).and_then(|_| fields.text(name, PROMPT));
    text.map(str::to_owned).unwrap_or_default()
}

/// How changes are told.
pub(super) fn read_change_tracking(fields: &mut Fields<'_, '_>) -> ChangeTracking {
    let modes = read_modes(fields);
    let has = |name: &str| modes.iter().any(|mode| mode == name);
    ChangeTracking {
        git_diff: has("git-diff"),
        json: has("json"),
        schema: read_schema(fields),
        prompt: read_prompt(fields),
        tag: fields.text("tag", 0..=MAX_TAG).map(str::to_owned),
        watch: None,
    }
}

/// What to read out of a page as data.
pub(super) fn read_json(fields: &mut Fields<'_, '_>) -> JsonFormat {
    JsonFormat {
        prompt: read_prompt(fields),
        schema: read_schema(fields),
        check_prompt_injection: fields.bool("checkPromptInjection").unwrap_or(false),
        learn: false,
    }
}

/// How data is read.
pub(super) const MODES: &[&str] = &["read", "learn"];

/// Whether it is learned how to read the data; that needs a schema.
pub(super) fn read_learn(fields: &mut Fields<'_, '_>, has_schema: bool) -> bool {
    let learns = fields.choice("mode", MODES) == Some("learn");
    if learns && !has_schema {
        fields.issues.rule(fields.path_of("mode"), "The mode learn needs a schema");
    }
    learns
}

fn read_prompt(fields: &mut Fields<'_, '_>) -> Option<String> {
    read_instructions(fields, "prompt")
}

/// Words for a language model. Empty ones say as little as none.
pub(super) fn read_instructions(fields: &mut Fields<'_, '_>, name: &'static str) -> Option<String> {
    fields.text(name, 0..=10_000).filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

/// A JSON schema that values can be held to; an empty one counts as absent.
fn read_schema(fields: &mut Fields<'_, '_>) -> Option<Value> {
    let value = fields.get("schema")?;
    if !value.is_object() {
        fields.issues.wrong_type(fields.path_of("schema"), "object", Some(value));
    } else if let Err(problem) = json_schema::Schema::new(value) {
        fields.issues.rule(fields.path_of("schema"), problem);
    }
    Some(value.clone()).filter(|schema| schema.as_object().is_some_and(|map| !map.is_empty()))
}

fn read_modes(fields: &mut Fields<'_, '_>) -> Vec<String> {
    const MODES: &[&str] = &["git-diff", "json"];
    let modes = fields.strings("modes", 10).unwrap_or_default();
    for (i, mode) in modes.iter().enumerate() {
        if !MODES.contains(&mode.as_str()) {
            let mut path = fields.path_of("modes");
            path.push(i.into());
            fields.issues.wrong_choice(path, MODES);
        }
    }
    modes
}

fn read_attributes(fields: &mut Fields<'_, '_>) -> Vec<AttributeSelector> {
    let mut selectors = Vec::new();
    if fields.required("selectors").is_none() {
        return selectors;
    }
    let Some(list) = fields.array("selectors", MAX_ATTRIBUTES) else { return selectors };
    for (i, entry) in list.iter().enumerate() {
        let mut path = fields.path_of("selectors");
        path.push(i.into());
        let Some(mut selector) = Fields::open(entry, path, fields.issues) else { continue };
        let [chosen, attribute] = ["selector", "attribute"].map(|name| {
            selector.required(name)?;
            selector.text(name, 1..=1_000)
        });
        selector.finish();
        if let (Some(selector), Some(attribute)) = (chosen, attribute) {
            selectors.push(AttributeSelector { selector: selector.to_owned(), attribute: attribute.to_owned() });
        }
    }
    selectors
}
