//! What kind of body a site has answered with: by the type it names, and by the first bytes, which know better.

use encoding_rs::{Encoding, UTF_8};

use crate::pdf::PDF_WITHIN;

/// What a body is, by its type and its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyKind {
    Html,
    /// Plain text, and what is written in it.
    Text,
    Json,
    /// Rows with delimiters.
    Table,
    /// XML, feeds among it.
    Xml,
    Pdf,
    /// HTML that is announced as a PDF.
    FalsePdf,
    Other,
}

/// Bytes at the start that tell what a body is.
const START: usize = 512;

/// The kind of a body. `media` is the type that the site names, in lower case and without parameters; empty: none. `path` is
/// that of the address, whose ending counts where the type says nothing (`application/octet-stream`, which stores of files
/// give to whatever they do not know).
pub fn sniff(media: &str, path: &str, body: &[u8]) -> BodyKind {
    if body.starts_with(b"%PDF-") {
        return BodyKind::Pdf;
    }
    let start = &body[..body.len().min(START)];
    let text = read(start);
    let is_html = begins_as_html(&text);
    match media {
        "application/pdf" | "application/x-pdf" if is_html => BodyKind::FalsePdf,
        "application/pdf" | "application/x-pdf" => BodyKind::Pdf,
        "text/html" | "application/xhtml+xml" => BodyKind::Html,
        "application/json" | "text/json" => BodyKind::Json,
        m if m.ends_with("+json") => BodyKind::Json,
        "text/csv" | "application/csv" | "text/tab-separated-values" => BodyKind::Table,
        "text/xml" | "application/xml" if is_html => BodyKind::Html,
        "text/xml" | "application/xml" => BodyKind::Xml,
        m if m.ends_with("+xml") && m != "image/svg+xml" => BodyKind::Xml,
        m if m.starts_with("text/") => BodyKind::Text,
        "application/javascript" | "application/yaml" | "application/x-ndjson" => BodyKind::Text,
        "" | "application/octet-stream" | "binary/octet-stream" | "application/force-download" => {
            let holds_pdf = || memchr::memmem::find(&body[..body.len().min(PDF_WITHIN)], b"%PDF-").is_some();
            if is_html {
                BodyKind::Html
            } else if holds_pdf() {
                BodyKind::Pdf
            } else if is_text(start) {
                by_name(path, media.is_empty() && text.starts_with('<'))
            } else {
                BodyKind::Other
            }
        }
        _ => BodyKind::Other,
    }
}

/// The start of a body in lower case, from the first character that is no white space and no mark of the order of bytes.
fn read(start: &[u8]) -> String {
    let text = Encoding::for_bom(start)
        .map_or_else(|| String::from_utf8_lossy(start), |(marked, _)| marked.decode_with_bom_removal(start).0);
    text.trim_start().to_ascii_lowercase()
}

/// Whether the start of a body is text and nothing else, as far as it goes.
fn is_text(start: &[u8]) -> bool {
    // Other marks than that of UTF-8 say themselves what follows; decoding goes by them.
    let is_wide = Encoding::for_bom(start).is_some_and(|(marked, _)| marked != UTF_8);
    // A character of several bytes may begin within the start and end behind it.
    let is_whole = || std::str::from_utf8(start).map_or_else(|error| error.error_len().is_none(), |_| true);
    is_wide || (!start.contains(&0) && is_whole())
}

/// Whether a text begins as HTML does, behind what XHTML may have before it.
fn begins_as_html(text: &str) -> bool {
    let mut rest = text;
    if rest.starts_with("<?xml") {
        rest = rest.split_once("?>").map_or("", |(_, rest)| rest.trim_start());
    }
    rest.starts_with("<!doctype html") || rest.starts_with("<html")
}

