//! The cells of one sheet, kept sparse, and the tables that are written of them, as HTML and as markdown at once.

use std::collections::HashMap;

use super::escape_lines;
use crate::Limits;
use crate::html::{escape, outside};

/// Columns that a sheet may have.
pub const MAX_COLUMNS: u32 = 16_384;

#[derive(Clone, Copy, Debug)]
struct Cell {
    column: u32,
    from: u32,
    to: u32,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    number: u32,
    first: usize,
}

/// Where a text lies that many cells may have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shared {
    from: u32,
    to: u32,
}

/// The cells of one sheet; texts that several share are stored once.
#[derive(Debug, Default)]
pub struct Grid {
    text: String,
    /// Length of `text` without the sheet's own.
    shared: usize,
    cells: Vec<Cell>,
    rows: Vec<Row>,
    links: HashMap<(u32, u32), String>,
    /// Formulas whose values nobody has written down.
    unsolved: usize,
    limit: usize,
    /// Bytes of the sheet's own texts.
    text_limit: usize,
}

fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

impl Grid {
    /// One without cells.
    pub fn new(limits: &Limits) -> Self {
        Self { limit: limits.cells, text_limit: limits.output, ..Self::default() }
    }

    /// Stores a text that cells can share; before any sheet is read.
    pub fn share(&mut self, text: &str) -> Shared {
        let from = place(self.text.len());
        self.text.push_str(text);
        self.shared = self.text.len();
        Shared { from, to: place(self.text.len()) }
    }

    /// Begins another sheet.
    pub fn clear(&mut self) {
        self.text.truncate(self.shared);
        self.cells.clear();
        self.rows.clear();
        self.links.clear();
        self.unsolved = 0;
    }

    /// Begins a row; `number` is for links.
    pub fn row(&mut self, number: u32) {
        // A row without cells needs no place.
        if self.rows.last().is_some_and(|last| last.first == self.cells.len()) {
            self.rows.pop();
        }
        self.rows.push(Row { number, first: self.cells.len() });
    }

    /// Whether no further cell is taken.
    pub fn is_full(&self) -> bool {
        self.cells.len() > self.limit || self.text.len() - self.shared.min(self.text.len()) > self.text_limit
    }

    /// Adds a cell to the last row.
    pub fn cell(&mut self, column: u32, text: &str) {
        let text = text.trim();
        if text.is_empty() || self.is_full() {
            return;
        }
        let from = place(self.text.len());
        self.text.push_str(text);
        self.push(column, from, place(self.text.len()));
    }

    /// Adds a cell with a shared text.
    pub fn shared_cell(&mut self, column: u32, shared: Shared) {
        if shared.from < shared.to {
            self.push(column, shared.from, shared.to);
        }
    }

    fn push(&mut self, column: u32, from: u32, to: u32) {
        if column < MAX_COLUMNS && !self.is_full() {
            if self.rows.is_empty() {
                self.row(0);
            }
            self.cells.push(Cell { column, from, to });
        }
    }

    /// Counts a formula whose value the file does not hold.
    pub fn leave_unsolved(&mut self) {
        self.unsolved += 1;
    }

    /// How many of those the sheet has.
    pub fn unsolved(&self) -> usize {
        self.unsolved
    }

    /// Makes a link of a cell.
    pub fn link(&mut self, row: u32, column: u32, target: &str) {
        if let Some(target) = outside(target) {
            self.links.insert((row, column), target);
        }
    }

    fn cells_of(&self, row: usize) -> &[Cell] {
        let Some(first) = self.rows.get(row) else { return &[] };
        let end = self.rows.get(row + 1).map_or(self.cells.len(), |next| next.first);
        self.cells.get(first.first..end).unwrap_or_default()
    }

