//! What a crawl may be told (spec 2.8, wire 5.1), and which pages belong to it: [`scope`] says which links are
//! followed, [`address`] which addresses are one page.

pub mod address;
pub mod scope;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::api_version::ApiVersion;
use super::states::states;
use super::validation::{Fields, Issues, Path, ValidationError, refusal};
use crate::error_code::ErrorCode;

/// Pages of a crawl that names no limit (wire 5.1).
pub const DEFAULT_LIMIT: i64 = 10_000;
/// Segments of a path below the start page's in a crawl of version 1 that names no `maxDepth` (wire 26).
const V1_DEPTH: i64 = 10;
/// Most patterns in `includePaths` and in `excludePaths`.
const MAX_PATTERNS: i64 = 100;
/// Longest pattern, characters.
const MAX_PATTERN_LENGTH: usize = 1_000;
/// Bounds of `delay`, seconds (wire 5.1).
const DELAY_SECONDS: std::ops::RangeInclusive<f64> = 0.0..=60.0;
/// Longest `prompt`, characters (spec 8).
pub const MAX_PROMPT: i64 = 10_000;

states! {
    /// State of an address in a crawl's frontier.
    AddressState {
        /// It has a page.
        Taken = "taken",
        /// It waits for room under the limit.
        Waiting = "waiting",
        /// robots.txt forbids it.
        Blocked = "blocked",
    }
    /// How an address goes on.
    AddressMove {
        /// There is room for its page.
        Admit: Waiting => Taken,
        /// Its page finds that robots.txt forbids it.
        Forbid: Taken => Blocked,
        /// A page that was fetched turns out to be at this address, too.
        Join: Blocked => Taken,
    }
}

/// How the site's sitemaps are used (wire 5.1, 9).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SitemapMode {
    /// Not at all.
    Skip,
    /// Beside the links of the pages.
    #[default]
    Include,
    /// Nothing else: links of the pages are not followed.
    Only,
}

impl SitemapMode {
    /// Reads `sitemap`.
    pub(super) fn read(fields: &mut Fields<'_, '_>) -> Self {
        match fields.choice("sitemap", &["skip", "include", "only"]) {
            Some("skip") => Self::Skip,
            Some("only") => Self::Only,
            _ => Self::Include,
        }
    }
}

/// Options of a crawl after validation; serialised as they stand on the wire.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CrawlOptions {
    /// Patterns: only pages that match one. Empty: all.
    pub include_paths: Vec<String>,
    /// Patterns of pages to leave out; they win over `include_paths`.
    pub exclude_paths: Vec<String>,
    /// Links from the start page, 0 upwards: 0 is the start page and the sitemap's pages. `None`: no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_discovery_depth: Option<i64>,
    /// Segments of the path below the start page's, 0 upwards: an option of version 1. `None`: no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<i64>,
    /// Most pages, 1 upwards.
    pub limit: i64,
    /// Follow links of the site that are not below the start page's path.
    pub crawl_entire_domain: bool,
    /// Follow links to other sites.
    pub allow_external_links: bool,
    /// Follow links to subdomains, and to other hosts of the same registered domain.
    pub allow_subdomains: bool,
    pub sitemap: SitemapMode,
    /// Addresses that differ only in the query are one page.
    pub ignore_query_parameters: bool,
    /// Variants of an address that nearly always show the same page are one page.
    #[serde(rename = "deduplicateSimilarURLs")]
    pub deduplicate_similar_urls: bool,
    pub ignore_robots_txt: bool,
    /// The agent whose rules of robots.txt are followed; `None`: ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub robots_user_agent: Option<String>,
    /// Patterns are tested on the whole address, not on its path.
    #[serde(rename = "regexOnFullURL")]
    pub regex_on_full_url: bool,
    /// Least seconds from one page to the next, above 0 and at most 60; pages then go one at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<f64>,
    /// Pages at once, 1 upwards; the team's limit caps it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<i64>,
}

impl Default for CrawlOptions {
    fn default() -> Self {
        Self {
            include_paths: Vec::new(),
            exclude_paths: Vec::new(),
            max_discovery_depth: None,
            max_depth: None,
            limit: DEFAULT_LIMIT,
            crawl_entire_domain: false,
            allow_external_links: false,
            allow_subdomains: false,
            sitemap: SitemapMode::Include,
            ignore_query_parameters: false,
            deduplicate_similar_urls: true,
            ignore_robots_txt: false,
            robots_user_agent: None,
            regex_on_full_url: false,
            delay: None,
            max_concurrency: None,
        }
    }
}