/// What text is by the ending of its name. `is_markup`: where that says nothing, it is a page, as it is to browsers.
fn by_name(path: &str, is_markup: bool) -> BodyKind {
    let name = path.rsplit('/').next().unwrap_or_default();
    match weir_office::Format::of_name(name).map(weir_office::Format::kind) {
        Some(weir_office::Kind::Html) => return BodyKind::Html,
        Some(weir_office::Kind::Table) => return BodyKind::Table,
        _ => {}
    }
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    match ending.as_str() {
        "json" | "geojson" | "jsonld" => BodyKind::Json,
        "tsv" => BodyKind::Table,
        "xml" | "rss" | "atom" => BodyKind::Xml,
        _ if is_markup => BodyKind::Html,
        _ => BodyKind::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_told_by_type_then_by_its_first_bytes() {
        for (media, body, kind) in [
            ("text/html", "x", BodyKind::Html),
            ("application/json", "{}", BodyKind::Json),
            ("application/ld+json", "{}", BodyKind::Json),
            ("application/rss+xml", "<rss>", BodyKind::Xml),
            ("text/csv", "a,b", BodyKind::Table),
            ("text/xml", "<html>", BodyKind::Html),
            ("text/yaml", "a: b", BodyKind::Text),
            ("image/svg+xml", "<svg>", BodyKind::Other),
            ("text/html", "%PDF-1.4", BodyKind::Pdf),
            ("application/octet-stream", "\r\n%PDF-1.4", BodyKind::Pdf),
            ("application/pdf", "<!DOCTYPE html><title>", BodyKind::FalsePdf),
            ("application/pdf", "junk", BodyKind::Pdf),
            ("", "<!DOCTYPE html>", BodyKind::Html),
            ("", "plain", BodyKind::Text),
            ("application/octet-stream", "\0\0", BodyKind::Other),
            ("application/pdf", "%PDF-", BodyKind::Pdf),
        ] {
            assert_eq!(sniff(media, "/", body.as_bytes()), kind, "{media} {body}");
        }
    }

    #[test]
    fn text_without_a_type_of_its_own_is_told_by_its_name_and_its_marks() {
        let cut = |text: &str, before: usize| [" ".repeat(before).as_str(), &text.repeat(300)].concat().into_bytes();
        let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        for (media, path, body, kind) in [
            ("application/octet-stream", "/o/f.csv", b"a,b".to_vec(), BodyKind::Table),
            ("binary/octet-stream", "/o/f.JSON", b"{}".to_vec(), BodyKind::Json),
            ("application/octet-stream", "/o/f.md", b"# a".to_vec(), BodyKind::Text),
            ("application/octet-stream", "/o.csv/f", b"<a".to_vec(), BodyKind::Text),
            ("application/octet-stream", "/o/f.xml", b"<a/>".to_vec(), BodyKind::Xml),
            ("application/octet-stream", "/o/f.txt", b"a\0b".to_vec(), BodyKind::Other),
            ("application/octet-stream", "/o/f.txt", b"a\xffb".to_vec(), BodyKind::Other),
            ("", "/o/f", b"<a/>".to_vec(), BodyKind::Html),
            ("", "/o/f.xml", b"<a/>".to_vec(), BodyKind::Xml),
            // A character of three bytes is cut in two by the end of what is looked at.
            ("", "/", cut("\u{6587}", 0), BodyKind::Text),
            ("", "/", cut("\u{6587}", 1), BodyKind::Text),
            ("", "/", b"\xef\xbb\xbf<!DOCTYPE html>".to_vec(), BodyKind::Html),
            ("", "/", [b"\xff\xfe".to_vec(), wide("<!DOCTYPE html>")].concat(), BodyKind::Html),
            ("", "/", [b"\xff\xfe".to_vec(), wide("plain")].concat(), BodyKind::Text),
            ("text/xml", "/", b"<?xml version='1.0'?>\n<!DOCTYPE html>".to_vec(), BodyKind::Html),
            ("text/xml", "/", b"<?xml version='1.0'?><rss>".to_vec(), BodyKind::Xml),
            ("text/xml", "/", b"<?xml ".to_vec(), BodyKind::Xml),
        ] {
            assert_eq!(sniff(media, path, &body), kind, "{media} {path} {}", String::from_utf8_lossy(&body));
        }
    }
}