    /// Puts the cells of each row in order, and those of a row that comes in parts together.
    fn tidy(&mut self) {
        let ends: Vec<usize> = self.rows.iter().skip(1).map(|row| row.first).chain([self.cells.len()]).collect();
        for (row, end) in self.rows.iter().zip(ends) {
            if let Some(cells) = self.cells.get_mut(row.first..end)
                && !cells.is_sorted_by_key(|cell| cell.column)
            {
                cells.sort_by_key(|cell| cell.column);
            }
        }
    }

    /// Numbers of the columns that have a value anywhere, by column.
    fn used_columns(&self) -> Vec<Option<u32>> {
        let width = self.cells.iter().map(|cell| cell.column as usize + 1).max().unwrap_or(0);
        let mut used = vec![false; width];
        for cell in &self.cells {
            if let Some(place) = used.get_mut(cell.column as usize) {
                *place = true;
            }
        }
        let mut next = 0;
        used.into_iter()
            .map(|is_used| {
                is_used.then(|| {
                    next += 1;
                    next - 1
                })
            })
            .collect()
    }
}

/// Sheets as HTML and as markdown.
#[derive(Debug)]
pub struct Tables {
    html: String,
    markdown: String,
    cells_left: usize,
    limit: usize,
    is_cut: bool,
}

impl Tables {
    /// Nothing yet.
    pub fn new(limits: &Limits) -> Self {
        Self {
            html: String::new(),
            markdown: String::new(),
            cells_left: limits.cells,
            limit: limits.output,
            is_cut: false,
        }
    }

    /// Whether something was left out for its size.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The name of a sheet.
    pub fn heading(&mut self, name: &str) {
        self.html.push_str("<h2>");
        escape(&mut self.html, name);
        self.html.push_str("</h2>\n");
        self.separate();
        self.markdown.push_str("## ");
        escape_markdown(&mut self.markdown, name.trim());
        self.markdown.push('\n');
    }

    fn separate(&mut self) {
        if !self.markdown.is_empty() {
            self.markdown.push('\n');
        }
    }

    /// Writes a sheet's cells.
    pub fn table(&mut self, grid: &mut Grid) {
        grid.tidy();
        let columns = grid.used_columns();
        let width = columns.iter().flatten().count();
        self.is_cut |= grid.is_full();
        if width == 0 {
            return;
        }
        self.separate();
        self.html.push_str("<table>\n");
        let mut is_head = true;
        for at in 0..grid.rows.len() {
            let cells = grid.cells_of(at);
            let Some(last) = cells.last().and_then(|cell| columns.get(cell.column as usize).copied().flatten()) else {
                continue;
            };
            // A head is as wide as the table; further rows end with their last value.
            let count = if is_head { width } else { last as usize + 1 };
            let text: usize = cells.iter().map(|cell| cell.to as usize - cell.from as usize).sum();
            let size = text + count * 9;
            if self.cells_left < count || self.html.len() + size > self.limit || self.markdown.len() + size > self.limit
            {
                self.is_cut = true;
                break;
            }
            self.cells_left -= count;
            self.row(grid, at, &columns, count, is_head);
            if is_head {
                self.markdown.push('|');
                self.markdown.push_str(&" --- |".repeat(width));
                self.markdown.push('\n');
                is_head = false;
            }
        }
        self.html.push_str("</table>\n");
    }

