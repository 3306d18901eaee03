//! JSON bodies become values only within a budget: a short text can describe values that take ninety times its room
//! (`[0],[0],…`), so it is counted before anything is built.
//!
//! The counts also let every list and object be made at its size at once, instead of growing to it through copies.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Room that values may take whatever the text's length: an ordinary body is a few kilobytes, and a schema is dense.
const FREE: usize = 4 << 20;
/// Beyond that, the room of the values for each byte of their text. With the text, and with what a parser makes of the
/// values, a body stays below ten times its length.
const PER_BYTE: usize = 6;
/// Room of a value in a list.
const ENTRY: usize = size_of::<Value>();
/// Room of a field of an object: key, value and hash.
const FIELD: usize = ENTRY + size_of::<String>() + size_of::<u64>();
/// Smallest pieces that the allocator gives, bytes.
const PIECE: usize = 16;
/// Containers inside each other at most, as the JSON library has it.
const DEPTH: usize = 128;

/// Why a text gives no value.
#[derive(Debug)]
pub enum Fault {
    /// It is not JSON.
    Malformed(serde_json::Error),
    /// Its values would take far more room than the text.
    TooDense,
}

/// Reads a JSON text.
///
/// # Errors
/// When it is not JSON, or its values are too many for its length.
pub fn decode(text: &[u8]) -> Result<Value, Fault> {
    let sizes = count(text, budget(text, Reader::Ours))?;
    let seed = Seed { sizes: &sizes, next: &Cell::new(0) };
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = seed.deserialize(&mut reader).map_err(Fault::Malformed)?;
    reader.end().map_err(Fault::Malformed)?;
    Ok(value)
}

/// What will read a text that is judged beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// [`decode`].
    Ours,
    /// One of a library: they hold all values twice for a moment, so these may be half as many.
    Foreign,
}

/// Judges a text that is read later, or by others.
///
/// # Errors
/// When its values are too many for its length.
pub fn check(text: &[u8], reader: Reader) -> Result<(), Fault> {
    count(text, budget(text, reader)).map(drop)
}

/// Room that the values of a text may take, bytes.
fn budget(text: &[u8], reader: Reader) -> usize {
    let per_byte = match reader {
        Reader::Ours => PER_BYTE,
        Reader::Foreign => PER_BYTE / 2,
    };
    FREE.max(text.len().saturating_mul(per_byte))
}

/// What a container holds, while it is counted.
struct Open {
    /// Its place among the sizes.
    place: usize,
    is_list: bool,
}

/// How many entries each list and object has, in the order in which they begin. Judges nothing but the room: whether
/// it is JSON is for the reader to say.
fn count(text: &[u8], budget: usize) -> Result<Vec<u32>, Fault> {
    let mut sizes: Vec<u32> = Vec::new();
    let mut stack: Vec<Open> = Vec::new();
    let mut left = budget;
    let mut spend = |room: usize| {
        left = left.checked_sub(room).ok_or(Fault::TooDense)?;
        Ok::<(), Fault>(())
    };
    let mut at = 0;
    while let Some(byte) = text.get(at).copied() {
        match byte {
            b'"' => {
                let length = string(&text[at + 1..]);
                entry(&mut stack, &mut sizes, &mut spend)?;
                spend(length.next_multiple_of(PIECE))?;
                at += length + 2;
                continue;
            }
            b'[' | b'{' => {
                entry(&mut stack, &mut sizes, &mut spend)?;
                if stack.len() == DEPTH {
                    // The reader refuses it at this place.
                    break;
                }
                stack.push(Open { place: sizes.len(), is_list: byte == b'[' });
                sizes.push(0);
                // The count itself, and what the container's first piece is rounded up by.
                spend(size_of::<u32>() + PIECE)?;
            }
            b']' | b'}' => _ = stack.pop(),
            b':' => {
                if let Some(open) = stack.last() {
                    if sizes[open.place] == 0 {
                        // The table that finds fields by their hash.
                        spend(3 * PIECE)?;
                    }
                    sizes[open.place] += 1;
                    // Twice the place in that table: it is never full.
                    spend(FIELD + 2 * (size_of::<usize>() + 1))?;
                }
            }
            b',' | b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => {
                entry(&mut stack, &mut sizes, &mut spend)?;
                let rest = &text[at..];
                let is_over = |byte: &u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n');
                at += rest.iter().position(is_over).unwrap_or(rest.len()).max(1);
                continue;
            }
        }
        at += 1;
    }
    Ok(sizes)
}

