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
pub(super) mod options;

use std::collections::BTreeMap;

use serde_json::Value;

use super::batch::parse_batch_of;
use super::body::{Nulls, read_body};
use super::crawl::parse_crawl_of;
use super::fields::label;
use super::map::parse_map_of;
use super::scrape::parse_scrape_of;
use super::search::{self, DEFAULT_TIMEOUT_MS, TIMEOUT_MS};
use super::threat;
use super::unavailable::Unavailable;
use super::{BatchRequest, CrawlRequest, ScrapeRequest};
use crate::domain::api_version::ApiVersion;
use crate::domain::crawl::SitemapMode;
use crate::domain::map::{MapOptions, MapRequest};
use crate::domain::search::{DEFAULT_LIMIT, MAX_LIMIT, Query, SearchRequest, Source};
use crate::domain::site_rules::SiteRules;
use crate::domain::target::{self, RequestContext};
use crate::domain::validation::ValidationError;
use crate::error_code::ErrorCode;

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
    read_body(version, body, Nulls::Absent, |fields, unavailable| {
        let url = target::read(fields, "url", context).unwrap_or_default();
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
        let (origin, integration) = (label(fields, "origin"), label(fields, "integration"));
        fields.ignore(&["__experimental_stream"]);
        MapRequest { url, options, origin, integration, version }
    })
}

/// Reads the body of `POST /v1/search`: the web only, with the search engine's own descriptions.
///
/// # Errors
/// Every wrong field; the first option that is not available yet.
pub fn parse_v1_search(body: &Value) -> Result<SearchRequest, ValidationError> {
    let version = ApiVersion::V1;
    read_body(version, body, Nulls::Absent, |fields, unavailable| {
        let mut query = Query { words: search::read_words(fields), ..Query::default() };
        search::read_shared_narrowing(fields, &mut query);
        let mut request = SearchRequest {
            limit: fields.integer("limit", 1..=MAX_LIMIT as i64).map_or(DEFAULT_LIMIT, |limit| limit as usize),
            sources: vec![Source::Web],
            ignore_invalid_urls: fields.bool("ignoreInvalidURLs").unwrap_or(false),
            highlights: false,
            scrape: search::read_scrape_options(version, fields, unavailable),
            sites: threat::read(fields, unavailable),
            zero_retention: false,
            timeout: fields.integer("timeout", TIMEOUT_MS).unwrap_or(DEFAULT_TIMEOUT_MS).unsigned_abs(),
            origin: label(fields, "origin"),
            integration: label(fields, "integration"),
            version,
            query,
        };
        if let Some(scrape) = &mut request.scrape {
            scrape.sites = std::mem::take(&mut scrape.sites).and(request.sites.clone());
        }
        fields.ignore(&["auditMetadata", "domainTools", "toolDetail"]);
        request
    })
}

#[cfg(test)]
mod tests;
