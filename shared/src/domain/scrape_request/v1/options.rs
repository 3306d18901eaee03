//! The options of a page in bodies of version 1, and how a map uses sitemaps there.

use super::formats;
use crate::domain::crawl::SitemapMode;
use crate::domain::location;
use crate::domain::scrape::{CacheOptions, Parsers, PdfParser, ProxyMode, ScrapeOptions};
use crate::domain::scrape_request::fields::read_shared_options;
use crate::domain::scrape_request::unavailable::Unavailable;
use crate::domain::validation::Fields;
use crate::error_code::ErrorCode;

/// Milliseconds for a page that names no `timeout`.
const TIMEOUT: u32 = 30_000;

/// What a body asks for that names no option: the cache and untrusted certificates are off, and only ordinary proxies
/// are used.
pub(in crate::domain::scrape_request) fn default_options() -> ScrapeOptions {
    ScrapeOptions {
        timeout: TIMEOUT,
        skip_tls_verification: false,
        proxy: ProxyMode::Basic,
        cache: CacheOptions { max_age: 0, ..CacheOptions::default() },
        ..ScrapeOptions::default()
    }
}

/// Reads the options of a page.
pub(in crate::domain::scrape_request) fn read_options(
    fields: &mut Fields<'_, '_>,
    unavailable: &mut Vec<Unavailable>,
) -> ScrapeOptions {
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
pub(in crate::domain::scrape_request) fn read_map_sitemap(fields: &mut Fields<'_, '_>) -> SitemapMode {
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
