//! `POST /v2/parse` (wire 21): files that callers send, and the same files at addresses.

use std::path::PathBuf;

use serde_json::{Value, json};
use weir_tests::{
    Answer, Caller, ChildUse, ChildWatch, Database, FixtureSite, HostileFile, ServiceOptions, TestService, Told,
    both_databases, checkout, files_below, hostile_files, processes_mentioning, wait_until,
};

const BOUNDARY: &str = "part-of-a-test";
const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
/// What the reader of one file may use. Without optimization, beside other tests, it takes many times as long, and not
/// more memory.
const READER: ChildUse =
    ChildUse { memory: 600 << 20, cpu: std::time::Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 1 }) };

/// A part of a form.
fn part(name: &str, file_name: Option<&str>, content_type: &str, bytes: &[u8]) -> Vec<u8> {
    let file = file_name.map_or_else(String::new, |file| format!("; filename=\"{file}\""));
    let head = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\nContent-Type: {content_type}\r\n\r\n"
    );
    [head.as_bytes(), bytes, b"\r\n"].concat()
}

async fn send(caller: &Caller, parts: &[Vec<u8>]) -> Answer {
    let body = [parts.concat(), format!("--{BOUNDARY}--\r\n").into_bytes()].concat();
    let request = caller.request(reqwest::Method::POST, "/v2/parse");
    let request = request.header("content-type", format!("multipart/form-data; boundary={BOUNDARY}")).body(body);
    caller.send(request).await
}

/// A file with options, sent as the command line does it: the file first.
pub async fn parse(caller: &Caller, name: &str, content_type: &str, bytes: &[u8], options: &Value) -> Answer {
    let options = part("options", None, "text/plain", options.to_string().as_bytes());
    send(caller, &[part("file", Some(name), content_type, bytes), options]).await
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(checkout().join("worker/office/tests/files").join(name)).unwrap()
}

pub fn options(database: Database) -> ServiceOptions {
    ServiceOptions::new(database).workers(1).env("WEIR_PAGE_BROWSERS", "0")
}

async fn credits(service: &TestService) -> i64 {
    let usage = service.get("/v2/team/credit-usage/historical").await.ok();
    let periods = usage["periods"].as_array().unwrap();
    periods.iter().map(|period| period["creditsUsed"].as_i64().or(period["totalCredits"].as_i64()).unwrap()).sum()
}

/// Files among the blobs that were sent, whole or in parts.
pub fn uploads(service: &TestService) -> usize {
    let is_one = |path: &&PathBuf| path.extension().is_some_and(|kind| kind == "file" || kind == "tmp");
    files_below(&service.folder().join("blobs")).iter().filter(is_one).count()
}

