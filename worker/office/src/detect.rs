//! What a file is: its bytes first, then its name and the type it was sent with.

use memchr::memmem;

use crate::archive::{self, Archive};
use crate::compound::{self, Compound};
use crate::{Format, Limits};

/// How far into a file its beginning is looked for, bytes.
const HEAD: usize = 1024;

/// What a file is; `None` if nothing says so. Bytes that tell decide; a name and a type only choose among formats that
/// the bytes allow, a name before a type.
pub fn detect(bytes: &[u8], name: Option<&str>, content_type: Option<&str>) -> Option<Format> {
    let said = [name.and_then(Format::of_name), content_type.and_then(Format::of_type)];
    let said = || said.into_iter().flatten();
    let head = &bytes[..bytes.len().min(HEAD)];
    if is_package(bytes) {
        return match in_package(bytes) {
            Inside::Found(Format::Docx) if said().next() == Some(Format::Docm) => Some(Format::Docm),
            Inside::Found(format) => Some(format),
            Inside::Other => None,
            // One that is cut off is named for what it should be.
            Inside::Unreadable => said().find(|format| is_packaged(*format)),
        };
    }
    if bytes.starts_with(compound::MAGIC) {
        return match in_compound(bytes) {
            Inside::Found(Format::Docx) => Some(said().find(|format| is_packaged(*format)).unwrap_or(Format::Docx)),
            Inside::Found(format) => Some(format),
            Inside::Other => None,
            Inside::Unreadable => said().find(|format| matches!(format, Format::Doc | Format::Xls | Format::Ppt)),
        };
    }
    if let Some(picture) = picture(head) {
        return Some(picture);
    }
    if memmem::find(head, b"%PDF-").is_some() {
        return Some(Format::Pdf);
    }
    if is_rich_text(head) {
        return Some(Format::Rtf);
    }
    if is_markup(head) {
        return Some(Format::Html);
    }
    // Workbooks older than compound files, and everything that has no signature.
    if !is_text(head) {
        return said().find(|format| *format == Format::Xls && bytes.starts_with(b"\x09"));
    }
    said().find_map(|format| match format {
        Format::Csv | Format::Html => Some(format),
        // Programs call tables of text by the name of the sheets they are opened with.
        Format::Xls | Format::Xlsx => Some(Format::Csv),
        _ => None,
    })
}

/// Whether a file begins like one that [`crate::convert`] reads, which costs a few bytes: a package, a compound file or rich
/// text. What it is, [`detect`] says.
pub fn begins_as_office(bytes: &[u8]) -> bool {
    is_package(bytes) || bytes.starts_with(compound::MAGIC) || is_rich_text(&bytes[..bytes.len().min(HEAD)])
}

/// Whether a file begins like a picture of a kind that text is read from.
pub fn begins_as_picture(bytes: &[u8]) -> bool {
    picture(&bytes[..bytes.len().min(HEAD)]).is_some()
}

fn is_package(bytes: &[u8]) -> bool {
    bytes.starts_with(archive::MAGIC) || bytes.starts_with(b"PK\x05\x06")
}

fn is_rich_text(head: &[u8]) -> bool {
    trimmed(head).starts_with(b"{\\rtf")
}

enum Inside {
    Found(Format),
    Other,
    Unreadable,
}

fn is_packaged(format: Format) -> bool {
    format.kind().is_office() && !matches!(format, Format::Doc | Format::Xls | Format::Ppt | Format::Rtf | Format::Csv)
}

fn in_package(bytes: &[u8]) -> Inside {
    let Ok(mut package) = Archive::open(bytes, &Limits::default()) else { return Inside::Unreadable };
    if package.has("mimetype")
        && let Ok(Some(said)) = package.read("mimetype")
        && let Ok(said) = str::from_utf8(&said)
        && let Some(format) = Format::of_type(said)
    {
        return Inside::Found(format);
    }
    let has = |name: &str| package.has(name);
    let has_macros = |folder: &str| has(&format!("{folder}/vbaProject.bin"));
    let found = if has("xl/workbook.bin") {
        Format::Xlsb
    } else if has("word/document.xml") || package.names().any(|name| name.starts_with("word/")) {
        if has_macros("word") { Format::Docm } else { Format::Docx }
    } else if package.names().any(|name| name.starts_with("xl/")) {
        if has_macros("xl") { Format::Xlsm } else { Format::Xlsx }
    } else if package.names().any(|name| name.starts_with("ppt/")) {
        if has_macros("ppt") { Format::Pptm } else { Format::Pptx }
    } else if has("META-INF/container.xml") {
        Format::Epub
    } else {
        return in_types(&mut package);
    };
    Inside::Found(found)
}

