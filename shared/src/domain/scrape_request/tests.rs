//! Every rule of wire 3.2, 3.4 to 3.6, 4.1 and 7 that a body can break.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::domain::action::{Action, Direction, Wait};
use crate::domain::asked;
use crate::domain::scrape::{
    CacheOptions, Certificates, ChangeTracking, Entity, Format, Highlights, JsonFormat, Parsers, PdfMode, PdfParser,
    ProxyMode, Query, Question, RedactMode, Redaction, ReplaceStyle, ScrapeOptions,
};
use crate::domain::screenshot::{Screenshot, Viewport};
use crate::domain::target::RequestContext;
use crate::domain::validation::ValidationError;
use crate::error_code::ErrorCode;

const CONTEXT: RequestContext<'static> = RequestContext { knows_host: &|host| host == "intranet" };

fn scrape(mut body: Value) -> Result<ScrapeRequest, ValidationError> {
    if body.get("url").is_none() {
        body["url"] = "https://example.com".into();
    }
    parse_scrape(&body, CONTEXT)
}

fn batch(mut body: Value) -> Result<BatchRequest, ValidationError> {
    if body.get("urls").is_none() {
        body["urls"] = json!(["https://example.com"]);
    }
    parse_batch(&body, CONTEXT)
}

/// The issue at `path`, with the text of `error`.
fn issue_at(error: &ValidationError, path: &Value) -> String {
    let found = error.issues.iter().find(|i| json!(i.path) == *path);
    found.map(|i| i.code.to_owned()).unwrap_or_else(|| panic!("no issue at {path}: {:?}", error.issues))
}

#[test]
fn a_bare_url_has_every_default() {
    let request = scrape(json!({})).unwrap();
    assert_eq!(request.url, "https://example.com");
    assert_eq!(request.options, ScrapeOptions::default());
}

#[test]
fn what_another_product_is_asked_for_is_refused_in_the_words_that_clients_know() {
    let error = parse_scrape(&json!({"alexandria": {"capability": "x"}}), RequestContext::ANYWHERE).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::Forbidden, "Exchange is not enabled for this team."));
    assert!(scrape(json!({"alexandria": null})).unwrap_err().message.starts_with("Unrecognized"));
}

#[test]
fn a_url_is_kept_exactly_as_it_came() {
    for url in ["example.com/a?b&a=1", "HTTP://Example.com", "http://intranet/x", "localhost:8900/a"] {
        assert_eq!(scrape(json!({"url": url})).unwrap().url, url);
    }
}

#[test]
fn what_the_python_client_always_sends_passes() {
    let request = scrape(json!({
        "formats": ["markdown"], "onlyMainContent": true, "skipTlsVerification": true, "removeBase64Images": true,
        "blockAds": true, "storeInCache": true, "fastMode": false, "mobile": false, "maxAge": 14_400_000,
        "origin": "python-sdk@4.54.0", "integration": "_mine", "lockdown": false, "zeroDataRetention": false,
        "onlyCleanContent": false, "redactPII": false, "useMock": "none", "parsers": ["pdf"], "actions": [],
        "auditMetadata": {"username": "x"}, "threatProtection": {"mode": "off"}, "checkPromptInjection": false,
    }));
    let mut expected = ScrapeOptions::default();
    expected.cache.max_age = 14_400_000;
    expected.tls_consent = true;
    assert_eq!(request.unwrap().options, expected);
}

