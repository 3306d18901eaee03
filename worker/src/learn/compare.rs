//! Whether two readings of a page say the same, and whether an extractor makes what a schema wants.

use serde_json::{Map, Value};

use crate::extract::extractor::Shape;

/// Longest way through references of a schema.
const MAX_WAY: usize = 20;
/// Longest value that is shown where readings differ, characters.
const SHOWN: usize = 200;

/// Whether there is nothing in a value.
pub fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(list) => list.iter().all(is_nothing),
        Value::Object(map) => map.values().all(is_nothing),
        _ => false,
    }
}

/// Where and how two readings differ. Nothing, null and what is left out are the same; so are texts but for markup and
/// spaces.
pub fn difference(extracted: &Value, read: &Value) -> Option<String> {
    differ(extracted, read, "")
}

fn differ(one: &Value, other: &Value, place: &str) -> Option<String> {
    let told = || {
        let place = if place.is_empty() { "/" } else { place };
        Some(format!("{place} is {} and should be {}", shown(one), shown(other)))
    };
    match (one, other) {
        (Value::Object(a), Value::Object(b)) => {
            let names: Vec<&String> = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name))).collect();
            let of = |map: &Map<String, Value>, name: &str| map.get(name).cloned().unwrap_or_default();
            names.into_iter().find_map(|name| differ(&of(a, name), &of(b, name), &format!("{place}/{name}")))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().find_map(|(n, (a, b))| differ(a, b, &format!("{place}/{n}")))
        }
        (Value::String(a), Value::String(b)) if plain(a) == plain(b) => None,
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap_or(f64::NAN), b.as_f64().unwrap_or(f64::NAN));
            if (a - b).abs() <= 1e-9 * a.abs().max(1.0) { None } else { told() }
        }
        (a, b) if a == b || is_nothing(a) && is_nothing(b) => None,
        _ => told(),
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= SHOWN { text } else { text.chars().take(SHOWN).chain(['…']).collect() }
}

