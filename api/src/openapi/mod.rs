//! The API's description of itself (OpenAPI 3.1), made from what it is about: the routes that it is given, the
//! readers that parse their bodies (`describe` in `shared`), the types that write their answers, and the table of codes.
//! By hand are only words and examples; tests hold those to the rest.

mod operation;
mod words;

use std::collections::HashMap;

pub use operation::{Body, Group, MakeSchema, Operation};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;
use weir_shared::blocking;
use weir_shared::error_code::ErrorCode;
pub use words::WITHOUT_EFFECT;

use crate::error;

const INTRODUCTION: &str = "Compatible with the v2 API of the official Firecrawl SDKs, and with v1: change their base URL \
    and nothing else. Every call under /v2 and /v1 needs a key: `Authorization: Bearer <key>`. Errors have one shape, `Error`.";

/// A method and path with what the document says of it.
pub type Described = (&'static str, String, Operation);

/// The document of the process's routes as text, made once. That takes a second, for which no call stands behind it.
pub async fn text(routes: fn() -> Vec<Described>) -> &'static str {
    static TEXT: OnceCell<String> = OnceCell::const_new();
    let make = move || document(routes()).to_string();
    TEXT.get_or_init(|| async { blocking::run(make).await.unwrap_or_else(|_| make()) }).await
}

/// The document of these routes, in their order.
pub fn document(routes: Vec<Described>) -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        })
        .for_serialize()
        .into_generator();
    let error = generator.subschema_for::<error::Shape>().to_value();
    let mut bodies = Schemas::default();
    let mut paths: Map<String, Value> = Map::new();
    let mut uses: HashMap<&'static str, usize> = HashMap::new();
    for (method, path, operation) in routes {
        let uses = uses.entry(operation.id).or_default();
        *uses += 1;
        let written = write(&operation, &path, *uses, &error, &mut bodies, &mut generator);
        let of_path = paths.entry(path).or_insert_with(|| json!({}));
        of_path[method.to_ascii_lowercase()] = written;
    }
    let mut schemas = bodies.named;
    schemas.extend(generator.take_definitions(true));
    let groups = Group::ALL.iter().map(|group| group.words());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Weir",
            "version": env!("CARGO_PKG_VERSION"),
            "description": INTRODUCTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "tags": groups.map(|(name, text)| json!({"name": name, "description": text})).collect::<Vec<_>>(),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "A key of the team."},
                "console": {"type": "apiKey", "in": "cookie", "name": "weir_console",
                    "description": "The console's session."},
            },
        },
    })
}

fn write(
    operation: &Operation,
    path: &str,
    uses: usize,
    error: &Value,
    bodies: &mut Schemas,
    generator: &mut SchemaGenerator,
) -> Value {
    let mut answers = Map::new();
    for answer in &operation.answers {
        let mut written = json!({"description": answer.text});
        if let Some((kind, schema)) = answer.content {
            let mut schema = schema(generator).to_value();
            // The description of the whole body stands in the answer's own words.
            schema.as_object_mut().and_then(|schema| schema.remove("description"));
            written["content"][kind]["schema"] = schema;
            if let Some(example) = &answer.example {
                written["content"][kind]["example"] = example.clone();
            }
        }
        answers.insert(answer.status.to_string(), written);
    }
    for status in &operation.errors {
        // The general text only where the operation itself does not describe the status.
        answers.entry(status.to_string()).or_insert_with(|| error_answer(*status, error));
    }
    // The same under another path, as some clients have it.
    let (id, summary) = match uses {
        1 => (operation.id.to_owned(), operation.summary.to_owned()),
        _ => (format!("{}{uses}", operation.id), format!("{} (also here)", operation.summary)),
    };
    let mut written = json!({
        "operationId": id,
        "tags": [operation.group.words().0],
        "summary": summary,
        "description": operation.text,
        "responses": answers,
    });
    let mut parameters = path_parameters(path, operation.any_id);
    parameters.extend(operation.parameters.iter().cloned());
    if !parameters.is_empty() {
        written["parameters"] = Value::Array(parameters);
    }
    if operation.public {
        written["security"] = json!([]);
    } else if operation.group == Group::Console {
        written["security"] = json!([{"console": []}]);
    }
    let mut content = Map::new();
    for body in operation.bodies() {
        let reference = bodies.body(body.name, || described(body));
        let examples: Map<String, Value> =
            body.examples.iter().map(|(name, value)| ((*name).to_owned(), json!({"value": value}))).collect();
        let (kind, one) = match body.is_in_form {
            false => ("application/json", json!({"schema": reference, "examples": examples})),
            true => ("multipart/form-data", form(&reference)),
        };
        content.insert(kind.to_owned(), one);
    }
    if let Some(typed) = &operation.typed {
        let reference = bodies.body(typed.name, || (typed.schema)().to_value());
        content.insert("application/json".to_owned(), json!({"schema": reference, "example": typed.example}));
    }
    if operation.is_bytes {
        let file = json!({"schema": {"type": "string", "format": "binary"}});
        content.insert("application/octet-stream".to_owned(), file);
    }
    if !content.is_empty() {
        let required = !operation.body.as_ref().is_some_and(|body| body.optional);
        written["requestBody"] = json!({"required": required, "content": content});
    }
    written
}

