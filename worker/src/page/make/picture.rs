//! A page that is an image, when the `image` parser is asked for (wire 3.5): the text that is written in it.

use bytes::Bytes;
use tokio::time::Instant;
use weir_shared::domain::document::Document;
use weir_shared::domain::scrape::Format;
use weir_shared::error_code::ErrorCode;

use super::files::without_elements;
use super::markdown_html::html;
use super::recognised;
use crate::page::cpu::blocking;
use crate::page::draft::{Draft, Made, SiteResponse};
use crate::page::error::PageError;
use crate::page::task::PageTask;
use crate::pdf::ocr::OcrError;

/// Whether a body of this type is read so.
pub fn is_one(task: &PageTask, media_type: &str) -> bool {
    task.options().parsers.image && media_type.starts_with("image/") && media_type != "image/svg+xml"
}

/// Makes the document of an image.
pub async fn document(
    task: PageTask,
    mut response: SiteResponse,
    file: Bytes,
    deadline: Instant,
) -> Result<Made, PageError> {
    let timeout = task.options().timeout;
    let read = recognised::image(&task, &mut response, &file, deadline).await;
    let markdown = read.map_err(|error| match error {
        OcrError::Missing(why) => {
            PageError::last(ErrorCode::UnsupportedFile, format!("The text of the image cannot be read: {why}."))
        }
        OcrError::NoTime(_) => PageError::last(
            ErrorCode::Timeout,
            format!("The text of the image could not be read within the timeout of {timeout} ms."),
        ),
        OcrError::Unreadable => PageError::last(
            ErrorCode::UnsupportedFile,
            "The image cannot be read: it is damaged, too large, or of a kind that the text recognition does not know.",
        ),
    })?;
    blocking(task.holder(), move || {
        let options = task.options();
        let as_html = html(&markdown, None);
        let document = Document {
            html: options.wants(&Format::Html).then(|| as_html.clone()),
            raw_html: options.wants(&Format::RawHtml).then_some(as_html),
            links: options.wants(&Format::Links).then(Vec::new),
            markdown: task.wants_markdown().then_some(markdown),
            ..without_elements(options)?
        };
        let harvest = task.harvest(&response.url, Vec::new());
        Draft { harvest, ..Draft::new(response, document, options) }.advance(&task)
    })
    .await
}
