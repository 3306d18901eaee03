//! The JSON Schema of a request body, learned from the reader that parses it: the reader is given values to judge, and
//! what it says of each is the schema. There is no second description that could say something else.
//!
//! ```text
//! which keys      the names that Fields was asked for while the reader ran
//! which types     a null, a boolean, a number, a text, an array and an object in the value's place
//! which bounds    far too small and far too large values: their issues name the bound
//! which words     a word that is not allowed: its issue lists the options
//! what must be    issues of type "undefined" where nothing is
//! the default     what reads the same as nothing, while others do not
//! ```
//!
//! What a schema cannot say (one field or the other, never both) stays with the reader, and with the words beside the
//! schema.

use std::fmt;

use serde_json::{Map, Value, json};

use super::asked;
use super::validation::{Issue, Path, ValidationError};

/// What a reader has made of a body. Readings that are written alike are alike.
#[derive(Debug)]
pub struct Reading(Box<dyn fmt::Debug>);

impl Reading {
    /// A reader's answer: `parse(body).map(Reading::of)`.
    pub fn of(read: impl fmt::Debug + 'static) -> Self {
        Self(Box::new(read))
    }

    /// To be compared. It takes longer than the reading.
    fn text(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// A reader of bodies.
pub type Reader<'r> = &'r dyn Fn(&Value) -> Result<Reading, ValidationError>;

/// The schema of the bodies that `read` accepts. `valid` is one that it does accept, with nothing in it that could be
/// left out.
pub fn body_schema(read: Reader<'_>, valid: &Value) -> Value {
    Learner { read }.object(valid, &Path::new())
}

/// A key that no reader knows.
const NOBODYS: &str = "x-nobodys";
/// A length and a number that no bound of ours reaches, and none that breaks arithmetic.
const LONG: usize = 200_000;
const MANY: usize = 1_001;
const HUGE: i64 = 9_000_000_000_000_000;

struct Learner<'r> {
    read: Reader<'r>,
}

/// What came of one reading.
struct Probe {
    outcome: Result<Reading, ValidationError>,
}

impl Probe {
    fn issues(&self) -> &[Issue] {
        self.outcome.as_ref().map_or_else(|error| error.issues.as_slice(), |_| &[])
    }

    fn issue_at<'s>(&'s self, path: &'s Path) -> impl Iterator<Item = &'s Issue> {
        self.issues().iter().filter(move |issue| issue.path == *path)
    }

    /// Whether the value at `path` has a type that is read there.
    fn is_type(&self, path: &Path) -> bool {
        !self.issue_at(path).any(|issue| matches!(issue.code, "invalid_type" | "invalid_union"))
    }

    /// A bound or list that an issue of this code names.
    fn named(&self, path: &Path, code: &str, key: &str) -> Option<Value> {
        self.issue_at(path).find(|issue| issue.code == code).and_then(|issue| issue.more.get(key).cloned())
    }
}

impl Learner<'_> {
    fn probe(&self, body: &Value) -> Probe {
        Probe { outcome: (self.read)(body) }
    }

