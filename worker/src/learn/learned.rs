//! What is known of the pages of one template: the extractor, and what its values look like.
//!
//! A page fits where its values fit the caller's schema, no field is empty that never was, and nothing about the fields is
//! new: where they stand, the words before them, the form of what never was words. What is new about a page is a doubt: the
//! model reads it once, and from then on it is known, or the extractor is not good for it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_shared::domain::json_schema::Schema;

use super::compare::{is_nothing, tidied};
use crate::extract::Page;
use crate::extract::extractor::{Applied, Extractor, Mark, Shape, TooMuch};

/// Longest text whose form is looked at, characters, and most names of elements that are remembered.
const MAX_FORM: usize = 40;
const MAX_NAMES: usize = 2_000;

/// An extractor with what its values look like, as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// As [`Extractor::new`] reads it.
    pub form: Value,
    fields: BTreeMap<String, Field>,
    /// What pages are built of that were read by the model, too.
    names: BTreeSet<u32>,
}

/// What a field of the pages looks like. `None`: that differs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Field {
    /// It had a value.
    filled: bool,
    /// It had none.
    absent: bool,
    way: Option<u32>,
    label: Option<String>,
    form: Option<String>,
}

/// A page as an extractor reads it.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    pub value: Value,
    marks: BTreeMap<String, Mark>,
    names: Vec<u32>,
    fields: Vec<String>,
}

/// Whether a page is one of those that an extractor was learned from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Fits,
    /// Something about it is new.
    Doubtful,
    No,
}

impl Reading {
    /// Reads a page.
    ///
    /// # Errors
    /// When that takes too long.
    pub fn of(page: &Page, extractor: &Extractor, schema: &Value) -> Result<Self, TooMuch> {
        let Applied { value, marks } = page.apply(extractor)?;
        let mut fields = Vec::new();
        pointers(&extractor.shape(), String::new(), &mut fields);
        Ok(Self { value: tidied(value, schema), marks, names: page.names(), fields })
    }

    /// Whether the page was read: not if that took too long.
    pub fn is_whole(&self) -> bool {
        !self.fields.is_empty()
    }

    /// The plain values at a field, by its pointer.
    fn values<'a>(&'a self, field: &str) -> Vec<&'a Value> {
        let mut at = vec![&self.value];
        for part in field.split('/').skip(1) {
            let name = part.replace("~1", "/").replace("~0", "~");
            at = at
                .into_iter()
                .flat_map(|value| match value {
                    Value::Array(list) if part == "*" => list.iter().collect(),
                    value => value.get(&name).into_iter().collect::<Vec<_>>(),
                })
                .collect();
        }
        at
    }

    fn is_filled(&self, field: &str) -> bool {
        self.values(field).into_iter().any(|value| !is_nothing(value))
    }

    /// Whether the list that a field is one of is empty: then the field says nothing.
    fn has_no_items(&self, field: &str) -> bool {
        field.rfind("/*").is_some_and(|at| !self.is_filled(&field[..at]))
    }

    fn form(&self, field: &str) -> Option<String> {
        self.values(field).into_iter().find_map(Value::as_str).and_then(text_form)
    }
}

/// The fields of what an extractor makes.
fn pointers(shape: &Shape, place: String, fields: &mut Vec<String>) {
    match shape {
        Shape::Object(inner) => {
            for (name, shape) in inner {
                pointers(shape, format!("{place}/{}", name.replace('~', "~0").replace('/', "~1")), fields);
            }
        }
        Shape::List(item) => {
            let below = format!("{place}/*");
            fields.push(place);
            if !matches!(**item, Shape::Text | Shape::Number | Shape::Integer | Shape::Boolean | Shape::Any) {
                pointers(item, below, fields);
            }
        }
        _ => fields.push(place),
    }
}

/// The form of a text that is more than words: letters and digits as kinds. `None`: it may be any words.
fn text_form(text: &str) -> Option<String> {
    if text.chars().count() > MAX_FORM || !text.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut form = String::new();
    for c in text.chars() {
        let kind = match c {
            _ if c.is_numeric() => '9',
            _ if c.is_alphabetic() => 'a',
            _ if c.is_whitespace() => ' ',
            other => other,
        };
        if !form.ends_with(kind) || !matches!(kind, '9' | 'a' | ' ') {
            form.push(kind);
        }
    }
    Some(form)
}

impl Learned {
    /// What the readings of several pages have in common.
    pub fn new(form: Value, readings: &[Reading]) -> Self {
        let mut learned = Self { form, fields: BTreeMap::new(), names: BTreeSet::new() };
        let fields: BTreeSet<&String> = readings.iter().flat_map(|reading| &reading.fields).collect();
        for name in fields {
            let seen: Vec<&Reading> = readings.iter().filter(|reading| !reading.has_no_items(name)).collect();
            let filled: Vec<&&Reading> = seen.iter().filter(|reading| reading.is_filled(name)).collect();
            let marks: Vec<&Mark> = filled.iter().filter_map(|reading| reading.marks.get(name)).collect();
            let field = Field {
                filled: !filled.is_empty(),
                absent: filled.len() < seen.len(),
                way: common(marks.iter().map(|mark| Some(mark.way))),
                label: common(marks.iter().map(|mark| Some(mark.label.clone()))),
                form: common(filled.iter().map(|reading| reading.form(name))),
            };
            learned.fields.insert(name.clone(), field);
        }
        readings.iter().for_each(|reading| learned.remember(reading));
        learned
    }

    fn remember(&mut self, reading: &Reading) {
        let room = MAX_NAMES.saturating_sub(self.names.len());
        self.names.extend(reading.names.iter().take(room));
    }

