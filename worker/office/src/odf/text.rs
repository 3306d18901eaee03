//! The text of OpenDocument files: paragraphs, headings, lists, tables and notes, the same in documents and on slides.

use std::collections::HashMap;

use super::{MAX_NAME, Styles};
use crate::Limits;
use crate::html::{Blocks, Cell, Inline, Item, Style, outside};
use crate::word::level_of_item;
use crate::xml::{Content, Element};

/// How often a row or cell may be repeated.
const MAX_REPEATS: usize = 64;
/// Columns of a row.
const MAX_CELLS: usize = 1024;

/// Reads text.
#[derive(Debug)]
pub struct Text<'a> {
    pub styles: &'a Styles,
    limits: &'a Limits,
    /// Notes so far, as HTML.
    pub notes: Vec<String>,
    /// Numbers that lists of a style have reached, by level.
    reached: HashMap<(String, usize), u64>,
    lists: u64,
    /// The last list of each style, which a later one may go on with.
    going: HashMap<String, u64>,
    in_note: bool,
}

/// The list that paragraphs are in.
#[derive(Clone, Copy, Debug)]
struct OpenList<'n> {
    style: &'n str,
    level: usize,
    list: u64,
}

impl<'a> Text<'a> {
    /// Reads text with these styles.
    pub fn new(styles: &'a Styles, limits: &'a Limits) -> Self {
        Self {
            styles,
            limits,
            notes: Vec::new(),
            reached: HashMap::new(),
            lists: 0,
            going: HashMap::new(),
            in_note: false,
        }
    }

    /// Writes what stands in an element.
    pub fn blocks(&mut self, parent: Element<'_>, out: &mut Blocks) {
        for element in parent.children() {
            if out.is_full() {
                return;
            }
            self.block(element, out);
        }
    }

    /// Writes what stands in a shape.
    pub fn shape(&mut self, element: Element<'_>, out: &mut Blocks) {
        self.block(element, out);
    }

    fn block(&mut self, element: Element<'_>, out: &mut Blocks) {
        match element.name() {
            "p" | "h" => self.paragraph(element, None, out),
            "list" => self.list(element, None, out),
            "table" => self.table(element, out),
            "section" | "index-body" | "index-title" | "table-of-content" | "alphabetical-index" | "bibliography"
            | "illustration-index" | "table-index" | "user-index" | "object-index" | "text-box" | "g"
            | "custom-shape" | "rect" | "ellipse" => self.blocks(element, out),
            "frame" => {
                if let Some(content) = element.children().find(|e| matches!(e.name(), "text-box" | "table")) {
                    self.block(content, out);
                } else {
                    // Of a picture or a chart what is said of it in words.
                    let words = element.child("desc").or_else(|| element.child("title")).map(Element::text);
                    out.picture(words.as_deref());
                }
            }
            _ => {}
        }
    }

    fn paragraph(&mut self, element: Element<'_>, item: Option<Item>, out: &mut Blocks) {
        let name = element.attr("style-name").unwrap_or_default();
        let mut inline = Inline::default();
        let mut frames = Vec::new();
        let is_heading = element.name() == "h";
        let look = if is_heading { Style::default() } else { self.styles.of_paragraph(&name) };
        self.inline(element, &look, &mut inline, &mut frames);
        let level = if is_heading {
            Some(element.number::<usize>("outline-level").unwrap_or(1))
        } else {
            self.styles.heading_level(&name)
        };
        match (level, item) {
            (Some(level), _) => out.heading(level, inline),
            (None, Some(item)) => {
                let level = level_of_item(item.level, self.styles.item_depth(&name));
                out.item(Item { level, ..item }, inline);
            }
            (None, None) if self.styles.is_code(&name) && !inline.is_blank() => {
                let mut text = String::new();
                plain(element, &mut text);
                out.preformatted(&text);
            }
            (None, None) if self.styles.is_quote(&name) => out.quote(inline),
            (None, None) => out.paragraph(inline),
        }
        for frame in frames {
            self.block(frame, out);
        }
    }

