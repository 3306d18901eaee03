//! A page that is a PDF (wire 3.5): its text as markdown, or the file itself as base64.

use base64::Engine as _;
use bytes::Bytes;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use weir_shared::clock;
use weir_shared::domain::document::{self, Document};
use weir_shared::domain::pdf_blocks::PdfPageBlocks;
use weir_shared::domain::scrape::{Format, MAX_PDF_PAGES, PdfMode, PdfParser};
use weir_shared::error_code::ErrorCode;
use weir_shared::texts::counted;

use super::files::without_elements;
use super::markdown_html::html;
use super::recognised;
use crate::page::cpu::blocking;
use crate::page::draft::{Draft, Made, SiteResponse};
use crate::page::error::PageError;
use crate::page::task::PageTask;
use crate::pdf::ocr::{self, OcrError};
use crate::pdf::{self, PdfError, PdfRequest, PdfText};

/// Pages that a warning names one by one.
const NAMED: usize = 20;

/// Makes the document of a PDF.
pub async fn document(
    task: PageTask,
    mut response: SiteResponse,
    file: Bytes,
    deadline: Instant,
) -> Result<Made, PageError> {
    response.content_type = Some("application/pdf".to_owned());
    let Some(parser) = task.options().parsers.pdf.clone() else {
        return blocking(task.holder(), move || base64_document(task, response, &file)).await;
    };
    let by = clock::before(deadline);
    let text = text_of(&task, &mut response, &parser, file, by).await?;
    blocking(task.holder(), move || text_document(task, response, &parser, text)).await
}

/// The file as it is, in the place of every text format.
fn base64_document(task: PageTask, response: SiteResponse, file: &[u8]) -> Result<Made, PageError> {
    let options = task.options();
    if options.redact_pii.is_some() {
        let text = "redactPII cannot read a PDF that is answered as a file. Leave out the empty list of parsers.";
        return Err(PageError::last(ErrorCode::UnsupportedFile, text));
    }
    let text = base64::engine::general_purpose::STANDARD.encode(file);
    let document = Document {
        html: options.wants(&Format::Html).then(|| text.clone()),
        raw_html: options.wants(&Format::RawHtml).then(|| text.clone()),
        links: options.wants(&Format::Links).then(Vec::new),
        markdown: task.wants_markdown().then_some(text),
        ..without_elements(options)?
    };
    let harvest = task.harvest(&response.url, Vec::new());
    Draft { harvest, ..Draft::new(response, document, options) }.advance(&task)
}

fn text_document(
    task: PageTask,
    mut response: SiteResponse,
    parser: &PdfParser,
    text: PdfText,
) -> Result<Made, PageError> {
    let options = task.options();
    let read = u32::try_from(text.pages.len()).unwrap_or(u32::MAX);
    let (markdown, begins) = joined(&text, parser.page_markers);
    if text.fields.is_empty() && text.pages.iter().all(|page| page.markdown.trim().is_empty()) {
        response.warnings.push("The PDF has no text.".to_owned());
    }
    let as_html = (options.wants(&Format::Html) || options.wants(&Format::RawHtml))
        .then(|| html(&joined(&text, false).0, text.title.as_deref()));
    let document = Document {
        raw_html: as_html.clone().filter(|_| options.wants(&Format::RawHtml)),
        html: as_html.filter(|_| options.wants(&Format::Html)),
        links: options.wants(&Format::Links).then(|| text.links.clone()),
        metadata: metadata(&text, read),
        pages: parser.pages.then(|| {
            let page =
                |page: &pdf::PdfPage| document::PdfPage { page_number: page.number, markdown: page.markdown.clone() };
            text.pages.iter().map(page).collect()
        }),
        blocks: parser.blocks.then(|| blocks_of(&text, &markdown, &begins)),
        markdown: task.wants_markdown().then_some(markdown),
        ..without_elements(options)?
    };
    let harvest = task.harvest(&response.url, text.links);
    let mut draft = Draft { harvest, ..Draft::new(response, document, options) };
    draft.bill.pdf_pages = read;
    draft.advance(&task)
}

