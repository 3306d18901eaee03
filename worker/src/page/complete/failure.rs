//! How it is told that the language model has not done something.

use crate::page::error::PageError;
use crate::reader::ReadError;

/// The page is delivered without `what`: that, why, and the code.
pub fn warning(what: &str, error: &ReadError) -> String {
    format!("{what}: {error} ({}).", error.code().code().unwrap_or_default())
}

/// The page fails with what `what` asked for.
pub fn page_error(what: &str, error: &ReadError) -> PageError {
    PageError::last(error.code(), format!("{what} failed: {error}."))
}
