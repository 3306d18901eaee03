//! A part of XML as a tree: names without prefixes, texts unescaped when they are asked for. The nodes point into the
//! part, so a tree costs a few times its part. Declarations of documents and entities are skipped: only the five
//! predefined entities and numbers of characters mean anything.

use std::borrow::Cow;

use quick_xml::events::Event;
use quick_xml::reader::Reader;

use crate::{ConvertError, Limits};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Element,
    Text,
    /// As it stands.
    Raw,
    /// `&name;`
    Reference,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    kind: Kind,
    /// Of the tag's inside, or of the text, in the source.
    from: u32,
    to: u32,
    /// The node after the last one inside this one.
    end: u32,
}

/// A part that was read.
#[derive(Debug)]
pub struct Tree<'s> {
    source: &'s str,
    nodes: Vec<Node>,
}

/// One element of a tree.
#[derive(Clone, Copy, Debug)]
pub struct Element<'t> {
    tree: &'t Tree<'t>,
    at: usize,
}

/// What stands directly in an element.
#[derive(Debug)]
pub enum Content<'t> {
    Element(Element<'t>),
    Text(Cow<'t, str>),
}

/// Where an attribute's value lies between quotes is for the library to find; the checks for repeats are left out as
/// they are quadratic.
fn attributes(inside: &str) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
    let name = inside.find(|c: char| c.is_ascii_whitespace()).unwrap_or(inside.len());
    let mut rest = inside.get(name..).unwrap_or_default();
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let (key, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (value, further) = after.get(1..)?.split_once(quote)?;
        rest = further;
        Some((key.trim_end(), unescape(value)))
    })
}

/// A value with its entities and references resolved; one that holds unknown ones is as it stands.
pub fn unescape(value: &str) -> Cow<'_, str> {
    if !value.contains('&') {
        return Cow::Borrowed(value);
    }
    quick_xml::escape::unescape(value).unwrap_or(Cow::Borrowed(value))
}

/// What `&name;` stands for; nothing if that is not known.
pub fn reference(name: &str) -> Cow<'static, str> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => number.parse(),
        };
        return match code.ok().and_then(char::from_u32) {
            Some(c) => Cow::Owned(c.to_string()),
            None => Cow::Borrowed(""),
        };
    }
    Cow::Borrowed(quick_xml::escape::resolve_predefined_entity(name).unwrap_or(""))
}

/// A name without its prefix.
pub fn local(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

impl<'s> Tree<'s> {
    /// Reads a part; `name` is for messages.
    ///
    /// # Errors
    /// When it is not well-formed, too deep or too large.
    pub fn read(source: &'s str, name: &str, limits: &Limits) -> Result<Self, ConvertError> {
        let broken = || ConvertError::broken(format!("{name} is not well-formed XML"));
        if source.len() > limits.tree || u32::try_from(source.len()).is_err() {
            return Err(ConvertError::too_large("bytes in one part", limits.tree));
        }
        let mut reader = Reader::from_str(source);
        reader.config_mut().check_end_names = false;
        let mut nodes: Vec<Node> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        loop {
            let from = reader.buffer_position();
            let event = reader.read_event().map_err(|_| broken())?;
            let to = reader.buffer_position();
            if nodes.len() >= limits.nodes {
                return Err(ConvertError::too_large("elements", limits.nodes));
            }
            // Of `<tag ...>`, `<tag .../>`, `&name;` and `<![CDATA[...]]>`: what is inside.
            let (kind, before, after) = match event {
                Event::Start(_) => (Kind::Element, 1, 1),
                Event::Empty(_) => (Kind::Element, 1, 2),
                Event::Text(_) => (Kind::Text, 0, 0),
                Event::CData(_) => (Kind::Raw, 9, 3),
                Event::GeneralRef(_) => (Kind::Reference, 1, 1),
                Event::End(_) => {
                    let started = open.pop().ok_or_else(broken)?;
                    let end = u32::try_from(nodes.len()).map_err(|_| broken())?;
                    if let Some(node) = nodes.get_mut(started) {
                        node.end = end;
                    }
                    continue;
                }
                Event::Eof => break,
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => continue,
            };
            // Outside of the root element there is only white space.
            if kind != Kind::Element && open.is_empty() {
                continue;
            }
            let is_open = matches!(event, Event::Start(_));
            let number = |n: u64| u32::try_from(n).map_err(|_| broken());
            let at = nodes.len();
            nodes.push(Node {
                kind,
                from: number(from + before)?,
                to: number(to.saturating_sub(after))?,
                end: number(at as u64 + 1)?,
            });
            if is_open {
                if open.len() >= limits.depth {
                    return Err(ConvertError::TooDeep);
                }
                open.push(at);
            }
        }
        if !open.is_empty() || !nodes.first().is_some_and(|node| node.kind == Kind::Element) {
            return Err(broken());
        }
        Ok(Self { source, nodes })
    }

    /// The outermost element.
    pub fn root(&self) -> Element<'_> {
        Element { tree: self, at: 0 }
    }

    fn node(&self, at: usize) -> Option<&Node> {
        self.nodes.get(at)
    }

    fn raw(&self, node: &Node) -> &str {
        self.source.get(node.from as usize..node.to as usize).unwrap_or_default()
    }

    fn text_of(&self, node: &Node) -> Cow<'_, str> {
        match node.kind {
            Kind::Text | Kind::Raw => Cow::Borrowed(self.raw(node)),
            Kind::Reference => reference(self.raw(node)),
            Kind::Element => Cow::Borrowed(""),
        }
    }
}

