//! What kind of body a site has answered with: by the type it names, and by the first bytes, which know better.

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
    let start = TextStart::of(body);
    let is_html = start.is_html();
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
            } else if !start.is_text {
                BodyKind::Other
            } else {
                start.by_name(path, media.is_empty())
            }
        }
        _ => BodyKind::Other,
    }
}

/// The first bytes of a body, read as text.
struct TextStart {
    /// In lower case, from the first sign that is none of white space and no mark of the order of bytes.
    text: String,
    /// It is text and nothing else, as far as it goes.
    is_text: bool,
}

impl TextStart {
    fn of(body: &[u8]) -> Self {
        let start = &body[..body.len().min(START)];
        // UTF-16 says so itself; decoding follows the mark.
        let wide = match start {
            [0xfe, 0xff, rest @ ..] => Some(read_wide(rest, u16::from_be_bytes)),
            [0xff, 0xfe, rest @ ..] => Some(read_wide(rest, u16::from_le_bytes)),
            _ => None,
        };
        // A sign of several bytes may begin within the start and end behind it.
        let is_whole = std::str::from_utf8(start).map_or_else(|error| error.error_len().is_none(), |_| true);
        let is_text = wide.is_some() || (is_whole && !start.contains(&0));
        let text = wide.unwrap_or_else(|| String::from_utf8_lossy(start).into_owned());
        let text = text.trim_start_matches('\u{feff}').trim_start().to_ascii_lowercase();
        Self { text, is_text }
    }

    /// Whether it begins as HTML does, behind what XHTML may have before it.
    fn is_html(&self) -> bool {
        let mut rest = self.text.as_str();
        if rest.starts_with("<?xml") {
            rest = rest.split_once("?>").map_or("", |(_, rest)| rest.trim_start());
        }
        rest.starts_with("<!doctype html") || rest.starts_with("<html")
    }

    /// What text is by the ending of its name. `is_untyped`: the site names no type, and markup is a page then, as it is to
    /// browsers.
    fn by_name(&self, path: &str, is_untyped: bool) -> BodyKind {
        let name = path.rsplit('/').next().unwrap_or_default();
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
        match ending.as_str() {
            "html" | "htm" | "xhtml" => BodyKind::Html,
            "json" | "geojson" | "jsonld" => BodyKind::Json,
            "csv" | "tsv" => BodyKind::Table,
            "xml" | "rss" | "atom" => BodyKind::Xml,
            _ if is_untyped && self.text.starts_with('<') => BodyKind::Html,
            _ => BodyKind::Text,
        }
    }
}

fn read_wide(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let (pairs, _) = bytes.as_chunks::<2>();
    char::decode_utf16(pairs.iter().map(|pair| unit(*pair)))
        .map(|sign| sign.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
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
            // A sign of three bytes is cut in two by the end of what is looked at.
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