/// A form with a file, and options as a JSON text.
fn form(options: &Value) -> Value {
    json!({
        "schema": {
            "type": "object",
            "required": ["file"],
            "properties": {
                "file": {"type": "string", "format": "binary", "description": "The file, with its name."},
                "options": options,
            },
            "additionalProperties": false,
        },
        "encoding": {"options": {"contentType": "application/json"}},
    })
}

/// An error's answer, with the codes that come with its status.
fn error_answer(status: u16, schema: &Value) -> Value {
    let codes: Vec<&str> =
        ErrorCode::ALL.iter().filter(|code| code.status() == status).filter_map(|code| code.code()).collect();
    let mut text = words::status(status).to_owned();
    if !codes.is_empty() {
        text += &format!(" `code`: {}.", codes.join(", "));
    }
    let mut answer = json!({"description": text, "content": {"application/json": {"schema": schema}}});
    if matches!(status, 429 | 503) {
        let seconds = json!({"type": "integer", "minimum": 0});
        answer["headers"]["Retry-After"] =
            json!({"description": "Seconds until another try is worth it.", "schema": seconds});
    }
    answer
}

fn path_parameters(path: &str, any_id: bool) -> Vec<Value> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names
        .map(|name| {
            let schema = match name {
                "id" if any_id => json!({"type": "string", "minLength": 1}),
                "id" | "page" => json!({"type": "string", "format": "uuid"}),
                _ => json!({"type": "string", "minLength": 1, "maxLength": 128}),
            };
            json!({"name": name, "in": "path", "required": true, "description": words::path_parameter(name), "schema": schema})
        })
        .collect()
}

/// The schemas of bodies, and the parts of them that have a name of their own.
#[derive(Default)]
struct Schemas {
    named: Map<String, Value>,
}

impl Schemas {
    /// The reference to a body's schema, which is learned when it is asked for first.
    fn body(&mut self, name: &'static str, schema: impl FnOnce() -> Value) -> Value {
        if !self.named.contains_key(name) {
            let mut schema = schema();
            self.name_parts(&mut schema, "");
            self.named.insert(name.to_owned(), schema);
        }
        reference(name)
    }

    /// Gives parts that several bodies have a name, if they are the same in each. `field` is the one that they are in.
    fn name_parts(&mut self, schema: &mut Value, field: &str) {
        for key in ["items", "additionalProperties"] {
            if let Some(part) = schema.get_mut(key) {
                self.name_parts(part, field);
            }
        }
        for key in ["anyOf", "oneOf"] {
            for part in schema.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
                self.name_parts(part, if key == "anyOf" { field } else { "" });
            }
        }
        for (name, part) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
            self.name_parts(part, name);
        }
        let Some(name) = words::part(field) else { return };
        let has_fields = schema.get("properties").is_some() || schema.get("oneOf").is_some();
        if !has_fields {
            return;
        }
        let known = self.named.entry(name).or_insert_with(|| schema.clone());
        if known == schema {
            *schema = reference(name);
        }
    }
}

/// A body's schema with its words, whole in itself.
pub fn described(body: &Body) -> Value {
    let mut schema = body.schema();
    words::describe(&mut schema, body.name);
    schema
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Schema of either of two answers, as with a scrape that failed with status 200.
pub fn either<A: JsonSchema, B: JsonSchema>(generator: &mut SchemaGenerator) -> schemars::Schema {
    let schemas = [A::json_schema(generator), generator.subschema_for::<B>()];
    schemars::json_schema!({"anyOf": schemas})
}

#[cfg(test)]
mod tests;
