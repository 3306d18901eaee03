//! The API's document as a judge of its answers: what any test gets from the service is held to it.
//!
//! Objects of the document may get further fields for its readers. Here they may not: what is answered and not described
//! is found.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use jsonschema::Validator;
use serde_json::{Value, json};

struct Contract {
    document: Value,
    /// By operation and status, made when they are needed first.
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

fn contract() -> &'static Contract {
    static CONTRACT: OnceLock<Contract> = OnceLock::new();
    CONTRACT.get_or_init(|| Contract { document: closed_document(), validators: Mutex::default() })
}

/// The document, closed. To make it takes a second of a processor without optimization, and every test runs in a process
/// of its own: the first one of a build writes it down for the others.
fn closed_document() -> Value {
    let program = std::env::current_exe().unwrap();
    let kept = program.with_extension("contract.json");
    let written = |path: &Path| path.metadata().and_then(|about| about.modified()).ok();
    if written(&kept) > written(&program)
        && let Some(document) = std::fs::read(&kept).ok().and_then(|text| serde_json::from_slice(&text).ok())
    {
        return document;
    }
    let mut document = weir_api::openapi::document(weir_api::routes::operations());
    close(&mut document);
    // Under its name it is whole, whoever else writes it.
    let own = kept.with_extension(std::process::id().to_string());
    let _ = std::fs::write(&own, document.to_string()).and_then(|()| std::fs::rename(&own, &kept));
    document
}

/// Lets objects have the fields that they name only.
fn close(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if map.contains_key("properties") && !map.contains_key("additionalProperties") {
                map.insert("additionalProperties".to_owned(), json!(false));
            }
            map.values_mut().for_each(close);
        }
        Value::Array(list) => list.iter_mut().for_each(close),
        _ => {}
    }
}

/// A schema of the document with those that it refers to. To look through all of them, for each kind of answer and in each
/// test, costs more than the answers.
fn with_its_references(document: &Value, schema: &Value) -> Value {
    let mut found = serde_json::Map::new();
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(map) => {
                let reference = map.get("$ref").and_then(Value::as_str);
                if let Some(name) = reference.and_then(|path| path.strip_prefix("#/components/schemas/"))
                    && !found.contains_key(name)
                {
                    let named = &document["components"]["schemas"][name];
                    found.insert(name.to_owned(), named.clone());
                    open.push(named);
                }
                open.extend(map.values());
            }
            Value::Array(list) => open.extend(list),
            _ => {}
        }
    }
    json!({"allOf": [schema], "components": {"schemas": found}})
}

/// The path of the document that stands for this one; names win over parameters.
fn pattern<'d>(document: &'d Value, path: &str) -> Option<&'d str> {
    let parts: Vec<&str> = path.split('/').collect();
    let is_parameter = |part: &str| part.starts_with('{');
    let fits = |pattern: &&String| {
        let own: Vec<&str> = pattern.split('/').collect();
        own.len() == parts.len()
            && own.iter().zip(&parts).all(|(own, part)| is_parameter(own) && !part.is_empty() || own == part)
    };
    let patterns = document["paths"].as_object()?.keys().filter(fits);
    patterns.min_by_key(|pattern| pattern.split('/').filter(|part| is_parameter(part)).count()).map(String::as_str)
}

/// What is wrong with an answer by the document; `None`: nothing, or the document does not speak of it.
pub fn fault(method: &str, path: &str, status: u16, kind: &str, text: &str) -> Option<String> {
    let contract = contract();
    let pattern = pattern(&contract.document, path)?;
    // An unknown method is answered 405 and does not stand in the document.
    let operation = contract.document["paths"][pattern].get(method.to_ascii_lowercase())?;
    let Some(answer) = operation["responses"].get(status.to_string()) else {
        return Some(format!("{method} {pattern}: the document knows no status {status}: {text:.300}"));
    };
    let content = answer.get("content")?.as_object()?;
    let base = |kind: &str| kind.split(';').next().unwrap_or_default().trim().to_owned();
    let Some((_, content)) = content.iter().find(|(own, _)| base(own) == base(kind)) else {
        return Some(format!("{method} {pattern}: the document knows no {kind} with status {status}"));
    };
    let value: Value = serde_json::from_str(text).ok()?;
    let validator = {
        let mut validators = contract.validators.lock().unwrap();
        let made = validators.entry(format!("{method} {pattern} {status}"));
        let schema = || with_its_references(&contract.document, &content["schema"]);
        let make = || jsonschema::options().should_validate_formats(true).build(&schema()).unwrap();
        made.or_insert_with(|| Arc::new(make())).clone()
    };
    let faults: Vec<String> =
        validator.iter_errors(&value).take(3).map(|error| format!("{error} at {}", error.instance_path())).collect();
    (!faults.is_empty()).then(|| format!("{method} {pattern} {status}: {} in {text:.600}", faults.join("; ")))
}
