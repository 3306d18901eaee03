//! Excel workbooks since 2007. Sheets are read as a stream of events, as they can hold millions of cells.

use std::collections::HashSet;

use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::formats::{Formats, boolean};
use super::grid::{Grid, Shared};
use super::{Book, reference};
use crate::archive::Archive;
use crate::package::{self, Relations};
use crate::text::decode_xml;
use crate::xml::{self, Tree, local};
use crate::{ConvertError, Converted, Limits};

/// Rows of a sheet; what is after them no program would show.
const MAX_ROWS: u32 = 1 << 20;

/// Makes HTML of a workbook.
///
/// # Errors
/// As [`ConvertError`] says.
pub fn convert(bytes: &[u8], limits: &Limits) -> Result<Converted, ConvertError> {
    let mut archive = Archive::open(bytes, limits)?;
    let (main, said) = package::open(&mut archive, "xl/workbook.xml", limits)?;
    let source = decode_xml(archive.need(&main)?);
    let workbook = Tree::read(&source, &main, limits)?;
    let relations = Relations::of(&mut archive, &main, limits)?;
    let mut formats = Formats::default();
    let is_on = |value: &str| matches!(value, "1" | "true");
    formats.is_1904 = workbook.root().child("workbookPr").and_then(|e| e.attr("date1904")).is_some_and(|v| is_on(&v));
    if let Some(source) = relations.of_kind("styles").map(|name| archive.read(name)).transpose()?.flatten() {
        read_styles(&decode_xml(source), &mut formats, limits)?;
    }
    let mut grid = Grid::new(limits);
    let mut shared = Vec::new();
    if let Some(source) = relations.of_kind("sharedStrings").map(|name| archive.read(name)).transpose()?.flatten() {
        shared = read_strings(&decode_xml(source), &mut grid, limits)?;
    }
    let mut book = Book::new(limits);
    // A part that is listed again and again is one sheet.
    let mut seen = HashSet::new();
    let sheets = workbook.root().child("sheets").ok_or_else(|| ConvertError::broken("it has no sheets"))?;
    for sheet in sheets.children().filter(|element| element.name() == "sheet") {
        let name = sheet.attr("name").unwrap_or_default();
        let Some(relation) = sheet.prefixed("id").and_then(|id| relations.get(&id)) else { continue };
        if relation.kind != "worksheet" || book.tables.is_cut() || !seen.insert(relation.target.as_str()) {
            continue;
        }
        if sheet.attr("state").is_some_and(|state| state != "visible") {
            book.hide(&name);
            continue;
        }
        let Some(source) = archive.read(&relation.target)?.map(decode_xml) else {
            return Err(ConvertError::broken(format!("{} is missing", relation.target)));
        };
        let targets = Relations::of(&mut archive, &relation.target, limits)?;
        grid.clear();
        read_sheet(&source, &mut grid, &mut formats, &shared, &targets)
            .ok_or_else(|| ConvertError::broken(format!("{} is not well-formed XML", relation.target)))?;
        book.sheet(&name, &mut grid);
    }
    Ok(book.finish(said))
}

fn read_styles(source: &str, formats: &mut Formats, limits: &Limits) -> Result<(), ConvertError> {
    let tree = Tree::read(source, "styles.xml", limits)?;
    for element in tree.root().child("numFmts").into_iter().flat_map(xml::Element::children) {
        if let (Some(id), Some(code)) = (element.number("numFmtId"), element.attr("formatCode")) {
            formats.code(id, code.into_owned());
        }
    }
    for element in tree.root().child("cellXfs").into_iter().flat_map(xml::Element::children) {
        formats.style(element.number("numFmtId").unwrap_or(0));
    }
    Ok(())
}

/// Adds what an event says in text.
fn add_text(event: &Event<'_>, out: &mut String) {
    match event {
        Event::Text(text) => out.push_str(&text.xml10_content()),
        Event::CData(text) => out.push_str(&text.xml10_content()),
        Event::GeneralRef(name) => out.push_str(&xml::reference(name)),
        _ => {}
    }
}

fn read_strings(source: &str, grid: &mut Grid, limits: &Limits) -> Result<Vec<Shared>, ConvertError> {
    let broken = || ConvertError::broken("its shared strings are not well-formed XML");
    let mut reader = Reader::from_str(source);
    let mut out = Vec::new();
    let mut text = String::new();
    let mut is_text = false;
    let mut in_phonetic = false;
    loop {
        let event = reader.read_event().map_err(|_| broken())?;
        if out.len() > limits.cells {
            return Err(ConvertError::too_large("shared texts", limits.cells));
        }
        match &event {
            Event::Start(start) => match local(start.name().as_ref()) {
                "si" => text.clear(),
                "t" => is_text = !in_phonetic,
                "rPh" => in_phonetic = true,
                _ => {}
            },
            Event::Empty(start) if local(start.name().as_ref()) == "si" => out.push(Shared::default()),
            Event::End(end) => match local(end.name().as_ref()) {
                "si" => out.push(grid.share(unescape_controls(&text).trim())),
                "t" => is_text = false,
                "rPh" => in_phonetic = false,
                _ => {}
            },
            Event::Eof => return Ok(out),
            _ if is_text => add_text(&event, &mut text),
            _ => {}
        }
    }
}

/// `_x000D_` and the like, which stand for characters that XML does not have.
fn unescape_controls(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains("_x000") {
        text.replace("_x000D_\n", "\n").replace("_x000D_", "\n").replace("_x000A_", "\n").replace("_x0009_", " ").into()
    } else {
        text.into()
    }
}

