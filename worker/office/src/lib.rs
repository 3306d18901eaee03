//! Office files, books and tables to HTML.
//!
//! [`detect`] says what a file is, its bytes before its name; [`convert`] makes clean semantic HTML of it (headings,
//! lists, tables, links), which the crate `weir-extract` makes markdown of as it does of any page. A sheet has more
//! cells than a tree of HTML should hold nodes, so sheets and tables come as markdown as well.
//!
//! All of it is synchronous, bounded, CPU-only work, meant for a process that can be killed. Nothing that a file links to
//! is fetched, no macro or formula is run, and no size that a file states is believed before it is counted.
//!
//! ```
//! use weir_office::{Format, Limits, convert, detect};
//!
//! let bytes = b"name,age\nAda,36\n";
//! let format = detect(bytes, Some("people.csv"), None).unwrap();
//! assert_eq!(format, Format::Csv);
//! let converted = convert(bytes, format, &Limits::default()).unwrap();
//! assert!(converted.html.contains("<th>name</th>"));
//! assert_eq!(converted.markdown.as_deref(), Some("| name | age |\n| --- | --- |\n| Ada | 36 |\n"));
//! ```
//!
//! ```text
//! formats, detect     which formats there are, and which of them a file is
//! archive, compound   the two containers: ZIP packages and OLE compound files
//! xml, text           parts as trees; bytes as text
//! html, list, table   what is written
//! xhtml               what is read as HTML and written as XML
//! package, properties what OOXML parts refer to; titles, authors, dates
//! word, sheet, slides, book     a reader for each format
//! ```

mod archive;
mod binary;
mod book;
mod compound;
mod detect;
mod formats;
mod html;
mod odf;
mod package;
mod properties;
mod sheet;
mod slides;
mod text;
mod word;
mod xhtml;
mod xml;

use serde::{Deserialize, Serialize};

pub use detect::{begins_as_office, begins_as_picture, detect};
pub use formats::{FORMATS, Format, FormatInfo, Kind};
pub use sheet::csv::separated;
pub use xhtml::with_end_tags;

/// What a file may cost. Counted while it is read, whatever the file says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes unpacked from a package, all parts together.
    pub unpacked: u64,
    /// How many times its packed size a part may have; small parts may have any.
    pub ratio: u64,
    /// Parts of a package.
    pub parts: usize,
    /// Depth of elements, groups or records.
    pub depth: usize,
    /// Bytes of one part that is read as a tree.
    pub tree: usize,
    /// Elements and texts of one part that is read as a tree.
    pub nodes: usize,
    /// Cells written of all sheets together, those between cells with a value included; further rows are left out.
    pub cells: usize,
    /// Bytes of HTML, and of markdown.
    pub output: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            unpacked: 200 << 20,
            ratio: 250,
            parts: 10_000,
            depth: 256,
            tree: 64 << 20,
            nodes: 4_000_000,
            cells: 2_000_000,
            output: 48 << 20,
        }
    }
}

/// What a file holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Converted {
    /// A whole document.
    pub html: String,
    /// The same as GitHub-flavoured markdown, of sheets and tables only.
    pub markdown: Option<String>,
    pub title: Option<String>,
    pub author: Option<String>,
    /// As the file has it: RFC 3339 with or without a zone.
    pub created: Option<String>,
    /// As [`Converted::created`].
    pub modified: Option<String>,
    /// Slides of slides, chapters of a book, pages of a document whose writer counted them.
    pub pages: Option<u32>,
    /// Words of a document whose writer counted them.
    pub words: Option<u64>,
    /// What a reader of the result should know, in sentences.
    pub warnings: Vec<String>,
}

/// Why a file was not converted, in words for callers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum ConvertError {
    /// It cannot be read without its password.
    #[error("the file is encrypted")]
    Encrypted,
    /// It is not what it seems to be, or too damaged to be read.
    #[error("the file is damaged: {0}")]
    Broken(String),
    /// It holds more than is read.
    #[error("the file is too large: more than {limit} {what}")]
    TooLarge {
        /// What there is too much of.
        what: String,
        /// How much there may be.
        limit: u64,
    },
    /// Its elements or groups are nested deeper than any program writes them.
    #[error("the file is nested too deep")]
    TooDeep,
    /// A page, a PDF or a picture, which others read.
    #[error("{0} files are not converted as office files")]
    Foreign(String),
}

impl ConvertError {
    fn broken(what: impl Into<String>) -> Self {
        Self::Broken(what.into())
    }

    fn too_large(what: &str, limit: usize) -> Self {
        Self::TooLarge { what: what.to_owned(), limit: limit as u64 }
    }
}

/// Makes HTML of a file.
///
/// # Errors
/// As [`ConvertError`] says.
pub fn convert(bytes: &[u8], format: Format, limits: &Limits) -> Result<Converted, ConvertError> {
    html::begin(limits);
    match format {
        Format::Docx | Format::Docm => word::docx::convert(bytes, limits),
        Format::Odt => word::odt::convert(bytes, limits),
        Format::Rtf => word::rtf::convert(bytes, limits),
        Format::Doc => word::doc::convert(bytes, limits),
        Format::Xlsx | Format::Xlsm => sheet::xlsx::convert(bytes, limits),
        Format::Xlsb => sheet::xlsb::convert(bytes, limits),
        Format::Xls => sheet::xls::convert(bytes, limits),
        Format::Ods => sheet::ods::convert(bytes, limits),
        Format::Csv => sheet::csv::convert(bytes, limits),
        Format::Pptx | Format::Pptm => slides::pptx::convert(bytes, limits),
        Format::Odp => slides::odp::convert(bytes, limits),
        Format::Ppt => slides::ppt::convert(bytes, limits),
        Format::Epub => book::convert(bytes, limits),
        Format::Html
        | Format::Pdf
        | Format::Png
        | Format::Jpeg
        | Format::Jp2
        | Format::Tiff
        | Format::Gif
        | Format::Bmp
        | Format::Webp => Err(ConvertError::Foreign(format.name().to_owned())),
    }
}
