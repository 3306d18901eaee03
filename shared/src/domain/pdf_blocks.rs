//! The blocks of a PDF's pages (wire 3.5): what kind of text stands where, and which part of the markdown it is.
//!
//! Nothing in them is guessed: a place, a part of the markdown or a confidence that is not known is null.

use memchr::memmem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The blocks of one page, in the order in which they are read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PdfPageBlocks {
    /// From 1.
    pub page_number: u32,
    /// Points (1/72 inch), as the page is shown.
    pub width: Option<f32>,
    /// Points.
    pub height: Option<f32>,
    pub status: PdfPageStatus,
    pub items: Vec<PdfBlock>,
}

/// Whether a page could be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PdfPageStatus {
    #[default]
    Ok,
    /// It is damaged; the others are not.
    Failed,
}

/// One block of a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PdfBlock {
    /// `p1.b0`: the page, and the place in its order.
    pub id: String,
    #[serde(rename = "type")]
    pub kind: PdfBlockKind,
    /// The kind more closely: `heading_2`, `list_item`, `code`.
    pub label: Option<String>,
    /// Left, top, right and bottom as parts of the page's width and height, from its upper left corner.
    pub bbox: Option<[f32; 4]>,
    /// Markdown; of headers, footers and page numbers the plain text.
    pub content: String,
    /// Where `content` stands in `markdown`: from, and up to but without, in characters (Unicode code points).
    pub markdown_span: Option<[usize; 2]>,
    /// From 0.
    pub reading_order: usize,
    pub source: PdfBlockSource,
    pub confidence: PdfBlockConfidence,
}

/// What a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PdfBlockKind {
    Title,
    SectionHeader,
    Text,
    Table,
    Caption,
    PageNumber,
    PageHeader,
    PageFooter,
}

/// Where a block's text comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PdfBlockSource {
    /// The file's own text.
    NativeText,
    /// Recognised in the picture of the page.
    Ocr,
}

/// How sure a reader is of a block, 0 to 1. Null: it does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PdfBlockConfidence {
    pub layout: Option<f32>,
    pub ocr: Option<f32>,
}

/// Most bytes that are looked through for blocks whose place in the markdown has changed.
const LOOK_THROUGH: usize = 200 << 20;

/// Makes the spans those of `markdown`, which may have been cleaned or redacted since they were told. One that does not
/// hold is looked for anew: its text must stand there once, on lines of its own. Without markdown there are none.
pub fn settle(pages: &mut [PdfPageBlocks], markdown: Option<&str>) {
    let items = || pages.iter().flat_map(|page| &page.items);
    let Some(markdown) = markdown.filter(|_| items().any(|item| item.markdown_span.is_some())) else {
        pages.iter_mut().flat_map(|page| &mut page.items).for_each(|item| item.markdown_span = None);
        return;
    };
    // Where each character begins, and where the last one ends.
    let places: Vec<usize> = markdown.char_indices().map(|(at, _)| at).chain([markdown.len()]).collect();
    let text = |span: [usize; 2]| markdown.get(*places.get(span[0])?..*places.get(span[1])?);
    let mut budget = LOOK_THROUGH;
    for item in pages.iter_mut().flat_map(|page| &mut page.items) {
        let Some(span) = item.markdown_span else { continue };
        if text(span) == Some(&item.content) {
            continue;
        }
        item.markdown_span = None;
        let Some(left) = budget.checked_sub(markdown.len()) else { continue };
        budget = left;
        if let Some(at) = only_place(markdown, &item.content) {
            let place = |at: usize| places.partition_point(|place| *place < at);
            item.markdown_span = Some([place(at), place(at + item.content.len())]);
        }
    }
}

/// Where a text stands on lines of its own, if it does so once.
fn only_place(markdown: &str, text: &str) -> Option<usize> {
    if text.is_empty() {
        return None;
    }
    let is_alone = |at: &usize| {
        let (before, after) = (&markdown[..*at], &markdown[at + text.len()..]);
        (before.is_empty() || before.ends_with('\n')) && (after.is_empty() || after.starts_with('\n'))
    };
    let mut places = memmem::find_iter(markdown.as_bytes(), text.as_bytes()).filter(is_alone);
    let first = places.next()?;
    places.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(texts: &[(&str, [usize; 2])]) -> Vec<PdfPageBlocks> {
        let item = |(n, (content, span)): (usize, &(&str, [usize; 2]))| PdfBlock {
            id: format!("p1.b{n}"),
            kind: PdfBlockKind::Text,
            label: None,
            bbox: None,
            content: (*content).to_owned(),
            markdown_span: Some(*span),
            reading_order: n,
            source: PdfBlockSource::NativeText,
            confidence: PdfBlockConfidence::default(),
        };
        let items = texts.iter().enumerate().map(item).collect();
        vec![PdfPageBlocks { page_number: 1, width: None, height: None, status: PdfPageStatus::Ok, items }]
    }

    fn spans(pages: &[PdfPageBlocks]) -> Vec<Option<[usize; 2]>> {
        pages.iter().flat_map(|page| &page.items).map(|item| item.markdown_span).collect()
    }

    #[test]
    fn spans_count_characters_and_hold_or_are_null() {
        let mut pages = page(&[("\u{1f600} a", [0, 3]), ("b\u{10348}", [5, 7]), ("c", [9, 10])]);
        settle(&mut pages, Some("\u{1f600} a\n\nb\u{10348}\n\nc\n"));
        assert_eq!(spans(&pages), [Some([0, 3]), Some([5, 7]), Some([9, 10])]);
        // A line went, so that the others stand elsewhere.
        settle(&mut pages, Some("b\u{10348}\n\nc\n"));
        assert_eq!(spans(&pages), [None, Some([0, 2]), Some([4, 5])]);
        settle(&mut pages, Some("b\u{10348}\n\nc\n\nx c x"));
        assert_eq!(spans(&pages), [None, Some([0, 2]), Some([4, 5])]);
        settle(&mut pages, None);
        assert_eq!(spans(&pages), [None, None, None]);
        settle(&mut pages, Some("c"));
        assert_eq!(spans(&pages), [None, None, None], "what was not told is not made up");
    }

    #[test]
    fn a_text_that_stands_twice_or_inside_of_another_line_has_no_place() {
        let mut pages = page(&[("a", [7, 8]), ("b", [7, 9]), ("c", [90, 91]), ("d", [1, 0])]);
        settle(&mut pages, Some("a\na\nxb\nc\nd d"));
        assert_eq!(spans(&pages), [None, None, Some([7, 8]), None]);
    }
}
