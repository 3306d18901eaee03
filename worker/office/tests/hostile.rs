//! Files that are broken, encrypted or made to exhaust their reader: each is answered soon and without a panic. What memory
//! the process takes that reads one in the service is held in `tests/it/parse.rs`.

#![expect(clippy::unwrap_used, reason = "what a test is sure of")]

use std::io::{Cursor, Write as _};
use std::path::Path;
use std::time::Duration;

use weir_office::{ConvertError, Converted, Format, Limits, convert, detect};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// Processor time that a file may take. The tests are built with less optimization than the service, and on machines that are
/// shared, time that others have taken counts as well; what grows with the square of a file takes minutes.
const TIME: Duration = Duration::from_secs(if cfg!(debug_assertions) { 15 } else { 1 });

fn file(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name)).unwrap()
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec.cast_unsigned() as u32)
}

fn answer_within(what: &str, bytes: &[u8], format: Format, limits: &Limits) -> Result<Converted, ConvertError> {
    let start = cpu_time();
    let outcome = convert(bytes, format, limits);
    let took = cpu_time().saturating_sub(start);
    assert!(took < TIME, "{what} took {took:?}");
    outcome
}

fn answer(what: &str, bytes: &[u8], format: Format) -> Result<Converted, ConvertError> {
    answer_within(what, bytes, format, &Limits::default())
}

fn package(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(content).unwrap();
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
    package(&[("content.xml", xml.as_bytes())])
}

/// One file of each format that has a container.
const EACH: [(&str, Format); 12] = [
    ("whole.docx", Format::Docx),
    ("whole.odt", Format::Odt),
    ("whole.rtf", Format::Rtf),
    ("whole.doc", Format::Doc),
    ("values.xlsx", Format::Xlsx),
    ("binary.xlsb", Format::Xlsb),
    ("values.xls", Format::Xls),
    ("values.ods", Format::Ods),
    ("talk.pptx", Format::Pptx),
    ("talk.ppt", Format::Ppt),
    ("talk.odp", Format::Odp),
    ("book.epub", Format::Epub),
];

#[test]
fn files_that_are_cut_off_are_broken() {
    for (name, format) in EACH {
        let bytes = file(name);
        for quarters in 1..4 {
            let part = &bytes[..bytes.len() * quarters / 4];
            let outcome = answer(name, part, format);
            // Of compound files the first part can be whole.
            let may_be_read = matches!(format, Format::Doc | Format::Xls | Format::Ppt);
            assert!(may_be_read || matches!(outcome, Err(ConvertError::Broken(_))), "{name} {quarters}: {outcome:?}");
            assert_eq!(detect(part, Some(name), None), Some(format), "{name} {quarters}");
        }
        assert!(answer(name, &[], format).is_err() || format == Format::Csv);
        assert!(answer(name, b"something else", format).is_err());
    }
}

#[test]
fn files_with_changed_bytes_are_answered() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for (name, format) in EACH {
        let bytes = file(name);
        for _ in 0..60 {
            let mut changed = bytes.clone();
            for _ in 0..1 + next() % 8 {
                let at = usize::try_from(next()).unwrap() % changed.len();
                changed[at] = match next() % 3 {
                    0 => 0xff,
                    1 => 0,
                    _ => u8::try_from(next() % 256).unwrap(),
                };
            }
            let _ = answer(name, &changed, format);
            let _ = detect(&changed, Some(name), None);
        }
    }
}

/// The parts of packages themselves changed, as changes to what is packed only break its checksum.
#[test]
fn parts_with_changed_bytes_are_answered() {
    let mut seed = 7_u64;
    let mut next = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed >> 33
    };
    for (name, format) in EACH {
        let bytes = file(name);
        let Ok(mut zip) = zip::ZipArchive::new(Cursor::new(&bytes)) else { continue };
        let mut parts = Vec::new();
        for n in 0..zip.len() {
            let mut part = zip.by_index(n).unwrap();
            let mut content = Vec::new();
            std::io::copy(&mut part, &mut content).unwrap();
            parts.push((part.name().to_owned(), content));
        }
        for _ in 0..30 {
            let mut changed = parts.clone();
            for (_, content) in changed.iter_mut().filter(|(_, content)| !content.is_empty()) {
                for _ in 0..next() % 3 {
                    let at = usize::try_from(next()).unwrap() % content.len();
                    content[at] = b"<>&;\"'/ 09a\xff"[usize::try_from(next() % 12).unwrap()];
                }
            }
            let parts: Vec<(&str, &[u8])> = changed.iter().map(|(n, c)| (n.as_str(), c.as_slice())).collect();
            let _ = answer(name, &package(&parts), format);
        }
    }
}

