//! Word documents before 2007, by [MS-DOC]: text from its pieces, with the properties of paragraphs and runs. Kept:
//! headings and lists by their styles and levels, tables, links, notes, page headers and footers, text boxes (after the
//! text), bold, italic and struck text. Not kept: merged cells of tables, tables within cells, numbers before headings.

mod fib;
mod lists;
mod runs;
mod story;
mod styles;

use std::rc::Rc;

use fib::Fib;
use lists::Lists;
use runs::{Chars, Paragraphs};
use story::Story;
use styles::Styles;

use super::distinct;
use crate::binary::{u16_at, u32_at};
use crate::compound::Compound;
use crate::html::Blocks;
use crate::{ConvertError, Converted, Limits, properties};

/// Parts of the text, in the order in which they stand in it.
#[derive(Clone, Copy, Debug)]
struct Parts {
    text: usize,
    notes: usize,
    margins: usize,
    comments: usize,
    end_notes: usize,
    boxes: usize,
}

/// All that paragraphs are read with.
struct Document<'a> {
    limits: &'a Limits,
    fib: Rc<Fib<'a>>,
    paragraphs: Paragraphs,
    chars: Chars,
    styles: Styles,
    lists: Lists,
}

/// Makes HTML of a document.
///
/// # Errors
/// As [`ConvertError`] says.
pub fn convert(bytes: &[u8], limits: &Limits) -> Result<Converted, ConvertError> {
    let file = Compound::open(bytes)?;
    if file.has("EncryptedPackage") {
        return Err(ConvertError::Encrypted);
    }
    let stream = file.stream("WordDocument").ok_or_else(|| ConvertError::broken("its text is missing"))?;
    let flags = u16_at(&stream, 10).filter(|_| u16_at(&stream, 0) == Some(0xa5ec));
    let flags = flags.ok_or_else(|| ConvertError::broken("its text does not begin as a document"))?;
    if flags & 0x0100 != 0 {
        return Err(ConvertError::Encrypted);
    }
    if u16_at(&stream, 2).unwrap_or(0) < 0x00c1 {
        return Err(ConvertError::broken("it was written by a Word older than 97, whose files are not read"));
    }
    let table = if flags & 0x0200 == 0 { "0Table" } else { "1Table" };
    let table = file.stream(table).ok_or_else(|| ConvertError::broken("its tables are missing"))?;
    let fib = Fib::read(&stream, &table).ok_or_else(|| ConvertError::broken("its pieces of text are missing"))?;
    let length = |at: usize| u32_at(&stream, at).and_then(|n| usize::try_from(n).ok()).unwrap_or(0).min(stream.len());
    let parts = Parts {
        text: length(0x4c),
        notes: length(0x50),
        margins: length(0x54),
        comments: length(0x5c),
        end_notes: length(0x60),
        boxes: length(0x64),
    };
    let document = Document {
        limits,
        paragraphs: Paragraphs::read(&fib),
        chars: Chars::read(&fib),
        styles: Styles::read(fib.structure(1)),
        lists: Lists::read(&fib),
        fib: Rc::new(fib),
    };
    document.write(parts, properties::of_compound(&file))
}

impl Document<'_> {
    fn write(mut self, parts: Parts, converted: Converted) -> Result<Converted, ConvertError> {
        let notes_at = parts.text;
        let margins_at = notes_at + parts.notes;
        let end_notes_at = margins_at + parts.margins + parts.comments;
        let boxes_at = end_notes_at + parts.end_notes;
        let (headers, footers) = self.margins(margins_at);
        let foot = self.notes(2, 3, notes_at);
        let end = self.notes(46, 47, end_notes_at);
        let mut blocks = Blocks::new(self.limits);
        for header in distinct(headers) {
            blocks.push_html(&header);
        }
        let mut story = Story::new(&mut self, &foot, &end);
        story.read(0, parts.text, &mut blocks);
        let notes = story.into_notes();
        Story::new(&mut self, &[], &[]).read(boxes_at, boxes_at + parts.boxes, &mut blocks);
        blocks.notes(&notes);
        for footer in distinct(footers) {
            blocks.push_html(&footer);
        }
        blocks.document(self.limits, converted)
    }

    /// Page headers and footers: after six separators, six stories for each section.
    fn margins(&mut self, from: usize) -> (Vec<String>, Vec<String>) {
        let mut ends = self.fib.places(11);
        // The last place means nothing.
        ends.pop();
        let (mut headers, mut footers) = (Vec::new(), Vec::new());
        for (n, pair) in ends.windows(2).enumerate().skip(6).take(6 * self.limits.depth) {
            let &[start, end] = pair else { continue };
            if start >= end {
                continue;
            }
            let mut blocks = Blocks::new(self.limits);
            Story::new(self, &[], &[]).read(from + start, from + end, &mut blocks);
            match n % 6 {
                0 | 1 | 4 => headers.push(blocks.finish()),
                _ => footers.push(blocks.finish()),
            }
        }
        (headers, footers)
    }

    /// Notes with the places that refer to them.
    fn notes(&mut self, references: usize, texts: usize, from: usize) -> Vec<(usize, String)> {
        let places = self.fib.notes(references);
        let ends = self.fib.places(texts);
        let mut out = Vec::new();
        for (place, pair) in places.into_iter().zip(ends.windows(2)) {
            let &[start, end] = pair else { continue };
            let mut blocks = Blocks::new(self.limits);
            Story::new(self, &[], &[]).read(from + start, from + end, &mut blocks);
            out.push((place, blocks.finish_inner()));
        }
        out
    }
}