/// Packages may name their folders as they like, and then only the list of types tells.
fn in_types(package: &mut Archive<'_>) -> Inside {
    let types = package.read("[Content_Types].xml").ok().flatten().unwrap_or_default();
    let found = [
        (&b"wordprocessingml.document.main"[..], Format::Docx),
        (b"spreadsheetml.sheet.main", Format::Xlsx),
        (b"presentationml.presentation.main", Format::Pptx),
    ];
    let found = found.into_iter().find(|(part, _)| memmem::find(&types, part).is_some());
    found.map_or(Inside::Other, |(_, format)| Inside::Found(format))
}

fn in_compound(bytes: &[u8]) -> Inside {
    let Ok(file) = Compound::open(bytes) else { return Inside::Unreadable };
    let found = [
        ("EncryptedPackage", Format::Docx),
        ("WordDocument", Format::Doc),
        ("Workbook", Format::Xls),
        ("Book", Format::Xls),
        ("PowerPoint Document", Format::Ppt),
    ];
    found.into_iter().find(|(name, _)| file.has(name)).map_or(Inside::Other, |(_, format)| Inside::Found(format))
}

fn picture(head: &[u8]) -> Option<Format> {
    let starts = |magic: &[u8]| head.starts_with(magic);
    let at = |from: usize, magic: &[u8]| head.get(from..).is_some_and(|rest| rest.starts_with(magic));
    Some(if starts(b"\x89PNG\r\n\x1a\n") {
        Format::Png
    } else if starts(b"\xff\xd8\xff") {
        Format::Jpeg
    } else if starts(b"GIF87a") || starts(b"GIF89a") {
        Format::Gif
    } else if starts(b"RIFF") && at(8, b"WEBP") {
        Format::Webp
    } else if starts(b"II*\0") || starts(b"MM\0*") {
        Format::Tiff
    } else if starts(b"\0\0\0\x0cjP  ") || starts(b"\xff\x4f\xff\x51") {
        Format::Jp2
    } else if starts(b"BM") && at(6, b"\0\0\0\0") {
        Format::Bmp
    } else {
        return None;
    })
}

/// Without a mark of Unicode and white space.
fn trimmed(head: &[u8]) -> &[u8] {
    head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start()
}

fn is_markup(head: &[u8]) -> bool {
    let mut lower = trimmed(head).to_ascii_lowercase();
    // In UTF-16 every second byte is zero.
    if lower.starts_with(b"\xff\xfe") || lower.starts_with(b"\xfe\xff") {
        lower.retain(|byte| !matches!(byte, 0 | 0xff | 0xfe));
    }
    let begins = [&b"<!doctype html"[..], b"<html", b"<head", b"<body", b"<table", b"<div", b"<meta"];
    begins.iter().any(|begin| lower.starts_with(begin))
        || ((lower.starts_with(b"<?xml") || lower.starts_with(b"<!--")) && memmem::find(&lower, b"<html").is_some())
}

/// Whether bytes may be text: UTF-16 says so, other text has no zero.
fn is_text(head: &[u8]) -> bool {
    head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") || !head.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_decide_over_names_and_types() {
        let cases: [(&[u8], &str, &str, Option<Format>); 10] = [
            (b"%PDF-1.7\n", "a.docx", "", Some(Format::Pdf)),
            (b"\x89PNG\r\n\x1a\n", "a.csv", "text/csv", Some(Format::Png)),
            (b"{\\rtf1 a}", "a.doc", "application/msword", Some(Format::Rtf)),
            (b"\xef\xbb\xbf <!DOCTYPE HTML>", "a.xls", "", Some(Format::Html)),
            (b"a\tb\n1\t2\n", "a.xls", "", Some(Format::Csv)),
            (b"a,b\n", "a.txt", "text/csv; charset=utf-8", Some(Format::Csv)),
            (b"a,b\n", "a.docx", "", None),
            (b"plain", "a", "", None),
            (b"PK\x03\x04 cut off", "a.XLSX", "", Some(Format::Xlsx)),
            (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a.doc", "", Some(Format::Doc)),
        ];
        for (bytes, name, content_type, expected) in cases {
            assert_eq!(detect(bytes, Some(name), Some(content_type)), expected, "{name} {content_type}");
        }
    }

    #[test]
    fn a_picture_is_told_by_how_it_begins() {
        for (bytes, is_picture) in [
            (&b"\x89PNG\r\n\x1a\n"[..], true),
            (b"\xff\xd8\xff\xe0", true),
            (b"GIF89a", true),
            (b"RIFF\0\0\0\0WEBP", true),
            (b"II*\0", true),
            (b"/usr/share/pictures/a.png\n", false),
            (b"\0\0\0\x1cftypavif", false),
            (b"\0\0\x01\0\x01\0", false),
            (b"<svg xmlns='http://www.w3.org/2000/svg'/>", false),
            (b"", false),
        ] {
            assert_eq!(begins_as_picture(bytes), is_picture, "{bytes:?}");
        }
    }
}