/// The blocks of the pages, with their spans in the whole text; where each page begins there, bytes.
fn blocks_of(text: &PdfText, markdown: &str, begins: &[usize]) -> Vec<PdfPageBlocks> {
    let (mut at, mut chars) = (0, 0);
    let mut all = Vec::new();
    for (page, begin) in text.pages.iter().zip(begins) {
        chars += markdown[at..*begin].chars().count();
        at = *begin;
        let Some(mut blocks) = page.blocks.clone() else { continue };
        for span in blocks.items.iter_mut().filter_map(|item| item.markdown_span.as_mut()) {
            *span = span.map(|place| place + chars);
        }
        all.push(blocks);
    }
    all
}

/// The pages as one text, and where each begins in it, bytes; what was filled in stands after them. With `markers`, each
/// page after the first begins with its number in a comment.
fn joined(text: &PdfText, markers: bool) -> (String, Vec<usize>) {
    let mut out = String::with_capacity(text.pages.iter().map(|page| page.markdown.len() + 1).sum());
    let mut begins = Vec::with_capacity(text.pages.len());
    for page in &text.pages {
        if !out.is_empty() && markers {
            out.push_str(&format!("\n---\n\n<!-- page {} -->\n\n", page.number));
        } else if !out.is_empty() && !page.markdown.is_empty() {
            out.push('\n');
        }
        begins.push(out.len());
        out.push_str(&page.markdown);
    }
    for (n, field) in text.fields.iter().enumerate() {
        let break_before = if n == 0 && !out.is_empty() { "\n" } else { "" };
        out.push_str(&format!("{break_before}- {field}\n"));
    }
    (out, begins)
}

fn metadata(text: &PdfText, read: u32) -> Map<String, Value> {
    let mut metadata = Map::new();
    let info = [
        ("title", &text.title),
        ("author", &text.author),
        ("description", &text.subject),
        ("keywords", &text.keywords),
        ("dcTermsCreated", &text.created),
        ("modifiedTime", &text.modified),
    ];
    for (key, value) in info {
        if let Some(value) = value {
            metadata.insert(key.to_owned(), json!(value));
        }
    }
    metadata.insert("numPages".to_owned(), json!(read));
    metadata.insert("totalPages".to_owned(), json!(text.total));
    metadata
}

/// Reads the file and, where that is wanted and possible, its pictures.
async fn text_of(
    task: &PageTask,
    response: &mut SiteResponse,
    parser: &PdfParser,
    file: Bytes,
    by: Instant,
) -> Result<PdfText, PageError> {
    if parser.mode == PdfMode::Ocr && !ocr::reads_pages() {
        let text = format!("The PDF's pages are to be recognised (mode ocr), but {}.", ocr::WHAT_TO_INSTALL);
        return Err(PageError::last(ErrorCode::PdfOcrRequired, text));
    }
    let timeout = task.options().timeout;
    let pages = PdfRequest::pages(parser.max_pages.unwrap_or(MAX_PDF_PAGES));
    let request = PdfRequest { blocks: parser.blocks, ..pages };
    let mut text =
        pdf::read(file.clone(), request, task.holder(), by).await.map_err(|error| refusal(error, timeout))?;
    let pictures: Vec<u32> = match parser.mode {
        PdfMode::Ocr => text.pages.iter().map(|page| page.number).collect(),
        _ => text.pages.iter().filter(|page| page.is_picture).map(|page| page.number).collect(),
    };
    if pictures.is_empty() {
        return Ok(text);
    }
    let has_text = text.pages.iter().any(|page| !page.is_picture && !page.markdown.is_empty());
    let left_out = match parser.mode {
        PdfMode::Fast => "they are not recognised in mode fast".to_owned(),
        _ => match recognised::pages(task, response, &file, &pictures, parser.blocks, by).await {
            Ok(mut read) => {
                let lost: Vec<u32> = pictures.iter().copied().filter(|number| !read.contains_key(number)).collect();
                for page in &mut text.pages {
                    let Some(recognised) = read.remove(&page.number) else { continue };
                    page.markdown = recognised.markdown;
                    if let Some(blocks) = &mut page.blocks {
                        blocks.items = recognised.blocks;
                    }
                }
                if lost.is_empty() {
                    return Ok(text);
                }
                if text.pages.iter().all(|page| page.markdown.is_empty()) {
                    let message =
                        format!("Of the PDF, {} that cannot be read, and nothing else has text.", named(&lost));
                    return Err(PageError::last(ErrorCode::UnsupportedFile, message));
                }
                response.warnings.push(format!("Of the PDF, {} that could not be read.", named(&lost)));
                return Ok(text);
            }
            Err(OcrError::NoTime(read)) if !has_text => {
                let message = format!(
                    "Of {} without text {read} could be recognised within the timeout of {timeout} ms. \
                     Set a larger timeout, or maxPages of the PDF parser.",
                    counted(pictures.len(), "page")
                );
                return Err(PageError::last(ErrorCode::PdfInsufficientTime, message));
            }
            Err(error) => error.to_string(),
        },
    };
    if !has_text {
        let message = format!("The PDF's pages are pictures without text, and {left_out}.");
        return Err(PageError::last(ErrorCode::PdfOcrRequired, message));
    }
    response.warnings.push(format!("Of the PDF, {} without text; {left_out}.", named(&pictures)));
    Ok(text)
}

