//! A run of paragraphs that is put together: the text itself, a header, a note.

use super::Paragraph;
use super::styles::{Block, Styles};
use crate::Limits;
use crate::html::{Blocks, Cell, Inline, Item, Style};
use crate::word::level_of_item;

/// What is written of it so far.
#[derive(Debug)]
pub struct Flow {
    limits: Limits,
    blocks: Blocks,
    inline: Inline,
    /// The same as plain text, for what keeps its spaces.
    plain: String,
    /// The number or sign of the item.
    marker: String,
    /// What stands beside the paragraph.
    asides: Vec<String>,
    rows: Vec<Vec<Cell>>,
    row: Vec<Cell>,
    cell: Blocks,
}

impl Flow {
    /// Nothing yet.
    pub fn new(limits: &Limits) -> Self {
        Self {
            limits: *limits,
            blocks: Blocks::new(limits),
            inline: Inline::default(),
            plain: String::new(),
            marker: String::new(),
            asides: Vec::new(),
            rows: Vec::new(),
            row: Vec::new(),
            cell: Blocks::new(limits),
        }
    }

    /// Whether the limit of output is reached.
    pub fn is_full(&self) -> bool {
        self.blocks.is_full() || self.cell.is_full() || self.plain.len() > self.limits.output
    }

    /// Adds text.
    pub fn text(&mut self, text: &str, style: &Style, paragraph: &Paragraph, styles: &Styles) {
        self.plain.push_str(text);
        if matches!(block(paragraph, styles), Block::Heading(_)) {
            // All of a heading is bold, and that is not emphasis.
            self.inline.push(text, &Style { bold: false, italic: false, ..style.clone() });
        } else {
            self.inline.push(text, style);
        }
    }

    /// Adds to the number or sign of the item.
    pub fn marker(&mut self, text: &str) {
        self.marker.push_str(text);
    }

    /// Adds what is written after the paragraph.
    pub fn aside(&mut self, html: String) {
        self.asides.push(html);
    }

    /// Refers to a note.
    pub fn note(&mut self, number: usize) {
        self.inline.push_html(&format!("<sup>{number}</sup>"));
    }

    /// Breaks the line.
    pub fn line_break(&mut self) {
        self.plain.push('\n');
        self.inline.line_break();
    }

    /// Ends a paragraph.
    pub fn end_paragraph(&mut self, paragraph: &Paragraph, styles: &Styles) {
        if !paragraph.in_table {
            self.end_table();
        }
        let inline = std::mem::take(&mut self.inline);
        let plain = std::mem::take(&mut self.plain);
        let marker = std::mem::take(&mut self.marker);
        let marker = marker.trim();
        let out = if paragraph.in_table { &mut self.cell } else { &mut self.blocks };
        match block(paragraph, styles) {
            Block::Heading(level) => {
                let mut headed = Inline::default();
                if number(marker).is_some() && !inline.is_blank() {
                    headed.push(&format!("{marker} "), &Style::default());
                }
                if !inline.is_blank() {
                    headed.push_html(&inline.finish());
                }
                out.heading(level, headed);
            }
            _ if !marker.is_empty() || paragraph.list > 0 => {
                let number = number(marker);
                let ordered = number.is_some();
                let list = u64::from(paragraph.list.unsigned_abs()) * 2 + u64::from(ordered);
                let level = level_of_item(paragraph.level, styles.item_depth(paragraph.style));
                out.item(Item { level, ordered, list, number }, inline);
            }
            Block::Code if !inline.is_blank() => out.preformatted(&plain),
            Block::Quote => out.quote(inline),
            _ => out.paragraph(inline),
        }
        for aside in self.asides.drain(..) {
            out.push_html(&aside);
        }
    }

    /// Ends a cell of a table.
    pub fn end_cell(&mut self, paragraph: &Paragraph, styles: &Styles) {
        self.end_paragraph(&Paragraph { in_table: true, ..*paragraph }, styles);
        let cell = std::mem::replace(&mut self.cell, Blocks::new(&self.limits));
        self.row.push(Cell { html: cell.finish_inner(), columns: 1 });
    }

    /// Ends a row of a table.
    pub fn end_row(&mut self) {
        if !self.row.is_empty() {
            self.rows.push(std::mem::take(&mut self.row));
        }
    }

    fn end_table(&mut self) {
        self.end_row();
        let rows = std::mem::take(&mut self.rows);
        if !rows.is_empty() {
            self.blocks.table(&rows);
        }
    }

    /// The HTML of it all.
    pub fn finish(mut self, paragraph: &Paragraph, styles: &Styles) -> String {
        self.end_paragraph(&Paragraph { in_table: false, ..*paragraph }, styles);
        self.blocks.finish()
    }
}

fn block(paragraph: &Paragraph, styles: &Styles) -> Block {
    match (paragraph.outline, styles.block(paragraph.style)) {
        (Some(level), Block::Plain) if level < 9 => Block::Heading(level + 1),
        (_, block) => block,
    }
}

/// The number of an item whose sign is one: `3.`, `b)`, `iv.`, `1.2.`.
fn number(marker: &str) -> Option<u64> {
    let body = marker.trim_start_matches('(').trim_end_matches(['.', ')']);
    if body.len() == marker.len() || body.is_empty() {
        return body.parse().ok();
    }
    let last = body.rsplit('.').next().unwrap_or(body);
    if let Ok(number) = last.parse() {
        return Some(number);
    }
    let is_letters = last.len() <= 6 && last.bytes().all(|byte| byte.is_ascii_alphabetic());
    let letter = last.bytes().next()?.to_ascii_lowercase();
    is_letters.then(|| if last.len() == 1 { u64::from(letter.saturating_sub(b'a')) + 1 } else { 1 })
}
