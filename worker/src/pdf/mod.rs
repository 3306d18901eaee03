//! PDFs to text. What reads them is a child process, so that a file made to exhaust or crash its reader takes nothing
//! else along.
//!
//! ```text
//! worker ── the file (stdin) ──> child: this program with [`CHILD_ARGUMENT`]      bounds: memory, CPU, no files, no
//!        <── pages, then text ──                                                  network, no other processes
//! child (read)     unpdf finds glyphs, lines, columns, headings, lists and tables
//!       (tidy)     words broken at line ends, paragraphs broken at page ends, running headers, ranks of headings
//! worker (ocr)     pages that are pictures: pdftoppm and tesseract in a code box, where they are installed
//! ```

mod child;
mod layout;
pub mod ocr;
mod read;
mod tidy;

use std::process::Stdio;
use std::sync::LazyLock;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

pub use child::main as child_main;

/// First argument of the worker's program that makes it a reader of one PDF.
pub const CHILD_ARGUMENT: &str = "__pdf";

/// How far into a file a PDF may begin, bytes.
pub const PDF_WITHIN: usize = 1024;

/// Readers at once; further files wait.
static READERS: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(std::thread::available_parallelism().map_or(2, std::num::NonZero::get)));

/// Most bytes taken from a reader.
const MAX_ANSWER: u64 = 128 << 20;

/// What is wanted of a PDF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PdfRequest {
    /// Pages to read, from the first.
    pub max_pages: u32,
    /// CPU seconds the reader may take; the caller's deadline counts besides.
    cpu_seconds: u64,
}

impl PdfRequest {
    /// A request for so many pages.
    pub fn pages(max_pages: u32) -> Self {
        Self { max_pages, cpu_seconds: 0 }
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
    pub title: Option<String>,
    pub author: Option<String>,
    pub subject: Option<String>,
    pub keywords: Option<String>,
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

/// Reads a PDF in a child process, which is gone when this returns or is dropped.
///
/// # Errors
/// As [`PdfError`] says; at the deadline at the latest.
pub async fn read(file: Bytes, request: PdfRequest, deadline: Instant) -> Result<PdfText, PdfError> {
    let Ok(turn) = timeout_at(deadline, READERS.acquire()).await else { return Err(PdfError::NoTime(None)) };
    // The semaphore is never closed.
    let _turn = turn;
    let left = deadline.saturating_duration_since(Instant::now());
    let request = PdfRequest { cpu_seconds: left.as_secs() + 1, ..request };
    let mut child = start(&request).map_err(|error| PdfError::NoReader(error.to_string()))?;
    let mut answer = Vec::new();
    let finished = timeout_at(deadline, converse(&mut child, file, &mut answer)).await;
    let _ = child.start_kill();
    let opened = || {
        let line = answer.split(|byte| *byte == b'\n').next()?;
        Some(serde_json::from_slice::<Opened>(line).ok()?.total)
    };
    let status = match finished {
        Err(_) => return Err(PdfError::NoTime(opened())),
        Ok(Err(error)) => return Err(PdfError::NoReader(error.to_string())),
        Ok(Ok(status)) => status,
    };
    use std::os::unix::process::ExitStatusExt as _;
    match status.signal() {
        Some(libc::SIGXCPU | libc::SIGKILL) => return Err(PdfError::NoTime(opened())),
        Some(_) => return Err(PdfError::TooLarge),
        None if answer.len() as u64 >= MAX_ANSWER => return Err(PdfError::TooLarge),
        None => {}
    }
    let parsed = tokio::task::spawn_blocking(move || {
        let last = answer.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        serde_json::from_slice::<Result<PdfText, PdfError>>(last)
    });
    match parsed.await {
        Ok(Ok(outcome)) => outcome,
        // It ended without an answer, which only a panic does.
        _ => Err(PdfError::Damaged("its reader gave up".to_owned())),
    }
}

fn start(request: &PdfRequest) -> std::io::Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command.arg(CHILD_ARGUMENT).arg(serde_json::to_string(request)?);
    // The allocator is not to reserve memory beyond what it uses: that would count against the bound.
    command.env_clear().env("MIMALLOC_ARENA_RESERVE", "0").current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    command.spawn()
}

/// Hands in the file, takes the answer, waits for the end.
async fn converse(child: &mut Child, file: Bytes, answer: &mut Vec<u8>) -> std::io::Result<std::process::ExitStatus> {
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(std::io::Error::other("a reader without pipes"));
    };
    let give = async {
        // A reader that has seen enough, or is gone, closes its end.
        let _ = stdin.write_all(&file).await;
        drop(stdin);
    };
    let mut stdout = stdout.take(MAX_ANSWER);
    let ((), taken) = tokio::join!(give, stdout.read_to_end(answer));
    taken?;
    drop(stdout);
    child.wait().await
}
