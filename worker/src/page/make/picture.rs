//! A page that is an image, when the `image` parser is asked for (CONTRACT 3.5): the text that is written in it.

use bytes::Bytes;
use tokio::time::Instant;
use weir_shared::domain::document::Document;
use weir_shared::domain::scrape::Format;
use weir_shared::error_code::ErrorCode;

use super::files::without_elements;
use super::markdown_html::html;
use crate::page::complete::{Answer, Draft, Stage};
use crate::page::load::{PageError, Work, blocking};
use crate::pdf::ocr::{self, OcrError};

/// Whether a body of this type is read so.
pub fn is_one(work: &Work, media_type: &str) -> bool {
    work.spec.options.parsers.image && media_type.starts_with("image/") && media_type != "image/svg+xml"
}

/// Makes the document of an image.
pub async fn document(work: Work, answer: Answer, file: Bytes, deadline: Instant) -> Result<Stage, PageError> {
    let timeout = work.spec.options.timeout;
    let read = ocr::image(&work.context.process.sandbox, &file, deadline).await;
    let markdown = read.map_err(|error| match error {
        OcrError::Missing(why) => {
            PageError::last(ErrorCode::UnsupportedFile, format!("The text of the image cannot be read: {why}."))
        }
        OcrError::NoTime(_) => PageError::last(
            ErrorCode::Timeout,
            format!("The text of the image could not be read within the timeout of {timeout} ms."),
        ),
    })?;
    blocking(move || {
        let options = &work.spec.options;
        let as_html = html(&markdown, None);
        let document = Document {
            html: options.wants(&Format::Html).then(|| as_html.clone()),
            raw_html: options.wants(&Format::RawHtml).then_some(as_html),
            links: options.wants(&Format::Links).then(Vec::new),
            markdown: work.wants_markdown().then_some(markdown),
            ..without_elements(options)?
        };
        let harvest = work.harvest(&answer, Vec::new());
        let draft = Draft::new(answer, document, options);
        work.advance(draft, harvest)
    })
    .await
}
