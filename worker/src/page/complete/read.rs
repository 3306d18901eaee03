//! What a language model does with a page: cleans its text, judges it, and reads the formats that are asked for.

use futures_util::future::join_all;
use serde_json::Value;
use weir_shared::domain::document::Document;
use weir_shared::domain::scrape::{Format, ScrapeOptions};
use weir_shared::error_code::ErrorCode;

use super::failure::{page_error, warning};
use crate::page::draft::Draft;
use crate::page::error::PageError;
use crate::reader::{PageText, ReadError, Reader};

/// Has the model clean, judge and read, as the options ask.
///
/// # Errors
/// When the page tries to instruct the model and that is to be checked, when that cannot be checked, or when none of
/// the formats could be read and nothing else was asked for.
pub async fn read(reader: &Reader<'_>, options: &ScrapeOptions, draft: &mut Draft) -> Result<(), PageError> {
    let markdown = clean(reader, options, draft).await;
    let url = draft.response.url.clone();
    let page = PageText { url: &url, markdown: &markdown, structured: draft.structured.as_ref() };
    if options.checks_injection()
        && reader.instructs(page).await.map_err(|error| page_error("checkPromptInjection", &error))?
    {
        let text = "The page's text tries to instruct a language model, and checkPromptInjection was set.";
        return Err(PageError::last(ErrorCode::PromptInjection, text));
    }
    let wanted: Vec<&Format> = options.formats.iter().filter(|format| format.is_read()).collect();
    let answers = join_all(wanted.iter().map(|format| reader.read(format, page))).await;
    let Draft { response, document, bill, .. } = draft;
    let mut failed = Vec::new();
    for (format, said) in wanted.into_iter().zip(answers) {
        match said {
            Ok(said) => {
                bill.add(format);
                response.warnings.extend(said.warning.map(|warning| format!("{}: {warning}", format.name())));
                put(document, format, said.value);
            }
            Err(error) => failed.push((format, error)),
        }
    }
    // What else was asked for is delivered; a page of which nothing is left has failed.
    if let Some((format, error)) = failed.first().filter(|_| failed.len() == options.formats.len()) {
        return Err(page_error(&format!("The format {}", format.name()), error));
    }
    let missing = |(format, error): &(&Format, ReadError)| warning(&format!("{} is missing", format.name()), error);
    response.warnings.extend(failed.iter().map(missing));
    document.markdown = options.wants(&Format::Markdown).then_some(markdown);
    Ok(())
}

/// The page's text, cleaned where that is asked for and possible.
async fn clean(reader: &Reader<'_>, options: &ScrapeOptions, draft: &mut Draft) -> String {
    let markdown = draft.document.markdown.take().unwrap_or_default();
    if !options.only_clean_content || markdown.trim().is_empty() {
        return markdown;
    }
    let url = draft.response.url.clone();
    let page = PageText { url: &url, markdown: &markdown, structured: draft.structured.as_ref() };
    match reader.clean(page).await {
        Ok(clean) => {
            draft.response.warnings.extend(clean.warning);
            clean.value
        }
        Err(error) => {
            draft.warn(&warning("onlyCleanContent was skipped", &error));
            markdown
        }
    }
}

/// Puts what was read into its field.
fn put(document: &mut Document, format: &Format, value: Value) {
    let text = |value: Value| if let Value::String(text) = value { Some(text) } else { None };
    match format {
        Format::Summary => document.summary = text(value),
        Format::Json(_) => document.json = Some(value),
        Format::Highlights(_) => document.highlights = text(value),
        Format::Question(_) | Format::Query(_) => document.answer = text(value),
        _ => {}
    }
}
