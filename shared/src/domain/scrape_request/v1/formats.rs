//! The `formats` of version 1: names, with the options of some of them beside the list.

use super::super::formats::{MAX_FORMATS, check_together, read_change_tracking, read_instructions, read_json};
use super::super::unavailable::Unavailable;
use crate::domain::scrape::{ChangeTracking, Format, JsonFormat};
use crate::domain::screenshot::Screenshot;
use crate::domain::validation::Fields;
use crate::error_code::ErrorCode;

/// Every name a format can have. `content` is what markdown was called before; `extract` is what json was called.
const NAMES: &[&str] = &[
    "markdown",
    "html",
    "rawHtml",
    "links",
    "screenshot",
    "screenshot@fullPage",
    "extract",
    "json",
    "summary",
    "changeTracking",
    "content",
];

/// Reads `formats` and what stands beside them; `None` when they are absent or empty.
pub(super) fn read(fields: &mut Fields<'_, '_>, unavailable: &mut Vec<Unavailable>) -> Option<Vec<Format>> {
    let names = read_names(fields);
    let json = read_data(fields, &names, unavailable);
    let tracking = read_tracking(fields, &names);
    let mut formats: Vec<Format> = Vec::with_capacity(names.len());
    for name in names {
        let format = match name {
            "html" => Format::Html,
            "rawHtml" => Format::RawHtml,
            "links" => Format::Links,
            "screenshot" => Format::Screenshot(Screenshot::default()),
            "screenshot@fullPage" => Format::Screenshot(Screenshot { full_page: true, ..Screenshot::default() }),
            "extract" | "json" => Format::Json(json.clone()),
            "summary" => Format::Summary,
            "changeTracking" => Format::ChangeTracking(tracking.clone()),
            _ => Format::Markdown,
        };
        if !formats.contains(&format) {
            formats.push(format);
        }
    }
    (!formats.is_empty()).then_some(formats)
}

/// The names of the list, each once.
fn read_names(fields: &mut Fields<'_, '_>) -> Vec<&'static str> {
    let Some(list) = fields.array("formats", MAX_FORMATS) else { return Vec::new() };
    let mut names: Vec<&'static str> = Vec::with_capacity(NAMES.len());
    for (i, entry) in list.iter().enumerate() {
        let mut path = fields.path_of("formats");
        path.push(i.into());
        match entry.as_str().map(|text| NAMES.iter().find(|name| **name == text)) {
            Some(Some(name)) if !names.contains(name) => names.push(name),
            Some(Some(_)) => {}
            Some(None) => fields.issues.wrong_choice(path, NAMES),
            None => fields.issues.wrong_type(path, "string", Some(entry)),
        }
    }
    let plain = |name: &&'static str| match *name {
        "screenshot@fullPage" => "screenshot",
        "content" => "markdown",
        name => name,
    };
    let together: Vec<&str> = names.iter().map(plain).collect();
    check_together(&together, fields.path_of("formats"), fields.issues);
    names
}

/// What is to be read out of the page as data: `json` with `jsonOptions`, or `extract` with the options of that name. A
/// page is read once, so both together have to ask for the same.
fn read_data(fields: &mut Fields<'_, '_>, names: &[&str], unavailable: &mut Vec<Unavailable>) -> JsonFormat {
    let mut read = |format: &str, place: &'static str| {
        let options = read_data_options(fields, place, unavailable);
        if names.contains(&format) != options.is_some() {
            let text =
                "When 'extract' or 'json' format is specified, corresponding options must be provided, and vice versa";
            fields.issues.rule(fields.path_of(place), text);
        }
        options
    };
    match (read("json", "jsonOptions"), read("extract", "extract")) {
        (Some(json), Some(extract)) => {
            if json != extract {
                let text = "jsonOptions and extract must be the same: both are answered by one reading of the page";
                fields.issues.rule(fields.path_of("extract"), text);
            }
            json
        }
        (json, extract) => json.or(extract).unwrap_or_default(),
    }
}

fn read_data_options(
    fields: &mut Fields<'_, '_>,
    place: &'static str,
    unavailable: &mut Vec<Unavailable>,
) -> Option<JsonFormat> {
    let mut options = fields.object(place)?.nulls_are_absent();
    let mut json = read_json(&mut options);
    // What the model is told is one text to us.
    let parts = [read_instructions(&mut options, "systemPrompt"), json.prompt.take()];
    let told: Vec<String> = parts.into_iter().flatten().collect();
    json.prompt = (!told.is_empty()).then(|| told.join("\n\n"));
    options.choice("mode", &["llm"]);
    let path = options.path_of("agent");
    if let Some(agent) = options.object("agent") {
        let mut agent = agent.nulls_are_absent();
        agent.text("model", 0..=256);
        agent.text("prompt", 0..=10_000);
        agent.finish();
        unavailable.push(Unavailable {
            code: ErrorCode::OptionNotAvailable,
            path,
            name: format!("The agent of {place}"),
        });
    }
    options.finish();
    Some(json)
}

fn read_tracking(fields: &mut Fields<'_, '_>, names: &[&str]) -> ChangeTracking {
    let Some(options) = fields.object("changeTrackingOptions") else { return ChangeTracking::default() };
    let mut options = options.nulls_are_absent();
    let tracking = read_change_tracking(&mut options);
    options.finish();
    if !names.contains(&"changeTracking") {
        let text = "changeTrackingOptions needs the changeTracking format";
        fields.issues.rule(fields.path_of("changeTrackingOptions"), text);
    }
    tracking
}
