//! JSON schemas that callers give: judged once where they arrive, then what a language model answers is held to them.
//!
//! A schema is a program. One that refers to others or to itself without end, or that would make checking a short
//! answer long work, is refused, so that checking needs no clock.

use std::collections::{HashMap, HashSet};

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

/// Largest schema, bytes of JSON.
const MAX_BYTES: usize = 100_000;
/// Deepest value that is checked.
const MAX_DEPTH: usize = 32;
/// Most parts of a schema that apply to one place of a value.
const MAX_AT_ONCE: u64 = 2_000;
/// Most parts with every reference written out, those to itself once.
const MAX_PARTS: u64 = 50_000;
/// Longest way through references and parts.
const MAX_WAY: usize = 500;
/// Largest pattern once compiled, bytes.
const MAX_PATTERN: usize = 1 << 20;
/// Faults that are told at once, and the longest one, bytes.
const FAULTS: usize = 3;
const FAULT_BYTES: usize = 300;

/// Faults that are put right at once, and how often it is looked for further ones.
const MENDED: usize = 1_000;
const ROUNDS: usize = 3;

/// Parts that apply to the same value.
const HERE: &[&str] = &["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];
/// Parts that apply to values inside; those of `properties` each to a different one.
const BELOW: &[&str] = &[
    "patternProperties",
    "additionalProperties",
    "items",
    "prefixItems",
    "additionalItems",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// A schema that values can be held to.
#[derive(Debug)]
pub struct Schema {
    validator: jsonschema::Validator,
}

impl Schema {
    /// Reads a schema.
    ///
    /// # Errors
    /// A sentence that says why it is not a schema, or why it is refused.
    pub fn new(schema: &Value) -> Result<Self, String> {
        if schema.to_string().len() > MAX_BYTES {
            return Err(format!("schema: at most {MAX_BYTES} bytes"));
        }
        let mut walk = Walk { root: schema, at_once: HashMap::new(), parts: HashMap::new(), open: HashSet::new() };
        let too_much = || "schema: it refers to its own parts so often that values cannot be checked".to_owned();
        if walk.parts(schema, 0)? > MAX_PARTS {
            return Err(too_much());
        }
        for level in 0..=MAX_DEPTH {
            if walk.at_once(schema, level, 0)? > MAX_AT_ONCE {
                return Err(too_much());
            }
        }
        // Patterns run in linear time; nothing is fetched.
        let options = jsonschema::options().with_pattern_options(PatternOptions::regex().size_limit(MAX_PATTERN));
        let validator = options.build(schema).map_err(|error| {
            let place = error.instance_path().to_string();
            format!(
                "schema: not a valid JSON schema{}: {}",
                if place.is_empty() { "" } else { " at " }.to_owned() + &place,
                cut(&error.to_string())
            )
        })?;
        Ok(Self { validator })
    }

    /// What is wrong with a value, the first few faults; none when it fits.
    pub fn faults(&self, value: &Value) -> Vec<String> {
        if depth(value) > MAX_DEPTH {
            return vec![format!("the answer is nested more than {MAX_DEPTH} deep")];
        }
        let told = |error: ValidationError<'_>| {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() { "/".to_owned() } else { place };
            format!("{place}: {}", cut(&error.to_string()))
        };
        self.validator.iter_errors(value).take(FAULTS).map(told).collect()
    }

    /// What a language model has said, as it is meant. Where it does not fit, what can be read in one way only is put right: a
    /// null in the place of something that may be left out is left out, and so on, as [`mends`] says.
    ///
    /// # Errors
    /// The faults of what was said, where that does not help.
    pub fn read(&self, said: Value) -> Result<Value, Vec<String>> {
        let faults = self.faults(&said);
        if faults.is_empty() {
            return Ok(said);
        }
        let mut meant = said;
        for _ in 0..ROUNDS {
            if depth(&meant) > MAX_DEPTH {
                break;
            }
            let mut all = Vec::new();
            self.validator.iter_errors(&meant).take(MENDED).for_each(|error| mends(&error, &mut all));
            if all.is_empty() {
                break;
            }
            all.into_iter().for_each(|(place, value)| put(&mut meant, &place, value));
            if self.faults(&meant).is_empty() {
                return Ok(meant);
            }
        }
        Err(faults)
    }
}

/// What was said as a schema means it, as [`Schema::read`] reads it; as it was said where it does not fit all the same.
pub fn meant(schema: &Value, said: Value) -> Value {
    Schema::new(schema).ok().and_then(|schema| schema.read(said.clone()).ok()).unwrap_or(said)
}

/// Whether values of a schema are objects, as far as it says.
pub fn is_of_object(schema: &Value) -> bool {
    schema["type"] == "object" || schema.get("properties").is_some()
}

/// What would put a fault right, by place; `None` leaves out what stands there. Numbers, truth values and whole structures that
/// were written as texts, numbers where texts are wanted, words in other letters, and nulls.
fn mends(fault: &ValidationError<'_>, all: &mut Vec<(String, Option<Value>)>) {
    let value: &Value = fault.instance();
    let meant = match fault.kind() {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            context.iter().flatten().for_each(|fault| mends(fault, all));
            return;
        }
        ValidationErrorKind::Type { .. } | ValidationErrorKind::Enum { .. } if value.is_null() => None,
        ValidationErrorKind::Type { .. } => match value {
            Value::String(text) => match text.trim() {
                "True" => Some(json!(true)),
                "False" => Some(json!(false)),
                text => serde_json::from_str(text).ok().filter(|meant: &Value| !meant.is_null() && !meant.is_string()),
            },
            Value::Number(number) => Some(json!(number.to_string())),
            _ => None,
        },
        ValidationErrorKind::Enum { options } => value.as_str().and_then(|said| {
            let is_meant = |word: &&Value| word.as_str().is_some_and(|word| word.eq_ignore_ascii_case(said.trim()));
            let mut meant = options.as_array()?.iter().filter(is_meant);
            meant.next().filter(|_| meant.next().is_none()).cloned()
        }),
        _ => return,
    };
    if meant.is_some() || value.is_null() {
        all.push((fault.instance_path().to_string(), meant));
    }
}

