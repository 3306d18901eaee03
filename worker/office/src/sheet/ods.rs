//! OpenDocument spreadsheets. Cells carry their text as it is displayed.

use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::Book;
use super::formats::boolean;
use super::grid::{Grid, MAX_COLUMNS};
use crate::archive::Archive;
use crate::text::decode_xml;
use crate::xml::{self, local};
use crate::{ConvertError, Converted, Limits, odf};

/// How often a row or cell with a value may be repeated; further ones are the rest of a sheet with a filled column.
const MAX_REPEATS: u32 = 1000;

/// Makes HTML of a workbook.
///
/// # Errors
/// As [`ConvertError`] says.
pub fn convert(bytes: &[u8], limits: &Limits) -> Result<Converted, ConvertError> {
    let mut archive = Archive::open(bytes, limits)?;
    let said = odf::open(&mut archive, limits)?;
    let source = decode_xml(archive.need("content.xml")?);
    let mut reader = Tables {
        book: Book::new(limits),
        grid: Grid::new(limits),
        hidden_styles: hidden_styles(&source),
        name: String::new(),
        is_hidden: false,
        row: 0,
        row_cells: Vec::new(),
        row_repeats: 1,
        column: 0,
        cell: None,
        aside: 0,
        depth: 0,
        limit: limits.depth,
    };
    reader.read(&source)?;
    Ok(reader.book.finish(said))
}

/// An attribute by its name without its prefix.
fn attribute(start: &BytesStart<'_>, name: &str) -> Option<String> {
    start
        .attributes()
        .with_checks(false)
        .flatten()
        .find(|attribute| local(attribute.key.as_ref()) == name)
        .map(|attribute| xml::unescape(&attribute.value).into_owned())
}

/// Names of the styles of tables that are not displayed.
fn hidden_styles(source: &str) -> Vec<String> {
    let mut out = Vec::new();
    let Some(end) = source.find("<office:body") else { return out };
    let mut reader = Reader::from_str(source.get(..end).unwrap_or_default());
    let mut name = None;
    while let Ok(event) = reader.read_event() {
        match &event {
            Event::Eof => break,
            Event::Start(start) | Event::Empty(start) => match local(start.name().as_ref()) {
                "style" => name = attribute(start, "name"),
                "table-properties" if attribute(start, "display").is_some_and(|shown| shown == "false") => {
                    out.extend(name.take());
                }
                _ => {}
            },
            _ => {}
        }
    }
    out
}

struct Tables {
    book: Book,
    grid: Grid,
    hidden_styles: Vec<String>,
    /// The table that is being read.
    name: String,
    is_hidden: bool,
    row: u32,
    row_cells: Vec<Filled>,
    row_repeats: u32,
    column: u32,
    cell: Option<Cell>,
    /// Depth below what is not a table's text: a comment.
    aside: usize,
    depth: usize,
    limit: usize,
}

/// Cells with a value, which may be repeated.
struct Filled {
    column: u32,
    repeats: u32,
    text: String,
    link: Option<String>,
}

/// The cell that is being read.
#[derive(Default)]
struct Cell {
    repeats: u32,
    kind: String,
    /// The value itself, for cells without a text.
    value: Option<String>,
    text: String,
    paragraphs: u32,
    link: Option<String>,
}

