//! The process that reads one PDF: the worker's own program under another argument.

use std::process::ExitCode;

use super::{Opened, PdfRequest, read};
use crate::confined::child;

/// The whole life of a reader. It says the number of pages ahead of its answer.
pub fn main() -> ExitCode {
    child::main(|request: PdfRequest, file, said| read::read(file, request, |total| said.ahead(&Opened { total })))
}
