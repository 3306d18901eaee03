//! PowerPoint presentations since 2007.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::{Line, hidden, lines, notes_heading, title};
use crate::archive::Archive;
use crate::html::{Blocks, Cell, Inline, Style, outside};
use crate::package::{self, Relations};
use crate::text::decode_xml;
use crate::xml::{Element, Tree};
use crate::{ConvertError, Converted, Limits};

/// Makes HTML of a presentation.
///
/// # Errors
/// As [`ConvertError`] says.
pub fn convert(bytes: &[u8], limits: &Limits) -> Result<Converted, ConvertError> {
    let mut archive = Archive::open(bytes, limits)?;
    let (main, mut converted) = package::open(&mut archive, "ppt/presentation.xml", limits)?;
    let source = decode_xml(archive.need(&main)?);
    let presentation = Tree::read(&source, &main, limits)?;
    let relations = Relations::of(&mut archive, &main, limits)?;
    let mut blocks = Blocks::new(limits);
    let mut count = 0;
    let mut hidden_slides = 0;
    let ids = presentation.root().child("sldIdLst");
    // A slide that is listed again and again is not written each time.
    let mut seen = HashSet::new();
    let mut layouts: HashMap<String, Rc<Bullets>> = HashMap::new();
    for id in ids.into_iter().flat_map(Element::children) {
        let Some(relation) = id.prefixed("id").and_then(|id| relations.get(&id)) else { continue };
        if relation.is_outside || blocks.is_full() || !seen.insert(relation.target.clone()) {
            continue;
        }
        let source = decode_xml(archive.need(&relation.target)?);
        let tree = Tree::read(&source, &relation.target, limits)?;
        if tree.root().attr("show").is_some_and(|show| matches!(&*show, "0" | "false")) {
            hidden_slides += 1;
            continue;
        }
        count += 1;
        let targets = Relations::of(&mut archive, &relation.target, limits)?;
        let layout = targets.of_kind("slideLayout").unwrap_or_default();
        if !layouts.contains_key(layout) {
            let bullets = match archive.read(layout)? {
                Some(source) => Bullets::of_layout(&decode_xml(source), limits),
                None => Bullets::default(),
            };
            layouts.insert(layout.to_owned(), Rc::new(bullets));
        }
        let bullets = layouts.get(layout).cloned().unwrap_or_default();
        let notes = targets.of_kind("notesSlide").map(str::to_owned);
        Slide { relations: &targets, bullets, limits, boxes: 0 }.write(tree.root(), count, &mut blocks);
        if let Some(name) = notes
            && let Some(source) = archive.read(&name)?.map(decode_xml)
        {
            let tree = Tree::read(&source, &name, limits)?;
            let relations = Relations::of(&mut archive, &name, limits)?;
            Slide { relations: &relations, bullets: Rc::new(Bullets::none()), limits, boxes: 0 }
                .notes(tree.root(), &mut blocks);
        }
    }
    hidden(hidden_slides, &mut converted.warnings);
    converted.pages = u32::try_from(count).ok();
    blocks.document(limits, converted)
}

/// Whether the texts of a slide's placeholders have bullets, where they say nothing themselves.
#[derive(Debug, Default)]
struct Bullets {
    /// Those without, by the index of their placeholder.
    without: Vec<String>,
    is_none: bool,
}

impl Bullets {
    fn none() -> Self {
        Self { without: Vec::new(), is_none: true }
    }

    fn of_layout(source: &str, limits: &Limits) -> Self {
        let mut out = Self::default();
        let Ok(tree) = Tree::read(source, "layout", limits) else { return out };
        for shape in tree.root().descendants().filter(|element| element.name() == "sp") {
            let Some(index) = placeholder(shape).and_then(|ph| ph.attr("idx")) else { continue };
            let first = shape.at(&["txBody", "lstStyle", "lvl1pPr"]);
            if first.is_some_and(|level| level.child("buNone").is_some()) {
                out.without.push(index.into_owned());
            }
        }
        out
    }

    fn has(&self, shape: Element<'_>) -> bool {
        let Some(holder) = placeholder(shape) else { return false };
        let kind = holder.attr("type");
        let is_body = matches!(kind.as_deref(), None | Some("body" | "obj"));
        let index = holder.attr("idx");
        is_body && !self.is_none && !index.is_some_and(|index| self.without.iter().any(|without| *without == *index))
    }
}

/// What is said of a picture or a chart in words.
fn picture(shape: Element<'_>, out: &mut Blocks) {
    let named = shape.children().find(|element| element.name().starts_with("nv"));
    let words = named.and_then(|named| named.child("cNvPr")?.attr("descr"));
    out.picture(words.as_deref());
}

fn placeholder(shape: Element<'_>) -> Option<Element<'_>> {
    shape.children().find(|element| element.name().starts_with("nv"))?.at(&["nvPr", "ph"])
}

struct Slide<'a> {
    relations: &'a Relations,
    bullets: Rc<Bullets>,
    limits: &'a Limits,
    /// Boxes written so far, which tells their lists apart.
    boxes: u64,
}

