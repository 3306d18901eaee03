//! What a language model does with a page: cleans its text, judges it, and reads the formats that are asked for.

use futures_util::future::join_all;
use serde_json::Value;
use weir_shared::domain::document::Document;
use weir_shared::domain::scrape::{Format, JsonFormat, ScrapeOptions};
use weir_shared::error_code::ErrorCode;
use weir_shared::llm::Allowance;

use super::failure::{page_error, warning};
use crate::learn::{self, Told, Way};
use crate::page::draft::Draft;
use crate::page::error::PageError;
use crate::page::task::PageTask;
use crate::reader::{PageText, Read, ReadError, Reader};

/// Has the model clean, judge and read, as the options ask, but for data that is known how to read without it.
///
/// # Errors
/// When the page tries to instruct the model and that is to be checked, when that cannot be checked, or when none of
/// the formats could be read and nothing else was asked for; that the page goes back to the queue while others of its site
/// are learned from.
pub async fn read(task: &PageTask, reader: &Reader<'_>, time: &Allowance, draft: &mut Draft) -> Result<(), PageError> {
    let options = task.options();
    let learned = match options.learned() {
        Some(wanted) => Some(Learned::begin(task, wanted, time, draft).await?),
        None => None,
    };
    match judged_and_read(options, reader, draft, learned.as_ref()).await {
        Ok(answers) => {
            let answers = match learned {
                Some(learned) => learned.finish(task, draft, answers).await,
                None => answers,
            };
            deliver(options, draft, answers)
        }
        Err(error) => {
            if let Some(Learned { way: Way::Ask(asked), .. }) = learned {
                asked.abandon(task).await;
            }
            Err(error)
        }
    }
}

/// What was read of a format, and whether that cost a question.
struct Answer<'a> {
    format: &'a Format,
    said: Result<Read<Value>, ReadError>,
    is_free: bool,
}

/// Data that is learned to read.
struct Learned<'a> {
    wanted: &'a JsonFormat,
    way: Way,
}

impl<'a> Learned<'a> {
    async fn begin(
        task: &PageTask,
        wanted: &'a JsonFormat,
        time: &Allowance,
        draft: &mut Draft,
    ) -> Result<Self, PageError> {
        let (source, response) = (draft.source.take(), &draft.response);
        let way = learn::begin(task, wanted, source, &response.url, response.status, time).await?;
        Ok(Self { wanted, way })
    }

    /// Learns from what the model has read, or puts what an extractor has read in its place.
    async fn finish(self, task: &PageTask, draft: &mut Draft, mut answers: Vec<Answer<'a>>) -> Vec<Answer<'a>> {
        let place = answers.iter().position(|answer| matches!(answer.format, Format::Json(_)));
        let Some(answer) = place.map(|place| &mut answers[place]) else { return answers };
        let free = |value| Ok(Read { value, warning: None });
        match self.way {
            Way::Read(value) => (answer.said, answer.is_free) = (free(value), true),
            Way::Ask(mut asked) => {
                draft.response.warnings.extend(asked.warning.take());
                let read = answer.said.as_ref().ok().map(|read| &read.value);
                if let Told::ByExtractor(value) = asked.finish(task, self.wanted, read).await {
                    (answer.said, answer.is_free) = (free(value), true);
                }
            }
        }
        if answer.said.is_ok() {
            let by = if answer.is_free { "extractor" } else { "model" };
            draft.document.metadata.insert("readBy".to_owned(), by.into());
        }
        answers
    }
}

/// The page's text, cleaned and judged, goes back into the document; what is read of it is returned.
async fn judged_and_read<'a>(
    options: &'a ScrapeOptions,
    reader: &Reader<'_>,
    draft: &mut Draft,
    learned: Option<&Learned<'_>>,
) -> Result<Vec<Answer<'a>>, PageError> {
    let markdown = clean(reader, options, draft).await;
    let url = draft.response.url.clone();
    let page = PageText { url: &url, markdown: &markdown, structured: draft.structured.as_ref() };
    if options.checks_injection()
        && reader.instructs(page).await.map_err(|error| page_error("checkPromptInjection", &error))?
    {
        let text = "The page's text tries to instruct a language model, and checkPromptInjection was set.";
        return Err(PageError::last(ErrorCode::PromptInjection, text));
    }
    let is_known = learned.is_some_and(|learned| matches!(learned.way, Way::Read(_)));
    let read = |format: &'a Format| async move {
        let said = match format {
            // What an extractor has read is put here later.
            Format::Json(_) if is_known => Ok(Read { value: Value::Null, warning: None }),
            _ => reader.read(format, page).await,
        };
        Answer { format, said, is_free: false }
    };
    let answers = join_all(options.formats.iter().filter(|format| format.is_read()).map(read)).await;
    draft.document.markdown = Some(markdown);
    Ok(answers)
}

/// Puts what was read into the document, and on the bill.
fn deliver(options: &ScrapeOptions, draft: &mut Draft, answers: Vec<Answer<'_>>) -> Result<(), PageError> {
    let Draft { response, document, bill, .. } = draft;
    let mut failed = Vec::new();
    for Answer { format, said, is_free } in answers {
        match said {
            Ok(said) => {
                if !is_free {
                    bill.add(format);
                }
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
    document.markdown = document.markdown.take().filter(|_| options.wants(&Format::Markdown));
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