both_databases! {
    async fn a_file_becomes_a_document_whichever_part_comes_first(database) {
        let service = TestService::start_with(options(database)).await;
        let caller = service.caller();
        let file = part("file", Some("whole.docx"), DOCX, &fixture("whole.docx"));
        let wanted = json!({"formats": ["markdown", "html", "links"], "onlyMainContent": false, "storeInCache": true, "maxAge": 5,
            "origin": "a-test"});
        let first = part("options", None, "application/json", wanted.to_string().as_bytes());
        let answer = send(caller, &[first.clone(), file.clone()]).await.ok();
        let again = send(caller, &[file, first]).await.ok();
        let document = &answer["data"];
        assert_eq!((document["markdown"].clone(), document["html"].is_string()), (again["data"]["markdown"].clone(), true));
        assert!(document["markdown"].as_str().unwrap().contains("# "), "{document}");
        let metadata = &document["metadata"];
        assert_eq!((metadata["sourceURL"].as_str(), metadata["statusCode"].as_i64()), (Some("whole.docx"), Some(200)));
        assert_eq!((metadata["contentType"].as_str(), metadata["creditsUsed"].as_i64()), (Some(DOCX), Some(1)));
        assert_eq!(metadata["cacheState"], Value::Null);
        assert_eq!(credits(&service).await, 2);
        let id = metadata["scrapeId"].as_str().unwrap();
        assert_eq!(service.get(&format!("/v2/scrape/{id}")).await.ok()["data"]["markdown"], document["markdown"]);
        let activity = service.get("/v2/team/activity").await.ok();
        assert_eq!(activity["data"][0]["target"], "whole.docx");
        wait_until("the files to go", || async { (uploads(&service) == 0).then_some(()) }).await;
    }

    async fn nothing_stays_of_a_file_without_retention(database) {
        let service = TestService::start_with(options(database)).await;
        service.cli(&["team", "set", "tests", "--zero-data-retention", "on"]);
        let text = b"<!DOCTYPE html><title>T</title><body><p>quetzalcoatlus</p></body>";
        let answer = parse(service.caller(), "quetzal.html", "text/html", text, &json!({"zeroDataRetention": true})).await.ok();
        assert!(answer["data"]["markdown"].as_str().unwrap().contains("quetzalcoatlus"), "{answer}");
        let (tables, documents) = service.tables_with("quetzal").await;
        assert!(tables.is_empty() && documents == 0, "{tables:?}, {documents}");
        assert_eq!(uploads(&service), 0);
    }

    async fn a_worker_that_is_killed_loses_no_file(database) {
        let mut service = TestService::start_with(options(database)).await;
        let table: String = (0..60_000).map(|n| format!("{n},row {n},{}\n", n * 7)).collect();
        let (caller, options) = (service.caller().clone(), json!({"timeout": 60_000}));
        let asked = tokio::spawn(async move { parse(&caller, "table.csv", "text/csv", table.as_bytes(), &options).await });
        wait_until("the file is read", || async { (!processes_mentioning("__office").is_empty()).then_some(()) }).await;
        service.kill_worker(0);
        service.start_worker(0);
        let answer = asked.await.unwrap().ok();
        assert!(answer["data"]["markdown"].as_str().unwrap().contains("| 59999 | row 59999 |"));
        assert_eq!(credits(&service).await, 1);
    }
}

#[tokio::test]
async fn every_kind_is_read_from_a_form_and_from_an_address() {
    let site = FixtureSite::start().await;
    let service = TestService::start_with(options(Database::Sqlite)).await;
    for (name, content_type, text) in [
        ("lists.odt", "application/vnd.oasis.opendocument.text", "- "),
        ("tables.rtf", "text/rtf", "|"),
        ("headings.doc", "application/msword", "#"),
        ("sheets.xlsx", "application/octet-stream", "## "),
        ("values.xls", "application/vnd.ms-excel", "|"),
        ("talk.pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation", "The great talk"),
        ("talk.ppt", "application/vnd.ms-powerpoint", "#"),
        ("book.epub", "application/epub+zip", "One morning"),
        ("plain.csv", "text/csv", "| --- |"),
    ] {
        let file = fixture(name);
        let parsed = parse(service.caller(), name, content_type, &file, &json!({})).await.ok();
        let markdown = parsed["data"]["markdown"].as_str().unwrap();
        assert!(markdown.contains(text), "{name}: {markdown}");
        let url = site.serve_file(name, content_type, file).await;
        let scraped = service.post("/v2/scrape", &json!({"url": url, "maxAge": 0})).await.ok();
        assert_eq!(scraped["data"]["markdown"], parsed["data"]["markdown"], "{name}");
        assert_eq!(scraped["data"]["metadata"]["sourceURL"], url.as_str());
    }
    // Bytes decide over a wrong extension, and a PDF over everything.
    let docx = fixture("headings.docx");
    let right = parse(service.caller(), "headings.docx", DOCX, &docx, &json!({})).await.ok();
    let wrong = parse(service.caller(), "headings.xls", "application/vnd.ms-excel", &docx, &json!({})).await.ok();
    assert_eq!(wrong["data"]["markdown"], right["data"]["markdown"]);
    assert_eq!(wrong["data"]["metadata"]["contentType"], DOCX);
    // Title, author and dates of the file are the document's.
    let book =
        parse(service.caller(), "book.epub", "application/epub+zip", &fixture("book.epub"), &json!({})).await.ok();
    // A name outside of ASCII, as .NET writes it and as RFC 6266 alone has it.
    for names in
        ["filename=\"=?utf-8?B?5LitLmNzdg==?=\"; filename*=utf-8''%E4%B8%AD.csv", "filename*=UTF-8''%E4%B8%AD.csv"]
    {
        let head = format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=file; {names}\r\n\r\n");
        let named = send(service.caller(), &[[head.as_bytes(), b"a,b\n1,2\n\r\n"].concat()]).await.ok();
        assert_eq!(named["data"]["metadata"]["sourceURL"], "中.csv", "{named}");
    }
    // What ends by its slash in XML swallows nothing.
    let xhtml = b"<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><body><script src='x'/><p>Read on.</p></body></html>";
    for name in ["a.xhtml", "a.html"] {
        let page = parse(service.caller(), name, "application/octet-stream", xhtml, &json!({})).await.ok();
        assert!(page["data"]["markdown"].as_str().unwrap().contains("Read on."), "{page}");
    }
    let metadata = &book["data"]["metadata"];
    assert_eq!((metadata["title"].as_str(), metadata["author"].as_str()), (Some("A Small Book"), Some("Mary Shelley")));
}

