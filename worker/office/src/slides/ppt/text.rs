//! The text of a shape: its characters, and the levels and bullets of its paragraphs.

use super::super::Line;
use super::record::Record;
use crate::binary::{u16_at, u32_at, usize_at};
use crate::html::{Inline, Style};
use crate::text::utf16;

const OUTLINE_REF: u16 = 0x0f9e;
const HEADER: u16 = 0x0f9f;
const CHARS: u16 = 0x0fa0;
const STYLES: u16 = 0x0fa1;
const BYTES: u16 = 0x0fa8;

/// What a text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Title,
    Body,
    Notes,
    Other,
}

/// One text.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    pub kind: Kind,
    bytes: &'a [u8],
    is_wide: bool,
    styles: &'a [u8],
}

/// Takes a record over: a header begins a text, the others belong to the last one.
pub fn add<'a>(texts: &mut Vec<Text<'a>>, record: Record<'a>) {
    if record.kind == HEADER {
        let kind = match u32_at(record.data, 0) {
            Some(0 | 6) => Kind::Title,
            Some(1 | 7 | 8) => Kind::Body,
            Some(2) => Kind::Notes,
            _ => Kind::Other,
        };
        texts.push(Text { kind, bytes: &[], is_wide: false, styles: &[] });
    }
    let Some(last) = texts.last_mut() else { return };
    match record.kind {
        CHARS => (last.bytes, last.is_wide) = (record.data, true),
        BYTES => (last.bytes, last.is_wide) = (record.data, false),
        STYLES => last.styles = record.data,
        _ => {}
    }
}

/// The same in a shape, which may refer to a text of the list of slides.
pub fn add_shape<'a>(texts: &mut Vec<Text<'a>>, record: Record<'a>, listed: &[Text<'a>]) {
    if record.kind == OUTLINE_REF {
        texts.extend(usize_at(record.data, 0).and_then(|n| listed.get(n)));
    } else {
        add(texts, record);
    }
}

impl Text<'_> {
    fn decoded(&self) -> String {
        if self.is_wide { utf16(self.bytes) } else { self.bytes.iter().map(|byte| char::from(*byte)).collect() }
    }

    /// All of it in one line.
    pub fn plain(&self) -> String {
        self.decoded().replace(['\r', '\u{b}'], " ")
    }

    /// Its paragraphs.
    pub fn lines(&self) -> Vec<Line> {
        let text = self.decoded();
        let mut runs = Runs { bytes: self.styles, at: 0, left: 0, level: 0, bullet: None };
        let paragraphs: Vec<&str> = text.split('\r').collect();
        let is_alone = paragraphs.iter().filter(|paragraph| !paragraph.trim().is_empty()).count() == 1;
        let mut out = Vec::new();
        for paragraph in paragraphs {
            let (level, bullet) = runs.paragraph(paragraph.encode_utf16().count() + 1);
            let mut inline = Inline::default();
            for (n, line) in paragraph.split('\u{b}').enumerate() {
                if n > 0 {
                    inline.line_break();
                }
                inline.push(line, &Style::default());
            }
            let is_item = bullet.unwrap_or(self.kind == Kind::Body && !is_alone);
            out.push(Line { inline, item: is_item.then_some((level.min(8), false)) });
        }
        out
    }
}

/// Properties of paragraphs, run by run.
struct Runs<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Characters that the last run still has.
    left: usize,
    level: usize,
    bullet: Option<bool>,
}

impl Runs<'_> {
    /// Level and bullet of the paragraph that the next characters are.
    fn paragraph(&mut self, characters: usize) -> (usize, Option<bool>) {
        if self.left == 0 && self.next().is_none() {
            self.bytes = &[];
            (self.level, self.bullet) = (0, None);
        }
        let out = (self.level, self.bullet);
        let mut rest = characters;
        while rest > self.left && self.left > 0 {
            rest -= self.left;
            self.left = 0;
            if self.next().is_none() {
                break;
            }
        }
        self.left = self.left.saturating_sub(rest);
        out
    }

    fn next(&mut self) -> Option<()> {
        self.left = usize_at(self.bytes, self.at)?;
        self.level = usize::from(u16_at(self.bytes, self.at + 4)?);
        let mask = u32_at(self.bytes, self.at + 6)?;
        let mut at = self.at + 10;
        self.bullet = None;
        if mask & 0x0f != 0 {
            let flags = u16_at(self.bytes, at)?;
            self.bullet = (mask & 1 != 0).then_some(flags & 1 != 0);
            at += 2;
        }
        // What is there and how long it is, in its order.
        for (bit, length) in [
            (0x80, 2),
            (0x10, 2),
            (0x40, 2),
            (0x20, 4),
            (0x800, 2),
            (0x1000, 2),
            (0x2000, 2),
            (0x4000, 2),
            (0x100, 2),
            (0x400, 2),
            (0x8000, 2),
        ] {
            if mask & bit != 0 {
                at += length;
            }
        }
        if mask & 0x10_0000 != 0 {
            at += 2 + usize::from(u16_at(self.bytes, at)?) * 4;
        }
        for bits in [0x1_0000, 0xe_0000, 0x20_0000] {
            if mask & bits != 0 {
                at += 2;
            }
        }
        self.at = at;
        Some(())
    }
}
