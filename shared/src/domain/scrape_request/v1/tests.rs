#![allow(clippy::unwrap_used, reason = "tests")]
use serde_json::json;

use super::*;
use crate::domain::asked;
use crate::domain::crawl::{CrawlOptions, SitemapMode};
use crate::domain::scrape::{Certificates, ChangeTracking, Format, JsonFormat, ProxyMode};
use crate::domain::screenshot::Screenshot;
use crate::error_code::ErrorCode;

fn with_url(mut body: Value) -> Value {
    body["url"] = json!("https://example.com");
    body
}

fn scrape(body: Value) -> Result<ScrapeRequest, ValidationError> {
    parse_v1_scrape(&with_url(body), RequestContext::ANYWHERE)
}

fn crawl(body: Value) -> Result<CrawlRequest, ValidationError> {
    parse_v1_crawl(&with_url(body), RequestContext::ANYWHERE)
}

fn map(body: Value) -> Result<MapRequest, ValidationError> {
    parse_v1_map(&with_url(body), RequestContext::ANYWHERE)
}

fn batch(body: Value) -> Result<BatchRequest, ValidationError> {
    parse_v1_batch(&body, RequestContext::ANYWHERE)
}

/// Whether an issue at this path says so.
fn says<T: std::fmt::Debug>(read: Result<T, ValidationError>, path: &Value, words: &str) {
    let error = read.unwrap_err();
    let is_said = error.issues.iter().any(|issue| json!(issue.path) == *path && issue.message.contains(words));
    assert!(is_said, "{words} at {path}: {:?}", error.issues);
}

#[test]
fn a_bare_scrape_has_the_defaults_of_version_1() {
    let read = scrape(json!({})).unwrap();
    assert_eq!((read.version, &read.options), (ApiVersion::V1, &options::default_options()));
    let options = read.options;
    assert_eq!((options.timeout, options.cache.max_age, options.proxy), (30_000, 0, ProxyMode::Basic));
    assert_eq!((options.certificates(), options.formats), (Certificates::Trusted, vec![Format::Markdown]));
    assert!(options.cache.store_in_cache && options.parsers.pdf.is_some() && options.only_main_content);
    let nulls = json!({"formats": null, "timeout": null, "jsonOptions": null, "agent": null, "parsePDF": null});
    assert_eq!(scrape(nulls).unwrap().options, options::default_options());
}

#[test]
fn a_llms_txt_is_a_map_with_few_links() {
    let read = |body: Value| parse_v1_llmstxt(&with_url(body), RequestContext::ANYWHERE);
    // As the clients send it.
    let sent =
        json!({"maxUrls": null, "showFullText": false, "cache": null, "__experimental_stream": null, "origin": "x"});
    let options = read(sent).unwrap().options;
    assert_eq!((options.limit, options.ignore_cache, options.llms_txt), (10, false, true));
    let stored = serde_json::to_string(&options).unwrap();
    assert_eq!(serde_json::from_str::<MapOptions>(&stored).unwrap(), options);
    assert!(!map(json!({})).unwrap().options.llms_txt);
    assert!(read(json!({"cache": false})).unwrap().options.ignore_cache);
    says(read(json!({"maxUrls": 0})), &json!(["maxUrls"]), "at least 1");
    says(read(json!({"maxUrls": 5_001})), &json!(["maxUrls"]), "at most 5000");
    says(read(json!({"depth": 1})), &json!([]), "Unrecognized");
    let whole = read(json!({"showFullText": true})).unwrap_err();
    assert_eq!(whole.code, ErrorCode::OptionNotAvailable);
}

#[test]
fn every_option_is_read() {
    let read = scrape(json!({
        "formats": ["content", "markdown", "html", "rawHtml", "links", "screenshot@fullPage", "summary", "json", "changeTracking"],
        "jsonOptions": {"prompt": "the owner", "systemPrompt": "You are brief.", "schema": {"type": "object"}, "mode": "llm"},
        "changeTrackingOptions": {"modes": ["git-diff"], "tag": null, "prompt": "", "schema": null},
        "parsePDF": false, "geolocation": {"country": "de", "languages": ["de-DE"]}, "maxAge": 60_000,
        "storeInCache": false, "skipTlsVerification": true, "proxy": "auto", "timeout": 5_000, "waitFor": 100,
        "mobile": true, "actions": [{"type": "wait", "milliseconds": 10}], "zeroDataRetention": false, "fastMode": true,
        "headers": {"X-Own": "1"}, "origin": "python-sdk@4", "auditMetadata": {"username": "x"},
    }))
    .unwrap();
    let options = read.options;
    let json = JsonFormat {
        prompt: Some("You are brief.\n\nthe owner".to_owned()),
        schema: Some(json!({"type": "object"})),
        check_prompt_injection: false,
        learn: false,
    };
    assert_eq!(
        options.formats,
        vec![
            Format::Markdown,
            Format::Html,
            Format::RawHtml,
            Format::Links,
            Format::Screenshot(Screenshot { full_page: true, ..Screenshot::default() }),
            Format::Summary,
            Format::Json(json),
            Format::ChangeTracking(ChangeTracking { git_diff: true, ..ChangeTracking::default() }),
        ]
    );
    assert_eq!((options.parsers.pdf, options.cache.max_age, options.cache.store_in_cache), (None, 60_000, false));
    assert_eq!((options.skip_tls_verification, options.tls_consent, options.proxy), (true, true, ProxyMode::Auto));
    assert_eq!(options.location.unwrap().country, "DE");
    let both = json!({"location": {"country": "FR"}, "geolocation": {"country": "DE"}});
    assert_eq!(scrape(both).unwrap().options.location.unwrap().country, "FR");
}

