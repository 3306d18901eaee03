//! No option is accepted and ignored (wire 3.2 to 3.5): each property of a scrape and each format either has a test of its
//! effect, or is refused by its name. The lists here are the one place for them.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use weir_tests::{Database, FixtureSite, TestService, checkout};

/// Every property of a scrape with a value that is not its default.
fn properties() -> Vec<(&'static str, Value)> {
    vec![
        ("formats", json!(["links"])),
        ("onlyMainContent", json!(false)),
        ("siteTemplates", json!(false)),
        ("onlyCleanContent", json!(true)),
        ("includeTags", json!(["main"])),
        ("excludeTags", json!(["nav"])),
        ("maxAge", json!(0)),
        ("minAge", json!(1)),
        ("headers", json!({ "X-Test": "1" })),
        ("waitFor", json!(10)),
        ("mobile", json!(true)),
        ("skipTlsVerification", json!(false)),
        ("timeout", json!(20_000)),
        ("parsers", json!([])),
        ("actions", json!([{ "type": "wait", "milliseconds": 10 }])),
        ("location", json!({ "country": "DE", "languages": ["de"] })),
        ("removeBase64Images", json!(false)),
        ("blockAds", json!(false)),
        ("proxy", json!("basic")),
        ("storeInCache", json!(false)),
        ("lockdown", json!(true)),
        ("profile", json!({ "name": "options" })),
        ("redactPII", json!(true)),
        ("zeroDataRetention", json!(true)),
        ("checkPromptInjection", json!(true)),
        ("threatProtection", json!({ "blacklist": ["bad.example"] })),
    ]
}

/// Properties that wire 3.2 wants accepted whatever they say, and those that only tell who asks.
const WITHOUT_EFFECT: &[&str] =
    &["url", "origin", "integration", "fastMode", "useMock", "auditMetadata", "domainTools", "toolDetail"];

/// The properties that only version 1 has (wire 26), each in a body that they make sense in.
fn properties_of_v1() -> Vec<(&'static str, Value)> {
    vec![
        ("parsePDF", json!({ "parsePDF": false })),
        ("geolocation", json!({ "geolocation": { "country": "FR" } })),
        ("jsonOptions", json!({ "formats": ["markdown", "json"], "jsonOptions": { "prompt": "x" } })),
        ("extract", json!({ "formats": ["markdown", "extract"], "extract": { "prompt": "x" } })),
        ("changeTrackingOptions", json!({ "formats": ["markdown", "changeTracking"], "changeTrackingOptions": {} })),
        ("agent", json!({ "agent": { "model": "FIRE-1", "prompt": "x" } })),
    ]
}

/// Every format with what it needs.
fn formats() -> Vec<(&'static str, Value)> {
    let plain = |name: &'static str| (name, json!(name));
    vec![
        plain("markdown"),
        plain("html"),
        plain("rawHtml"),
        plain("links"),
        plain("images"),
        plain("screenshot"),
        plain("summary"),
        ("json", json!({ "type": "json", "prompt": "x" })),
        plain("changeTracking"),
        ("attributes", json!({ "type": "attributes", "selectors": [{ "selector": "a", "attribute": "href" }] })),
        plain("branding"),
        plain("product"),
        plain("menu"),
        ("question", json!({ "type": "question", "question": "x" })),
        ("highlights", json!({ "type": "highlights", "query": "x" })),
        ("query", json!({ "type": "query", "prompt": "x" })),
        plain("audio"),
        plain("video"),
        plain("rawBase64"),
        plain("deterministicJson"),
    ]
}

/// What the other tests say, without those that only look at wrong values.
fn tests() -> String {
    let folder = checkout().join("tests/it");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_other = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        path.extension().is_some_and(|kind| kind == "rs") && !matches!(&*name, "options.rs" | "errors.rs")
    };
    files.filter(is_other).map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_option_has_a_tested_effect_or_is_refused_by_name() {
    let site = FixtureSite::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let tests = tests();
    let url = site.url("/small/1");
    let mut wrong = Vec::new();
    let cases = properties().into_iter().map(|(name, value)| (name, json!({ "url": url, name: value })));
    let cases = cases.chain(formats().into_iter().map(|(name, format)| {
        let list = if name == "changeTracking" { json!(["markdown", format]) } else { json!([format]) };
        (name, json!({ "url": url, "formats": list }))
    }));
    for (name, body) in cases {
        let answer = service.post("/v2/scrape", &body).await;
        let is_unavailable = answer.status == 400 && answer.error().contains("not available yet");
        if is_unavailable && !answer.error().contains(name) {
            wrong.push(format!("{name} is refused without being named: {}", answer.text));
        }
        if answer.code() == "BAD_REQUEST" {
            wrong.push(format!("{name} is unknown: {}", answer.text));
        }
        if !is_unavailable && !tests.contains(&format!("\"{name}\"")) {
            wrong.push(format!("{name} is accepted, and no test looks at what it does"));
        }
    }
    for name in WITHOUT_EFFECT.iter().filter(|name| **name != "url") {
        let value = if name.ends_with("Mode") { json!(true) } else { json!("x") };
        let answer = service.post("/v2/scrape", &json!({ "url": url, *name: value })).await;
        if answer.status != 200 {
            wrong.push(format!("{name} is not accepted: {}", answer.text));
        }
    }
    // What the service itself lists, where it does, is what is listed here.
    let described = service.anonymous().get("/openapi.json").await;
    if described.status == 200 {
        let listed: BTreeSet<&str> =
            properties().iter().map(|(name, _)| *name).chain(WITHOUT_EFFECT.iter().copied()).collect();
        let missing: Vec<&String> =
            scrape_properties("v2", &described.body).filter(|name| !listed.contains(name.as_str())).collect();
        assert!(missing.is_empty(), "not listed in this test: {missing:?}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_only_version_1_has_is_tested_or_refused_by_name() {
    let site = FixtureSite::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let tests = tests();
    for (name, mut body) in properties_of_v1() {
        body["url"] = json!(site.url("/small/1"));
        let answer = service.post("/v1/scrape", &body).await;
        if answer.code() == "SCRAPE_OPTION_NOT_AVAILABLE" {
            assert!(answer.status == 400 && answer.error().contains(name), "{name}: {}", answer.text);
        } else {
            assert_eq!(answer.status, 200, "{name}: {}", answer.text);
            assert!(tests.contains(&format!("\"{name}\"")), "{name} is accepted, and no test looks at what it does");
        }
    }
    let document = service.anonymous().get("/openapi.json").await.ok();
    let shared = properties().into_iter().chain(properties_of_v1()).map(|(name, _)| name);
    let listed: BTreeSet<&str> = shared.chain(WITHOUT_EFFECT.iter().copied()).collect();
    let mut count = 0;
    for name in scrape_properties("v1", &document) {
        assert!(listed.contains(name.as_str()), "not listed in this test: {name}");
        count += 1;
    }
    assert!(count > 25, "{count}");
}

/// The names of the properties of a scrape of this version, wherever their schema stands.
fn scrape_properties<'d>(version: &str, document: &'d Value) -> impl Iterator<Item = &'d String> {
    let place = format!("/paths/~1{version}~1scrape/post/requestBody/content/application~1json/schema");
    let mut schema = document.pointer(&place).unwrap_or(&Value::Null);
    if let Some(reference) = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#')) {
        schema = document.pointer(reference).unwrap_or(&Value::Null);
    }
    schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name)
}
