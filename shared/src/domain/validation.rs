//! Reading a strict JSON body: every wrong field becomes an [`Issue`] (wire 2.2), and all of them are collected
//! before the caller is told.
//!
//! [`Fields`] reads one JSON object: each getter marks its key as known, and [`Fields::finish`] reports the rest. The
//! messages read like those of the reference's schema library, with the field's name in them.

use std::fmt;
use std::ops::RangeInclusive;

use serde::Serialize;
use serde_json::{Map, Number, Value, json};

use super::api_version::ApiVersion;
use super::asked;
use crate::error_code::ErrorCode;

/// Wrong fields that an answer names at most, but for keys that nobody reads.
const MOST_ISSUES: usize = 100;
/// Keys that nobody reads that an answer names at most.
const MOST_KEYS: usize = 20;
/// Longest key as an answer repeats it, bytes.
const MOST_OF_KEY: usize = 256;

/// A key as an answer repeats it: its beginning, where a caller made it megabytes long.
fn shown(key: &str) -> &str {
    &key[..key.floor_char_boundary(MOST_OF_KEY)]
}

/// Place of a value inside the body: keys and array positions, `[]` for the body itself.
pub type Path = Vec<Value>;

/// One wrong field (wire 2.2).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Issue {
    /// `invalid_type`, `unrecognized_keys`, `too_small`, `too_big`, `invalid_value`, `invalid_format`, `invalid_union`
    /// or `custom`.
    pub code: &'static str,
    /// Where the value stands.
    pub path: Path,
    /// For people.
    pub message: String,
    /// `keys`, `expected`, `received`, `minimum`, `maximum`, `inclusive`, `type`, `options`: as the code needs them.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl Issue {
    fn new(code: &'static str, mut path: Path, message: impl Into<String>) -> Self {
        for part in &mut path {
            if let Value::String(key) = part
                && key.len() > MOST_OF_KEY
            {
                *key = shown(key).to_owned();
            }
        }
        Self { code, path, message: message.into(), more: Map::new() }
    }

    fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.more.insert(key.to_owned(), value.into());
        self
    }

    /// A value of the wrong JSON type breaks no rule of ours: its text stays out of `error`.
    fn is_rule(&self) -> bool {
        !matches!(self.code, "invalid_type" | "invalid_union" | "unrecognized_keys")
    }
}

/// Why a body is refused: one code, the text of `error`, and every issue for `details`.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidationError {
    /// [`ErrorCode::BadRequest`], or the code of an option that this build does not have.
    pub code: ErrorCode,
    /// The text of `error`, chosen by wire 2.2.
    pub message: String,
    /// The issues for `details`; empty when there is nothing to point at.
    pub issues: Vec<Issue>,
}

impl fmt::Display for ValidationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ValidationError {}

/// Issues found so far.
#[derive(Debug, Default)]
pub struct Issues(Vec<Issue>);

impl Issues {
    /// The first ones are enough to mend a body, and each takes far more room than what is wrong.
    fn push(&mut self, issue: Issue) {
        if self.0.len() < MOST_ISSUES {
            self.0.push(issue);
        }
    }

    /// A value breaks a rule of ours; `message` says which.
    pub fn rule(&mut self, path: Path, message: impl Into<String>) {
        self.push(Issue::new("custom", path, message));
    }

    /// A string is not in its form: a URL, a UUID.
    pub fn format(&mut self, path: Path, format: &str, message: impl Into<String>) {
        self.push(Issue::new("invalid_format", path, message).with("format", format));
    }

    /// The value has another JSON type than `expected`; `None`: it is missing.
    pub fn wrong_type(&mut self, path: Path, expected: &str, got: Option<&Value>) {
        let received = type_name(got);
        let message = match got {
            None => format!("Required: {} is missing", path_text(&path)),
            Some(_) => format!("Invalid input: expected {expected}, received {received}"),
        };
        let issue = Issue::new("invalid_type", path, message);
        self.push(issue.with("expected", expected).with("received", received));
    }