#[test]
fn data_is_asked_for_under_either_name() {
    let options = json!({"prompt": "the owner"});
    let wanted = |body: Value| scrape(body).unwrap().options.formats;
    let json = wanted(json!({"formats": ["json"], "jsonOptions": options}));
    assert_eq!(json, wanted(json!({"formats": ["extract"], "extract": options})));
    assert_eq!(json, wanted(json!({"formats": ["json", "extract"], "jsonOptions": options, "extract": options})));
    let text = "corresponding options must be provided";
    for (body, place) in [
        (json!({"formats": ["json"]}), "jsonOptions"),
        (json!({"formats": ["json"], "extract": options}), "extract"),
        (json!({"formats": ["extract"]}), "extract"),
        (json!({"jsonOptions": options}), "jsonOptions"),
    ] {
        says(scrape(body), &json!([place]), text);
    }
    let other = json!({"prompt": "the price"});
    let both = json!({"formats": ["json", "extract"], "jsonOptions": options, "extract": other});
    says(scrape(both), &json!(["extract"]), "must be the same");
}

#[test]
fn what_is_wrong_with_a_scrape_is_named() {
    for (body, path, words) in [
        (json!({"formats": [{"type": "markdown"}]}), json!(["formats", 0]), "expected string"),
        (json!({"formats": ["images"]}), json!(["formats", 0]), "expected one of"),
        (json!({"formats": ["screenshot", "screenshot@fullPage"]}), json!(["formats"]), "only specify one screenshot"),
        (json!({"formats": ["changeTracking"]}), json!(["formats"]), "requires the markdown format"),
        (json!({"changeTrackingOptions": {}}), json!(["changeTrackingOptions"]), "needs the changeTracking format"),
        (json!({"jsonOptions": {"schema": {"type": 5}}, "formats": ["json"]}), json!(["jsonOptions", "schema"]), ""),
        (json!({"jsonOptions": {"mode": "fast"}, "formats": ["json"]}), json!(["jsonOptions", "mode"]), "one of"),
        (json!({"jsonOptions": {"x": 1}, "formats": ["json"]}), json!(["jsonOptions"]), "Unrecognized"),
        (json!({"agent": {"x": 1}}), json!(["agent"]), "Unrecognized"),
        (json!({"timeout": 1_000, "waitFor": 600}), json!(["waitFor"]), "half of timeout"),
        (json!({"parsePDF": "yes"}), json!(["parsePDF"]), "expected boolean"),
        (json!({"geolocation": {"country": "xx"}}), json!(["geolocation", "country"]), "country"),
        (json!({"parsers": []}), json!([]), "parsers"),
        (json!({"lockdown": true}), json!([]), "lockdown"),
    ] {
        says(scrape(body), &path, words);
    }
    let error = scrape(json!({"parsers": []})).unwrap_err();
    assert!(error.message.contains("the v1 API documentation"), "{}", error.message);
}

#[test]
fn agents_of_scrapes_are_refused_by_name() {
    for (body, name) in [
        (json!({"agent": {"model": "FIRE-1", "prompt": "click"}}), "agent is not available"),
        (json!({"formats": ["json"], "jsonOptions": {"agent": {"model": "FIRE-1"}}}), "The agent of jsonOptions"),
    ] {
        let error = scrape(body).unwrap_err();
        assert_eq!(error.code, ErrorCode::OptionNotAvailable);
        assert!(error.message.starts_with(name), "{}", error.message);
    }
}

