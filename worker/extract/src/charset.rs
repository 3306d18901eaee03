//! Bytes to text: BOM, then validity as UTF-8, then the declared charset, then a guess.
//!
//! A page that is valid UTF-8 is UTF-8 whatever its labels say, as nothing else looks like it by accident. A label of
//! UTF-8 on bytes that are mostly something else is disbelieved the same way.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE};

/// Bytes looked through for a declaration inside the document.
const PRESCAN: usize = 4096;
/// Bytes given to the detector.
const DETECT: usize = 64 << 10;

/// Decodes a page. `http_charset` is the `charset` parameter of the `Content-Type` header, as sent.
/// Undecodable bytes become U+FFFD; this never fails. Valid UTF-8 without BOM is borrowed.
pub fn decode<'a>(bytes: &'a [u8], http_charset: Option<&str>) -> Cow<'a, str> {
    if let Some((encoding, skip)) = Encoding::for_bom(bytes) {
        return encoding.decode_without_bom_handling(&bytes[skip..]).0;
    }
    if let Some(encoding) = utf16_without_bom(bytes) {
        return encoding.decode_without_bom_handling(bytes).0;
    }
    let http = http_charset.and_then(for_label);
    let utf8 = std::str::from_utf8(bytes);
    let declared = match (http, &utf8) {
        // Only an escape-based charset can hide in ASCII.
        (Some(e), Ok(text)) if e != ISO_2022_JP || !text.contains('\u{1b}') => None,
        (Some(e), _) => Some(e),
        (None, _) => declared_inside(bytes),
    };
    if let Ok(text) = utf8 {
        return match declared {
            Some(e) if e == ISO_2022_JP && text.contains('\u{1b}') => e.decode_without_bom_handling(bytes).0,
            _ => Cow::Borrowed(text),
        };
    }
    let encoding = [declared, declared_inside(bytes)]
        .into_iter()
        .flatten()
        .find(|&e| e != UTF_8 || holds_utf8(bytes, 4))
        .unwrap_or_else(|| if holds_utf8(bytes, 1) { UTF_8 } else { guess(bytes) });
    encoding.decode_without_bom_handling(bytes).0
}

fn for_label(label: &str) -> Option<&'static Encoding> {
    let label = label.trim().trim_matches(['"', '\'']);
    let encoding = Encoding::for_label_no_replacement(label.as_bytes())?;
    // A body with ASCII markup cannot be UTF-16; the label then means "Unicode".
    Some(if encoding == UTF_16LE || encoding == UTF_16BE { UTF_8 } else { encoding })
}

fn utf16_without_bom(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = &bytes[..bytes.len().min(64)];
    if head.len() < 8 {
        return None;
    }
    let zeros = |from: usize| head.iter().skip(from).step_by(2).filter(|b| **b == 0).count();
    let half = head.len() / 2;
    if zeros(1) * 10 >= half * 8 && zeros(0) == 0 {
        Some(UTF_16LE)
    } else if zeros(0) * 10 >= half * 8 && zeros(1) == 0 {
        Some(UTF_16BE)
    } else {
        None
    }
}

/// Whether there is fewer than `tolerance` errors for each well-formed multi-byte sequence.
fn holds_utf8(bytes: &[u8], tolerance: usize) -> bool {
    let (mut good, mut bad) = (0usize, 0usize);
    for chunk in bytes[..bytes.len().min(1 << 20)].utf8_chunks() {
        good += chunk.valid().bytes().filter(|b| *b >= 0xc0).count();
        bad += usize::from(!chunk.invalid().is_empty());
    }
    good * tolerance > bad
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    // The detector learns from the non-ASCII part, which may come late.
    let first = bytes.iter().position(|b| *b >= 0x80).unwrap_or(0).saturating_sub(64);
    let window = &bytes[first..bytes.len().min(first + DETECT)];
    detector.feed(window, true);
    detector.guess(None, Utf8Detection::Deny)
}

