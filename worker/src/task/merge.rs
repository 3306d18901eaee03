//! What several pages say, put together: a value that one page lacks comes of another, lists are joined, and where two pages
//! say different things the first one counts and both are named.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Conflicts that are told of.
const TOLD: usize = 10;
/// Longest value in what is told, characters.
const SHOWN: usize = 80;
/// Items of lists that are held against each other: an item that comes later is added as it is. A list of two thousand items
/// is whole.
const COMPARED: usize = 4_000_000;

/// What pages said so far.
#[derive(Debug, Default)]
pub(super) struct Merged {
    value: Value,
    /// Which pages each field of the top comes from.
    sources: BTreeMap<String, Vec<String>>,
    /// The page that a value at a place came from.
    first: BTreeMap<String, String>,
    conflicts: Vec<String>,
    /// Items that were held against each other.
    compared: usize,
}

impl Merged {
    /// Adds what a page said.
    pub fn add(&mut self, said: Value, url: &str) {
        for (name, _) in said.as_object().into_iter().flatten().filter(|(_, value)| !is_nothing(value)) {
            let of = self.sources.entry(name.clone()).or_default();
            if !of.iter().any(|known| known == url) {
                of.push(url.to_owned());
            }
        }
        let mut value = self.value.take();
        self.join(&mut value, said, url, "");
        self.value = value;
    }

    fn join(&mut self, into: &mut Value, said: Value, url: &str, place: &str) {
        if is_nothing(&said) {
            if into.is_null() {
                *into = said;
            }
            return;
        }
        match (&mut *into, said) {
            (Value::Object(fields), Value::Object(more)) => {
                for (name, value) in more {
                    let below = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
                    self.join(fields.entry(name).or_insert(Value::Null), value, url, &below);
                }
            }
            (Value::Array(list), Value::Array(more)) => {
                more.into_iter().for_each(|item| self.join_item(list, item));
            }
            (known, said) if is_nothing(known) => {
                self.note(&said, url, place);
                *known = said;
            }
            (known, said) if is_same(known, &said) => {}
            (known, said) => {
                if self.conflicts.len() < TOLD {
                    let first = self.first.get(place).map_or("another page", String::as_str);
                    let field = if place.is_empty() { "the value" } else { place };
                    self.conflicts.push(format!(
                        "{field}: {first} says {}, {url} says {}; the first was taken.",
                        shown(known),
                        shown(&said)
                    ));
                }
            }
        }
    }

    /// Notes where the values of a page stand.
    fn note(&mut self, said: &Value, url: &str, place: &str) {
        self.first.entry(place.to_owned()).or_insert_with(|| url.to_owned());
        for (name, value) in said.as_object().into_iter().flatten() {
            let below = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
            self.note(value, url, &below);
        }
    }

    /// Adds an item to a list. One that says the same as another, or more of the same thing, is that one.
    fn join_item(&mut self, list: &mut Vec<Value>, item: Value) {
        if is_nothing(&item) {
            return;
        }
        self.compared = self.compared.saturating_add(list.len());
        if self.compared <= COMPARED && is_joined(list, &item) {
            return;
        }
        list.push(item);
    }

    /// All of it, the pages of each field, and sentences for the caller: one for each conflict.
    pub fn finish(mut self) -> (Value, BTreeMap<String, Vec<String>>, Vec<String>) {
        if self.compared > COMPARED {
            self.conflicts.push("The lists are so long that an item may stand in them more than once.".to_owned());
        }
        (self.value, self.sources, self.conflicts)
    }
}

/// Whether a value says nothing.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.values().all(is_nothing),
        _ => false,
    }
}

/// Whether two values say the same.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(one), Value::String(other)) => one.trim().eq_ignore_ascii_case(other.trim()),
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (one, other) => one == other,
    }
}

/// Whether an item of the list says the same as this one, or is about the same thing and now says what this one says of it.
fn is_joined(list: &mut [Value], item: &Value) -> bool {
    if list.iter().any(|known| is_same(known, item)) {
        return true;
    }
    let Value::Object(said) = item else { return false };
    let about = list.iter_mut().filter_map(Value::as_object_mut).find(|fields| is_one_thing(fields, said));
    let Some(fields) = about else { return false };
    for (name, value) in said {
        let own = fields.entry(name.clone()).or_insert(Value::Null);
        if is_nothing(own) {
            *own = value.clone();
        }
    }
    true
}

