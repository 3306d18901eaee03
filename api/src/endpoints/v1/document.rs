//! Documents as version 1 has them: what was read out of a page as data stands in `extract`, too, its older name.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use weir_shared::domain::document::Document;

use crate::openapi::MakeSchema;

/// The document as it was stored, with `extract` where it has `json`.
pub fn shaped(document: &RawValue) -> Cow<'_, RawValue> {
    #[derive(Deserialize)]
    struct Read<'a> {
        #[serde(borrow)]
        json: Option<&'a RawValue>,
    }
    let text = document.get();
    // Most documents have none, and are not parsed for it.
    if !text.contains("\"json\":") {
        return Cow::Borrowed(document);
    }
    let Ok(Read { json: Some(data) }) = serde_json::from_str(text) else { return Cow::Borrowed(document) };
    let Some(open) = text.trim_end().strip_suffix('}') else { return Cow::Borrowed(document) };
    RawValue::from_string(format!("{open},\"extract\":{data}}}")).map_or(Cow::Borrowed(document), Cow::Owned)
}

/// The same for the fields of a document.
pub fn shape(fields: &mut Map<String, Value>) {
    if let Some(data) = fields.get("json").cloned() {
        fields.insert("extract".to_owned(), data);
    }
}

/// A schema with documents of version 1 in the place of those of version 2.
pub fn in_answer(generator: &mut SchemaGenerator, make: MakeSchema) -> Schema {
    let mut schema = make(generator).to_value();
    let (of_v2, of_v1) = (reference::<Document>(generator), reference::<DocumentV1>(generator));
    exchange(&mut schema, &of_v2, &of_v1);
    Schema::try_from(schema).unwrap_or_default()
}

fn reference<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

fn exchange(schema: &mut Value, old: &Value, new: &Value) {
    if schema == old {
        schema.clone_from(new);
        return;
    }
    match schema {
        Value::Object(map) => map.values_mut().for_each(|value| exchange(value, old, new)),
        Value::Array(list) => list.iter_mut().for_each(|value| exchange(value, old, new)),
        _ => {}
    }
}

/// What [`shaped`] makes, for the API's document.
struct DocumentV1;

impl JsonSchema for DocumentV1 {
    fn schema_name() -> Cow<'static, str> {
        "DocumentV1".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Document::json_schema(generator);
        if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            fields.insert("extract".to_owned(), json!({"description": "The same as `json`, under its older name."}));
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn data_has_both_names_and_nothing_else_changes() {
        let shaped = |text: &str| {
            let raw = RawValue::from_string(text.to_owned()).unwrap();
            super::shaped(&raw).get().to_owned()
        };
        assert_eq!(
            shaped(r#"{"json":{"a":[1]},"metadata":{}}"#),
            r#"{"json":{"a":[1]},"metadata":{},"extract":{"a":[1]}}"#
        );
        for same in [
            r#"{"markdown":"\"json\":1","metadata":{}}"#,
            r#"{"changeTracking":{"json":{"a":1}},"metadata":{"json":"x"}}"#,
            r#"{"json":null,"metadata":{}}"#,
        ] {
            assert_eq!(shaped(same), same);
        }
        let mut fields = Map::from_iter([("json".to_owned(), json!({"a": 1}))]);
        shape(&mut fields);
        assert_eq!(fields["extract"], json!({"a": 1}));
    }
}