/// The charset named by an XML declaration or a `meta` element near the start.
fn declared_inside(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes[..bytes.len().min(PRESCAN)].to_ascii_lowercase();
    if head.trim_ascii_start().starts_with(b"<?xml") {
        let end = memchr::memchr(b'>', &head).unwrap_or(head.len());
        if let Some(at) = memchr::memmem::find(&head[..end], b"encoding")
            && let Some(found) = label_after(&head[at + 8..end])
        {
            return Some(found);
        }
    }
    let mut from = 0;
    while let Some(step) = memchr::memmem::find(&head[from..], b"<meta") {
        let at = from + step + 5;
        let end = memchr::memchr(b'>', &head[at..]).map_or(head.len(), |n| at + n);
        if let Some(found) =
            memchr::memmem::find(&head[at..end], b"charset").and_then(|c| label_after(&head[at + c + 7..end]))
        {
            return Some(found);
        }
        from = at;
    }
    None
}

/// The label in `= "label"` or `=label`.
fn label_after(rest: &[u8]) -> Option<&'static Encoding> {
    let rest = rest.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let rest = rest.strip_prefix(b"\"").or_else(|| rest.strip_prefix(b"'")).unwrap_or(rest);
    let end =
        rest.iter().position(|b| matches!(b, b'"' | b'\'' | b' ' | b';' | b'/' | b'>' | b'?')).unwrap_or(rest.len());
    for_label(std::str::from_utf8(&rest[..end]).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bom_beats_every_label() {
        let page = [b"\xef\xbb\xbf<meta charset=koi8-r>".as_slice(), "é".as_bytes()].concat();
        assert!(decode(&page, Some("iso-8859-1")).ends_with('é'));
        let utf16: Vec<u8> = "\u{feff}añ".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(decode(&utf16, None), "añ");
    }

    #[test]
    fn valid_utf8_beats_wrong_labels() {
        let page = "<meta charset=\"iso-8859-1\"><p>Größe".as_bytes();
        assert!(matches!(decode(page, Some("iso-8859-1")), Cow::Borrowed(t) if t.ends_with("Größe")));
    }

    #[test]
    fn the_header_beats_the_meta_element() {
        let (bytes, _, _) = encoding_rs::WINDOWS_1251.encode("<meta charset=koi8-r><p>привет");
        assert!(decode(&bytes, Some("\"windows-1251\"")).ends_with("привет"));
        assert!(!decode(&bytes, None).ends_with("привет"));
    }

    #[test]
    fn meta_and_xml_declarations_are_read() {
        for head in [
            "<meta charset='Shift_JIS'>",
            "<META HTTP-EQUIV=x content=\"text/html; charset=shift_jis\">",
            "<?xml version=\"1.0\" encoding=\"shift_jis\"?>",
        ] {
            let (bytes, _, _) = encoding_rs::SHIFT_JIS.encode("東京の気象台は雨");
            let page = [head.as_bytes(), &bytes].concat();
            assert!(decode(&page, None).ends_with("東京の気象台は雨"), "{head}");
        }
    }

    #[test]
    fn undeclared_bytes_are_guessed() {
        let (bytes, _, _) = encoding_rs::WINDOWS_1251.encode("<p>Городская библиотека открыла новый зал для чтения");
        assert!(decode(&bytes, None).contains("библиотека"));
    }

    #[test]
    fn a_few_bad_bytes_do_not_change_the_charset() {
        let page = ["Größe und Café ".as_bytes(), b"\xff\xfe\xc3\x28 end"].concat();
        let text = decode(&page, Some("utf-8"));
        assert!(text.starts_with("Größe und Café") && text.ends_with("end"));
    }

    #[test]
    fn utf16_without_bom_is_seen() {
        let bytes: Vec<u8> = "<html><body>é".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(decode(&bytes, None), "<html><body>é");
    }
}
