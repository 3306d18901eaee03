//! PowerPoint presentations before 2007, by [MS-PPT]: titles, texts with the levels of their lists, and notes. Not kept:
//! tables (their cells come as paragraphs), links, and how text looks.

mod record;
mod text;

use std::collections::{HashMap, HashSet};

use record::{Record, records};
use text::{Kind, Text};

use super::{hidden, lines, notes_heading, title};
use crate::binary::{u8_at, u16_at, u32_at, usize_at};
use crate::compound::Compound;
use crate::html::{Blocks, Inline, Style};
use crate::{ConvertError, Converted, Limits, properties};

const DOCUMENT: u16 = 0x03e8;
const SLIDE: u16 = 0x03ee;
const SLIDE_ATOM: u16 = 0x03ef;
const NOTES: u16 = 0x03f0;
const SLIDE_PERSIST: u16 = 0x03f3;
const SHOW_INFO: u16 = 0x03f9;
const DRAWING: u16 = 0x040c;
const PLACEHOLDER: u16 = 0x0bc3;
const SLIDE_LIST: u16 = 0x0ff0;
const USER_EDIT: u16 = 0x0ff5;
const DIRECTORY: u16 = 0x1772;
const SHAPE: u16 = 0xf004;
const TEXT_BOX: u16 = 0xf00d;
const CLIENT_DATA: u16 = 0xf011;
/// What the current user's stream has of an encrypted presentation.
const ENCRYPTED: u32 = 0xf3d1_c4df;
/// Times that a presentation was saved in place.
const MAX_EDITS: usize = 10_000;

fn broken() -> ConvertError {
    ConvertError::broken("its list of slides cannot be found")
}

/// Makes HTML of a presentation.
///
/// # Errors
/// As [`ConvertError`] says.
pub fn convert(bytes: &[u8], limits: &Limits) -> Result<Converted, ConvertError> {
    let file = Compound::open(bytes)?;
    if file.has("EncryptedPackage") || file.has("EncryptedSummary") {
        return Err(ConvertError::Encrypted);
    }
    let user = file.stream("Current User").ok_or_else(|| ConvertError::broken("its current user is missing"))?;
    if u32_at(&user, 12) == Some(ENCRYPTED) {
        return Err(ConvertError::Encrypted);
    }
    let stream = file.stream("PowerPoint Document").ok_or_else(|| ConvertError::broken("its document is missing"))?;
    let (places, document) = directory(&stream, usize_at(&user, 16).ok_or_else(broken)?).ok_or_else(broken)?;
    let deck = Deck { stream: &stream, places, limits };
    let document = deck.part(document, DOCUMENT).ok_or_else(broken)?;
    let mut converted = properties::of_compound(&file);
    let mut blocks = Blocks::new(limits);
    let notes: HashMap<u32, u32> = slides(document, 2).into_iter().map(|slide| (slide.id, slide.part)).collect();
    let (mut count, mut hidden_slides) = (0, 0);
    // A slide that is listed again and again is not written each time.
    let mut seen = HashSet::new();
    for slide in slides(document, 0) {
        let Some(part) = deck.part(slide.part, SLIDE).filter(|_| seen.insert(slide.part)) else { continue };
        if blocks.is_full() {
            break;
        }
        let info = records(part).find(|record| record.kind == SHOW_INFO).and_then(|info| u16_at(info.data, 10));
        if info.is_some_and(|flags| flags & 4 != 0) {
            hidden_slides += 1;
            continue;
        }
        count += 1;
        deck.slide(part, &slide, count, &mut blocks)?;
        let atom = records(part).find(|record| record.kind == SLIDE_ATOM);
        let noted = atom.and_then(|atom| u32_at(atom.data, 16)).and_then(|id| notes.get(&id));
        if let Some(part) = noted.and_then(|part| deck.part(*part, NOTES)) {
            deck.notes(part, &mut blocks)?;
        }
    }
    hidden(hidden_slides, &mut converted.warnings);
    converted.pages = u32::try_from(count).ok();
    blocks.document(limits, converted)
}

/// Where each part lies, of the last time each was saved, and the number of the document's part.
fn directory(stream: &[u8], mut edit: usize) -> Option<(HashMap<u32, usize>, u32)> {
    let mut places = HashMap::new();
    let mut document = None;
    for _ in 0..MAX_EDITS {
        let record = record::at(stream, edit).filter(|record| record.kind == USER_EDIT)?;
        document = document.or(u32_at(record.data, 16));
        let list = record::at(stream, usize_at(record.data, 12)?).filter(|list| list.kind == DIRECTORY)?.data;
        let mut at = 0;
        while let Some(head) = u32_at(list, at) {
            at += 4;
            for n in 0..head >> 20 {
                let Some(place) = usize_at(list, at) else { break };
                places.entry((head & 0x000f_ffff) + n).or_insert(place);
                at += 4;
            }
        }
        let before = usize_at(record.data, 8)?;
        // Each edit lies before the one after it.
        if before == 0 || before >= edit {
            break;
        }
        edit = before;
    }
    Some((places, document?))
}

