//! Bodies of version 1 (wire 26), read into the requests of version 2: the same code answers both.
//!
//! ```text
//! formats             names only; what they need stands beside them: jsonOptions, extract, changeTrackingOptions
//! parsePDF            the PDF parser, or none
//! geolocation         location
//! maxDepth            segments of a path below the start page's
//! allowBackwardLinks  crawlEntireDomain
//! ignoreSitemap       sitemap: skip
//! sitemapOnly         sitemap: only
//! ```
//!
//! Most fields are read where those of version 2 are. A null is as good as nothing everywhere.

mod formats;

use std::collections::BTreeMap;

use serde_json::Value;

use super::batch::parse_batch_of;
use super::crawl::parse_crawl_of;
use super::map::parse_map_of;
use super::options::{label, read_shared_options};
use super::search::{self, DEFAULT_TIMEOUT_MS, TIMEOUT_MS};
use super::threat;
use super::unavailable::{Unavailable, refuse_unavailable};
use super::{BatchRequest, CrawlRequest, ScrapeRequest, parse_scrape_of};
use crate::domain::api_version::ApiVersion;
use crate::domain::crawl::SitemapMode;
use crate::domain::location;
use crate::domain::map::{MapOptions, MapRequest};
use crate::domain::scrape::{CacheOptions, Parsers, PdfParser, ProxyMode, ScrapeOptions};
use crate::domain::search::{DEFAULT_LIMIT, MAX_LIMIT, Query, SearchRequest, Source};
use crate::domain::site_rules::SiteRules;
use crate::domain::target::{self, RequestContext};
use crate::domain::validation::{Fields, Issues, Path, ValidationError, refusal};
use crate::error_code::ErrorCode;

/// Milliseconds for a page that names no `timeout`.
const TIMEOUT: u32 = 30_000;
/// Addresses in a llms.txt, where the caller does not say, and at most.
const LLMS_URLS: i64 = 10;
const MAX_LLMS_URLS: i64 = 5_000;

/// Reads the body of `POST /v1/scrape`.
///
/// # Errors
/// Every wrong field; or the first option that is not available yet.
pub fn parse_v1_scrape(body: &Value, context: RequestContext<'_>) -> Result<ScrapeRequest, ValidationError> {
    parse_scrape_of(ApiVersion::V1, body, context)
}

/// Reads the body of `POST /v1/batch/scrape`.
///
/// # Errors
/// As [`super::parse_batch`].
pub fn parse_v1_batch(body: &Value, context: RequestContext<'_>) -> Result<BatchRequest, ValidationError> {
    parse_batch_of(ApiVersion::V1, body, context)
}

/// Reads the body of `POST /v1/crawl`.
///
/// # Errors
/// As [`super::parse_crawl`].
pub fn parse_v1_crawl(body: &Value, context: RequestContext<'_>) -> Result<CrawlRequest, ValidationError> {
    parse_crawl_of(ApiVersion::V1, body, context)
}

/// Reads the body of `POST /v1/map`.
///
/// # Errors
/// As [`super::parse_map`].
pub fn parse_v1_map(body: &Value, context: RequestContext<'_>) -> Result<MapRequest, ValidationError> {
    parse_map_of(ApiVersion::V1, body, context)
}

/// Reads the body of `POST /v1/llmstxt`: a map of the site, as a text.
///
/// # Errors
/// Every wrong field; that the text of whole pages is not available.
pub fn parse_v1_llmstxt(body: &Value, context: RequestContext<'_>) -> Result<MapRequest, ValidationError> {
    let version = ApiVersion::V1;
    let mut issues = Issues::default();
    let mut unavailable = Vec::new();
    let request = Fields::open(body, Path::new(), &mut issues).map(|fields| {
        let mut fields = fields.of_version(version);
        let url = target::read(&mut fields, "url", context).unwrap_or_default();
        let limit = fields.integer("maxUrls", 1..=MAX_LLMS_URLS).unwrap_or(LLMS_URLS) as usize;
        let ignore_cache = !fields.bool("cache").unwrap_or(true);
        if fields.bool("showFullText").unwrap_or(false) {
            let path = fields.path_of("showFullText");
            let (code, name) = (ErrorCode::OptionNotAvailable, "showFullText".to_owned());
            unavailable.push(Unavailable { code, path, name });
        }
        let options = MapOptions {
            search: None,
            sitemap: SitemapMode::Include,
            include_subdomains: false,
            ignore_query_parameters: true,
            ignore_cache,
            filter_by_path: None,
            use_index: true,
            allow_external_links: false,
            limit,
            timeout: None,
            location: None,
            headers: BTreeMap::new(),
            sites: SiteRules::default(),
            zero_retention: false,
            llms_txt: true,
        };
        let (origin, integration) = (label(&mut fields, "origin"), label(&mut fields, "integration"));
        fields.ignore(&["__experimental_stream"]);
        fields.finish();
        MapRequest { url, options, origin, integration, version }
    });
    issues.into_result_of(version)?;
    refuse_unavailable(unavailable)?;
    request.ok_or_else(|| refusal(ErrorCode::BadRequest, Path::new(), "Bad Request"))
}

