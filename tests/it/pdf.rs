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
use weir_tests::{
    Database, FixtureSite, ServiceOptions, TestService, binary_folder, both_databases, checkout, first_on, markdown_of,
};

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

    let short = json!({ "url": url, "timeout": 1_000 });
    let mut answer = service.post("/v2/scrape", &short).await;
    // On a machine that stands still for a moment its time may be over before the file is there.
    for _ in 0..20 {
        if answer.code() == "SCRAPE_TIMEOUT" {
            answer = service.post("/v2/scrape", &short).await;
        }
    }
    assert_eq!((answer.status, answer.code()), (500, "SCRAPE_PDF_INSUFFICIENT_TIME_ERROR"), "{}", answer.text);

    let shot = json!({ "url": site.url("/files/report.pdf"), "formats": ["markdown", "screenshot"] });
    let document = scrape(&service, shot).await;
    assert!(document["warning"].as_str().unwrap().contains("no screenshot") && document.get("screenshot").is_none());
}

/// Every span of a document's blocks holds, counted in characters. Returns the blocks with the spans that are null.
fn check_spans(document: &Value) -> Vec<Value> {
    let characters: Vec<char> = markdown_of(document).chars().collect();
    let mut nowhere = Vec::new();
    for (n, page) in (1..).zip(document["blocks"].as_array().unwrap()) {
        assert_eq!((&page["pageNumber"], &page["status"]), (&json!(n), &json!("ok")));
        for (i, item) in page["items"].as_array().unwrap().iter().enumerate() {
            assert_eq!((&item["id"], &item["readingOrder"]), (&json!(format!("p{n}.b{i}")), &json!(i)), "{item}");
            assert!(item["confidence"].is_object(), "{item}");
            if let Some(bbox) = item["bbox"].as_array() {
                let bbox: Vec<f64> = bbox.iter().map(|part| part.as_f64().unwrap()).collect();
                assert!(bbox.len() == 4 && bbox.iter().all(|part| (0.0..=1.0).contains(part)), "{item}");
                assert!(bbox[0] < bbox[2] && bbox[1] < bbox[3], "{item}");
            }
            match item["markdownSpan"].as_array() {
                Some(span) => {
                    let [from, to] = [0, 1].map(|n| usize::try_from(span[n].as_u64().unwrap()).unwrap());
                    assert_eq!(characters[from..to].iter().collect::<String>(), item["content"], "{item}");
                }
                None => nowhere.push(item.clone()),
            }
        }
    }
    nowhere
}