impl CrawlOptions {
    /// Reads an object that holds nothing but these options, each of which may be missing or null: what a reader of
    /// prompts has written.
    ///
    /// # Errors
    /// Every wrong field, patterns that do not compile included.
    pub fn parse(options: &Value) -> Result<Self, ValidationError> {
        let mut issues = Issues::default();
        let read = Fields::open(options, Path::new(), &mut issues).map(|fields| {
            let mut fields = fields.nulls_are_absent();
            let options = Self::read(ApiVersion::V2, &mut fields);
            fields.finish();
            options
        });
        issues.into_result()?;
        read.ok_or_else(|| refusal(ErrorCode::BadRequest, Path::new(), "Bad Request"))
    }

    /// Reads the options among the other fields of a body; what is wrong becomes an issue.
    pub(super) fn read(version: ApiVersion, fields: &mut Fields<'_, '_>) -> Self {
        let defaults = Self::default();
        let is_v1 = version == ApiVersion::V1;
        let from_one = 1..=i64::from(i32::MAX);
        Self {
            include_paths: read_patterns(fields, "includePaths"),
            exclude_paths: read_patterns(fields, "excludePaths"),
            max_discovery_depth: fields.integer("maxDiscoveryDepth", 0..=i64::from(i32::MAX)),
            max_depth: if is_v1 { Some(read_depth(fields)) } else { None },
            limit: fields.integer("limit", from_one.clone()).unwrap_or(defaults.limit),
            // An older name of the same.
            crawl_entire_domain: fields.bool("crawlEntireDomain").unwrap_or(defaults.crawl_entire_domain)
                | (is_v1 && fields.bool("allowBackwardLinks").unwrap_or(false)),
            allow_external_links: fields.bool("allowExternalLinks").unwrap_or(defaults.allow_external_links),
            allow_subdomains: fields.bool("allowSubdomains").unwrap_or(defaults.allow_subdomains),
            sitemap: match version {
                ApiVersion::V1 if fields.bool("ignoreSitemap") == Some(true) => SitemapMode::Skip,
                ApiVersion::V1 => SitemapMode::Include,
                ApiVersion::V2 => SitemapMode::read(fields),
            },
            ignore_query_parameters: fields.bool("ignoreQueryParameters").unwrap_or(defaults.ignore_query_parameters),
            deduplicate_similar_urls: fields
                .bool("deduplicateSimilarURLs")
                .unwrap_or(defaults.deduplicate_similar_urls),
            ignore_robots_txt: fields.bool("ignoreRobotsTxt").unwrap_or(defaults.ignore_robots_txt),
            robots_user_agent: if is_v1 { None } else { read_agent(fields) },
            regex_on_full_url: fields.bool("regexOnFullURL").unwrap_or(defaults.regex_on_full_url),
            delay: fields.number("delay", DELAY_SECONDS).filter(|seconds| *seconds > 0.0),
            max_concurrency: fields.integer("maxConcurrency", from_one),
        }
    }

