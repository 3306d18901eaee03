//! From what was made of a page to the document that is delivered: what a language model cleans, judges and reads in it,
//! what is redacted, how it has changed.

mod failure;
mod read;
mod redact;
mod track;

use weir_shared::clock;
use weir_shared::domain::cache;
use weir_shared::domain::scrape::{Format, Redaction, ScrapeOptions};
use weir_shared::error_code::ErrorCode;
use weir_shared::llm::Allowance;

use self::failure::page_error;
use super::cpu::blocking;
use super::draft::{Draft, Made};
use super::error::PageError;
use super::product::Product;
use super::task::PageTask;
use crate::context::WorkerContext;
use crate::reader::{KeptAnswers, ReadError, Reader};

/// What the options need and this worker does not have: better said before the page is asked for.
///
/// # Errors
/// When a language model is needed and none is configured.
pub fn refuse_unreadable(context: &WorkerContext, options: &ScrapeOptions) -> Result<(), PageError> {
    let asks_for_names = options.redact_pii.as_ref().is_some_and(Redaction::asks_for_names);
    if asks_for_names && context.process.settings.model.is_none() {
        let text = "redactPII needs a language model to tell names and places, and none is configured here \
            (WEIR_LLM_URL). Leave PERSON and LOCATION out of its entities.";
        return Err(PageError::last(ErrorCode::ModelNotConfigured, text));
    }
    let needs_model = options.checks_injection() || options.formats.iter().all(Format::is_read);
    if needs_model && context.process.settings.model.is_none() {
        return Err(page_error("The page", &ReadError::NotConfigured));
    }
    Ok(())
}

/// Brings a page to its end.
///
/// # Errors
/// When nothing of what was asked for can be delivered, or not as safely as it was asked for.
pub async fn complete(task: &PageTask, made: Made, time: &Allowance) -> Result<Product, PageError> {
    let mut draft = match made {
        Made::Whole(product) => return Ok(*product),
        Made::Unread(draft) => *draft,
    };
    let process = &task.context.process;
    // What comes after the model is in time, too.
    let time = time.without(clock::reserve(time.ends()));
    let kept = kept_answers(task, &draft);
    let reader = Reader::new(process.asker(task.holder()), time.clone()).knowing(kept.as_ref());
    // In a box, because few pages are read by a model or compared.
    let outcome = Box::pin(steps(task, &reader, &time, &mut draft)).await;
    // What the model has cost is written down whatever came of it.
    process.spent(task.page.team_id, task.spec.key, reader.meter.read()).await;
    outcome?;
    let task = task.clone();
    blocking(task.holder(), move || {
        draft.response.derived.extend(kept.into_iter().flat_map(KeptAnswers::into_pieces));
        draft.encode(&task)
    })
    .await
}

/// What the model has said of the page before. `None`: it is always asked, because what is told of changes must be new.
fn kept_answers(task: &PageTask, draft: &Draft) -> Option<KeptAnswers> {
    let (options, db) = (task.options(), &task.context.process.db);
    if options.change_tracking().is_some() {
        return None;
    }
    // An answer may be as old as the page.
    let stored = draft.response.stored.as_ref();
    let stored = stored.map(|stored| (stored.digest.clone(), cache::oldest(&options.cache, db.now())));
    Some(KeptAnswers::new(db.clone(), task.page.team_id, stored, task.keeps_derived()))
}

async fn steps(task: &PageTask, reader: &Reader<'_>, time: &Allowance, draft: &mut Draft) -> Result<(), PageError> {
    let options = task.options();
    read::read(task, reader, time, draft).await?;
    if let Some(redaction) = &options.redact_pii {
        redact::redact(redaction, options, reader, task.holder(), draft).await?;
    }
    if let Some(tracking) = options.change_tracking() {
        track::track(task, tracking, reader, time.ends(), draft).await?;
    }
    Ok(())
}
