//! OpenDocument texts. Kept and left out is the same as of Word's documents.

use std::collections::HashSet;

use super::distinct;
use crate::archive::Archive;
use crate::html::Blocks;
use crate::odf::text::Text;
use crate::odf::{self, Styles};
use crate::text::decode_xml;
use crate::xml::Tree;
use crate::{ConvertError, Converted, Limits};

/// Makes HTML of a document.
///
/// # Errors
/// As [`ConvertError`] says.
pub fn convert(bytes: &[u8], limits: &Limits) -> Result<Converted, ConvertError> {
    let mut archive = Archive::open(bytes, limits)?;
    let converted = odf::open(&mut archive, limits)?;
    let content = decode_xml(archive.need("content.xml")?);
    let content = Tree::read(&content, "content.xml", limits)?;
    let common = archive.read("styles.xml")?.map(decode_xml);
    let common = common.as_deref().map(|source| Tree::read(source, "styles.xml", limits)).transpose()?;
    let mut styles = Styles::default();
    if let Some(common) = &common {
        styles.add(common);
    }
    styles.add(&content);
    let body = content.root().at(&["body", "text"]).ok_or_else(|| ConvertError::broken("it has no text"))?;
    let margins = |kind: &str| -> Vec<String> {
        let used: HashSet<&str> = styles.masters().chain(["Standard"]).collect();
        let pages = common.as_ref().and_then(|common| common.root().child("master-styles"));
        let mut out = Vec::new();
        for page in pages.iter().flat_map(|pages| pages.children()) {
            if !page.attr("name").is_some_and(|name| used.contains(&*name)) {
                continue;
            }
            for margin in page.children().filter(|margin| margin.name().starts_with(kind)) {
                let mut blocks = Blocks::new(limits);
                Text::new(&styles, limits).blocks(margin, &mut blocks);
                out.push(blocks.finish());
            }
        }
        distinct(out).collect()
    };
    let mut blocks = Blocks::new(limits);
    for header in margins("header") {
        blocks.push_html(&header);
    }
    let mut text = Text::new(&styles, limits);
    text.blocks(body, &mut blocks);
    blocks.notes(&text.notes);
    for footer in margins("footer") {
        blocks.push_html(&footer);
    }
    blocks.document(limits, converted)
}
