//! What large honest files take, in the release build: a sheet of 50,000 rows, a document of 200 pages.

#![expect(clippy::unwrap_used, reason = "what a test is sure of")]

use std::fmt::Write as _;
use std::io::{Cursor, Write as _};
use std::time::{Duration, Instant};

use weir_office::{Format, Limits, convert};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

fn package(parts: &[(&str, String)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn sheet() -> Vec<u8> {
    let mut rows = String::from("<worksheet><sheetData>");
    for row in 1..=50_000 {
        write!(rows, "<row r=\"{row}\">").unwrap();
        for column in 'A'..='D' {
            write!(rows, "<c r=\"{column}{row}\" t=\"s\"><v>{}</v></c>", (row * 7 + column as usize) % 20_000).unwrap();
        }
        for column in 'E'..='H' {
            write!(rows, "<c r=\"{column}{row}\" s=\"1\"><v>{}.{row}</v></c>", row * 13).unwrap();
        }
        write!(
            rows,
            "<c r=\"I{row}\" s=\"2\"><v>{}</v></c><c r=\"J{row}\"><v>{row}</v></c></row>",
            40_000 + row % 9_000
        )
        .unwrap();
    }
    rows.push_str("</sheetData></worksheet>");
    let strings: String = (0..20_000).map(|n| format!("<si><t>the text of number {n}</t></si>")).collect();
    let relations = "<R><Relationship Id='1' Type='a/worksheet' Target='s.xml'/>\
        <Relationship Id='2' Type='a/sharedStrings' Target='t.xml'/><Relationship Id='3' Type='a/styles' Target='f.xml'/></R>";
    let styles = "<styleSheet><cellXfs><xf numFmtId='0'/><xf numFmtId='4'/><xf numFmtId='14'/></cellXfs></styleSheet>";
    package(&[
        ("xl/workbook.xml", "<workbook><sheets><sheet name='Data' r:id='1'/></sheets></workbook>".to_owned()),
        ("xl/_rels/workbook.xml.rels", relations.to_owned()),
        ("xl/s.xml", rows),
        ("xl/t.xml", format!("<sst>{strings}</sst>")),
        ("xl/f.xml", styles.to_owned()),
    ])
}

fn document() -> Vec<u8> {
    let mut body = String::from("<w:document xmlns:w='w'><w:body>");
    for n in 0..200 * 12 {
        let words: String = (0..9)
            .map(|m| {
                format!(
                    "<w:r><w:rPr><w:rFonts w:ascii='Calibri'/><w:sz w:val='22'/></w:rPr><w:t xml:space='preserve'>\
                word {m} of the paragraph {n}, and </w:t></w:r>"
                )
            })
            .collect();
        write!(
            body,
            "<w:p w:rsidR='00A1'><w:pPr><w:spacing w:after='0'/></w:pPr>{words}<w:r><w:rPr><w:b/></w:rPr>\
            <w:t>its end.</w:t></w:r></w:p>"
        )
        .unwrap();
    }
    body.push_str("</w:body></w:document>");
    package(&[("word/document.xml", body)])
}

#[expect(clippy::disallowed_methods, reason = "measures what a conversion takes")]
fn take(what: &str, bytes: &[u8], format: Format) -> Duration {
    let start = Instant::now();
    let converted = convert(bytes, format, &Limits::default()).unwrap();
    let took = start.elapsed();
    assert!(converted.warnings.is_empty());
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    eprintln!("{what}: {took:?} for {} bytes, {} of HTML, {peak}", bytes.len(), converted.html.len());
    took
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures the release build")]
fn large_files_are_converted_in_time() {
    assert!(take("50,000 rows of 10 cells", &sheet(), Format::Xlsx) < Duration::from_millis(1500));
    assert!(take("200 pages", &document(), Format::Docx) < Duration::from_millis(300));
}