/// `page 3 is a picture`, `pages 3, 4 are pictures`.
fn named(pages: &[u32]) -> String {
    let list: Vec<String> = pages.iter().take(NAMED).map(u32::to_string).collect();
    let more = if pages.len() > NAMED { " and others" } else { "" };
    match pages {
        [page] => format!("page {page} is a picture"),
        _ => format!("pages {}{more} are pictures", list.join(", ")),
    }
}

fn refusal(error: PdfError, timeout: u32) -> PageError {
    let code = match error {
        PdfError::NoTime(_) => ErrorCode::PdfInsufficientTime,
        PdfError::Encrypted | PdfError::Damaged(_) => ErrorCode::UnsupportedFile,
        PdfError::TooLarge => ErrorCode::PageTooLarge,
        PdfError::NoReader(_) => ErrorCode::Unknown,
    };
    let message = match error {
        PdfError::NoTime(pages) => format!(
            "The PDF{} could not be read within the timeout of {timeout} ms. Set a larger timeout, or maxPages of the \
             PDF parser.",
            pages.map(|pages| format!(" of {}", counted(pages, "page"))).unwrap_or_default()
        ),
        PdfError::Encrypted => "The PDF is encrypted and opens with a password only.".to_owned(),
        PdfError::Damaged(why) => format!("The PDF is damaged and cannot be read ({why})."),
        PdfError::TooLarge => {
            "The PDF is too large or too damaged: reading it takes more memory than there is for one \
                               file."
                .to_owned()
        }
        PdfError::NoReader(why) => {
            tracing::warn!(why, "no reader of PDFs could be started");
            return PageError::again(code, "The PDF could not be read just now.");
        }
    };
    PageError::last(code, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_joined_with_or_without_their_numbers() {
        let page =
            |number, markdown: &str| pdf::PdfPage { number, markdown: markdown.to_owned(), ..Default::default() };
        let text = PdfText { pages: vec![page(1, "a\n"), page(2, ""), page(3, "c\n")], ..PdfText::default() };
        assert_eq!(joined(&text, false), ("a\n\nc\n".to_owned(), vec![0, 2, 3]));
        let marked = "a\n\n---\n\n<!-- page 2 -->\n\n\n---\n\n<!-- page 3 -->\n\nc\n";
        assert_eq!(joined(&text, true).0, marked);
        assert_eq!((named(&[3]), named(&[3, 4])), ("page 3 is a picture".into(), "pages 3, 4 are pictures".into()));
    }
}
