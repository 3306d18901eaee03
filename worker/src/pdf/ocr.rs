//! Text of pictures: pages of a PDF that are scans, and images.
//!
//! `pdftoppm` (Poppler) draws a page, `tesseract` reads it. Both are programs of the machine, old C and C++ code that looks
//! at hostile files, so they run in a code box: without network, with bounds, and only where boxes work. They need not
//! be there; what needs them then says so.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::AsyncReadExt as _;
use tokio::time::{Instant, timeout_at};

use super::tidy;
use crate::sandbox::{CodeLimits, CodeSpec, Sandbox};

/// Most bytes of text taken from one run.
const MAX_TEXT: u64 = 32 << 20;

/// Between the texts of pages, before the page's number.
const PAGE_MARK: char = '\u{1e}';

/// Draws and reads the pages whose numbers are its arguments. 2,800 pixels are 240 dots an inch for a page of A4, and a bound
/// for one of ten metres.
const PAGES: &str = r#"exec 2>/dev/null
for n in "$@"; do
  pdftoppm -f "$n" -l "$n" -scale-to 2800 -gray "$HOME/file" "$HOME/page"
  printf '\036%s\n' "$n"
  for picture in "$HOME"/page*; do tesseract "$picture" - ; done
  rm -f "$HOME"/page*
done"#;

/// Reads one image.
const IMAGE: &str = r#"exec 2>/dev/null
printf '\0361\n'
tesseract "$HOME/file" -"#;

/// Why a picture was not read.
#[derive(Debug, thiserror::Error)]
pub enum OcrError {
    /// The programs are not installed, or this machine has no boxes for them.
    #[error("{0}")]
    Missing(String),
    /// The deadline has passed; so many pages were read by then.
    #[error("the pictures could not be read in time")]
    NoTime(usize),
}

/// Whether pages of PDFs can be read here.
pub fn reads_pages() -> bool {
    is_installed("pdftoppm") && reads_images()
}

/// Whether images can be read here.
pub fn reads_images() -> bool {
    is_installed("tesseract")
}

/// What an operator can do about it.
pub const WHAT_TO_INSTALL: &str =
    "text recognition is not installed on the worker (packages tesseract-ocr and poppler-utils)";

/// A code box sees what lies below `/usr`, on its own search path.
fn is_installed(name: &str) -> bool {
    ["/usr/bin", "/usr/local/bin"].iter().any(|dir| Path::new(dir).join(name).exists())
}

/// The text of the named pages of a PDF, as markdown, by page.
///
/// # Errors
/// When this machine cannot, or not in time.
pub async fn pages(
    sandbox: &Sandbox,
    file: &[u8],
    numbers: &[u32],
    deadline: Instant,
) -> Result<BTreeMap<u32, String>, OcrError> {
    if !reads_pages() {
        return Err(OcrError::Missing(WHAT_TO_INSTALL.to_owned()));
    }
    run(sandbox, file, PAGES, numbers.iter().map(u32::to_string), deadline).await
}

/// The text of an image, as markdown.
///
/// # Errors
/// When this machine cannot, or not in time.
pub async fn image(sandbox: &Sandbox, file: &[u8], deadline: Instant) -> Result<String, OcrError> {
    if !reads_images() {
        return Err(OcrError::Missing(WHAT_TO_INSTALL.to_owned()));
    }
    let mut texts = run(sandbox, file, IMAGE, std::iter::empty(), deadline).await?;
    Ok(texts.remove(&1).unwrap_or_default())
}

async fn run(
    sandbox: &Sandbox,
    file: &[u8],
    script: &str,
    arguments: impl Iterator<Item = String>,
    deadline: Instant,
) -> Result<BTreeMap<u32, String>, OcrError> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let cannot = |error: &dyn std::fmt::Display| OcrError::Missing(format!("text recognition cannot start: {error}"));
    let name = format!("ocr-{}", COUNTER.fetch_add(1, Ordering::Relaxed));
    let dir = sandbox.session_dir(&name).map_err(|error| cannot(&error))?;
    let path = dir.work.join("file");
    tokio::fs::write(&path, file).await.map_err(|error| cannot(&error))?;
    let (uid, gid) = dir.owner();
    std::os::unix::fs::chown(&path, Some(uid), Some(gid)).map_err(|error| cannot(&error))?;
    let mut program: Vec<String> = ["/bin/sh", "-c", script, "ocr"].map(str::to_owned).into();
    program.extend(arguments);
    let spec = CodeSpec {
        program,
        // One page at a time on one core: its threads would only wait for each other.
        env: vec![("OMP_THREAD_LIMIT".to_owned(), "1".to_owned())],
        limits: CodeLimits { memory: 1 << 30, ..CodeLimits::default() },
        ..CodeSpec::default()
    };
    let code = sandbox.start_code(&dir, spec).await.map_err(|error| cannot(&error))?;
    let mut text = Vec::new();
    let (control, stdout, handle) = (code.control, code.stdout, code.handle);
    let read = timeout_at(deadline, stdout.take(MAX_TEXT).read_to_end(&mut text)).await;
    handle.kill().await;
    drop((control, handle));
    dir.remove().await;
    let texts = split(&String::from_utf8_lossy(&text));
    match read {
        Ok(_) => Ok(texts),
        // Time ran out while the last page was read: it is not counted.
        Err(_) => Err(OcrError::NoTime(texts.len().saturating_sub(1))),
    }
}

/// The texts by their numbers.
fn split(text: &str) -> BTreeMap<u32, String> {
    let parts = text.split(PAGE_MARK).filter_map(|part| {
        let (number, text) = part.split_once('\n')?;
        Some((number.parse().ok()?, tidy::recognised(text)))
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_told_apart_by_their_pages() {
        let texts = split("\u{1e}2\nOne line\nand another.\n\u{c}\u{1e}5\n\n\u{c}");
        assert_eq!(texts[&2], "One line and another.\n");
        assert_eq!(texts[&5], "");
        assert_eq!(texts.len(), 2);
    }
}
