//! Word documents since 2007. Kept: headings, lists, tables, links, notes, page headers and footers, text boxes, bold,
//! italic and struck text. Left out: pictures, drawings, comments, text that was deleted with changes tracked, and text
//! that is hidden.

mod fields;
mod numbering;
mod styles;

use std::collections::{HashMap, HashSet};

use fields::Fields;
use numbering::Numbering;
use styles::Styles;

use super::{distinct, level_of_item};
use crate::archive::Archive;
use crate::html::{Blocks, Cell, Inline, Item, Style, field_link, outside};
use crate::package::{self, Relations};
use crate::text::decode_xml;
use crate::xml::{Content, Element, Tree};
use crate::{ConvertError, Converted, Limits};

/// The parts besides the text, read once.
struct Context<'t> {
    limits: &'t Limits,
    styles: Styles,
    /// Notes by their kind and id.
    notes: HashMap<(bool, String), Element<'t>>,
}

/// What changes while the parts are read.
#[derive(Default)]
struct Reading {
    numbering: Numbering,
    fields: Fields,
    /// Notes referred to so far, as HTML, in the order of their references.
    notes: Vec<String>,
    /// Their numbers.
    numbers: HashMap<(bool, String), usize>,
    in_note: bool,
}

/// Makes HTML of a document.
///
/// # Errors
/// As [`ConvertError`] says.
pub fn convert(bytes: &[u8], limits: &Limits) -> Result<Converted, ConvertError> {
    let mut archive = Archive::open(bytes, limits)?;
    let (main, converted) = package::open(&mut archive, "word/document.xml", limits)?;
    let source = decode_xml(archive.need(&main)?);
    let relations = Relations::of(&mut archive, &main, limits)?;
    let mut part = |kind: &str| -> Result<Option<String>, ConvertError> {
        let Some(name) = relations.of_kind(kind) else { return Ok(None) };
        Ok(archive.read(name)?.map(decode_xml))
    };
    let (styles, numbering) = (part("styles")?, part("numbering")?);
    let (footnotes, endnotes) = (part("footnotes")?, part("endnotes")?);
    let styles_tree = styles.as_deref().map(|source| Tree::read(source, "styles", limits)).transpose()?;
    let numbering_tree = numbering.as_deref().map(|source| Tree::read(source, "numbering", limits)).transpose()?;
    let foot_tree = footnotes.as_deref().map(|source| Tree::read(source, "footnotes", limits)).transpose()?;
    let end_tree = endnotes.as_deref().map(|source| Tree::read(source, "endnotes", limits)).transpose()?;
    let mut notes = HashMap::new();
    for (tree, is_end) in [(&foot_tree, false), (&end_tree, true)] {
        for note in tree.iter().flat_map(|tree| tree.root().children()) {
            if let Some(id) = note.attr("id") {
                notes.insert((is_end, id.into_owned()), note);
            }
        }
    }
    let context = Context {
        limits,
        styles: styles_tree.as_ref().map(|tree| Styles::read(tree.root())).unwrap_or_default(),
        notes,
    };
    let mut state = Reading {
        numbering: numbering_tree.as_ref().map(|tree| Numbering::read(tree.root())).unwrap_or_default(),
        ..Reading::default()
    };
    let document = Tree::read(&source, &main, limits)?;
    let body = document.root().child("body").ok_or_else(|| ConvertError::broken("it has no body"))?;
    let mut margins = |kind: &str| -> Result<Vec<String>, ConvertError> {
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        for section in body.descendants().filter(|element| element.name() == "sectPr") {
            for reference in section.children().filter(|element| element.name() == kind) {
                let target = reference.prefixed("id").and_then(|id| relations.get(&id).map(|r| r.target.clone()));
                found.extend(target.filter(|target| seen.insert(target.clone())));
            }
        }
        found.truncate(limits.depth);
        let mut parts = Vec::new();
        for name in found {
            let Some(source) = archive.read(&name)?.map(decode_xml) else { continue };
            let relations = Relations::of(&mut archive, &name, limits)?;
            let tree = Tree::read(&source, &name, limits)?;
            let mut blocks = Blocks::new(limits);
            let mut state = Reading::default();
            Reader { context: &context, state: &mut state, relations: &relations }.blocks(tree.root(), &mut blocks);
            parts.push(blocks.finish());
        }
        Ok(distinct(parts).collect())
    };
    let (headers, footers) = (margins("headerReference")?, margins("footerReference")?);
    let mut blocks = Blocks::new(limits);
    for header in headers {
        blocks.push_html(&header);
    }
    Reader { context: &context, state: &mut state, relations: &relations }.blocks(body, &mut blocks);
    blocks.notes(&state.notes);
    for footer in footers {
        blocks.push_html(&footer);
    }
    blocks.document(limits, converted)
}