/// A slide in the list of slides, with the texts that are kept there.
struct Listed<'a> {
    part: u32,
    id: u32,
    texts: Vec<Text<'a>>,
}

/// The slides of a list: of slides themselves, of masters or of notes.
fn slides(document: &[u8], list: u16) -> Vec<Listed<'_>> {
    let mut out: Vec<Listed<'_>> = Vec::new();
    let found = records(document).find(|record| record.kind == SLIDE_LIST && record.instance == list);
    for record in found.into_iter().flat_map(|list| records(list.data)) {
        if record.kind == SLIDE_PERSIST {
            if let (Some(part), Some(id)) = (u32_at(record.data, 0), u32_at(record.data, 12)) {
                out.push(Listed { part, id, texts: Vec::new() });
            }
        } else if let Some(last) = out.last_mut() {
            text::add(&mut last.texts, record);
        }
    }
    out
}

struct Deck<'a> {
    stream: &'a [u8],
    places: HashMap<u32, usize>,
    limits: &'a Limits,
}

impl<'a> Deck<'a> {
    /// What is in a part.
    fn part(&self, number: u32, kind: u16) -> Option<&'a [u8]> {
        let record = record::at(self.stream, *self.places.get(&number)?)?;
        (record.kind == kind).then_some(record.data)
    }

    /// The texts of a slide's shapes, with what their placeholders are for.
    fn texts<'t>(&self, part: &'t [u8], listed: &'t [Text<'t>]) -> Result<Vec<(u8, Text<'t>)>, ConvertError> {
        let mut out = Vec::new();
        for drawing in records(part).filter(|record| record.kind == DRAWING) {
            self.shapes(drawing, listed, 0, &mut out)?;
        }
        Ok(out)
    }

    fn shapes<'t>(
        &self,
        parent: Record<'t>,
        listed: &'t [Text<'t>],
        depth: usize,
        out: &mut Vec<(u8, Text<'t>)>,
    ) -> Result<(), ConvertError> {
        if depth > self.limits.depth {
            return Err(ConvertError::TooDeep);
        }
        for record in records(parent.data).filter(|record| record.is_container) {
            if record.kind != SHAPE {
                self.shapes(record, listed, depth + 1, out)?;
                continue;
            }
            let mut holder = 0;
            let mut texts = Vec::new();
            for inner in records(record.data) {
                match inner.kind {
                    TEXT_BOX => records(inner.data).for_each(|atom| text::add_shape(&mut texts, atom, listed)),
                    CLIENT_DATA => {
                        let found = records(inner.data).find(|atom| atom.kind == PLACEHOLDER);
                        holder = found.and_then(|atom| u8_at(atom.data, 4)).unwrap_or(0);
                    }
                    _ => {}
                }
            }
            out.extend(texts.into_iter().map(|text| (holder, text)));
        }
        Ok(())
    }

    fn slide(&self, part: &[u8], slide: &Listed<'_>, number: usize, out: &mut Blocks) -> Result<(), ConvertError> {
        let texts = self.texts(part, &slide.texts)?;
        let at = texts.iter().position(|(_, text)| text.kind == Kind::Title);
        let heading = at.and_then(|at| texts.get(at)).map(|(_, text)| {
            let mut inline = Inline::default();
            inline.push(&text.plain(), &Style::default());
            inline
        });
        title(heading, number, out);
        for (n, (holder, text)) in texts.iter().enumerate() {
            if out.is_full() {
                break;
            }
            /// Placeholders of dates, numbers, footers and headers, which are the same on every slide.
            const MARGINS: std::ops::RangeInclusive<u8> = 7..=10;
            if Some(n) != at && !MARGINS.contains(holder) {
                lines(text.lines(), n as u64, out);
            }
        }
        Ok(())
    }

    fn notes(&self, part: &[u8], out: &mut Blocks) -> Result<(), ConvertError> {
        let texts = self.texts(part, &[])?;
        let notes: Vec<&Text<'_>> = texts.iter().map(|(_, text)| text).filter(|t| t.kind == Kind::Notes).collect();
        if notes.iter().any(|text| !text.plain().trim().is_empty()) {
            notes_heading(out);
            for text in notes {
                lines(text.lines(), 0, out);
            }
        }
        Ok(())
    }
}
