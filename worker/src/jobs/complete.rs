//! From what was made of a page to the document that is delivered: what a language model reads out of it, its price, its
//! metadata.

mod redact;
mod track;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::Instant;
use url::Url;
use weir_shared::domain::action::ActionResults;
use weir_shared::domain::document::Document;
use weir_shared::domain::price::Bill;
use weir_shared::domain::scrape::{Format, ScrapeOptions};
use weir_shared::error_code::ErrorCode;
use weir_shared::store::documents;
use weir_shared::store::jobs::JobSpec;
use weir_shared::store::page::rows::Claimed;
use weir_shared::store::snapshots::Packed;

use super::cached;
use super::scrape_page::{Harvest, PageError, Product, blocking};
use crate::context::WorkerContext;
use crate::reader::{PageText, ReadError, Reader};

/// Time of the page that is kept back from the model for the rest.
const KEPT_BACK: Duration = Duration::from_millis(300);

/// Everything of an answer that goes into the document besides the extracted parts.
pub(super) struct Answer {
    pub url: Url,
    pub status: u16,
    pub content_type: Option<String>,
    pub timezone: Option<String>,
    pub screenshot: Option<String>,
    pub branding: Option<Value>,
    pub actions: Option<ActionResults>,
    pub warnings: Vec<String>,
    /// As clients know it: `basic` or `stealth`.
    pub proxy_used: &'static str,
    /// Everything that came over TLS came over certificates that verify.
    pub is_trusted: bool,
}

/// A document before it is complete. Its markdown is there whenever something is made of it, asked for or not.
pub(super) struct Draft {
    pub answer: Answer,
    pub document: Document,
    /// What the page says of itself as data.
    pub structured: Option<Value>,
    pub harvest: Option<Harvest>,
    /// What is delivered so far.
    pub bill: Bill,
    /// What its changes are told from the next time.
    pub snapshot: Option<Box<Packed>>,
}

/// A page on its way to the finisher.
pub(super) enum Stage {
    Done(Box<Product>),
    /// Something is still to be read.
    Open(Box<Draft>),
}

/// Whether a draft is the whole document.
fn is_complete(options: &ScrapeOptions) -> bool {
    !options.needs_text()
        && !options.only_clean_content
        && options.change_tracking().is_none()
        && options.redact_pii.is_none()
}

/// What the options need and this worker does not have: better said before the page is asked for.
pub(super) fn refuse_unreadable(context: &WorkerContext, options: &ScrapeOptions) -> Result<(), PageError> {
    let names = options.redact_pii.as_ref().is_some_and(|redaction| !redaction.names().is_empty());
    if names && context.process.settings.model.is_none() {
        let text = "redactPII needs a language model to tell names and places, and none is configured here \
            (WEIR_LLM_URL). Choose the mode fast, or name entities of EMAIL, PHONE, FINANCIAL and SECRET.";
        return Err(PageError::last(ErrorCode::ModelNotConfigured, text));
    }
    let needs_model = options.checks_injection() || options.formats.iter().all(Format::is_read);
    if needs_model && context.process.settings.model.is_none() {
        return Err(failure("The page", &ReadError::NotConfigured));
    }
    Ok(())
}

impl Draft {
    /// A page with what was made of it and nothing else.
    pub fn new(mut answer: Answer, mut document: Document, options: &ScrapeOptions) -> Self {
        document.actions = answer.actions.take();
        document.branding = answer.branding.take();
        let bill = Bill { stealth: answer.proxy_used == "stealth", ..Bill::of(options) };
        Self { answer, document, structured: None, harvest: None, bill, snapshot: None }
    }

    /// Something the caller should know.
    fn warn(&mut self, sentence: &str) {
        self.answer.warnings.push(sentence.to_owned());
    }

    /// Ends the document on this thread if nothing is to be read. Computes and blocks.
    pub fn advance(self, context: &WorkerContext, page: &Claimed, spec: &JobSpec) -> Result<Stage, PageError> {
        if is_complete(&spec.options) {
            self.encode(context, page, spec).map(|product| Stage::Done(product.into()))
        } else {
            Ok(Stage::Open(self.into()))
        }
    }

