//! What tools take, out of the API's document: the fields of a route's body, its path and its query.

use rmcp::model::{JsonObject, Tool as Listed, ToolAnnotations};
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;
use weir_shared::blocking;
use weir_shared::domain::scrape_request::NOT_FOR_FILES;

use super::tools::{CREDITS, Effect, INTERACT, MONITOR_CHECK, PARSE, TOOLS, Tool};
use crate::openapi::{self, Described, Operation};

/// The tools as they are listed, made once: the readers of bodies are asked for what they take. That takes a second, for
/// which no call stands behind it.
pub async fn listed(routes: fn() -> Vec<Described>) -> &'static [Listed] {
    static LISTED: OnceCell<Vec<Listed>> = OnceCell::const_new();
    let make = move || {
        let routes = routes();
        TOOLS.iter().map(|tool| list(&routes, tool)).collect()
    };
    LISTED.get_or_init(|| async { blocking::run(make).await.unwrap_or_else(|_| make()) }).await
}

/// What the API's document says of a route.
pub fn operation<'a>(routes: &'a [Described], method: &str, path: &str) -> Option<&'a Operation> {
    let found = routes.iter().find(|(own, at, _)| *own == method && at == path);
    found.map(|(_, _, operation)| operation)
}

fn list(routes: &[Described], tool: &Tool) -> Listed {
    let annotations = ToolAnnotations::with_title(tool.title)
        .read_only(tool.effect == Effect::Reads)
        .destructive(tool.effect == Effect::Ends)
        .open_world(tool.method == reqwest::Method::POST);
    Listed::new(tool.name, tool.text, input(routes, tool)).with_title(tool.title).with_annotations(annotations)
}

/// The schema of a tool's arguments.
pub fn input(routes: &[Described], tool: &Tool) -> JsonObject {
    let operation = operation(routes, tool.method.as_str(), tool.path);
    let body = operation.and_then(|operation| operation.body.as_ref()).map(openapi::described);
    let mut schema = body.unwrap_or_else(|| json!({"type": "object", "properties": {}}));
    for parameter in operation.iter().flat_map(|operation| &operation.parameters) {
        if parameter["in"] == "query" {
            let mut field = parameter["schema"].clone();
            field["description"] = parameter["description"].clone();
            put(&mut schema, parameter["name"].as_str().unwrap_or_default(), field);
        }
    }
    if let Some(id) = tool.id {
        put(&mut schema, id, json!({"type": "string", "description": "The id that was answered at the start."}));
        // Only interact does without: it opens a page by its address.
        if tool.name != INTERACT {
            require(&mut schema, id);
        }
    }
    if tool.name == MONITOR_CHECK {
        put(&mut schema, "checkId", json!({"type": "string", "description": "The check's id."}));
        require(&mut schema, "checkId");
    }
    if tool.name == INTERACT {
        let mut page = self::operation(routes, "POST", "/v2/scrape")
            .and_then(|operation| operation.body.as_ref().map(openapi::described))
            .unwrap_or_else(|| json!({}));
        if let Some(url) = page["properties"].as_object_mut().and_then(|fields| fields.shift_remove("url")) {
            put(&mut schema, "url", url);
        }
        page.as_object_mut().and_then(|page| page.shift_remove("required"));
        page["description"] = json!("How the page at url is opened.");
        put(&mut schema, "scrapeOptions", page);
    }
    if tool.name == PARSE {
        if let Some(fields) = schema["properties"].as_object_mut() {
            fields.retain(|name, _| !NOT_FOR_FILES.contains(&name.as_str()));
        }
        for (name, kind, text) in [
            ("filePath", "string", "Path of the file, on the user's machine; this or uploadRef."),
            ("uploadRef", "string", "What an earlier call with filePath answered, once the file is uploaded."),
            ("contentType", "string", "With filePath: the file's media type, where its name does not say it."),
            ("declaredSizeBytes", "integer", "With filePath: the file's size, if it is known."),
        ] {
            put(&mut schema, name, json!({"type": kind, "description": text}));
        }
    }
    if tool.name == CREDITS {
        let view = json!({"type": "string", "enum": ["current", "historical"], "default": "current"});
        put(&mut schema, "view", view);
        let split = json!({"type": "boolean", "description": "Split what was used by month by key."});
        put(&mut schema, "byApiKey", split);
    }
    leave_out_what_no_model_needs(&mut schema);
    without_null(&mut schema);
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

fn put(schema: &mut Value, name: &str, field: Value) {
    schema["properties"][name] = field;
}

fn require(schema: &mut Value, name: &str) {
    match schema.get_mut("required").and_then(Value::as_array_mut) {
        Some(required) => required.push(json!(name)),
        None => schema["required"] = json!([name]),
    }
}

/// A list of tools stands in every conversation, so it leaves out fields that have no effect, or are for statistics. A
/// call may have them all the same.
fn leave_out_what_no_model_needs(schema: &mut Value) {
    let is_idle = |name: &str, field: &Value| {
        ["origin", "integration"].contains(&name) || field["description"] == openapi::WITHOUT_EFFECT
    };
    if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        fields.retain(|name, field| !is_idle(name, field));
        if let Some(options) = fields.get_mut("scrapeOptions") {
            leave_out_what_no_model_needs(options);
        }
    }
}

/// Fields that may be null may as well be left out, and not every client knows types by the list.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Array(kinds)) = map.get("type")
                && let [kind, null] = kinds.as_slice()
                && null == "null"
            {
                let kind = kind.clone();
                map.insert("type".to_owned(), kind);
            }
            if let Some(Value::Array(kinds)) = map.get_mut("anyOf") {
                kinds.retain(|kind| kind["type"] != "null");
            }
            map.values_mut().for_each(without_null);
        }
        Value::Array(list) => list.iter_mut().for_each(without_null),
        _ => {}
    }
}
