//! What a model gives a tool, as the route wants it. Nothing is judged here: what is wrong with it the route says.

use reqwest::Method;
use serde_json::{Map, Value, json};

use super::tools::Tool;
use super::weir::Query;

/// What a request is made of.
#[derive(Debug, Default, PartialEq)]
pub struct Parts {
    pub id: Option<String>,
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
pub fn parts(tool: &Tool, mut given: Map<String, Value>) -> Parts {
    given.retain(|_, value| !is_empty(value));
    let id = tool.id.and_then(|name| given.shift_remove(name)).map(|id| text(&id));
    if tool.method != Method::POST {
        return Parts {
            id,
            query: given.iter().map(|(name, value)| (name.clone(), text(value))).collect(),
            body: None,
        };
    }
    as_the_api_has_it(&mut given);
    if let Some(Value::Object(options)) = given.get_mut("scrapeOptions") {
        as_the_api_has_it(options);
    }
    given.entry("origin").or_insert_with(|| json!("mcp"));
    Parts { id, query: Vec::new(), body: Some(Value::Object(given)) }
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