impl Tables {
    fn read(&mut self, source: &str) -> Result<(), ConvertError> {
        let broken = || ConvertError::broken("content.xml is not well-formed XML");
        let mut reader = Reader::from_str(source);
        loop {
            match reader.read_event().map_err(|_| broken())? {
                Event::Start(start) => {
                    self.depth += 1;
                    if self.depth > self.limit {
                        return Err(ConvertError::TooDeep);
                    }
                    if self.aside > 0 || is_aside(&start) {
                        self.aside += 1;
                    } else {
                        self.begin(&start);
                    }
                }
                Event::Empty(start) if self.aside == 0 && !is_aside(&start) => {
                    let is_inner = self.cell.is_some();
                    self.begin(&start);
                    if !is_inner {
                        self.end(local(start.name().as_ref()));
                    }
                }
                Event::End(end) => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.aside > 0 {
                        self.aside -= 1;
                    } else {
                        self.end(local(end.name().as_ref()));
                    }
                }
                Event::Eof => return if self.depth == 0 { Ok(()) } else { Err(broken()) },
                Event::Text(text) if self.aside == 0 => add(&mut self.cell, &text.xml10_content()),
                Event::CData(text) if self.aside == 0 => add(&mut self.cell, &text.xml10_content()),
                Event::GeneralRef(name) if self.aside == 0 => add(&mut self.cell, &xml::reference(&name)),
                _ => {}
            }
        }
    }

    fn begin(&mut self, start: &BytesStart<'_>) {
        match local(start.name().as_ref()) {
            "table" if self.cell.is_none() => {
                self.name = attribute(start, "name").unwrap_or_default();
                let style = attribute(start, "style-name").unwrap_or_default();
                self.is_hidden = self.hidden_styles.contains(&style);
                self.grid.clear();
                self.row = 0;
            }
            "table-row" => {
                self.row_repeats = number(start, "number-rows-repeated");
                self.row_cells.clear();
                self.column = 0;
            }
            "table-cell" | "covered-table-cell" if self.cell.is_none() => {
                self.cell = Some(Cell {
                    repeats: number(start, "number-columns-repeated"),
                    kind: attribute(start, "value-type").unwrap_or_default(),
                    value: ["string-value", "date-value", "time-value", "boolean-value", "value"]
                        .into_iter()
                        .find_map(|key| attribute(start, key)),
                    ..Cell::default()
                });
            }
            inner => {
                if let Some(cell) = &mut self.cell {
                    cell.start(inner, start);
                }
            }
        }
    }

    fn end(&mut self, name: &str) {
        match name {
            "table-cell" | "covered-table-cell" => {
                if let Some(cell) = self.cell.take() {
                    self.end_cell(cell);
                }
            }
            "table-row" if self.cell.is_none() => self.end_row(),
            "table" if self.cell.is_none() => {
                if self.is_hidden {
                    self.book.hide(&self.name);
                } else {
                    self.book.sheet(&self.name, &mut self.grid);
                }
                self.grid.clear();
            }
            _ => {}
        }
    }

    fn end_cell(&mut self, cell: Cell) {
        let mut text = cell.text;
        if cell.paragraphs == 0 {
            text = match (cell.kind.as_str(), cell.value) {
                ("boolean", Some(value)) => boolean(value == "true").to_owned(),
                (_, Some(value)) => value,
                (_, None) => String::new(),
            };
        }
        if !text.trim().is_empty() {
            let repeats = cell.repeats.min(MAX_REPEATS);
            self.row_cells.push(Filled { column: self.column, repeats, text, link: cell.link });
        }
        self.column = self.column.saturating_add(cell.repeats);
    }

    fn end_row(&mut self) {
        let (row, repeats) = (std::mem::take(&mut self.row_cells), self.row_repeats);
        if !row.is_empty() {
            for n in 0..repeats.min(MAX_REPEATS) {
                if self.grid.is_full() {
                    break;
                }
                let number = self.row.saturating_add(n);
                self.grid.row(number);
                for cell in &row {
                    for column in cell.column..cell.column.saturating_add(cell.repeats).min(MAX_COLUMNS) {
                        self.grid.cell(column, &cell.text);
                    }
                    if let Some(link) = &cell.link {
                        self.grid.link(number, cell.column, link);
                    }
                }
            }
        }
        self.row = self.row.saturating_add(repeats);
    }
}

impl Cell {
    fn start(&mut self, name: &str, start: &BytesStart<'_>) {
        match name {
            "p" => {
                if self.paragraphs > 0 {
                    self.text.push('\n');
                }
                self.paragraphs += 1;
            }
            "a" => self.link = attribute(start, "href"),
            "s" => {
                let count = number(start, "c").min(100) as usize;
                self.text.push_str(&" ".repeat(count));
            }
            "tab" => self.text.push(' '),
            "line-break" => self.text.push('\n'),
            _ => {}
        }
    }
}

/// Whether an element holds what is not a table's text.
fn is_aside(start: &BytesStart<'_>) -> bool {
    matches!(local(start.name().as_ref()), "annotation" | "shapes" | "tracked-changes")
}

fn add(cell: &mut Option<Cell>, text: &str) {
    if let Some(cell) = cell
        && cell.paragraphs > 0
    {
        cell.text.push_str(text);
    }
}

/// A count, one where nothing is said.
fn number(start: &BytesStart<'_>, name: &str) -> u32 {
    attribute(start, name).and_then(|count| count.parse().ok()).unwrap_or(1)
}
