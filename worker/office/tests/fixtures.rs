//! Files of real writers (`files/make.py`): what their markdown holds.

#![expect(clippy::unwrap_used, reason = "what a test is sure of")]

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use weir_extract::{ExtractOptions, PageInput, extract};
use weir_office::{Converted, Format, Limits, convert, detect};

/// Of all that is expected, how much must be found.
const NEEDED: f64 = 0.99;

fn markdown(converted: &Converted) -> String {
    if let Some(markdown) = &converted.markdown {
        return markdown.clone();
    }
    let url = url::Url::parse("https://files.example/a").unwrap();
    let options = ExtractOptions { markdown: true, ..ExtractOptions::default() };
    extract(&PageInput { url: &url, html: &converted.html, rendered: false }, &options).markdown.unwrap()
}

fn texts<'v>(expected: &'v Value, name: &str) -> impl Iterator<Item = &'v str> {
    expected[name].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Level and kind of a line that is an item of a list, and its text. Levels are told by indents of two or three.
fn item(line: &str) -> Option<(usize, bool, &str)> {
    let indent = line.len() - line.trim_start().len();
    let text = line.trim_start();
    let (marker, text) = text.split_once(' ')?;
    let ordered = marker.strip_suffix('.').is_some_and(|number| number.parse::<u32>().is_ok());
    (ordered || marker == "-").then_some((indent.div_ceil(3), ordered, text))
}

/// What is missing, and how many things were looked for.
fn missing(expected: &Value, converted: &Converted) -> (Vec<String>, usize) {
    let markdown = markdown(converted);
    let lines: Vec<&str> = markdown.lines().collect();
    let mut checks: Vec<(String, bool)> = Vec::new();
    for heading in texts(expected, "headings").chain(texts(expected, "rows")) {
        checks.push((heading.to_owned(), lines.contains(&heading)));
    }
    for text in texts(expected, "texts") {
        checks.push((text.to_owned(), markdown.contains(text)));
    }
    for text in texts(expected, "absent") {
        checks.push((format!("not {text}"), !markdown.contains(text)));
    }
    for wanted in expected["items"].as_array().into_iter().flatten() {
        let level = usize::try_from(wanted[0].as_u64().unwrap()).unwrap();
        let wanted = (level, wanted[1].as_bool().unwrap(), wanted[2].as_str().unwrap());
        checks.push((format!("item {wanted:?}"), lines.iter().any(|line| item(line) == Some(wanted))));
    }
    let mut from = 0;
    for text in texts(expected, "order") {
        let found = markdown[from..].find(text);
        checks.push((format!("{text} after what comes before"), found.is_some()));
        from += found.map_or(0, |at| at + text.len());
    }
    for text in texts(expected, "warnings") {
        checks.push((format!("warning {text}"), converted.warnings.iter().any(|warning| warning.contains(text))));
    }
    if let Some(title) = expected["title"].as_str() {
        checks.push((format!("title {title}"), converted.title.as_deref() == Some(title)));
    }
    if let Some(author) = expected["author"].as_str() {
        checks.push((format!("author {author}"), converted.author.as_deref() == Some(author)));
    }
    if let Some(pages) = expected["pages"].as_u64() {
        checks.push((format!("{pages} pages"), converted.pages.map(u64::from) == Some(pages)));
    }
    let count = checks.len();
    (checks.into_iter().filter(|(_, found)| !found).map(|(what, _)| what).collect(), count)
}

#[test]
fn files_of_real_writers_hold_what_was_put_in() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files");
    let expected = std::fs::read_to_string(folder.join("expected.json")).unwrap();
    let expected: BTreeMap<String, Value> = serde_json::from_str(&expected).unwrap();
    assert!(expected.len() >= 60);
    let (mut lost, mut all) = (Vec::new(), 0);
    for (name, expected) in &expected {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        // By their bytes, or, of tables of text, by their name.
        let format = detect(&bytes, Some(name), None);
        assert_eq!(format, Format::of_name(name), "{name}");
        let blind = detect(&bytes, Some("file.bin"), None);
        assert!(blind == format || format == Some(Format::Csv), "{name}");
        let converted = match convert(&bytes, format.unwrap(), &Limits::default()) {
            Ok(converted) => converted,
            Err(error) => panic!("{name}: {error}"),
        };
        if let Some(whole) = expected["whole"].as_str() {
            assert_eq!(markdown(&converted), whole, "{name}");
        }
        let (missing, count) = missing(expected, &converted);
        all += count;
        if !missing.is_empty() && std::env::args().any(|argument| argument == "--nocapture") {
            eprintln!("---- {name}: {missing:#?}\n{}", markdown(&converted));
        }
        lost.extend(missing.into_iter().map(|what| format!("{name}: {what}")));
    }
    let found = all - lost.len();
    assert!(found as f64 >= NEEDED * all as f64, "{found} of {all}: {lost:#?}");
}