#[test]
fn encrypted_files_are_named_as_that() {
    let encrypted = |what: &str, bytes: &[u8], format: Format| {
        assert_eq!(answer(what, bytes, format), Err(ConvertError::Encrypted), "{what}");
    };
    for (name, format) in [("encrypted.docx", Format::Docx), ("encrypted.xlsx", Format::Xlsx)] {
        let bytes = file(name);
        assert_eq!(detect(&bytes, Some(name), None), Some(format));
        encrypted(name, &bytes, format);
    }
    let manifest = b"<manifest:manifest><manifest:file-entry><manifest:encryption-data/></manifest:file-entry></manifest:manifest>";
    for format in [Format::Odt, Format::Ods, Format::Odp] {
        encrypted("odf", &package(&[("META-INF/manifest.xml", manifest), ("content.xml", b"\x01\x02")]), format);
    }
    let find = |bytes: &[u8], what: &[u8]| bytes.windows(what.len()).position(|window| window == what).unwrap();
    let mut doc = file("whole.doc");
    // The information block begins a sector.
    let at = (0..doc.len()).step_by(512).find(|at| doc[*at..].starts_with(b"\xec\xa5")).unwrap();
    doc[at + 11] |= 1;
    encrypted("doc", &doc, Format::Doc);
    let mut xls = file("old.xls");
    let at = find(&xls, b"\x42\x00\x02\x00");
    xls[at] = 0x2f;
    encrypted("xls", &xls, Format::Xls);
    let mut ppt = file("talk.ppt");
    let at = find(&ppt, b"\x5f\xc0\x91\xe3");
    ppt[at..at + 4].copy_from_slice(&0xf3d1_c4df_u32.to_le_bytes());
    encrypted("ppt", &ppt, Format::Ppt);
    let opf = b"<package><manifest><item id='a' href='a.xhtml' media-type='application/xhtml+xml'/></manifest>\
        <spine><itemref idref='a'/></spine></package>";
    let book = package(&[
        ("META-INF/container.xml", b"<container><rootfiles><rootfile full-path='a.opf'/></rootfiles></container>"),
        (
            "META-INF/encryption.xml",
            b"<encryption><EncryptedData><CipherReference URI='a.xhtml'/></EncryptedData></encryption>",
        ),
        ("a.opf", opf),
        ("a.xhtml", b"\x01"),
    ]);
    encrypted("epub", &book, Format::Epub);
    // The flag of a part with a password, in both places where it stands.
    let mut zip = document("<w:p/>");
    for signature in [b"PK\x03\x04", b"PK\x01\x02"] {
        let at = find(&zip, signature);
        zip[at + if signature[2] == 3 { 6 } else { 8 }] |= 1;
    }
    encrypted("zip", &zip, Format::Docx);
}

#[test]
fn bombs_are_too_large_or_too_deep() {
    let too_large = |what: &str, outcome: Result<Converted, ConvertError>| {
        assert!(matches!(outcome, Err(ConvertError::TooLarge { .. })), "{what}: {:?}", outcome.map(|c| c.html.len()));
    };
    let spaces = vec![b' '; 250 << 20];
    let bomb = package(&[("word/document.xml", &spaces)]);
    drop(spaces);
    too_large("a part of spaces", answer("a part of spaces", &bomb, Format::Docx));
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for n in 0..20_000 {
        zip.start_file(format!("word/{n}"), SimpleFileOptions::default()).unwrap();
    }
    let many = zip.finish().unwrap().into_inner();
    too_large("many parts", answer("many parts", &many, Format::Docx));
    let elements = document(&"<w:p/>".repeat(5_000_000));
    too_large("many elements", answer("many elements", &elements, Format::Docx));
    let deep = |start: &str, end: &str, times: usize| start.repeat(times) + &end.repeat(times);
    let deep_files = [
        ("tables", Format::Docx, document(&deep("<w:tbl><w:tr><w:tc>", "</w:tc></w:tr></w:tbl>", 50_000))),
        (
            "lists",
            Format::Odt,
            odf("text", &deep("<text:list><text:list-item>", "</text:list-item></text:list>", 50_000)),
        ),
        ("cells", Format::Ods, odf("spreadsheet", &deep("<table:table>", "</table:table>", 50_000))),
        ("groups", Format::Rtf, format!("{{\\rtf1 {}}}", deep("{", "}", 100_000)).into_bytes()),
    ];
    for (what, format, bytes) in deep_files {
        assert_eq!(answer(what, &bytes, format).map(|c| c.html.len()), Err(ConvertError::TooDeep), "{what}");
    }
    // As deep as is read.
    let tables = document(&deep("<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p>", "</w:tc></w:tr></w:tbl>", 80));
    assert!(answer("tables in tables", &tables, Format::Docx).unwrap().html.contains('a'));
}

