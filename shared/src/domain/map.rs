//! What a map may be told (spec 4.9, wire 9), and which addresses belong to it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::api_version::ApiVersion;
use super::crawl::SitemapMode;
use super::crawl::address::{bare_host, plain};
use super::crawl::scope::{is_below, is_same_host, is_same_site};
use super::location::Location;
use super::site_rules::SiteRules;
use super::target::{fetch_url, strip_user};
use crate::ids::JobId;

/// Most links of a map, and how many it answers when it is not told (spec 8).
pub const MAX_LIMIT: i64 = 100_000;
/// The first in version 1 (wire 26).
pub const MAX_V1_LIMIT: i64 = 30_000;
pub const DEFAULT_LIMIT: i64 = 5_000;
/// What a map costs, credits, whatever it finds (wire 11.3).
pub const CREDITS: i64 = 1;

/// A map, valid.
#[derive(Debug, Clone, PartialEq)]
pub struct MapRequest {
    /// Exactly as it came; [`fetch_url`] gives the address to fetch.
    pub url: String,
    pub options: MapOptions,
    pub origin: Option<String>,
    pub integration: Option<String>,
    pub version: ApiVersion,
}

/// Options of a map after validation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MapOptions {
    /// Words to order the links by.
    pub search: Option<String>,
    pub sitemap: SitemapMode,
    /// Links to subdomains, and to other hosts of the same registered domain.
    pub include_subdomains: bool,
    /// Queries are taken off, and addresses that differ only there are one.
    pub ignore_query_parameters: bool,
    /// Sitemaps are fetched anew.
    pub ignore_cache: bool,
    /// Only what is below the path of the address. `None`: as long as that leaves more than the page itself.
    pub filter_by_path: Option<bool>,
    /// Pages that the team has scraped lately count too.
    pub use_index: bool,
    /// Links to other sites.
    pub allow_external_links: bool,
    /// Most links, 1 to 100,000.
    pub limit: usize,
    /// Milliseconds for the whole map, 1 upwards. `None`: none but our own.
    pub timeout: Option<u64>,
    pub location: Option<Location>,
    pub headers: BTreeMap<String, String>,
    /// Sites that are neither asked nor answered.
    #[serde(default, skip_serializing_if = "SiteRules::is_empty")]
    pub sites: SiteRules,
    /// Nothing of this map is kept, and nothing kept is used.
    pub zero_retention: bool,
    /// It is asked for as a text, and not waited for (wire 26).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub llms_txt: bool,
}

/// The whole body of the answer (wire 9): the worker writes it, the API hands it on as it is.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MapAnswer<'a> {
    pub success: bool,
    pub id: JobId,
    pub links: &'a [Link],
    /// What the caller should know about the list: that it is short, or cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// A link as it is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "MapLink")]
pub struct Link {
    pub url: Box<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<Box<str>>,
}

/// Which addresses a map answers, and in which form.
#[derive(Debug, Clone)]
pub struct MapScope {
    base: Url,
    subdomains: bool,
    external: bool,
    strip_query: bool,
    sites: SiteRules,
}

impl MapScope {
    /// The scope of a map of `base`.
    pub fn new(base: Url, options: &MapOptions) -> Self {
        Self {
            base,
            subdomains: options.include_subdomains,
            external: options.allow_external_links,
            strip_query: options.ignore_query_parameters,
            sites: options.sites.clone(),
        }
    }

    /// Whether the address is on the site itself, subdomains included when they are wanted: those may be asked for.
    pub fn is_site(&self, url: &Url) -> bool {
        is_same_host(&self.base, url) || self.subdomains && is_same_site(&self.base, url)
    }

    /// Whether the address belongs to the map.
    pub fn covers(&self, url: &Url) -> bool {
        matches!(url.scheme(), "http" | "https") && (self.external || self.is_site(url)) && self.sites.allows(url)
    }

    /// The address as it is answered.
    pub fn normal(&self, mut url: Url) -> Url {
        url.set_fragment(None);
        if self.strip_query {
            url.set_query(None);
        }
        strip_user(&mut url);
        url
    }

    /// Whether the address is on another site, or is the base's path or below it. A path that names a file stands for
    /// its folder.
    pub fn is_below(&self, url: &Url) -> bool {
        self.base.path() == "/" || is_below(self.base.path(), url.path()) || !self.is_site(url)
    }

