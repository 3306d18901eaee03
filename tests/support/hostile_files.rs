//! Files that are broken, encrypted or made to exhaust who reads them, each with what a caller must be told.

use std::io::{Cursor, Write as _};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::{checkout, long_tests};

/// What becomes of a file.
#[derive(Debug, Clone, Copy)]
pub enum Told {
    /// An error with these words.
    Refused(&'static str),
    /// A document with these words.
    Read(&'static str),
    /// Either: what is left of it may be read.
    Answered,
}

/// One file, made when it is sent: some are large.
pub struct HostileFile {
    pub name: &'static str,
    pub told: Told,
    make: Box<dyn Fn() -> Vec<u8> + Send + Sync>,
}

impl HostileFile {
    pub fn bytes(&self) -> Vec<u8> {
        (self.make)()
    }
}

const DAMAGED: Told = Told::Refused("the file is damaged");
const ENCRYPTED: Told = Told::Refused("the file is encrypted");
const TOO_LARGE: Told = Told::Refused("the file is too large");
/// Its bytes are those of no kind that is read, whatever its name says.
const NO_KIND: Told = Told::Refused("Weir cannot turn files of type");
const TOO_DEEP: Told = Told::Refused("the file is nested too deep");

/// A file of a real writer.
fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(checkout().join("worker/office/tests/files").join(name)).unwrap()
}

fn package(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A package whose parts are this byte, so many MiB each, written without holding them.
fn unpacks_to(names: &[&str], byte: u8, mib: usize) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for name in names {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        for _ in 0..mib {
            zip.write_all(&vec![byte; 1 << 20]).unwrap();
        }
    }
    zip.finish().unwrap().into_inner()
}

fn document(body: &str) -> Vec<u8> {
    let xml = format!("<w:document xmlns:w='w'><w:body>{body}</w:body></w:document>");
    package(&[("word/document.xml", xml.as_bytes())])
}

const RELATIONS: &str = "<Relationships><Relationship Id='r1' Type='x/worksheet' Target='sheet.xml'/>\
    <Relationship Id='r2' Type='x/sharedStrings' Target='strings.xml'/></Relationships>";

fn workbook(sheet: &str, strings: &str) -> Vec<u8> {
    package(&[
        ("xl/workbook.xml", b"<workbook><sheets><sheet name='S' r:id='r1'/></sheets></workbook>"),
        ("xl/_rels/workbook.xml.rels", RELATIONS.as_bytes()),
        ("xl/sheet.xml", format!("<worksheet><sheetData>{sheet}</sheetData></worksheet>").as_bytes()),
        ("xl/strings.xml", format!("<sst>{strings}</sst>").as_bytes()),
    ])
}

fn odf(kind: &str, body: &str) -> Vec<u8> {
    let xml = format!(
        "<office:document-content><office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    );
    package(&[("mimetype", mime_type(kind).as_bytes()), ("content.xml", xml.as_bytes())])
}

fn mime_type(kind: &str) -> String {
    format!("application/vnd.oasis.opendocument.{kind}")
}

fn locked_odf(kind: &str) -> Vec<u8> {
    let manifest = b"<manifest:manifest><manifest:file-entry><manifest:encryption-data/></manifest:file-entry></manifest:manifest>";
    package(&[
        ("mimetype", mime_type(kind).as_bytes()),
        ("META-INF/manifest.xml", manifest),
        ("content.xml", b"\x01\x02"),
    ])
}

fn deep(start: &str, end: &str, times: usize) -> String {
    start.repeat(times) + &end.repeat(times)
}

fn place(bytes: &[u8], what: &[u8]) -> usize {
    bytes.windows(what.len()).position(|window| window == what).unwrap()
}

/// A compound file whose chain of sectors leads back to its beginning.
fn in_a_circle(name: &str) -> Vec<u8> {
    let mut bytes = fixture(name);
    let table = usize::try_from(u32::from_le_bytes(bytes[76..80].try_into().unwrap())).unwrap();
    bytes[(table + 1) * 512..(table + 2) * 512].fill(0);
    bytes
}

/// All of them.
pub fn hostile_files() -> Vec<HostileFile> {
    let mut all = Vec::new();
    let mut add = |name: &'static str, told: Told, make: Box<dyn Fn() -> Vec<u8> + Send + Sync>| {
        all.push(HostileFile { name, told, make });
    };
    cut_off(&mut add);
    encrypted(&mut add);
    bombs(&mut add);
    growing(&mut add);
    misleading(&mut add);
    all
}

type Add<'a> = &'a mut dyn FnMut(&'static str, Told, Box<dyn Fn() -> Vec<u8> + Send + Sync>);

fn cut_off(add: Add<'_>) {
    for (name, told) in [
        ("whole.docx", DAMAGED),
        ("whole.odt", DAMAGED),
        ("whole.rtf", DAMAGED),
        ("values.xlsx", DAMAGED),
        ("binary.xlsb", DAMAGED),
        ("values.ods", DAMAGED),
        ("talk.pptx", DAMAGED),
        ("talk.odp", DAMAGED),
        ("book.epub", DAMAGED),
        // Of compound files the first part can be whole.
        ("whole.doc", Told::Answered),
        ("values.xls", Told::Answered),
        ("talk.ppt", Told::Answered),
    ] {
        add(
            name,
            told,
            Box::new(move || {
                let whole = fixture(name);
                whole[..whole.len() / 2].to_vec()
            }),
        );
    }
}

fn encrypted(add: Add<'_>) {
    for name in ["encrypted.docx", "encrypted.xlsx"] {
        add(name, ENCRYPTED, Box::new(move || fixture(name)));
    }
    for (name, kind) in [("locked.odt", "text"), ("locked.ods", "spreadsheet"), ("locked.odp", "presentation")] {
        add(name, ENCRYPTED, Box::new(move || locked_odf(kind)));
    }
    add(
        "locked.doc",
        ENCRYPTED,
        Box::new(|| {
            let mut doc = fixture("whole.doc");
            // The information block begins a sector.
            let at = (0..doc.len()).step_by(512).find(|at| doc[*at..].starts_with(b"\xec\xa5")).unwrap();
            doc[at + 11] |= 1;
            doc
        }),
    );
    add(
        "locked.xls",
        ENCRYPTED,
        Box::new(|| {
            let mut xls = fixture("old.xls");
            let at = place(&xls, b"\x42\x00\x02\x00");
            xls[at] = 0x2f;
            xls
        }),
    );
    add(
        "locked.ppt",
        ENCRYPTED,
        Box::new(|| {
            let mut ppt = fixture("talk.ppt");
            let at = place(&ppt, b"\x5f\xc0\x91\xe3");
            ppt[at..at + 4].copy_from_slice(&0xf3d1_c4df_u32.to_le_bytes());
            ppt
        }),
    );
    add(
        "locked-part.docx",
        ENCRYPTED,
        Box::new(|| {
            let mut zip = document("<w:p/>");
            // The flag of a part with a password, in both places where it stands.
            for (signature, flag) in [(b"PK\x03\x04", 6), (b"PK\x01\x02", 8)] {
                let at = place(&zip, signature);
                zip[at + flag] |= 1;
            }
            zip
        }),
    );
}

fn bombs(add: Add<'_>) {
    add("spaces.docx", TOO_LARGE, Box::new(|| unpacks_to(&["word/document.xml"], b' ', 250)));
    add("spaces.epub", TOO_LARGE, Box::new(|| unpacks_to(&["META-INF/container.xml", "a.opf"], b' ', 110)));
    add(
        "pictures.pptx",
        Told::Answered,
        Box::new(|| {
            unpacks_to(&["ppt/presentation.xml", "ppt/media/1.png", "ppt/media/2.png", "ppt/media/3.png"], b' ', 60)
        }),
    );
    add(
        "parts.docx",
        TOO_LARGE,
        Box::new(|| {
            let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
            for n in 0..20_000 {
                zip.start_file(format!("word/{n}"), SimpleFileOptions::default()).unwrap();
            }
            zip.finish().unwrap().into_inner()
        }),
    );
    add("elements.docx", TOO_LARGE, Box::new(|| document(&"<w:p/>".repeat(5_000_000))));
    add("tables.docx", TOO_DEEP, Box::new(|| document(&deep("<w:tbl><w:tr><w:tc>", "</w:tc></w:tr></w:tbl>", 50_000))));
    add(
        "lists.odt",
        TOO_DEEP,
        Box::new(|| odf("text", &deep("<text:list><text:list-item>", "</text:list-item></text:list>", 50_000))),
    );
    add("tables.ods", TOO_DEEP, Box::new(|| odf("spreadsheet", &deep("<table:table>", "</table:table>", 50_000))));
    add("groups.rtf", TOO_DEEP, Box::new(|| format!("{{\\rtf1 {}}}", deep("{", "}", 100_000)).into_bytes()));
}

/// So many where the long tests run, and a part of it elsewhere: without optimization a page of them takes minutes.
fn many(count: usize) -> usize {
    if long_tests() { count } else { count / 6 }
}

/// Files that are small and would become large.
fn growing(add: Add<'_>) {
    add(
        "entities.docx",
        Told::Read("startend"),
        Box::new(|| {
            let mut entities = String::from("<!DOCTYPE d [<!ENTITY a0 'ha'>");
            for n in 1..30 {
                entities.push_str(&format!("<!ENTITY a{n} '&a{};&a{};'>", n - 1, n - 1));
            }
            let text = "<w:document><w:body><w:p><w:r><w:t>start&a29;end</w:t></w:r></w:p></w:body></w:document>";
            package(&[("word/document.xml", format!("{entities}]>{text}").as_bytes())])
        }),
    );
    add(
        "corners.xlsx",
        Told::Read("2"),
        Box::new(|| {
            let corners =
                "<row r='1'><c r='A1'><v>1</v></c></row><row r='1048576'><c r='XFD1048576'><v>2</v></c></row>";
            workbook(corners, "")
        }),
    );
    add(
        "one-text.xlsx",
        Told::Answered,
        Box::new(|| {
            let text = format!("<si><t>{}</t></si>", "x".repeat(1 << 20));
            workbook(&"<row><c t='s'><v>0</v></c></row>".repeat(many(200_000)), &text)
        }),
    );
    add("rows.xlsx", Told::Answered, Box::new(|| workbook(&"<row><c><v>1</v></c></row>".repeat(many(600_000)), "")));
    add(
        "columns.xlsx",
        Told::Answered,
        Box::new(|| workbook(&format!("<row>{}</row>", "<c><v>1</v></c>".repeat(many(1_000_000))), "")),
    );
    add(
        "repeated.ods",
        Told::Answered,
        Box::new(|| {
            let repeated = "<table:table table:name='a'><table:table-row table:number-rows-repeated='4000000000'>\
            <table:table-cell table:number-columns-repeated='4000000000' office:value-type='string'><text:p>x</text:p>\
            </table:table-cell></table:table-row></table:table>";
            odf("spreadsheet", &repeated.repeat(40))
        }),
    );
    add(
        "attributes.docx",
        Told::Answered,
        Box::new(|| {
            let attributes: String = (0..many(300_000)).map(|n| format!(" a{n}='1'")).collect();
            document(&format!("<w:p{attributes}><w:pPr{attributes}/></w:p>"))
        }),
    );
    add(
        "paragraphs.docx",
        Told::Answered,
        Box::new(|| document(&"<w:p><w:r><w:t>a</w:t></w:r></w:p>".repeat(many(300_000)))),
    );
    add("commas.csv", Told::Answered, Box::new(|| ",".repeat(many(8 << 20)).into_bytes()));
    add("quote.csv", Told::Answered, Box::new(|| format!("a,\"{}", "b\n".repeat(many(4 << 20))).into_bytes()));
    add(
        "notes.rtf",
        Told::Answered,
        Box::new(|| format!("{{\\rtf1 {}}}", "{\\footnote a}".repeat(many(100_000))).into_bytes()),
    );
}

/// Files that lead elsewhere: in a circle, out of themselves, or to another reader than the right one.
fn misleading(add: Add<'_>) {
    for (name, of) in [("circle.doc", "whole.doc"), ("circle.xls", "values.xls"), ("circle.ppt", "talk.ppt")] {
        add(name, Told::Answered, Box::new(move || in_a_circle(of)));
    }
    add(
        "styles.docx",
        Told::Read("inherited"),
        Box::new(|| {
            let styles = "<w:styles><w:style w:styleId='a'><w:basedOn w:val='b'/></w:style>\
            <w:style w:styleId='b'><w:basedOn w:val='a'/></w:style></w:styles>";
            let body = b"<d><body><p><pPr><pStyle w:val='a'/></pPr><r><t>inherited</t></r></p></body></d>";
            let relation = b"<R><Relationship Id='1' Type='a/styles' Target='styles.xml'/></R>";
            package(&[
                ("word/document.xml", body),
                ("word/_rels/document.xml.rels", relation),
                ("word/styles.xml", styles.as_bytes()),
            ])
        }),
    );
    add(
        "outside.docx",
        Told::Read("beforeafter"),
        Box::new(|| {
            let xml = "<!DOCTYPE d [<!ENTITY out SYSTEM 'file:///etc/passwd'>]><w:document><w:body><w:p><w:r>\
            <w:t>before&out;after</w:t></w:r></w:p></w:body></w:document>";
            package(&[("word/document.xml", xml.as_bytes())])
        }),
    );
    // The bytes say what it is.
    add("whole.xls", Told::Read("# "), Box::new(|| fixture("whole.docx")));
    add("values.pdf", Told::Read("|"), Box::new(|| fixture("values.xlsx")));
    add("program.docx", NO_KIND, Box::new(|| b"MZ\x90\0\x03\0\0\0\x04\0\0\0\xff\xff\0\0".repeat(64)));
    add("empty.pptx", NO_KIND, Box::new(|| package(&[])));
    add(
        "nothing-in-it.odt",
        DAMAGED,
        Box::new(|| package(&[("mimetype", b"application/vnd.oasis.opendocument.text")])),
    );
}