#[tokio::test]
async fn what_cannot_be_read_is_told_by_name() {
    let service = TestService::start_with(options(Database::Sqlite)).await;
    let caller = service.caller();
    let docx = fixture("whole.docx");
    let refused = parse(caller, "a.exe", "application/x-msdownload", b"MZ", &json!({})).await;
    assert_eq!((refused.status, refused.code()), (400, "UNSUPPORTED_FILE_TYPE"));
    assert!(
        refused.error().starts_with("Unsupported upload type. Supported file extensions: .html"),
        "{}",
        refused.text
    );
    let refused = parse(caller, "a.avif", "image/avif", b"\0\0\0\x1cftypavif", &json!({})).await;
    assert_eq!((refused.status, refused.code()), (400, "UNSUPPORTED_FILE_TYPE"), "{}", refused.text);
    // A form that ends without its last boundary, with a line that may go on and without.
    for end in ["\r\n", "\r", "", "\r\n--part"] {
        let head = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.csv\"\r\n\r\na,b{end}"
        );
        let request = caller.request(reqwest::Method::POST, "/v2/parse").body(head);
        let request = request.header("content-type", format!("multipart/form-data; boundary={BOUNDARY}"));
        let refused = caller.send(request.timeout(std::time::Duration::from_secs(60))).await;
        assert_eq!((refused.status, refused.code()), (400, "BAD_REQUEST"), "{end:?}: {}", refused.text);
        assert!(refused.error().contains("cannot be read"), "{end:?}: {}", refused.text);
    }
    // What stands in no part is kept until its end is found, which may never come.
    let begun = format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; x=\"");
    for begin in [String::new(), begun] {
        let request =
            caller.request(reqwest::Method::POST, "/v2/parse").body(format!("{begin}{}", "x".repeat(3 << 20)));
        let request = request.header("content-type", format!("multipart/form-data; boundary={BOUNDARY}"));
        let refused = caller.send(request).await;
        assert_eq!((refused.status, refused.code()), (400, "BAD_REQUEST"), "{begin}: {}", refused.text);
        assert!(refused.error().contains("beside what its parts hold"), "{begin}: {}", refused.text);
    }
    let refused = parse(caller, "a.docx", DOCX, &docx, &json!({"waitFor": 5})).await;
    assert_eq!((refused.status, refused.code()), (400, "PARSE_UNSUPPORTED_OPTIONS"));
    assert_eq!(refused.error(), "Parse uploads do not support waitFor.");
    let refused = parse(caller, "a.docx", DOCX, &docx, &json!({"url": "http://a.test/"})).await;
    assert_eq!((refused.status, refused.code()), (400, "BAD_REQUEST"));

    let file = part("file", Some("a.docx"), DOCX, &docx);
    for (parts, text) in [
        (vec![part("options", None, "text/plain", b"{}")], "Missing file upload."),
        (vec![file.clone(), part("options", None, "text/plain", b"{")], "Invalid JSON in the 'options' field."),
        (
            vec![file.clone(), part("options", None, "text/plain", b"[1]")],
            "The 'options' field must parse to a JSON object.",
        ),
        (vec![file.clone(), file.clone()], "The form has a part"),
        (vec![part("file", None, DOCX, &docx)], "The part 'file' has no filename."),
        (vec![part("file", Some("a.docx"), DOCX, b"")], "The uploaded file is empty."),
        (
            vec![part("file", Some("a.docx"), DOCX, &vec![b'x'; (50 << 20) + 1])],
            "Uploaded file exceeds maximum size of 50MB.",
        ),
    ] {
        let refused = send(caller, &parts).await;
        assert_eq!((refused.status, refused.code()), (400, "BAD_REQUEST"), "{}", refused.text);
        assert!(refused.error().starts_with(text), "{}", refused.text);
    }
    let plain = caller.request(reqwest::Method::POST, "/v2/parse").header("content-type", "text/plain").body("x");
    let refused = caller.send(plain).await;
    assert!(refused.status == 400 && refused.error().starts_with("Missing file upload."), "{}", refused.text);
    assert_eq!(uploads(&service), 0, "nothing of what is refused is kept");

    for (name, bytes, text) in [
        ("encrypted.docx", fixture("encrypted.docx"), "the file is encrypted"),
        ("cut.docx", docx[..docx.len() / 2].to_vec(), "the file is damaged"),
        ("fake.pdf", b"MZ\0\0\0".to_vec(), ""),
    ] {
        let refused = parse(caller, name, "application/octet-stream", &bytes, &json!({})).await;
        assert_eq!(
            (refused.status, refused.code()),
            (500, "SCRAPE_UNSUPPORTED_FILE_ERROR"),
            "{name}: {}",
            refused.text
        );
        assert!(refused.error().contains(text), "{}", refused.text);
    }
    assert_eq!(credits(&service).await, 0, "nothing of it is paid for");
    assert!(parse(caller, "a.docx", DOCX, &docx, &json!({})).await.ok()["data"]["markdown"].is_string());
    wait_until("the files to go", || async { (uploads(&service) == 0).then_some(()) }).await;

    let formats = service.get("/v2/parse/formats").await.ok();
    let docx = formats["data"]["formats"].as_array().unwrap().iter().find(|row| row["format"] == "docx").unwrap();
    assert_eq!(
        (docx["kind"].as_str(), docx["extensions"][0].as_str(), docx["available"].as_bool()),
        (Some("word"), Some(".docx"), Some(true))
    );
    assert_eq!(service.anonymous().get("/v2/parse/formats").await.status, 401);
}