    fn inline<'t>(&mut self, parent: Element<'t>, style: &Style, inline: &mut Inline, frames: &mut Vec<Element<'t>>) {
        for content in parent.contents() {
            let element = match content {
                Content::Text(text) => {
                    inline.push(&text, style);
                    continue;
                }
                Content::Element(element) => element,
            };
            match element.name() {
                "span" => {
                    let name = element.attr("style-name").unwrap_or_default();
                    if let Some(look) = self.styles.of_text(&name, style) {
                        self.inline(element, &look, inline, frames);
                    }
                }
                "a" => {
                    let target = element.attr("href").and_then(|href| outside(&href));
                    let look = Style { link: target.or_else(|| style.link.clone()), ..style.clone() };
                    self.inline(element, &look, inline, frames);
                }
                "s" | "tab" => inline.push(" ", style),
                "line-break" => inline.line_break(),
                "note" => self.note(element, inline),
                "frame" | "custom-shape" | "g" | "rect" => frames.push(element),
                "annotation" | "annotation-end" | "tracked-changes" | "ruby-text" | "note-citation" | "script"
                | "forms" | "soft-page-break" => {}
                _ => self.inline(element, style, inline, frames),
            }
        }
    }

    fn note(&mut self, note: Element<'_>, inline: &mut Inline) {
        let Some(body) = note.child("note-body") else { return };
        if std::mem::replace(&mut self.in_note, true) {
            return;
        }
        let mut blocks = Blocks::new(self.limits);
        self.blocks(body, &mut blocks);
        self.in_note = false;
        self.notes.push(blocks.finish_inner());
        inline.push_html(&format!("<sup>{}</sup>", self.notes.len()));
    }

    fn list(&mut self, element: Element<'_>, around: Option<OpenList<'_>>, out: &mut Blocks) {
        let own = element.attr("style-name").filter(|name| name.len() <= MAX_NAME);
        let name = own.as_deref().or(around.map(|place| place.style)).unwrap_or_default().to_owned();
        let level = around.map_or(0, |place| place.level + 1);
        let goes_on =
            element.attr("continue-numbering").is_some_and(|v| v == "true") || element.attr("continue-list").is_some();
        let key = (name.clone(), level);
        let start = self.styles.level(&name, level).1;
        if !goes_on || !self.reached.contains_key(&key) {
            self.reached.insert(key.clone(), start.saturating_sub(1));
        }
        let list = around.map(|place| place.list).or(self.going.get(&name).copied().filter(|_| goes_on));
        let list = list.unwrap_or_else(|| {
            self.lists += 1;
            self.lists
        });
        if around.is_none() {
            self.going.insert(name.clone(), list);
        }
        let place = OpenList { style: &name, level, list };
        for item in element.children().filter(|item| matches!(item.name(), "list-item" | "list-header")) {
            if let Some(start) = item.number::<u64>("start-value") {
                self.reached.insert(key.clone(), start.saturating_sub(1));
            }
            self.item(item, place, out);
        }
    }

    fn item(&mut self, item: Element<'_>, place: OpenList<'_>, out: &mut Blocks) {
        // What follows the first paragraph of an item stands under it without a number of its own.
        let mut is_first = item.name() == "list-item";
        for element in item.children() {
            match element.name() {
                "list" => self.list(element, Some(place), out),
                "p" | "h" if std::mem::take(&mut is_first) => {
                    let (ordered, _) = self.styles.level(place.style, place.level);
                    let reached = self.reached.entry((place.style.to_owned(), place.level)).or_default();
                    *reached = reached.saturating_add(1);
                    let number = Some(*reached);
                    let list = place.list * 2 + u64::from(ordered);
                    self.paragraph(element, Some(Item { level: place.level, ordered, list, number }), out);
                }
                _ => self.block(element, out),
            }
        }
    }

    fn table(&mut self, element: Element<'_>, out: &mut Blocks) {
        let mut rows = Vec::new();
        self.rows(element, &mut rows);
        out.table(&rows);
    }

    fn rows(&mut self, parent: Element<'_>, rows: &mut Vec<Vec<Cell>>) {
        for element in parent.children() {
            match element.name() {
                "table-header-rows" | "table-rows" | "table-row-group" => self.rows(element, rows),
                "table-row" => {
                    let mut row: Vec<Cell> = Vec::new();
                    for cell in element.children().filter(|cell| cell.name().ends_with("table-cell")) {
                        let mut blocks = Blocks::new(self.limits);
                        if cell.name() == "table-cell" {
                            self.blocks(cell, &mut blocks);
                        }
                        let html = blocks.finish_inner();
                        let repeats = cell.number("number-columns-repeated").unwrap_or(1).min(MAX_REPEATS);
                        let repeats = if html.is_empty() { repeats } else { 1 };
                        for _ in 0..repeats {
                            if row.len() < MAX_CELLS {
                                row.push(Cell { html: html.clone(), columns: 1 });
                            }
                        }
                    }
                    if row.iter().any(|cell| !cell.html.is_empty()) {
                        rows.push(row);
                    }
                }
                _ => {}
            }
        }
    }
}

/// A paragraph's text with its spaces, for what is preformatted.
fn plain(parent: Element<'_>, out: &mut String) {
    for content in parent.contents() {
        match content {
            Content::Text(text) => out.push_str(&text),
            Content::Element(element) => match element.name() {
                "s" => out.push_str(&" ".repeat(element.number("c").unwrap_or(1).min(200))),
                "tab" => out.push_str("    "),
                "line-break" => out.push('\n'),
                "note" | "frame" | "annotation" => {}
                _ => plain(element, out),
            },
        }
    }
}
