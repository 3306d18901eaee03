//! `POST /v2/scrape` and `GET /v2/scrape/{id}`: formats, options, metadata (wire 3).

use std::time::Duration;

use base64::Engine;
use serde_json::{Value, json};
use weir_shared::clock::Stopwatch;
use weir_tests::{
    FixtureSite, OwnPages, ServiceOptions, SiteOptions, TestService, both_databases, markdown_of, wait_until,
};

async fn scrape(service: &TestService, body: Value) -> Value {
    let body = service.post("/v2/scrape", &body).await.ok();
    assert_eq!(body["success"], true, "{body}");
    body["data"].clone()
}

/// The bytes of a screenshot, whether it came as an address or as a data URI.
async fn image_of(service: &TestService, document: &Value) -> Vec<u8> {
    let place = document["screenshot"].as_str().expect("a screenshot is a string");
    if let Some((_, data)) = place.split_once(";base64,") {
        return base64::engine::general_purpose::STANDARD.decode(data).unwrap();
    }
    let request = service.anonymous().request(reqwest::Method::GET, place);
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 200, "{place}");
    answer.bytes().await.unwrap().to_vec()
}

/// Width and height from a PNG's or JPEG's header.
fn image_size(image: &[u8]) -> (u32, u32) {
    let number = |bytes: &[u8]| bytes.iter().fold(0u32, |sum, byte| (sum << 8) | u32::from(*byte));
    if image.starts_with(b"\x89PNG") {
        return (number(&image[16..20]), number(&image[20..24]));
    }
    assert!(image.starts_with(&[0xff, 0xd8]), "neither PNG nor JPEG");
    let mut at = 2;
    loop {
        let (kind, length) = (image[at + 1], number(&image[at + 2..at + 4]) as usize);
        if (0xc0..=0xc2).contains(&kind) {
            return (number(&image[at + 7..at + 9]), number(&image[at + 5..at + 7]));
        }
        at += 2 + length;
    }
}

both_databases! {
    async fn a_page_comes_back_as_markdown_with_metadata(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let document = scrape(&service, json!({ "url": site.url("/article/7") })).await;

        assert_eq!(site.truth("/article/7").await.fault_in(markdown_of(&document)), None);
        let keys: Vec<_> = document.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys.iter().filter(|key| **key != "warning").collect::<Vec<_>>(), [&"markdown", &"metadata"], "only what was asked for");

        let metadata = &document["metadata"];
        for (key, value) in [
            ("sourceURL", json!(site.url("/article/7"))),
            ("url", json!(site.url("/article/7"))),
            ("statusCode", json!(200)),
            ("language", json!("en")),
            ("robots", json!("index, follow")),
            ("ogLocale", json!("en_US")),
            ("ogSiteName", json!("Test Site")),
            ("ogLocaleAlternate", json!(["de_DE", "fr_FR"])),
            ("publishedTime", json!("2024-08-15T08:00:00Z")),
            ("author", json!("Author 7")),
            ("proxyUsed", json!("basic")),
            ("creditsUsed", json!(1)),
            ("favicon", json!(site.url("/favicon.ico"))),
        ] {
            assert_eq!(metadata[key], value, "metadata.{key} in {metadata}");
        }
        for key in ["title", "description", "keywords", "ogTitle", "ogDescription", "ogImage", "contentType"] {
            assert!(metadata[key].is_string(), "metadata.{key} in {metadata}");
        }
        assert!(metadata["contentType"].as_str().unwrap().starts_with("text/html"));
        uuid::Uuid::parse_str(metadata["scrapeId"].as_str().unwrap()).unwrap();
    }

    async fn a_stored_scrape_is_read_back_by_its_id(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let document = scrape(&service, json!({ "url": site.url("/docs/3"), "formats": ["markdown", "links"] })).await;
        let id = document["metadata"]["scrapeId"].as_str().unwrap();
        let again = service.get(&format!("/v2/scrape/{id}")).await.ok();
        assert_eq!(again["success"], true);
        assert_eq!(again["data"]["markdown"], document["markdown"]);
        assert_eq!(again["data"]["links"], document["links"]);
        assert_eq!(again["data"]["metadata"]["scrapeId"], document["metadata"]["scrapeId"]);
    }

    async fn every_text_format_comes_in_its_own_field(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let formats = json!(["markdown", "html", "rawHtml", "links", "images"]);
        let document = scrape(&service, json!({ "url": site.url("/article/5"), "formats": formats })).await;

        let truth = site.truth("/article/5").await;
        assert_eq!(truth.fault_in(document["html"].as_str().unwrap()), None);
        let html = document["html"].as_str().unwrap();
        assert!(!html.contains("<script") && !html.contains("<style"), "html is cleaned");
        let raw = document["rawHtml"].as_str().unwrap();
        assert!(raw.starts_with("<!DOCTYPE html>") && raw.contains("window.__state"), "rawHtml is untouched");
        let links = document["links"].as_array().unwrap();
        assert!(links.len() > 5 && links.iter().all(|link| link.as_str().unwrap().starts_with("http")), "{links:?}");
        let mut unique: Vec<_> = links.iter().map(Value::as_str).collect();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), links.len(), "no link twice");
        let images = document["images"].as_array().unwrap();
        assert!(images.contains(&json!(site.url("/files/image.png"))), "{images:?}");
    }
}

