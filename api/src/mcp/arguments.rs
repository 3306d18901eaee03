//! What a model gives a tool, as the route wants it. What is wrong with it the route says; only without an id there is none to
//! ask.

use reqwest::Method;
use serde_json::{Map, Value, json};

use super::tools::{MONITOR_CHECK, MONITOR_CREATE, MONITOR_UPDATE, Tool};
use super::weir::Query;

/// What a request is made of.
#[derive(Debug, Default, PartialEq)]
pub struct Parts {
    /// For the parameters of the path, in their order.
    pub ids: Vec<String>,
    pub query: Query,
    pub body: Option<Value>,
}

/// Formats and parsers whose options the official server's callers write beside them.
const BESIDE: [(&str, &str, &str); 4] = [
    ("formats", "json", "jsonOptions"),
    ("formats", "query", "queryOptions"),
    ("formats", "screenshot", "screenshotOptions"),
    ("parsers", "pdf", "pdfOptions"),
];

/// Takes arguments apart for a tool's route.
///
/// # Errors
/// For the caller, where an id is missing that the route's path is made of.
pub fn parts(tool: &Tool, mut given: Map<String, Value>) -> Result<Parts, String> {
    given.retain(|_, value| !is_empty(value));
    let mut ids = Vec::new();
    let further = (tool.name == MONITOR_CHECK).then_some("checkId");
    for name in tool.id.into_iter().chain(further) {
        let id = given.shift_remove(name).ok_or_else(|| format!("{name} is required."))?;
        ids.push(text(&id));
    }
    match tool.name {
        MONITOR_CHECK => {
            let status = given.shift_remove("pageStatus");
            given.extend(status.map(|status| ("status".to_owned(), status)));
        }
        MONITOR_CREATE => monitor_as_the_api_has_it(&mut given),
        MONITOR_UPDATE => unwrap_body(&mut given),
        _ => {}
    }
    if ![Method::POST, Method::PATCH].contains(&tool.method) {
        let query = given.iter().map(|(name, value)| (name.clone(), text(value))).collect();
        return Ok(Parts { ids, query, body: None });
    }
    as_the_api_has_it(&mut given);
    if let Some(Value::Object(options)) = given.get_mut("scrapeOptions") {
        as_the_api_has_it(options);
    }
    given.entry("origin").or_insert_with(|| json!("mcp"));
    Ok(Parts { ids, query: Vec::new(), body: Some(Value::Object(given)) })
}

/// Models fill in every field that they are shown; as with the official server, an empty one is as good as none.
pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A value in a path or a query.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Puts what the official server's tools have in fields of their own where the API has it. What belongs to nothing stays,
/// for the route to refuse.
fn as_the_api_has_it(options: &mut Map<String, Value>) {
    for (list, kind, beside) in BESIDE {
        let listed = options.get(list).and_then(Value::as_array);
        let Some(place) = listed.and_then(|entries| entries.iter().position(|entry| entry == kind)) else { continue };
        let Some(Value::Object(details)) = options.get(beside).filter(|details| details.is_object()).cloned() else {
            continue;
        };
        options.shift_remove(beside);
        let mut entry = json!({ "type": kind });
        if let Value::Object(entry) = &mut entry {
            entry.extend(details);
        }
        options[list][place] = entry;
    }
    // Earlier releases had the options of a batch in an object of their own.
    if options.contains_key("urls")
        && let Some(Value::Object(nested)) = options.shift_remove("options")
    {
        options.extend(nested);
    }
    if options.get("webhook").is_some_and(Value::is_string)
        && let Some(headers) = options.shift_remove("webhookHeaders")
    {
        options["webhook"] = json!({ "url": options["webhook"], "headers": headers });
    }
}

/// The official server's tools for monitors have the request in a field of its own.
fn unwrap_body(given: &mut Map<String, Value>) {
    if let Some(Value::Object(body)) = given.shift_remove("body") {
        given.extend(body);
    }
}

/// A new monitor as the official server's callers say it: whole, or in short by pages or queries.
fn monitor_as_the_api_has_it(given: &mut Map<String, Value>) {
    unwrap_body(given);
    if given.contains_key("targets") {
        return;
    }
    let queries = given.shift_remove("queries");
    let page = given.shift_remove("page").filter(Value::is_string);
    let pages = match given.shift_remove("pages") {
        Some(Value::Array(pages)) => pages,
        _ => Vec::new(),
    };
    let urls: Vec<Value> = page.into_iter().chain(pages).collect();
    let target = match queries {
        Some(queries) => {
            let mut target = json!({ "type": "search", "queries": queries });
            for name in ["searchWindow", "maxResults", "includeDomains", "excludeDomains"] {
                if let Some(value) = given.shift_remove(name) {
                    target[name] = value;
                }
            }
            target
        }
        None if !urls.is_empty() => json!({ "type": "scrape", "urls": urls }),
        None => return,
    };
    let first = target["queries"][0].as_str().or_else(|| target["urls"][0].as_str()).unwrap_or_default();
    let name = json!(format!("Monitor {first}").chars().take(256).collect::<String>());
    given.entry("name").or_insert(name);
    given.insert("targets".to_owned(), json!([target]));
    let words = given.shift_remove("scheduleText").unwrap_or_else(|| json!("every 30 minutes"));
    let timezone = given.shift_remove("timezone").unwrap_or_else(|| json!("UTC"));
    given.entry("schedule").or_insert_with(|| json!({ "text": words, "timezone": timezone }));
    if let Some(url) = given.shift_remove("webhookUrl") {
        given.entry("webhook").or_insert_with(|| json!({ "url": url }));
    }
    if let Some(address) = given.shift_remove("email") {
        let diffs = given.shift_remove("includeDiffs").unwrap_or(json!(false));
        let mail = json!({ "email": { "enabled": true, "recipients": [address], "includeDiffs": diffs } });
        given.entry("notification").or_insert(mail);
    }
}