#[test]
fn what_grows_out_of_little_is_bounded() {
    let small = |what: &str, bytes: &[u8], format: Format| {
        // Packed as tightly as they are, the limit of the ratio would answer for all others.
        let limits = Limits { ratio: u64::from(u32::MAX), ..Limits::default() };
        match answer_within(what, bytes, format, &limits) {
            Ok(converted) => assert!(converted.html.len() <= Limits::default().output + 1024, "{what}"),
            Err(ConvertError::TooLarge { .. }) => {}
            Err(error) => panic!("{what}: {error}"),
        }
    };
    let mut entities = String::from("<!DOCTYPE d [<!ENTITY a0 'ha'>");
    for n in 1..30 {
        entities.push_str(&format!("<!ENTITY a{n} '&a{};&a{};'>", n - 1, n - 1));
    }
    let laughs =
        format!("{entities}]><w:document><w:body><w:p><w:r><w:t>start&a29;end</w:t></w:r></w:p></w:body></w:document>");
    let laughs = package(&[("word/document.xml", laughs.as_bytes())]);
    assert!(answer("entities", &laughs, Format::Docx).unwrap().html.contains("startend"));
    let corners = "<row r='1'><c r='A1'><v>1</v></c></row><row r='1048576'><c r='XFD1048576'><v>2</v></c></row>";
    assert!(answer("corners", &workbook(corners, ""), Format::Xlsx).unwrap().html.len() < 1000);
    let text = format!("<si><t>{}</t></si>", "x".repeat(1 << 20));
    let shared = "<row><c t='s'><v>0</v></c></row>".repeat(200_000);
    small("one text in many cells", &workbook(&shared, &text), Format::Xlsx);
    small("many rows", &workbook(&"<row><c><v>1</v></c></row>".repeat(600_000), ""), Format::Xlsx);
    small("many columns", &workbook(&format!("<row>{}</row>", "<c><v>1</v></c>".repeat(1_000_000)), ""), Format::Xlsx);
    let diagonal: String =
        (0..16_000).map(|n| format!("<row>{}<c><v>1</v></c></row>", "<c/>".repeat(n % 200))).collect();
    small("a diagonal", &workbook(&diagonal, ""), Format::Xlsx);
    let repeated = "<table:table table:name='a'><table:table-row table:number-rows-repeated='4000000000'>\
        <table:table-cell table:number-columns-repeated='4000000000' office:value-type='string'><text:p>x</text:p>\
        </table:table-cell></table:table-row></table:table>";
    small("a repeated cell", &odf("spreadsheet", &repeated.repeat(40)), Format::Ods);
    let attributes: String = (0..300_000).map(|n| format!(" a{n}='1'")).collect();
    small("many attributes", &document(&format!("<w:p{attributes}><w:pPr{attributes}/></w:p>")), Format::Docx);
    small("many paragraphs", &document(&"<w:p><w:r><w:t>a</w:t></w:r></w:p>".repeat(300_000)), Format::Docx);
    let styles = "<w:styles><w:style w:styleId='a'><w:basedOn w:val='b'/></w:style>\
        <w:style w:styleId='b'><w:basedOn w:val='a'/></w:style></w:styles>";
    let cycle = package(&[
        ("word/document.xml", b"<d><body><p><pPr><pStyle w:val='a'/></pPr><r><t>x</t></r></p></body></d>"),
        ("word/_rels/document.xml.rels", b"<R><Relationship Id='1' Type='a/styles' Target='styles.xml'/></R>"),
        ("word/styles.xml", styles.as_bytes()),
    ]);
    small("styles in a circle", &cycle, Format::Docx);
    small("a line of commas", ",".repeat(8 << 20).as_bytes(), Format::Csv);
    small("many lines", "a,b\n".repeat(2 << 20).as_bytes(), Format::Csv);
    small("an open quote", format!("a,\"{}", "b\n".repeat(4 << 20)).as_bytes(), Format::Csv);
    small("groups", format!("{{\\rtf1 {}}}", "{\\b a}".repeat(500_000)).as_bytes(), Format::Rtf);
    small("notes", format!("{{\\rtf1 {}}}", "{\\footnote a}".repeat(100_000)).as_bytes(), Format::Rtf);
    small("cells", format!("{{\\rtf1 {}}}", "\\intbl a\\cell ".repeat(300_000)).as_bytes(), Format::Rtf);
    // A chain of sectors that leads back to itself.
    for (name, format) in [("whole.doc", Format::Doc), ("values.xls", Format::Xls), ("talk.ppt", Format::Ppt)] {
        let mut bytes = file(name);
        let table = usize::try_from(u32::from_le_bytes(bytes[76..80].try_into().unwrap())).unwrap();
        let at = (table + 1) * 512;
        for n in 0..128 {
            bytes[at + n * 4..at + n * 4 + 4].copy_from_slice(&0_u32.to_le_bytes());
        }
        let _ = answer(name, &bytes, format);
    }
}

#[test]
fn files_under_a_wrong_name_are_what_their_bytes_are() {
    for (name, format) in EACH {
        let bytes = file(name);
        for (wrong, content_type) in [("a.pdf", "application/pdf"), ("a.csv", "text/csv"), ("a.docx", "text/html")] {
            assert_eq!(detect(&bytes, Some(wrong), Some(content_type)), Some(format), "{name} as {wrong}");
        }
        for (_, other) in EACH {
            if other != format {
                // Whatever it is taken for, it is answered.
                let _ = answer(name, &bytes, other);
            }
        }
    }
}