#[tokio::test]
async fn formats_may_be_objects_and_screenshots_follow_their_options() {
    let site = FixtureSite::start().await;
    let service = TestService::start(weir_tests::Database::Sqlite).await;
    let url = site.url("/article/2");

    let document = scrape(&service, json!({ "url": url, "formats": [{ "type": "markdown" }, "screenshot"] })).await;
    assert!(document["markdown"].is_string());
    let (_, plain_height) = image_size(&image_of(&service, &document).await);

    let full = json!({ "type": "screenshot", "fullPage": true });
    let document = scrape(&service, json!({ "url": url, "formats": [full] })).await;
    let (_, full_height) = image_size(&image_of(&service, &document).await);
    assert!(full_height > plain_height, "{full_height} against {plain_height}");
    assert!(document.get("markdown").is_none(), "markdown was not asked for");

    let sized = json!({ "type": "screenshot", "quality": 60, "viewport": { "width": 640, "height": 480 } });
    let document = scrape(&service, json!({ "url": url, "formats": [sized] })).await;
    assert_eq!(image_size(&image_of(&service, &document).await), (640, 480));

    let document = scrape(&service, json!({ "url": url, "formats": ["screenshot@fullPage"] })).await;
    assert!(document["screenshot"].is_string(), "the older spelling is understood");
}

#[tokio::test]
async fn options_change_what_is_kept_of_a_page() {
    let site = FixtureSite::start().await;
    let service = TestService::start(weir_tests::Database::Sqlite).await;
    let url = site.url("/article/9");
    let truth = site.truth("/article/9").await;

    let whole = scrape(&service, json!({ "url": url, "onlyMainContent": false })).await;
    let nav = &truth.boilerplate[0];
    assert!(markdown_of(&whole).contains(nav), "without the filter the navigation stays");

    let only = scrape(&service, json!({ "url": url, "includeTags": ["aside"], "onlyMainContent": false })).await;
    assert!(markdown_of(&only).contains(&truth.boilerplate[1]) && !markdown_of(&only).contains(&truth.main[0]));

    let less =
        scrape(&service, json!({ "url": url, "excludeTags": ["nav", ".sidebar"], "onlyMainContent": false })).await;
    assert!(!markdown_of(&less).contains(nav) && markdown_of(&less).contains(&truth.main[0]));

    let images = scrape(&service, json!({ "url": site.url("/images/1") })).await;
    assert!(!markdown_of(&images).contains("base64,"), "inline images are replaced by default");
    let images = scrape(&service, json!({ "url": site.url("/images/1"), "removeBase64Images": false })).await;
    assert!(markdown_of(&images).contains("base64,"));
}

