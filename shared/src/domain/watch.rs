//! What counts as a change of a page that a monitor watches, and who judges it: the part of a monitor that travels with
//! the options of its pages.

use std::cmp::Ordering;

use regex::RegexSet;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::crawl::scope;
use crate::ids::MonitorId;

/// Fields that a diff of data names at most.
const MAX_FIELDS: usize = 1_000;

/// What a page of a monitor carries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Watch {
    pub monitor: MonitorId,
    #[serde(default)]
    pub noise: Noise,
    /// What changes are held against by the language model; `None`: nobody judges.
    #[serde(default)]
    pub goal: Option<String>,
}

/// Differences that do not count. What is found to be the same by these rules is compared with the same earlier page the
/// next time, so that small steps in one direction add up to a change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Noise {
    /// Patterns of lines that are not looked at; they compile together.
    pub lines: Vec<String>,
    /// Lines may stand in another order.
    pub order: bool,
    /// Numbers may differ by less than this; above 0.
    pub numbers_below: Option<f64>,
    /// Only a page counts that has this text now and did not have it before. Letters' case does not matter.
    pub appears: Option<String>,
    /// The other way round. With both, either counts.
    pub disappears: Option<String>,
}

/// [`Noise`], ready to compare with.
#[derive(Debug)]
pub struct Rules<'a> {
    noise: &'a Noise,
    lines: RegexSet,
}

impl Noise {
    /// Makes the rules ready.
    ///
    /// # Errors
    /// When the patterns do not compile; they were tried when the monitor was made.
    pub fn rules(&self) -> Result<Rules<'_>, String> {
        Ok(Rules { noise: self, lines: scope::compile(&self.lines)? })
    }
}

impl Rules<'_> {
    /// The text without the lines that are not looked at.
    pub fn tidy(&self, text: &str) -> String {
        if self.lines.is_empty() {
            return text.to_owned();
        }
        let mut kept = String::with_capacity(text.len());
        for line in text.lines().filter(|line| !self.lines.is_match(line)) {
            kept.push_str(line);
            kept.push('\n');
        }
        kept
    }

    /// Whether two versions of a page are the same.
    pub fn is_same(&self, before: &str, now: &str) -> bool {
        let (before, now) = (self.tidy(before), self.tidy(now));
        self.are_equal(&before, &now) || !self.is_wanted(&before, &now)
    }

    /// Whether what the caller waits for has happened.
    fn is_wanted(&self, before: &str, now: &str) -> bool {
        let Noise { appears, disappears, .. } = self.noise;
        if appears.is_none() && disappears.is_none() {
            return true;
        }
        let (before, now) = (before.to_lowercase(), now.to_lowercase());
        let has =
            |text: &str, wanted: &Option<String>| wanted.as_ref().map(|wanted| text.contains(&wanted.to_lowercase()));
        (has(&before, appears) == Some(false) && has(&now, appears) == Some(true))
            || (has(&before, disappears) == Some(true) && has(&now, disappears) == Some(false))
    }

    fn are_equal(&self, before: &str, now: &str) -> bool {
        let lines = |text: &'_ str| {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            let mut lines: Vec<Line> = lines.map(|line| Line::new(line, self.noise.numbers_below.is_some())).collect();
            if self.noise.order {
                lines.sort_by(Line::order);
            }
            lines
        };
        let (before, now) = (lines(before), lines(now));
        let least = self.noise.numbers_below.unwrap_or(0.0);
        before.len() == now.len() && before.iter().zip(&now).all(|(a, b)| a.is_like(b, least))
    }

    /// The fields that differ, by their path (`plans[0].price`), each with what it was and what it is.
    pub fn data_diff(&self, before: &Value, now: &Value) -> Map<String, Value> {
        let mut found = Map::new();
        self.compare("", before, now, &mut found);
        found
    }

    fn compare(&self, path: &str, before: &Value, now: &Value, found: &mut Map<String, Value>) {
        if is_same(before, now) || found.len() >= MAX_FIELDS {
            return;
        }
        match (before, now) {
            (Value::Object(a), Value::Object(b)) => {
                for name in a.keys().chain(b.keys().filter(|name| !a.contains_key(*name))) {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    let of = |map: &Map<String, Value>| map.get(name).cloned().unwrap_or_default();
                    self.compare(&path, &of(a), &of(b), found);
                }
            }
            (Value::Array(a), Value::Array(b)) => {
                let of = |list: &[Value], n: usize| list.get(n).cloned().unwrap_or_default();
                for n in 0..a.len().max(b.len()) {
                    self.compare(&format!("{path}[{n}]"), &of(a, n), &of(b, n), found);
                }
            }
            _ => {
                let near = match (before.as_f64(), now.as_f64(), self.noise.numbers_below) {
                    (Some(a), Some(b), Some(least)) => (a - b).abs() < least,
                    _ => false,
                };
                if !near {
                    let path = if path.is_empty() { "value" } else { path };
                    found.insert(path.to_owned(), json!({"previous": before, "current": now}));
                }
            }
        }
    }
}

