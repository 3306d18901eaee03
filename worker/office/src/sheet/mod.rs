//! Workbooks: each sheet a heading with its name and a table, its first row the head. Values are as they are displayed,
//! as far as their number formats say. Rows and columns without any value are left out, and so are hidden sheets, which
//! a warning names. Formulas, charts, pictures and comments are not kept.

pub mod csv;
mod formats;
mod grid;
mod number;
pub mod ods;
pub mod xls;
pub mod xlsb;
pub mod xlsx;

use grid::{Grid, Tables};

use crate::html::escape;
use crate::{Converted, Limits, html};

/// What of a workbook is written so far.
#[derive(Debug)]
struct Book {
    tables: Tables,
    hidden: Vec<String>,
    /// Formulas whose values nobody has written down.
    unsolved: usize,
}

impl Book {
    fn new(limits: &Limits) -> Self {
        Self { tables: Tables::new(limits), hidden: Vec::new(), unsolved: 0 }
    }

    fn hide(&mut self, name: &str) {
        self.hidden.push(name.to_owned());
    }

    /// Adds a sheet under its name.
    fn sheet(&mut self, name: &str, grid: &mut Grid) {
        if self.tables.is_cut() {
            return;
        }
        self.unsolved += grid.unsolved();
        self.tables.heading(name);
        self.tables.table(grid);
    }

    fn finish(self, said: Converted) -> Converted {
        let mut warnings = said.warnings;
        if !self.hidden.is_empty() {
            warnings.push(format!("Hidden sheets were left out: {}.", self.hidden.join(", ")));
        }
        if self.unsolved > 0 {
            let cells = if self.unsolved == 1 { "A cell".to_owned() } else { format!("{} cells", self.unsolved) };
            warnings.push(format!(
                "{cells} with a formula stayed empty: the file does not hold what it comes to. A spreadsheet program that \
                 opens and saves the file writes it down."
            ));
        }
        if self.tables.is_cut() {
            warnings.push("The file has more cells than are converted; the last rows were left out.".to_owned());
        }
        let (body, markdown) = self.tables.finish();
        Converted {
            html: html::document(said.title.as_deref(), &body),
            markdown: Some(markdown),
            warnings,
            pages: None,
            ..said
        }
    }
}

/// Column of a reference like `BC12`, from 0, with its row, from 1.
fn reference(text: &str) -> Option<(u32, u32)> {
    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    if letters == 0 || letters > 3 {
        return None;
    }
    let (column, row) = text.split_at(letters);
    let column = column.bytes().fold(0, |sum, letter| sum * 26 + u32::from(letter.to_ascii_uppercase() - b'A') + 1);
    Some((column - 1, row.parse().ok()?))
}

/// Adds text of a cell to HTML; its lines are kept apart.
fn escape_lines(out: &mut String, text: &str) {
    for (n, line) in text.lines().enumerate() {
        if n > 0 {
            out.push_str("<br>");
        }
        escape(out, line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_columns_and_rows() {
        assert_eq!(reference("A1"), Some((0, 1)));
        assert_eq!(reference("xfd1048576"), Some((16_383, 1_048_576)));
        assert_eq!(reference("ABCD1"), None);
        assert_eq!(reference("12"), None);
    }
}