    /// The value has none of the shapes that are allowed.
    pub fn wrong_union(&mut self, path: Path, expected: &str, got: &Value) {
        let message = format!("Invalid input: expected {expected}, received {}", type_name(Some(got)));
        self.push(Issue::new("invalid_union", path, message));
    }

    /// The value is not among `options`.
    pub fn wrong_choice(&mut self, path: Path, options: &[&str]) {
        let list: Vec<String> = options.iter().map(|o| format!("\"{o}\"")).collect();
        let message = format!("Invalid option for {}: expected one of {}", path_text(&path), list.join("|"));
        self.push(Issue::new("invalid_value", path, message).with("options", json!(options)));
    }

    /// A number, or the size of a string or array (`what`), lies outside `range`.
    pub fn out_of_range(&mut self, path: Path, what: &str, got: i64, range: &RangeInclusive<i64>) {
        match got < *range.start() {
            true => self.too_small(path, what, (*range.start()).into()),
            false => self.too_big(path, what, (*range.end()).into()),
        }
    }

    fn too_small(&mut self, path: Path, what: &str, least: Number) {
        let message = format!("Too small: {} must be at least {least}{}", path_text(&path), unit(what, &least));
        let issue = Issue::new("too_small", path, message).with("minimum", least);
        self.push(issue.with("type", what).with("inclusive", true));
    }

    fn too_big(&mut self, path: Path, what: &str, most: Number) {
        let message = format!("Too big: {} must be at most {most}{}", path_text(&path), unit(what, &most));
        let issue = Issue::new("too_big", path, message).with("maximum", most);
        self.push(issue.with("type", what).with("inclusive", true));
    }

    /// Keys that nobody reads, and how many more there are.
    pub fn unknown_keys(&mut self, path: Path, keys: Vec<String>, others: usize) {
        let list: Vec<String> = keys.iter().map(|k| format!("\"{k}\"")).collect();
        let plural = if keys.len() == 1 { "key" } else { "keys" };
        let more = if others > 0 { format!(" and {others} more") } else { String::new() };
        let message = format!("Unrecognized {plural}: {}{more}", list.join(", "));
        // Always told: the text of the whole error begins with them.
        self.0.push(Issue::new("unrecognized_keys", path, message).with("keys", json!(keys)));
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is wrong so far.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `Ok` when nothing was wrong; otherwise the error with its text (wire 2.2): unknown keys first, then the
    /// first broken rule, `Bad Request` when only types are wrong.
    pub fn into_result(self) -> Result<(), ValidationError> {
        self.into_result_of(ApiVersion::V2)
    }

    /// The same for a body of this version of the API, whose documentation the text names.
    ///
    /// # Errors
    /// As [`Issues::into_result`].
    pub fn into_result_of(self, version: ApiVersion) -> Result<(), ValidationError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let unknown = self.0.iter().find(|i| i.code == "unrecognized_keys");
        let message = match unknown {
            Some(issue) => {
                let names = issue.message.split_once(": ").map_or("", |(_, names)| names);
                let version = version.as_str();
                format!(
                    "Unrecognized key in body -- please review the {version} API documentation for its fields: {names}"
                )
            }
            None => self.0.iter().find(|i| i.is_rule()).map_or_else(|| "Bad Request".to_owned(), |i| i.message.clone()),
        };
        Err(ValidationError { code: ErrorCode::BadRequest, message, issues: self.0 })
    }
}

/// An error with one issue that points at `path`.
pub fn refusal(code: ErrorCode, path: Path, message: impl Into<String>) -> ValidationError {
    let message = message.into();
    ValidationError { code, message: message.clone(), issues: vec![Issue::new("custom", path, message)] }
}

/// What is counted in a value of this kind.
fn unit(what: &str, bound: &Number) -> &'static str {
    match (what, bound.as_u64()) {
        ("string", Some(1)) => " character",
        ("string", _) => " characters",
        ("array", Some(1)) => " entry",
        ("array", _) => " entries",
        _ => "",
    }
}

/// A bound as people write it: `2`, `0.1`.
fn bound(number: f64) -> Number {
    let whole = (number.fract() == 0.0).then(|| Number::from(number as i64));
    whole.or_else(|| Number::from_f64(number)).unwrap_or_else(|| 0.into())
}

