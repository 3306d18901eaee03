//! PDFs to text, read in a confined child process.
//!
//! ```text
//! child (read)     unpdf finds glyphs, lines, columns, headings, lists and tables
//!       (blocks)   what kind of text stands where, if that is asked for
//!       (tidy)     words broken at line ends, paragraphs broken at page ends, running headers, ranks of headings
//! worker (ocr)     pages that are pictures: pdftoppm and tesseract in a code box, where they are installed
//! ```

mod blocks;
mod child;
mod layout;
pub mod ocr;
mod read;
mod tidy;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use weir_shared::domain::pdf_blocks::PdfPageBlocks;
use weir_shared::guests::Holder;

use crate::confined::{self, ConfinedError};

pub use child::main as child_main;

/// First argument of the worker's program that makes it a reader of one PDF.
pub const CHILD_ARGUMENT: &str = "__pdf";

/// How far into a file a PDF may begin, bytes.
pub const PDF_WITHIN: usize = 1024;

/// Memory of a reader, bytes: the file, what its streams unpack to, and the text.
const MEMORY: u64 = 1 << 30;

/// What is wanted of a PDF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PdfRequest {
    /// Pages to read, from the first.
    pub max_pages: u32,
    /// Their blocks too.
    pub blocks: bool,
}

impl PdfRequest {
    /// A request for so many pages.
    pub fn pages(max_pages: u32) -> Self {
        Self { max_pages, blocks: false }
    }
}

/// The text of a PDF.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PdfText {
    /// The pages that were read, in order.
    pub pages: Vec<PdfPage>,
    /// Pages in the file.
    pub total: u32,
    /// Absolute web and mail addresses that the pages link to, in order, without repeats.
    pub links: Vec<String>,
    /// What was filled into its form, as lines of markdown: `name: value`.
    #[serde(default)]
    pub fields: Vec<String>,
    pub title: Option<String>,
    pub author: Option<String>,
    pub subject: Option<String>,
    pub keywords: Option<String>,
    /// RFC 3339.
    pub created: Option<String>,
    /// RFC 3339.
    pub modified: Option<String>,
}

/// One page of a PDF.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PdfPage {
    /// From 1.
    pub number: u32,
    /// Ends in a newline unless it is empty.
    pub markdown: String,
    /// The page shows something, and has no text of its own.
    pub is_picture: bool,
    /// If they are asked for; their spans are those of this page's markdown.
    pub blocks: Option<PdfPageBlocks>,
}

/// Why a PDF was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum PdfError {
    /// The deadline or the bound of CPU time has passed. Pages in the file, when that is known.
    #[error("the PDF could not be read in time")]
    NoTime(Option<u32>),
    /// It cannot be opened without a password.
    #[error("the PDF is encrypted")]
    Encrypted,
    /// It is not a PDF, or too damaged to find its pages.
    #[error("the PDF is damaged: {0}")]
    Damaged(String),
    /// Its reader ran into the bounds of memory or stack, or gave more text than is taken.
    #[error("the PDF needs more memory than a reader has")]
    TooLarge,
    /// Nothing about the file: no reader could be started.
    #[error("no reader: {0}")]
    NoReader(String),
}

/// The first line of a reader's answer.
#[derive(Debug, Serialize, Deserialize)]
struct Opened {
    total: u32,
}

/// Reads a holder's PDF in a child process, which is gone when this returns or is dropped.
///
/// # Errors
/// As [`PdfError`] says; at the deadline at the latest.
pub async fn read(file: Bytes, request: PdfRequest, holder: Holder, deadline: Instant) -> Result<PdfText, PdfError> {
    let read =
        confined::read::<Result<PdfText, PdfError>>(CHILD_ARGUMENT, MEMORY, &request, file, holder, deadline).await;
    read.unwrap_or_else(|error| {
        Err(match error {
            ConfinedError::NoTime(said) => {
                let line = said.split(|byte| *byte == b'\n').next().unwrap_or_default();
                PdfError::NoTime(serde_json::from_slice::<Opened>(line).ok().map(|opened| opened.total))
            }
            ConfinedError::TooLarge => PdfError::TooLarge,
            ConfinedError::GaveUp => PdfError::Damaged("its reader gave up".to_owned()),
            ConfinedError::NoReader(why) => PdfError::NoReader(why),
        })
    })
}
