//! What texts from outside may hold and what takes them does not: Postgres has no U+0000 in a text, and JSON that a program
//! has written of a string cut in the middle of a character has half of one, which is no character. And how texts of our own
//! count things.

use std::fmt;

use memchr::memmem;
pub use weir_json::{mended, read};

/// A text as a column of any database takes it.
pub fn without_nul(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}

/// Whether a string of a JSON text holds U+0000, which JSON has as an escape alone.
pub fn names_nul(json: &[u8]) -> bool {
    memmem::find_iter(json, b"\\u0000").any(|at| {
        let before = json[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
        before % 2 == 0
    })
}

/// A number of things, as `1 page` or `2 pages`. The word is one whose plural has an s.
pub fn counted<N: fmt::Display + PartialEq + From<u8>>(count: N, word: &str) -> String {
    let ending = if count == N::from(1) { "" } else { "s" };
    format!("{count} {word}{ending}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::Value;

    use super::*;

    #[test]
    fn one_thing_is_no_plural() {
        assert_eq!(
            [counted(0_i64, "page"), counted(1, "page"), counted(2, "browser session")].join(", "),
            "0 pages, 1 page, 2 browser sessions"
        );
        assert_eq!((counted(1_usize, "blob"), counted(1_u64, "blob")), ("1 blob".to_owned(), "1 blob".to_owned()));
    }

    #[test]
    fn a_nul_is_found_where_json_has_one() {
        for (text, has) in [
            (r#"{"a":"\u0000"}"#, true),
            (r#"{"a":"b\\\u0000"}"#, true),
            (r#"{"\u0000":1}"#, true),
            (r#"{"a":"\\u0000"}"#, false),
            (r#"{"a":"\\\\u0000 \u0001"}"#, false),
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(names_nul(text.as_bytes()), has, "{text}");
            let holds = |text: &str| text.contains('\0');
            let held =
                value.as_object().unwrap().iter().any(|(key, value)| holds(key) || value.as_str().is_some_and(holds));
            assert_eq!(held, has, "{text}");
        }
        assert_eq!(without_nul("a\0b".to_owned()), "a\u{fffd}b");
    }
}