    /// Writes the metadata and packs the document. Computes and blocks.
    fn encode(self, context: &WorkerContext, page: &Claimed, spec: &JobSpec) -> Result<Product, PageError> {
        let Self { answer, mut document, harvest, bill, snapshot, .. } = self;
        let meta = &mut document.metadata;
        let mut put = |key: &str, value: Value| meta.insert(key.to_owned(), value);
        put("sourceURL", json!(page.url));
        put("url", json!(answer.url.as_str()));
        put("statusCode", json!(answer.status));
        put("scrapeId", json!(page.id));
        if let Some(content_type) = answer.content_type {
            put("contentType", json!(content_type));
        }
        if let Some(timezone) = answer.timezone {
            put("timezone", json!(timezone));
        }
        if answer.status >= 400 {
            put("error", json!(format!("The page answered with status {}.", answer.status)));
        }
        put("proxyUsed", json!(answer.proxy_used));
        put("creditsUsed", json!(bill.credits()));
        put("concurrencyLimited", json!(page.limited));
        if page.limited {
            put("concurrencyQueueDurationMs", json!(page.started_at.ms_since(page.queued_at)));
        }
        let place = cached::place(context, page, spec);
        if place.is_miss {
            put("cacheState", json!("miss"));
        }
        document.screenshot = answer.screenshot;
        if !answer.warnings.is_empty() {
            document.warning = Some(answer.warnings.join(" "));
        }
        let is_whole = answer.status == 200 && document.warning.is_none();
        // What may have come from anybody is nobody else's answer.
        let may_be_shared = is_whole && answer.is_trusted;
        let blobs = &context.process.blobs;
        let mut document = documents::encode(blobs, page.job_id, page.id, page.epoch, &document).map_err(|error| {
            tracing::error!(%error, page.id = %page.id, "a document cannot be stored");
            PageError::again(ErrorCode::Unknown, "The document could not be stored.")
        })?;
        document.snapshot = snapshot;
        document.cache = place.entry.filter(|_| may_be_shared && !bill.stealth);
        Ok(Product { document, harvest, credits: bill.credits() })
    }
}

/// Brings a page to its end.
pub(super) async fn complete(
    context: &Arc<WorkerContext>,
    page: &Claimed,
    spec: &Arc<JobSpec>,
    stage: Stage,
    deadline: Instant,
) -> Result<Product, PageError> {
    let mut draft = match stage {
        Stage::Done(product) => return Ok(*product),
        Stage::Open(draft) => *draft,
    };
    let reader = Reader::new(context.process.settings.model.as_ref(), deadline - KEPT_BACK);
    let mut outcome = read(&reader, &spec.options, &mut draft).await;
    if let (Ok(()), Some(redaction)) = (&outcome, &spec.options.redact_pii) {
        outcome = redact::redact(redaction, &spec.options, &reader, &mut draft).await;
    }
    if let (Ok(()), Some(tracking)) = (&outcome, spec.options.change_tracking()) {
        outcome = track::track(context, page, &spec.options, tracking, &reader, &mut draft).await;
    }
    context.process.spent(page.team_id, spec.key, reader.meter.read()).await;
    outcome?;
    let (context, page, spec) = (Arc::clone(context), page.clone(), Arc::clone(spec));
    blocking(move || draft.encode(&context, &page, &spec)).await
}

/// Has the model clean, judge and read, as the options ask.
async fn read(reader: &Reader<'_>, options: &ScrapeOptions, draft: &mut Draft) -> Result<(), PageError> {
    let Draft { answer, document, structured, bill, .. } = draft;
    let mut markdown = document.markdown.take().unwrap_or_default();
    let url = answer.url.clone();
    let structured = structured.as_ref();
    if options.only_clean_content && !markdown.trim().is_empty() {
        let cleaned = reader.clean(PageText { url: &url, markdown: &markdown, structured }).await;
        match cleaned {
            Ok(clean) => {
                markdown = clean.value;
                answer.warnings.extend(clean.warning);
            }
            Err(error) => answer.warnings.push(told("onlyCleanContent was skipped", &error)),
        }
    }
    let page = PageText { url: &url, markdown: &markdown, structured };
    if options.checks_injection()
        && reader.instructs(page).await.map_err(|error| failure("checkPromptInjection", &error))?
    {
        let text = "The page's text tries to instruct a language model, and checkPromptInjection was set.";
        return Err(PageError::last(ErrorCode::PromptInjection, text));
    }
    let wanted: Vec<&Format> = options.formats.iter().filter(|format| format.is_read()).collect();
    let answers = join_all(wanted.iter().map(|format| reader.read(format, page))).await;
    let mut failed = Vec::new();
    for (format, said) in wanted.into_iter().zip(answers) {
        match said {
            Ok(said) => {
                bill.add(format);
                answer.warnings.extend(said.warning.map(|warning| format!("{}: {warning}", format.name())));
                put(document, format, said.value);
            }
            Err(error) => failed.push((format, error)),
        }
    }
    // What else was asked for is delivered; a page of which nothing is left has failed.
    if let Some((format, error)) = failed.first().filter(|_| failed.len() == options.formats.len()) {
        return Err(failure(&format!("The format {}", format.name()), error));
    }
    answer.warnings.extend(failed.iter().map(|(format, error)| told(&format!("{} is missing", format.name()), error)));
    document.markdown = options.wants(&Format::Markdown).then_some(markdown);
    Ok(())
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

/// What was not done, why, and the code.
fn told(what: &str, error: &ReadError) -> String {
    format!("{what}: {error} ({}).", error.code().code().unwrap_or_default())
}

/// The page fails with what `what` asked for.
fn failure(what: &str, error: &ReadError) -> PageError {
    PageError::last(error.code(), format!("{what} failed: {error}."))
}