/// Whether two pieces of data say the same: `5` and `5.0` are one number, whichever way a model writes it.
pub fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) if one.is_f64() || other.is_f64() => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let is_in_other =
                |(name, value): (&String, &Value)| other.get(name).is_some_and(|other| is_same(value, other));
            one.len() == other.len() && one.iter().all(is_in_other)
        }
        _ => one == other,
    }
}

/// A line, apart from its numbers where those are compared by size.
#[derive(Debug)]
struct Line {
    text: String,
    numbers: Vec<f64>,
}

impl Line {
    fn new(line: &str, is_apart: bool) -> Self {
        if !is_apart {
            return Self { text: line.to_owned(), numbers: Vec::new() };
        }
        let (mut text, mut numbers) = (String::with_capacity(line.len()), Vec::new());
        let mut rest = line;
        while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
            let digits = &rest[start..];
            let end = digits.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ','))).unwrap_or(digits.len());
            let written = digits[..end].trim_end_matches(['.', ',']);
            text.push_str(&rest[..start]);
            text.push('\u{0}');
            numbers.push(number(written));
            rest = &digits[written.len()..];
        }
        text.push_str(rest);
        Self { text, numbers }
    }

    fn order(&self, other: &Self) -> Ordering {
        let by_numbers = || {
            let pairs = self.numbers.iter().zip(&other.numbers);
            pairs.map(|(a, b)| a.total_cmp(b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        // A text may hold of itself what stands for a number: lines that read alike may have more and fewer of them.
        let by_count = || self.numbers.len().cmp(&other.numbers.len());
        self.text.cmp(&other.text).then_with(by_count).then_with(by_numbers)
    }

    fn is_like(&self, other: &Self, least: f64) -> bool {
        self.text == other.text
            && self.numbers.len() == other.numbers.len()
            && self.numbers.iter().zip(&other.numbers).all(|(a, b)| a == b || (a - b).abs() < least)
    }
}

/// The value of a written number: `1,234.5` and `1.234,5` are the same, `1,234` is a thousand and more.
fn number(written: &str) -> f64 {
    let last = written.rfind(['.', ',']);
    let is_fraction = last.is_some_and(|at| {
        let mark = written.as_bytes()[at];
        let is_only = written.bytes().filter(|byte| *byte == mark).count() == 1;
        let is_mixed = written.bytes().any(|byte| matches!(byte, b'.' | b',') && byte != mark);
        is_only && (is_mixed || written.len() - at != 4 || mark == b'.')
    });
    let mut plain = String::with_capacity(written.len());
    for (at, c) in written.char_indices() {
        match c {
            '.' | ',' if is_fraction && Some(at) == last => plain.push('.'),
            '.' | ',' => {}
            digit => plain.push(digit),
        }
    }
    plain.parse().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn same(noise: &Noise, before: &str, now: &str) -> bool {
        noise.rules().unwrap().is_same(before, now)
    }

    #[test]
    fn without_rules_every_difference_counts() {
        let none = Noise::default();
        assert!(same(&none, "a\n\nb\n", "a\nb"));
        assert!(!same(&none, "a\nb\n", "b\na\n") && !same(&none, "5 left", "6 left"));
    }

    #[test]
    fn lines_order_and_small_numbers_can_be_left_out_of_account() {
        let noise = Noise { lines: vec![r"^Updated \d+".into(), "(?i)cookie".into()], ..Noise::default() };
        assert!(same(&noise, "Updated 5 minutes ago\nA", "A\nWe use COOKIES"));
        assert!(!same(&noise, "Updated 5 minutes ago\nA", "B"));
        assert_eq!(noise.rules().unwrap().tidy("Updated 1\nA\n"), "A\n");
        let noise = Noise { order: true, ..Noise::default() };
        assert!(same(&noise, "a\nb\nc", "c\na\nb") && !same(&noise, "a\nb", "a\nb\nb"));
        let noise = Noise { numbers_below: Some(5.0), ..Noise::default() };
        assert!(same(&noise, "Price 1,234.50 EUR", "Price 1,238.00 EUR"));
        assert!(!same(&noise, "Price 1,234.50 EUR", "Price 1,239.50 EUR"));
        assert!(!same(&noise, "Price 12 EUR", "Price 12 USD") && !same(&noise, "1 2", "1"));
        let noise = Noise { numbers_below: Some(5.0), order: true, ..Noise::default() };
        assert!(same(&noise, "x 10\nx 100\ny", "y\nx 98\nx 12") && !same(&noise, "x 10\nx 100", "x 10\nx 10"));
    }

    #[test]
    fn lines_have_one_order_whatever_is_in_them() {
        let lines = ["\u{0} 5", "5 5", "5 6", "\u{0} 6", "\u{0} \u{0}"].map(|line| Line::new(line, true));
        for (a, b) in lines.iter().flat_map(|a| lines.iter().map(move |b| (a, b))) {
            assert_eq!(a.order(b), b.order(a).reverse());
            let is_one = a.order(b) == Ordering::Equal;
            assert!(!is_one || lines.iter().all(|c| a.order(c) == b.order(c)), "{a:?} {b:?}");
        }
    }

    #[test]
    fn a_text_that_comes_or_goes_can_be_all_that_counts() {
        let noise = Noise { appears: Some("In stock".into()), ..Noise::default() };
        assert!(same(&noise, "sold out, 5 watch", "sold out, 6 watch"));
        assert!(!same(&noise, "sold out", "Now IN STOCK"));
        assert!(same(&noise, "in stock", "sold out"));
        let noise = Noise { disappears: Some("sold out".into()), ..noise };
        assert!(!same(&noise, "Sold out", "maybe") && same(&noise, "maybe", "sold out"));
    }

    #[test]
    fn numbers_are_read_as_people_write_them() {
        for (written, value) in [
            ("5", 5.0),
            ("1,234.5", 1234.5),
            ("1.234,5", 1234.5),
            ("1,234", 1234.0),
            ("0.125", 0.125),
            ("1,5", 1.5),
            ("1,234,567", 1_234_567.0),
        ] {
            assert!((number(written) - value).abs() < 1e-9, "{written}: {}", number(written));
        }
    }

    #[test]
    fn data_differs_by_path() {
        let noise = Noise { numbers_below: Some(1.0), ..Noise::default() };
        let rules = noise.rules().unwrap();
        let before = json!({"plans": [{"price": 5, "name": "A"}, {"price": 7.0}], "gone": true, "near": 1.5});
        let now = json!({"plans": [{"price": 9, "name": "A"}, {"price": 7.5}, {"price": 1}], "near": 1.6});
        let found = rules.data_diff(&before, &now);
        let mut paths: Vec<&str> = found.keys().map(String::as_str).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["gone", "plans[0].price", "plans[2]"]);
        assert_eq!(found["plans[0].price"], json!({"previous": 5, "current": 9}));
        assert!(rules.data_diff(&now, &now).is_empty());
        let written = json!({"a": [{"price": 5}], "b": 2.50, "c": 9_007_199_254_740_993_u64});
        let otherwise = json!({"a": [{"price": 5.0}], "b": 2.5, "c": 9_007_199_254_740_992_u64});
        let found = Noise::default().rules().unwrap().data_diff(&written, &otherwise);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["c"], "a number is the same however it is written");
        assert_eq!(rules.data_diff(&json!(5), &json!(8))["value"], json!({"previous": 5, "current": 8}));
    }
}
