//! The `parsers` of a request (wire 3.5): names or objects, an X and `{type: X}` being the same.

use serde_json::Value;

use crate::domain::scrape::{MAX_PDF_PAGES, Parsers, PdfMode, PdfParser};
use crate::domain::validation::Fields;

const NAMES: &[&str] = &["pdf", "image"];
/// Longest list.
const MAX_PARSERS: i64 = 10;

/// Reads `parsers`; `None` when they are absent. What the list does not name is not parsed.
pub(super) fn read(fields: &mut Fields<'_, '_>) -> Option<Parsers> {
    let list = fields.array("parsers", MAX_PARSERS)?;
    let mut parsers = Parsers { pdf: None, image: false };
    for (i, entry) in list.iter().enumerate() {
        let mut path = fields.path_of("parsers");
        path.push(i.into());
        match entry {
            Value::String(name) => match name.as_str() {
                "pdf" => parsers.pdf = Some(PdfParser::default()),
                "image" => parsers.image = true,
                _ => fields.issues.wrong_choice(path, NAMES),
            },
            Value::Object(_) => {
                let Some(parser) = Fields::open(entry, path, fields.issues) else { continue };
                let mut parser = parser.nulls_are_absent();
                if parser.required("type").is_some() {
                    match parser.choice("type", NAMES) {
                        Some("pdf") => parsers.pdf = Some(read_pdf(&mut parser)),
                        Some(_) => parsers.image = true,
                        None => {}
                    }
                }
                parser.finish();
            }
            other => fields.issues.wrong_union(path, "string or object", other),
        }
    }
    Some(parsers)
}

fn read_pdf(fields: &mut Fields<'_, '_>) -> PdfParser {
    let mode = match fields.choice("mode", &["fast", "auto", "ocr"]) {
        Some("fast") => PdfMode::Fast,
        Some("ocr") => PdfMode::Ocr,
        _ => PdfMode::Auto,
    };
    PdfParser {
        mode,
        max_pages: fields.integer("maxPages", 1..=i64::from(MAX_PDF_PAGES)).map(|n| n as u32),
        // Older clients ask for the pages by another name.
        pages: fields.bool("pages").unwrap_or(false) | fields.bool("pageMarkdown").unwrap_or(false),
        page_markers: fields.bool("pageMarkers").unwrap_or(false),
        blocks: fields.bool("blocks").unwrap_or(false),
    }
}
