//! JSON as programs write it that cut strings anywhere: pages, models, search backends and browsers. A string that was cut in
//! the middle of a character has half of one (`\ud83d` alone), which is no character and which a reader of JSON refuses, with all
//! that stands around it.

use std::borrow::Cow;

use memchr::{memchr, memmem};
use serde::de::DeserializeOwned;

/// What stands for a half of a character.
const REPLACED: &str = "\\ufffd";
/// Length of `\u` and four digits.
const ESCAPE: usize = 6;

/// A JSON text with U+FFFD in the place of each half of a character; what is borrowed has none.
pub fn mended(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    // A quick look: most texts have no escape like it.
    if memmem::find(bytes, b"\\ud").is_none() && memmem::find(bytes, b"\\uD").is_none() {
        return Cow::Borrowed(json);
    }
    let (mut at, mut copied, mut mended) = (0, 0, String::new());
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr(b'\\', rest)) {
        at += found;
        match unit(bytes, at) {
            // Another escape, which is two bytes long or goes on with digits.
            None => at += 2,
            Some(0xd800..=0xdbff) if matches!(unit(bytes, at + ESCAPE), Some(0xdc00..=0xdfff)) => at += 2 * ESCAPE,
            Some(0xd800..=0xdfff) => {
                mended.push_str(&json[copied..at]);
                mended.push_str(REPLACED);
                at += ESCAPE;
                copied = at;
            }
            Some(_) => at += ESCAPE,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    mended.push_str(&json[copied..]);
    Cow::Owned(mended)
}

/// The number of the `\u` escape that begins here.
fn unit(json: &[u8], at: usize) -> Option<u16> {
    let escape = json.get(at..at + ESCAPE)?;
    let digits = std::str::from_utf8(escape.strip_prefix(b"\\u")?).ok()?;
    // A sign would be read as one of a number.
    if digits.starts_with('+') { None } else { u16::from_str_radix(digits, 16).ok() }
}

/// Reads JSON of a program that may cut strings anywhere.
///
/// # Errors
/// When it is not JSON of this type, halves of characters aside.
pub fn read<T: DeserializeOwned>(json: &str) -> serde_json::Result<T> {
    serde_json::from_str(json).or_else(|error| match mended(json) {
        Cow::Owned(mended) => serde_json::from_str(&mended),
        Cow::Borrowed(_) => Err(error),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn half_a_character_becomes_a_replacement_and_nothing_else_is_touched() {
        for (text, read_as) in [
            (r#""a\ud83d""#, "a\u{fffd}"),
            (r#""\uDE00b""#, "\u{fffd}b"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}\u{1f600}"),
            (r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}"),
            (r#""\ud83dA""#, "\u{fffd}A"),
            (r#""\ud83d\n\\ud83d""#, "\u{fffd}\n\\ud83d"),
            (r#""한\ud55c\ud83d""#, "한한\u{fffd}"),
        ] {
            assert!(serde_json::from_str::<Value>(text).is_err(), "{text}");
            assert_eq!(read::<Value>(text).unwrap(), json!(read_as), "{text}");
        }
        for whole in [r#""\ud83d\ude00""#, r#""\\ud83d""#, r#""\ud55c""#, "[1]", r#""\"""#] {
            assert!(matches!(mended(whole), Cow::Borrowed(_)), "{whole}");
        }
        for broken in [r#""\ud83d"#, r#"{"\ud83d":"#, r#""\ud8"#, r#""\ud+12""#, "\\", r#""\ud83d\"#] {
            assert!(read::<Value>(broken).is_err(), "{broken}");
        }
    }
}
