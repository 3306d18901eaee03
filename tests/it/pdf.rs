//! PDFs (wire 3.5): text, pages, prices, pictures; and files that are made to break their reader.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use base64::Engine;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use weir_shared::clock::Stopwatch;
use weir_tests::{Database, FixtureSite, TestService, binary_folder, both_databases, checkout, markdown_of};

async fn scrape(service: &TestService, body: Value) -> Value {
    service.post("/v2/scrape", &body).await.ok()["data"].clone()
}

fn with_parser(url: &str, parser: Value) -> Value {
    let mut parser = parser;
    parser["type"] = "pdf".into();
    json!({ "url": url, "parsers": [parser], "timeout": 60_000 })
}

both_databases! {
    async fn a_pdf_is_read_page_by_page_and_paid_for_by_them(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let url = site.url("/files/report.pdf");
        let formats = json!(["markdown", "html", "rawHtml", "links", "images"]);
        let document = scrape(&service, json!({ "url": url, "formats": formats })).await;
        let markdown = markdown_of(&document);
        assert!((1..=3).all(|page| markdown.contains(&format!("Page {page} MAIN"))), "{markdown}");
        assert!(document["html"].as_str().unwrap().contains("<p>Page 2 MAIN"), "{}", document["html"]);
        assert_eq!((&document["links"], &document["images"]), (&json!([]), &json!([])));
        assert!(document.get("pages").is_none(), "only what was asked for");
        let metadata = &document["metadata"];
        for (key, value) in [
            ("numPages", json!(3)),
            ("totalPages", json!(3)),
            ("creditsUsed", json!(3)),
            ("contentType", json!("application/pdf")),
            ("title", json!("Test report")),
        ] {
            assert_eq!(metadata[key], value, "metadata.{key} in {metadata}");
        }

        let parser = json!({ "maxPages": 2, "pages": true, "pageMarkers": true, "mode": "fast" });
        let document = scrape(&service, with_parser(&url, parser)).await;
        let metadata = &document["metadata"];
        assert_eq!((&metadata["numPages"], &metadata["totalPages"], &metadata["creditsUsed"]), (&json!(2), &json!(3), &json!(2)));
        assert!(markdown_of(&document).contains("\n\n---\n\n<!-- page 2 -->\n\nPage 2 MAIN"), "{document}");
        let pages = document["pages"].as_array().unwrap();
        assert_eq!((pages.len(), &pages[1]["pageNumber"]), (2, &json!(2)));
        assert!(pages[1]["markdown"].as_str().unwrap().starts_with("Page 2 MAIN"));

        let document = scrape(&service, json!({ "url": url, "parsers": [] })).await;
        let file = base64::engine::general_purpose::STANDARD.decode(markdown_of(&document)).unwrap();
        assert!(markdown_of(&document).starts_with("JVBER") && file.ends_with(b"%%EOF\n"));
        assert_eq!(document["metadata"]["creditsUsed"], 1);

        let used = service.get("/v2/team/credit-usage/historical").await.ok();
        assert_eq!(used["periods"][0]["creditsUsed"], 6, "{used}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_pages_are_bounded_by_the_time_and_the_pages_asked_for() {
    let site = FixtureSite::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let url = site.url("/files/pages.pdf?n=1000");
    // The site makes the file once.
    let document = scrape(&service, with_parser(&url, json!({ "maxPages": 10 }))).await;
    let metadata = &document["metadata"];
    assert_eq!((&metadata["numPages"], &metadata["totalPages"]), (&json!(10), &json!(1000)));

    let answer = service.post("/v2/scrape", &json!({ "url": url, "timeout": 1_000 })).await;
    assert_eq!((answer.status, answer.code()), (500, "SCRAPE_PDF_INSUFFICIENT_TIME_ERROR"), "{}", answer.text);

    let shot = json!({ "url": site.url("/files/report.pdf"), "formats": ["markdown", "screenshot"] });
    let document = scrape(&service, shot).await;
    assert!(document["warning"].as_str().unwrap().contains("no screenshot") && document.get("screenshot").is_none());
    let answer = service.post("/v2/scrape", &with_parser(&url, json!({ "mode": "ocr", "blocks": true }))).await;
    assert_eq!((answer.status, answer.code()), (400, "SCRAPE_OPTION_NOT_AVAILABLE"));
}

/// A PDF whose pages are texts, or pictures in JPEG.
fn pdf_of(pages: &[Result<&str, &[u8]>]) -> Vec<u8> {
    let mut objects: Vec<Vec<u8>> = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        Vec::new(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_vec(),
    ];
    let stream = |head: &str, body: &[u8]| {
        [format!("<< {head} /Length {} >>\nstream\n", body.len()).as_bytes(), body, b"\nendstream"].concat()
    };
    let mut kids = String::new();
    for page in pages {
        let (resources, content) = match page {
            Ok(text) => ("/Font << /F1 3 0 R >>".to_owned(), format!("BT /F1 12 Tf 60 500 Td ({text}) Tj ET")),
            Err(picture) => {
                let head = "/Type /XObject /Subtype /Image /Width 1280 /Height 800 /ColorSpace /DeviceRGB \
                            /BitsPerComponent 8 /Filter /DCTDecode";
                objects.push(stream(head, picture));
                (format!("/XObject << /Im {} 0 R >>", objects.len()), "q 842 0 0 526 0 34 cm /Im Do Q".to_owned())
            }
        };
        objects.push(stream("", content.as_bytes()));
        let page = format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 842 595] /Contents {} 0 R /Resources << {resources} >> >>",
            objects.len()
        );
        objects.push(page.into_bytes());
        kids += &format!("{} 0 R ", objects.len());
    }
    objects[1] = format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", pages.len()).into_bytes();
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for (n, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.extend([format!("{} 0 obj\n", n + 1).as_bytes(), object, b"\nendobj\n"].concat());
    }
    let start = file.len();
    file.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).bytes());
    places.iter().for_each(|place| file.extend(format!("{place:010} 00000 n \n").bytes()));
    file.extend(format!("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n", objects.len() + 1).bytes());
    file
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scans_are_recognised_where_that_is_installed_and_told_of_otherwise() {
    let site = FixtureSite::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let shot = json!({ "url": site.url("/article/7"), "formats": [{ "type": "screenshot", "quality": 95 }] });
    let document = scrape(&service, shot).await;
    let picture = document["screenshot"].as_str().unwrap().split_once(";base64,").unwrap().1.to_owned();
    let picture = base64::engine::general_purpose::STANDARD.decode(picture).unwrap();
    let title = document["metadata"]["title"].as_str().unwrap();
    let word = title.split_whitespace().max_by_key(|word| word.len()).unwrap();

    let scan = site.serve_file("scan.pdf", "application/pdf", pdf_of(&[Err(&picture)])).await;
    let both = pdf_of(&[Ok("A page of letters, not of dots"), Err(&picture)]);
    let mixed = site.serve_file("mixed.pdf", "application/pdf", both).await;
    let is_installed = ["pdftoppm", "tesseract"].iter().all(|name| PathBuf::from("/usr/bin").join(name).exists());
    assert!(is_installed || !weir_tests::require_all(), "pdftoppm and tesseract are missing: scripts/setup --tests");

    let image = site.serve_file("scan.jpg", "image/jpeg", picture.clone()).await;
    let asked = json!({ "url": image, "parsers": ["pdf", { "type": "image" }] });
    let answer = service.post("/v2/scrape", &asked).await;
    if is_installed {
        let document = answer.ok()["data"].clone();
        assert!(markdown_of(&document).contains(word), "{word} is not in {document}");
        assert_eq!(document["metadata"]["creditsUsed"], 1);
    } else {
        assert_eq!((answer.status, answer.code()), (500, "SCRAPE_UNSUPPORTED_FILE_ERROR"), "{}", answer.text);
    }
    let answer = service.post("/v2/scrape", &json!({ "url": image })).await;
    assert_eq!((answer.status, answer.code()), (500, "SCRAPE_UNSUPPORTED_FILE_ERROR"), "images are read on demand");

    let answer = service.post("/v2/scrape", &with_parser(&scan, json!({ "mode": "fast" }))).await;
    assert_eq!((answer.status, answer.code()), (500, "SCRAPE_PDF_OCR_REQUIRED"), "{}", answer.text);
    let document = scrape(&service, with_parser(&mixed, json!({ "mode": "fast" }))).await;
    assert!(markdown_of(&document).contains("A page of letters"), "{document}");
    assert!(document["warning"].as_str().unwrap().contains("page 2 is a picture"), "{document}");

    if is_installed {
        for (url, mode) in [(&scan, "auto"), (&mixed, "auto"), (&mixed, "ocr")] {
            let document = scrape(&service, with_parser(url, json!({ "mode": mode }))).await;
            let markdown = markdown_of(&document);
            assert!(markdown.contains(word), "{word} is not in {markdown}");
            assert_eq!(markdown.contains("A page of letters"), url == &mixed, "{mode}: {markdown}");
            assert!(document.get("warning").is_none(), "{document}");
        }
    } else {
        for mode in ["auto", "ocr"] {
            let answer = service.post("/v2/scrape", &with_parser(&scan, json!({ "mode": mode }))).await;
            assert_eq!((answer.status, answer.code()), (500, "SCRAPE_PDF_OCR_REQUIRED"), "{}", answer.text);
        }
    }
}