/// Puts a value in its place, or takes a field away.
fn put(whole: &mut Value, place: &str, value: Option<Value>) {
    if let Some(value) = value {
        if let Some(part) = whole.pointer_mut(place) {
            *part = value;
        }
    } else if let Some((around, name)) = place.rsplit_once('/')
        && let Some(Value::Object(fields)) = whole.pointer_mut(around)
    {
        fields.remove(&name.replace("~1", "/").replace("~0", "~"));
    }
}

/// A schema as one page is held to it: what another page may say is not required, and whatever is not said is null.
pub fn relaxed(schema: &Value) -> Value {
    let mut relaxed = schema.clone();
    relax(&mut relaxed, true);
    relaxed
}

fn relax(schema: &mut Value, is_top: bool) {
    let Value::Object(fields) = schema else { return };
    for name in ["required", "minItems", "minProperties", "dependentRequired", "minContains"] {
        fields.remove(name);
    }
    if !is_top {
        match fields.get_mut("type") {
            Some(Value::String(kind)) if kind != "null" => {
                let kind = std::mem::take(kind);
                fields.insert("type".to_owned(), json!([kind, "null"]));
            }
            Some(Value::Array(kinds)) if !kinds.iter().any(|kind| kind == "null") => kinds.push("null".into()),
            _ => {}
        }
        if let Some(Value::Array(words)) = fields.get_mut("enum")
            && !words.contains(&Value::Null)
        {
            words.push(Value::Null);
        }
    }
    for name in ["properties", "$defs", "definitions", "patternProperties"] {
        for (_, part) in fields.get_mut(name).and_then(Value::as_object_mut).into_iter().flatten() {
            relax(part, false);
        }
    }
    for name in ["items", "additionalProperties"] {
        if let Some(part) = fields.get_mut(name) {
            relax(part, false);
        }
    }
    for name in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        for part in fields.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten() {
            relax(part, is_top);
        }
    }
}

fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(FAULT_BYTES);
    if end < text.len() { format!("{}…", &text[..end]) } else { text.to_owned() }
}

/// Deepest value that is taken of a model or a script. It is stored and answered inside of others, whose reader has a bound
/// (128).
pub const MAX_NESTING: usize = 64;