#[test]
fn a_crawl_has_its_older_names() {
    // What Dify sends to try a key.
    let dify = json!({"includePaths": [], "excludePaths": [], "limit": 1, "scrapeOptions": {"onlyMainContent": true}});
    let read = crawl(dify).unwrap();
    assert_eq!(read.options, CrawlOptions { limit: 1, max_depth: Some(10), ..CrawlOptions::default() });
    assert_eq!((read.version, &read.scrape), (ApiVersion::V1, &options::default_options()));
    assert_eq!(crawl(json!({})).unwrap().scrape, options::default_options());
    let options = crawl(json!({
        "maxDepth": 2, "maxDiscoveryDepth": 3, "allowBackwardLinks": true, "ignoreSitemap": true, "delay": 1,
        "scrapeOptions": {"formats": ["markdown", "links"], "timeout": 30_000}, "webhook": null, "allowSubdomains": true,
    }));
    let options = options.unwrap().options;
    assert_eq!(
        (options.max_depth, options.max_discovery_depth, options.sitemap),
        (Some(2), Some(3), SitemapMode::Skip)
    );
    assert!(options.crawl_entire_domain && options.allow_subdomains && options.delay == Some(1.0));
    assert_eq!(options.to_json()["maxDepth"], 2);
    assert!(crawl(json!({"crawlEntireDomain": true})).unwrap().options.crawl_entire_domain);
    says(crawl(json!({"prompt": "the blog"})), &json!([]), "prompt");
    says(crawl(json!({"sitemap": "skip"})), &json!([]), "sitemap");
    says(crawl(json!({"maxDepth": -1})), &json!(["maxDepth"]), "at least 0");
    says(crawl(json!({"scrapeOptions": {"formats": ["x"]}})), &json!(["scrapeOptions", "formats", 0]), "one of");
}

#[test]
fn a_batch_of_version_1_has_these_fields_of_its_own_and_no_newer_one() {
    let of_batch = asked::fields_of(|| batch(json!({"urls": ["https://example.com"]})));
    let of_scrape = asked::fields_of(|| scrape(json!({})));
    let own: Vec<&str> = of_batch.difference(&of_scrape).copied().collect();
    assert_eq!(own, ["appendToId", "ignoreInvalidURLs", "maxConcurrency", "urls", "webhook"]);
}

#[test]
fn a_batch_refuses_invalid_urls_unless_it_is_told_to_skip_them() {
    let urls = json!(["https://example.com", "ftp://example.com"]);
    says(batch(json!({"urls": urls})), &json!(["urls", 1]), "unsupported protocol");
    let read =
        batch(json!({"urls": urls, "ignoreInvalidURLs": true, "formats": ["links"], "maxConcurrency": 2})).unwrap();
    assert_eq!(read.invalid_urls, Some(vec!["ftp://example.com".to_owned()]));
    assert_eq!(
        (read.options.formats, read.options.timeout, read.version),
        (vec![Format::Links], 30_000, ApiVersion::V1)
    );
    let read =
        batch(json!({"urls": ["https://example.com"], "webhook": {"url": "https://x.test/", "events": ["page"]}}));
    assert_eq!(read.unwrap().invalid_urls, None);
}

#[test]
fn a_map_has_its_older_names() {
    let sitemap = |body: Value| map(body).unwrap().options.sitemap;
    assert_eq!(sitemap(json!({"timeout": 30_000, "useIndex": true})), SitemapMode::Include);
    assert_eq!(sitemap(json!({"ignoreSitemap": true, "sitemapOnly": false})), SitemapMode::Skip);
    assert_eq!(sitemap(json!({"sitemapOnly": true})), SitemapMode::Only);
    says(map(json!({"sitemapOnly": true, "ignoreSitemap": true})), &json!(["sitemapOnly"]), "cannot both");
    says(map(json!({"limit": 30_001})), &json!(["limit"]), "at most 30000");
    says(map(json!({"sitemap": "only"})), &json!([]), "sitemap");
}

#[test]
fn a_search_is_one_of_the_web() {
    // What the JavaScript client sends by itself.
    let js = json!({"query": " rust ", "limit": 5, "lang": "en", "country": "us", "timeout": 60_000, "origin": "js-sdk",
        "scrapeOptions": {"formats": []}});
    let read = parse_v1_search(&js).unwrap();
    assert_eq!((read.query.words.as_str(), &read.sources, read.scrape), ("rust", &vec![Source::Web], None));
    assert_eq!((read.query.country.as_deref(), read.query.language.as_deref()), (Some("US"), Some("en")));
    assert!(!read.highlights && read.version == ApiVersion::V1);
    let scraped = json!({"query": "x", "scrapeOptions": {"formats": ["markdown"], "timeout": 30_000}});
    assert_eq!(parse_v1_search(&scraped).unwrap().scrape, Some(options::default_options()));
    says(parse_v1_search(&json!({"query": "x", "sources": ["web"]})), &json!([]), "sources");
    says(parse_v1_search(&json!({"query": ""})), &json!(["query"]), "at least 1");
    let tracked = json!({"query": "x", "scrapeOptions": {"formats": ["markdown", "changeTracking"]}});
    says(parse_v1_search(&tracked), &json!(["scrapeOptions", "changeTracking"]), "not possible");
}