impl Slide<'_> {
    fn write(&mut self, root: Element<'_>, number: usize, out: &mut Blocks) {
        let Some(shapes) = root.at(&["cSld", "spTree"]) else { return };
        let is_title = |shape: &Element<'_>| {
            let kind = placeholder(*shape).and_then(|ph| ph.attr("type"));
            matches!(kind.as_deref(), Some("title" | "ctrTitle"))
        };
        let found = shapes.descendants().find(|element| element.name() == "sp" && is_title(element));
        let heading = found.and_then(|shape| shape.child("txBody")).map(|body| {
            let mut inline = Inline::default();
            for (n, paragraph) in body.children().filter(|e| e.name() == "p").enumerate() {
                if n > 0 {
                    inline.push(" ", &Style::default());
                }
                self.runs(paragraph, &mut inline, false);
            }
            inline
        });
        title(heading, number, out);
        self.shapes(shapes, out);
    }

    fn shapes(&mut self, parent: Element<'_>, out: &mut Blocks) {
        for shape in parent.children() {
            match shape.name() {
                "sp" => {
                    let kind = placeholder(shape).and_then(|ph| ph.attr("type"));
                    // Titles are headings; dates, numbers and footers are the same on every slide.
                    if matches!(kind.as_deref(), Some("title" | "ctrTitle" | "dt" | "sldNum" | "ftr" | "hdr")) {
                        continue;
                    }
                    if let Some(body) = shape.child("txBody") {
                        let has_bullets = self.bullets.has(shape);
                        self.text(body, has_bullets, out);
                    }
                }
                "grpSp" => self.shapes(shape, out),
                "graphicFrame" => match shape.at(&["graphic", "graphicData", "tbl"]) {
                    Some(table) => self.table(table, out),
                    None => picture(shape, out),
                },
                "pic" => picture(shape, out),
                "AlternateContent" => {
                    if let Some(choice) = shape.child("Choice").or_else(|| shape.child("Fallback")) {
                        self.shapes(choice, out);
                    }
                }
                _ => {}
            }
        }
    }

    fn notes(&mut self, root: Element<'_>, out: &mut Blocks) {
        let bodies = root.descendants().filter(|shape| {
            shape.name() == "sp" && placeholder(*shape).and_then(|ph| ph.attr("type")).as_deref() == Some("body")
        });
        let bodies: Vec<Element<'_>> = bodies.filter_map(|shape| shape.child("txBody")).collect();
        if bodies.iter().any(|body| !body.text().trim().is_empty()) {
            notes_heading(out);
            for body in bodies {
                self.text(body, false, out);
            }
        }
    }

    fn text(&mut self, body: Element<'_>, has_bullets: bool, out: &mut Blocks) {
        self.boxes += 1;
        let mut found = Vec::new();
        for paragraph in body.children().filter(|element| element.name() == "p") {
            let properties = paragraph.child("pPr");
            let level = properties.and_then(|p| p.number::<usize>("lvl")).unwrap_or(0).min(8);
            let says = |name: &str| properties.is_some_and(|p| p.child(name).is_some());
            let is_numbered = says("buAutoNum");
            let is_item = is_numbered || says("buChar") || says("buBlip") || (has_bullets && !says("buNone"));
            let mut inline = Inline::default();
            self.runs(paragraph, &mut inline, true);
            found.push(Line { inline, item: is_item.then_some((level, is_numbered)) });
        }
        // One text alone is a paragraph, also where its placeholder would make a list of several.
        let texts = found.iter().filter(|line| !line.inline.is_blank()).count();
        if texts == 1 && has_bullets {
            for line in &mut found {
                line.item = line.item.filter(|(level, numbered)| *level > 0 || *numbered);
            }
        }
        lines(found, self.boxes, out);
    }

    fn runs(&self, paragraph: Element<'_>, inline: &mut Inline, has_style: bool) {
        for run in paragraph.children() {
            match run.name() {
                "r" | "fld" => {
                    let properties = run.child("rPr");
                    let is_on = |name: &str| {
                        has_style && properties.and_then(|p| p.attr(name)).is_some_and(|v| matches!(&*v, "1" | "true"))
                    };
                    let shift = properties.and_then(|p| p.number::<i32>("baseline")).unwrap_or(0);
                    let strike = properties.and_then(|p| p.attr("strike"));
                    let link = properties
                        .and_then(|p| p.child("hlinkClick"))
                        .and_then(|click| self.relations.get(&click.prefixed("id")?))
                        .filter(|relation| relation.is_outside)
                        .and_then(|relation| outside(&relation.target));
                    let style = Style {
                        bold: is_on("b"),
                        italic: is_on("i"),
                        strike: strike.is_some_and(|strike| strike != "noStrike"),
                        sup: shift > 0,
                        sub: shift < 0,
                        link,
                    };
                    if let Some(text) = run.child("t") {
                        inline.push(&text.text().replace('\u{b}', " "), &style);
                    }
                }
                "br" => inline.line_break(),
                "m" | "AlternateContent" => {
                    let formula: String = run.descendants().filter(|e| e.name() == "t").map(Element::text).collect();
                    inline.push(&formula, &Style::default());
                }
                _ => {}
            }
        }
    }

    fn table(&mut self, table: Element<'_>, out: &mut Blocks) {
        let mut rows = Vec::new();
        for row in table.children().filter(|element| element.name() == "tr") {
            let mut cells = Vec::new();
            for cell in row.children().filter(|element| element.name() == "tc") {
                // A cell that another one covers is part of that one's columns.
                if cell.attr("hMerge").is_some_and(|merged| matches!(&*merged, "1" | "true")) {
                    continue;
                }
                let mut blocks = Blocks::new(self.limits);
                if let Some(body) = cell.child("txBody") {
                    self.text(body, false, &mut blocks);
                }
                let columns = cell.number("gridSpan").unwrap_or(1);
                cells.push(Cell { html: blocks.finish_inner(), columns });
            }
            rows.push(cells);
        }
        out.table(&rows);
    }
}
