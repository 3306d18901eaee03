//! How commands print: aligned text for people, one JSON value for programs. What pages, models and callers wrote reaches the
//! terminal as letters: nothing in it moves the cursor, sets a title or colours a line.

use std::fmt;
use std::io::{ErrorKind, Write as _};

use serde_json::Value;

/// Prints a line. Where it cannot be written the command ends: without a word where nobody reads any more, as after `head`, and
/// as a failure where the text is lost, as on a full disk.
pub fn say(line: fmt::Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    let Err(error) = writeln!(out, "{line}").and_then(|()| out.flush()) else { return };
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    complain(format_args!("cannot write to standard output: {error}"));
    std::process::exit(1);
}

/// Prints a line to standard error, if that can be written to.
pub fn complain(line: fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The chosen form.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    pub json: bool,
}

impl Output {
    /// One thing: a line for people.
    pub fn show(self, json: &Value, text: impl FnOnce() -> String) {
        if self.json {
            say(format_args!("{json}"));
        } else {
            say(format_args!("{}", text()));
        }
    }

    /// Many things of one kind: a table for people, an array for programs.
    pub fn list(self, headings: &[&str], rows: Vec<(Value, Vec<String>)>) {
        if self.json {
            say(format_args!("{}", Value::Array(rows.into_iter().map(|r| r.0).collect())));
        } else {
            let cells: Vec<Vec<String>> = rows.into_iter().map(|r| r.1).collect();
            say(format_args!("{}", table(headings, &cells).trim_end_matches('\n')));
        }
    }
}

/// Columns as wide as their widest cell.
pub fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| plain(cell)).collect()).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([headings[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded = cells.zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect::<Vec<_>>();
        format!("{}\n", padded.join("  ").trim_end())
    };
    let mut text = line(&mut headings.iter().copied());
    for row in &rows {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    text
}

/// The text, or a dash when there is none.
pub fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |v| v.to_string())
}

/// At most `most` characters of a text on one line, with an ellipsis when there were more.
pub fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return plain(text);
    }
    plain(text).chars().take(most.saturating_sub(1)).chain(['\u{2026}']).collect()
}

/// A text on one line, without characters that a terminal obeys or that turn the text around.
pub fn plain(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\r' | '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c => c,
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = vec![vec!["a".to_owned(), "long cell".to_owned()], vec!["bbbb".to_owned(), "x".to_owned()]];
        assert_eq!(table(&["ID", "NAME"], &rows), "ID    NAME\na     long cell\nbbbb  x\n");
    }

    #[test]
    fn long_text_is_shortened() {
        assert_eq!(shorten("abcdef", 4), "abc\u{2026}");
        assert_eq!(shorten("abcd", 4), "abcd");
    }

    #[test]
    fn what_others_wrote_cannot_speak_to_the_terminal() {
        let hostile = "\u{1b}]0;owned\u{7}a\nb\u{9b}2J\u{202e}c\u{7f}";
        let shown = "\u{fffd}]0;owned\u{fffd}a b\u{fffd}2J\u{fffd}c\u{fffd}";
        assert_eq!((plain(hostile), shorten(hostile, 80)), (shown.to_owned(), shown.to_owned()));
        assert_eq!(shorten(hostile, 3), "\u{fffd}]\u{2026}");
    }
}