#[test]
fn only_what_a_caller_says_itself_lets_its_secrets_over_an_untrusted_certificate() {
    for (said, expected) in [
        (json!(null), Certificates::AnyWithoutSecrets),
        (json!(true), Certificates::Any),
        (json!(false), Certificates::Trusted),
    ] {
        let mut body = json!({"headers": {"X-Own": "1"}});
        if !said.is_null() {
            body["skipTlsVerification"] = said.clone();
        }
        let options = scrape(body).unwrap().options;
        assert_eq!(options.certificates(), expected, "{said}");
        let stored = serde_json::to_string(&options).unwrap();
        assert_eq!(serde_json::from_str::<ScrapeOptions>(&stored).unwrap().certificates(), expected, "{stored}");
    }
    // A job of an earlier release, which did not tell a default from a word of the caller's.
    let old: ScrapeOptions = serde_json::from_str(r#"{"skipTlsVerification": true}"#).unwrap();
    assert_eq!(old.certificates(), Certificates::AnyWithoutSecrets);
    assert!(!Certificates::Trusted.allow_untrusted(false) && Certificates::Any.allow_untrusted(true));
    assert!(Certificates::AnyWithoutSecrets.allow_untrusted(false));
    assert!(!Certificates::AnyWithoutSecrets.allow_untrusted(true));
}

#[test]
fn options_are_read() {
    let options = scrape(json!({
        "formats": ["html", {"type": "rawHtml"}, "links", "images", "html"], "onlyMainContent": false,
        "includeTags": ["main"], "excludeTags": [".ad", "#x"], "headers": {"User-Agent": "me", "Cookie": "a=b"},
        "waitFor": 500, "mobile": true, "skipTlsVerification": false, "timeout": 1000.0, "removeBase64Images": false,
        "location": {"country": "de", "languages": ["de-DE", "en"]}, "blockAds": false, "proxy": "stealth",
    }));
    let options = options.unwrap().options;
    assert_eq!(options.formats, vec![Format::Html, Format::RawHtml, Format::Links, Format::Images]);
    assert!(!options.only_main_content && options.mobile && !options.skip_tls_verification && !options.block_ads);
    assert_eq!((options.wait_for, options.timeout), (500, 1_000));
    assert_eq!(options.location.unwrap().country, "DE");
    assert_eq!(options.headers["Cookie"], "a=b");
    assert_eq!(options.proxy, ProxyMode::Enhanced);
    assert_eq!((options.include_tags.len(), options.exclude_tags.len()), (1, 2));
}

#[test]
fn every_rule_of_the_options_is_held() {
    for (body, path, code) in [
        (json!({"url": 5}), json!(["url"]), "invalid_type"),
        (json!({"url": null}), json!(["url"]), "invalid_type"),
        (json!({"url": "not a url"}), json!(["url"]), "invalid_format"),
        (json!({"url": "ftp://example.com"}), json!(["url"]), "custom"),
        (json!({"url": "http://nodots"}), json!(["url"]), "custom"),
        (json!({"unknown": 1}), json!([]), "unrecognized_keys"),
        (json!({"parsePDF": true}), json!([]), "unrecognized_keys"),
        (json!({"formats": "markdown"}), json!(["formats"]), "invalid_type"),
        (json!({"formats": ["nope"]}), json!(["formats", 0]), "invalid_value"),
        (json!({"formats": [5]}), json!(["formats", 0]), "invalid_union"),
        (json!({"formats": [{}]}), json!(["formats", 0, "type"]), "invalid_type"),
        (json!({"formats": [{"type": "nope"}]}), json!(["formats", 0, "type"]), "invalid_value"),
        (json!({"formats": [{"type": "markdown", "x": 1}]}), json!(["formats", 0]), "unrecognized_keys"),
        (json!({"formats": ["screenshot", {"type": "screenshot"}]}), json!(["formats"]), "custom"),
        (json!({"formats": ["screenshot@fullPage", "screenshot"]}), json!(["formats"]), "custom"),
        (json!({"formats": [{"type": "screenshot", "quality": 0}]}), json!(["formats", 0, "quality"]), "too_small"),
        (json!({"formats": [{"type": "screenshot", "quality": 101}]}), json!(["formats", 0, "quality"]), "too_big"),
        (
            json!({"formats": [{"type": "screenshot", "viewport": {"width": 7681, "height": 1}}]}),
            json!(["formats", 0, "viewport", "width"]),
            "too_big",
        ),
        (
            json!({"formats": [{"type": "screenshot", "viewport": {"width": 1, "height": 4321}}]}),
            json!(["formats", 0, "viewport", "height"]),
            "too_big",
        ),
        (
            json!({"formats": [{"type": "screenshot", "viewport": {"width": 100}}]}),
            json!(["formats", 0, "viewport", "height"]),
            "invalid_type",
        ),
        (json!({"formats": ["json", "json"]}), json!(["formats"]), "custom"),
        (json!({"formats": ["changeTracking"]}), json!(["formats"]), "custom"),
        (json!({"formats": ["rawBase64", "markdown"]}), json!(["formats"]), "custom"),
        (json!({"formats": ["question"]}), json!(["formats", 0]), "custom"),
        (json!({"formats": [{"type": "json", "systemPrompt": "x"}]}), json!(["formats", 0]), "unrecognized_keys"),
        (
            json!({"formats": [{"type": "json", "prompt": "x".repeat(10_001)}]}),
            json!(["formats", 0, "prompt"]),
            "too_big",
        ),
        (json!({"formats": [{"type": "json", "schema": "x"}]}), json!(["formats", 0, "schema"]), "invalid_type"),
        (json!({"formats": [{"type": "json", "schema": {"type": 1}}]}), json!(["formats", 0, "schema"]), "custom"),
        (json!({"formats": [{"type": "highlights", "query": ""}]}), json!(["formats", 0, "query"]), "too_small"),
        (
            json!({"formats": [{"type": "query", "prompt": "a", "mode": "x"}]}),
            json!(["formats", 0, "mode"]),
            "invalid_value",
        ),
        (
            json!({"formats": [{"type": "question", "question": "a"}, {"type": "query", "prompt": "a"}]}),
            json!(["formats"]),
            "custom",
        ),
        (
            json!({"formats": ["markdown", {"type": "changeTracking", "modes": ["x"]}]}),
            json!(["formats", 1, "modes", 0]),
            "invalid_value",
        ),
        (
            json!({"formats": [{"type": "attributes", "selectors": [{"selector": "a"}]}]}),
            json!(["formats", 0, "selectors", 0, "attribute"]),
            "invalid_type",
        ),
        (json!({"formats": [{"type": "question", "question": ""}]}), json!(["formats", 0, "question"]), "too_small"),
        (json!({"onlyMainContent": "yes"}), json!(["onlyMainContent"]), "invalid_type"),
        (json!({"includeTags": "main"}), json!(["includeTags"]), "invalid_type"),
        (json!({"includeTags": [1]}), json!(["includeTags", 0]), "invalid_type"),
        (json!({"excludeTags": ["a", " "]}), json!(["excludeTags", 1]), "custom"),
        (json!({"excludeTags": ["a".repeat(1_001)]}), json!(["excludeTags", 0]), "custom"),
        (json!({"excludeTags": vec!["a"; 201]}), json!(["excludeTags"]), "too_big"),
        (json!({"maxAge": -1}), json!(["maxAge"]), "too_small"),
        (json!({"maxAge": "1"}), json!(["maxAge"]), "invalid_type"),
        (json!({"minAge": -1}), json!(["minAge"]), "too_small"),
        (json!({"headers": []}), json!(["headers"]), "invalid_type"),
        (json!({"headers": {"a": 1}}), json!(["headers", "a"]), "invalid_type"),
        (json!({"headers": {"a b": "x"}}), json!(["headers", "a b"]), "custom"),
        (json!({"headers": {"a": "x\r\nb: c"}}), json!(["headers", "a"]), "custom"),
        (json!({"waitFor": -1}), json!(["waitFor"]), "too_small"),
        (json!({"waitFor": 60_001, "timeout": 300_000}), json!(["waitFor"]), "too_big"),
        (json!({"waitFor": 501, "timeout": 1_000}), json!(["waitFor"]), "custom"),
        (json!({"waitFor": 30_001}), json!(["waitFor"]), "custom"),
        (json!({"timeout": 999}), json!(["timeout"]), "too_small"),
        (json!({"timeout": 300_001}), json!(["timeout"]), "too_big"),
        (json!({"timeout": 1000.5}), json!(["timeout"]), "invalid_type"),
        (json!({"timeout": null}), json!(["timeout"]), "invalid_type"),
        (json!({"mobile": 1}), json!(["mobile"]), "invalid_type"),
        (json!({"location": "de"}), json!(["location"]), "invalid_type"),
        (json!({"location": {"country": "XX"}}), json!(["location", "country"]), "custom"),
        (json!({"location": {"country": "Germany"}}), json!(["location", "country"]), "custom"),
        (json!({"location": {"languages": ["a\n"]}}), json!(["location", "languages", 0]), "custom"),
        (json!({"location": {"city": "x"}}), json!(["location"]), "unrecognized_keys"),
        (json!({"proxy": "fast"}), json!(["proxy"]), "invalid_value"),
        (json!({"parsers": "pdf"}), json!(["parsers"]), "invalid_type"),
        (json!({"parsers": ["doc"]}), json!(["parsers", 0]), "invalid_value"),
        (json!({"parsers": [{"type": "pdf", "maxPages": 0}]}), json!(["parsers", 0, "maxPages"]), "too_small"),
        (json!({"parsers": [{"type": "pdf", "maxPages": 10_001}]}), json!(["parsers", 0, "maxPages"]), "too_big"),
        (json!({"parsers": [{"type": "pdf", "mode": "x"}]}), json!(["parsers", 0, "mode"]), "invalid_value"),
        (json!({"profile": {"name": ""}}), json!(["profile", "name"]), "too_small"),
        (json!({"profile": {"name": "x".repeat(129)}}), json!(["profile", "name"]), "too_big"),
        (json!({"profile": {}}), json!(["profile", "name"]), "invalid_type"),
        (json!({"profile": {"name": "a", "x": 1}}), json!(["profile"]), "unrecognized_keys"),
        (json!({"redactPII": "yes"}), json!(["redactPII"]), "invalid_union"),
        (json!({"redactPII": {"mode": "x"}}), json!(["redactPII", "mode"]), "invalid_value"),
        (json!({"redactPII": {"replaceStyle": "x"}}), json!(["redactPII", "replaceStyle"]), "invalid_value"),
        (json!({"redactPII": {"entities": ["AGE"]}}), json!(["redactPII", "entities", 0]), "invalid_value"),
        (json!({"redactPII": {"mode": "fast", "entities": ["PERSON"]}}), json!(["redactPII", "entities", 0]), "custom"),
        (json!({"redactPII": {"x": 1}}), json!(["redactPII"]), "unrecognized_keys"),
        (json!({"integration": 5}), json!(["integration"]), "invalid_type"),
        (json!({"actions": {}}), json!(["actions"]), "invalid_type"),
        (json!({"actions": vec![json!({"type": "scrape"}); 51]}), json!(["actions"]), "too_big"),
        (json!({"actions": [{"type": "jump"}]}), json!(["actions", 0, "type"]), "invalid_value"),
        (json!({"actions": [{"type": "click"}]}), json!(["actions", 0, "selector"]), "invalid_type"),
        (json!({"actions": [{"type": "wait"}]}), json!(["actions", 0, "type"]), "custom"),
        (
            json!({"actions": [{"type": "wait", "milliseconds": 1, "selector": "a"}]}),
            json!(["actions", 0, "type"]),
            "custom",
        ),
        (json!({"waitFor": 1000, "actions": [{"type": "wait", "milliseconds": 59_500}]}), json!(["actions"]), "custom"),
        (
            json!({"actions": [{"type": "scroll", "direction": "left"}]}),
            json!(["actions", 0, "direction"]),
            "invalid_value",
        ),
    ] {
        let error = scrape(body.clone()).expect_err(&body.to_string());
        assert_eq!(issue_at(&error, &path), code, "{body}");
        assert_eq!(error.code, ErrorCode::BadRequest, "{body}");
        match code {
            "invalid_type" | "invalid_union" => assert_eq!(error.message, "Bad Request", "{body}"),
            "unrecognized_keys" => assert!(error.message.starts_with("Unrecognized key in body"), "{body}"),
            _ => assert_ne!(error.message, "Bad Request", "{body}"),
        }
    }
}

#[test]
fn a_missing_url_is_named() {
    let error = parse_scrape(&json!({}), CONTEXT).unwrap_err();
    assert_eq!(issue_at(&error, &json!(["url"])), "invalid_type");
    assert_eq!(error.issues[0].more["received"], "undefined");
}

#[test]
fn the_wait_rule_says_what_its_test_looks_for() {
    let error = scrape(json!({"waitFor": 40_000, "timeout": 60_000})).unwrap_err();
    assert!(error.message.contains("waitFor must not exceed half of timeout"));
    assert!(scrape(json!({"waitFor": 30_000, "timeout": 60_000})).is_ok());
}

#[test]
fn what_a_form_was_left_empty_for_is_absent() {
    let form = json!({"url": "a.com", "prompt": "", "limit": 500, "maxConcurrency": 100, "excludePaths": [],
        "includePaths": [], "scrapeOptions": {}});
    assert_eq!(parse_crawl(&form, CONTEXT).unwrap().prompt, None);
    let actions = json!([{"type": "scroll", "selector": "", "direction": "up"},
        {"type": "wait", "selector": " ", "milliseconds": 5}]);
    assert_eq!(
        scrape(json!({ "actions": actions })).unwrap().options.actions,
        [Action::Scroll { direction: Direction::Up, selector: None }, Action::Wait(Wait::Time { milliseconds: 5 })]
    );
    let error = scrape(json!({"actions": [{"type": "wait", "selector": ""}]})).unwrap_err();
    assert_eq!(issue_at(&error, &json!(["actions", 0, "type"])), "custom");
}

#[test]
fn a_screenshot_has_its_options_and_ignores_unknown_keys_and_nulls() {
    let request = scrape(json!({"formats": [{"type": "screenshot", "fullPage": true, "quality": 80, "foo": 1,
        "viewport": {"width": 7680, "height": 4320}}]}));
    let shot =
        Screenshot { full_page: true, quality: Some(80), viewport: Some(Viewport { width: 7680, height: 4320 }) };
    assert_eq!(request.unwrap().options.formats, vec![Format::Screenshot(shot)]);
    let nulls = json!({"formats": [{"type": "screenshot", "quality": null, "viewport": null}]});
    assert_eq!(scrape(nulls).unwrap().options.screenshot(), Some(&Screenshot::default()));
    let legacy = scrape(json!({"formats": ["screenshot@fullPage"]})).unwrap();
    assert!(legacy.options.screenshot().unwrap().full_page);
}

#[test]
fn attributes_branding_and_media_are_read() {
    let selectors = json!([{"selector": "a.next", "attribute": "href"}, {"selector": "img", "attribute": "data-id"}]);
    let formats = json!([{"type": "attributes", "selectors": selectors}, "branding", {"type": "audio"}, "video"]);
    let options = scrape(json!({ "formats": formats })).unwrap().options;
    let attributes = options.attributes().unwrap();
    assert_eq!((attributes.len(), attributes[1].attribute.as_str()), (2, "data-id"));
    assert_eq!(options.formats[1..], [Format::Branding, Format::Audio, Format::Video]);
    assert!(options.needs_browser(), "computed styles are a browser's");
}

#[test]
fn products_menus_and_raw_bodies_are_read() {
    let options = |body: Value| scrape(body).unwrap().options;
    let read = options(json!({"formats": ["product", {"type": "menu"}]}));
    assert_eq!(read.formats, [Format::Product, Format::Menu]);
    assert!(!read.needs_browser());
    let raw = options(json!({"formats": ["rawBase64"], "mobile": true}));
    assert!(!raw.needs_browser(), "it is the response, and no rendered page");
    for (name, value) in [
        ("actions", json!([{"type": "wait", "milliseconds": 5}])),
        ("waitFor", json!(5)),
        ("profile", json!({"name": "x"})),
        ("redactPII", json!(true)),
        ("onlyCleanContent", json!(true)),
        ("checkPromptInjection", json!(true)),
    ] {
        let mut body = json!({"formats": ["rawBase64"]});
        body[name] = value;
        let error = scrape(body).expect_err(name);
        assert!(error.message.contains(name) && error.message.contains("rawBase64"), "{}", error.message);
    }
}

#[test]
fn lists_of_sites_are_read_everywhere_and_classification_is_refused() {
    let lists = json!({"mode": "manual-only", "blacklist": ["Bad.test", "*.ads.test"], "whitelist": null, "blockedTlds": [".zip"]});
    let context = RequestContext::ANYWHERE;
    let bodies = |threat: &Value| {
        let with = |body: Value| {
            let mut body = body;
            body["threatProtection"] = threat.clone();
            body
        };
        let page = json!({"url": "https://x.test/"});
        [
            super::parse_scrape(&with(page.clone()), context).map(|read| read.options.sites),
            super::parse_batch(&with(json!({"urls": ["https://x.test/"]})), context).map(|read| read.options.sites),
            super::parse_crawl(&with(page.clone()), context).map(|read| read.scrape.sites),
            super::parse_map(&with(page.clone()), context).map(|read| read.options.sites),
            super::parse_search(&with(json!({"query": "x"}))).map(|read| read.sites),
            super::parse_v1_scrape(&with(page), context).map(|read| read.options.sites),
        ]
    };
    for sites in bodies(&lists) {
        let sites = sites.unwrap();
        assert_eq!(sites.blocked, ["bad.test", "*.ads.test"]);
        assert_eq!((sites.blocked_tlds, sites.allowed), (vec!["zip".to_owned()], vec![]));
    }
    for accepted in
        [json!({"mode": "off", "riskScoreThreshold": 5}), json!({}), json!({"mode": "off", "blacklist": []})]
    {
        assert!(bodies(&accepted).into_iter().all(|sites| sites.unwrap().is_empty()), "{accepted}");
    }
    let classified = [
        json!({"mode": "normal"}),
        json!({"mode": "zscaler"}),
        json!({"riskScoreThreshold": 50}),
        json!({"failurePolicy": "closed"}),
    ];
    for threat in classified {
        for refused in bodies(&threat) {
            assert_eq!(refused.unwrap_err().code, ErrorCode::Forbidden, "{threat}");
        }
    }
    for wrong in [
        json!({"blacklist": ["https://x.test/"]}),
        json!({"blockedTlds": ["a.b"]}),
        json!({"mode": "on"}),
        json!(true),
        json!({"x": 1}),
    ] {
        for refused in bodies(&wrong) {
            assert_eq!(refused.unwrap_err().code, ErrorCode::BadRequest, "{wrong}");
        }
    }
    let nested = json!({"url": "https://x.test/", "threatProtection": {"blacklist": ["a.test"]},
        "scrapeOptions": {"threatProtection": {"blacklist": ["b.test"]}}});
    assert_eq!(super::parse_crawl(&nested, context).unwrap().scrape.sites.blocked, ["b.test", "a.test"]);
}

#[test]
fn formats_that_are_read_have_their_options() {
    let schema = json!({"type": "object", "properties": {"price": {"type": "number"}}});
    let formats = json!([
        "summary", {"type": "json", "prompt": "prices", "schema": schema, "checkPromptInjection": true},
        {"type": "question", "question": "a?"}, {"type": "highlights", "query": "b"},
    ]);
    let options = scrape(json!({"formats": formats, "onlyCleanContent": true})).unwrap().options;
    let json =
        JsonFormat { prompt: Some("prices".into()), schema: Some(schema), check_prompt_injection: true, learn: false };
    let question = Format::Question(Question { question: "a?".into() });
    let highlights = Format::Highlights(Highlights { query: "b".into() });
    assert_eq!(options.formats, vec![Format::Summary, Format::Json(json), question, highlights]);
    assert!(options.only_clean_content && options.checks_injection() && options.needs_text());
    let again: ScrapeOptions = serde_json::from_value(serde_json::to_value(&options).unwrap()).unwrap();
    assert_eq!(again, options);
    let tracking = json!(["markdown", {"type": "changeTracking", "modes": ["json", "git-diff"], "tag": "daily",
        "schema": null, "prompt": "prices"}]);
    let options = scrape(json!({"formats": tracking})).unwrap().options;
    let tracking = ChangeTracking {
        git_diff: true,
        json: true,
        schema: None,
        prompt: Some("prices".into()),
        tag: Some("daily".into()),
        watch: None,
    };
    assert_eq!(options.change_tracking(), Some(&tracking));
    let plain = scrape(json!({"formats": ["changeTracking", "markdown"]})).unwrap().options;
    assert_eq!(plain.change_tracking(), Some(&ChangeTracking::default()));
    let nulls = json!([{"type": "json", "prompt": null, "schema": null, "checkPromptInjection": null}]);
    let options = scrape(json!({"formats": nulls})).unwrap().options;
    assert_eq!(options.formats, vec![Format::Json(JsonFormat::default())]);
    let query = json!([{"type": "query", "prompt": "a", "mode": "directQuote"}]);
    let query = scrape(json!({"formats": query, "checkPromptInjection": true})).unwrap().options;
    assert_eq!(query.formats, vec![Format::Query(Query { prompt: "a".into(), direct_quote: true })]);
    assert!(query.check_prompt_injection);
}

#[test]
fn redaction_is_read_in_both_forms() {
    let read = |value: Value| scrape(json!({"redactPII": value})).unwrap().options.redact_pii;
    assert_eq!((read(json!(false)), read(json!(true))), (None, Some(Redaction::default())));
    assert_eq!(Redaction::default().names(), [Entity::Person, Entity::Location]);
    let fast = read(json!({"mode": "fast", "replaceStyle": null})).unwrap();
    assert_eq!((fast.entities().len(), fast.names().len()), (4, 0));
    let some = json!({"mode": "aggressive", "entities": ["EMAIL", "EMAIL", "PERSON"], "replaceStyle": "mask"});
    let expected = Redaction {
        mode: RedactMode::Aggressive,
        entities: vec![Entity::Email, Entity::Person],
        replace_style: ReplaceStyle::Mask,
    };
    assert_eq!(read(some), Some(expected));
}

#[test]
fn no_formats_means_markdown() {
    assert_eq!(scrape(json!({"formats": []})).unwrap().options.formats, vec![Format::Markdown]);
}

#[test]
fn valid_options_of_later_releases_are_refused_by_name() {
    let error = scrape(json!({"formats": ["deterministicJson"]})).expect_err("it is not built");
    assert_eq!(error.code, ErrorCode::OptionNotAvailable);
    let message = &error.message;
    assert!(message.contains("deterministicJson") && message.contains("not available yet"), "{message}");
}

#[test]
fn actions_are_read_in_order_with_their_defaults() {
    use crate::domain::action::{Action, Direction, Paper, Pdf, Wait};
    let body = json!({"actions": [
        {"type": "wait", "milliseconds": 20}, {"type": "wait", "selector": "#a", "milliseconds": null},
        {"type": "click", "selector": "a"}, {"type": "screenshot", "full_page": true, "quality": 5},
        {"type": "write", "text": ""}, {"type": "press", "key": "Enter"}, {"type": "scroll"},
        {"type": "scroll", "direction": "up", "selector": "div"}, {"type": "scrape"},
        {"type": "executeJavascript", "script": "1"}, {"type": "pdf"},
        {"type": "pdf", "format": "A4", "landscape": true, "scale": 0.5},
    ]});
    let actions = scrape(body).unwrap().options.actions;
    let shot = Screenshot { full_page: true, quality: Some(5), viewport: None };
    assert_eq!(
        actions,
        [
            Action::Wait(Wait::Time { milliseconds: 20 }),
            Action::Wait(Wait::Element { selector: "#a".into() }),
            Action::Click { selector: "a".into(), all: false },
            Action::Screenshot(shot),
            Action::Write { text: String::new() },
            Action::Press { key: "Enter".into() },
            Action::Scroll { direction: Direction::Down, selector: None },
            Action::Scroll { direction: Direction::Up, selector: Some("div".into()) },
            Action::Scrape,
            Action::ExecuteJavascript { script: "1".into() },
            Action::Pdf(Pdf { format: Paper::Letter, landscape: false, scale: 1.0 }),
            Action::Pdf(Pdf { format: Paper::A4, landscape: true, scale: 0.5 }),
        ]
    );
}

#[test]
fn the_options_of_the_cache_are_read_with_their_defaults() {
    let cache = |body: Value| scrape(body).unwrap().options.cache;
    assert_eq!(cache(json!({})), CacheOptions::default());
    assert_eq!(cache(json!({})).max_age, 172_800_000);
    let given = cache(json!({"maxAge": 5, "minAge": 0, "storeInCache": false}));
    assert_eq!((given.max_age, given.min_age, given.store_in_cache, given.lockdown), (5, Some(0), false, false));
    assert_eq!(cache(json!({"lockdown": true})).max_age, 63_072_000_000);
    assert_eq!(cache(json!({"lockdown": true, "maxAge": 7})).max_age, 7);
    assert!(scrape(json!({"zeroDataRetention": true})).unwrap().options.zero_retention);
    for body in [json!({"zeroDataRetention": true}), json!({"scrapeOptions": {"zeroDataRetention": true}})] {
        let mut body = body;
        body["url"] = "https://a.com".into();
        assert!(crawl(body).unwrap().scrape.zero_retention);
    }
}

#[test]
fn parsers_say_which_files_are_read_and_how() {
    let parsers = |value: Value| scrape(json!({"parsers": value})).unwrap().options.parsers;
    assert_eq!(scrape(json!({})).unwrap().options.parsers, Parsers::default());
    assert_eq!(parsers(json!(["pdf"])), Parsers::default());
    assert!(parsers(json!(["pdf", {"type": "image"}])).image);
    assert_eq!(parsers(json!([])), Parsers { pdf: None, image: false });
    let pdf = parsers(
        json!([{"type": "pdf", "mode": "ocr", "maxPages": 10_000, "pages": true, "pageMarkers": true, "blocks": true}]),
    )
    .pdf;
    let all = PdfParser { mode: PdfMode::Ocr, max_pages: Some(10_000), pages: true, page_markers: true, blocks: true };
    assert_eq!(pdf, Some(all));
    let older = parsers(json!([{"type": "pdf", "pageMarkdown": true}])).pdf;
    assert_eq!(older, Some(PdfParser { pages: true, ..PdfParser::default() }));
    let nulls = json!([{"type": "pdf", "mode": null, "maxPages": null, "pages": null, "blocks": null}]);
    assert_eq!(parsers(nulls).pdf, Some(PdfParser::default()));
}

#[test]
fn a_batch_keeps_order_and_duplicates_and_lists_what_it_skips() {
    let request = batch(json!({"urls": ["b.com", "ftp://x.com", "a.com", "b.com", ""], "origin": "js-sdk"})).unwrap();
    assert_eq!(request.urls, ["b.com", "a.com", "b.com"]);
    assert_eq!(request.invalid_urls, Some(vec!["ftp://x.com".to_owned(), String::new()]));
    assert!(!request.has_options);
    let strict = batch(json!({"ignoreInvalidURLs": false, "timeout": 2_000})).unwrap();
    assert_eq!((strict.invalid_urls, strict.has_options), (None, true));
}

#[test]
fn every_rule_of_a_batch_is_held() {
    for (body, path, code) in [
        (json!({"urls": []}), json!(["urls"]), "too_small"),
        (json!({"urls": "a.com"}), json!(["urls"]), "invalid_type"),
        (json!({"urls": ["a.com", 5]}), json!(["urls", 1]), "invalid_type"),
        (json!({"urls": ["a.com", "ftp://b"], "ignoreInvalidURLs": false}), json!(["urls", 1]), "custom"),
        (json!({"url": "a.com"}), json!([]), "unrecognized_keys"),
        (json!({"maxConcurrency": 0}), json!(["maxConcurrency"]), "too_small"),
        (json!({"appendToId": "x"}), json!(["appendToId"]), "invalid_format"),
        (json!({"webhook": 5}), json!(["webhook"]), "invalid_union"),
        (json!({"webhook": "nowhere"}), json!(["webhook"]), "invalid_format"),
        (json!({"webhook": "ftp://a.com"}), json!(["webhook"]), "custom"),
        (json!({"webhook": {}}), json!(["webhook", "url"]), "invalid_type"),
        (json!({"webhook": {"url": "x"}}), json!(["webhook", "url"]), "invalid_format"),
        (json!({"webhook": {"url": "http://a.com", "x": 1}}), json!(["webhook"]), "unrecognized_keys"),
        (
            json!({"webhook": {"url": "http://a.com", "events": ["end"]}}),
            json!(["webhook", "events", 0]),
            "invalid_value",
        ),
        (
            json!({"webhook": {"url": "http://a.com", "headers": {"a": 1}}}),
            json!(["webhook", "headers", "a"]),
            "invalid_type",
        ),
        (
            json!({"webhook": {"url": "http://a.com", "headers": {"X-A": "1", "Content-length": "3"}}}),
            json!(["webhook", "headers", "Content-length"]),
            "custom",
        ),
        (
            json!({"webhook": {"url": "http://a.com", "headers": {"Proxy-Authorization": "Basic eA=="}}}),
            json!(["webhook", "headers", "Proxy-Authorization"]),
            "custom",
        ),
        (
            json!({"webhook": {"url": "http://a.com", "headers": {"Host": "b.com"}}}),
            json!(["webhook", "headers", "Host"]),
            "custom",
        ),
        (json!({"webhook": {"url": "http://a.com", "metadata": 1}}), json!(["webhook", "metadata"]), "invalid_type"),
    ] {
        let error = batch(body.clone()).expect_err(&body.to_string());
        assert_eq!(issue_at(&error, &path), code, "{body}");
    }
}

#[test]
fn a_field_of_a_batch_is_its_own_or_an_option_of_its_pages() {
    // Which of the two decides whether an append brings options of its own.
    let of_batch = asked::fields_of(|| batch(json!({})));
    let of_scrape = asked::fields_of(|| scrape(json!({})));
    let own: BTreeSet<&str> = super::batch::OWN_FIELDS.iter().copied().collect();
    let nobodys: Vec<_> = of_batch.difference(&of_scrape).filter(|name| !own.contains(*name)).collect();
    assert!(nobodys.is_empty(), "not in OWN_FIELDS, and no option of a scrape: {nobodys:?}");
    let unread: Vec<_> = own.difference(&of_batch).collect();
    assert!(unread.is_empty(), "in OWN_FIELDS, and not read: {unread:?}");
    let page = include_str!("../../../../docs/wire.md");
    let untold: Vec<_> = own.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(untold.is_empty(), "not in docs/wire.md: {untold:?}");
}

#[test]
fn a_batch_without_one_valid_url_is_a_plain_400() {
    let error = batch(json!({"urls": ["nodots", "ftp://x.com"]})).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::Invalid, "No valid URLs provided"));
}

