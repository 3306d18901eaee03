//! A page that is an office file, a book or a table of such a program (wire 21): what stands in it, as any page's.

use bytes::Bytes;
use serde_json::{Map, Value};
use tokio::time::Instant;
use weir_shared::clock;
use weir_shared::domain::document::Document;
use weir_shared::domain::scrape::{Format, ScrapeOptions};
use weir_shared::error_code::ErrorCode;

use super::html::{self, extract_options};
use crate::extract::{self, ExtractOptions, PageInput};
use crate::fetch::media_type;
use crate::office::{self, FileNames, OfficeError, OfficeFile};
use crate::page::cpu::blocking;
use crate::page::draft::{Draft, Made, SiteResponse};
use crate::page::error::PageError;
use crate::page::task::PageTask;

/// Makes the document of a file. `name`: what it is called, where that is known.
///
/// # Errors
/// When it cannot be read, or not in time.
pub async fn document(
    task: PageTask,
    response: SiteResponse,
    file: Bytes,
    name: Option<String>,
    deadline: Instant,
) -> Result<Made, PageError> {
    let by = clock::before(deadline);
    let names = FileNames { name, content_type: response.content_type.as_deref().and_then(media_type) };
    let timeout = task.options().timeout;
    let read = office::read(file, &names, task.holder(), by).await.map_err(|error| refusal(&error, &names, timeout))?;
    blocking(task.holder(), move || made(&task, response, read)).await
}

fn made(task: &PageTask, mut response: SiteResponse, read: OfficeFile) -> Result<Made, PageError> {
    let options = task.options();
    let OfficeFile { format, mut converted } = read;
    response.content_type = format.info().mime_types.first().map(|kind| (*kind).to_owned());
    response.warnings.append(&mut converted.warnings);
    let metadata = [
        ("title", converted.title.take().map(Value::from)),
        ("author", converted.author.take().map(Value::from)),
        ("dcTermsCreated", converted.created.take().map(Value::from)),
        ("modifiedTime", converted.modified.take().map(Value::from)),
        ("numPages", converted.pages.map(Value::from)),
        ("wordCount", converted.words.map(Value::from)),
    ];
    let metadata: Map<String, Value> =
        metadata.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
    if let Some(markdown) = converted.markdown.take_if(|_| is_text_enough(options)) {
        let document = Document {
            raw_html: options.wants(&Format::RawHtml).then(|| converted.html.clone()),
            html: options.wants(&Format::Html).then_some(converted.html),
            markdown: task.wants_markdown().then_some(markdown),
            metadata,
            ..Document::default()
        };
        let harvest = task.harvest(&response.url, Vec::new());
        return Draft { harvest, ..Draft::new(response, document, options) }.advance(task);
    }
    // All of a file is content.
    let wanted = ExtractOptions { only_main_content: false, structured: false, ..extract_options(&task.spec) };
    let input = PageInput { url: &response.url, html: &converted.html, rendered: true };
    let mut extracted = extract::extract(&input, &wanted);
    extracted.metadata = metadata;
    extracted.warning = extracted.warning.map(of_file);
    html::document(task, response, extracted, &converted.html, None)
}

/// A warning about a page in words for a file, which runs no scripts. It may be one sentence of several.
fn of_file(warning: String) -> String {
    warning.replace(extract::EMPTY_RENDERED, "The file has no text.")
}

/// Whether nothing is asked for that only a tree of elements tells: one of a sheet has a node for every cell.
fn is_text_enough(options: &ScrapeOptions) -> bool {
    let of_elements = [Format::Links, Format::Images, Format::Product, Format::Menu];
    !of_elements.iter().any(|format| options.wants(format))
        && options.attributes().is_none()
        && options.include_tags.is_empty()
        && options.exclude_tags.is_empty()
}

fn refusal(error: &OfficeError, names: &FileNames, timeout: u32) -> PageError {
    match error {
        OfficeError::Unknown => PageError::unsupported(names.content_type.as_deref().unwrap_or_default()),
        OfficeError::NoTime => {
            let text = format!("The file could not be read within the timeout of {timeout} ms. Set a larger timeout.");
            PageError::last(ErrorCode::Timeout, text)
        }
        OfficeError::NoReader(_) => PageError::again(ErrorCode::Unknown, "The file's reader could not be started."),
        OfficeError::Refused(_) | OfficeError::TooLarge | OfficeError::GaveUp => {
            PageError::last(ErrorCode::UnsupportedFile, format!("The file cannot be read: {error}."))
        }
    }
}

/// What a file at this address is called, for a file whose bytes do not tell what it is.
pub fn name_in(url: &url::Url) -> Option<String> {
    let last = url.path_segments()?.next_back()?;
    let name = percent_encoding::percent_decode_str(last).decode_utf8_lossy().into_owned();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_told_of_no_scripts_whatever_else_is_said_of_it() {
        let url = url::Url::parse("file:///empty.docx").unwrap();
        let input = PageInput { url: &url, html: "<html><body></body></html>", rendered: true };
        for (tag, told) in
            [("main", "The file has no text."), ("[", "These are no CSS selectors: [. The file has no text.")]
        {
            let wanted =
                ExtractOptions { markdown: true, include_tags: vec![tag.to_owned()], ..ExtractOptions::default() };
            assert_eq!(extract::extract(&input, &wanted).warning.map(of_file).as_deref(), Some(told));
        }
    }
}
