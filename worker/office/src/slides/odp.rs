//! OpenDocument presentations.

use super::{hidden, notes_heading, title};
use crate::archive::Archive;
use crate::html::{Blocks, Inline, Style};
use crate::odf::text::Text;
use crate::odf::{self, Styles};
use crate::text::decode_xml;
use crate::xml::{Element, Tree};
use crate::{ConvertError, Converted, Limits};

/// Makes HTML of a presentation.
///
/// # Errors
/// As [`ConvertError`] says.
pub fn convert(bytes: &[u8], limits: &Limits) -> Result<Converted, ConvertError> {
    let mut archive = Archive::open(bytes, limits)?;
    let mut converted = odf::open(&mut archive, limits)?;
    let content = decode_xml(archive.need("content.xml")?);
    let content = Tree::read(&content, "content.xml", limits)?;
    let common = archive.read("styles.xml")?.map(decode_xml);
    let common = common.as_deref().map(|source| Tree::read(source, "styles.xml", limits)).transpose()?;
    let mut styles = Styles::default();
    if let Some(common) = &common {
        styles.add(common);
    }
    styles.add(&content);
    let show = content.root().at(&["body", "presentation"]);
    let show = show.ok_or_else(|| ConvertError::broken("it has no slides"))?;
    let mut text = Text::new(&styles, limits);
    let mut blocks = Blocks::new(limits);
    let mut count = 0;
    let mut hidden_slides = 0;
    for page in show.children().filter(|element| element.name() == "page") {
        if page.attr("style-name").is_some_and(|name| styles.is_hidden_page(&name)) {
            hidden_slides += 1;
            continue;
        }
        count += 1;
        slide(page, count, &mut text, &mut blocks);
    }
    hidden(hidden_slides, &mut converted.warnings);
    converted.pages = u32::try_from(count).ok();
    blocks.document(limits, converted)
}

fn is_of(shape: Element<'_>, kinds: &[&str]) -> bool {
    shape.attr("class").is_some_and(|class| kinds.contains(&&*class))
}

fn slide(page: Element<'_>, number: usize, text: &mut Text<'_>, out: &mut Blocks) {
    let heading = page.children().find(|shape| is_of(*shape, &["title"])).map(|shape| {
        let mut inline = Inline::default();
        let lines: Vec<String> = shape.descendants().filter(|e| e.name() == "p").map(Element::text).collect();
        inline.push(&lines.join(" "), &Style::default());
        inline
    });
    title(heading, number, out);
    for shape in page.children() {
        match shape.name() {
            _ if is_of(shape, &["title", "date-time", "footer", "page-number", "header"]) => {}
            "frame" | "custom-shape" | "g" | "rect" | "ellipse" => text.shape(shape, out),
            _ => {}
        }
    }
    let notes = page.child("notes").into_iter().flat_map(Element::children);
    for shape in notes.filter(|shape| is_of(*shape, &["notes"])) {
        if !shape.text().trim().is_empty() {
            notes_heading(out);
            text.shape(shape, out);
        }
    }
}