#[test]
fn a_webhook_is_a_url_or_an_object() {
    let plain = batch(json!({"webhook": "http://127.0.0.1:9/hook"})).unwrap().webhook.unwrap();
    assert_eq!((plain.url.as_str(), plain.events.len()), ("http://127.0.0.1:9/hook", 0));
    let full = batch(json!({"webhook": {"url": "https://a.com/h", "headers": {"X-A": "b"}, "metadata": {"k": [1]},
        "events": ["page", "completed"]}}));
    let full = full.unwrap().webhook.unwrap();
    assert_eq!((full.headers["X-A"].as_str(), full.events.len()), ("b", 2));
    assert_eq!(full.metadata["k"], json!([1]));
}

fn crawl(body: Value) -> Result<CrawlRequest, ValidationError> {
    parse_crawl(&body, CONTEXT)
}

#[test]
fn a_crawl_has_its_options_and_those_of_its_pages() {
    // What the Python client sends for a bare call with one option, and null where its models do.
    let request = crawl(json!({
        "url": "example.com", "limit": 5, "delay": null, "ignoreRobotsTxt": false, "deduplicateSimilarURLs": true,
        "zeroDataRetention": false, "scrapeOptions": {"formats": ["links"], "onlyMainContent": false, "headers": null},
        "webhook": {"url": "https://a.com/h", "events": ["started"]}, "prompt": "all of it", "origin": "python-sdk"
    }));
    let request = request.unwrap();
    assert_eq!((request.url.as_str(), request.options.limit), ("example.com", 5));
    assert!(!request.scrape.only_main_content && request.webhook.is_some());
    assert_eq!(request.scrape.formats, [crate::domain::scrape::Format::Links]);
    assert_eq!(request.prompt.as_deref(), Some("all of it"));
    assert_eq!(crawl(json!({"url": "http://a.com"})).unwrap().scrape, ScrapeOptions::default());
}