    /// The keys that the object at `path` is asked for; `None`: it is asked for none.
    fn names(&self, body: &Value, path: &Path) -> Option<Vec<&'static str>> {
        asked::recording(path, || (self.read)(body)).1
    }

    /// What is read, as text; `None`: something is wrong with the body.
    fn read_as(&self, body: &Value) -> Option<String> {
        (self.read)(body).ok().map(|reading| reading.text())
    }

    fn probe_with(&self, base: &Value, path: &Path, value: Value) -> Probe {
        self.probe(&with(base, path, value))
    }

    /// The schema of the value at `path` of a body that is `base` otherwise.
    fn value(&self, base: &Value, path: &Path) -> Value {
        let takes = |value: Value| self.probe_with(base, path, value).is_type(path);
        let (null, boolean, whole, number) =
            (takes(json!(null)), takes(json!(true)), takes(json!(1)), takes(json!(1.5)));
        let (text, array, object) = (takes(json!("x")), takes(json!([])), takes(json!({})));
        if null && boolean && whole && text && array && object {
            return json!({});
        }
        let mut shapes = Vec::new();
        if boolean {
            shapes.push(self.boolean(base, path));
        }
        if whole {
            shapes.push(self.number(base, path, number));
        }
        if text {
            shapes.push(self.text(base, path));
        }
        if array {
            shapes.push(self.array(base, path));
        }
        if object {
            shapes.push(self.object(&with(base, path, json!({})), path));
        }
        if null {
            shapes.push(json!({"type": "null"}));
        }
        match shapes.len() {
            1 => shapes.remove(0),
            2 if null && shapes[0].get("type").is_some() => {
                let mut shape = shapes.remove(0);
                shape["type"] = json!([shape["type"], "null"]);
                if let Some(Value::Array(words)) = shape.get_mut("enum") {
                    words.push(Value::Null);
                }
                shape
            }
            _ => json!({"anyOf": shapes}),
        }
    }

    fn boolean(&self, base: &Value, path: &Path) -> Value {
        self.with_default(json!({"type": "boolean"}), base, path, [json!(false), json!(true)])
    }

    fn number(&self, base: &Value, path: &Path, fractions: bool) -> Value {
        let mut shape = json!({"type": if fractions { "number" } else { "integer" }});
        let least = self.probe_with(base, path, json!(-HUGE)).named(path, "too_small", "minimum");
        let most = self.probe_with(base, path, json!(HUGE)).named(path, "too_big", "maximum");
        let (low, high) = (least.as_ref().and_then(Value::as_i64), most.as_ref().and_then(Value::as_i64));
        set(&mut shape, "minimum", least);
        set(&mut shape, "maximum", most);
        // A default is among the numbers of what is read, or among those in another unit.
        let Some(plain) = self.read_as(base) else { return shape };
        let numbers = plain.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse::<i64>().ok());
        let mut guesses: Vec<i64> = numbers.flat_map(|n| [n, n / 1_000]).collect();
        guesses.extend(guesses.clone().iter().map(|n| n + 1));
        guesses.retain(|n| low.is_none_or(|low| *n >= low) && high.is_none_or(|high| *n <= high));
        guesses.sort_unstable();
        guesses.dedup();
        self.with_default(shape, base, path, guesses.into_iter().map(Value::from))
    }

    fn text(&self, base: &Value, path: &Path) -> Value {
        let empty = self.probe_with(base, path, json!(""));
        if let Some(Value::Array(options)) = empty.named(path, "invalid_value", "options") {
            // Some words are right in an object only.
            let alone = |word: &&Value| self.probe_with(base, path, (*word).clone()).issue_at(path).next().is_none();
            let words: Vec<Value> = options.iter().filter(alone).cloned().collect();
            return self.with_default(json!({"type": "string", "enum": words}), base, path, words.clone());
        }
        let mut shape = json!({"type": "string"});
        set(&mut shape, "minLength", empty.named(path, "too_small", "minimum"));
        let long = self.probe_with(base, path, json!("x".repeat(LONG)));
        set(&mut shape, "maxLength", long.named(path, "too_big", "maximum"));
        if empty.named(path, "invalid_format", "format") == Some(json!("uuid")) {
            shape["format"] = json!("uuid");
        }
        shape
    }

    fn array(&self, base: &Value, path: &Path) -> Value {
        let mut shape = json!({"type": "array"});
        set(&mut shape, "minItems", self.probe_with(base, path, json!([])).named(path, "too_small", "minimum"));
        let many = self.probe_with(base, path, json!(vec![Value::Null; MANY]));
        set(&mut shape, "maxItems", many.named(path, "too_big", "maximum"));
        let items = self.value(&with(base, path, json!([null])), &below(path, 0.into()));
        shape["items"] = items;
        shape
    }

    /// `base` holds an object at `path`, empty or as it must be.
    fn object(&self, base: &Value, path: &Path) -> Value {
        let Some(names) = self.names(base, path) else { return self.map(base, path) };
        // Each kind may have fields of its own. What is wrong with a kind alone is said of its fields.
        let at = below(path, "type".into());
        let kinds = names.contains(&"type").then(|| self.probe_with(base, &at, json!("")));
        if let Some(Value::Array(kinds)) = kinds.and_then(|probe| probe.named(&at, "invalid_value", "options"))
            && let Some(variants) = self.variants(base, path, &names, &kinds)
        {
            return json!({"oneOf": variants});
        }
        self.properties(base, path, &names)
    }

    /// One schema for each set of values of `type` that share their fields. `None`: all do.
    fn variants(&self, base: &Value, path: &Path, names: &[&str], kinds: &[Value]) -> Option<Vec<Value>> {
        let mut variants: Vec<Value> = Vec::new();
        for kind in kinds {
            let base = with(base, path, json!({"type": kind}));
            let asked = self.names(&base, path).unwrap_or_default();
            let mut shape = self.properties(&base, path, &asked);
            shape["properties"]["type"] = json!({"type": "string", "enum": [kind]});
            shape["required"] = required_with_type(&shape["required"]);
            let same = variants.iter_mut().find(|other| is_same_but_type(other, &shape));
            match same.and_then(|other| other["properties"]["type"]["enum"].as_array_mut()) {
                Some(kinds) => kinds.push(kind.clone()),
                None => variants.push(shape),
            }
        }
        let is_plain = variants.len() == 1 && variants[0]["properties"].as_object()?.len() == names.len();
        (!is_plain).then_some(variants)
    }

    fn properties(&self, base: &Value, path: &Path, names: &[&'static str]) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for name in names {
            let at = below(path, (*name).into());
            let missing = self.probe(&without(base, &at));
            if missing.named(&at, "invalid_type", "received") == Some(json!("undefined")) {
                required.push(*name);
            }
            properties.insert((*name).to_owned(), self.value(&without(base, &at), &at));
        }
        let mut shape = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            shape["required"] = json!(required);
        }
        let nobodys = self.probe_with(base, &below(path, NOBODYS.into()), json!(1));
        if nobodys.issue_at(path).any(|issue| issue.code == "unrecognized_keys") {
            shape["additionalProperties"] = json!(false);
        }
        shape
    }

    /// An object whose keys are the caller's.
    fn map(&self, base: &Value, path: &Path) -> Value {
        let mut shape = json!({"type": "object"});
        let many: Map<String, Value> = (0..MANY).map(|n| (format!("x-{n}"), json!("x"))).collect();
        set(&mut shape, "maxProperties", self.probe_with(base, path, many.into()).named(path, "too_big", "maximum"));
        let values = self.value(base, &below(path, NOBODYS.into()));
        if values != json!({}) {
            shape["additionalProperties"] = values;
        }
        shape
    }

    /// Adds the default: what reads as nothing does, while something else does not.
    fn with_default(
        &self,
        mut shape: Value,
        base: &Value,
        path: &Path,
        guesses: impl IntoIterator<Item = Value>,
    ) -> Value {
        let Some(plain) = self.read_as(base) else { return shape };
        let is_same = |guess: &Value| self.read_as(&with(base, path, guess.clone())).as_ref() == Some(&plain);
        let (same, other): (Vec<Value>, Vec<Value>) = guesses.into_iter().partition(is_same);
        if let (Some(default), false) = (same.into_iter().next(), other.is_empty()) {
            shape["default"] = default;
        }
        shape
    }
}