    /// The same as JSON, as `GET /v2/crawl/active` and `finalCrawlerOptions` show it.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// A list of patterns that compile together; otherwise an issue for the first one that does not alone.
fn read_patterns(fields: &mut Fields<'_, '_>, name: &'static str) -> Vec<String> {
    let list = fields.strings(name, MAX_PATTERNS).unwrap_or_default();
    if let Some(i) = list.iter().position(|pattern| pattern.chars().count() > MAX_PATTERN_LENGTH) {
        let mut path = fields.path_of(name);
        path.push(i.into());
        fields.issues.rule(path, format!("{name}: a pattern must be at most {MAX_PATTERN_LENGTH} characters"));
        return list;
    }
    let Err(problem) = scope::compile(&list) else { return list };
    let alone = list.iter().enumerate().find_map(|(i, pattern)| Some((i, scope::check(pattern).err()?)));
    match alone {
        Some((i, problem)) => {
            let mut path = fields.path_of(name);
            path.push(i.into());
            fields.issues.rule(path, format!("{name}: \"{}\" is not a valid pattern: {problem}", list[i]));
        }
        None => {
            let path = fields.path_of(name);
            fields.issues.rule(path, format!("{name}: the patterns are too large together: {problem}"));
        }
    }
    list
}

/// `maxDepth` of version 1.
fn read_depth(fields: &mut Fields<'_, '_>) -> i64 {
    fields.integer("maxDepth", 0..=i64::from(i32::MAX)).unwrap_or(V1_DEPTH)
}

fn read_agent(fields: &mut Fields<'_, '_>) -> Option<String> {
    let agent = fields.text("robotsUserAgent", 1..=256)?;
    if agent.trim().is_empty() || agent.chars().any(char::is_control) {
        fields.issues.rule(fields.path_of("robotsUserAgent"), "robotsUserAgent must be the name of a user agent");
        return None;
    }
    Some(agent.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    #[test]
    fn options_are_read_with_their_defaults() {
        assert_eq!(CrawlOptions::parse(&json!({})).unwrap(), CrawlOptions::default());
        let body = json!({
            "includePaths": ["^/blog/\\d+$", "\\/docs\\/.*"], "excludePaths": [], "maxDiscoveryDepth": 0, "limit": 5.0,
            "crawlEntireDomain": true, "allowExternalLinks": null, "allowSubdomains": true, "sitemap": "only",
            "ignoreQueryParameters": true, "deduplicateSimilarURLs": false, "ignoreRobotsTxt": true,
            "robotsUserAgent": "Bot", "regexOnFullURL": true, "delay": 0.5, "maxConcurrency": 3
        });
        let options = CrawlOptions::parse(&body).unwrap();
        assert_eq!(options.max_discovery_depth, Some(0));
        assert_eq!((options.limit, options.delay, options.max_concurrency), (5, Some(0.5), Some(3)));
        assert_eq!(options.sitemap, SitemapMode::Only);
        // What is stored and shown reads back as the same.
        let stored: CrawlOptions = serde_json::from_value(options.to_json()).unwrap();
        assert_eq!(stored, options);
        assert_eq!(CrawlOptions::parse(&options.to_json()).unwrap(), options);
        assert_eq!(CrawlOptions::parse(&json!({"delay": 0})).unwrap().delay, None);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (body, path, words) in [
            (json!({"limit": 0}), json!(["limit"]), "at least 1"),
            (json!({"limit": -3}), json!(["limit"]), "at least 1"),
            (json!({"maxDiscoveryDepth": -1}), json!(["maxDiscoveryDepth"]), "at least 0"),
            (json!({"delay": 61}), json!(["delay"]), "at most 60"),
            (json!({"delay": -0.1}), json!(["delay"]), "at least 0"),
            (json!({"delay": "1"}), json!(["delay"]), "expected number"),
            (json!({"maxConcurrency": 0}), json!(["maxConcurrency"]), "at least 1"),
            (json!({"sitemap": "maybe"}), json!(["sitemap"]), "expected one of"),
            (json!({"includePaths": ["/ok", "*.pdf"]}), json!(["includePaths", 1]), "*.pdf"),
            (json!({"excludePaths": ["(?=x)"]}), json!(["excludePaths", 0]), "look-around"),
            (json!({"excludePaths": ["x".repeat(1_001)]}), json!(["excludePaths", 0]), "1000"),
            (json!({"includePaths": ["(\\w{1,200}){1,200}"]}), json!(["includePaths", 0]), "too large"),
            (json!({"includePaths": vec!["\\pL{5}"; 100]}), json!(["includePaths"]), "together"),
            (json!({"includePaths": "/x"}), json!(["includePaths"]), "expected array"),
            (json!({"robotsUserAgent": "a\nb"}), json!(["robotsUserAgent"]), "user agent"),
            (json!({"maxDepth": 2}), json!([]), "maxDepth"),
        ] {
            let error = CrawlOptions::parse(&body).unwrap_err();
            let issue = error.issues.iter().find(|i| json!(i.path) == path);
            let issue = issue.unwrap_or_else(|| panic!("{body}: {:?}", error.issues));
            assert!(issue.message.contains(words), "{body}: {}", issue.message);
        }
        assert!(CrawlOptions::parse(&json!([])).is_err());
    }
}
