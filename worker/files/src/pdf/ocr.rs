//! Text of pictures: pages of a PDF that are scans, and images.
//!
//! `pdftoppm` (Poppler) draws a page, `tesseract` reads it. Both are programs of the machine, old C and C++ code that looks
//! at hostile files, so they run in a code box: without network, with bounds, and only where boxes work. They need not
//! be there; what needs them then says so.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt as _;
use tokio::time::{Instant, timeout_at};
use weir_sandbox::{CodeLimits, CodeSpec, Sandbox};
use weir_shared::domain::pdf_blocks::{PdfBlock, PdfBlockConfidence, PdfBlockKind, PdfBlockSource};

use super::tidy;

/// Most bytes of text taken from one run.
const MAX_TEXT: u64 = 32 << 20;

/// Between the texts of pages, before the page's number.
const PAGE_MARK: char = '\u{1e}';
/// Between a page's text and where its words stand.
const PLACES_MARK: char = '\u{1d}';
/// After what was read to its end. Where it is missing the picture is damaged, too large, or of a kind that the programs do
/// not know.
const READ_MARK: char = '\u{1f}';

/// Draws and reads the pages whose numbers are its arguments. 2,800 pixels are 240 dots an inch for a page of A4, and a bound
/// for one of ten metres.
const PAGES: &str = r#"exec 2>/dev/null
for n in "$@"; do
  pdftoppm -f "$n" -l "$n" -scale-to 2800 -gray "$HOME/file" "$HOME/page"
  printf '\036%s\n' "$n"
  for picture in "$HOME"/page*; do tesseract "$picture" - && printf '\037'; done
  rm -f "$HOME"/page*
done"#;

/// The same, and where the words stand.
const PAGES_WITH_PLACES: &str = r#"exec 2>/dev/null
for n in "$@"; do
  pdftoppm -f "$n" -l "$n" -scale-to 2800 -gray "$HOME/file" "$HOME/page"
  printf '\036%s\n' "$n"
  for picture in "$HOME"/page*; do
    tesseract "$picture" "$HOME/read" txt tsv &&
      cat "$HOME/read.txt" && printf '\035' && cat "$HOME/read.tsv" && printf '\037'
  done
  rm -f "$HOME"/page* "$HOME"/read.*
done"#;

/// Reads one image.
const IMAGE: &str = r#"exec 2>/dev/null
printf '\0361\n'
tesseract "$HOME/file" - && printf '\037'"#;

/// Why a picture was not read.
#[derive(Debug, thiserror::Error)]
pub enum OcrError {
    /// The programs are not installed, or this machine has no boxes for them.
    #[error("{0}")]
    Missing(String),
    /// The deadline has passed; so many pages were read by then.
    #[error("the pictures could not be read in time")]
    NoTime(usize),
    /// It is damaged, too large, or of a kind that is not read.
    #[error("the picture is damaged, too large, or of a kind that is not read")]
    Unreadable,
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

/// What was recognised on a page.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recognised {
    pub markdown: String,
    /// If they are asked for.
    pub blocks: Vec<PdfBlock>,
}

/// The text of the named pages of a PDF, as markdown, by page, if wanted with its blocks. Pages that could not be read are
/// missing.
///
/// # Errors
/// When this machine cannot, or not in time.
pub async fn pages(
    sandbox: &Sandbox,
    file: &[u8],
    numbers: &[u32],
    with_blocks: bool,
    deadline: Instant,
) -> Result<BTreeMap<u32, Recognised>, OcrError> {
    if !reads_pages() {
        return Err(OcrError::Missing(WHAT_TO_INSTALL.to_owned()));
    }
    let script = if with_blocks { PAGES_WITH_PLACES } else { PAGES };
    run(sandbox, file, script, numbers.iter().map(u32::to_string), deadline).await
}

/// The text of an image, as markdown.
///
/// # Errors
/// When this machine cannot, or not in time, and when the image cannot be read.
pub async fn image(sandbox: &Sandbox, file: &[u8], deadline: Instant) -> Result<String, OcrError> {
    if !reads_images() {
        return Err(OcrError::Missing(WHAT_TO_INSTALL.to_owned()));
    }
    // What is no picture Tesseract takes for a list of names of files that are.
    if !weir_office::begins_as_picture(file) {
        return Err(OcrError::Unreadable);
    }
    let mut texts = run(sandbox, file, IMAGE, std::iter::empty(), deadline).await?;
    texts.remove(&1).map(|read| read.markdown).ok_or(OcrError::Unreadable)
}

async fn run(
    sandbox: &Sandbox,
    file: &[u8],
    script: &str,
    arguments: impl Iterator<Item = String>,
    deadline: Instant,
) -> Result<BTreeMap<u32, Recognised>, OcrError> {
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
        Err(_) => Err(OcrError::NoTime(texts.len())),
    }
}

/// The texts by their numbers; none of what was not read to its end.
fn split(text: &str) -> BTreeMap<u32, Recognised> {
    let parts = text.split(PAGE_MARK).filter_map(|part| {
        let (number, text) = part.split_once('\n')?;
        let number = number.parse().ok()?;
        let text = text.strip_suffix(READ_MARK)?;
        let recognised = match text.split_once(PLACES_MARK) {
            Some((text, places)) => with_blocks(number, text, places),
            None => Recognised { markdown: tidy::recognised(text), blocks: Vec::new() },
        };
        Some((number, recognised))
    });
    parts.collect()
}

