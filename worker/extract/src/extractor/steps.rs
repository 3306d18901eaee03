//! What becomes of a text on its way to a value: a closed set of transformations.

use std::collections::BTreeMap;

use chrono::{NaiveDate, NaiveDateTime};
use regex::{Regex, RegexBuilder};
use serde_json::{Number, Value};

use super::{Shape, TooMuch};
use crate::address::Addresses;
use crate::guard::Clock;

/// Most steps of one value.
const MAX_STEPS: usize = 12;
/// Longest pattern, and most of a program that it may become, bytes. It runs in linear time.
const MAX_PATTERN: usize = 300;
const MAX_PROGRAM: usize = 64 << 10;
/// Longest text that a pattern looks through, bytes.
const MAX_MATCHED: usize = 10_000;
/// Longest literal, bytes, and most words of a map.
const MAX_LITERAL: usize = 200;
const MAX_WORDS: usize = 100;
/// Most parts of a text.
const MAX_PARTS: usize = 200;
/// Whole numbers that a float holds.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

/// One transformation.
#[derive(Debug)]
pub(super) enum Step {
    Lower,
    Upper,
    /// The first group of a pattern, or all that it matches.
    Match(Regex),
    Replace(Regex, String),
    After(String),
    Before(String),
    /// A number whose decimal mark is this one.
    Number(char),
    Integer(char),
    /// The ISO form of a date in this format of `strftime`.
    Date(String),
    /// An absolute address.
    Url,
    /// A word for a value; other words are none.
    Map(BTreeMap<String, Value>),
    /// Parts of a text; further steps are taken with each of them.
    Split(String),
}

/// Reads a list of steps.
pub(super) fn read(list: &Value, place: &str) -> Result<Vec<Step>, String> {
    let list = list.as_array().filter(|list| list.len() <= MAX_STEPS);
    let list = list.ok_or_else(|| format!("{place}: a list of at most {MAX_STEPS} steps."))?;
    let mut steps = Vec::with_capacity(list.len());
    for (n, step) in list.iter().enumerate() {
        steps.extend(one(step).map_err(|why| format!("{place}/{n}: {why}"))?);
    }
    // Each further one would multiply the parts, and make lists of lists.
    if steps.iter().filter(|step| matches!(step, Step::Split(_))).count() > 1 {
        return Err(format!("{place}: at most one split."));
    }
    Ok(steps)
}

/// `None`: what is done anyway.
fn one(step: &Value) -> Result<Option<Step>, String> {
    const KNOWN: &str =
        "the steps are lower, upper, number, integer, url, date, match, replace, after, before, map, split";
    if let Value::String(word) = step {
        return Ok(Some(match word.as_str() {
            "trim" | "collapse" => return Ok(None),
            "lower" => Step::Lower,
            "upper" => Step::Upper,
            "number" => Step::Number('.'),
            "integer" => Step::Integer('.'),
            "url" => Step::Url,
            _ => return Err(KNOWN.to_owned()),
        }));
    }
    let map = step.as_object().filter(|map| map.len() == 1).ok_or(KNOWN)?;
    let (name, value) = map.iter().next().ok_or(KNOWN)?;
    let text = || match value.as_str() {
        Some(text) if !text.is_empty() && text.len() <= MAX_LITERAL => Ok(text.to_owned()),
        _ => Err(format!("{name}: a text of 1 to {MAX_LITERAL} bytes.")),
    };
    Ok(Some(match name.as_str() {
        "match" => Step::Match(pattern(value)?),
        "replace" => {
            let with = value.get("with").unwrap_or(&Value::Null);
            let with = with.as_str().ok_or("replace: {\"pattern\": …, \"with\": …}.")?;
            literal(&Value::from(with))?;
            Step::Replace(pattern(&value["pattern"])?, with.to_owned())
        }
        "after" => Step::After(text()?),
        "before" => Step::Before(text()?),
        "split" => Step::Split(text()?),
        "number" => Step::Number(decimal(value)?),
        "integer" => Step::Integer(decimal(value)?),
        "date" => {
            let format = text()?;
            let is_known = chrono::format::StrftimeItems::new(&format).all(|item| item != chrono::format::Item::Error);
            if !is_known {
                return Err("date: a format as strftime has it, such as %d.%m.%Y.".to_owned());
            }
            Step::Date(format)
        }
        "map" => Step::Map(words(value)?),
        _ => return Err(KNOWN.to_owned()),
    }))
}

fn pattern(value: &Value) -> Result<Regex, String> {
    let text = value.as_str().filter(|text| text.len() <= MAX_PATTERN);
    let text = text.ok_or_else(|| format!("a pattern of at most {MAX_PATTERN} bytes is expected."))?;
    let built = RegexBuilder::new(text).size_limit(MAX_PROGRAM).dfa_size_limit(1 << 20).nest_limit(20).build();
    built.map_err(|_| "this pattern is not supported, or too large.".to_owned())
}

fn decimal(value: &Value) -> Result<char, String> {
    match value.as_str() {
        Some(".") => Ok('.'),
        Some(",") => Ok(','),
        _ => Err("the decimal mark is \".\" or \",\".".to_owned()),
    }
}

fn words(value: &Value) -> Result<BTreeMap<String, Value>, String> {
    let map = value.as_object().filter(|map| map.len() <= MAX_WORDS);
    let map = map.ok_or_else(|| format!("map: an object with at most {MAX_WORDS} words."))?;
    let mut words = BTreeMap::new();
    for (word, value) in map {
        literal(value)?;
        words.insert(folded(word), value.clone());
    }
    Ok(words)
}

