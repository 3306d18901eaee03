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

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::guard;
use super::tree::{Dom, Tag};

/// Most values of one page's data that are looked at.
pub const MAX_VALUES: usize = 200_000;
/// Most top-level things of one page.
const MAX_TOP: usize = 2_000;
/// Most values of one property among which the first that says something is looked for.
const MAX_SAID: usize = 20;
/// Most bytes of texts that are read of one syntax. Things can be named again and again, and each time their texts would be
/// read anew.
const MAX_READ: usize = 16 << 20;
/// What reading a text costs whatever its length, in bytes.
const LEAST_READ: usize = 64;
/// How a term of schema.org may begin when it is written whole.
const PREFIXES: [&str; 3] = ["schema:", "https://schema.org/", "http://schema.org/"];

/// One described thing.
pub type Thing = Map<String, Value>;

/// What a page describes in one syntax.
pub struct Things<'a> {
    roots: &'a [Value],
    by_id: HashMap<&'a str, &'a Thing>,
    /// Bytes of texts that may still be read.
    room: Cell<usize>,
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
        Self { roots, by_id, room: Cell::new(MAX_READ) }
    }

    /// The things that a page is about, and not those that belong to others or stand in a list.
    pub fn top(&self) -> Vec<&'a Thing> {
        let mut found: Vec<&'a Thing> = Vec::new();
        let mut seen: HashSet<*const Thing> = HashSet::new();
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
                    if !seen.insert(thing) {
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

    /// The things that are values of a property, each once: one that is named twice is one thing.
    pub fn things(&self, thing: &'a Thing, name: &str) -> Vec<&'a Thing> {
        let mut seen: HashSet<*const Thing> = HashSet::new();
        let things = self.values(thing, name).iter().take(MAX_TOP).filter_map(|value| self.resolved(value));
        things.filter(|thing| seen.insert(*thing)).collect()
    }

    /// What `read` makes of the first value of a property of which it makes something.
    pub fn first<T>(&self, thing: &'a Thing, name: &str, read: impl FnMut(&'a Value) -> Option<T>) -> Option<T> {
        self.values(thing, name).iter().take(MAX_SAID).find_map(read)
    }

    /// The first value of a property as plain text of at most `most` bytes; of a thing, its name.
    pub fn text(&self, thing: &'a Thing, name: &str, most: usize) -> Option<String> {
        self.first(thing, name, |value| self.text_of(value, most))
    }

    /// A value as plain text; of a thing, its name.
    pub fn text_of(&self, value: &'a Value, most: usize) -> Option<String> {
        if let Value::Object(_) = value {
            let thing = self.resolved(value)?;
            let own = ["@value", "name"].iter().flat_map(|name| self.values(thing, name).iter().take(MAX_SAID));
            return own.filter(|value| !value.is_object()).find_map(|value| self.scalar(value, most));
        }
        self.scalar(value, most)
    }

    /// [`scalar`], as long as there is room for texts.
    fn scalar(&self, value: &Value, most: usize) -> Option<String> {
        let length = value.as_str().map_or(0, |text| text.len().min(longest(most)));
        self.room.set(self.room.get().checked_sub(length + LEAST_READ)?);
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

/// Bytes of a text that are read for `most` bytes of what it says: markup is more than its text, and what is cut off is not to
/// be read first.
const fn longest(most: usize) -> usize {
    most.saturating_mul(8)
}

/// Text without markup, in one line, at most `most` bytes.
pub fn plain(text: &str, most: usize) -> Option<String> {
    let text = &text[..text.floor_char_boundary(longest(most).min(text.len()))];
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
    let mut left = usize::MAX;
    text_below_within(dom, i, most, &mut left)
}

/// The same, of at most `left` bytes of text, from which it takes what it has looked at.
pub fn text_below_within(dom: &Dom, i: usize, most: usize, left: &mut usize) -> Option<String> {
    let mut room = most.saturating_mul(16).min(*left);
    let mut out = String::new();
    let mut is_apart = false;
    for j in i..dom.end(i) {
        let text = dom.text(j);
        let text = &text[..text.floor_char_boundary(room.min(text.len()))];
        (room, *left) = (room - text.len(), *left - text.len());
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
    fn a_thing_that_is_named_again_and_again_is_one_and_is_read_in_bounds() {
        let named = vec![json!({"@id": "#o"}); 5_000];
        let roots = [
            json!({"@id": "#p", "@type": "Product", "offers": named}),
            json!({"@id": "#o", "sku": vec!["<i>"; 50_000], "name": "x".repeat(8_000), "offers": named}),
        ];
        let things = Things::new(&roots);
        let product = things.top()[0];
        let offers = things.things(product, "offers");
        assert_eq!((offers.len(), things.things(offers[0], "offers").len()), (1, 1));
        assert_eq!(things.text(offers[0], "sku", 100), None, "no value of the first says anything");
        let read = (0..MAX_READ / 800).filter(|_| things.text(offers[0], "name", 100).is_some()).count();
        assert_eq!(read, (MAX_READ - MAX_SAID * (3 + LEAST_READ)) / (800 + LEAST_READ));
    }

    #[test]
    fn what_refers_to_itself_ends() {
        let roots = [json!({"@id": "#a", "@type": "Product", "mainEntity": {"@id": "#a"}, "@graph": [{"@id": "#a"}]})];
        assert_eq!(Things::new(&roots).top().len(), 1);
    }
}
