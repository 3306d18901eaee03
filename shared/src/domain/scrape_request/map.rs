//! The body of `POST /v2/map` (spec 4.9, wire 9).

use serde_json::Value;

use super::body::{Nulls, read_body};
use super::fields::{label, read_headers};
use super::threat;
use super::unavailable::Unavailable;
use super::v1::options as v1;
use crate::domain::api_version::ApiVersion;
use crate::domain::crawl::SitemapMode;
use crate::domain::location;
use crate::domain::map::{DEFAULT_LIMIT, MAX_LIMIT, MAX_V1_LIMIT, MapOptions, MapRequest};
use crate::domain::target::{self, RequestContext};
use crate::domain::validation::{Fields, ValidationError};

/// Longest `search`, characters.
const MAX_SEARCH: i64 = 1_000;

/// Reads the body. A null is as good as nothing: clients send them.
///
/// # Errors
/// Every wrong field.
pub fn parse_map(body: &Value, context: RequestContext<'_>) -> Result<MapRequest, ValidationError> {
    parse_map_of(ApiVersion::V2, body, context)
}

pub(super) fn parse_map_of(
    version: ApiVersion,
    body: &Value,
    context: RequestContext<'_>,
) -> Result<MapRequest, ValidationError> {
    read_body(version, body, Nulls::Absent, |fields, unavailable| MapRequest {
        url: target::read(fields, "url", context).unwrap_or_default(),
        options: read_options(version, fields, unavailable),
        origin: label(fields, "origin"),
        integration: label(fields, "integration"),
        version,
    })
}

fn read_options(version: ApiVersion, fields: &mut Fields<'_, '_>, unavailable: &mut Vec<Unavailable>) -> MapOptions {
    let search = fields.text("search", 0..=MAX_SEARCH).map(str::trim).filter(|words| !words.is_empty());
    let most = if version == ApiVersion::V1 { MAX_V1_LIMIT } else { MAX_LIMIT };
    let options = MapOptions {
        search: search.map(str::to_owned),
        sitemap: match version {
            ApiVersion::V1 => v1::read_map_sitemap(fields),
            ApiVersion::V2 => SitemapMode::read(fields),
        },
        include_subdomains: fields.bool("includeSubdomains").unwrap_or(true),
        ignore_query_parameters: fields.bool("ignoreQueryParameters").unwrap_or(true),
        ignore_cache: version == ApiVersion::V2 && fields.bool("ignoreCache").unwrap_or(false),
        filter_by_path: fields.bool("filterByPath"),
        use_index: fields.bool("useIndex").unwrap_or(true),
        allow_external_links: fields.bool("allowExternalLinks").unwrap_or(false),
        limit: fields.integer("limit", 1..=most).unwrap_or(DEFAULT_LIMIT) as usize,
        timeout: fields.integer("timeout", 1..=i64::from(i32::MAX)).map(i64::unsigned_abs),
        location: location::read(fields),
        headers: fields
            .get("headers")
            .map(|v| read_headers(v, fields.path_of("headers"), fields.issues))
            .unwrap_or_default(),
        sites: threat::read(fields, unavailable),
        zero_retention: false,
        llms_txt: false,
    };
    fields.ignore(&["useMock", "auditMetadata", "domainTools", "toolDetail"]);
    options
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    fn parse(body: Value) -> Result<MapRequest, ValidationError> {
        parse_map(&body, RequestContext { knows_host: &|_| false })
    }

    #[test]
    fn a_map_is_read_with_its_defaults() {
        let map = parse(json!({"url": "example.com", "origin": "x", "search": " ", "location": null})).unwrap();
        let options = &map.options;
        assert_eq!((options.limit, options.sitemap, options.timeout), (5_000, SitemapMode::Include, None));
        assert!(options.include_subdomains && options.ignore_query_parameters && options.use_index);
        assert!(!options.ignore_cache && !options.allow_external_links);
        assert_eq!((options.filter_by_path, &options.search), (None, &None));
        let stored = serde_json::to_string(options).unwrap();
        assert_eq!(&serde_json::from_str::<MapOptions>(&stored).unwrap(), options);
        let full = json!({"url": "https://example.com/x", "search": "docs", "sitemap": "only", "includeSubdomains": false,
            "ignoreQueryParameters": false, "ignoreCache": true, "filterByPath": false, "useIndex": false,
            "useMock": "x", "allowExternalLinks": true, "limit": 100_000, "timeout": 1,
            "location": {"country": "de", "languages": ["de"]}, "headers": {"X-A": "b"}, "integration": "_y"});
        let options = parse(full).unwrap().options;
        assert_eq!((options.limit, options.timeout, options.filter_by_path), (100_000, Some(1), Some(false)));
        assert_eq!(options.location.unwrap().country, "DE");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (body, words) in [
            (json!({}), "Required"),
            (json!({"url": "ftp://example.com"}), "unsupported protocol"),
            (json!({"url": "http://nodots"}), "top-level domain"),
            (json!({"url": "example.com", "limit": 0}), "at least 1"),
            (json!({"url": "example.com", "limit": 100_001}), "at most 100000"),
            (json!({"url": "example.com", "timeout": 0}), "at least 1"),
            (json!({"url": "example.com", "sitemap": "maybe"}), "expected one of"),
            (json!({"url": "example.com", "search": 5}), "expected string"),
            (json!({"url": "example.com", "search": "x".repeat(1_001)}), "at most 1000"),
            (json!({"url": "example.com", "location": {"country": "xx"}}), "country"),
            (json!({"url": "example.com", "headers": {"a b": "c"}}), "HTTP token"),
            (json!({"url": "example.com", "includeSubdomains": "yes"}), "expected boolean"),
            (json!({"url": "example.com", "depth": 1}), "Unrecognized"),
        ] {
            let error = parse(body.clone()).unwrap_err();
            assert!(error.issues.iter().any(|issue| issue.message.contains(words)), "{body}: {:?}", error.issues);
        }
    }
}
