//! Reads one PDF, inside the child process.

use std::collections::HashSet;
use std::ops::ControlFlow;

use unpdf::parser::LayoutAnalyzer;
use unpdf::parser::backend::RawBackend;
use unpdf::{
    Block, Document, Error, ErrorKind, InlineContent, Page, PageSelection, PageStreamOptions, ParseEvent, ParseOptions,
    PdfParser, RenderOptions,
};

use super::layout::Layout;
use super::{PDF_WITHIN, PdfError, PdfPage, PdfText, tidy};

/// Most links kept, and the longest one, bytes.
const MAX_LINKS: usize = 100_000;
const MAX_LINK: usize = 8192;
/// Longest title and the like, bytes.
const MAX_INFO: usize = 4096;

/// Most fills of a page without text that are taken for a drawing; letters drawn as outlines are many.
const FEW_FILLS: u32 = 40;

/// Reads at most `max_pages` pages. `opened` is told how many the file has before the first is read.
pub(super) fn read(file: &[u8], max_pages: u32, opened: impl FnOnce(u32)) -> Result<PdfText, PdfError> {
    // Places in the file count from here, whatever stands before.
    let begin = memchr::memmem::find(&file[..file.len().min(PDF_WITHIN)], b"%PDF-").unwrap_or(0);
    let file = &file[begin..];
    let options = ParseOptions::new().lenient().sequential();
    let parser = PdfParser::from_bytes_with_options(file, options.clone()).map_err(|error| refusal(&error))?;
    let total = parser.page_count();
    if total == 0 {
        return Err(PdfError::Damaged("it has no pages".to_owned()));
    }
    opened(total);
    let mut text = PdfText { total, ..PdfText::default() };
    let mut pages: Vec<Page> = Vec::new();
    let mut failed = None;
    let selected = PageSelection::Range(1..=total.min(max_pages.max(1)));
    // Every field by itself: the defaults ask for the machine's threads, which a reader may not start.
    let stream = PageStreamOptions {
        error_mode: options.error_mode,
        extract_text: true,
        extract_resources: false,
        min_image_dimension: options.min_image_dimension,
        pages: selected,
        password: None,
        parallel: false,
        suppress_low_confidence_ocr: options.suppress_low_confidence_ocr,
        window_size: 1,
        emit_progress_every: u32::MAX,
    };
    let streamed = parser.for_each_page(stream, |event| {
        match event {
            ParseEvent::DocumentStart { metadata, .. } => {
                text.title = info(metadata.title);
                text.author = info(metadata.author);
                text.subject = info(metadata.subject);
                text.keywords = info(metadata.keywords);
                text.created = metadata.created.map(|time| time.to_rfc3339());
                text.modified = metadata.modified.map(|time| time.to_rfc3339());
            }
            ParseEvent::PageParsed(page) => pages.push(page),
            // One page that cannot be read does not spoil the others.
            ParseEvent::PageFailed { page, error } => {
                failed = Some(error);
                pages.push(Page::new(page, 0.0, 0.0));
            }
            ParseEvent::Progress { .. } | ParseEvent::DocumentEnd { .. } => {}
        }
        ControlFlow::Continue(())
    });
    streamed.map_err(|error| refusal(&error))?;
    if let Some(error) = failed
        && pages.iter().all(|page| page.elements.is_empty() && page.width == 0.0)
    {
        return Err(refusal(&error));
    }
    let layouts = layouts(file, &pages);
    tidy::pages(&mut pages, &layouts);
    text.links = links(&pages);
    text.pages = pages.into_iter().map(page_text).collect();
    Ok(text)
}

/// How the pages are drawn. A page that cannot be looked at again has an empty layout.
fn layouts(file: &[u8], pages: &[Page]) -> Vec<Layout> {
    let backend = RawBackend::load_bytes(file);
    let layout = |page: &Page| {
        let spans = LayoutAnalyzer::new(backend.as_ref().ok()?).extract_page_spans(page.number).ok()?;
        Some(Layout::of(&spans))
    };
    pages.iter().map(|page| layout(page).unwrap_or_default()).collect()
}

fn refusal(error: &Error) -> PdfError {
    match error.kind() {
        ErrorKind::Encrypted | ErrorKind::InvalidPassword => PdfError::Encrypted,
        _ => {
            let mut text = error.to_string();
            text.truncate(text.floor_char_boundary(200));
            PdfError::Damaged(text)
        }
    }
}

/// A text of the file's own description, such as its title.
fn info(value: Option<String>) -> Option<String> {
    let mut value = value?.split_whitespace().collect::<Vec<_>>().join(" ");
    value.truncate(value.floor_char_boundary(MAX_INFO));
    value.retain(|c| !c.is_control());
    (!value.is_empty()).then_some(value)
}

fn page_text(page: Page) -> PdfPage {
    let number = page.number;
    let shows = page.image_op_count > 0 || page.fill_op_count > FEW_FILLS;
    // A scan with a recognised title line or a folio is still a scan.
    let is_covered = page.image_coverage > 0.8 && page.painted_text_chars <= page.margin_text_chars;
    let mut document = Document::new();
    document.pages.push(page);
    let options = RenderOptions::new();
    let mut markdown = unpdf::render::to_markdown(&document, &options).unwrap_or_default();
    let text = markdown.chars().filter(|c| c.is_alphanumeric()).count();
    let has_hidden_text = document.pages.iter().any(|page| page.invisible_text_chars > 0);
    if !markdown.is_empty() {
        markdown.push('\n');
    }
    PdfPage { number, markdown, is_picture: shows && (text == 0 || is_covered && !has_hidden_text) }
}

/// Where the pages lead to.
fn links(pages: &[Page]) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut links = Vec::new();
    let paragraphs = pages.iter().flat_map(|page| &page.elements).flat_map(|block| match block {
        Block::Paragraph(paragraph) => std::slice::from_ref(paragraph).iter().collect::<Vec<_>>(),
        Block::Table(table) => table.rows.iter().flat_map(|row| &row.cells).flat_map(|cell| &cell.content).collect(),
        _ => Vec::new(),
    });
    for item in paragraphs.flat_map(|paragraph| &paragraph.content) {
        let InlineContent::Link { url, .. } = item else { continue };
        let is_web = ["http://", "https://", "mailto:"].iter().any(|scheme| url.starts_with(scheme));
        if is_web && url.len() <= MAX_LINK && links.len() < MAX_LINKS && seen.insert(url.clone()) {
            links.push(url.clone());
        }
    }
    links
}
