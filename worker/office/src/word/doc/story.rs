//! A run of paragraphs: the text itself, a header, a note.

use super::Document;
use super::runs::{Look, Paragraph};
use super::styles::Block;
use crate::html::{Blocks, Cell, Inline, Item, Style, field_link};
use crate::word::level_of_item;

/// Characters that mean something.
const NOTE: u16 = 0x02;
const CELL: u16 = 0x07;
const LINE: u16 = 0x0b;
const PAGE: u16 = 0x0c;
const PARAGRAPH: u16 = 0x0d;
const FIELD_BEGIN: u16 = 0x13;
const FIELD_RESULT: u16 = 0x14;
const FIELD_END: u16 = 0x15;

/// A field that is open: its instruction, and where its result leads to.
#[derive(Debug, Default)]
struct Field {
    instruction: String,
    has_result: bool,
    link: Option<String>,
}

/// What is read of it so far.
pub struct Story<'d, 'a> {
    document: &'d mut Document<'a>,
    foot: &'d [(usize, String)],
    end: &'d [(usize, String)],
    notes: Vec<String>,
    fields: Vec<Field>,
    inline: Inline,
    plain: String,
    /// Units of characters that have one look.
    pending: Vec<u16>,
    look: Style,
    is_hidden: bool,
    rows: Vec<Vec<Cell>>,
    row: Vec<Cell>,
    cell: Option<Blocks>,
}

impl<'d, 'a> Story<'d, 'a> {
    /// One that refers to these notes, by place.
    pub fn new(document: &'d mut Document<'a>, foot: &'d [(usize, String)], end: &'d [(usize, String)]) -> Self {
        Self {
            document,
            foot,
            end,
            notes: Vec::new(),
            fields: Vec::new(),
            inline: Inline::default(),
            plain: String::new(),
            pending: Vec::new(),
            look: Style::default(),
            is_hidden: false,
            rows: Vec::new(),
            row: Vec::new(),
            cell: None,
        }
    }

    /// The notes that were referred to, in order.
    pub fn into_notes(self) -> Vec<String> {
        self.notes
    }

    /// Writes the paragraphs between two places.
    pub fn read(&mut self, from: usize, to: usize, out: &mut Blocks) {
        let mut last = Paragraph::default();
        let fib = std::rc::Rc::clone(&self.document.fib);
        for (place, at, unit) in fib.characters(from, to) {
            if out.is_full() {
                return;
            }
            match unit {
                PARAGRAPH | CELL => {
                    self.decode();
                    last = self.document.paragraphs.at(at);
                    if unit == CELL || last.in_table {
                        self.in_table(last, unit == CELL);
                    } else {
                        self.end_table(out);
                        self.end_paragraph(last, out);
                    }
                }
                PAGE => {
                    self.decode();
                    let paragraph = self.document.paragraphs.at(at);
                    if !paragraph.in_table {
                        self.end_table(out);
                        self.end_paragraph(paragraph, out);
                    }
                }
                FIELD_BEGIN | FIELD_RESULT | FIELD_END => {
                    self.decode();
                    self.field(unit);
                }
                NOTE => {
                    self.decode();
                    self.note(place);
                }
                LINE => {
                    self.decode();
                    self.plain.push('\n');
                    self.inline.line_break();
                }
                0..0x20 if unit != 0x09 && unit != 0x1e => {}
                _ => self.character(unit, self.document.chars.at(at)),
            }
        }
        self.decode();
        self.end_table(out);
        self.end_paragraph(last, out);
    }

    fn character(&mut self, unit: u16, look: Look) {
        let style = Style {
            bold: look.bold,
            italic: look.italic,
            strike: look.strike,
            sup: look.sup,
            sub: look.sub,
            link: self.fields.iter().rev().find_map(|field| field.link.clone()),
        };
        if style != self.look || look.hidden != self.is_hidden {
            self.decode();
            self.look = style;
            self.is_hidden = look.hidden;
        }
        self.pending.push(match unit {
            0x1e => 0x2011,
            0x09 => u16::from(b' '),
            unit => unit,
        });
    }