/// A text without markup and with single spaces; quotation marks and dashes of one kind.
fn plain(text: &str) -> String {
    let same = |c: char| match c {
        '‘' | '’' | '‚' => '\'',
        '“' | '”' | '„' => '"',
        '–' | '—' | '−' => '-',
        other => other,
    };
    let bare: String =
        text.chars().filter(|c| !matches!(c, '*' | '_' | '`' | '\\' | '#' | '>' | '|')).map(same).collect();
    bare.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A part of a schema without the references that lead to it.
fn resolved<'a>(part: &'a Value, root: &'a Value) -> &'a Value {
    let mut part = part;
    for _ in 0..MAX_WAY {
        let target = part.get("$ref").and_then(Value::as_str).and_then(|text| root.pointer(text.strip_prefix('#')?));
        match target {
            Some(target) => part = target,
            None => break,
        }
    }
    part
}

/// The names of the types that a part of a schema allows; `None`: it does not say so plainly.
fn types<'a>(part: &'a Value, root: &'a Value) -> Option<Vec<&'a str>> {
    if let Some(several) = part.get("anyOf").or(part.get("oneOf")).and_then(Value::as_array) {
        let each: Option<Vec<_>> = several
            .iter()
            .map(|part| resolved(part, root))
            .map(
                |part| {
                    if part.get("anyOf").is_some() || part.get("oneOf").is_some() { None } else { types(part, root) }
                },
            )
            .collect();
        return Some(each?.concat());
    }
    match part.get("type")? {
        Value::String(name) => Some(vec![name]),
        Value::Array(names) => names.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

/// Where the part of a schema that is no null stands, if it is one of several.
fn main_part<'a>(part: &'a Value, root: &'a Value) -> &'a Value {
    let part = resolved(part, root);
    let several = part.get("anyOf").or(part.get("oneOf")).and_then(Value::as_array);
    let is_null = |part: &&Value| resolved(part, root)["type"] == "null";
    match several.map(|parts| parts.iter().filter(|part| !is_null(part)).collect::<Vec<_>>()).as_deref() {
        Some([only]) => resolved(only, root),
        _ => part,
    }
}

/// A value without the nulls of fields that may not be null: what a page does not say is left out there.
pub fn tidied(value: Value, schema: &Value) -> Value {
    tidy(value, schema, schema)
}

fn tidy(value: Value, part: &Value, root: &Value) -> Value {
    let part = main_part(part, root);
    match value {
        Value::Object(map) => {
            let field = |(name, value): (String, Value)| {
                let known = part.get("properties").and_then(|fields| fields.get(&name));
                if value.is_null() {
                    let may_be_null = known.and_then(|known| types(resolved(known, root), root));
                    return may_be_null.is_some_and(|types| types.contains(&"null")).then_some((name, Value::Null));
                }
                Some((name, tidy(value, known.unwrap_or(&Value::Null), root)))
            };
            Value::Object(map.into_iter().filter_map(field).collect())
        }
        Value::Array(list) => {
            let items = part.get("items").unwrap_or(&Value::Null);
            Value::Array(list.into_iter().map(|item| tidy(item, items, root)).collect())
        }
        plain => plain,
    }
}

/// Says why an extractor cannot make what a schema wants, before it is run.
pub fn misfit(shape: &Shape, schema: &Value) -> Result<(), String> {
    mismatch(shape, schema, schema, "")
}

fn mismatch(shape: &Shape, part: &Value, root: &Value, place: &str) -> Result<(), String> {
    let part_with_null = resolved(part, root);
    let kinds = types(part_with_null, root);
    let part = main_part(part, root);
    let allows = |names: &[&str]| kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|kind| names.contains(kind)));
    let wrong =
        |what: &str| Err(format!("{}: the schema wants no {what} here.", if place.is_empty() { "/" } else { place }));
    match shape {
        Shape::Object(_) if !allows(&["object"]) => return wrong("object (`fields`)"),
        Shape::List(_) if !allows(&["array"]) => return wrong("list (`each` or a split)"),
        Shape::Text if !allows(&["string"]) => return wrong("text: use number, integer, map or exists"),
        Shape::Number if !allows(&["number", "integer"]) => return wrong("number"),
        Shape::Integer if !allows(&["integer", "number"]) => return wrong("whole number"),
        Shape::Boolean if !allows(&["boolean"]) => return wrong("truth value"),
        _ => {}
    }
    match shape {
        Shape::Object(fields) => {
            let empty = Map::new();
            let known = part.get("properties").and_then(Value::as_object).unwrap_or(&empty);
            if let Some(missing) = known.keys().find(|name| !fields.iter().any(|field| field.0 == **name)) {
                return Err(format!("{place}/{missing} is missing: every field of the schema needs its entry."));
            }
            for (name, shape) in fields {
                let place = format!("{place}/{name}");
                match known.get(name) {
                    Some(part) => mismatch(shape, part, root, &place)?,
                    None => return Err(format!("{place}: the schema has no such field.")),
                }
            }
            Ok(())
        }
        Shape::List(item) => match part.get("items") {
            Some(items) if items.is_object() => mismatch(item, items, root, &format!("{place}/*")),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn readings_are_the_same_but_for_markup_and_what_is_not_there() {
        for (one, other) in [
            (json!({"a": "x  y", "b": null}), json!({"a": "**x** y", "c": ""})),
            (json!({"n": 39}), json!({"n": 39.0})),
            (json!({"l": []}), json!({})),
            (json!({"l": ["a–b"]}), json!({"l": ["a-b"]})),
            (json!({"o": {"a": null}}), json!({"o": null})),
        ] {
            assert_eq!(difference(&one, &other), None);
            assert_eq!(difference(&other, &one), None);
        }
        for (one, other, place) in [
            (json!({"a": "x"}), json!({"a": "y"}), "/a is"),
            (json!({"n": 39}), json!({"n": 39.5}), "/n is 39 and should be 39.5"),
            (json!({"l": ["a"]}), json!({"l": ["a", "b"]}), "/l is"),
            (json!({"b": false}), json!({"b": true}), "/b"),
            (json!({"b": false}), json!({}), "/b"),
            (json!({}), json!({"o": {"a": 1}}), "/o is null"),
        ] {
            let told = difference(&one, &other);
            assert!(told.as_ref().is_some_and(|told| told.starts_with(place)), "{told:?}");
        }
    }

    #[test]
    fn a_value_has_nulls_only_where_the_schema_has_them() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "string"}, "b": {"type": ["string", "null"]}, "c": {"$ref": "#/$defs/c"},
            "d": {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"e": {"type": "number"}}}]},
            "f": {"type": "array", "items": {"$ref": "#/$defs/c"}}}, "$defs": {
            "c": {"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": ["null", "string"]}}}}});
        let value =
            json!({"a": null, "b": null, "c": {"x": null, "y": null}, "d": {"e": null}, "f": [{"x": null, "y": "1"}]});
        let expected = json!({"b": null, "c": {"y": null}, "d": {}, "f": [{"y": "1"}]});
        assert_eq!(tidied(value, &schema), expected);
        assert_eq!(tidied(json!({"d": null}), &schema), json!({"d": null}));
    }

    #[test]
    fn an_extractor_makes_what_the_schema_wants_or_is_told_why_not() {
        let schema = json!({"type": "object", "properties": {"n": {"type": ["number", "null"]},
            "l": {"type": "array", "items": {"type": "object", "properties": {"t": {"type": "string"}}}},
            "b": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}}});
        let item = |shape| Shape::List(Box::new(Shape::Object(vec![("t".to_owned(), shape)])));
        let of = |n: Shape, l: Shape, b: Shape| {
            Shape::Object(vec![("n".to_owned(), n), ("l".to_owned(), l), ("b".to_owned(), b)])
        };
        assert_eq!(misfit(&of(Shape::Number, item(Shape::Text), Shape::Boolean), &schema), Ok(()));
        for (shape, words) in [
            (of(Shape::Text, item(Shape::Text), Shape::Boolean), "/n: the schema wants no text"),
            (of(Shape::Number, Shape::Text, Shape::Boolean), "/l: the schema wants no text"),
            (of(Shape::Number, item(Shape::Number), Shape::Boolean), "/l/*/t: the schema wants no number"),
            (of(Shape::Number, item(Shape::Text), Shape::Text), "/b: the schema wants no text"),
            (Shape::Object(vec![("n".to_owned(), Shape::Number)]), "/l is missing"),
            (Shape::Text, "/: the schema wants no text"),
        ] {
            let told = misfit(&shape, &schema);
            assert!(told.as_ref().is_err_and(|told| told.starts_with(words)), "{told:?}");
        }
    }
}
