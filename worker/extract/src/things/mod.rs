//! The things that a page describes as data, in one form for JSON-LD, microdata and RDFa: objects with an `@type`, whose
//! properties have one value or a list of them.
//!
//! ```text
//! linked     JSON-LD in scripts
//! items      microdata and RDFa in attributes
//! state      what scripts keep: JSON that describes nothing, but holds what the page is made of
//! ```

pub mod items;
pub mod linked;
pub mod state;

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::guard;
use super::tree::{Dom, Tag};

/// Most values of one page's data that are looked at.
pub const MAX_VALUES: usize = 200_000;
/// Most top-level things of one page.
const MAX_TOP: usize = 2_000;
/// How a term of schema.org may begin when it is written whole.
const PREFIXES: [&str; 3] = ["schema:", "https://schema.org/", "http://schema.org/"];

/// One described thing.
pub type Thing = Map<String, Value>;

/// What a page describes in one syntax.
pub struct Things<'a> {
    roots: &'a [Value],
    by_id: HashMap<&'a str, &'a Thing>,
}

impl<'a> Things<'a> {
    /// Looks at what was read of a page.
    pub fn new(roots: &'a [Value]) -> Self {
        let mut by_id: HashMap<&str, &Thing> = HashMap::new();
        walk(roots, |thing| {
            // A reference names its thing and says nothing else.
            if thing.len() > 1
                && let Some(Value::String(id)) = thing.get("@id")
            {
                by_id.entry(id.as_str()).or_insert(thing);
            }
        });
        Self { roots, by_id }
    }

    /// The things that a page is about, and not those that belong to others or stand in a list.
    pub fn top(&self) -> Vec<&'a Thing> {
        let mut found: Vec<&'a Thing> = Vec::new();
        let mut open: Vec<&'a Value> = self.roots.iter().rev().collect();
        let mut looked_at = 0;
        while let Some(value) = open.pop() {
            looked_at += 1;
            if looked_at > MAX_VALUES || found.len() >= MAX_TOP {
                break;
            }
            match value {
                Value::Array(list) => open.extend(list.iter().rev()),
                Value::Object(_) => {
                    let Some(thing) = self.resolved(value) else { continue };
                    if found.iter().any(|other| std::ptr::eq(*other, thing)) {
                        continue;
                    }
                    found.push(thing);
                    open.extend(["@graph", "mainEntity"].iter().rev().filter_map(|name| property(thing, name)));
                }
                _ => {}
            }
        }
        found
    }

    /// The thing that a value is, or refers to.
    pub fn resolved(&self, value: &'a Value) -> Option<&'a Thing> {
        let thing = value.as_object()?;
        let is_reference = thing.len() == 1;
        let id = thing.get("@id").and_then(Value::as_str).filter(|_| is_reference);
        Some(id.and_then(|id| self.by_id.get(id).copied()).unwrap_or(thing))
    }

    /// The values of a property, one or several.
    pub fn values(&self, thing: &'a Thing, name: &str) -> &'a [Value] {
        let value = property(thing, name);
        // `{"@list": […]}` is a list as well.
        let value = value.map(|value| ["@list", "@set"].iter().find_map(|key| value.get(key)).unwrap_or(value));
        match value {
            None | Some(Value::Null) => &[],
            Some(Value::Array(list)) => list,
            Some(one) => std::slice::from_ref(one),
        }
    }

    /// The things that are values of a property.
    pub fn things(&self, thing: &'a Thing, name: &str) -> Vec<&'a Thing> {
        self.values(thing, name).iter().take(MAX_TOP).filter_map(|value| self.resolved(value)).collect()
    }

    /// The first value of a property as plain text of at most `most` bytes; of a thing, its name.
    pub fn text(&self, thing: &'a Thing, name: &str, most: usize) -> Option<String> {
        self.values(thing, name).iter().find_map(|value| self.text_of(value, most))
    }

    /// A value as plain text; of a thing, its name.
    pub fn text_of(&self, value: &'a Value, most: usize) -> Option<String> {
        if let Value::Object(_) = value {
            let thing = self.resolved(value)?;
            let own = ["@value", "name"].iter().flat_map(|name| self.values(thing, name));
            return own.filter(|value| !value.is_object()).find_map(|value| scalar(value, most));
        }
        scalar(value, most)
    }
}

/// Calls `see` for every object below, each before those inside of it.
pub fn walk<'a>(roots: &'a [Value], mut see: impl FnMut(&'a Thing)) {
    let mut open: Vec<&'a Value> = roots.iter().rev().collect();
    let mut looked_at = 0;
    while let Some(value) = open.pop() {
        looked_at += 1;
        if looked_at > MAX_VALUES {
            return;
        }
        match value {
            Value::Array(list) => open.extend(list.iter().rev()),
            Value::Object(map) => {
                see(map);
                open.extend(map.values().rev());
            }
            _ => {}
        }
    }
}

/// A property by its short name, however the page writes it.
fn property<'a>(thing: &'a Thing, name: &str) -> Option<&'a Value> {
    let long = || PREFIXES.iter().find_map(|prefix| thing.get(&format!("{prefix}{name}")));
    thing.get(name).or_else(long)
}