#[tokio::test]
async fn headers_location_and_mobile_reach_the_target() {
    let site = FixtureSite::start().await;
    let service = TestService::start(weir_tests::Database::Sqlite).await;

    let body = json!({ "url": site.url("/headers"), "formats": ["rawHtml"], "headers": { "X-Test": "yes", "User-Agent": "Special/1" } });
    let raw = scrape(&service, body).await["rawHtml"].as_str().unwrap().to_owned();
    assert!(raw.contains("\"x-test\": \"yes\"") && raw.contains("Special/1"), "{raw}");

    let basic = json!({ "Authorization": "Basic YWxpY2U6d29uZGVybGFuZA==" });
    let inside = scrape(&service, json!({ "url": site.url("/basic"), "headers": basic })).await;
    assert!(markdown_of(&inside).contains("Inside"));

    let body =
        json!({ "url": site.url("/whoami"), "location": { "country": "DE", "languages": ["de-DE"] }, "waitFor": 100 });
    let text = markdown_of(&scrape(&service, body).await).to_owned();
    assert!(text.contains("de-DE") && text.contains("Europe/Berlin"), "{text}");

    // The country alone gives its language, to pages that are fetched too, and its place to those that ask.
    let body = json!({ "url": site.url("/headers"), "formats": ["rawHtml"], "location": { "country": "FR" } });
    let raw = scrape(&service, body).await["rawHtml"].as_str().unwrap().to_owned();
    assert!(raw.contains("fr-FR,fr;q=0.9"), "{raw}");
    let pages = OwnPages::start().await;
    let script = "<p id=p>waiting</p><script>navigator.geolocation.getCurrentPosition(at => { p.textContent = \
        'At ' + at.coords.latitude.toFixed(2) + ' ' + at.coords.longitude.toFixed(2); }, no => { p.textContent = no.message; })</script>";
    let body =
        json!({ "url": pages.put("/where", script), "location": { "country": "JP" }, "waitFor": 500, "maxAge": 0 });
    let text = markdown_of(&scrape(&service, body).await).to_owned();
    assert!(text.contains("At 35.65 139.74"), "{text}");

    let text = markdown_of(&scrape(&service, json!({ "url": site.url("/whoami"), "mobile": true })).await).to_owned();
    assert!(text.contains("Mobile") && !text.contains("\"touch\":0"), "{text}");
}

#[tokio::test]
async fn an_untrusted_certificate_matters_only_when_asked_for() {
    let site = FixtureSite::start_with(SiteOptions { tls: true, ..SiteOptions::default() }).await;
    let service = TestService::start(weir_tests::Database::Sqlite).await;
    let url = site.tls_url("/article/1");

    let document = scrape(&service, json!({ "url": url })).await;
    assert_eq!(site.truth("/article/1").await.fault_in(markdown_of(&document)), None);

    let refused = service.post("/v2/scrape", &json!({ "url": url, "skipTlsVerification": false })).await;
    assert_eq!((refused.status, refused.code()), (500, "SCRAPE_SSL_ERROR"), "{}", refused.text);

    let through_browser = json!({ "url": url, "skipTlsVerification": false, "waitFor": 1 });
    let refused = service.post("/v2/scrape", &through_browser).await;
    assert_eq!((refused.status, refused.code()), (500, "SCRAPE_SSL_ERROR"), "{}", refused.text);
}

#[tokio::test]
async fn both_engines_give_the_same_document() {
    let site = FixtureSite::start().await;
    let service = TestService::start(weir_tests::Database::Sqlite).await;
    for path in ["/article/1", "/docs/2", "/product/3", "/table/4"] {
        let formats = json!(["markdown", "links"]);
        let plain = scrape(&service, json!({ "url": site.url(path), "formats": formats })).await;
        let rendered = scrape(&service, json!({ "url": site.url(path), "formats": formats, "waitFor": 1 })).await;
        assert_eq!(plain["markdown"], rendered["markdown"], "markdown of {path}");
        assert_eq!(plain["links"], rendered["links"], "links of {path}");
        assert_eq!(plain["metadata"]["title"], rendered["metadata"]["title"]);
    }
}