/// The name of a value's JSON type; `undefined` when it is missing.
fn type_name(value: Option<&Value>) -> &'static str {
    match value {
        None => "undefined",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "boolean",
        Some(Value::Number(_)) => "number",
        Some(Value::String(_)) => "string",
        Some(Value::Array(_)) => "array",
        Some(Value::Object(_)) => "object",
    }
}

/// `formats[0].quality`, `body` for the empty path.
fn path_text(path: &[Value]) -> String {
    let mut text = String::new();
    for part in path {
        match part {
            Value::String(key) if text.is_empty() => text.push_str(key),
            Value::String(key) => {
                text.push('.');
                text.push_str(key);
            }
            other => text.push_str(&format!("[{other}]")),
        }
    }
    if text.is_empty() { "body".to_owned() } else { text }
}

/// A whole number; `5.0` is one, as it is to every client that writes JSON from JavaScript.
pub fn as_integer(value: &Value) -> Option<i64> {
    let exact = |f: f64| (f.fract() == 0.0 && f.abs() < 9.0e15).then_some(f as i64);
    value.as_i64().or_else(|| value.as_f64().and_then(exact))
}

/// An id in a field.
pub fn read_id<T: std::str::FromStr>(fields: &mut Fields<'_, '_>, name: &'static str) -> Option<T> {
    let id = fields.string(name)?.parse().ok();
    if id.is_none() {
        fields.issues.format(fields.path_of(name), "uuid", format!("{name} must be a valid UUID"));
    }
    id
}

/// One JSON object being read.
pub struct Fields<'v, 'i> {
    map: &'v Map<String, Value>,
    path: Path,
    /// Where wrong fields are reported.
    pub issues: &'i mut Issues,
    known: Vec<&'static str>,
    nulls_are_absent: bool,
}

impl<'v, 'i> Fields<'v, 'i> {
    /// Starts reading `value`; `None`, with an issue, when it is not an object.
    pub fn open(value: &'v Value, path: Path, issues: &'i mut Issues) -> Option<Self> {
        match value {
            Value::Object(map) => Some(Self { map, path, issues, known: Vec::new(), nulls_are_absent: false }),
            other => {
                issues.wrong_type(path, "object", Some(other));
                None
            }
        }
    }

    /// Reads `null` as absent: the official Python models send it for what is not set inside nested objects.
    pub fn nulls_are_absent(mut self) -> Self {
        self.nulls_are_absent = true;
        self
    }

    /// The path of a field of this object.
    pub fn path_of(&self, name: &str) -> Path {
        let mut path = self.path.clone();
        path.push(name.into());
        path
    }