#[test]
fn every_rule_of_a_crawl_is_held() {
    for (body, path, code) in [
        (json!({}), json!(["url"]), "invalid_type"),
        (json!({"url": "ftp://a.com"}), json!(["url"]), "custom"),
        (json!({"url": "http://nodots"}), json!(["url"]), "custom"),
        (json!({"url": "a.com", "limit": 0}), json!(["limit"]), "too_small"),
        (json!({"url": "a.com", "includePaths": ["("]}), json!(["includePaths", 0]), "custom"),
        (json!({"url": "a.com", "prompt": "x".repeat(10_001)}), json!(["prompt"]), "too_big"),
        (json!({"url": "a.com", "scrapeOptions": {"timeout": 5}}), json!(["scrapeOptions", "timeout"]), "too_small"),
        (json!({"url": "a.com", "scrapeOptions": {"url": "x"}}), json!(["scrapeOptions"]), "unrecognized_keys"),
        (json!({"url": "a.com", "scrapeOptions": []}), json!(["scrapeOptions"]), "invalid_type"),
        (json!({"url": "a.com", "formats": ["links"]}), json!([]), "unrecognized_keys"),
        (json!({"url": "a.com", "webhook": {"url": "x"}}), json!(["webhook", "url"]), "invalid_format"),
    ] {
        let error = crawl(body.clone()).expect_err(&body.to_string());
        assert_eq!(issue_at(&error, &path), code, "{body}");
    }
}

#[test]
fn options_of_a_prompt_yield_to_those_of_the_body() {
    let body = json!({"url": "a.com", "limit": 5, "delay": null});
    let options = json!({"url": "b.com", "limit": 9, "delay": 2, "allowSubdomains": true});
    let merged = with_prompt_options(&body, options.as_object().unwrap());
    assert_eq!(merged, json!({"url": "a.com", "limit": 5, "delay": 2, "allowSubdomains": true}));
}