/// Reads the body of `POST /v1/search`: the web only, with the search engine's own descriptions.
///
/// # Errors
/// Every wrong field; the first option that is not available yet.
pub fn parse_v1_search(body: &Value) -> Result<SearchRequest, ValidationError> {
    let version = ApiVersion::V1;
    let mut issues = Issues::default();
    let mut unavailable = Vec::new();
    let request = Fields::open(body, Path::new(), &mut issues).map(|fields| {
        let mut fields = fields.of_version(version);
        let mut query = Query { words: search::read_words(&mut fields), ..Query::default() };
        search::read_shared_narrowing(&mut fields, &mut query);
        let mut request = SearchRequest {
            limit: fields.integer("limit", 1..=MAX_LIMIT as i64).map_or(DEFAULT_LIMIT, |limit| limit as usize),
            sources: vec![Source::Web],
            ignore_invalid_urls: fields.bool("ignoreInvalidURLs").unwrap_or(false),
            highlights: false,
            scrape: search::read_scrape_options(version, &mut fields, &mut unavailable),
            sites: threat::read(&mut fields, &mut unavailable),
            zero_retention: false,
            timeout: fields.integer("timeout", TIMEOUT_MS).unwrap_or(DEFAULT_TIMEOUT_MS).unsigned_abs(),
            origin: label(&mut fields, "origin"),
            integration: label(&mut fields, "integration"),
            version,
            query,
        };
        if let Some(scrape) = &mut request.scrape {
            scrape.sites = std::mem::take(&mut scrape.sites).and(request.sites.clone());
        }
        fields.ignore(&["auditMetadata", "domainTools", "toolDetail"]);
        fields.finish();
        request
    });
    issues.into_result_of(version)?;
    refuse_unavailable(unavailable)?;
    request.ok_or_else(|| refusal(ErrorCode::BadRequest, Path::new(), "Bad Request"))
}

/// What a body asks for that names no option: the cache and untrusted certificates are off, and only ordinary proxies
/// are used.
pub(super) fn default_options() -> ScrapeOptions {
    ScrapeOptions {
        timeout: TIMEOUT,
        skip_tls_verification: false,
        proxy: ProxyMode::Basic,
        cache: CacheOptions { max_age: 0, ..CacheOptions::default() },
        ..ScrapeOptions::default()
    }
}

/// Reads the options of a page.
pub(super) fn read_options(fields: &mut Fields<'_, '_>, unavailable: &mut Vec<Unavailable>) -> ScrapeOptions {
    let formats = formats::read(fields, unavailable);
    let defaults = default_options();
    let options = ScrapeOptions {
        formats: formats.unwrap_or_else(|| defaults.formats.clone()),
        location: read_location(fields),
        parsers: Parsers {
            pdf: fields.bool("parsePDF").unwrap_or(true).then(PdfParser::default),
            ..defaults.parsers.clone()
        },
        cache: CacheOptions {
            max_age: fields.integer("maxAge", 0..=i64::MAX).unwrap_or(defaults.cache.max_age),
            store_in_cache: fields.bool("storeInCache").unwrap_or(defaults.cache.store_in_cache),
            ..defaults.cache.clone()
        },
        ..read_shared_options(fields, defaults)
    };
    refuse_agent(fields, unavailable);
    options
}

/// `location`, or its older name.
fn read_location(fields: &mut Fields<'_, '_>) -> Option<location::Location> {
    let older = location::read_named(fields, "geolocation");
    location::read(fields).or(older)
}

/// An agent that works on the page before it is read. Where it does nothing the page would be another one.
fn refuse_agent(fields: &mut Fields<'_, '_>, unavailable: &mut Vec<Unavailable>) {
    let path = fields.path_of("agent");
    let Some(agent) = fields.object("agent") else { return };
    let mut agent = agent.nulls_are_absent();
    agent.text("model", 0..=256);
    agent.text("prompt", 0..=10_000);
    agent.finish();
    unavailable.push(Unavailable { code: ErrorCode::OptionNotAvailable, path, name: "agent".to_owned() });
}

/// How a map uses sitemaps.
pub(super) fn read_map_sitemap(fields: &mut Fields<'_, '_>) -> SitemapMode {
    let is_set = |value: Option<bool>| value == Some(true);
    match (is_set(fields.bool("ignoreSitemap")), is_set(fields.bool("sitemapOnly"))) {
        (true, true) => {
            let text = "ignoreSitemap and sitemapOnly cannot both be true";
            fields.issues.rule(fields.path_of("sitemapOnly"), text);
            SitemapMode::Include
        }
        (true, false) => SitemapMode::Skip,
        (false, true) => SitemapMode::Only,
        (false, false) => SitemapMode::Include,
    }
}

#[cfg(test)]
mod tests;