    /// The raw value; marks the key as known.
    pub fn get(&mut self, name: &'static str) -> Option<&'v Value> {
        self.know(name);
        self.map.get(name).filter(|v| !(self.nulls_are_absent && v.is_null()))
    }

    /// The raw value of a field that must be there.
    pub fn required(&mut self, name: &'static str) -> Option<&'v Value> {
        let value = self.get(name);
        if value.is_none() {
            let expected = "value";
            self.issues.wrong_type(self.path_of(name), expected, None);
        }
        value
    }

    /// Marks keys whose values are of no interest.
    pub fn ignore(&mut self, names: &[&'static str]) {
        names.iter().for_each(|name| self.know(name));
    }

    fn know(&mut self, name: &'static str) {
        asked::note(&self.path, name);
        self.known.push(name);
    }

    /// A boolean; `None` when absent or wrong.
    pub fn bool(&mut self, name: &'static str) -> Option<bool> {
        let value = self.get(name)?;
        if value.as_bool().is_none() {
            self.issues.wrong_type(self.path_of(name), "boolean", Some(value));
        }
        value.as_bool()
    }

    /// A string of any length.
    pub fn string(&mut self, name: &'static str) -> Option<&'v str> {
        let value = self.get(name)?;
        if value.as_str().is_none() {
            self.issues.wrong_type(self.path_of(name), "string", Some(value));
        }
        value.as_str()
    }

    /// A string whose number of characters lies in `range`.
    pub fn text(&mut self, name: &'static str, range: RangeInclusive<i64>) -> Option<&'v str> {
        let text = self.string(name)?;
        let length = text.chars().count() as i64;
        if !range.contains(&length) {
            self.issues.out_of_range(self.path_of(name), "string", length, &range);
            return None;
        }
        Some(text)
    }

    /// A whole number in `range`.
    pub fn integer(&mut self, name: &'static str, range: RangeInclusive<i64>) -> Option<i64> {
        let value = self.get(name)?;
        let Some(number) = as_integer(value) else {
            let expected = if value.is_number() { "int" } else { "number" };
            self.issues.wrong_type(self.path_of(name), expected, Some(value));
            return None;
        };
        if !range.contains(&number) {
            self.issues.out_of_range(self.path_of(name), "number", number, &range);
            return None;
        }
        Some(number)
    }

    /// A number in `range`, whole or not.
    pub fn number(&mut self, name: &'static str, range: RangeInclusive<f64>) -> Option<f64> {
        let value = self.get(name)?;
        let Some(number) = value.as_f64().filter(|number| number.is_finite()) else {
            self.issues.wrong_type(self.path_of(name), "number", Some(value));
            return None;
        };
        if number < *range.start() {
            self.issues.too_small(self.path_of(name), "number", bound(*range.start()));
            return None;
        }
        if number > *range.end() {
            self.issues.too_big(self.path_of(name), "number", bound(*range.end()));
            return None;
        }
        Some(number)
    }

    /// One of `options`.
    pub fn choice(&mut self, name: &'static str, options: &[&'static str]) -> Option<&'static str> {
        let text = self.string(name)?;
        let found = options.iter().find(|o| **o == text).copied();
        if found.is_none() {
            self.issues.wrong_choice(self.path_of(name), options);
        }
        found
    }

    /// An array with at most `most` entries.
    pub fn array(&mut self, name: &'static str, most: i64) -> Option<&'v Vec<Value>> {
        let value = self.get(name)?;
        let Some(list) = value.as_array() else {
            self.issues.wrong_type(self.path_of(name), "array", Some(value));
            return None;
        };
        if list.len() as i64 > most {
            self.issues.out_of_range(self.path_of(name), "array", list.len() as i64, &(0..=most));
            return None;
        }
        Some(list)
    }

    /// An array of strings; an issue for each entry that is not a string.
    pub fn strings(&mut self, name: &'static str, most: i64) -> Option<Vec<String>> {
        let list = self.array(name, most)?;
        let mut texts = Vec::with_capacity(list.len());
        for (i, entry) in list.iter().enumerate() {
            match entry.as_str() {
                Some(text) => texts.push(text.to_owned()),
                None => {
                    let mut path = self.path_of(name);
                    path.push(i.into());
                    self.issues.wrong_type(path, "string", Some(entry));
                }
            }
        }
        Some(texts)
    }

    /// A nested object.
    pub fn object(&mut self, name: &'static str) -> Option<Fields<'v, '_>> {
        let value = self.get(name)?;
        let path = self.path_of(name);
        Fields::open(value, path, self.issues)
    }

    /// The keys that nobody asked for, and how many there are beyond those: what ends an object that is not strict
    /// (wire 2.2).
    pub fn unknown(&self) -> (Vec<String>, usize) {
        let mut unknown = self.map.keys().filter(|k| !self.known.contains(&k.as_str()));
        let named = unknown.by_ref().take(MOST_KEYS).map(|key| shown(key).to_owned()).collect();
        (named, unknown.count())
    }

    /// Ends a strict object: keys that nobody asked for are an issue.
    pub fn finish(self) {
        let (unknown, others) = self.unknown();
        if !unknown.is_empty() {
            self.issues.unknown_keys(self.path, unknown, others);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn read(body: Value, read: impl FnOnce(&mut Fields<'_, '_>)) -> Result<(), ValidationError> {
        let mut issues = Issues::default();
        if let Some(mut fields) = Fields::open(&body, Vec::new(), &mut issues) {
            read(&mut fields);
            fields.finish();
        }
        issues.into_result()
    }

    #[test]
    fn every_wrong_field_is_named_with_its_path() {
        let error = read(json!({"a": "x", "b": 200, "c": [1], "d": 1}), |f| {
            f.bool("a");
            f.integer("b", 1..=100);
            f.strings("c", 5);
        });
        let error = error.unwrap_err();
        let paths: Vec<_> = error.issues.iter().map(|i| (i.code, json!(i.path))).collect();
        assert_eq!(
            paths,
            vec![
                ("invalid_type", json!(["a"])),
                ("too_big", json!(["b"])),
                ("invalid_type", json!(["c", 0])),
                ("unrecognized_keys", json!([])),
            ]
        );
        assert!(error.message.starts_with("Unrecognized key in body"), "{}", error.message);
    }

    #[test]
    fn the_error_text_is_the_first_broken_rule_and_bad_request_for_types() {
        let types = read(json!({"a": 1}), |f| {
            f.bool("a");
        });
        assert_eq!(types.unwrap_err().message, "Bad Request");
        let rule = read(json!({"a": 1, "b": 0}), |f| {
            f.bool("a");
            f.integer("b", 1..=9);
        });
        assert_eq!(rule.unwrap_err().message, "Too small: b must be at least 1");
    }

    #[test]
    fn bounds_are_named_as_they_are() {
        for (value, told) in [(0.05, "a must be at least 0.1"), (2.5, "a must be at most 2")] {
            let error = read(json!({"a": value}), |f| _ = f.number("a", 0.1..=2.0)).unwrap_err();
            assert!(error.message.ends_with(told), "{}", error.message);
        }
    }

    #[test]
    fn a_bound_of_one_is_no_plural() {
        let told = |what: &'static str, range: RangeInclusive<i64>| {
            let mut issues = Issues::default();
            issues.out_of_range(vec!["a".into()], what, 0, &range);
            issues.into_result().unwrap_err().message
        };
        for (what, range, end) in [
            ("string", 1..=9, "at least 1 character"),
            ("array", 1..=9, "at least 1 entry"),
            ("array", 2..=9, "at least 2 entries"),
            ("number", 1..=9, "at least 1"),
        ] {
            assert!(told(what, range).ends_with(end), "{what} {end}");
        }
    }

    #[test]
    fn a_body_that_is_no_object_is_a_type_error() {
        let error = read(json!([]), |_| {}).unwrap_err();
        assert_eq!((error.issues[0].code, error.issues[0].path.len()), ("invalid_type", 0));
        assert_eq!(error.issues[0].more["received"], "array");
    }

    #[test]
    fn an_answer_names_the_first_of_very_many_faults() {
        let body = json!({"a": vec![0; 5_000], "b": 0});
        let error = read(body, |f| _ = (f.strings("a", 10_000), f.bool("b"))).unwrap_err();
        assert_eq!(error.issues.len(), MOST_ISSUES);
        let mut body = Map::new();
        for n in 0..5_000 {
            body.insert(format!("{n}{}", "k".repeat(10_000)), Value::Null);
        }
        let error = read(body.into(), |f| _ = f.strings("0", 1)).unwrap_err();
        let text = serde_json::to_string(&error.issues).unwrap();
        assert!(text.len() < 20_000 && text.contains("and 4980 more"), "{} bytes", text.len());
        assert!(error.message.len() < 10_000 && error.message.ends_with("and 4980 more"));
    }

    #[test]
    fn an_integral_float_is_a_whole_number() {
        assert_eq!(as_integer(&json!(5.0)), Some(5));
        assert_eq!(as_integer(&json!(5.5)), None);
        assert_eq!(as_integer(&json!("5")), None);
    }

    #[test]
    fn an_issue_is_written_flat() {
        let error = read(json!({"x": 1}), |_| {}).unwrap_err();
        let text = serde_json::to_value(&error.issues[0]).unwrap();
        assert_eq!(
            text,
            json!({"code": "unrecognized_keys", "path": [], "message": "Unrecognized key: \"x\"", "keys": ["x"]})
        );
    }
}
