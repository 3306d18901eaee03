//! Options that are valid and not built yet.

use crate::domain::validation::{Path, ValidationError, refusal};
use crate::error_code::ErrorCode;

/// An option that is valid, would change the result, and is not built yet.
pub(super) struct Unavailable {
    pub code: ErrorCode,
    pub path: Path,
    pub name: String,
}

/// What another product's catalogue is asked for. One official client looks for these very words.
pub(in crate::domain) fn no_exchange(path: Path) -> ValidationError {
    refusal(ErrorCode::Forbidden, path, "Exchange is not enabled for this team.")
}

/// The same of an agent, in the words and with the code that its clients know.
pub(super) fn no_exchange_here(path: Path) -> ValidationError {
    refusal(ErrorCode::ExchangeNotEnabled, path, "Exchange is not enabled for this team.")
}

/// The first unavailable option as an error.
pub(super) fn refuse_unavailable(unavailable: Vec<Unavailable>) -> Result<(), ValidationError> {
    match unavailable.into_iter().next() {
        None => Ok(()),
        Some(Unavailable { code, path, name }) => Err(refusal(code, path, format!("{name} is not available yet"))),
    }
}