first_on! {
    sqlite:

    async fn blocks_say_what_stands_where_and_which_part_of_the_markdown_it_is(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let url = site.url("/files/blocks.pdf");
        let plain = scrape(&service, json!({ "url": url })).await;
        assert!(plain.get("blocks").is_none(), "only who asks has them");
        let document = scrape(&service, with_parser(&url, json!({ "blocks": true }))).await;
        assert_eq!(document["markdown"], plain["markdown"], "the markdown is the same");
        assert_eq!(document["metadata"]["creditsUsed"], plain["metadata"]["creditsUsed"]);
        let nowhere = check_spans(&document);
        assert!(markdown_of(&document).contains("A happy river \u{1f600} and an old letter \u{10348} stand"), "{document}");

        let kinds = |page: usize| -> Vec<(String, String)> {
            let items = document["blocks"][page]["items"].as_array().unwrap().iter();
            items.map(|item| (item["type"].as_str().unwrap().to_owned(), item["content"].as_str().unwrap().to_owned())).collect()
        };
        let as_told = |expected: &[(&str, &str)], page: usize| {
            let told = kinds(page);
            let told: Vec<(&str, &str)> =
                told.iter().map(|(kind, text)| (kind.as_str(), text.lines().next().unwrap())).collect();
            assert_eq!(told, expected);
        };
        as_told(&[
            ("page_header", "Annual report on rivers"),
            ("title", "# Rivers of the world"),
            ("text", "A river carries water from the hills to the sea and has done so since long before there was anybody to give it a name."),
            ("section_header", "## Long rivers"),
            ("text", "The long ones cross many borders, and each country has its own word for them and its own way to count where they begin."),
            ("text", "- The Nile"),
            ("text", "- The Amazon"),
            ("page_number", "Page 1 of 3"),
        ], 0);
        as_told(&[
            ("page_header", "Annual report on rivers"),
            ("section_header", "## Lengths"),
            ("text", "What follows was measured from the farthest spring to the mouth of each river, with a rope and much patience."),
            ("caption", "Table 1: Lengths of some rivers"),
            ("table", "| River | Kilometres | Sea |"),
            ("page_number", "Page 2 of 3"),
        ], 1);
        assert_eq!(nowhere.len(), 6, "headers and numbers are not in the markdown: {nowhere:?}");

        // 24 points high, 50 points from the left of 595 and with its baseline at 750 of 842.
        let first = &document["blocks"][0];
        assert_eq!((&first["width"], &first["height"]), (&json!(595.0), &json!(842.0)));
        let place = |item: &Value| item["bbox"].as_array().unwrap().iter().map(|part| part.as_f64().unwrap()).collect::<Vec<_>>();
        let near = |item: &Value, left: f64, top: f64, bottom: f64| {
            let place = place(item);
            let is_near = |part: f64, points: f64, of: f64| (part - points / of).abs() < 0.004;
            assert!(is_near(place[0], left, 595.0), "{item}");
            assert!(is_near(place[1], 842.0 - top, 842.0) && is_near(place[3], 842.0 - bottom, 842.0), "{item}");
        };
        near(&first["items"][0], 50.0, 815.0 + 7.2, 815.0 - 1.8);
        near(&first["items"][1], 50.0, 750.0 + 19.2, 750.0 - 4.8);
        near(&first["items"][2], 50.0, 715.0 + 8.8, 701.0 - 2.2);
        near(&first["items"][7], 270.0, 25.0 + 7.2, 25.0 - 1.8);
        near(&document["blocks"][1]["items"][4], 55.0, 651.0 + 8.8, 611.0 - 2.2);
        assert!(first["items"][1]["confidence"] == json!({ "layout": null, "ocr": null }), "{first}");
        assert_eq!((&first["items"][1]["source"], &first["items"][5]["label"]), (&json!("native_text"), &json!("list_item")));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spans_of_blocks_hold_beside_every_other_option() {
    let site = FixtureSite::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let url = site.url("/files/blocks.pdf");
    let parser = json!({ "blocks": true, "pages": true, "pageMarkers": true, "maxPages": 2 });
    let document = scrape(&service, with_parser(&url, parser)).await;
    assert!(markdown_of(&document).contains("<!-- page 2 -->") && document["blocks"].as_array().unwrap().len() == 2);
    assert_eq!(check_spans(&document).len(), 4);

    let parser = json!({ "blocks": true });
    let links = with(with_parser(&url, parser.clone()), json!({ "formats": ["links"] }));
    let document = scrape(&service, links).await;
    let items = document["blocks"][0]["items"].as_array().unwrap();
    assert!(
        document.get("markdown").is_none() && items.iter().all(|item| item["markdownSpan"].is_null()),
        "{document}"
    );

    // What is redacted is so in the blocks, too, and what stands behind it has moved.
    let redacted = with(with_parser(&url, parser), json!({ "redactPII": true }));
    let document = scrape(&service, redacted).await;
    assert!(!document["blocks"].to_string().contains("nile@"), "{document}");
    assert!(document["blocks"].to_string().contains("EMAIL"), "{document}");
    assert_eq!(check_spans(&document).len(), 6);
}

/// A body with further fields.
fn with(mut body: Value, more: Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
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

/// A kept recognition of one page with this text, as the database has it: a frame of zstd with one raw block, as hex.
fn packed_text(text: &str) -> String {
    let json = json!({ "1": { "markdown": format!("{text}\n"), "blocks": [] } }).to_string();
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x20, u8::try_from(json.len()).expect("a short text")];
    let block = u32::try_from(json.len()).expect("a short text") << 3 | 1;
    frame.extend(&block.to_le_bytes()[..3]);
    frame.extend(json.bytes());
    frame.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scans_are_recognised_where_that_is_installed_and_told_of_otherwise() {
    let site = FixtureSite::start().await;
    let options = ServiceOptions::new(Database::Sqlite).env("WEIR_CACHE_SIZE", "100MB");
    let service = TestService::start_with(options).await;
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
    if is_installed {
        // A text is a list of pictures' names to the program, and would be read as what stands in those.
        let list = format!("{}\n", "file\n".repeat(100)).into_bytes();
        for (name, bytes) in [("broken.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec()), ("list.png", list)] {
            let broken = site.serve_file(name, "image/png", bytes).await;
            let answer = service.post("/v2/scrape", &json!({ "url": broken, "parsers": [{ "type": "image" }] })).await;
            assert_eq!((answer.status, answer.code()), (500, "SCRAPE_UNSUPPORTED_FILE_ERROR"), "{}", answer.text);
            assert!(answer.error().contains("damaged"), "{}", answer.text);
        }
    }
    let answer = service.post("/v2/scrape", &json!({ "url": image })).await;
    assert_eq!((answer.status, answer.code()), (500, "SCRAPE_UNSUPPORTED_FILE_ERROR"), "images are read on demand");

    let answer = service.post("/v2/scrape", &with_parser(&scan, json!({ "mode": "fast" }))).await;
    assert_eq!((answer.status, answer.code()), (500, "SCRAPE_PDF_OCR_REQUIRED"), "{}", answer.text);
    let document = scrape(&service, with_parser(&mixed, json!({ "mode": "fast" }))).await;
    assert!(markdown_of(&document).contains("A page of letters"), "{document}");
    assert!(document["warning"].as_str().unwrap().contains("page 2 is a picture"), "{document}");

    if is_installed {
        // What was recognised is kept with the file, and taken from there: where another stands in its place, that.
        let first = scrape(&service, with_parser(&scan, json!({}))).await;
        let key = "key = 'pages'";
        service.execute(&format!("UPDATE page_derived SET body = x'{}' WHERE {key}", packed_text("Kept words."))).await;
        let kept = scrape(&service, with_parser(&scan, json!({}))).await;
        assert_eq!((kept["metadata"]["cacheState"].as_str(), markdown_of(&kept)), (Some("hit"), "Kept words.\n"));
        let mut fresh = with_parser(&scan, json!({}));
        fresh["maxAge"] = json!(0);
        assert_eq!(scrape(&service, fresh).await["markdown"], first["markdown"], "a file that came now is read");
        assert_eq!(scrape(&service, with_parser(&scan, json!({}))).await["markdown"], first["markdown"]);
        for (url, mode) in [(&scan, "auto"), (&mixed, "auto"), (&mixed, "ocr")] {
            let document = scrape(&service, with_parser(url, json!({ "mode": mode }))).await;
            let markdown = markdown_of(&document);
            assert!(markdown.contains(word), "{word} is not in {markdown}");
            assert_eq!(markdown.contains("A page of letters"), url == &mixed, "{mode}: {markdown}");
            assert!(document.get("warning").is_none(), "{document}");
        }
        let asked = with_parser(&mixed, json!({ "blocks": true }));
        let document = scrape(&service, asked).await;
        let plain = scrape(&service, with_parser(&mixed, json!({}))).await;
        assert_eq!(document["markdown"], plain["markdown"], "the markdown is the same");
        assert_eq!(check_spans(&document), Vec::<Value>::new());
        let [letters, picture] = [0, 1].map(|page| document["blocks"][page]["items"].as_array().unwrap());
        assert!(letters.len() == 1 && letters[0]["source"] == "native_text", "{letters:?}");
        let read = picture.iter().find(|item| item["content"].as_str().unwrap().contains(word)).unwrap();
        let sure = read["confidence"]["ocr"].as_f64().unwrap();
        assert!(read["source"] == "ocr" && (0.3..=1.0).contains(&sure) && read["bbox"].is_array(), "{read}");
        assert!(picture.iter().all(|item| item["source"] == "ocr" && item["confidence"]["layout"].is_null()));
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
    command.args(["__pdf", r#"{"memory":1073741824,"cpu_seconds":20}"#, r#"{"max_pages":10000,"blocks":true}"#]);
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
        .arg("import sys; sys.path.insert(0, sys.argv[1]); import testsite; sys.stdout.buffer.write(testsite.blocks_pdf())")
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
fn a_form_says_what_was_filled_in_and_half_a_file_is_damaged() {
    let mut file = pdf_of(&[Ok("A form")]);
    let before = file.windows(9).rposition(|part| part == b"startxref").unwrap();
    let start = String::from_utf8_lossy(&file[before..]).split_whitespace().nth(1).unwrap().to_owned();
    let objects = [
        "1 0 obj\n<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [50 0 R 51 0 R 52 0 R] >> >>\nendobj\n",
        "50 0 obj\n<< /FT /Tx /T (city) /V (Bern *old*) >>\nendobj\n",
        "51 0 obj\n<< /FT /Tx /T (nothing) /DV (x) >>\nendobj\n",
        "52 0 obj\n<< /FT /Btn /Ff 65536 /T (send) /V (x) >>\nendobj\n",
    ];
    let mut places = Vec::new();
    for object in objects {
        places.push(format!("{:010} 00000 n \n", file.len()));
        file.extend(object.bytes());
    }
    let table = file.len();
    file.extend(format!("xref\n1 1\n{}50 3\n{}", places[0], places[1..].concat()).bytes());
    file.extend(format!("trailer\n<< /Size 53 /Root 1 0 R /Prev {start} >>\nstartxref\n{table}\n%%EOF\n").bytes());
    let (status, text) = read(&file);
    assert!(status.success() && text.contains("A form"), "{status} {text}");
    assert!(text.contains(r#""fields":["city: Bern \\*old\\*"]"#), "{text}");

    // Its pages are there, and nothing of what they show.
    let half = "%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n\
        2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count 1 >>\nendobj\n\
        3 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 842 595] /Contents 9 0 R /Resources << >> >>\nendobj\n";
    let (status, text) = read(half.as_bytes());
    assert!(status.success() && text.contains("its end is missing"), "{status} {text}");
    let (status, text) = read(format!("{half}trailer\n<< /Root 1 0 R >>\nstartxref\n9\n%%EOF\n").as_bytes());
    assert!(status.success() && text.contains(r#"{"Ok""#), "{status} {text}");
}

#[test]
fn a_reader_can_open_nothing() {
    // Without a request it ends; with one, its filter lets it read what it was given and no more.
    let status = Command::new(binary_folder().join("weir-worker")).arg("__pdf").stdin(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(1));
    let (status, text) = read(b"%PDF-1.4\nnothing");
    assert!(status.success() && text.contains("Damaged"), "{status} {text}");
}
