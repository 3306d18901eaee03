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

/// The kind of a body. `media` is the type that the site names, in lower case and without parameters; empty: none.
pub fn sniff(media: &str, body: &[u8]) -> BodyKind {
    let start = &body[..body.len().min(512)];
    let text_start = String::from_utf8_lossy(start).trim_start().to_ascii_lowercase();
    if start.starts_with(b"%PDF-") {
        return BodyKind::Pdf;
    }
    let is_html = text_start.starts_with("<!doctype html") || text_start.starts_with("<html");
    let holds_pdf = || memchr::memmem::find(&body[..body.len().min(PDF_WITHIN)], b"%PDF-").is_some();
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
            if is_html {
                BodyKind::Html
            } else if holds_pdf() {
                BodyKind::Pdf
            } else if media.is_empty() && !start.contains(&0) && std::str::from_utf8(start).is_ok() {
                if text_start.starts_with('<') { BodyKind::Html } else { BodyKind::Text }
            } else {
                BodyKind::Other
            }
        }
        _ => BodyKind::Other,
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
            assert_eq!(sniff(media, body.as_bytes()), kind, "{media} {body}");
        }
    }
}