/// A value begins: in a list it is one entry more.
fn entry(
    stack: &mut [Open],
    sizes: &mut [u32],
    spend: &mut impl FnMut(usize) -> Result<(), Fault>,
) -> Result<(), Fault> {
    match stack.last() {
        Some(Open { place, is_list: true }) => {
            sizes[*place] += 1;
            spend(ENTRY)
        }
        _ => Ok(()),
    }
}

/// Length of a string up to its closing quote; of what there is when it has none.
fn string(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &text[at..]) {
        at += found;
        if text[at] == b'"' {
            return at;
        }
        at = (at + 2).min(text.len());
    }
    text.len()
}

/// Builds a value whose containers have known sizes.
#[derive(Clone, Copy)]
struct Seed<'a> {
    sizes: &'a [u32],
    next: &'a Cell<usize>,
}

impl Seed<'_> {
    /// Of the container that begins now.
    fn size(self) -> usize {
        let place = self.next.replace(self.next.get() + 1);
        self.sizes.get(place).map_or(0, |size| *size as usize)
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut list = Vec::with_capacity(self.size());
        while let Some(value) = entries.next_element_seed(self)? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::with_capacity(self.size());
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(self)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_gives_the_value_that_the_library_gives() {
        for text in [
            "null",
            " true ",
            "-1.5e3",
            "18446744073709551615",
            "\"a\\\"b\\u00e9\\\\\"",
            "[]",
            "{}",
            "[[], [1, [2, \"]\", {\"[\": \"}\\\"\"}]], {\"a\": {}}]",
            "{\"a\": 1, \"b\": {\"c\": [null, false]}, \"a\": \"again\"}",
            "{\"$serde_json::private::RawValue\": \"[1]\"}",
        ] {
            let value = decode(text.as_bytes()).unwrap();
            if !text.contains("RawValue") {
                assert_eq!(value, serde_json::from_str::<Value>(text).unwrap(), "{text}");
            }
        }
        // serde_json gives this name a meaning of its own (raw values); here it is a name like any other.
        assert_eq!(
            decode(b"{\"$serde_json::private::RawValue\": \"[1]\"}").unwrap(),
            json!({"$serde_json::private::RawValue": "[1]"})
        );
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        assert_eq!(decode(deep.as_bytes()).unwrap(), serde_json::from_str::<Value>(&deep).unwrap());
    }

    #[test]
    fn what_is_no_json_is_said_as_the_library_says_it() {
        let deep = "[".repeat(100_000);
        for text in ["", "{", "[1,]", "{\"a\" 1}", "\"a", "\"\\", "[1] 2", "nul", "1e999", "]", ":", "{1:2}", &deep] {
            let expected = serde_json::from_str::<Value>(text).unwrap_err().to_string();
            match decode(text.as_bytes()).unwrap_err() {
                Fault::Malformed(error) => assert_eq!(error.to_string(), expected, "{:.20}", text),
                Fault::TooDense => panic!("{text:.20} is counted as dense"),
            }
        }
        assert!(matches!(decode(b"\"\xff\"").unwrap_err(), Fault::Malformed(_)));
    }

    /// A text of this length of one piece over and over.
    fn repeated(piece: &str, length: usize) -> Vec<u8> {
        let pieces = vec![piece; length / (piece.len() + 1)];
        format!("{{\"x\":[{}]}}", pieces.join(",")).into_bytes()
    }

    #[test]
    fn values_that_take_far_more_room_than_their_text_are_refused() {
        for piece in ["[0]", "0", "[]", "{}", "\"\"", "{\"\":0}", "{\"a\":[]}", "[[[]]]", "null"] {
            let fault = decode(&repeated(piece, 2 << 20)).unwrap_err();
            assert!(matches!(fault, Fault::TooDense), "{piece}: {fault:?}");
            decode(&repeated(piece, 16 << 10)).unwrap();
        }
    }

    #[test]
    fn what_callers_send_is_not() {
        for piece in ["\"https://a.com\"", "\"https://example.com/a/page?with=a&query=1\""] {
            decode(&repeated(piece, 8 << 20)).unwrap();
        }
        let code = serde_json::to_vec(&json!({"code": "a\n".repeat(4 << 20)})).unwrap();
        decode(&code).unwrap();
    }
}