    /// Where the site is.
    pub fn base(&self) -> &Url {
        &self.base
    }
}

/// What makes two addresses one link: `http` or `https`, `www.` and how characters are encoded make no difference.
pub fn link_key(url: &Url) -> (&str, Option<u16>, Cow<'_, str>, Option<Cow<'_, str>>) {
    let host = url.host_str().unwrap_or_default();
    (bare_host(host.strip_suffix('.').unwrap_or(host)), url.port(), plain(url.path()), url.query().map(plain))
}

/// The site that a requested address belongs to: its registered domain, or its host where there is none.
pub fn site_of(requested: &str) -> Option<String> {
    let url = fetch_url(requested).ok()?;
    let host = url.host_str()?.trim_end_matches('.');
    let registered = match url.host() {
        Some(url::Host::Domain(_)) => weir_suffixes::registered_domain(host),
        _ => None,
    };
    Some(registered.unwrap_or(host).to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;
    use crate::domain::scrape_request::parse_map;
    use crate::domain::target::RequestContext;

    fn options(body: serde_json::Value) -> MapOptions {
        let mut body = body;
        body["url"] = json!("https://example.com");
        parse_map(&body, RequestContext { knows_host: &|_| false }).unwrap().options
    }

    fn admitted(scope: &MapScope, url: &str) -> Option<String> {
        let url = Url::parse(url).unwrap();
        scope.covers(&url).then(|| String::from(scope.normal(url)))
    }

    #[test]
    fn a_map_answers_its_site_in_one_form() {
        let base = || Url::parse("https://docs.example.com/guide").unwrap();
        let scope = MapScope::new(base(), &options(json!({})));
        for (url, expected) in [
            ("https://docs.example.com/a?b=1#c", Some("https://docs.example.com/a")),
            ("http://docs.example.com/a", Some("http://docs.example.com/a")),
            ("https://www.example.com/a", Some("https://www.example.com/a")),
            ("https://u:p@docs.example.com/a", Some("https://docs.example.com/a")),
            ("https://docs.example.com:8443/a", Some("https://docs.example.com:8443/a")),
            ("https://example.org/a", None),
            ("mailto:a@example.com", None),
        ] {
            assert_eq!(admitted(&scope, url).as_deref(), expected, "{url}");
        }
        let narrow =
            MapScope::new(base(), &options(json!({"includeSubdomains": false, "ignoreQueryParameters": false})));
        assert_eq!(admitted(&narrow, "https://www.example.com/a"), None);
        assert_eq!(admitted(&narrow, "https://docs.example.com/a?b").as_deref(), Some("https://docs.example.com/a?b"));
        let wide = MapScope::new(base(), &options(json!({"allowExternalLinks": true})));
        assert_eq!(admitted(&wide, "https://example.org/a").as_deref(), Some("https://example.org/a"));
        assert!(scope.is_below(&Url::parse("https://docs.example.com/guide/x").unwrap()));
        assert!(!scope.is_below(&Url::parse("https://docs.example.com/guides").unwrap()));
    }

    #[test]
    fn a_link_is_one_whatever_its_scheme() {
        for (a, b, expected) in [
            ("http://www.example.com/a?x", "https://example.com/a?x", true),
            ("https://example.com/a", "https://example.com/a/", false),
            ("https://example.com/a", "https://example.com:1/a", false),
            ("https://example.com/%C3%A9?a=%7e", "https://example.com/%c3%a9?a=~", true),
            ("https://example.com/a%2Fb", "https://example.com/a/b", false),
        ] {
            let (a, b) = (Url::parse(a).unwrap(), Url::parse(b).unwrap());
            assert_eq!(link_key(&a) == link_key(&b), expected, "{a} {b}");
        }
    }

    #[test]
    fn a_site_is_a_registered_domain_or_a_host() {
        for (url, site) in [
            ("https://docs.example.co.uk/x", Some("example.co.uk")),
            ("example.com", Some("example.com")),
            ("http://127.0.0.1:8900/x", Some("127.0.0.1")),
            ("http://localhost/x", Some("localhost")),
            ("http://me.github.io/", Some("me.github.io")),
            ("not a url", None),
        ] {
            assert_eq!(site_of(url).as_deref(), site, "{url}");
        }
    }
}
