#![allow(clippy::unwrap_used, reason = "tests")]
use serde_json::json;

use super::*;
use crate::clock::Stopwatch;
use crate::domain::crawl::CrawlOptions;

const BLOG: &str = "/blogs?([./].*)?$";
const DOCS: &str = "/(docs?|documentation)([./].*)?$";

fn read_for(url: &str, prompt: &str) -> PromptOptions {
    let read = read(&Url::parse(url).unwrap(), prompt);
    assert!(CrawlOptions::parse(&Value::Object(read.options.clone())).is_ok(), "{prompt}: {read:?}");
    read
}

/// Prompts that are understood to the last word.
#[test]
fn prompts_become_options() {
    let cases = [
        ("Crawl the whole site", json!({"crawlEntireDomain": true})),
        ("Crawl example.com", json!({})),
        ("Only crawl /blog", json!({"includePaths": ["^/blog(/.*)?$"]})),
        ("Crawl only the blog", json!({"includePaths": [BLOG]})),
        ("Get all blog posts, at most 50 pages", json!({"includePaths": [BLOG], "limit": 50})),
        ("Scrape the docs and skip the blog", json!({"includePaths": [DOCS], "excludePaths": [BLOG]})),
        (
            "Everything except /admin, /login and *.pdf",
            json!({"crawlEntireDomain": true, "excludePaths": ["^/admin(/.*)?$", "^/login(/.*)?$", "\\.pdf$"]}),
        ),
        ("Don't crawl the careers section", json!({"excludePaths": ["/careers?([./].*)?$"]})),
        (
            "News, events and press pages only",
            json!({"includePaths": ["/news?([./].*)?$", "/events?([./].*)?$", "/press([./].*)?$"]}),
        ),
        (
            "Find product pages and case study pages",
            json!({"includePaths": ["/products?([./].*)?$", "/case[-_]?stud(y|ies)([./].*)?$"]}),
        ),
        ("Crawl up to 100 pages", json!({"limit": 100})),
        ("limit of 1,500 urls", json!({"limit": 1500})),
        ("Stop after two thousand pages.", json!({"limit": 2000})),
        ("fewer than 20 pages please", json!({"limit": 19})),
        ("the first ten pages of the documentation", json!({"limit": 10, "includePaths": [DOCS]})),
        ("Only this page", json!({"limit": 1})),
        ("2k pages max", json!({"limit": 2000})),
        ("depth 3", json!({"maxDiscoveryDepth": 3})),
        ("Go two levels deep", json!({"maxDiscoveryDepth": 2})),
        ("max depth of 1 and no more than 30 pages", json!({"maxDiscoveryDepth": 1, "limit": 30})),
        ("Do not follow any links", json!({"maxDiscoveryDepth": 0})),
        ("Pages up to 3 clicks from the home page", json!({"maxDiscoveryDepth": 3})),
        ("Include subdomains", json!({"allowSubdomains": true})),
        (
            "without subdomains and don't follow external links",
            json!({"allowSubdomains": false, "allowExternalLinks": false}),
        ),
        ("follow links to other sites", json!({"allowExternalLinks": true})),
        ("Stay on this domain", json!({"allowExternalLinks": false})),
        ("Use only the sitemap", json!({"sitemap": "only"})),
        ("ignore the sitemap", json!({"sitemap": "skip"})),
        ("Use the sitemap too", json!({"sitemap": "include"})),
        ("Ignore query parameters", json!({"ignoreQueryParameters": true})),
        ("keep query strings", json!({"ignoreQueryParameters": false})),
        ("Wait 2 seconds between requests", json!({"delay": 2.0})),
        ("with a half hearted pause of 500 ms", json!({"delay": 0.5})),
        ("one page per second", json!({"delay": 1.0})),
        ("a 3-second delay between pages", json!({"delay": 3.0})),
        ("at most 30 requests per minute", json!({"delay": 2.0})),
        ("two pages at a time", json!({"maxConcurrency": 2})),
        ("Ignore robots.txt", json!({"ignoreRobotsTxt": true})),
        ("Please respect the robots.txt rules", json!({"ignoreRobotsTxt": false})),
        ("Use the user agent MyBot and obey robots.txt", json!({"robotsUserAgent": "MyBot", "ignoreRobotsTxt": false})),
        ("crawl as Googlebot", json!({"robotsUserAgent": "Googlebot"})),
        ("deduplicate similar URLs", json!({"deduplicateSimilarURLs": true})),
        ("keep duplicate pages", json!({"deduplicateSimilarURLs": false})),
        ("Only child pages", json!({"crawlEntireDomain": false})),
        ("no pdf files, no images", json!({"excludePaths": ["\\.pdf$", "\\.(png|jpe?g|gif|webp|svg|avif)$"]})),
        ("https://example.com/guides/* only", json!({"includePaths": ["^/guides/.*$"]})),
        ("the \"release notes\" section", json!({"includePaths": ["/release[-_]?notes?([./].*)?$"]})),
        (
            "Crawl docs/api, 3 levels deep, max 200 pages, skip /docs/api/v1, no subdomains, wait 1 second between requests \
            and ignore query parameters.",
            json!({"includePaths": ["/docs/api(/.*)?$"], "excludePaths": ["^/docs/api/v1(/.*)?$"], "maxDiscoveryDepth": 3,
                "limit": 200, "allowSubdomains": false, "delay": 1.0, "ignoreQueryParameters": true}),
        ),
        (
            "I\u{2019}d like you to crawl this website\u{2019}s blog, but not the tags or authors pages",
            json!({"includePaths": [BLOG], "excludePaths": ["/tags?([./].*)?$", "/authors?([./].*)?$"]}),
        ),
    ];
    let mut wrong = Vec::new();
    for (prompt, expected) in cases {
        let read = read_for("https://example.com/", prompt);
        let got = Value::Object(read.options);
        let is_clear = read.warning.as_deref().is_none_or(|w| !w.contains("Not understood") || prompt.contains("half"));
        if got != expected || !is_clear {
            wrong.push(format!("{prompt}\n  expected {expected}\n  got      {got} {:?}", read.warning));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_not_understood_is_named() {
    for (prompt, words) in [
        ("Get blog posts about whales", vec!["whales"]),
        ("Crawl the site and translate it into Klingon", vec!["translate", "Klingon"]),
        ("/docs from 2023 onwards", vec!["2023 onwards"]),
        ("see https://other.example/x", vec!["other.example"]),
        ("wait 5 minutes between pages", vec!["at most 60"]),
        ("", vec!["nothing that changes"]),
        ("hello", vec!["nothing that changes"]),
        ("\u{4f60}\u{597d}", vec!["\u{4f60}\u{597d}"]),
    ] {
        let warning = read_for("https://example.com/", prompt).warning.unwrap_or_default();
        for word in words {
            assert!(warning.contains(word), "{prompt}: {warning}");
        }
    }
}

#[test]
fn a_path_beside_the_start_page_opens_the_domain() {
    let read = |prompt| Value::Object(read_for("https://example.com/docs", prompt).options);
    assert_eq!(read("only /blog"), json!({"crawlEntireDomain": true, "includePaths": ["^/blog(/.*)?$"]}));
    assert_eq!(read("only /docs/api"), json!({"includePaths": ["^/docs/api(/.*)?$"]}));
    assert_eq!(read("skip /blog"), json!({"excludePaths": ["^/blog(/.*)?$"]}));
    assert_eq!(read("starting at /docs, 5 pages"), json!({"limit": 5}));
}

#[test]
fn hostile_prompts_are_read_in_bounded_time() {
    let started = Stopwatch::start();
    for prompt in [
        "skip the blog and ".repeat(550),
        "/a*".repeat(3_300),
        "a ".repeat(5_000),
        "\"".repeat(10_000),
        "no, ".repeat(2_500),
        "\u{1f600}".repeat(10_000),
        "the (((((((".repeat(900),
        "depth 99999999999999999999 limit 99999999999999999999 delay 1e9 seconds".to_owned(),
        "/blog[a-z".repeat(1_000),
    ] {
        let read = read_for("https://example.com/", &prompt);
        assert!(read.warning.is_none_or(|warning| warning.len() < 2_000));
    }
    assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
}