/// Has one file read as the worker does it.
fn read(file: &[u8]) -> (std::process::ExitStatus, String) {
    let mut command = Command::new(binary_folder().join("weir-worker"));
    command.args(["__pdf", r#"{"memory":1073741824,"cpu_seconds":20}"#, r#"{"max_pages":10000}"#]);
    command.env_clear().env("MIMALLOC_ARENA_RESERVE", "0");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the worker starts");
    let mut stdin = child.stdin.take().unwrap();
    let file = file.to_vec();
    let give = std::thread::spawn(move || stdin.write_all(&file));
    let output = child.wait_with_output().unwrap();
    let _ = give.join().unwrap();
    (output.status, String::from_utf8_lossy(&output.stdout).into_owned())
}

fn corpus() -> Vec<Vec<u8>> {
    let texts = ["(One \\\\(line\\\\) of it) Tj T* (and an-) Tj T* (other", "A page", "Another page of the same"];
    let pages: Vec<Result<&str, &[u8]>> = texts.iter().map(|text| Ok(*text)).collect();
    let mut files = vec![pdf_of(&pages), pdf_of(&[Err(b"\xff\xd8\xff no picture")])];
    let made = Command::new("python3")
        .arg("-c")
        .arg("import sys; sys.path.insert(0, sys.argv[1]); import testsite; sys.stdout.buffer.write(testsite.pdf())")
        .arg(checkout().join("tests/site"))
        .output()
        .unwrap();
    assert!(made.stdout.starts_with(b"%PDF"), "{}", String::from_utf8_lossy(&made.stderr));
    files.push(made.stdout);
    files
}

/// One way to damage a file.
fn damage(file: &mut Vec<u8>, random: &mut StdRng) {
    let (at, length) = (random.random_range(0..file.len()), random.random_range(1..1500));
    let end = (at + length).min(file.len());
    match random.random_range(0..6) {
        0 => file.truncate(at),
        1 => (0..random.random_range(1..60)).for_each(|_| {
            let place = random.random_range(0..file.len());
            file[place] = random.random();
        }),
        2 => drop(file.drain(at..end)),
        3 => {
            let piece = file[at..end].to_vec();
            let place = random.random_range(0..file.len());
            file.splice(place..place, piece);
        }
        // Numbers are lengths, places and counts.
        4 => {
            for byte in file.iter_mut().filter(|byte| byte.is_ascii_digit()) {
                if random.random_ratio(1, 40) {
                    *byte = b'0' + random.random_range(0..10);
                }
            }
        }
        _ => {
            for byte in file.iter_mut().filter(|byte| **byte == b'/') {
                if random.random_ratio(1, 10) {
                    *byte = b' ';
                }
            }
        }
    }
}

#[test]
fn a_damaged_pdf_neither_hangs_nor_takes_more_than_it_may() {
    let files = corpus();
    for file in &files {
        let (status, text) = read(file);
        assert!(status.success() && text.lines().last().unwrap().starts_with(r#"{"Ok""#), "{status} {text:.300}");
    }
    let mut random = StdRng::seed_from_u64(7);
    let (mut read_well, mut refused) = (0, 0);
    for n in 0..300 {
        let mut file = files[n % files.len()].clone();
        (0..random.random_range(1..3)).for_each(|_| damage(&mut file, &mut random));
        let began = Stopwatch::start();
        let (status, text) = read(&file);
        assert!(began.elapsed() < Duration::from_secs(60), "file {n} took {:?}", began.elapsed());
        // A panic would be exit code 101; running into the bounds is a signal.
        assert_ne!(status.code(), Some(101), "file {n} made its reader panic");
        match text.lines().last().unwrap_or_default() {
            line if line.starts_with(r#"{"Ok""#) => read_well += 1,
            _ => refused += 1,
        }
    }
    assert!(read_well > 50 && refused > 20, "{read_well} read, {refused} refused: the files are not damaged as meant");
}

#[test]
fn a_reader_can_open_nothing() {
    // Without a request it ends; with one, its filter lets it read what it was given and no more.
    let status = Command::new(binary_folder().join("weir-worker")).arg("__pdf").stdin(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(1));
    let (status, text) = read(b"%PDF-1.4\nnothing");
    assert!(status.success() && text.contains("Damaged"), "{status} {text}");
}
