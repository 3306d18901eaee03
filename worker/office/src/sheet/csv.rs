//! Tables of text: comma-separated, or by semicolons, tabs or bars where a file has those.

use csv::ReaderBuilder;
use encoding_rs::Encoding;

use super::grid::{Grid, MAX_COLUMNS, Tables};
use crate::{ConvertError, Converted, Limits, html};

/// How much of a file says what separates its values, bytes.
const LOOKED_AT: usize = 16 << 10;

/// Makes HTML of a table.
///
/// # Errors
/// When the bytes are not text.
pub fn convert(bytes: &[u8], limits: &Limits) -> Result<Converted, ConvertError> {
    let text = decode(bytes);
    if text.contains('\0') {
        return Err(ConvertError::broken("it is not text"));
    }
    // Excel's own first line says what separates values.
    let (separator, text) = match text.strip_prefix("sep=").and_then(|rest| rest.split_once('\n')) {
        Some((said, rest)) if said.trim_end().len() == 1 => (said.as_bytes()[0], rest),
        _ => (separator(&text), text.as_str()),
    };
    // The library makes room for every value of a row.
    if widest(text, separator) > MAX_COLUMNS as usize {
        return Err(ConvertError::too_large("columns", MAX_COLUMNS as usize));
    }
    let mut reader =
        ReaderBuilder::new().has_headers(false).flexible(true).delimiter(separator).from_reader(text.as_bytes());
    let mut grid = Grid::new(limits);
    let mut number = 0;
    let mut record = csv::StringRecord::new();
    while !grid.is_full() {
        match reader.read_record(&mut record) {
            Ok(true) => {}
            Ok(false) => break,
            Err(_) => return Err(ConvertError::broken("its rows cannot be told apart")),
        }
        grid.row(number);
        number += 1;
        for (value, column) in record.iter().zip(0..MAX_COLUMNS) {
            grid.cell(column, value);
        }
    }
    let mut tables = Tables::new(limits);
    tables.table(&mut grid);
    let mut warnings = Vec::new();
    if tables.is_cut() {
        warnings.push("The file has more cells than are converted; the last rows were left out.".to_owned());
    }
    let (body, markdown) = tables.finish();
    Ok(Converted { html: html::document(None, &body), markdown: Some(markdown), warnings, ..Converted::default() })
}

fn decode(bytes: &[u8]) -> String {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return encoding.decode_without_bom_handling(bytes.get(mark..).unwrap_or_default()).0.into_owned();
    }
    if let Ok(text) = str::from_utf8(bytes) {
        return text.to_owned();
    }
    let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    let encoding = detector.guess(None, chardetng::Utf8Detection::Deny);
    encoding.decode_without_bom_handling(bytes).0.into_owned()
}

/// The values of the longest row.
fn widest(text: &str, separator: u8) -> usize {
    let (mut widest, mut width, mut is_quoted) = (0, 1, false);
    for byte in text.bytes() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'\n' | b'\r' if !is_quoted => width = 1,
            _ if byte == separator && !is_quoted => width += 1,
            _ => {}
        }
        widest = widest.max(width);
    }
    widest
}

/// Of the usual separators the one that most lines have equally often; quoted ones do not count.
fn separator(text: &str) -> u8 {
    let head = text.get(..text.floor_char_boundary(LOOKED_AT)).unwrap_or_default();
    let count = |separator: u8| -> Vec<usize> {
        let mut is_quoted = false;
        let mut lines = vec![0];
        for byte in head.bytes() {
            match byte {
                b'"' => is_quoted = !is_quoted,
                b'\n' if !is_quoted => lines.push(0),
                _ if byte == separator && !is_quoted => {
                    if let Some(last) = lines.last_mut() {
                        *last += 1;
                    }
                }
                _ => {}
            }
        }
        lines
    };
    let score = |separator: u8| {
        let lines = count(separator);
        let first = lines.first().copied().unwrap_or(0);
        let alike = lines.iter().filter(|count| **count == first && first > 0).count();
        (alike, first)
    };
    // Of equals the last wins, so the comma stands there.
    [b'|', b'\t', b';', b','].into_iter().max_by_key(|separator| score(*separator)).unwrap_or(b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_found() {
        for (text, expected) in [
            ("a,b\n1,2\n", b','),
            ("a;b\n1,5;2\n", b';'),
            ("a\tb\n1\t2,3\n", b'\t'),
            ("\"x;y\",b\n", b','),
            ("alone\n", b','),
        ] {
            assert_eq!(separator(text), expected, "{text}");
        }
    }
}
