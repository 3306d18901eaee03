//! The styles of paragraphs: which are headings, quotes or programs, and the lists they are in.

use super::runs::{self, Paragraph};
use crate::binary::{slice, u16_at};
use crate::text::utf16;
use crate::word::depth_of_style;

/// How many styles one may be based on, through others.
const MAX_BASES: usize = 20;
/// The number that means none.
const NONE: u16 = 0x0fff;

#[derive(Debug, Default)]
struct Style {
    /// Which of Word's own styles it is.
    id: u16,
    base: u16,
    name: String,
    paragraph: Paragraph,
}

/// What a paragraph is, besides items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    Plain,
    Heading(usize),
    Quote,
    Code,
}

/// All styles, by number.
#[derive(Debug, Default)]
pub struct Styles(Vec<Style>);

impl Styles {
    /// Reads them, as far as they go.
    pub fn read(sheet: &[u8]) -> Self {
        let mut out = Vec::new();
        let Some(head) = u16_at(sheet, 0).map(usize::from) else { return Self(out) };
        let (count, base) = (u16_at(sheet, 2).unwrap_or(0), u16_at(sheet, 4).map_or(10, usize::from));
        let mut at = 2 + head;
        for _ in 0..count {
            let Some(length) = u16_at(sheet, at).map(usize::from) else { break };
            let Some(bytes) = slice(sheet, at + 2, length) else { break };
            out.push(style(bytes, base).unwrap_or_default());
            at += 2 + length;
        }
        Self(out)
    }

    /// A style and those it is based on, nearest first.
    fn chain(&self, number: u16) -> impl Iterator<Item = &Style> {
        let get = |number: u16| self.0.get(usize::from(number)).filter(|_| number != NONE);
        std::iter::successors(get(number), move |style| get(style.base)).take(MAX_BASES)
    }

    /// What paragraphs of a style are.
    pub fn block(&self, number: u16) -> Block {
        /// Word's own title.
        const TITLE: u16 = 62;
        self.chain(number)
            .find_map(|style| match (style.id, style.name.as_str()) {
                (1..=9, _) => Some(Block::Heading(usize::from(style.id))),
                (TITLE, _) | (_, "title") => Some(Block::Heading(1)),
                (_, "quote" | "intense quote" | "quotations" | "block text") => Some(Block::Quote),
                (_, "html preformatted" | "preformatted text" | "source code" | "plain text") => Some(Block::Code),
                _ => style.paragraph.outline.filter(|level| *level < 9).map(|l| Block::Heading(usize::from(l) + 1)),
            })
            .unwrap_or(Block::Plain)
    }

    /// The list that paragraphs of a style are in, and the level.
    pub fn list(&self, number: u16) -> Option<(u16, u8)> {
        let level = self.chain(number).find_map(|style| style.paragraph.level);
        self.chain(number).find_map(|style| Some((style.paragraph.list?, level.unwrap_or(0))))
    }

    /// How deep items of this style stand: by which of Word's own it is, whatever the language of its name, or by its name.
    pub fn item_depth(&self, number: u16) -> Option<usize> {
        self.chain(number).find_map(|style| match style.id {
            id @ 54..=61 => Some(usize::from((id - 54) % 4) + 1),
            _ => depth_of_style(&style.name),
        })
    }
}

fn style(bytes: &[u8], base: usize) -> Option<Style> {
    let kind = u16_at(bytes, 2)?;
    let characters = usize::from(u16_at(bytes, base)?);
    let name = utf16(slice(bytes, base + 2, characters * 2)?).to_lowercase();
    let mut out = Style { id: u16_at(bytes, 0)? & 0x0fff, base: kind >> 4, name, paragraph: Paragraph::default() };
    // Of styles of paragraphs, the first properties are theirs; others have them for characters.
    if kind & 0x000f == 1 {
        let at = base + 2 + (characters + 1) * 2;
        let properties = u16_at(bytes, at).and_then(|length| slice(bytes, at + 4, usize::from(length).checked_sub(2)?));
        if let Some(properties) = properties {
            runs::paragraph(properties, &mut out.paragraph);
        }
    }
    Some(out)
}