/// What is wrong with the answer to a hostile file.
fn fault_of(file: &HostileFile, answer: &Answer) -> Option<String> {
    let is_refused = answer.status == 500 && answer.code() == "SCRAPE_UNSUPPORTED_FILE_ERROR";
    let markdown = answer.body["data"]["markdown"].as_str();
    let is_right = match file.told {
        Told::Refused(words) => is_refused && answer.error().contains(words),
        Told::Read(words) => markdown.is_some_and(|text| text.contains(words)),
        Told::Answered => is_refused || answer.status == 200 && markdown.is_some(),
    };
    let head: String = answer.text.chars().take(300).collect();
    (!is_right).then(|| format!("{}: {:?} was expected, and {} came: {head}", file.name, file.told, answer.status))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_files_are_told_by_name_within_bounds_and_the_next_file_is_read() {
    let service = TestService::start_with(options(Database::Sqlite)).await;
    let (caller, whole) = (service.caller(), fixture("whole.docx"));
    let read_whole = || async {
        parse(caller, "a.docx", DOCX, &whole, &json!({"maxAge": 0})).await.ok()["data"]["markdown"].clone()
    };
    let good = read_whole().await;
    let files = hostile_files();
    assert!(files.len() >= 40, "{}", files.len());
    let mut faults = Vec::new();
    for file in &files {
        let bytes = file.bytes();
        let watch = ChildWatch::start(service.worker_process(0), "__office");
        let options = json!({"timeout": 120_000});
        let answer = parse(caller, file.name, "application/octet-stream", &bytes, &options).await;
        let used = watch.stop();
        println!("{:>5} MiB {:>6.2?} {} {}", used.memory >> 20, used.cpu, file.name, answer.error());
        faults.extend(fault_of(file, &answer));
        if used.memory > READER.memory || used.cpu > READER.cpu {
            faults.push(format!("{}: its reader used {used:?}", file.name));
        }
        assert_eq!(read_whole().await, good, "after {}", file.name);
    }
    assert!(faults.is_empty(), "{faults:#?}");
}
