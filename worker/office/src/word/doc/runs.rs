//! The properties of paragraphs and of runs of characters, by where their bytes lie.

use super::fib::Fib;
use crate::binary::{slice, u8_at, u16_at, usize_at};

/// Bytes of a page of properties.
const PAGE: usize = 512;
/// Numbers of the structures that list the pages.
const CHAR_PAGES: usize = 12;
const PARAGRAPH_PAGES: usize = 13;

/// What is said of a paragraph.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paragraph {
    pub style: u16,
    pub outline: Option<u8>,
    /// The number of its list, none if it is zero.
    pub list: Option<u16>,
    pub level: Option<u8>,
    pub in_table: bool,
    /// It is the end of a row.
    pub ends_row: bool,
}

/// What is said of characters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    pub bold: bool,
    pub italic: bool,
    pub strike: bool,
    pub hidden: bool,
    pub sup: bool,
    pub sub: bool,
}

#[derive(Clone, Copy, Debug)]
struct Run<T> {
    from: usize,
    to: usize,
    what: T,
}

/// Properties by place, in order.
#[derive(Debug)]
pub struct Table<T>(Vec<Run<T>>);

/// Properties of paragraphs.
pub type Paragraphs = Table<Paragraph>;
/// Properties of characters.
pub type Chars = Table<Look>;

impl<T: Copy + Default> Table<T> {
    fn new(fib: &Fib<'_>, structure: usize, width: usize, read: fn(&[u8], usize) -> Option<T>) -> Self {
        let list = fib.structure(structure);
        let count = (list.len().saturating_sub(4) / 8).min(fib.stream.len() / PAGE + 1);
        let pages = list.len().saturating_sub(4) / 8 + 1;
        let mut runs = Vec::new();
        for n in 0..count {
            let page = usize_at(list, pages * 4 + n * 4).map(|page| page & 0x003f_ffff);
            let Some(page) = page.and_then(|page| slice(fib.stream, page * PAGE, PAGE)) else { continue };
            let runs_here = usize::from(page.last().copied().unwrap_or(0));
            for m in 0..runs_here {
                let (Some(from), Some(to)) = (usize_at(page, m * 4), usize_at(page, m * 4 + 4)) else { continue };
                let offset = u8_at(page, (runs_here + 1) * 4 + m * width).map(|half| usize::from(half) * 2);
                let what = offset.filter(|offset| *offset > 0).and_then(|offset| read(page, offset));
                if from < to {
                    runs.push(Run { from, to, what: what.unwrap_or_default() });
                }
            }
        }
        runs.sort_by_key(|run| run.from);
        Self(runs)
    }

    /// What is said of the byte at a place.
    pub fn at(&self, place: usize) -> T {
        let next = self.0.partition_point(|run| run.from <= place);
        let run = next.checked_sub(1).and_then(|last| self.0.get(last));
        run.filter(|run| place < run.to).map(|run| run.what).unwrap_or_default()
    }
}

impl Paragraphs {
    /// Reads them.
    pub fn read(fib: &Fib<'_>) -> Self {
        Self::new(fib, PARAGRAPH_PAGES, 13, |page, at| {
            let words = usize::from(u8_at(page, at)?);
            let (from, length) =
                if words == 0 { (at + 2, usize::from(u8_at(page, at + 1)?) * 2) } else { (at + 1, words * 2 - 1) };
            let mut out = Paragraph { style: u16_at(page, from)?, ..Paragraph::default() };
            paragraph(slice(page, from + 2, length.checked_sub(2)?)?, &mut out);
            Some(out)
        })
    }
}

impl Chars {
    /// Reads them.
    pub fn read(fib: &Fib<'_>) -> Self {
        Self::new(fib, CHAR_PAGES, 1, |page, at| {
            let length = usize::from(u8_at(page, at)?);
            let mut out = Look::default();
            for (code, value) in changes(slice(page, at + 1, length)?) {
                let first = value.first().copied().unwrap_or(0);
                // As it is in the style, or the other way round.
                let is_on = matches!(first, 1 | 0x81);
                match code {
                    0x0835 => out.bold = is_on,
                    0x0836 => out.italic = is_on,
                    0x0837 | 0x2a53 => out.strike = is_on,
                    0x083c | 0x0800 => out.hidden = is_on,
                    0x2a48 => (out.sup, out.sub) = (first == 1, first == 2),
                    _ => {}
                }
            }
            Some(out)
        })
    }
}

/// Takes over what changes say of a paragraph.
pub fn paragraph(bytes: &[u8], out: &mut Paragraph) {
    for (code, value) in changes(bytes) {
        let first = value.first().copied().unwrap_or(0);
        match code {
            0x2416 => out.in_table = first != 0,
            0x2417 => out.ends_row = first != 0,
            0x2640 => out.outline = Some(first),
            0x260a => out.level = Some(first),
            0x460b => out.list = u16_at(value, 0),
            _ => {}
        }
    }
}

/// Changes of properties: the code of each with its value.
fn changes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let code = u16_at(bytes, 0)?;
        let (from, length) = match code >> 13 {
            0 | 1 => (2, 1),
            2 | 4 | 5 => (2, 2),
            3 => (2, 4),
            7 => (2, 3),
            // Definitions of tables have a length of two bytes, which counts one too many.
            _ if code == 0xd608 => (4, usize::from(u16_at(bytes, 2)?).saturating_sub(1)),
            _ => (3, usize::from(u8_at(bytes, 2)?)),
        };
        let value = slice(bytes, from, length)?;
        bytes = bytes.get(from + length..)?;
        Some((code, value))
    })
}
