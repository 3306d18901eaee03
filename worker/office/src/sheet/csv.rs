//! Tables of text: comma-separated, or by semicolons, tabs or bars where a file has those.

use std::cmp::Reverse;
use std::collections::HashMap;

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
    let (separator, text) = separated(&text);
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

/// What separates the values of a table, and its rows: Excel's own first line says it, else the rows tell.
pub fn separated(text: &str) -> (u8, &str) {
    match text.strip_prefix("sep=").and_then(|rest| rest.split_once('\n')) {
        Some((said, rest)) if said.trim_end().len() == 1 => (said.as_bytes()[0], rest),
        _ => (separator(text), text),
    }
}

/// Each byte that no quotes hold, with the one after it. Quotes hold a value where they begin it; elsewhere they are
/// characters like others, as for inches.
fn unquoted(text: &str, separator: u8, mut take: impl FnMut(u8, Option<u8>)) {
    let bytes = text.as_bytes();
    let (mut is_quoted, mut is_begin) = (false, true);
    let mut at = 0;
    while let Some(byte) = bytes.get(at).copied() {
        let next = bytes.get(at + 1).copied();
        at += 1;
        match byte {
            // Two of them stand for one.
            b'"' if is_quoted && next == Some(b'"') => at += 1,
            b'"' if is_quoted => is_quoted = false,
            _ if is_quoted => {}
            b'"' if is_begin => {
                is_quoted = true;
                is_begin = false;
            }
            _ => {
                is_begin = byte == separator || matches!(byte, b'\n' | b'\r');
                take(byte, next);
            }
        }
    }
}

/// The values of the longest row.
fn widest(text: &str, separator: u8) -> usize {
    let (mut widest, mut width) = (0, 1);
    unquoted(text, separator, |byte, _| {
        match byte {
            b'\n' | b'\r' => width = 1,
            _ if byte == separator => width += 1,
            _ => {}
        }
        widest = widest.max(width);
    });
    widest
}

/// Of the usual separators the one that most lines have equally often; quoted ones do not count. Lines without any, such as
/// titles, say nothing.
fn separator(text: &str) -> u8 {
    let head = text.get(..text.floor_char_boundary(LOOKED_AT)).unwrap_or_default();
    let score = |separator: u8| {
        let (mut lines, mut spaced) = (vec![0], 0);
        unquoted(head, separator, |byte, next| match byte {
            b'\n' => lines.push(0),
            _ if byte == separator => {
                if let Some(last) = lines.last_mut() {
                    *last += 1;
                }
                spaced += usize::from(next == Some(b' '));
            }
            _ => {}
        });
        let mut alike: HashMap<usize, usize> = HashMap::new();
        lines.into_iter().filter(|count| *count > 0).for_each(|count| *alike.entry(count).or_default() += 1);
        let (lines, count) = alike.into_iter().map(|(count, lines)| (lines, count)).max().unwrap_or_default();
        // Of characters that lines have equally often, one that spaces follow is of the text.
        (lines, Reverse(spaced), count)
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
            ("Report of May\n\nName;Price\nA;1,50\nB;2,50\nC;3,50\n", b';'),
            ("Name;Price, net\nA;1,50\nB;2,50\n", b';'),
            ("a, b\n1, 2\n", b','),
            ("5\" pipe;a,b\n6\" pipe;c,d\n7\" pipe;e\n", b';'),
        ] {
            assert_eq!(separator(text), expected, "{text}");
        }
        assert_eq!(separated("sep=,\r\na;b;c\n"), (b',', "a;b;c\n"));
    }

    #[test]
    fn a_quote_within_a_value_is_a_character_like_others() {
        let rows = "2,\"Smith, John\",2\n".repeat(10_000);
        let text = format!("id,name,size\n1,\"He said \"\"5, 6\"\"\",5\" pipe\n{rows}");
        assert_eq!(widest(&text, b','), 3);
        let converted = convert(text.as_bytes(), &Limits::default()).unwrap();
        let markdown = converted.markdown.unwrap();
        assert!(markdown.contains("| 1 | He said \"5, 6\" | 5\" pipe |\n| 2 | Smith, John | 2 |\n"), "{markdown:.200}");
        assert_eq!(widest("a,b\r\n\"x,\ny,z\",1,2\r\n", b','), 3);
    }
}
