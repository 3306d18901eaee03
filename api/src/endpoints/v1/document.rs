//! Documents as version 1 has them: what was read out of a page as data stands in `extract`, too, its older name.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use weir_shared::domain::document::Document;
pub use weir_shared::domain::document_v1::shaped;

use crate::openapi::MakeSchema;

/// The same as [`shaped`] for the fields of a document.
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
    use super::*;

    #[test]
    fn data_has_both_names() {
        let mut fields = Map::from_iter([("json".to_owned(), json!({"a": 1}))]);
        shape(&mut fields);
        assert_eq!(fields["extract"], json!({"a": 1}));
    }
}