struct Reader<'a, 't> {
    context: &'a Context<'t>,
    state: &'a mut Reading,
    relations: &'a Relations,
}

/// What a paragraph says of itself.
struct Paragraph {
    style: String,
    level: Option<usize>,
    /// Number of its list and level in it.
    list: Option<(String, usize)>,
}

impl<'t> Reader<'_, 't> {
    fn blocks(&mut self, parent: Element<'t>, out: &mut Blocks) {
        for element in parent.children() {
            if out.is_full() {
                return;
            }
            match element.name() {
                "p" => self.paragraph(element, out),
                "tbl" => self.table(element, out),
                "sdt" | "sdtContent" | "customXml" | "ins" | "moveTo" | "txbxContent" | "smartTag" => {
                    self.blocks(element, out);
                }
                "AlternateContent" => {
                    if let Some(choice) = alternative(element) {
                        self.blocks(choice, out);
                    }
                }
                _ => {}
            }
        }
    }

    fn paragraph(&mut self, element: Element<'t>, out: &mut Blocks) {
        let properties = element.child("pPr");
        let paragraph = self.describe(properties);
        let mut inline = Inline::default();
        let mut boxes = Vec::new();
        self.runs(element, &mut inline, None, &mut boxes);
        self.place(&paragraph, inline, element, out);
        for text_box in boxes {
            self.blocks(text_box, out);
        }
    }

    fn describe(&self, properties: Option<Element<'t>>) -> Paragraph {
        let styles = &self.context.styles;
        let value = |name: &str| properties.and_then(|p| p.child(name)).and_then(|e| e.attr("val"));
        let style = value("pStyle").map_or_else(|| styles.default_paragraph().to_owned(), |s| s.into_owned());
        let outline = value("outlineLvl").and_then(|level| level.parse::<usize>().ok());
        let level = match outline {
            Some(level) => (level < 9).then_some(level + 1),
            None => styles.heading_level(&style),
        };
        let own = properties.and_then(|p| p.child("numPr"));
        let own_level = own.and_then(|n| n.child("ilvl")).and_then(|e| e.number::<usize>("val"));
        let own_list = own.and_then(|n| n.child("numId")).and_then(|e| e.attr("val"));
        let list = own_list.as_deref().or_else(|| styles.list(&style)).filter(|id| *id != "0").map(|id| {
            let of_list = |style: &str| self.state.numbering.level_of(id, style);
            let level = own_level.or_else(|| styles.list_level(&style, of_list)).unwrap_or(0);
            (id.to_owned(), level.min(8))
        });
        Paragraph { style, level, list }
    }

    fn place(&mut self, paragraph: &Paragraph, inline: Inline, element: Element<'t>, out: &mut Blocks) {
        if inline.is_blank() {
            // An empty line in a program is part of it; elsewhere it ends a list.
            out.paragraph(inline);
            return;
        }
        let numbered = paragraph.list.as_ref().and_then(|(id, level)| {
            let place = self.state.numbering.next(id, *level)?;
            Some((place, *level))
        });
        if let Some(level) = paragraph.level {
            let mut headed = Inline::default();
            if let Some((place, _)) = &numbered
                && place.ordered
            {
                headed.push(&format!("{} ", place.text), &Style::default());
            }
            headed.push_html(&inline.finish());
            out.heading(level, headed);
            return;
        }
        if let Some((place, level)) = numbered {
            let level = level_of_item(level, self.context.styles.item_depth(&paragraph.style));
            let item = Item { level, ordered: place.ordered, list: place.list, number: Some(place.number) };
            out.item(item, inline);
            return;
        }
        match self.context.styles.block(&paragraph.style) {
            styles::Block::Code => {
                let mut text = String::new();
                plain(element, &mut text);
                out.preformatted(&text);
            }
            styles::Block::Quote => out.quote(inline),
            styles::Block::Plain => out.paragraph(inline),
        }
    }

    fn runs(&mut self, parent: Element<'t>, inline: &mut Inline, link: Option<&str>, boxes: &mut Vec<Element<'t>>) {
        for element in parent.children() {
            match element.name() {
                "r" => self.run(element, inline, link, boxes),
                "hyperlink" => {
                    let target = element.prefixed("id").and_then(|id| self.relations.get(&id).cloned());
                    let target = target.filter(|relation| relation.is_outside).and_then(|r| outside(&r.target));
                    self.runs(element, inline, target.as_deref().or(link), boxes);
                }
                "fldSimple" => {
                    let target = element.attr("instr").and_then(|instruction| field_link(&instruction));
                    self.runs(element, inline, target.as_deref().or(link), boxes);
                }
                name if is_around_runs(name) => self.runs(element, inline, link, boxes),
                "AlternateContent" => {
                    if let Some(choice) = alternative(element) {
                        self.runs(choice, inline, link, boxes);
                    }
                }
                "oMath" | "oMathPara" => {
                    let formula: String = element.descendants().filter(|e| e.name() == "t").map(|e| e.text()).collect();
                    inline.push(&formula, &Style::default());
                }
                _ => {}
            }
        }
    }

    fn run(&mut self, element: Element<'t>, inline: &mut Inline, link: Option<&str>, boxes: &mut Vec<Element<'t>>) {
        let properties = element.child("rPr");
        let Some(mut style) = self.context.styles.of_run(properties) else {
            // Hidden text; fields go on through it.
            for part in element.children().filter(|part| matches!(part.name(), "fldChar" | "instrText")) {
                self.field(part);
            }
            return;
        };
        for part in element.children() {
            let is_code = self.state.fields.is_in_code();
            style.link = link.map(str::to_owned).or_else(|| self.state.fields.link());
            match part.name() {
                "fldChar" | "instrText" => self.field(part),
                _ if is_code => {}
                "t" => inline.push(&part.text(), &style),
                "tab" | "ptab" => inline.push(" ", &style),
                "br" | "cr" => inline.line_break(),
                "noBreakHyphen" => inline.push("\u{2011}", &style),
                "sym" => inline.push(&symbol(part), &style),
                "ruby" => {
                    if let Some(base) = part.child("rubyBase") {
                        self.runs(base, inline, link, boxes);
                    }
                }
                "footnoteReference" => self.note(part, false, inline),
                "endnoteReference" => self.note(part, true, inline),
                "drawing" | "pict" | "object" => picture(part, inline, boxes),
                "AlternateContent" => {
                    if let Some(choice) = alternative(part) {
                        picture(choice, inline, boxes);
                        if let Some(sign) = choice.child("symEx").or_else(|| choice.child("sym")) {
                            inline.push(&symbol(sign), &style);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn field(&mut self, part: Element<'t>) {
        if part.name() == "instrText" {
            self.state.fields.instruction(&part.text());
            return;
        }
        match part.attr("fldCharType").as_deref() {
            Some("begin") => self.state.fields.begin(self.context.limits.depth),
            Some("separate") => self.state.fields.separate(),
            Some("end") => self.state.fields.end(),
            _ => {}
        }
    }

    fn note(&mut self, reference: Element<'t>, is_end: bool, inline: &mut Inline) {
        let Some(id) = reference.attr("id") else { return };
        let key = (is_end, id.into_owned());
        let Some(note) = self.context.notes.get(&key).copied() else { return };
        // A note within a note means nothing, and could go on for ever.
        if self.state.in_note {
            return;
        }
        if let Some(number) = self.state.numbers.get(&key) {
            inline.push_html(&format!("<sup>{number}</sup>"));
            return;
        }
        self.state.in_note = true;
        let mut blocks = Blocks::new(self.context.limits);
        self.blocks(note, &mut blocks);
        self.state.in_note = false;
        self.state.notes.push(blocks.finish_inner());
        self.state.numbers.insert(key, self.state.notes.len());
        inline.push_html(&format!("<sup>{}</sup>", self.state.notes.len()));
    }

    fn table(&mut self, element: Element<'t>, out: &mut Blocks) {
        let mut rows = Vec::new();
        self.rows(element, &mut rows);
        out.table(&rows);
    }

    fn rows(&mut self, parent: Element<'t>, rows: &mut Vec<Vec<Cell>>) {
        for element in parent.children() {
            match element.name() {
                "tr" => {
                    let properties = element.child("trPr");
                    if properties.is_some_and(|properties| properties.child("del").is_some()) {
                        continue;
                    }
                    let before = properties.and_then(|p| p.child("gridBefore")).and_then(|e| e.number("val"));
                    let mut row = Vec::new();
                    if let Some(columns) = before.filter(|columns| *columns > 0) {
                        row.push(Cell { html: String::new(), columns });
                    }
                    self.cells(element, &mut row);
                    rows.push(row);
                }
                "sdt" | "sdtContent" | "customXml" | "ins" => self.rows(element, rows),
                _ => {}
            }
        }
    }

    fn cells(&mut self, parent: Element<'t>, row: &mut Vec<Cell>) {
        for element in parent.children() {
            match element.name() {
                "tc" => {
                    let properties = element.child("tcPr");
                    let columns = properties.and_then(|p| p.child("gridSpan")).and_then(|e| e.number("val"));
                    let mut blocks = Blocks::new(self.context.limits);
                    self.blocks(element, &mut blocks);
                    row.push(Cell { html: blocks.finish_inner(), columns: columns.unwrap_or(1) });
                }
                "sdt" | "sdtContent" | "customXml" => self.cells(element, row),
                _ => {}
            }
        }
    }
}

/// What stands around runs and says nothing itself.
fn is_around_runs(name: &str) -> bool {
    matches!(name, "ins" | "moveTo" | "smartTag" | "sdt" | "sdtContent" | "customXml" | "dir" | "bdo")
}

/// Of several ways to show the same, the one for programs that know most.
fn alternative(element: Element<'_>) -> Option<Element<'_>> {
    element.child("Choice").or_else(|| element.child("Fallback"))
}

/// A drawing: the text boxes in it, or else what is said of it in words.
fn picture<'t>(drawing: Element<'t>, inline: &mut Inline, boxes: &mut Vec<Element<'t>>) {
    let found = text_boxes(drawing);
    if found.is_empty() {
        let words = drawing.descendants().find_map(|element| match element.name() {
            "docPr" => element.attr("descr"),
            "shape" | "rect" => element.attr("alt"),
            _ => None,
        });
        inline.picture(words.as_deref());
    }
    boxes.extend(found);
}

/// The outermost text boxes in a drawing.
fn text_boxes(drawing: Element<'_>) -> Vec<Element<'_>> {
    let mut found = Vec::new();
    for element in drawing.children() {
        match element.name() {
            "txbxContent" => found.push(element),
            "AlternateContent" => found.extend(alternative(element).into_iter().flat_map(text_boxes)),
            _ => found.extend(text_boxes(element)),
        }
    }
    found
}

/// A character of a font of signs. Those of the private area are Wingdings and the like, whose numbers say nothing.
fn symbol(element: Element<'_>) -> String {
    let code = element.attr("char").and_then(|code| u32::from_str_radix(&code, 16).ok());
    let c = code.and_then(char::from_u32).filter(|c| !matches!(c, '\u{e000}'..='\u{f8ff}'));
    c.map(String::from).unwrap_or_default()
}

/// A paragraph's text with its spaces, for what is preformatted.
fn plain(parent: Element<'_>, out: &mut String) {
    for content in parent.contents() {
        let Content::Element(element) = content else { continue };
        match element.name() {
            "t" => out.push_str(&element.text()),
            "tab" => out.push_str("    "),
            "br" | "cr" => out.push('\n'),
            "noBreakHyphen" => out.push('\u{2011}'),
            "sym" => out.push_str(&symbol(element)),
            // Beside its reading, which is not part of the text.
            "ruby" => element.child("rubyBase").into_iter().for_each(|base| plain(base, out)),
            "AlternateContent" => alternative(element).into_iter().for_each(|choice| plain(choice, out)),
            "r" | "hyperlink" | "fldSimple" => plain(element, out),
            name if is_around_runs(name) => plain(element, out),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::packed;

    #[test]
    fn a_word_stands_without_its_reading_and_through_whatever_is_around_it() {
        let run = |text: &str| format!("<w:r><w:t xml:space='preserve'>{text}</w:t></w:r>");
        let ruby = format!(
            "<w:r><w:ruby><w:rubyPr/><w:rt>{}</w:rt><w:rubyBase>{}</w:rubyBase></w:ruby></w:r>",
            run("とうきょう"),
            run("東京")
        );
        let around = ["ins", "moveTo", "smartTag", "sdt", "customXml", "dir", "bdo", "fldSimple", "hyperlink"]
            .map(|name| format!("<w:{name}>{}</w:{name}>", run(name)));
        let words = format!("{}{ruby}{}<w:del>{}</w:del>", run("in "), around.concat(), run("gone"));
        let styles = "<w:styles xmlns:w='w'><w:style w:type='paragraph' w:styleId='Code'><w:name w:val='Code'/></w:style></w:styles>";
        let body = format!("<w:p>{words}</w:p><w:p><w:pPr><w:pStyle w:val='Code'/></w:pPr>{words}</w:p>");
        let bytes = packed(&[
            ("word/document.xml", &format!("<w:document xmlns:w='w'><w:body>{body}</w:body></w:document>")),
            (
                "word/_rels/document.xml.rels",
                "<Relationships><Relationship Id='s' Type='x/styles' Target='styles.xml'/></Relationships>",
            ),
            ("word/styles.xml", styles),
        ]);
        let html = convert(&bytes, &Limits::default()).unwrap().html;
        let wanted = "in 東京insmoveTosmartTagsdtcustomXmldirbdofldSimplehyperlink";
        assert_eq!(html.matches(wanted).count(), 2, "{html}");
        assert!(html.contains("<pre>") && !html.contains("とうきょう") && !html.contains("gone"), "{html}");
    }
}
