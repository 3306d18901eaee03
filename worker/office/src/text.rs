//! Bytes as text.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use memchr::memmem;

/// Decodes a part of XML: by its mark, its declaration, else as UTF-8.
pub fn decode_xml(bytes: Vec<u8>) -> String {
    if let Some((encoding, mark)) = Encoding::for_bom(&bytes) {
        return encoding.decode_without_bom_handling(bytes.get(mark..).unwrap_or_default()).0.into_owned();
    }
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let bytes = error.into_bytes();
            declared(&bytes).unwrap_or(UTF_8).decode_without_bom_handling(&bytes).0.into_owned()
        }
    }
}

/// The charset that an XML declaration names.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes.get(..bytes.len().min(200))?;
    let head = head.get(..memchr::memchr(b'>', head)?)?;
    let after = head.get(memmem::find(head, b"encoding")? + 8..)?;
    let mut quoted = after.split(|byte| matches!(byte, b'"' | b'\''));
    quoted.next()?;
    Encoding::for_label(quoted.next()?)
}

/// The encoding of a Windows code page.
pub fn code_page(number: u32) -> &'static Encoding {
    let label = match number {
        65001 => "utf-8",
        874 => "windows-874",
        932 => "shift_jis",
        936 => "gbk",
        949 => "euc-kr",
        950 => "big5",
        866 => "ibm866",
        1200 => "utf-16le",
        10000 => "macintosh",
        20866 => "koi8-r",
        1250..=1258 => return encoding_of_windows(number),
        _ => return WINDOWS_1252,
    };
    Encoding::for_label(label.as_bytes()).unwrap_or(WINDOWS_1252)
}

fn encoding_of_windows(number: u32) -> &'static Encoding {
    Encoding::for_label(format!("windows-{number}").as_bytes()).unwrap_or(WINDOWS_1252)
}

/// Decodes UTF-16 in little-endian order; half a character at the end is left out.
pub fn utf16(bytes: &[u8]) -> String {
    let units = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}
