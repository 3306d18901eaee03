//! The formats of files that can be sent, with what they are called.

use serde::{Deserialize, Serialize};

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Html,
    Pdf,
    Word,
    Sheet,
    Slides,
    Book,
    Table,
    Image,
}

impl Kind {
    /// Its name for callers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Pdf => "pdf",
            Self::Word => "word",
            Self::Sheet => "sheet",
            Self::Slides => "slides",
            Self::Book => "book",
            Self::Table => "table",
            Self::Image => "image",
        }
    }

    /// Whether [`crate::convert`] reads it; others read pages, PDFs and pictures.
    pub fn is_office(self) -> bool {
        !matches!(self, Self::Html | Self::Pdf | Self::Image)
    }
}

/// A format of files. Templates and shows have that of the documents they are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Html,
    Pdf,
    Docx,
    Docm,
    Doc,
    Odt,
    Rtf,
    Xlsx,
    Xlsm,
    Xlsb,
    Xls,
    Ods,
    Pptx,
    Pptm,
    Ppt,
    Odp,
    Epub,
    Csv,
    Png,
    Jpeg,
    Jp2,
    Tiff,
    Gif,
    Bmp,
    Webp,
}

/// What is known of a format.
#[derive(Debug, Clone, Copy)]
pub struct FormatInfo {
    pub format: Format,
    /// Its name for callers.
    pub name: &'static str,
    pub kind: Kind,
    /// Without the dot, in lower case; the usual one first.
    pub extensions: &'static [&'static str],
    /// Without parameters, in lower case; the registered one first.
    pub mime_types: &'static [&'static str],
}

impl Format {
    /// What is known of it.
    pub fn info(self) -> &'static FormatInfo {
        // Every format has its row, which a test makes sure of; the first is as good as any other.
        FORMATS.iter().find(|info| info.format == self).unwrap_or(&FORMATS[0])
    }

    /// Its name for callers.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// What it is for.
    pub fn kind(self) -> Kind {
        self.info().kind
    }

    /// The format that a file's name ends in.
    pub fn of_name(name: &str) -> Option<Self> {
        let (_, extension) = name.rsplit_once('.')?;
        let extension = extension.to_ascii_lowercase();
        FORMATS.iter().find(|info| info.extensions.contains(&extension.as_str())).map(|info| info.format)
    }

    /// The format with a MIME type, whose parameters do not matter.
    pub fn of_type(content_type: &str) -> Option<Self> {
        let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        FORMATS.iter().find(|info| info.mime_types.contains(&essence.as_str())).map(|info| info.format)
    }
}

const fn row(
    format: Format,
    name: &'static str,
    kind: Kind,
    extensions: &'static [&'static str],
    mime_types: &'static [&'static str],
) -> FormatInfo {
    FormatInfo { format, name, kind, extensions, mime_types }
}

