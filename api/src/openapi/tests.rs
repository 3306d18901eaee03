#![allow(clippy::unwrap_used, reason = "tests")]
use std::collections::HashSet;

use super::*;
use crate::routes;

/// Every object of the document.
fn visit(value: &Value, each: &mut impl FnMut(&Map<String, Value>)) {
    match value {
        Value::Object(map) => {
            each(map);
            map.values().for_each(|value| visit(value, each));
        }
        Value::Array(list) => list.iter().for_each(|value| visit(value, each)),
        _ => {}
    }
}

#[test]
fn every_route_is_in_the_document_with_answers_and_a_name_of_its_own() {
    let document = document(routes::operations());
    let mut ids = HashSet::new();
    for (method, path) in routes::list() {
        let operation = &document["paths"][&path][method.to_ascii_lowercase()];
        let said = format!("{method} {path}: {operation}");
        assert!(ids.insert(operation["operationId"].as_str().unwrap().to_owned()), "{said}");
        assert!(!operation["responses"].as_object().unwrap().is_empty(), "{said}");
        // A file is sent by the right that its address is.
        let is_keyed = path != routes::UPLOAD && ["/v2/", "/v1/", "/mcp"].iter().any(|start| path.starts_with(start));
        let is_console = path.starts_with("/console/");
        let is_socket = ["/cdp/{id}", "/cdp/{id}/"].contains(&path.as_str());
        if !is_console {
            let may_be_many = is_keyed || is_socket || path == routes::UPLOAD;
            assert_eq!(operation["responses"].get("429").is_some(), may_be_many, "{said}");
        }
        assert_eq!(operation.get("security").is_none(), is_keyed, "{said}");
    }
    let written = document["paths"].as_object().unwrap().values().map(|verbs| verbs.as_object().unwrap().len());
    assert_eq!(written.sum::<usize>(), routes::list().len());
}

#[test]
fn every_reference_leads_somewhere() {
    let document = document(routes::operations());
    let mut references = HashSet::new();
    visit(&document, &mut |map| {
        if let Some(to) = map.get("$ref") {
            references.insert(to.as_str().unwrap().to_owned());
        }
    });
    assert!(references.len() > 10, "{references:?}");
    for to in &references {
        assert!(document.pointer(to.strip_prefix('#').unwrap()).is_some(), "{to}");
    }
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        assert!(references.contains(&format!("#/components/schemas/{name}")), "{name} is used by nobody");
    }
}

#[test]
fn every_example_is_read_without_a_word() {
    let mut tried = 0;
    for (method, path, operation) in routes::operations() {
        for body in operation.bodies() {
            assert!(!body.examples.is_empty(), "{method} {path} has no example");
            for (name, example) in &body.examples {
                let read = (body.read)(example);
                assert!(read.is_ok(), "{method} {path}, {name}: {read:?}");
                tried += 1;
            }
        }
    }
    assert!(tried >= 15, "{tried}");
}

#[test]
fn what_bodies_share_has_one_schema() {
    let document = document(routes::operations());
    let schemas = &document["components"]["schemas"];
    for name in ["FormatObject", "Action", "Location", "Webhook", "Profile", "Document", "Error"] {
        assert!(schemas[name].is_object(), "{name}");
    }
    let scrape = &schemas["ScrapeRequest"]["properties"];
    let batch = &schemas["BatchRequest"]["properties"];
    assert_eq!(scrape["formats"], batch["formats"]);
    assert_eq!(scrape["timeout"]["default"], 60_000);
    assert_eq!(batch["timeout"]["default"], 60_000);
    assert!(scrape["timeout"]["description"].is_string());
}
