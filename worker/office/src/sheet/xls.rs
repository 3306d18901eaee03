//! Excel workbooks before 2007: the records of BIFF8, and of BIFF5 whose texts are in a code page.

use std::collections::HashSet;

use encoding_rs::Encoding;
use memchr::memmem;

use super::Book;
use super::formats::{Formats, boolean, error};
use super::grid::{Grid, Shared};
use crate::binary::{f64_at, rk, slice, u8_at, u16_at, u32_at, usize_at};
use crate::compound::{self, Compound};
use crate::text::{code_page, utf16};
use crate::{ConvertError, Converted, Limits, properties};

const BOF: u16 = 0x0809;
const EOF: u16 = 0x000a;
const CONTINUE: u16 = 0x003c;
const FILE_PASS: u16 = 0x002f;
const CODE_PAGE: u16 = 0x0042;
const DATE_MODE: u16 = 0x0022;
const FORMAT: u16 = 0x041e;
const XF: u16 = 0x00e0;
const BOUND_SHEET: u16 = 0x0085;
const SST: u16 = 0x00fc;
const LABEL_SST: u16 = 0x00fd;
const LABEL: u16 = 0x0204;
const RICH_STRING: u16 = 0x00d6;
const NUMBER: u16 = 0x0203;
const RK: u16 = 0x027e;
const MUL_RK: u16 = 0x00bd;
const BOOL_ERR: u16 = 0x0205;
const FORMULA: u16 = 0x0006;
const STRING: u16 = 0x0207;
const LINK: u16 = 0x01b8;

/// The class of addresses, before an address in a link.
const URL_MONIKER: &[u8] = b"\xe0\xc9\xea\x79\xf9\xba\xce\x11\x8c\x82\x00\xaa\x00\x4b\xa9\x0b";

/// Makes HTML of a workbook.
///
/// # Errors
/// As [`ConvertError`] says.
pub fn convert(bytes: &[u8], limits: &Limits) -> Result<Converted, ConvertError> {
    // The oldest workbooks are their stream alone.
    if !bytes.starts_with(compound::MAGIC) {
        return read(bytes, limits, Converted::default());
    }
    let file = Compound::open(bytes)?;
    if file.has("EncryptedPackage") {
        return Err(ConvertError::Encrypted);
    }
    let stream = file.stream("Workbook").or_else(|| file.stream("Book"));
    let stream = stream.ok_or_else(|| ConvertError::broken("its workbook is missing"))?;
    read(&stream, limits, properties::of_compound(&file))
}

/// A record with where it ends.
#[derive(Clone, Copy)]
struct Record<'a> {
    kind: u16,
    data: &'a [u8],
    next: usize,
}

fn record(stream: &[u8], at: usize) -> Option<Record<'_>> {
    let length = usize::from(u16_at(stream, at + 2)?);
    let data = slice(stream, at + 4, length)?;
    Some(Record { kind: u16_at(stream, at)?, data, next: at + 4 + length })
}

struct Sheet {
    name: String,
    at: usize,
    is_hidden: bool,
    is_table: bool,
}

struct Globals {
    formats: Formats,
    strings: Vec<Shared>,
    sheets: Vec<Sheet>,
    encoding: &'static Encoding,
    is_8: bool,
}

fn read(stream: &[u8], limits: &Limits, said: Converted) -> Result<Converted, ConvertError> {
    let mut grid = Grid::new(limits);
    let mut globals = read_globals(stream, &mut grid)?;
    let mut book = Book::new(limits);
    // Cells that are listed again and again are one sheet.
    let mut seen = HashSet::new();
    for sheet in std::mem::take(&mut globals.sheets) {
        if !sheet.is_table || book.tables.is_cut() || !seen.insert(sheet.at) {
            continue;
        }
        if sheet.is_hidden {
            book.hide(&sheet.name);
            continue;
        }
        grid.clear();
        read_sheet(stream, sheet.at, &mut globals, &mut grid);
        book.sheet(&sheet.name, &mut grid);
    }
    Ok(book.finish(said))
}

