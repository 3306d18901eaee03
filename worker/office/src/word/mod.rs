//! Documents of text: page header first, then the text with its headings, lists and tables, then the notes, then the
//! page footer.

pub mod doc;
pub mod docx;
pub mod odt;
pub mod rtf;

use std::collections::HashSet;

/// Of the headers or footers of a document's sections, each text once.
pub fn distinct(parts: Vec<String>) -> impl Iterator<Item = String> {
    let mut seen = HashSet::new();
    parts.into_iter().filter(move |part| !part.trim().is_empty() && seen.insert(part.clone()))
}
