//! Turns a sentence into the options of a crawl (spec 4.10, wire 5.2): with the installation's language model, or
//! with a reader of plain English.
//!
//! Whoever writes the options, [`CrawlOptions::parse`] judges them: patterns compile, numbers are in range, and nothing
//! else is let through.

mod english;
mod model;

use serde_json::{Map, Value};
use url::Url;

use crate::domain::crawl::CrawlOptions;
use crate::llm::{Asker, ModelError, TokenMeter};

/// What a prompt was turned into.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PromptOptions {
    /// Fields of a crawl (wire 5.1) in camelCase; only those that the prompt speaks of.
    pub options: Map<String, Value>,
    /// What was not understood, in a sentence.
    pub warning: Option<String>,
}

/// Why a prompt could not be turned into options. The text is for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    #[error("Failed to process natural language prompt: {0}")]
    Model(#[from] ModelError),
    #[error("Failed to process natural language prompt: the language model's parameters are not valid ({0})")]
    Invalid(String),
}

/// Reads a prompt for a crawl of `url`. Without a model the reader of plain English is used: it never fails, and says in
/// the warning what it did not understand.
///
/// # Errors
/// When the model does not answer, or not with valid options on the second try either.
pub async fn read(
    model: Option<&Asker>,
    url: &Url,
    prompt: &str,
    meter: &TokenMeter,
) -> Result<PromptOptions, PromptError> {
    match model {
        Some(model) => model::read(model, url, prompt, meter).await,
        None => Ok(english::read(url, prompt)),
    }
}

/// The valid part of options: nulls are left out, and fields that say what is so anyway.
///
/// # Errors
/// A sentence about the first wrong field.
fn judge(options: Value) -> Result<Map<String, Value>, String> {
    let Value::Object(mut options) = options else { return Err("they are no JSON object".to_owned()) };
    options.retain(|_, value| !value.is_null() && *value != Value::Array(Vec::new()));
    let parsed = CrawlOptions::parse(&Value::Object(options.clone())).map_err(|error| {
        let issue = error.issues.first();
        issue.map_or(error.message.clone(), |issue| issue.message.clone())
    })?;
    // Numbers in one form, `0.0` for a delay left out.
    let Value::Object(normal) = parsed.to_json() else { return Err("they are no JSON object".to_owned()) };
    options.retain(|name, value| match normal.get(name) {
        Some(read) => {
            value.clone_from(read);
            true
        }
        None => false,
    });
    Ok(options)
}