fn read_globals(stream: &[u8], grid: &mut Grid) -> Result<Globals, ConvertError> {
    let first = record(stream, 0).filter(|first| first.kind == BOF);
    let first = first.ok_or_else(|| ConvertError::broken("it does not begin as a workbook"))?;
    let mut globals = Globals {
        formats: Formats::default(),
        strings: Vec::new(),
        sheets: Vec::new(),
        encoding: code_page(1252),
        is_8: u16_at(first.data, 0) == Some(0x0600),
    };
    let mut at = first.next;
    let mut has_end = false;
    while let Some(found) = record(stream, at) {
        at = found.next;
        let data = found.data;
        match found.kind {
            FILE_PASS => return Err(ConvertError::Encrypted),
            CODE_PAGE => globals.encoding = code_page(u32::from(u16_at(data, 0).unwrap_or(1252))),
            DATE_MODE => globals.formats.is_1904 = u16_at(data, 0) == Some(1),
            FORMAT => {
                let text = if globals.is_8 { long_text(data, 2) } else { short_bytes(data, 2, globals.encoding) };
                if let (Some(id), Some(code)) = (u16_at(data, 0), text) {
                    globals.formats.code(u32::from(id), code);
                }
            }
            XF => globals.formats.style(u32::from(u16_at(data, 2).unwrap_or(0))),
            BOUND_SHEET => globals.sheets.extend(bound_sheet(data, &globals)),
            SST => {
                let mut chunks = vec![data];
                while let Some(more) = record(stream, at).filter(|more| more.kind == CONTINUE) {
                    chunks.push(more.data);
                    at = more.next;
                }
                globals.strings = Strings { chunks, chunk: 0, at: 8 }.read(grid);
            }
            EOF => {
                has_end = true;
                break;
            }
            _ => {}
        }
    }
    if !has_end && globals.sheets.is_empty() {
        return Err(ConvertError::broken("its workbook is cut off"));
    }
    Ok(globals)
}

fn bound_sheet(data: &[u8], globals: &Globals) -> Option<Sheet> {
    let name = if globals.is_8 {
        let count = usize::from(u8_at(data, 6)?);
        characters(data.get(8..)?, count, u8_at(data, 7)? & 1 != 0)
    } else {
        short_bytes(data, 6, globals.encoding)?
    };
    Some(Sheet { name, at: usize_at(data, 0)?, is_hidden: u8_at(data, 4)? & 3 != 0, is_table: u8_at(data, 5)? == 0 })
}

/// So many characters, of two bytes or of one.
fn characters(bytes: &[u8], count: usize, is_wide: bool) -> String {
    if is_wide {
        let bytes = bytes.get(..bytes.len().min(count * 2)).unwrap_or_default();
        utf16(bytes)
    } else {
        bytes.iter().take(count).map(|byte| char::from(*byte)).collect()
    }
}

/// A text of BIFF8 with a length of two bytes.
fn long_text(data: &[u8], at: usize) -> Option<String> {
    let count = usize::from(u16_at(data, at)?);
    let flags = u8_at(data, at + 2)?;
    let runs = if flags & 8 != 0 { 2 } else { 0 };
    let phonetic = if flags & 4 != 0 { 4 } else { 0 };
    Some(characters(data.get(at + 3 + runs + phonetic..)?, count, flags & 1 != 0))
}

/// A text of BIFF5 with a length of one byte.
fn short_bytes(data: &[u8], at: usize, encoding: &'static Encoding) -> Option<String> {
    let length = usize::from(u8_at(data, at)?);
    Some(encoding.decode_without_bom_handling(slice(data, at + 1, length)?).0.into_owned())
}

/// The shared texts, which go on from record to record: where a text is broken, the next record begins with whether
/// the rest of it is wide.
struct Strings<'a> {
    chunks: Vec<&'a [u8]>,
    chunk: usize,
    at: usize,
}

impl Strings<'_> {
    fn read(mut self, grid: &mut Grid) -> Vec<Shared> {
        let mut out = Vec::new();
        while let Some(text) = self.text() {
            out.push(grid.share(text.trim()));
        }
        out
    }

    /// The current record from where it is read on; the next one where it is used up.
    fn rest(&mut self) -> Option<&[u8]> {
        while self.chunks.get(self.chunk)?.len() <= self.at {
            self.chunk += 1;
            self.at = 0;
        }
        self.chunks.get(self.chunk)?.get(self.at..)
    }

    fn take(&mut self, count: usize) -> Option<&[u8]> {
        self.rest()?;
        let bytes = slice(self.chunks.get(self.chunk)?, self.at, count)?;
        self.at += count;
        Some(bytes)
    }

    fn text(&mut self) -> Option<String> {
        let mut left = usize::from(u16_at(self.take(2)?, 0)?);
        let flags = u8_at(self.take(1)?, 0)?;
        let runs = if flags & 8 != 0 { usize::from(u16_at(self.take(2)?, 0)?) * 4 } else { 0 };
        let phonetic = if flags & 4 != 0 { usize_at(self.take(4)?, 0)? } else { 0 };
        let mut is_wide = flags & 1 != 0;
        let mut out = String::new();
        while left > 0 {
            let chunk = self.chunk;
            let rest = self.rest()?;
            let rest = rest.len();
            if self.chunk != chunk {
                is_wide = u8_at(self.take(1)?, 0)? & 1 != 0;
                continue;
            }
            let width = if is_wide { 2 } else { 1 };
            let count = left.min(rest / width);
            if count == 0 {
                // Half a character at the end of a record.
                self.at += rest;
                continue;
            }
            out.push_str(&characters(self.take(count * width)?, count, is_wide));
            left -= count;
        }
        let mut skip = runs.saturating_add(phonetic);
        while skip > 0 {
            let Some(rest) = self.rest() else { break };
            let step = rest.len().min(skip);
            self.at += step;
            skip -= step;
        }
        Some(out)
    }
}