/// An attribute without a prefix, as it stands.
fn attribute<'a>(start: &'a BytesStart<'_>, name: &str) -> Option<&'a str> {
    let mut rest = start.attributes_raw();
    loop {
        let (key, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (value, further) = after.get(1..)?.split_once(quote)?;
        if key.trim() == name {
            return Some(value);
        }
        rest = further;
    }
}

/// The cell that is being read.
#[derive(Default)]
struct Cell {
    column: u32,
    kind: Kind,
    style: usize,
    has_formula: bool,
    value: String,
}

impl Cell {
    /// Reads the next one, from its start. `next_column`: where it is, if it does not say so.
    fn begin(&mut self, start: &BytesStart<'_>, next_column: u32) {
        let place = attribute(start, "r").and_then(reference).map(|(column, _)| column);
        self.column = place.unwrap_or(next_column);
        self.style = attribute(start, "s").and_then(|s| s.parse().ok()).unwrap_or(0);
        self.kind = match attribute(start, "t") {
            Some("s") => Kind::Shared,
            Some("b") => Kind::Boolean,
            Some("n") | None => Kind::Number,
            Some(_) => Kind::Text,
        };
        self.has_formula = false;
        self.value.clear();
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Number,
    Shared,
    Boolean,
    Text,
}

/// `None` when it is not well-formed.
fn read_sheet(
    source: &str,
    grid: &mut Grid,
    formats: &mut Formats,
    shared: &[Shared],
    targets: &Relations,
) -> Option<()> {
    let mut reader = Reader::from_str(source);
    let mut row = 0;
    let mut rows = 0;
    let mut cell = Cell::default();
    let mut next_column = 0;
    let mut is_value = false;
    let mut in_phonetic = false;
    loop {
        let event = reader.read_event().ok()?;
        match &event {
            Event::Start(start) | Event::Empty(start) => {
                let is_open = matches!(event, Event::Start(_));
                match local(start.name().as_ref()) {
                    "row" => {
                        row = attribute(start, "r").and_then(|r| r.parse().ok()).unwrap_or(row + 1);
                        next_column = 0;
                        grid.row(row);
                        rows += 1;
                        if grid.is_full() || rows > MAX_ROWS {
                            return Some(());
                        }
                    }
                    "c" => {
                        cell.begin(start, next_column);
                        next_column = cell.column.saturating_add(1);
                    }
                    "f" => cell.has_formula = true,
                    "v" | "t" => is_value = is_open && !in_phonetic,
                    "rPh" => in_phonetic = is_open,
                    "hyperlink" => link(start, grid, targets),
                    _ => {}
                }
            }
            Event::End(end) => match local(end.name().as_ref()) {
                "v" | "t" => is_value = false,
                "rPh" => in_phonetic = false,
                "c" => {
                    // What comes to an empty text says that it is a text.
                    if cell.has_formula && cell.value.is_empty() && cell.kind == Kind::Number {
                        grid.leave_unsolved();
                    }
                    finish_cell(&cell, grid, formats, shared);
                }
                _ => {}
            },
            Event::Eof => return Some(()),
            _ if is_value => add_text(&event, &mut cell.value),
            _ => {}
        }
    }
}

/// Makes a link of the cell that an element is about, or of the first of several.
fn link(start: &BytesStart<'_>, grid: &mut Grid, targets: &Relations) {
    let said = start.attributes_raw();
    let id = said.split_once(":id=").and_then(|(_, rest)| rest.get(1..)?.split(['"', '\'']).next());
    let relation = id.and_then(|id| targets.get(id)).filter(|relation| relation.is_outside);
    let place = attribute(start, "ref").and_then(|r| reference(r.split(':').next()?));
    if let (Some(relation), Some((column, row))) = (relation, place) {
        grid.link(row, column, &relation.target);
    }
}

fn finish_cell(cell: &Cell, grid: &mut Grid, formats: &mut Formats, shared: &[Shared]) {
    if cell.value.is_empty() {
        return;
    }
    match cell.kind {
        Kind::Shared => {
            if let Some(text) = cell.value.trim().parse::<usize>().ok().and_then(|n| shared.get(n)) {
                grid.shared_cell(cell.column, *text);
            }
        }
        Kind::Boolean => grid.cell(cell.column, boolean(matches!(cell.value.trim(), "1" | "true"))),
        Kind::Text => grid.cell(cell.column, &unescape_controls(&cell.value)),
        Kind::Number => match cell.value.trim().parse() {
            Ok(value) => grid.cell(cell.column, &formats.number(cell.style, value)),
            Err(_) => grid.cell(cell.column, &cell.value),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::packed;

    #[test]
    fn formulas_whose_values_nobody_wrote_down_are_told_of() {
        let warnings = |cells: &str| {
            let bytes = packed(&[
                ("xl/workbook.xml", "<workbook><sheets><sheet name='S' r:id='r1'/></sheets></workbook>"),
                (
                    "xl/_rels/workbook.xml.rels",
                    "<Relationships><Relationship Id='r1' Type='x/worksheet' Target='sheet.xml'/></Relationships>",
                ),
                ("xl/sheet.xml", &format!("<worksheet><sheetData><row r='1'>{cells}</row></sheetData></worksheet>")),
            ]);
            convert(&bytes, &Limits::default()).unwrap().warnings
        };
        let solved = "<c r='A1'><f>B1*2</f><v>4</v></c><c r='B1'><v>2</v></c><c r='C1' t='str'><f>\"\"</f><v></v></c>";
        assert!(warnings(solved).is_empty());
        let open = format!("{solved}<c r='D1'><f>A1*2</f><v></v></c><c r='E1'><f t='shared' si='0'/></c><c r='F1'/>");
        assert!(warnings(&open)[0].starts_with("2 cells with a formula stayed empty"), "{:?}", warnings(&open));
    }
}