    fn row(&mut self, grid: &Grid, at: usize, columns: &[Option<u32>], count: usize, is_head: bool) {
        let (start, end) = if is_head { ("<th>", "</th>") } else { ("<td>", "</td>") };
        let number = grid.rows.get(at).map_or(0, |row| row.number);
        self.html.push_str("<tr>");
        self.markdown.push('|');
        let mut written = 0;
        for cell in grid.cells_of(at) {
            let Some(place) = columns.get(cell.column as usize).copied().flatten() else { continue };
            let place = place as usize;
            // Of two values for one cell the first is taken.
            if place < written {
                continue;
            }
            self.empty(place - written, start, end);
            written = place + 1;
            let text = grid.text.get(cell.from as usize..cell.to as usize).unwrap_or_default();
            let link = if grid.links.is_empty() { None } else { grid.links.get(&(number, cell.column)) };
            self.html.push_str(start);
            self.markdown.push(' ');
            if let Some(link) = link {
                self.html.push_str("<a href=\"");
                escape(&mut self.html, &link.replace('"', "%22"));
                self.html.push_str("\">");
                self.markdown.push('[');
            }
            escape_lines(&mut self.html, text);
            escape_markdown(&mut self.markdown, text);
            if let Some(link) = link {
                self.html.push_str("</a>");
                self.markdown.push_str("](");
                for c in link.chars() {
                    match c {
                        ' ' => self.markdown.push_str("%20"),
                        '(' => self.markdown.push_str("%28"),
                        ')' => self.markdown.push_str("%29"),
                        '|' => self.markdown.push_str("%7C"),
                        c if c.is_control() => {}
                        c => self.markdown.push(c),
                    }
                }
                self.markdown.push(')');
            }
            self.html.push_str(end);
            self.markdown.push_str(" |");
        }
        self.empty(count - written.min(count), start, end);
        self.html.push_str("</tr>\n");
        self.markdown.push('\n');
    }

    fn empty(&mut self, times: usize, start: &str, end: &str) {
        for _ in 0..times {
            self.html.push_str(start);
            self.html.push_str(end);
            self.markdown.push_str(" |");
        }
    }

    /// The HTML and the markdown.
    pub fn finish(self) -> (String, String) {
        (self.html, self.markdown)
    }
}

/// Adds text of a cell to a row of markdown: what would be markup there is escaped, its lines are kept apart.
fn escape_markdown(out: &mut String, text: &str) {
    // Most cells have nothing to escape.
    let is_plain = |byte| matches!(byte, b' '..=b'~') && !b"|`\\*_<~(".contains(&byte);
    if text.bytes().all(is_plain) && !text.contains("  ") {
        out.push_str(text);
        return;
    }
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let is_space = |c: Option<char>| c.is_none_or(char::is_whitespace);
    let mut before = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let after = chars.peek().copied();
        let is_markup = match c {
            '|' | '`' => true,
            '\\' => after.is_some_and(|c| c.is_ascii_punctuation()),
            '*' => !(is_space(before) && is_space(after)),
            '_' => !(is_word(before) && is_word(after)),
            '<' => after.is_none_or(|c| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')),
            '~' => before == Some('~') || after == Some('~'),
            '(' => before == Some(']'),
            _ => false,
        };
        if is_markup {
            out.push('\\');
        }
        match c {
            '\r' => {}
            '\n' => out.push_str("<br>"),
            c if c.is_whitespace() => {
                if !before.is_some_and(char::is_whitespace) {
                    out.push(' ');
                }
            }
            c if c.is_control() => {}
            c => out.push(c),
        }
        before = Some(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_rows_and_columns_are_left_out() {
        let limits = Limits::default();
        let mut grid = Grid::new(&limits);
        grid.row(1);
        grid.cell(1, "Name");
        grid.cell(4, "A|B_c_");
        grid.row(7);
        grid.cell(4, "two\nlines");
        grid.row(9);
        grid.cell(1, "x");
        grid.link(9, 1, "https://example.com/a b");
        let mut tables = Tables::new(&limits);
        tables.heading("S");
        tables.table(&mut grid);
        let (html, markdown) = tables.finish();
        assert_eq!(
            markdown,
            "## S\n\n| Name | A\\|B_c\\_ |\n| --- | --- |\n| | two<br>lines |\n| [x](https://example.com/a%20b) |\n"
        );
        assert!(html.contains("<tr><td></td><td>two<br>lines</td></tr>"));
    }

    #[test]
    fn a_diagonal_is_cut() {
        let limits = Limits { cells: 100_000, ..Limits::default() };
        let mut grid = Grid::new(&limits);
        for n in 0..16_000 {
            grid.row(n);
            grid.cell(n, "1");
        }
        let mut tables = Tables::new(&limits);
        tables.table(&mut grid);
        assert!(tables.is_cut());
    }
}