#[tokio::test]
async fn a_static_page_never_goes_to_the_browser() {
    let site = FixtureSite::start().await;
    let service = TestService::start(weir_tests::Database::Sqlite).await;
    for n in 0..40 {
        scrape(&service, json!({ "url": site.url(&format!("/mix/{n}")) })).await;
    }
    assert_eq!(site.hit_count("/mix/").await, 40, "each page is fetched once");
    assert_eq!(site.hit_count("/favicon.ico").await + site.hit_count("/files/").await, 0, "nothing else is");
}

#[tokio::test]
async fn a_browser_of_pages_is_there_while_pages_want_one() {
    let site = FixtureSite::start().await;
    let options = ServiceOptions::new(weir_tests::Database::Sqlite).env("WEIR_PAGE_BROWSER_IDLE", "2s");
    let service = TestService::start_with(options).await;
    let browsers = async || service.worker_figure(0, "weir_browsers").await;
    scrape(&service, json!({ "url": site.url("/article/1") })).await;
    assert_eq!(browsers().await, 0, "a static page wants none");
    for _ in 0..2 {
        // More pages than it takes at once, and each takes longer than it may be idle.
        let rendered =
            (1..=10).map(|n| scrape(&service, json!({ "url": site.url(&format!("/article/{n}")), "waitFor": 3_000 })));
        let begun = wait_until("its browser", || async { (browsers().await == 1).then_some(()) });
        let (documents, ()) = tokio::join!(futures_util::future::join_all(rendered), begun);
        assert!(browsers().await <= 1, "one for all");
        for (n, document) in (1..).zip(documents) {
            assert_eq!(site.truth(&format!("/article/{n}")).await.fault_in(markdown_of(&document)), None);
        }
        wait_until("it has stopped", || async { (browsers().await == 0).then_some(()) }).await;
        // What waited for a busy one does not start another.
        let until = Stopwatch::start();
        while until.elapsed() < Duration::from_secs(2) {
            assert_eq!(browsers().await, 0);
        }
        assert_eq!(service.anonymous().get("/readyz").await.status, 200);
    }
}

#[tokio::test]
async fn a_page_that_does_not_answer_ends_at_its_timeout() {
    let site = FixtureSite::start().await;
    let service = TestService::start(weir_tests::Database::Sqlite).await;
    for path in ["/hang", "/hang/body", "/js/forever/1"] {
        let began = Stopwatch::start();
        let answer = service.post("/v2/scrape", &json!({ "url": site.url(path), "timeout": 3000 })).await;
        assert_eq!((answer.status, answer.code()), (408, "SCRAPE_TIMEOUT"), "{path}: {}", answer.text);
        assert!(answer.body["details"]["state"].is_null(), "wire 1.11: it does not go on");
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(2500) && took < Duration::from_secs(25), "{path} took {took:?}");
    }
}

#[tokio::test]
async fn the_welcome_page_is_served_and_can_be_scraped() {
    let service = TestService::start(weir_tests::Database::Sqlite).await;
    let document = scrape(&service, json!({ "url": format!("{}/welcome", service.base()) })).await;
    assert!(markdown_of(&document).contains("Weir"), "{document}");
    // Who opens the address in a browser stands on it.
    let address = format!("{}/", service.base());
    let browser = reqwest::Client::new().get(&address).header("accept", "text/html,*/*;q=0.8").send().await.unwrap();
    assert_eq!((browser.status().as_u16(), browser.url().path()), (200, "/welcome"));
    let program = service.anonymous().get("/").await;
    assert_eq!((program.status, program.error()), (404, "Cannot GET /"));
}

#[tokio::test]
async fn what_the_sdks_send_by_themselves_is_accepted() {
    let site = FixtureSite::start().await;
    let service = TestService::start(weir_tests::Database::Sqlite).await;
    let body = json!({
        "url": site.url("/article/1"), "formats": ["markdown"], "onlyMainContent": true, "skipTlsVerification": true,
        "removeBase64Images": true, "blockAds": true, "storeInCache": true, "fastMode": false, "mobile": false,
        "maxAge": 14_400_000, "origin": "python-sdk@4.54.0", "integration": "_tests", "zeroDataRetention": false, "lockdown": false,
        "parsers": ["pdf"], "proxy": "auto", "timeout": 30_000, "waitFor": 0,
    });
    scrape(&service, body).await;
}
