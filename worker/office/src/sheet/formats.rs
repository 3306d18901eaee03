//! The number formats that the cells of a workbook have, by their styles.

use std::collections::HashMap;

use super::number::{Format, builtin};

/// Formats by style; each code is taken apart once.
#[derive(Debug, Default)]
pub struct Formats {
    codes: HashMap<u32, String>,
    styles: Vec<u32>,
    parsed: HashMap<u32, Format>,
    /// Days are counted from 1904, not from 1900.
    pub is_1904: bool,
}

impl Formats {
    /// A code of the workbook's own.
    pub fn code(&mut self, id: u32, code: String) {
        // Sheets allow no longer ones.
        if code.chars().count() <= 255 {
            self.codes.insert(id, code);
        }
    }

    /// The format of the next style.
    pub fn style(&mut self, id: u32) {
        self.styles.push(id);
    }

    /// A number in a style.
    pub fn number(&mut self, style: usize, value: f64) -> String {
        let id = self.styles.get(style).copied().unwrap_or(0);
        let codes = &self.codes;
        let parse = || Format::parse(codes.get(&id).map_or_else(|| builtin(id), String::as_str));
        self.parsed.entry(id).or_insert_with(parse).number(value, self.is_1904)
    }
}

/// An error in a cell.
pub fn error(code: u8) -> &'static str {
    match code {
        0x00 => "#NULL!",
        0x07 => "#DIV/0!",
        0x0f => "#VALUE!",
        0x17 => "#REF!",
        0x1d => "#NAME?",
        0x24 => "#NUM!",
        0x2a => "#N/A",
        _ => "#ERROR!",
    }
}

/// A truth.
pub fn boolean(is_true: bool) -> &'static str {
    if is_true { "TRUE" } else { "FALSE" }
}