fn required_with_type(required: &Value) -> Value {
    let mut names: Vec<Value> = required.as_array().cloned().unwrap_or_default();
    if !names.contains(&json!("type")) {
        names.insert(0, json!("type"));
    }
    Value::Array(names)
}

fn is_same_but_type(one: &Value, other: &Value) -> bool {
    let bare = |shape: &Value| {
        let mut shape = shape.clone();
        shape["properties"]["type"] = Value::Null;
        shape
    };
    bare(one) == bare(other)
}

fn set(shape: &mut Value, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        shape[key] = value;
    }
}

fn below(path: &Path, key: Value) -> Path {
    let mut path = path.clone();
    path.push(key);
    path
}

/// `base` with `value` at `path`; what leads there is made as it must be.
fn with(base: &Value, path: &[Value], value: Value) -> Value {
    let mut body = base.clone();
    let mut at = &mut body;
    for key in path {
        at = match key {
            Value::String(key) => {
                if !at.is_object() {
                    *at = json!({});
                }
                &mut at[key.as_str()]
            }
            _ => {
                *at = json!([at.get(0).cloned()]);
                &mut at[0]
            }
        };
    }
    *at = value;
    body
}

/// `base` without the key at the end of `path`.
fn without(base: &Value, path: &[Value]) -> Value {
    let mut body = base.clone();
    let Some((last, parents)) = path.split_last() else { return body };
    let mut at = Some(&mut body);
    for key in parents {
        at = at.and_then(|value| match key {
            Value::String(key) => value.get_mut(key.as_str()),
            _ => value.get_mut(0),
        });
    }
    if let (Some(Value::Object(map)), Some(key)) = (at, last.as_str()) {
        map.remove(key);
    }
    body
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::domain::interact::parse_interact;
    use crate::domain::scrape_request::{parse_batch, parse_crawl, parse_map, parse_scrape};
    use crate::domain::session::{parse_create, parse_execute};
    use crate::domain::target::RequestContext;

    const ANYWHERE: RequestContext<'_> = RequestContext { knows_host: &|_| false };

    fn scrape() -> Value {
        let read = |body: &Value| parse_scrape(body, ANYWHERE).map(Reading::of);
        body_schema(&read, &json!({"url": "example.com"}))
    }

    #[test]
    fn types_bounds_and_defaults_are_those_of_the_reader() {
        let schema = scrape();
        let fields = &schema["properties"];
        assert_eq!((&schema["additionalProperties"], &schema["required"]), (&json!(false), &json!(["url"])));
        assert_eq!(
            fields["timeout"],
            json!({"type": "integer", "minimum": 1_000, "maximum": 300_000, "default": 60_000})
        );
        assert_eq!(fields["onlyMainContent"], json!({"type": "boolean", "default": true}));
        assert_eq!(fields["proxy"]["enum"], json!(["basic", "stealth", "enhanced", "auto"]));
        assert_eq!(fields["proxy"]["default"], "auto");
        assert_eq!(fields["headers"]["additionalProperties"], json!({"type": "string"}));
        assert_eq!(fields["headers"]["maxProperties"], 100);
        assert_eq!(fields["includeTags"], json!({"type": "array", "maxItems": 200, "items": {"type": "string"}}));
        assert_eq!(fields["auditMetadata"], json!({}));
        let location = &fields["location"];
        assert_eq!(location["properties"]["country"]["type"], json!(["string", "null"]), "{location}");
        assert_eq!(fields["profile"]["required"], json!(["name"]));
    }

    #[test]
    fn each_kind_of_format_and_action_has_its_fields() {
        let schema = scrape();
        let formats = &schema["properties"]["formats"];
        assert_eq!(formats["maxItems"], 50);
        let words = &formats["items"]["anyOf"][0]["enum"];
        assert!(words.as_array().unwrap().contains(&json!("markdown")), "{words}");
        assert!(!words.as_array().unwrap().contains(&json!("question")), "it needs its question: {words}");
        let kinds = formats["items"]["anyOf"][1]["oneOf"].as_array().unwrap();
        let of = |kinds: &[Value], kind: &str| {
            let has = |shape: &&Value| shape["properties"]["type"]["enum"].as_array().unwrap().contains(&json!(kind));
            kinds.iter().find(has).unwrap().clone()
        };
        let shot = of(kinds, "screenshot");
        assert_eq!(shot["properties"]["fullPage"]["default"], false, "{shot}");
        assert_eq!(shot["properties"]["viewport"]["properties"]["width"]["maximum"], 7_680);
        assert_eq!(shot["additionalProperties"], Value::Null, "a screenshot is not strict");
        assert_eq!(of(kinds, "question")["required"], json!(["type", "question"]));
        let actions = schema["properties"]["actions"]["items"]["oneOf"].as_array().unwrap();
        assert_eq!(of(actions, "wait")["properties"]["milliseconds"]["minimum"], 1);
        assert_eq!(of(actions, "click")["required"], json!(["type", "selector"]));
        assert_eq!(of(actions, "click")["properties"]["selector"]["maxLength"], 1_000);
    }

    #[test]
    fn every_reader_can_be_described() {
        let valid = json!({"url": "example.com"});
        let crawl = body_schema(&|body| parse_crawl(body, ANYWHERE).map(Reading::of), &valid);
        assert_eq!(crawl["properties"]["limit"]["default"], 10_000);
        assert_eq!(crawl["properties"]["delay"]["type"], json!(["number", "null"]));
        assert!(crawl.to_string().contains("onlyMainContent"));
        let map = body_schema(&|body| parse_map(body, ANYWHERE).map(Reading::of), &valid);
        assert_eq!(map["properties"]["limit"]["default"], 5_000);
        let valid = json!({"urls": ["example.com"]});
        let batch = body_schema(&|body| parse_batch(body, ANYWHERE).map(Reading::of), &valid);
        assert_eq!(batch["properties"]["urls"], json!({"type": "array", "minItems": 1, "items": {"type": "string"}}));
        assert_eq!(batch["properties"]["appendToId"]["format"], "uuid");
        let browser = body_schema(&|body| parse_create(body).map(Reading::of), &json!({}));
        assert_eq!(
            browser["properties"]["ttl"],
            json!({"type": ["integer", "null"], "minimum": 30, "maximum": 3_600, "default": 600})
        );
        let execute = body_schema(&|body| parse_execute(body).map(Reading::of), &json!({"code": "1"}));
        assert_eq!(execute["properties"]["language"]["default"], "node");
        assert_eq!(execute["properties"]["timeout"]["default"], 30);
        let interact = body_schema(&|body| parse_interact(body).map(Reading::of), &json!({"code": "1"}));
        assert_eq!(interact["properties"]["timeout"]["default"], 30);
        assert_eq!(interact["required"], Value::Null);
    }
}