    /// Writes the characters that wait.
    fn decode(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let text = String::from_utf16_lossy(&self.pending);
        self.pending.clear();
        if let Some(field) = self.fields.iter_mut().rev().find(|field| !field.has_result) {
            field.instruction.push_str(&text);
        } else if !self.is_hidden {
            self.plain.push_str(&text);
            self.inline.push(&text, &self.look);
        }
    }

    fn field(&mut self, mark: u16) {
        match mark {
            FIELD_BEGIN if self.fields.len() < self.document.limits.depth => self.fields.push(Field::default()),
            FIELD_RESULT => {
                if let Some(field) = self.fields.last_mut() {
                    field.has_result = true;
                    field.link = field_link(&field.instruction);
                }
            }
            FIELD_END => {
                self.fields.pop();
            }
            _ => {}
        }
    }

    fn note(&mut self, place: usize) {
        let of = |notes: &'d [(usize, String)]| {
            notes.binary_search_by_key(&place, |(place, _)| *place).ok().and_then(|n| notes.get(n))
        };
        let Some((_, note)) = of(self.foot).or_else(|| of(self.end)) else { return };
        self.notes.push(note.clone());
        self.inline.push_html(&format!("<sup>{}</sup>", self.notes.len()));
    }

    fn end_paragraph(&mut self, paragraph: Paragraph, out: &mut Blocks) {
        let inline = std::mem::take(&mut self.inline);
        let plain = std::mem::take(&mut self.plain);
        let block = match paragraph.outline {
            Some(level) if level < 9 => Block::Heading(usize::from(level) + 1),
            _ => self.document.styles.block(paragraph.style),
        };
        if let Block::Heading(level) = block {
            // All of a heading has one look, and that is not emphasis.
            out.heading_text(level, &plain);
            return;
        }
        let of_style = self.document.styles.list(paragraph.style);
        let list = match paragraph.list {
            Some(list) => Some((list, paragraph.level.unwrap_or(0))),
            None => of_style.map(|(list, level)| (list, paragraph.level.unwrap_or(level))),
        };
        if let Some((list, level)) = list.filter(|(list, _)| !matches!(list, 0 | 0x07ff | 0xf801..))
            && !inline.is_blank()
            && let Some(place) = self.document.lists.next(list, usize::from(level.min(8)))
        {
            let level = level_of_item(usize::from(level.min(8)), self.document.styles.item_depth(paragraph.style));
            out.item(Item { level, ordered: place.ordered, list: place.list, number: Some(place.number) }, inline);
            return;
        }
        match block {
            Block::Code if !inline.is_blank() => out.preformatted(&plain),
            Block::Quote => out.quote(inline),
            _ => out.paragraph(inline),
        }
    }

    /// A paragraph in a cell, or the end of a cell or of a row.
    fn in_table(&mut self, paragraph: Paragraph, is_end: bool) {
        if is_end && paragraph.ends_row {
            self.inline = Inline::default();
            self.plain.clear();
            self.cell = None;
            if !self.row.is_empty() {
                self.rows.push(std::mem::take(&mut self.row));
            }
            return;
        }
        let mut cell = self.cell.take().unwrap_or_else(|| Blocks::new(self.document.limits));
        self.end_paragraph(paragraph, &mut cell);
        if is_end {
            self.row.push(Cell { html: cell.finish_inner(), columns: 1 });
        } else {
            self.cell = Some(cell);
        }
    }

    fn end_table(&mut self, out: &mut Blocks) {
        if !self.row.is_empty() {
            self.rows.push(std::mem::take(&mut self.row));
        }
        if !self.rows.is_empty() {
            out.table(&std::mem::take(&mut self.rows));
        }
    }
}
