//! Reads one PDF, inside the child process.

use std::collections::HashSet;
use std::ops::ControlFlow;

use unpdf::parser::LayoutAnalyzer;
use unpdf::parser::backend::{PdfBackend, RawBackend};
use unpdf::{
    Block, Document, Error, ErrorKind, FieldType, FormField, InlineContent, Page, PageSelection, PageStreamOptions,
    ParseEvent, ParseOptions, PdfParser, RenderOptions,
};

use super::blocks::{self, Beside};
use super::layout::{Frame, Layout};
use super::{PDF_WITHIN, PdfError, PdfPage, PdfRequest, PdfText, tidy};

/// Most links kept, and the longest one, bytes.
const MAX_LINKS: usize = 100_000;
const MAX_LINK: usize = 8192;
/// Longest title and the like, bytes.
const MAX_INFO: usize = 4096;
/// Most fields of a form that are read.
const MAX_FIELDS: usize = 10_000;
/// Within how much of its end a whole file says where its objects are, bytes.
const ENDS_WITHIN: usize = 4096;

/// Most fills of a page without text that are taken for a drawing; letters drawn as outlines are many.
const FEW_FILLS: u32 = 40;

/// Reads what is asked for. `opened` is told how many pages the file has before the first is read.
pub(super) fn read(file: &[u8], request: PdfRequest, opened: impl FnOnce(u32)) -> Result<PdfText, PdfError> {
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
    let selected = PageSelection::Range(1..=total.min(request.max_pages.max(1)));
    let streamed = parser.for_each_page(stream(&options, selected), |event| {
        match event {
            ParseEvent::DocumentStart { metadata, form_fields, .. } => {
                text.fields = form_fields.iter().filter_map(filled_in).take(MAX_FIELDS).collect();
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
    let layouts = layouts(file, &pages, request.blocks);
    let mut beside = Beside::default();
    if request.blocks {
        beside = Beside::of(&pages, &layouts);
    }
    tidy::pages(&mut pages, &layouts, &mut beside);
    text.links = links(&pages);
    let blocks = request.blocks.then(|| blocks::of_pages(&pages, &layouts, beside));
    text.pages = pages.into_iter().map(page_text).collect();
    for (page, blocks) in text.pages.iter_mut().zip(blocks.into_iter().flatten()) {
        page.blocks = Some(blocks::placed(blocks, &page.markdown));
    }
    blocks::name_title(text.pages.iter_mut().filter_map(|page| page.blocks.as_mut()));
    // Of half a file pages are found, but not what they show.
    let says_nothing = text.pages.iter().all(|page| page.markdown.trim().is_empty() && !page.is_picture);
    if says_nothing && text.fields.is_empty() && is_cut_off(file) {
        return Err(PdfError::Damaged("its end is missing".to_owned()));
    }
    Ok(text)
}

/// How the pages are gone through. Every field by itself: the defaults ask for the machine's threads, which a reader may not
/// start.
fn stream(options: &ParseOptions, pages: PageSelection) -> PageStreamOptions {
    PageStreamOptions {
        error_mode: options.error_mode,
        extract_text: true,
        extract_resources: false,
        min_image_dimension: options.min_image_dimension,
        pages,
        password: None,
        parallel: false,
        suppress_low_confidence_ocr: options.suppress_low_confidence_ocr,
        window_size: 1,
        emit_progress_every: u32::MAX,
    }
}

/// Whether a file does not end as a PDF does.
fn is_cut_off(file: &[u8]) -> bool {
    let end = &file[file.len().saturating_sub(ENDS_WITHIN)..];
    let has = |word: &[u8]| memchr::memmem::find(end, word).is_some();
    !has(b"%%EOF") && !has(b"startxref")
}

/// A field of a form and what was filled in, as markdown. Its place on the page is not known.
fn filled_in(field: &FormField) -> Option<String> {
    let is_told = !matches!(field.field_type, FieldType::PushButton | FieldType::Signature) && field.value.is_some();
    let value = is_told.then(|| field.display_value()).filter(|value| !value.trim().is_empty())?;
    let mut text = format!("{}: {value}", field.name).split_whitespace().collect::<Vec<_>>().join(" ");
    text.truncate(text.floor_char_boundary(MAX_INFO));
    Some(tidy::recognised(&text).trim_end().to_owned())
}

/// How the pages are drawn, with the places of what is drawn if they are wanted. A page that cannot be looked at again
/// has an empty layout.
fn layouts(file: &[u8], pages: &[Page], with_places: bool) -> Vec<Layout> {
    let backend = RawBackend::load_bytes(file);
    let ids = backend.as_ref().ok().filter(|_| with_places).map(PdfBackend::pages).unwrap_or_default();
    let layout = |page: &Page| {
        let backend = backend.as_ref().ok()?;
        let spans = LayoutAnalyzer::new(backend).extract_page_spans(page.number).ok()?;
        let frame = |id| Frame { shown: backend.crop_box(id), rotation: backend.page_rotation(id) };
        Some(Layout::of(&spans, ids.get(&page.number).copied().map(frame)))
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

/// Blocks of a page as markdown.
pub(super) fn markdown_of(page: Page) -> String {
    let mut document = Document::new();
    document.pages.push(page);
    unpdf::render::to_markdown(&document, &RenderOptions::new()).unwrap_or_default()
}

fn page_text(page: Page) -> PdfPage {
    let number = page.number;
    let shows = page.image_op_count > 0 || page.fill_op_count > FEW_FILLS;
    // A scan with a recognised title line or a folio is still a scan.
    let is_covered = page.image_coverage > 0.8 && page.painted_text_chars <= page.margin_text_chars;
    let has_hidden_text = page.invisible_text_chars > 0;
    let mut markdown = markdown_of(page);
    let text = markdown.chars().filter(|c| c.is_alphanumeric()).count();
    if !markdown.is_empty() {
        markdown.push('\n');
    }
    PdfPage { number, markdown, is_picture: shows && (text == 0 || is_covered && !has_hidden_text), blocks: None }
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