/// Words are compared without case and surplus spaces.
fn folded(word: &str) -> String {
    word.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// A plain value that stands in the form itself. It is short and no address: what a page talks its reader into must not
/// come out as one.
pub(super) fn literal(value: &Value) -> Result<(), String> {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        Value::String(text) if text.len() <= MAX_LITERAL && !text.contains("//") && !text.contains("www.") => Ok(()),
        Value::String(_) => Err(format!("a text of at most {MAX_LITERAL} bytes that is no address.")),
        _ => Err("a plain value is expected.".to_owned()),
    }
}

/// What comes of a value of this shape.
pub(super) fn shape(steps: &[Step], begin: Shape) -> Shape {
    let mut is_list = false;
    let mut shape = begin;
    for step in steps {
        match step {
            Step::Number(_) => shape = Shape::Number,
            Step::Integer(_) => shape = Shape::Integer,
            Step::Split(_) => is_list = true,
            Step::Map(words) => {
                let all = |is: fn(&Value) -> bool| words.values().all(is);
                shape = match () {
                    () if all(Value::is_string) => Shape::Text,
                    () if all(Value::is_boolean) => Shape::Boolean,
                    () if all(|value| value.is_i64()) => Shape::Integer,
                    () if all(Value::is_number) => Shape::Number,
                    () => Shape::Any,
                };
            }
            _ => {}
        }
    }
    if is_list { Shape::List(Box::new(shape)) } else { shape }
}

/// Takes the steps with a value; null where one of them leaves nothing.
///
/// # Errors
/// When the time is over: a pattern may look at each letter of a text for each of its own parts.
pub(super) fn take(steps: &[Step], value: Value, addresses: &Addresses, clock: &Clock) -> Result<Value, TooMuch> {
    let mut value = value;
    for (n, step) in steps.iter().enumerate() {
        let text = match &value {
            Value::String(text) => text.as_str(),
            Value::Bool(is) if matches!(step, Step::Map(_)) => {
                if *is {
                    "true"
                } else {
                    "false"
                }
            }
            _ => return Ok(value),
        };
        if matches!(step, Step::Match(_) | Step::Replace(..)) && clock.is_over() {
            return Err(TooMuch);
        }
        if let Step::Split(by) = step {
            let rest = &steps[n + 1..];
            let parts = text.split(by.as_str()).map(str::trim).filter(|part| !part.is_empty()).take(MAX_PARTS);
            let parts = parts.map(|part| take(rest, part.into(), addresses, clock));
            let mut list = parts.collect::<Result<Vec<_>, _>>()?;
            list.retain(|part| !part.is_null());
            return Ok(if list.is_empty() { Value::Null } else { list.into() });
        }
        value = match changed(step, text, addresses) {
            Some(Value::String(text)) if text.trim().is_empty() => Value::Null,
            Some(Value::String(text)) if text.trim().len() < text.len() => text.trim().into(),
            other => other.unwrap_or_default(),
        };
    }
    Ok(value)
}

fn changed(step: &Step, text: &str, addresses: &Addresses) -> Option<Value> {
    let matched = || &text[..text.floor_char_boundary(MAX_MATCHED)];
    Some(match step {
        Step::Lower => text.to_lowercase().into(),
        Step::Upper => text.to_uppercase().into(),
        Step::Match(pattern) => {
            let found = pattern.captures(matched())?;
            found.get(1).or(found.get(0))?.as_str().into()
        }
        Step::Replace(pattern, with) => {
            // A literal: `$1` in it means nothing.
            let mut out = pattern.replace_all(matched(), regex::NoExpand(with)).into_owned();
            out.truncate(out.floor_char_boundary(MAX_MATCHED));
            out.into()
        }
        Step::After(mark) => text.split_once(mark.as_str())?.1.into(),
        Step::Before(mark) => text.split_once(mark.as_str())?.0.into(),
        Step::Number(mark) => number(text, *mark)?,
        Step::Integer(mark) => number(text, *mark).filter(Value::is_i64)?,
        Step::Date(format) => date(text, format)?.into(),
        Step::Url => addresses.resolve_link(text)?.into(),
        Step::Map(words) => words.get(&folded(text))?.clone(),
        Step::Split(_) => return None,
    })
}

/// The number that a text is, with whatever stands before and after it: `€ 1.234,50`.
fn number(text: &str, decimal: char) -> Option<Value> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let before = text[..start].trim_end();
    let is_negative = before.ends_with(['-', '−', '–']);
    let mut plain = String::new();
    let mut has_point = false;
    let mut rest = text[start..].chars().peekable();
    while let Some(c) = rest.next() {
        let is_followed = rest.peek().is_some_and(char::is_ascii_digit);
        match c {
            '0'..='9' => plain.push(c),
            _ if c == decimal && is_followed && !has_point => {
                plain.push('.');
                has_point = true;
            }
            // What groups thousands.
            '.' | ',' | '\'' | '’' | ' ' | '\u{a0}' | '\u{202f}' if is_followed && c != decimal && !has_point => {}
            _ => break,
        }
        if plain.len() > 40 {
            return None;
        }
    }
    // A second number is another value, not a part of this one.
    if rest.any(|c| c.is_ascii_digit()) {
        return None;
    }
    let value: f64 = plain.parse().ok()?;
    let value = if is_negative { -value } else { value };
    if value.fract() == 0.0 && value.abs() < MAX_WHOLE {
        return Some(Value::from(value as i64));
    }
    Number::from_f64(value).map(Value::Number)
}

/// A date, with a time where the format has one, in ISO's form.
fn date(text: &str, format: &str) -> Option<String> {
    if text.len() > MAX_LITERAL {
        return None;
    }
    if let Ok(time) = NaiveDateTime::parse_from_str(text, format) {
        return Some(time.format("%Y-%m-%dT%H:%M:%S").to_string());
    }
    NaiveDate::parse_from_str(text, format).ok().map(|date| date.format("%Y-%m-%d").to_string())
}