/// A paragraph that was recognised: its words, where it stands, and how sure the reader is of them.
#[derive(Debug, Default)]
struct Paragraph {
    words: String,
    bbox: Option<[f32; 4]>,
    sureness: f32,
    count: f32,
}

/// The text of a page with its blocks. A paragraph of which nothing is told has no place.
fn with_blocks(number: u32, text: &str, places: &str) -> Recognised {
    let mut told = paragraphs(places).into_iter().peekable();
    let mut page = Recognised::default();
    let mut chars = 0;
    for (n, (dense, markdown)) in tidy::recognised_paragraphs(text).into_iter().enumerate() {
        if n > 0 {
            page.markdown.push('\n');
            chars += 1;
        }
        let told = told.next_if(|paragraph| paragraph.words == dense).unwrap_or_default();
        let end = chars + markdown.chars().count();
        page.markdown.push_str(&markdown);
        page.markdown.push('\n');
        page.blocks.push(PdfBlock {
            id: format!("p{number}.b{n}"),
            kind: PdfBlockKind::Text,
            label: Some("paragraph".to_owned()),
            bbox: told.bbox,
            content: markdown,
            markdown_span: Some([chars, end]),
            reading_order: n,
            source: PdfBlockSource::Ocr,
            confidence: PdfBlockConfidence {
                layout: None,
                ocr: (told.count > 0.0).then(|| (told.sureness / told.count * 100.0).round() / 10_000.0),
            },
        });
        chars = end + 1;
    }
    page
}

/// What Tesseract says of the paragraphs of a page: a table with a line for the page, each block, paragraph, line and word.
fn paragraphs(table: &str) -> Vec<Paragraph> {
    let mut found: Vec<Paragraph> = Vec::new();
    let mut size = None;
    for line in table.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [level, _, _, _, _, _, left, top, width, height, sureness, text] = columns[..] else { continue };
        let numbers = [left, top, width, height].map(|number| number.parse::<f32>().ok().filter(|n| n.is_finite()));
        let [Some(left), Some(top), Some(width), Some(height)] = numbers else { continue };
        match level {
            "1" => size = Some((width, height)).filter(|_| width > 0.0 && height > 0.0),
            "3" => {
                let bbox = size.map(|(w, h)| [left / w, top / h, (left + width) / w, (top + height) / h]);
                let rounded = |part: f32| (part.clamp(0.0, 1.0) * 10_000.0).round() / 10_000.0;
                found.push(Paragraph { bbox: bbox.map(|bbox| bbox.map(rounded)), ..Paragraph::default() });
            }
            "5" => {
                let Some(paragraph) = found.last_mut() else { continue };
                paragraph.words.extend(text.chars().filter(|c| !c.is_whitespace()));
                if let Some(sure) = sureness.parse::<f32>().ok().filter(|sure| (0.0..=100.0).contains(sure)) {
                    paragraph.sureness += sure;
                    paragraph.count += 1.0;
                }
            }
            _ => {}
        }
    }
    found.retain(|paragraph| !paragraph.words.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_told_apart_by_their_pages() {
        let texts = split("\u{1e}2\nOne line\nand another.\n\u{c}\u{1f}\u{1e}5\n\n\u{c}\u{1f}\u{1e}6\n\u{1e}7\nhalf a");
        assert_eq!(texts[&2].markdown, "One line and another.\n");
        assert_eq!(texts[&5].markdown, "");
        assert_eq!(texts.len(), 2);
    }

    #[test]
    fn paragraphs_have_their_places_and_how_sure_their_words_are() {
        let table = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext\n\
            1\t1\t0\t0\t0\t0\t0\t0\t200\t400\t-1\t\n2\t1\t1\t0\t0\t0\t20\t40\t100\t40\t-1\t\n\
            3\t1\t1\t1\t0\t0\t20\t40\t100\t40\t-1\t\n4\t1\t1\t1\t1\t0\t20\t40\t100\t20\t-1\t\n\
            5\t1\t1\t1\t1\t1\t20\t40\t40\t20\t90.5\tOne\n5\t1\t1\t1\t1\t2\t70\t40\t50\t20\t70.5\t\u{1f600}\n\
            3\t1\t1\t2\t0\t0\t20\t40\t100\t40\t-1\t\n5\t1\t1\t2\t1\t1\tx\t1\t1\t1\t1\tlost\n\
            5\t1\t1\t2\t1\t1\t1\t1\t1\t1\t-1\ttwo\n";
        let texts = split(&format!("\u{1e}7\nOne\n\u{1f600}\n\n*two*\n\ntwo\n\u{c}\u{1d}{table}\u{1f}"));
        let page = &texts[&7];
        assert_eq!(page.markdown, "One \u{1f600}\n\n\\*two\\*\n\ntwo\n");
        let told: Vec<_> = page.blocks.iter().map(|b| (b.bbox, b.markdown_span, b.confidence.ocr)).collect();
        let place = Some([0.1, 0.1, 0.6, 0.2]);
        assert_eq!(told[0], (place, Some([0, 5]), Some(0.805)));
        assert_eq!(told[1], (None, Some([7, 14]), None), "the words are others");
        assert_eq!(told[2], (place, Some([16, 19]), None), "its words are not judged");
        assert_eq!((page.blocks[2].id.as_str(), page.blocks[2].source), ("p7.b2", PdfBlockSource::Ocr));
    }
}