    /// Whether a page is one of those.
    pub fn judge(&self, reading: &Reading, schema: &Schema) -> Verdict {
        if !reading.is_whole() || !schema.faults(&reading.value).is_empty() {
            return Verdict::No;
        }
        let mut is_new = false;
        let mut is_unproven = false;
        for (name, field) in self.fields.iter().filter(|(name, _)| !reading.has_no_items(name)) {
            is_unproven |= !field.filled;
            if !reading.is_filled(name) {
                if !field.absent {
                    return Verdict::No;
                }
                continue;
            }
            let mark = reading.marks.get(name);
            is_new |= !field.filled
                || field.way.is_some_and(|way| mark.is_some_and(|mark| mark.way != way))
                || field.label.as_ref().is_some_and(|label| mark.is_some_and(|mark| mark.label != *label))
                || field.form.is_some() && reading.form(name) != field.form;
        }
        // What was never there may be what the page has more than others.
        is_new |= is_unproven && reading.names.iter().any(|name| !self.names.contains(name));
        if is_new { Verdict::Doubtful } else { Verdict::Fits }
    }

    /// The same with what is new about a page on which the model has read the same.
    pub fn widened(&self, reading: &Reading) -> Self {
        let mut learned = self.clone();
        for (name, field) in learned.fields.iter_mut().filter(|(name, _)| !reading.has_no_items(name)) {
            if !reading.is_filled(name) {
                field.absent = true;
                continue;
            }
            field.filled = true;
            let mark = reading.marks.get(name);
            field.way = field.way.filter(|way| mark.is_none_or(|mark| mark.way == *way));
            field.label = field.label.take().filter(|label| mark.is_none_or(|mark| mark.label == *label));
            field.form = field.form.take().filter(|form| reading.form(name).as_ref() == Some(form));
        }
        learned.remember(reading);
        learned
    }
}

/// What all of them are, if they are the same.
fn common<T: PartialEq>(mut all: impl Iterator<Item = Option<T>>) -> Option<T> {
    let first = all.next()??;
    all.all(|other| other.as_ref() == Some(&first)).then_some(first)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;
    use crate::extract::{self, PageInput};

    fn form() -> Value {
        json!({"fields": {
            "name": {"select": "h1"},
            "price": {"select": ".price", "steps": ["number"]},
            "sku": {"select": "td"},
            "sale": {"select": ".sale"},
            "sizes": {"each": "li", "item": {"fields": {"size": {"select": "b"}, "left": {"select": "i"}}}},
        }})
    }

    fn schema() -> Value {
        let text = || json!({"type": ["string", "null"]});
        json!({"type": "object", "properties": {"name": {"type": "string"}, "price": {"type": "number"}, "sku": text(),
            "sale": text(), "sizes": {"type": "array", "items": {"type": "object", "properties": {
                "size": {"type": "string"}, "left": {"type": "string"}}}}}, "required": ["name", "price"]})
    }

    fn reading(html: &str) -> Reading {
        let url = url::Url::parse("https://x.test/").unwrap();
        let page = extract::parse(&PageInput { url: &url, html, rendered: false });
        Reading::of(&page, &Extractor::new(&form()).unwrap(), &schema()).unwrap()
    }

    fn page(name: &str, price: &str, sku: &str, more: &str) -> String {
        format!("<h1>{name}</h1><p class=price>{price}</p><table><tr><th>Sku</th><td>{sku}</td></tr></table>{more}")
    }

    #[test]
    fn a_page_fits_while_nothing_about_its_fields_is_new() {
        let sizes = "<ul><li><b>2 l</b><i>3 left</i></li></ul>";
        let pages = [page("A", "3", "K-77", sizes), page("Bee", "4.50", "L-8", sizes), page("C d", "5", "M-123", "")];
        let readings: Vec<Reading> = pages.iter().map(|html| reading(html)).collect();
        assert_eq!(readings[1].value["price"], json!(4.5));
        assert_eq!(readings[2].value["sale"], Value::Null, "null where the schema allows it");
        let judge = Schema::new(&schema()).unwrap();
        let learned = Learned::new(form(), &readings);
        let stored: Learned = serde_json::from_value(serde_json::to_value(&learned).unwrap()).unwrap();
        assert_eq!(stored, learned);
        for (html, verdict, why) in [
            (page("Other", "7", "Z-1", sizes), Verdict::Fits, "the same"),
            (page("Other", "7", "Z-1", ""), Verdict::Fits, "a list was empty before"),
            (page("Other", "call us", "Z-1", sizes), Verdict::No, "a required field is empty"),
            (page("Other", "7", "", sizes), Verdict::No, "a field is empty that never was"),
            (page("Other", "7", "red", sizes), Verdict::Doubtful, "another form"),
            (page("Other", "7", "Z-1", sizes).replace("Sku", "Colour"), Verdict::Doubtful, "other words before it"),
            (page("Other", "7", "Z-1", sizes).replace("<table>", "<table class=b>"), Verdict::Doubtful, "elsewhere"),
            (page("Other", "7", "Z-1", "<em class=sale>2</em>"), Verdict::Doubtful, "a field that never was"),
            (page("Other", "7", "Z-1", "<s>9</s>"), Verdict::Doubtful, "something that may be such a field"),
            (page("Other", "7", "Z-1", "<ul><li><b>1 l</b></li></ul>"), Verdict::No, "a field of items is empty"),
        ] {
            let new = reading(&html);
            assert_eq!(learned.judge(&new, &judge), verdict, "{why}");
            let is_valid = judge.faults(&new.value).is_empty();
            let known = if is_valid { Verdict::Fits } else { Verdict::No };
            assert_eq!(learned.widened(&new).judge(&new, &judge), known, "known afterwards: {why}");
        }
    }
}
