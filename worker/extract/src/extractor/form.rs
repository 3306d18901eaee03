//! The form of an extractor, read strictly: what it does not know it refuses, with the place.

use scraper::Selector;
use serde_json::{Map, Value};

use super::steps::{self, literal};
use super::{Leaf, Node, Take};

/// Largest form, bytes of JSON, most nodes, and how deep they are nested.
const MAX_BYTES: usize = 50_000;
const MAX_NODES: usize = 300;
const MAX_DEPTH: usize = 8;
/// Longest selector, bytes, and most of them in one list.
const MAX_SELECTOR: usize = 300;
const MAX_ALTERNATIVES: usize = 8;
/// Farthest element that can be named by its number.
const MAX_AT: i64 = 200;
/// Longest name of a field or an attribute, bytes.
const MAX_NAME: usize = 200;

/// Reads a form.
pub(super) fn read(form: &Value) -> Result<Node, String> {
    if form.to_string().len() > MAX_BYTES {
        return Err(format!("The extractor is longer than {MAX_BYTES} bytes."));
    }
    let mut nodes = 0;
    node(form, "", 0, &mut nodes)
}

fn node(form: &Value, place: &str, depth: usize, nodes: &mut usize) -> Result<Node, String> {
    *nodes += 1;
    if depth > MAX_DEPTH || *nodes > MAX_NODES {
        return Err(format!("{}: at most {MAX_NODES} parts, nested at most {MAX_DEPTH} deep.", shown(place)));
    }
    let map = form.as_object().ok_or_else(|| format!("{}: an object is expected.", shown(place)))?;
    let wrong = |allowed: &str| format!("{}: the keys are {allowed}.", shown(place));
    let only = |keys: &[&str]| map.keys().all(|key| keys.contains(&key.as_str()));
    if let Some(fields) = map.get("fields") {
        if !only(&["fields", "within"]) {
            return Err(wrong("fields and within"));
        }
        let within = selector(map, "within", place)?;
        let fields = fields.as_object().ok_or_else(|| format!("{place}/fields: an object is expected."))?;
        let mut read = Vec::with_capacity(fields.len().min(MAX_NODES));
        for (name, field) in fields {
            if name.len() > MAX_NAME {
                return Err(format!("{place}/fields: a name is longer than {MAX_NAME} bytes."));
            }
            read.push((name.clone(), node(field, &format!("{place}/fields/{name}"), depth + 1, nodes)?));
        }
        return Ok(Node::Object { within, fields: read });
    }
    if map.contains_key("each") {
        if !only(&["each", "item"]) {
            return Err(wrong("each and item"));
        }
        let each = selector(map, "each", place)?.ok_or_else(|| wrong("each and item"))?;
        let item = match map.get("item") {
            Some(item) => node(item, &format!("{place}/item"), depth + 1, nodes)?,
            None => Node::Leaf(Leaf::default()),
        };
        return Ok(Node::List { each, item: Box::new(item) });
    }
    if !only(&["select", "at", "take", "steps", "default"]) {
        return Err(wrong("fields; or each and item; or select, at, take, steps and default"));
    }
    leaf(map, place).map(Node::Leaf)
}

impl Default for Leaf {
    fn default() -> Self {
        Self { select: None, at: 0, take: Take::Text, steps: Vec::new(), default: Value::Null }
    }
}

fn leaf(map: &Map<String, Value>, place: &str) -> Result<Leaf, String> {
    let at = match map.get("at") {
        None | Some(Value::Null) => 0,
        Some(at) => {
            let at = at.as_i64().filter(|at| (-MAX_AT..=MAX_AT).contains(at));
            at.ok_or_else(|| format!("{place}/at: a whole number from -{MAX_AT} to {MAX_AT}."))?
        }
    };
    let default = map.get("default").unwrap_or(&Value::Null);
    literal(default).map_err(|why| format!("{place}/default: {why}"))?;
    let steps = match map.get("steps") {
        None | Some(Value::Null) => Vec::new(),
        Some(list) => steps::read(list, &format!("{place}/steps"))?,
    };
    Ok(Leaf {
        select: selector(map, "select", place)?,
        at,
        take: take(map.get("take"), place)?,
        steps,
        default: default.clone(),
    })
}

fn take(value: Option<&Value>, place: &str) -> Result<Take, String> {
    let wrong = || format!("{place}/take: text, own, html, markdown, exists or {{\"attribute\": \"name\"}}.");
    Ok(match value {
        None | Some(Value::Null) => Take::Text,
        Some(Value::String(word)) => match word.as_str() {
            "text" => Take::Text,
            "own" => Take::Own,
            "html" => Take::Html,
            "markdown" => Take::Markdown,
            "exists" => Take::Exists,
            _ => return Err(wrong()),
        },
        Some(Value::Object(map)) if map.len() == 1 => {
            let name = map.get("attribute").and_then(Value::as_str).filter(|name| name.len() <= MAX_NAME);
            Take::Attribute(name.ok_or_else(wrong)?.to_ascii_lowercase())
        }
        Some(_) => return Err(wrong()),
    })
}

/// A selector. Those that look below each element for something else are refused, as they cost the square of a page.
fn selector(map: &Map<String, Value>, key: &str, place: &str) -> Result<Option<Selector>, String> {
    let text = match map.get(key) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text,
        Some(_) => return Err(format!("{place}/{key}: a CSS selector is expected.")),
    };
    if text.len() > MAX_SELECTOR || text.matches(',').count() >= MAX_ALTERNATIVES {
        return Err(format!("{place}/{key}: at most {MAX_SELECTOR} bytes and {MAX_ALTERNATIVES} alternatives."));
    }
    if text.to_ascii_lowercase().contains(":has") || text.contains('\\') {
        return Err(format!("{place}/{key}: :has and escapes are not supported."));
    }
    let parsed = Selector::parse(text);
    parsed.map(Some).map_err(|_| format!("{place}/{key}: this is no CSS selector that is supported: {text}"))
}

fn shown(place: &str) -> &str {
    if place.is_empty() { "/" } else { place }
}
