//! The option `redactPII` of a page. Whatever fails here fails the page: nothing is delivered half redacted.

use weir_shared::domain::action::ActionResults;
use weir_shared::domain::scrape::{Redaction, ScrapeOptions};
use weir_shared::error_code::ErrorCode;
use weir_shared::guests::Holder;

use super::failure::page_error;
use crate::page::cpu::blocking;
use crate::page::draft::Draft;
use crate::page::error::PageError;
use crate::reader::Reader;
use crate::redact::Redactor;

/// Takes the data of persons out of the document.
pub async fn redact(
    redaction: &Redaction,
    options: &ScrapeOptions,
    reader: &Reader<'_>,
    holder: Holder,
    draft: &mut Draft,
) -> Result<(), PageError> {
    let kinds = redaction.names();
    let mut names = Vec::new();
    if !kinds.is_empty() && !reader.has_model() {
        draft.warn(
            "redactPII: names and places of persons (PERSON, LOCATION) are not redacted, because no language model is \
             configured here (WEIR_LLM_URL).",
        );
    } else if !kinds.is_empty() {
        let document = draft.document.clone();
        let text = blocking(holder, move || Ok(Redactor::texts(&document))).await?;
        let found = reader.names(&draft.response.url, &text, &kinds).await;
        names = found.map_err(|error| page_error("redactPII", &error))?;
    }
    let shows = |results: &ActionResults| !results.screenshots.is_empty() || !results.pdfs.is_empty();
    if options.screenshot().is_some() || draft.document.actions.as_ref().is_some_and(shows) {
        draft.warn("redactPII: pictures are not redacted.");
    }
    let (redaction, document) = (redaction.clone(), std::mem::take(&mut draft.document));
    let country = options.location.as_ref().map(|location| location.country.clone());
    draft.document = blocking(holder, move || {
        let broken = |what: String| {
            tracing::error!(error = what, "a document cannot be redacted");
            PageError::last(ErrorCode::Unknown, "The page could not be redacted.")
        };
        let redactor =
            Redactor::new(&redaction, country.as_deref(), names).map_err(|error| broken(error.to_string()))?;
        redactor.redact(&document).map_err(|error| broken(error.to_string()))
    })
    .await?;
    draft.bill.redacted = true;
    Ok(())
}
