//! The styles of a document: which paragraphs are headings, items, quotes or programs, and how text looks.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::html::Style as Look;
use crate::word::depth_of_style;
use crate::xml::Element;

/// How many styles one may be based on, through others.
const MAX_BASES: usize = 20;
/// Longest id of a style or list, bytes; ids are looked up for every paragraph.
pub const MAX_ID: usize = 256;

#[derive(Debug, Default)]
struct Style {
    name: String,
    base: Option<String>,
    outline: Option<usize>,
    /// The number of its list.
    list: Option<String>,
    /// The level in it, which may be of another list than the style's own.
    list_level: Option<usize>,
    look: Marks,
}

/// What is said of text; nothing where it is as in the style it is based on.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    bold: Option<bool>,
    italic: Option<bool>,
    strike: Option<bool>,
    hidden: Option<bool>,
}

/// What a paragraph is, besides headings and items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    Plain,
    Quote,
    Code,
}

/// All styles, by id.
#[derive(Debug, Default)]
pub struct Styles {
    styles: HashMap<String, Style>,
    default_paragraph: String,
}

fn is_on(properties: Element<'_>, name: &str) -> Option<bool> {
    let element = properties.child(name)?;
    Some(!element.attr("val").is_some_and(|value| matches!(&*value, "0" | "false" | "off" | "none")))
}

fn marks(properties: Element<'_>) -> Marks {
    let strike = is_on(properties, "strike").or_else(|| is_on(properties, "dstrike"));
    Marks { bold: is_on(properties, "b"), italic: is_on(properties, "i"), strike, hidden: is_on(properties, "vanish") }
}

impl Styles {
    /// Reads them.
    pub fn read(root: Element<'_>) -> Self {
        let mut out = Self::default();
        for element in root.children().filter(|element| element.name() == "style") {
            let short = |id: Cow<'_, str>| Some(id.into_owned()).filter(|id| id.len() <= MAX_ID);
            let Some(id) = element.attr("styleId").and_then(short) else { continue };
            let value = |name| element.child(name).and_then(|e| e.attr("val")).and_then(short);
            let paragraph = element.child("pPr");
            let list = paragraph.and_then(|p| p.child("numPr"));
            let style = Style {
                name: value("name").unwrap_or_default().to_lowercase(),
                base: value("basedOn"),
                outline: paragraph.and_then(|p| p.child("outlineLvl")).and_then(|level| level.number("val")),
                list: list.and_then(|list| short(list.child("numId")?.attr("val")?)),
                list_level: list.and_then(|list| list.child("ilvl")?.number("val")),
                look: element.child("rPr").map(marks).unwrap_or_default(),
            };
            let is_default = element.attr("default").is_some_and(|v| matches!(&*v, "1" | "true"));
            if is_default && element.attr("type").is_some_and(|kind| kind == "paragraph") {
                out.default_paragraph.clone_from(&id);
            }
            out.styles.insert(id, style);
        }
        out
    }

    /// The style of paragraphs that name none.
    pub fn default_paragraph(&self) -> &str {
        &self.default_paragraph
    }

    /// A style and those it is based on, nearest first.
    fn chain(&self, id: &str) -> impl Iterator<Item = &Style> {
        let first = self.styles.get(id);
        std::iter::successors(first, |style| self.styles.get(style.base.as_ref()?)).take(MAX_BASES)
    }

    /// The level of headings of this style, from 1.
    pub fn heading_level(&self, id: &str) -> Option<usize> {
        self.chain(id).find_map(|style| {
            if style.name == "title" {
                return Some(Some(1));
            }
            if let Some(level) = style.name.strip_prefix("heading ").and_then(|level| level.parse::<usize>().ok()) {
                return Some(Some(level.clamp(1, 9)));
            }
            style.outline.map(|level| (level < 9).then_some(level + 1))
        })?
    }

    /// The list that paragraphs of this style are in.
    pub fn list(&self, id: &str) -> Option<&str> {
        self.chain(id).find_map(|style| style.list.as_deref())
    }

    /// The level that paragraphs of this style have in a list: as the nearest style says that names one, or else as the
    /// list itself says of a style (`of_list`).
    pub fn list_level(&self, id: &str, of_list: impl Fn(&str) -> Option<usize>) -> Option<usize> {
        let ids = std::iter::successors(Some(id), |id| self.styles.get(*id)?.base.as_deref());
        ids.take(MAX_BASES).find_map(|id| self.styles.get(id)?.list_level.or_else(|| of_list(id)))
    }

    /// How deep items of this style stand by its name.
    pub fn item_depth(&self, id: &str) -> Option<usize> {
        self.chain(id).find_map(|style| depth_of_style(&style.name))
    }

    /// What paragraphs of this style are.
    pub fn block(&self, id: &str) -> Block {
        self.chain(id)
            .find_map(|style| match style.name.as_str() {
                "quote" | "intense quote" | "block text" | "quotations" => Some(Block::Quote),
                "html preformatted" | "source code" | "preformatted text" | "code" | "macro text" | "macro"
                | "plain text" => Some(Block::Code),
                _ => None,
            })
            .unwrap_or(Block::Plain)
    }

    /// How a run looks; `None` if it is hidden. What a paragraph's style says counts for nothing: all of a heading is
    /// bold, and that is not emphasis.
    pub fn of_run(&self, properties: Option<Element<'_>>) -> Option<Look> {
        let Some(properties) = properties else { return Some(Look::default()) };
        let own = marks(properties);
        let style = properties.child("rStyle").and_then(|e| e.attr("val"));
        let from_style = |pick: fn(&Marks) -> Option<bool>| {
            style.as_ref().and_then(|id| self.chain(id).find_map(|style| pick(&style.look)))
        };
        let resolve = |pick: fn(&Marks) -> Option<bool>| pick(&own).or_else(|| from_style(pick)).unwrap_or(false);
        if resolve(|marks| marks.hidden) {
            return None;
        }
        let place = properties.child("vertAlign").and_then(|e| e.attr("val"));
        Some(Look {
            bold: resolve(|marks| marks.bold),
            italic: resolve(|marks| marks.italic),
            strike: resolve(|marks| marks.strike),
            sup: place.as_deref() == Some("superscript"),
            sub: place.as_deref() == Some("subscript"),
            link: None,
        })
    }
}
