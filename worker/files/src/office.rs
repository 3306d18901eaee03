//! Office files, books and tables to HTML, read in a confined child process.

use std::process::ExitCode;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use weir_office::{ConvertError, Converted, Format, Limits, convert, detect};
use weir_shared::guests::Holder;

use crate::confined::{self, ConfinedError};

/// First argument of the worker's program that makes it a reader of one office file.
pub const CHILD_ARGUMENT: &str = "__office";

/// Memory of a reader, bytes: the file, what it unpacks to, and what is made of it.
const MEMORY: u64 = 600 << 20;

/// What a file is called and said to be: its bytes know better, where they tell.
#[derive(Debug, Serialize, Deserialize)]
pub struct FileNames {
    pub name: Option<String>,
    pub content_type: Option<String>,
}

/// A file that was read.
#[derive(Debug, Serialize, Deserialize)]
pub struct OfficeFile {
    pub format: Format,
    pub converted: Converted,
}

/// Why a file was not read.
#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
pub enum OfficeError {
    /// It is of no kind that is read.
    #[error("it is of no kind that can be read")]
    Unknown,
    #[error("{0}")]
    Refused(#[from] ConvertError),
    /// The deadline or the bound of processor time has passed.
    #[error("it could not be read in time")]
    NoTime,
    #[error("it needs more memory than a reader has")]
    TooLarge,
    /// Its reader ended without an answer.
    #[error("the file is damaged: its reader gave up")]
    GaveUp,
    /// Nothing about the file: no reader could be started.
    #[error("no reader: {0}")]
    NoReader(String),
}

/// Reads a holder's file in a child process, which is gone when this returns or is dropped.
///
/// # Errors
/// As [`OfficeError`] says; at the deadline at the latest.
pub async fn read(
    file: Bytes,
    names: &FileNames,
    holder: Holder,
    deadline: Instant,
) -> Result<OfficeFile, OfficeError> {
    let read =
        confined::read::<Result<OfficeFile, OfficeError>>(CHILD_ARGUMENT, MEMORY, names, file, holder, deadline).await;
    read.unwrap_or_else(|error| {
        Err(match error {
            ConfinedError::NoTime(_) => OfficeError::NoTime,
            ConfinedError::TooLarge => OfficeError::TooLarge,
            ConfinedError::GaveUp => OfficeError::GaveUp,
            ConfinedError::NoReader(why) => OfficeError::NoReader(why),
        })
    })
}

/// The whole life of a reader.
pub fn child_main() -> ExitCode {
    confined::child::main(|names: FileNames, file, _| {
        let format = detect(file, names.name.as_deref(), names.content_type.as_deref()).ok_or(OfficeError::Unknown)?;
        let converted = convert(file, format, &Limits::default())?;
        Ok::<_, OfficeError>(OfficeFile { format, converted })
    })
}