impl<'t> Element<'t> {
    fn inside(self) -> &'t str {
        self.tree.node(self.at).map_or("", |node| self.tree.raw(node))
    }

    fn end(self) -> usize {
        self.tree.node(self.at).map_or(0, |node| node.end as usize)
    }

    /// Its name with its prefix.
    pub fn full_name(self) -> &'t str {
        let inside = self.inside();
        inside.split(|c: char| c.is_ascii_whitespace()).next().unwrap_or_default()
    }

    /// Its name without its prefix.
    pub fn name(self) -> &'t str {
        local(self.full_name())
    }

    /// An attribute, by its name without its prefix; one without a prefix goes first.
    pub fn attr(self, name: &str) -> Option<Cow<'t, str>> {
        let mut prefixed = None;
        for (key, value) in attributes(self.inside()) {
            if key == name {
                return Some(value);
            }
            if prefixed.is_none() && key.ends_with(name) && local(key) == name {
                prefixed = Some(value);
            }
        }
        prefixed
    }

    /// An attribute with a prefix, by its name without it: relationships are `r:id` beside an `id`.
    pub fn prefixed(self, name: &str) -> Option<Cow<'t, str>> {
        attributes(self.inside()).find(|(key, _)| *key != name && local(key) == name).map(|(_, value)| value)
    }

    /// An attribute that is a number.
    pub fn number<N: std::str::FromStr>(self, name: &str) -> Option<N> {
        self.attr(name)?.trim().parse().ok()
    }

    /// What stands directly in it.
    pub fn contents(self) -> impl Iterator<Item = Content<'t>> {
        let mut next = self.at + 1;
        let end = self.end();
        std::iter::from_fn(move || {
            if next >= end {
                return None;
            }
            let node = self.tree.node(next)?;
            let at = next;
            next = node.end as usize;
            Some(match node.kind {
                Kind::Element => Content::Element(Element { tree: self.tree, at }),
                _ => Content::Text(self.tree.text_of(node)),
            })
        })
    }

    /// The elements directly in it.
    pub fn children(self) -> impl Iterator<Item = Element<'t>> {
        self.contents().filter_map(|content| match content {
            Content::Element(element) => Some(element),
            Content::Text(_) => None,
        })
    }

    /// The first element of that name directly in it.
    pub fn child(self, name: &str) -> Option<Element<'t>> {
        self.children().find(|element| element.name() == name)
    }

    /// The element that a path of names leads to.
    pub fn at(self, path: &[&str]) -> Option<Element<'t>> {
        path.iter().try_fold(self, |element, name| element.child(name))
    }

    /// The elements in it, at any depth.
    pub fn descendants(self) -> impl Iterator<Item = Element<'t>> {
        (self.at + 1..self.end()).filter_map(move |at| {
            let node = self.tree.node(at)?;
            (node.kind == Kind::Element).then_some(Element { tree: self.tree, at })
        })
    }

    /// The first element of that name in it, at any depth.
    pub fn find(self, name: &str) -> Option<Element<'t>> {
        self.descendants().find(|element| element.name() == name)
    }

    /// All its text.
    pub fn text(self) -> String {
        (self.at + 1..self.end()).filter_map(|at| self.tree.node(at)).map(|node| self.tree.text_of(node)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_attributes_and_texts_are_found() {
        let source = "<?xml version='1.0'?><!DOCTYPE a [<!ENTITY x 'boom'>]><w:a id=\"1\" r:id='2' w:b='x &amp; y'>\
            one<w:b/>&lt;&#x41;&x;<![CDATA[<c>]]></w:a>";
        let limits = Limits::default();
        let tree = Tree::read(source, "a.xml", &limits).unwrap();
        let root = tree.root();
        assert_eq!((root.name(), root.full_name()), ("a", "w:a"));
        assert_eq!(root.attr("id").as_deref(), Some("1"));
        assert_eq!(root.prefixed("id").as_deref(), Some("2"));
        assert_eq!(root.attr("b").as_deref(), Some("x & y"));
        assert_eq!(root.text(), "one<A<c>");
        assert_eq!(root.children().count(), 1);
    }

    #[test]
    fn what_is_not_well_formed_or_too_deep_is_refused() {
        let limits = Limits::default();
        for broken in ["", "text", "<a>", "<a></a></a>", "<a <b>"] {
            assert!(matches!(Tree::read(broken, "x", &limits), Err(ConvertError::Broken(_))), "{broken}");
        }
        let deep = "<a>".repeat(300) + &"</a>".repeat(300);
        assert_eq!(Tree::read(&deep, "x", &limits).unwrap_err(), ConvertError::TooDeep);
    }
}