/// Whether a thing is of one of these types of schema.org.
pub fn is_a(thing: &Thing, kinds: &[&str]) -> bool {
    let types = match thing.get("@type") {
        Some(Value::Array(list)) => list.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    let names = types.iter().filter_map(Value::as_str).flat_map(str::split_ascii_whitespace);
    names.map(term).any(|name| kinds.contains(&name))
}

/// `InStock` of `https://schema.org/InStock` and `schema:InStock`.
pub fn term(text: &str) -> &str {
    text.trim().rsplit(['/', '#', ':']).next().unwrap_or_default()
}

/// A text, number or truth value as plain text of at most `most` bytes; `None` when it says nothing.
pub fn scalar(value: &Value, most: usize) -> Option<String> {
    match value {
        Value::String(text) => plain(text, most),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Text without markup, in one line, at most `most` bytes.
pub fn plain(text: &str, most: usize) -> Option<String> {
    // Markup is more than its text, and what is cut off is not to be read first.
    let text = &text[..text.floor_char_boundary(most.saturating_mul(8).min(text.len()))];
    let stripped = text.contains(['<', '&']).then(|| {
        let dom = guard::parse(text).dom;
        let mut out = String::new();
        for i in 0..dom.len() {
            if dom.tag(i).is_block() || dom.tag(i) == Tag::Br {
                out.push(' ');
            }
            out.push_str(dom.text(i));
        }
        out
    });
    let mut out = String::new();
    for word in stripped.as_deref().unwrap_or(text).split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out.truncate(out.floor_char_boundary(most));
    (!out.is_empty()).then_some(out)
}

/// The text below an element in one line, at most `most` bytes. Elements inside of each other have the same text, so a
/// long one is not read to its end for each.
pub fn text_below(dom: &Dom, i: usize, most: usize) -> Option<String> {
    let mut room = most.saturating_mul(16);
    let mut out = String::new();
    let mut is_apart = false;
    for j in i..dom.end(i) {
        let text = dom.text(j);
        let text = &text[..text.floor_char_boundary(room.min(text.len()))];
        room -= text.len();
        for c in text.chars() {
            if c.is_whitespace() {
                is_apart = !out.is_empty();
                continue;
            }
            if std::mem::take(&mut is_apart) {
                out.push(' ');
            }
            out.push(c);
        }
        if room == 0 || out.len() > most {
            break;
        }
    }
    out.truncate(out.floor_char_boundary(most.min(out.len())));
    (!out.is_empty()).then_some(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_lead_to_what_they_name_and_terms_may_be_written_whole() {
        let roots = [json!({"@graph": [
            {"@type": "WebPage", "mainEntity": {"@id": "#p"}},
            {"@id": "#p", "@type": ["Thing", "schema:Product"], "schema:name": "A &amp; <b>B</b>",
                "brand": {"@id": "#b"}, "offers": {"@list": [{"price": 1}, {"price": 2}]}},
            {"@id": "#b", "name": "Brand"},
        ]})];
        let things = Things::new(&roots);
        let top = things.top();
        let product = top.iter().copied().find(|thing| is_a(thing, &["Product"])).expect("a product");
        assert_eq!(top.len(), 4, "each once");
        assert_eq!(things.text(product, "name", 100).as_deref(), Some("A & B"));
        assert_eq!(things.text(product, "brand", 100).as_deref(), Some("Brand"));
        assert_eq!(things.things(product, "offers").len(), 2);
    }

    #[test]
    fn texts_are_plain_and_bounded() {
        assert_eq!(plain("<p>one</p><p>two&nbsp;three</p>", 100).as_deref(), Some("one two three"));
        assert_eq!(plain(" ä ä ", 3).as_deref(), Some("ä "));
        assert_eq!(plain("<i> </i>", 10), None);
        let dom = guard::parse("<p> a<b>b</b>\n c &lt; <i>d</i></p>").dom;
        assert_eq!(text_below(&dom, 0, 100).as_deref(), Some("ab c < d"));
        assert_eq!(text_below(&dom, 0, 2).as_deref(), Some("ab"));
    }

    #[test]
    fn what_refers_to_itself_ends() {
        let roots = [json!({"@id": "#a", "@type": "Product", "mainEntity": {"@id": "#a"}, "@graph": [{"@id": "#a"}]})];
        assert_eq!(Things::new(&roots).top().len(), 1);
    }
}
