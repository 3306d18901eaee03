//! Presentations: slides in their order, each with its title as a heading, its texts as paragraphs and lists, its
//! tables, and what the speaker notes. Pictures, charts, animations and hidden slides are not kept.

pub mod odp;
pub mod ppt;
pub mod pptx;

use crate::html::{Blocks, Inline, Item, Style};

/// A paragraph of a text box.
#[derive(Debug)]
struct Line {
    inline: Inline,
    /// Level and whether it is numbered, of an item of a list.
    item: Option<(usize, bool)>,
}

/// Writes the texts of a box.
fn lines(lines: Vec<Line>, list: u64, out: &mut Blocks) {
    for line in lines {
        match line.item {
            Some((level, ordered)) => {
                out.item(Item { level, ordered, list: list * 2 + u64::from(ordered), number: None }, line.inline);
            }
            None => out.paragraph(line.inline),
        }
    }
}

/// Begins a slide; one without a title has its number.
fn title(title: Option<Inline>, number: usize, out: &mut Blocks) {
    match title.filter(|title| !title.is_blank()) {
        Some(title) => out.heading(2, title),
        None => out.heading_text(2, &format!("Slide {number}")),
    }
}

/// Begins what the speaker notes.
fn notes_heading(out: &mut Blocks) {
    let mut inline = Inline::default();
    inline.push("Notes:", &Style { bold: true, ..Style::default() });
    out.paragraph(inline);
}

/// Of hidden slides: that they were left out.
fn hidden(count: usize, warnings: &mut Vec<String>) {
    if count > 0 {
        let slides = if count == 1 { "hidden slide was" } else { "hidden slides were" };
        warnings.push(format!("{count} {slides} left out."));
    }
}