/// Reads cells until the sheet's end; what is inside of it besides, such as a chart, is skipped.
fn read_sheet(stream: &[u8], from: usize, globals: &mut Globals, grid: &mut Grid) {
    let mut at = from;
    let mut depth = 0;
    let mut row = None;
    let mut formula = None;
    while let Some(found) = record(stream, at) {
        at = found.next;
        let data = found.data;
        match found.kind {
            BOF => depth += 1,
            EOF => {
                depth -= 1;
                if depth <= 0 {
                    break;
                }
            }
            _ if depth != 1 || grid.is_full() => {}
            STRING => {
                if let Some(column) = std::mem::take(&mut formula) {
                    let text = if globals.is_8 { long_text(data, 0) } else { bytes_text(data, 0, globals.encoding) };
                    grid.cell(column, &text.unwrap_or_default());
                }
            }
            LINK => {
                if let (Some(row), Some(column), Some(target)) = (u16_at(data, 0), u16_at(data, 4), address(data)) {
                    grid.link(u32::from(row) + 1, u32::from(column), &target);
                }
            }
            LABEL_SST | LABEL | RICH_STRING | NUMBER | RK | MUL_RK | BOOL_ERR | FORMULA => {
                let (Some(number), Some(column)) = (u16_at(data, 0), u16_at(data, 2)) else { continue };
                if row != Some(number) {
                    row = Some(number);
                    grid.row(u32::from(number) + 1);
                }
                formula = cell(found, u32::from(column), globals, grid);
            }
            _ => {}
        }
    }
}

/// The address that a link leads to.
fn address(data: &[u8]) -> Option<String> {
    let at = memmem::find(data, URL_MONIKER)? + URL_MONIKER.len();
    let text = utf16(slice(data, at + 4, usize_at(data, at)?)?);
    Some(text.split('\0').next()?.to_owned())
}

fn bytes_text(data: &[u8], at: usize, encoding: &'static Encoding) -> Option<String> {
    let length = usize::from(u16_at(data, at)?);
    Some(encoding.decode_without_bom_handling(slice(data, at + 2, length)?).0.into_owned())
}

/// Adds a cell; its column where its text comes in a record of its own.
fn cell(found: Record<'_>, column: u32, globals: &mut Globals, grid: &mut Grid) -> Option<u32> {
    let data = found.data;
    let style = usize::from(u16_at(data, 4)?);
    match found.kind {
        LABEL_SST => {
            let shared = globals.strings.get(usize_at(data, 6)?)?;
            grid.shared_cell(column, *shared);
        }
        LABEL | RICH_STRING => {
            let text = if globals.is_8 { long_text(data, 6) } else { bytes_text(data, 6, globals.encoding) };
            grid.cell(column, &text?);
        }
        NUMBER => grid.cell(column, &globals.formats.number(style, f64_at(data, 6)?)),
        RK => grid.cell(column, &globals.formats.number(style, rk(u32_at(data, 6)?))),
        MUL_RK => {
            for n in 0..data.len().saturating_sub(6) / 6 {
                let style = usize::from(u16_at(data, 4 + n * 6)?);
                let value = rk(u32_at(data, 6 + n * 6)?);
                grid.cell(column + u32::try_from(n).ok()?, &globals.formats.number(style, value));
            }
        }
        BOOL_ERR => {
            let value = u8_at(data, 6)?;
            grid.cell(column, if u8_at(data, 7)? == 0 { boolean(value != 0) } else { error(value) });
        }
        FORMULA if u16_at(data, 12)? == 0xffff => match u8_at(data, 6)? {
            0 => return Some(column),
            1 => grid.cell(column, boolean(u8_at(data, 8)? != 0)),
            2 => grid.cell(column, error(u8_at(data, 8)?)),
            _ => {}
        },
        FORMULA => grid.cell(column, &globals.formats.number(style, f64_at(data, 6)?)),
        _ => {}
    }
    None
}
