//! Excel workbooks in binary records, within a package as other workbooks since 2007.

use std::collections::HashSet;

use super::Book;
use super::formats::{Formats, boolean, error};
use super::grid::{Grid, Shared};
use crate::archive::Archive;
use crate::binary::{f64_at, rk, slice, u8_at, u16_at, u32_at, usize_at};
use crate::package::{self, Relations};
use crate::text::utf16;
use crate::{ConvertError, Converted, Limits};

const ROW: u32 = 0;
const CELL_RK: u32 = 2;
const CELL_ERROR: u32 = 3;
const CELL_BOOL: u32 = 4;
const CELL_REAL: u32 = 5;
const CELL_TEXT: u32 = 6;
const CELL_SHARED: u32 = 7;
const FORMULA_TEXT: u32 = 8;
const FORMULA_REAL: u32 = 9;
const FORMULA_BOOL: u32 = 10;
const FORMULA_ERROR: u32 = 11;
const SHARED_TEXT: u32 = 19;
const FORMAT: u32 = 44;
const XF: u32 = 47;
const WORKBOOK: u32 = 153;
const SHEET: u32 = 156;
const STYLES_BEGIN: u32 = 617;
const STYLES_END: u32 = 618;
const LINK: u32 = 494;

/// The records of a part, one after the other, as far as they are whole.
fn records(part: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let kind = number(part, &mut at, 2)?;
        let length = usize::try_from(number(part, &mut at, 4)?).ok()?;
        let data = slice(part, at, length)?;
        at += length;
        Some((kind, data))
    })
}

/// A number of seven bits a byte, the lowest first.
fn number(part: &[u8], at: &mut usize, most: u32) -> Option<u32> {
    let mut out = 0;
    for n in 0..most {
        let byte = *part.get(*at)?;
        *at += 1;
        out |= u32::from(byte & 0x7f) << (7 * n);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(out)
}

/// A text with its length in characters before it, and where it ends.
fn text(data: &[u8], at: usize) -> Option<(String, usize)> {
    let length = usize_at(data, at)?;
    // No text at all.
    if length == u32::MAX as usize {
        return Some((String::new(), at + 4));
    }
    let bytes = slice(data, at + 4, length.checked_mul(2)?)?;
    Some((utf16(bytes), at + 4 + bytes.len()))
}

/// Makes HTML of a workbook.
///
/// # Errors
/// As [`ConvertError`] says.
pub fn convert(bytes: &[u8], limits: &Limits) -> Result<Converted, ConvertError> {
    let mut archive = Archive::open(bytes, limits)?;
    let (main, said) = package::open(&mut archive, "xl/workbook.bin", limits)?;
    let workbook = archive.need(&main)?;
    let relations = Relations::of(&mut archive, &main, limits)?;
    let mut formats = Formats::default();
    if let Some(part) = relations.of_kind("styles").map(|name| archive.read(name)).transpose()?.flatten() {
        read_styles(&part, &mut formats);
    }
    let mut grid = Grid::new(limits);
    let mut shared = Vec::new();
    if let Some(part) = relations.of_kind("sharedStrings").map(|name| archive.read(name)).transpose()?.flatten() {
        for (_, data) in records(&part).filter(|(kind, _)| *kind == SHARED_TEXT) {
            shared.push(text(data, 1).map(|(text, _)| grid.share(text.trim())).unwrap_or_default());
        }
    }
    let mut book = Book::new(limits);
    let mut has_sheets = false;
    // A part that is listed again and again is one sheet.
    let mut seen = HashSet::new();
    for (kind, data) in records(&workbook) {
        if kind == WORKBOOK {
            formats.is_1904 = u32_at(data, 0).unwrap_or(0) & 1 != 0;
        }
        let Some((is_hidden, id, name)) = (kind == SHEET).then(|| sheet(data)).flatten() else { continue };
        has_sheets = true;
        let Some(relation) = relations.get(&id).filter(|relation| relation.kind == "worksheet") else { continue };
        if !seen.insert((relation.target.as_str(), is_hidden)) {
            continue;
        }
        if is_hidden {
            book.hide(&name);
            continue;
        }
        if book.tables.is_cut() {
            break;
        }
        let part = archive.need(&relation.target)?;
        let targets = Relations::of(&mut archive, &relation.target, limits)?;
        grid.clear();
        read_sheet(&part, &mut grid, &mut formats, &shared, &targets);
        book.sheet(&name, &mut grid);
    }
    if !has_sheets {
        return Err(ConvertError::broken("it has no sheets"));
    }
    Ok(book.finish(said))
}

fn sheet(data: &[u8]) -> Option<(bool, String, String)> {
    let (id, end) = text(data, 8)?;
    Some((u32_at(data, 0)? != 0, id, text(data, end)?.0))
}

fn read_styles(part: &[u8], formats: &mut Formats) {
    let mut in_styles = false;
    for (kind, data) in records(part) {
        match kind {
            FORMAT => {
                if let (Some(id), Some((code, _))) = (u16_at(data, 0), text(data, 2)) {
                    formats.code(u32::from(id), code);
                }
            }
            STYLES_BEGIN => in_styles = true,
            STYLES_END => in_styles = false,
            XF if in_styles => formats.style(u32::from(u16_at(data, 2).unwrap_or(0))),
            _ => {}
        }
    }
}

fn read_sheet(part: &[u8], grid: &mut Grid, formats: &mut Formats, shared: &[Shared], targets: &Relations) {
    for (kind, data) in records(part) {
        if grid.is_full() {
            return;
        }
        match kind {
            ROW => grid.row(u32_at(data, 0).unwrap_or(0).saturating_add(1)),
            LINK => {
                let place = (u32_at(data, 0), u32_at(data, 8));
                if let ((Some(row), Some(column)), Some((id, _))) = (place, text(data, 16))
                    && let Some(relation) = targets.get(&id).filter(|relation| relation.is_outside)
                {
                    grid.link(row.saturating_add(1), column, &relation.target);
                }
            }
            CELL_RK..=FORMULA_ERROR => {
                // A cell that is cut off has nothing to show.
                let _ = cell(kind, data, grid, formats, shared);
            }
            _ => {}
        }
    }
}

fn cell(kind: u32, data: &[u8], grid: &mut Grid, formats: &mut Formats, shared: &[Shared]) -> Option<()> {
    let column = u32_at(data, 0)?;
    let style = usize_at(data, 4)? & 0x00ff_ffff;
    match kind {
        CELL_RK => grid.cell(column, &formats.number(style, rk(u32_at(data, 8)?))),
        CELL_REAL | FORMULA_REAL => grid.cell(column, &formats.number(style, f64_at(data, 8)?)),
        CELL_TEXT | FORMULA_TEXT => grid.cell(column, &text(data, 8)?.0),
        CELL_SHARED => grid.shared_cell(column, *shared.get(usize_at(data, 8)?)?),
        CELL_BOOL | FORMULA_BOOL => grid.cell(column, boolean(u8_at(data, 8)? != 0)),
        CELL_ERROR | FORMULA_ERROR => grid.cell(column, error(u8_at(data, 8)?)),
        _ => {}
    }
    Some(())
}
