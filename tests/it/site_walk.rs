//! The test site's pages without state, each with what it must give: a right document or the right error, in time.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use weir_shared::clock::Stopwatch;
use weir_tests::{Database, FixtureSite, SiteOptions, TestService};

/// What one address must give.
enum Want {
    /// A document with all main markers of this path and no boilerplate marker.
    Truth(&'static str),
    /// A document of the target's status whose markdown holds all of these words.
    Text(u16, &'static [&'static str]),
    /// A document that may say anything, with this target status.
    Any(u16),
    /// This status and code.
    Error(u16, &'static str),
    /// Too large for the caps, or a document: both are right, hanging or dying is not.
    LargeOrError,
}

struct Page {
    path: String,
    options: Value,
    want: Want,
}

fn page(path: impl Into<String>, want: Want) -> Page {
    Page { path: path.into(), options: json!({ "timeout": 45_000 }), want }
}

fn with(path: impl Into<String>, options: Value, want: Want) -> Page {
    Page { path: path.into(), options, want }
}

/// Says what is wrong with an answer; `None` when it is what the page must give.
async fn fault(site: &FixtureSite, want: &Want, status: u16, body: &Value) -> Option<String> {
    let document = &body["data"];
    let markdown = document["markdown"].as_str().unwrap_or_default();
    let code = body["code"].as_str().unwrap_or_default();
    let is_document = status == 200 && body["success"] == true;
    if let Want::Error(wanted_status, wanted_code) = want {
        let right = status == *wanted_status && code == *wanted_code && body["success"] == false;
        return (!right).then(|| format!("wanted {wanted_status} {wanted_code}, got {status} {body:.300}"));
    }
    if let Want::LargeOrError = want {
        let right = is_document || (status == 500 && code == "SCRAPE_PAGE_TOO_LARGE");
        return (!right).then(|| format!("wanted a document or SCRAPE_PAGE_TOO_LARGE, got {status} {body:.300}"));
    }
    if !is_document {
        return Some(format!("wanted a document, got {status} {body:.300}"));
    }
    let target = document["metadata"]["statusCode"].as_u64().unwrap_or_default();
    match want {
        Want::Truth(path) => {
            let fault = site.truth(path).await.fault_in(markdown);
            fault.or_else(|| (target != 200).then(|| format!("statusCode {target}")))
        }
        Want::Text(wanted, words) => {
            let lost: Vec<_> = words.iter().filter(|word| !markdown.contains(**word)).collect();
            let right = lost.is_empty() && target == u64::from(*wanted);
            (!right).then(|| format!("statusCode {target}, lost {lost:?} in {markdown:.300}"))
        }
        Want::Any(wanted) => (target != u64::from(*wanted)).then(|| format!("statusCode {target}")),
        Want::Error(..) | Want::LargeOrError => unreachable!("handled above"),
    }
}

/// Scrapes all pages, a few at once, and reports every one that gave something else than it must.
async fn walk(pages: Vec<Page>, at_once: usize) {
    let site = FixtureSite::start_with(SiteOptions { tls: true, ..SiteOptions::default() }).await;
    let service = TestService::start(Database::Sqlite).await;
    let count = pages.len();
    let faults: Vec<String> = stream::iter(pages)
        .map(|page| {
            let (site, service) = (&site, &service);
            async move {
                let mut body = page.options.clone();
                body["url"] =
                    json!(if page.path.starts_with("http") { page.path.clone() } else { site.url(&page.path) });
                let began = Stopwatch::start();
                let answer = service.post("/v2/scrape", &body).await;
                let bound = Duration::from_millis(body["timeout"].as_u64().unwrap_or(60_000) + 10_000);
                let mut found = fault(site, &page.want, answer.status, &answer.body).await;
                if began.elapsed() > bound {
                    found =
                        Some(format!("took {:?} of at most {bound:?}; {}", began.elapsed(), found.unwrap_or_default()));
                }
                found.map(|fault| format!("{}: {fault}", page.path))
            }
        })
        .buffer_unordered(at_once)
        .filter_map(|fault| async move { fault })
        .collect()
        .await;
    assert!(faults.is_empty(), "{} of {count} pages are wrong:\n{}", faults.len(), faults.join("\n"));
    service.ready().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_plain_html_give_their_text() {
    use Want::{Any, Text, Truth};
    let mut pages = vec![
        page("/article/1", Truth("/article/1")),
        page("/docs/1", Truth("/docs/1")),
        page("/product/1", Truth("/product/1")),
        page("/listing/1", Truth("/listing/1")),
        page("/table/1", Truth("/table/1")),
        page("/long/1", Truth("/long/1")),
        page("/broken/1", Truth("/broken/1")),
        page("/broken/2", Truth("/broken/2")),
        page("/small/1", Text(200, &["Small 1", "MAIN"])),
        page("/slow?ms=1500", Truth("/article/0")),
        page("/slow/body?ms=1500&chunks=5", Truth("/article/1")),
        page("/links", Text(200, &["/article/1", "/caf"])),
        page("/images/1", Text(200, &["Images 1", "![plain]("])),
        page("/iframes/1", Text(200, &["Iframes 1"])),
        page("/ads/1", Text(200, &["MAIN"])),
        page("/dup/3", Text(200, &["MAIN"])),
        page("/trap/1", Text(200, &["Trap 1"])),
        page("/crawl/", Text(200, &["child 0"])),
        page("/private/secret", Text(200, &["Private"])),
        page("/brand", Text(200, &["Brand"])),
        page("/actions", Text(200, &["Actions"])),
        page("/login", Text(200, &["Log in"])),
        page("/basic", Text(401, &["Denied"])),
        page("/urls?prefix=/mix/&n=500", Text(200, &["/mix/499"])),
        page("/huge?mb=2", Text(200, &["MAIN"])),
        page("/", Text(200, &["Test Site"])),
    ];
    for language in
        ["/lang/de/1", "/lang/fr/1", "/lang/ja/1", "/lang/zh/1", "/lang/ar/1", "/lang/ru/1", "/lang/hi/1", "/lang/el/1"]
    {
        pages.push(page(language, Truth(language)));
    }
    for mix in ["/mix/0", "/mix/1", "/mix/2", "/mix/3", "/mix/4", "/mix/5", "/mix/6", "/mix/7"] {
        pages.push(page(mix, Truth(mix)));
    }
    for (status, words) in
        [(404, &["Status 404", "MAIN"]), (410, &["Status 410", "MAIN"]), (418, &["Status 418", "MAIN"])]
    {
        pages.push(page(format!("/status/{status}"), Text(status, words)));
    }
    for status in [403, 429, 500, 503] {
        pages.push(page(format!("/status/{status}"), Any(status)));
    }
    pages.push(page("/status/204", Any(204)));
    walk(pages, 6).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirects_charsets_and_codings_are_understood() {
    use Want::{Error, Text, Truth};
    let mut pages = vec![
        page("/redirect/loop", Error(500, "SCRAPE_SITE_ERROR")),
        page("/redirect/meta/2", Truth("/article/2")),
        page("/redirect/refresh/2", Truth("/article/2")),
        page("/redirect/setcookie", Text(200, &["hop"])),
        page("/redirect/long", Truth("/article/1")),
        page("/redirect/302/100", Error(500, "SCRAPE_SITE_ERROR")),
    ];
    for code in [301, 302, 303, 307, 308] {
        pages.push(page(format!("/redirect/{code}/3"), Truth("/article/1")));
    }
    let charsets: [(&str, &'static [&'static str]); 11] = [
        ("latin1", &["Café déjà vu, naïve façade, señor"]),
        ("windows1251", &["Городская библиотека открыта"]),
        ("shiftjis", &["東京の気象台は雨と発表しました"]),
        ("gb2312", &["图书馆延长开放时间"]),
        ("euckr", &["도서관이 문을 열었습니다"]),
        ("wrongheader", &["Größe und Café"]),
        ("wrongmeta", &["Größe und Café"]),
        ("none", &["Größe und Café, 東京"]),
        ("utf16", &["Größe und Café in UTF-16"]),
        ("bom", &["Größe und Café after a BOM"]),
        ("badbytes", &["Größe then bad bytes"]),
    ];
    for (name, words) in charsets {
        pages.push(page(format!("/charset/{name}"), Text(200, words)));
    }
    for coding in ["gzip", "br", "deflate", "rawdeflate", "chunked"] {
        pages.push(page(format!("/enc/{coding}/1"), Truth("/article/1")));
    }
    pages.push(page("/enc/badgzip/1", Error(500, "SCRAPE_SITE_ERROR")));
    walk(pages, 6).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_answers_end_in_a_clear_error_within_the_timeout() {
    use Want::{Error, LargeOrError};
    let short = json!({ "timeout": 3000 });
    let long = json!({ "timeout": 90_000 });
    let pages = vec![
        with("/hang", short.clone(), Error(408, "SCRAPE_TIMEOUT")),
        with("/hang/body", short.clone(), Error(408, "SCRAPE_TIMEOUT")),
        with("/slow?ms=20000", short.clone(), Error(408, "SCRAPE_TIMEOUT")),
        with("/slow/body?ms=30000&chunks=30", short.clone(), Error(408, "SCRAPE_TIMEOUT")),
        page("/cut", Error(500, "SCRAPE_SITE_ERROR")),
        page("/cut/reset", Error(500, "SCRAPE_SITE_ERROR")),
        page("http://127.0.0.1:2/", Error(500, "SCRAPE_SITE_ERROR")),
        with("/huge?mb=20", long.clone(), LargeOrError),
        with("/huge?mb=1000", long.clone(), Error(500, "SCRAPE_PAGE_TOO_LARGE")),
        with("/bomb?mb=200", long, Error(500, "SCRAPE_PAGE_TOO_LARGE")),
        with("http://no-such-host.invalid/", json!({ "timeout": 45_000 }), Error(200, "SCRAPE_DNS_RESOLUTION_ERROR")),
        with("/hang?browser", json!({ "timeout": 3000, "waitFor": 10 }), Error(408, "SCRAPE_TIMEOUT")),
        with("/cut/reset", json!({ "timeout": 45_000, "waitFor": 10 }), Error(500, "SCRAPE_SITE_ERROR")),
        with("/redirect/loop", json!({ "timeout": 45_000, "waitFor": 10 }), Error(500, "SCRAPE_SITE_ERROR")),
        with("http://127.0.0.1:2/", json!({ "timeout": 45_000, "waitFor": 10 }), Error(500, "SCRAPE_SITE_ERROR")),
    ];
    walk(pages, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_give_their_text_or_say_that_they_cannot() {
    use Want::{Any, Error, Text};
    walk(
        vec![
            page("/files/plain.txt", Text(200, &["# not a heading", "<b>not bold</b>"])),
            page("/files/doc.csv", Text(200, &["| id | name |", "| --- | --- |"])),
            page("/files/data.json", Text(200, &["\"items\""])),
            page("/files/page.md", Text(200, &["# Heading", "- one"])),
            page("/files/feed.xml", Text(200, &["# Feed", "## [Item 0](<http"])),
            page("/sitemap.xml", Text(200, &["```xml", "pages-0.xml"])),
            page("/sitemap-broken.xml", Text(200, &["/article/1"])),
            page("/robots.txt", Text(200, &["SlowBot"])),
            page("/headers", Text(200, &["user-agent"])),
            page("/echo?a=b", Text(200, &["\"a\": \"b\""])),
            page("/whoami", Text(200, &["Who am I"])),
            page("/cookies/set?k=v", Any(200)),
            page("/files/image.png", Error(500, "SCRAPE_UNSUPPORTED_FILE_ERROR")),
            page("/files/audio.wav", Error(500, "SCRAPE_UNSUPPORTED_FILE_ERROR")),
            page("/files/download.bin", Error(500, "SCRAPE_UNSUPPORTED_FILE_ERROR")),
            page("/files/report.pdf", Text(200, &["Page 1", "Page 3"])),
            page("/files/pdf-as-html", Text(200, &["Page 3"])),
            page("/files/download.pdf", Text(200, &["Page 3"])),
            with("/files/report.pdf", json!({ "timeout": 45_000, "waitFor": 10 }), Text(200, &["Page 3"])),
            page("/redirect/to?url=/files/report.pdf&status=302", Text(200, &["Page 3"])),
            page("/files/broken.pdf", Error(500, "SCRAPE_UNSUPPORTED_FILE_ERROR")),
            page("/files/locked.pdf", Error(500, "SCRAPE_UNSUPPORTED_FILE_ERROR")),
            page("/files/robots-only.pdf", Error(500, "SCRAPE_PDF_ANTIBOT_ERROR")),
        ],
        6,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_made_by_scripts_are_complete_without_any_option() {
    use Want::{Error, Text, Truth};
    let mut pages = vec![
        page("/js/render/1", Truth("/js/render/1")),
        page("/js/timer/2", Truth("/js/timer/2")),
        page("/js/timer/3?delay=900", Truth("/js/timer/3")),
        page("/js/fetch/4", Truth("/js/fetch/4")),
        page("/js/fetch/5?delay=900", Truth("/js/fetch/5")),
        page("/js/chain/6", Truth("/js/chain/6")),
        page("/js/hydrate/7", Truth("/js/hydrate/7")),
        page("/js/shadow/8", Text(200, &["MAIN"])),
        page("/js/ws/9", Truth("/js/ws/9")),
        page("/js/busy/10?ms=2000", Truth("/js/busy/10")),
        page("/js/memory/11?mb=64", Truth("/js/memory/11")),
        page("/js/dialog/12", Truth("/js/dialog/12")),
        page("/js/error/13", Truth("/js/error/13")),
        page("/js/redirect/14", Truth("/js/render/14")),
        with("/js/redirect/16?transition=1", json!({ "timeout": 45_000 }), Truth("/js/render/16")),
        page("/js/transition/17", Truth("/js/transition/17")),
        page("/js/lazy/15", Text(200, &["Part 0"])),
        page("/js/endless?total=100", Text(200, &["Item 0"])),
        with("/js/forever/1", json!({ "timeout": 4000 }), Error(408, "SCRAPE_TIMEOUT")),
        with("/js/forever/2", json!({ "timeout": 4000, "formats": ["screenshot"] }), Error(408, "SCRAPE_TIMEOUT")),
        with("/js/timer/20?delay=3000", json!({ "timeout": 45_000, "waitFor": 4000 }), Truth("/js/timer/20")),
    ];
    for route in ["home", "about", "team", "news", "contact"] {
        pages.push(page(format!("/js/spa/{route}"), Text(200, &["MAIN"])));
    }
    walk(pages, 4).await;
}

#[tokio::test]
async fn a_redirect_is_told_in_the_metadata_and_an_odd_address_is_kept_as_given() {
    let site = FixtureSite::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let metadata = async |url: &str| -> Value {
        let body = service.post("/v2/scrape", &json!({ "url": url })).await.ok();
        body["data"]["metadata"].clone()
    };
    let seen = metadata(&site.url("/redirect/302/2")).await;
    assert_eq!(
        (&seen["sourceURL"], &seen["url"]),
        (&json!(site.url("/redirect/302/2")), &json!(site.url("/article/1")))
    );

    let odd = site.url("/echo?b=2&a=1&empty");
    assert_eq!(metadata(&odd).await["sourceURL"], odd, "wire 2.4: keys without value and the order are kept");
    let hits = site.hits("/echo").await;
    assert_eq!(hits.len(), 1);

    let missing = metadata(&site.url("/status/404")).await;
    assert_eq!(missing["statusCode"], 404);
    assert!(missing["error"].is_string(), "an error status has an error text: {missing}");

    let bare = site.url("/small/1");
    let bare = bare.strip_prefix("http://").unwrap();
    assert_eq!(metadata(bare).await["statusCode"], 200, "without a scheme, http is meant");
}