/// Every format, each once.
pub const FORMATS: &[FormatInfo] = &[
    row(Format::Html, "html", Kind::Html, &["html", "htm", "xhtml"], &["text/html", "application/xhtml+xml"]),
    row(Format::Pdf, "pdf", Kind::Pdf, &["pdf"], &["application/pdf"]),
    row(
        Format::Docx,
        "docx",
        Kind::Word,
        &["docx", "dotx"],
        &[
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.template",
        ],
    ),
    row(
        Format::Docm,
        "docm",
        Kind::Word,
        &["docm", "dotm"],
        &["application/vnd.ms-word.document.macroenabled.12", "application/vnd.ms-word.template.macroenabled.12"],
    ),
    row(Format::Doc, "doc", Kind::Word, &["doc", "dot"], &["application/msword"]),
    row(
        Format::Odt,
        "odt",
        Kind::Word,
        &["odt", "ott"],
        &[
            "application/vnd.oasis.opendocument.text",
            "application/vnd.oasis.opendocument.text-template",
            "application/vnd.oasis.opendocument.text-web",
            "application/vnd.oasis.opendocument.text-master",
        ],
    ),
    row(Format::Rtf, "rtf", Kind::Word, &["rtf"], &["application/rtf", "text/rtf"]),
    row(
        Format::Xlsx,
        "xlsx",
        Kind::Sheet,
        &["xlsx", "xltx"],
        &[
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            "application/vnd.openxmlformats-officedocument.spreadsheetml.template",
        ],
    ),
    row(
        Format::Xlsm,
        "xlsm",
        Kind::Sheet,
        &["xlsm", "xltm"],
        &["application/vnd.ms-excel.sheet.macroenabled.12", "application/vnd.ms-excel.template.macroenabled.12"],
    ),
    row(Format::Xlsb, "xlsb", Kind::Sheet, &["xlsb"], &["application/vnd.ms-excel.sheet.binary.macroenabled.12"]),
    row(Format::Xls, "xls", Kind::Sheet, &["xls", "xlt"], &["application/vnd.ms-excel"]),
    row(
        Format::Ods,
        "ods",
        Kind::Sheet,
        &["ods", "ots"],
        &["application/vnd.oasis.opendocument.spreadsheet", "application/vnd.oasis.opendocument.spreadsheet-template"],
    ),
    row(
        Format::Pptx,
        "pptx",
        Kind::Slides,
        &["pptx", "ppsx", "potx"],
        &[
            "application/vnd.openxmlformats-officedocument.presentationml.presentation",
            "application/vnd.openxmlformats-officedocument.presentationml.slideshow",
            "application/vnd.openxmlformats-officedocument.presentationml.template",
        ],
    ),
    row(
        Format::Pptm,
        "pptm",
        Kind::Slides,
        &["pptm", "ppsm", "potm"],
        &[
            "application/vnd.ms-powerpoint.presentation.macroenabled.12",
            "application/vnd.ms-powerpoint.slideshow.macroenabled.12",
        ],
    ),
    row(Format::Ppt, "ppt", Kind::Slides, &["ppt", "pps", "pot"], &["application/vnd.ms-powerpoint"]),
    row(
        Format::Odp,
        "odp",
        Kind::Slides,
        &["odp", "otp"],
        &[
            "application/vnd.oasis.opendocument.presentation",
            "application/vnd.oasis.opendocument.presentation-template",
        ],
    ),
    row(Format::Epub, "epub", Kind::Book, &["epub"], &["application/epub+zip"]),
    row(Format::Csv, "csv", Kind::Table, &["csv"], &["text/csv", "application/csv"]),
    row(Format::Png, "png", Kind::Image, &["png"], &["image/png"]),
    row(Format::Jpeg, "jpeg", Kind::Image, &["jpg", "jpeg"], &["image/jpeg", "image/jpg"]),
    row(Format::Jp2, "jp2", Kind::Image, &["jp2"], &["image/jp2"]),
    row(Format::Tiff, "tiff", Kind::Image, &["tiff", "tif"], &["image/tiff"]),
    row(Format::Gif, "gif", Kind::Image, &["gif"], &["image/gif"]),
    row(Format::Bmp, "bmp", Kind::Image, &["bmp"], &["image/bmp"]),
    row(Format::Webp, "webp", Kind::Image, &["webp"], &["image/webp"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_extensions_and_types_lead_to_one_format_each() {
        for info in FORMATS {
            assert_eq!(info.format.info().name, info.name);
            for extension in info.extensions {
                assert_eq!(Format::of_name(&format!("A.B.{}", extension.to_uppercase())), Some(info.format));
            }
            for mime_type in info.mime_types {
                assert_eq!(Format::of_type(&format!("{mime_type}; charset=utf-8")), Some(info.format));
            }
        }
        assert_eq!(Format::of_name("docx"), None);
        assert_eq!(Format::of_type("application/octet-stream"), None);
    }
}
