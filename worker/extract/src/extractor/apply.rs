//! An extractor on a page.
//!
//! Besides the values it tells where they stood: the way to the element, and what stands before it. Who has seen several
//! pages of a template knows by that when one is of another.

use std::collections::BTreeMap;
use std::time::Duration;

use scraper::{ElementRef, Selector};
use serde_json::{Map, Value};

use super::{Extractor, Leaf, Node, Take, steps};
use crate::guard::Clock;
use crate::select::Tree;
use crate::sketch;
use crate::tree::{Dom, Tag};
use crate::{Page, clean_html, markdown};

/// Processor time of one page.
const TIME_BUDGET: Duration = Duration::from_millis(400);
/// Elements that are held against selectors between looks at the clock: one look costs as much as some hundred of them,
/// and one that counts its siblings may cost as much as all of those.
const CLOCK_EVERY: usize = 64;
/// Most elements that are held against selectors.
const MAX_TESTS: usize = 4_000_000;
/// Most items of one list, most values, and most bytes of them.
const MAX_ITEMS: usize = 2_000;
const MAX_VALUES: usize = 50_000;
const MAX_BYTES: usize = 2 << 20;
/// Longest value, bytes.
const MAX_VALUE: usize = 200_000;
/// Longest words before a value that are a mark of it, bytes.
const MAX_LABEL: usize = 60;
/// Elements of the way to a value.
const WAY: usize = 4;

/// What an extractor makes of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// Null where nothing was found.
    pub value: Value,
    /// Where values stood, by their place: a JSON pointer in which items of lists are `*`. Of a list the first one's.
    pub marks: BTreeMap<String, Mark>,
}

/// Where a value stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// A digest of the element's name and classes and of those around it.
    pub way: u32,
    /// The words of the element before it, if they are few.
    pub label: String,
}

/// The page, or the extractor on it, would cost too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMuch;

impl Page {
    /// Reads what the extractor names.
    ///
    /// # Errors
    /// When that takes more time or room than a page may take.
    pub fn apply(&self, extractor: &Extractor) -> Result<Applied, TooMuch> {
        let mut run = Run {
            page: self,
            tree: Tree::of(&self.dom),
            clock: Clock::start(TIME_BUDGET),
            tests: 0,
            values: 0,
            bytes: 0,
            marks: BTreeMap::new(),
        };
        let value = run.node(&extractor.root, 0, "")?;
        Ok(Applied { value, marks: run.marks })
    }
}

struct Run<'a> {
    page: &'a Page,
    tree: Tree,
    clock: Clock,
    tests: usize,
    values: usize,
    bytes: usize,
    marks: BTreeMap<String, Mark>,
}