/// How deep a value is nested; a plain one is 0.
pub fn depth(value: &Value) -> usize {
    // The JSON reader allows 128 levels.
    match value {
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// The measuring of a schema.
struct Walk<'a> {
    root: &'a Value,
    /// By part and level.
    at_once: HashMap<(*const Value, usize), u64>,
    parts: HashMap<*const Value, u64>,
    /// Parts on the way.
    open: HashSet<*const Value>,
}

impl<'a> Walk<'a> {
    /// The part that a reference means.
    fn target(&self, part: &'a Value) -> Result<Option<&'a Value>, String> {
        let Some(map) = part.as_object() else { return Ok(None) };
        for word in ["$dynamicRef", "$recursiveRef"] {
            if map.contains_key(word) {
                return Err(format!("schema: {word} is not supported"));
            }
        }
        if map.get("$id").or(map.get("id")).is_some_and(Value::is_string) && !std::ptr::eq(part, self.root) {
            return Err("schema: $id is supported at its top only".to_owned());
        }
        let Some(reference) = map.get("$ref") else { return Ok(None) };
        let found = reference.as_str().and_then(|text| {
            let pointer = percent_decode_str(text.strip_prefix('#')?).decode_utf8().ok()?;
            self.root.pointer(&pointer)
        });
        found.map(Some).ok_or_else(|| {
            let told = reference.as_str().unwrap_or_default();
            format!("schema: {} is no reference to a part of it, such as #/$defs/name", cut(told))
        })
    }

    /// Parts under a keyword: a schema, a list or a map of them.
    fn under(part: &'a Value, word: &str) -> Vec<&'a Value> {
        match part.get(word) {
            Some(Value::Array(list)) => list.iter().collect(),
            Some(Value::Object(map))
                if matches!(word, "properties" | "patternProperties" | "dependentSchemas" | "dependencies") =>
            {
                map.values().collect()
            }
            Some(schema @ Value::Object(_)) => vec![schema],
            _ => Vec::new(),
        }
    }

    /// Parts with references written out, each reference back to where it came from once.
    fn parts(&mut self, part: &'a Value, way: usize) -> Result<u64, String> {
        let key = std::ptr::from_ref(part);
        if let Some(known) = self.parts.get(&key) {
            return Ok(*known);
        }
        if way > MAX_WAY {
            return Err("schema: it is nested too deeply".to_owned());
        }
        if !self.open.insert(key) {
            return Ok(1);
        }
        let mut sum = 1_u64;
        let words = HERE.iter().chain(BELOW).chain(&["properties"]);
        let below: Vec<&Value> = words.flat_map(|word| Self::under(part, word)).collect();
        for next in self.target(part)?.into_iter().chain(below) {
            sum = sum.saturating_add(self.parts(next, way + 1)?);
        }
        self.open.remove(&key);
        self.parts.insert(key, sum);
        Ok(sum)
    }

    /// Parts that apply at one place `level` below where `part` applies.
    fn at_once(&mut self, part: &'a Value, level: usize, way: usize) -> Result<u64, String> {
        let key = (std::ptr::from_ref(part), level);
        if let Some(known) = self.at_once.get(&key) {
            return Ok(*known);
        }
        if way > MAX_WAY {
            return Err("schema: it refers to itself without end, or is nested too deeply".to_owned());
        }
        let mut sum = u64::from(level == 0);
        let here: Vec<&Value> = HERE.iter().flat_map(|word| Self::under(part, word)).collect();
        for next in self.target(part)?.into_iter().chain(here) {
            sum = sum.saturating_add(self.at_once(next, level, way + 1)?);
        }
        if level > 0 {
            for next in BELOW.iter().flat_map(|word| Self::under(part, word)) {
                sum = sum.saturating_add(self.at_once(next, level - 1, way + 1)?);
            }
            let mut most = 0;
            for next in Self::under(part, "properties") {
                most = most.max(self.at_once(next, level - 1, way + 1)?);
            }
            sum = sum.saturating_add(most);
        }
        self.at_once.insert(key, sum);
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_held_to_a_schema_and_faults_say_where() {
        let schema = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "pattern": "^[A-Z]"}, "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}}},
            "$defs": {"part": {"type": "object", "properties": {"price": {"type": "number"}, "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}}}}}});
        let schema = Schema::new(&schema).unwrap();
        assert!(schema.faults(&json!({"name": "A", "parts": [{"price": 1, "parts": [{"price": 2}]}]})).is_empty());
        let faults = schema.faults(&json!({"name": "a", "parts": [{"price": 1, "parts": [{"price": "2"}]}]}));
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults.iter().any(|f| f.starts_with("/parts/0/parts/0/price: ")), "{faults:?}");
        assert_eq!(schema.faults(&json!({})).len(), 1);
        let deep = (0..40).fold(json!(1), |inner, _| json!([inner]));
        assert!(schema.faults(&deep)[0].contains("nested"));
    }

    #[test]
    fn what_a_model_says_is_read_as_it_is_meant() {
        let schema = json!({"type": "object", "required": ["name", "count"], "properties": {
            "name": {"type": "string"}, "count": {"type": "integer"}, "price": {"type": ["number", "null"]},
            "sold": {"type": "boolean"}, "state": {"enum": ["new", "used"]}, "a/b": {"type": "string"},
            "age": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "parts": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}}}});
        let schema = Schema::new(&schema).unwrap();
        let whole = json!({"name": "A", "count": 5});
        let with = |name: &str, value: Value| {
            let mut whole = whole.clone();
            whole[name] = value;
            whole
        };
        for (said, meant) in [
            (whole.clone(), whole.clone()),
            (with("count", json!(" 5 ")), whole.clone()),
            (with("name", json!(7)), with("name", json!("7"))),
            (with("price", json!("7.50")), with("price", json!(7.5))),
            (with("price", json!(null)), with("price", json!(null))),
            (with("sold", json!("true")), with("sold", json!(true))),
            (with("sold", json!("False")), with("sold", json!(false))),
            (with("sold", json!(null)), whole.clone()),
            (with("a/b", json!(null)), whole.clone()),
            (with("state", json!("New")), with("state", json!("new"))),
            (with("state", json!(null)), whole.clone()),
            (with("age", json!("40")), with("age", json!(40))),
            (with("parts", json!([{"n": "1"}, {"n": null}])), with("parts", json!([{"n": 1}, {}]))),
            (with("parts", json!("[{\"n\": \"1\"}]")), with("parts", json!([{"n": 1}]))),
            (json!(whole.to_string()), whole.clone()),
        ] {
            assert_eq!(schema.read(said.clone()), Ok(meant), "{said}");
        }
        let judged = json!({"type": "object", "required": ["is"], "properties": {"is": {"type": "boolean"}}});
        assert_eq!(meant(&judged, json!({"is": "true"})), json!({"is": true}));
        assert_eq!(meant(&judged, json!({"is": "maybe"})), json!({"is": "maybe"}));
        for (said, place) in [
            (with("count", json!("five")), "/count: "),
            (with("count", json!("1,200")), "/count: "),
            (with("count", json!("7.5")), "/count: "),
            (with("count", json!(null)), "/count: null"),
            (with("state", json!("old")), "/state: "),
            (with("parts", json!([null])), "/parts/0: "),
            (json!({"name": "A"}), "/: "),
        ] {
            let faults = schema.read(said.clone()).unwrap_err();
            assert!(faults.iter().all(|fault| fault.starts_with(place)), "{said}: {faults:?}");
        }
    }

    #[test]
    fn what_is_no_schema_or_would_cost_too_much_is_refused() {
        // 2^n ways by references that follow each other, or that come back one level below.
        let mut chain = json!({"$defs": {}, "allOf": [{"$ref": "#/$defs/a0"}]});
        for i in 0..40 {
            let next = json!({"$ref": format!("#/$defs/a{}", i + 1)});
            chain["$defs"][format!("a{i}")] = json!({"allOf": [next, next]});
        }
        chain["$defs"]["a40"] = json!({"type": "string"});
        let twice = json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]});
        for (schema, words) in [
            (json!({"type": "no such type"}), "not a valid JSON schema"),
            (json!({"properties": {"a": {"minimum": "x"}}}), "not a valid JSON schema"),
            (json!({"pattern": "(?=a)b"}), "not a valid JSON schema"),
            (json!({"pattern": "(((a{100}){100}){100})"}), "not a valid JSON schema"),
            (json!({"$ref": "https://example.com/schema.json"}), "no reference"),
            (json!({"$ref": "#/$defs/missing"}), "no reference"),
            (json!({"$ref": "file:///etc/passwd"}), "no reference"),
            (json!({"$dynamicRef": "#a"}), "not supported"),
            (json!({"properties": {"a": {"$id": "x"}}}), "top only"),
            (json!({"allOf": [{"$ref": "#"}]}), "without end"),
            (chain, "so often"),
            (json!({"properties": {"x": twice}}), "so often"),
            (json!({"description": "x".repeat(100_000)}), "at most"),
        ] {
            let error = Schema::new(&schema).unwrap_err();
            assert!(error.contains(words), "{words}: {error}");
        }
        // A property may have any name, also that of a keyword.
        assert!(Schema::new(&json!({"properties": {"id": {"type": "string"}, "$ref": {"type": "string"}}})).is_ok());
        let tree = json!({"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}});
        assert!(Schema::new(&tree).is_ok());
    }
}