/// Whether two objects are about one thing: they agree wherever both say something, and do so in a text.
fn is_one_thing(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let mut agrees = false;
    for (name, value) in one {
        let Some(said) = other.get(name).filter(|said| !is_nothing(said) && !is_nothing(value)) else { continue };
        if !is_same(value, said) {
            return false;
        }
        agrees |= value.is_string();
    }
    agrees
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    let end = text.char_indices().nth(SHOWN).map_or(text.len(), |(at, _)| at);
    if end < text.len() { format!("{}…", &text[..end]) } else { text }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(said: &[(Value, &str)]) -> (Value, BTreeMap<String, Vec<String>>, Vec<String>) {
        let mut merged = Merged::default();
        for (value, url) in said {
            merged.add(value.clone(), url);
        }
        merged.finish()
    }

    #[test]
    fn what_one_page_lacks_another_gives_and_lists_are_joined() {
        let (value, sources, conflicts) = merged(&[
            (json!({"name": "Kettle", "price": null, "tags": ["a"], "maker": {"town": ""}}), "u1"),
            (json!({"name": " kettle", "price": 39, "tags": ["b", "a"], "maker": {"town": "Ulm"}}), "u2"),
            (json!({}), "u3"),
        ]);
        assert_eq!(value, json!({"name": "Kettle", "price": 39, "tags": ["a", "b"], "maker": {"town": "Ulm"}}));
        assert_eq!(
            (sources["name"].as_slice(), sources["price"].as_slice()),
            (&["u1".into(), "u2".into()][..], &["u2".into()][..])
        );
        assert!(conflicts.is_empty(), "{conflicts:?}");
    }

    #[test]
    fn conflicts_are_named_and_the_first_counts() {
        let (value, _, conflicts) = merged(&[
            (json!({"price": 39, "by": {"name": "A"}}), "u1"),
            (json!({"price": 41, "by": {"name": "B"}}), "u2"),
        ]);
        assert_eq!(value, json!({"price": 39, "by": {"name": "A"}}));
        assert_eq!(conflicts.len(), 2);
        assert!(conflicts.contains(&"price: u1 says 39, u2 says 41; the first was taken.".to_owned()), "{conflicts:?}");
    }

    #[test]
    fn items_about_one_thing_are_one() {
        let (value, ..) = merged(&[
            (json!({"people": [{"name": "Anna", "age": null}, {"name": "Ben", "age": 3}]}), "u1"),
            (json!({"people": [{"name": "Anna", "age": 40}, {"name": "Ben", "age": 4}]}), "u2"),
        ]);
        assert_eq!(
            value,
            json!({"people": [{"name": "Anna", "age": 40}, {"name": "Ben", "age": 3}, {"name": "Ben", "age": 4}]})
        );
    }

    #[test]
    fn lists_of_very_many_items_are_joined_in_bounded_time() {
        let page = |n: i64| json!({"n": (n * 100_000..(n + 1) * 100_000).collect::<Vec<_>>()});
        let (value, _, told) = merged(&[(page(0), "u1"), (page(1), "u2"), (page(0), "u3")]);
        assert_eq!(value["n"].as_array().map(Vec::len), Some(300_000));
        assert!(told.len() == 1 && told[0].contains("more than once"), "{told:?}");
        let few = |n: i64| json!({"n": (n..n + 1_000).collect::<Vec<_>>()});
        let (value, _, told) = merged(&[(few(0), "u1"), (few(500), "u2"), (few(0), "u3")]);
        assert_eq!((value["n"].as_array().map(Vec::len), told.len()), (Some(1_500), 0));
    }

    #[test]
    fn a_page_is_held_to_a_schema_that_requires_nothing() {
        let schema = json!({"type": "object", "required": ["a", "b"], "properties": {
            "a": {"type": "string"}, "b": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/c"}}},
            "$defs": {"c": {"type": "object", "required": ["d"], "properties": {"d": {"enum": ["x"]}}}}});
        let judge = weir_shared::domain::json_schema::Schema::new(&weir_shared::domain::json_schema::relaxed(&schema))
            .expect("a schema");
        for fine in [json!({}), json!({"a": null, "b": []}), json!({"b": [{"d": null}, {}]})] {
            assert!(judge.faults(&fine).is_empty(), "{fine}");
        }
        for wrong in [json!({"a": 5}), json!({"b": [{"d": "y"}]}), json!(null)] {
            assert!(!judge.faults(&wrong).is_empty(), "{wrong}");
        }
    }
}