impl Run<'_> {
    fn dom(&self) -> &Dom {
        &self.page.dom
    }

    /// The nesting is that of the form, which is bounded.
    fn node(&mut self, node: &Node, scope: usize, place: &str) -> Result<Value, TooMuch> {
        match node {
            Node::Object { within, fields } => {
                let scope = match within {
                    None => scope,
                    Some(within) => match self.find(within, scope, 0)? {
                        Some(found) => found,
                        None => return Ok(Value::Null),
                    },
                };
                let mut object = Map::with_capacity(fields.len());
                for (name, field) in fields {
                    let value = self.node(field, scope, &format!("{place}/{}", escaped(name)))?;
                    object.insert(name.clone(), value);
                }
                Ok(Value::Object(object))
            }
            Node::List { each, item } => {
                let mut list = Vec::new();
                let mut from = scope + 1;
                while let Some(found) = self.next(each, scope, from)? {
                    from = found + 1;
                    let value = self.node(item, found, &format!("{place}/*"))?;
                    if !is_empty(&value) {
                        list.push(value);
                    }
                    if list.len() > MAX_ITEMS {
                        return Err(TooMuch);
                    }
                }
                Ok(Value::Array(list))
            }
            Node::Leaf(leaf) => self.leaf(leaf, scope, place),
        }
    }

    fn leaf(&mut self, leaf: &Leaf, scope: usize, place: &str) -> Result<Value, TooMuch> {
        self.values += 1;
        if self.values > MAX_VALUES || self.clock.is_over() {
            return Err(TooMuch);
        }
        let found = match &leaf.select {
            None => Some(scope),
            Some(select) => self.find(select, scope, leaf.at)?,
        };
        let taken = match found {
            Some(i) => self.take(&leaf.take, i),
            None if leaf.take == Take::Exists => Some(Value::Bool(false)),
            None => None,
        };
        if let Some(Value::String(text)) = &taken {
            self.bytes += text.len();
            if text.len() > MAX_VALUE || self.bytes > MAX_BYTES {
                return Err(TooMuch);
            }
        }
        let value = match taken {
            Some(value) => steps::take(&leaf.steps, value, &self.page.addresses, &self.clock)?,
            None => Value::Null,
        };
        if !value.is_null()
            && let Some(i) = found
            && !self.marks.contains_key(place)
        {
            let mark = self.mark(i);
            self.marks.insert(place.to_owned(), mark);
        }
        Ok(if value.is_null() { leaf.default.clone() } else { value })
    }

    /// The element of that number below `scope`.
    fn find(&mut self, selector: &Selector, scope: usize, at: i64) -> Result<Option<usize>, TooMuch> {
        let mut found = Vec::new();
        let mut from = scope + 1;
        while let Some(i) = self.next(selector, scope, from)? {
            if at >= 0 && found.len() as i64 == at {
                return Ok(Some(i));
            }
            from = i + 1;
            found.push(i);
        }
        let place = found.len() as i64 + at;
        Ok(if at < 0 { usize::try_from(place).ok().and_then(|place| found.get(place).copied()) } else { None })
    }

    /// The next element from `from` on that is below `scope`.
    fn next(&mut self, selector: &Selector, scope: usize, from: usize) -> Result<Option<usize>, TooMuch> {
        let around = self.tree.element(scope);
        for i in from..self.page.dom.end(scope) {
            let Some(element) = self.tree.element(i) else { continue };
            self.tests += 1;
            if self.tests > MAX_TESTS || (self.tests.is_multiple_of(CLOCK_EVERY) && self.clock.is_over()) {
                return Err(TooMuch);
            }
            if matches(selector, &element, around) {
                return Ok(Some(i));
            }
        }
        Ok(None)
    }

    fn take(&self, take: &Take, i: usize) -> Option<Value> {
        let text = match take {
            Take::Exists => return Some(Value::Bool(true)),
            Take::Text => text_of(self.dom(), i, false),
            Take::Own => text_of(self.dom(), i, true),
            Take::Attribute(name) => self.dom().attr_named(i, name)?.split_whitespace().collect::<Vec<_>>().join(" "),
            Take::Html => self.inner_html(i),
            Take::Markdown => {
                let job = markdown::Job {
                    dom: self.dom(),
                    addresses: &self.page.addresses,
                    dropped: &self.page.measures.invisible,
                    remove_base64_images: true,
                };
                markdown::convert(&job, &[i]).0.trim().to_owned()
            }
        };
        (!text.is_empty()).then(|| text.into())
    }

    fn inner_html(&self, i: usize) -> String {
        let dom = self.dom();
        let inside: Vec<usize> = dom.children(i).collect();
        let (text, _) = clean_html::write(dom, &self.page.addresses, &self.page.measures.invisible, &inside);
        let inner = text.split_once("<body>").and_then(|(_, rest)| rest.strip_suffix("</body></html>"));
        inner.unwrap_or_default().trim().to_owned()
    }

    fn mark(&self, i: usize) -> Mark {
        let dom = self.dom();
        let mut way = 0;
        for j in std::iter::once(i).chain(dom.ancestors(i)).filter(|&j| dom.tag(j).is_element()).take(WAY) {
            way = sketch::joined(way, sketch::name(dom, j));
        }
        let parent = dom.parent(i);
        let before = dom.children(parent).take_while(|&j| j < i).filter(|&j| dom.tag(j).is_element()).last();
        let label = before.map(|j| text_of(dom, j, false)).filter(|text| text.len() <= MAX_LABEL);
        Mark { way, label: label.unwrap_or_default() }
    }
}

fn matches(selector: &Selector, element: &ElementRef<'_>, scope: Option<ElementRef<'_>>) -> bool {
    selector.matches_with_scope(element, scope)
}

/// A part of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Whether there is nothing in a value. What is false is something only where it stands beside something.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.values().all(is_empty),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// The text of an element with single spaces; blocks and line breaks are spaces, too. `own`: only its own, not that of
/// elements inside.
pub(crate) fn text_of(dom: &Dom, i: usize, own: bool) -> String {
    let mut out = String::new();
    let mut put = |text: &str, starts_anew: bool| {
        let begins = starts_anew || text.starts_with(char::is_whitespace);
        if begins && !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
        for (n, word) in text.split_whitespace().enumerate() {
            if n > 0 {
                out.push(' ');
            }
            out.push_str(word);
        }
        if text.ends_with(char::is_whitespace) && !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
    };
    let mut j = i;
    let mut block_end = 0;
    while j < dom.end(i) {
        let tag = dom.tag(j);
        match tag {
            Tag::Text if own && dom.parent(j) != i => {}
            Tag::Text => {
                put(dom.text(j), block_end != 0 && j >= block_end);
                if j >= block_end {
                    block_end = 0;
                }
            }
            Tag::Script | Tag::Style | Tag::Template => {
                j = dom.end(j);
                continue;
            }
            _ if j > i && (tag.is_block() || tag == Tag::Br) => {
                put("", true);
                block_end = block_end.max(dom.end(j));
            }
            _ => {}
        }
        j += 1;
    }
    out.truncate(out.trim_end().len());
    out
}
