//! The wire form of scrape options (CONTRACT 3.2) into [`ScrapeOptions`]: parsed once, at the edge.
//!
//! A body is first judged whole, with every wrong field collected. Options of later releases are held to their
//! contract too; only then one that would change the result is refused with the words "not available yet", so that
//! nothing is ever silently ignored.

mod actions;
mod batch;
mod countries;
mod crawl;
mod formats;
mod map;
mod parsers;
mod preview;
mod redaction;
mod target;

use std::collections::BTreeMap;

use serde_json::Value;

pub use batch::{BatchRequest, parse_batch};
pub use crawl::{CrawlRequest, crawl_fields, parse_crawl, with_prompt_options};
pub use map::parse_map;
pub use preview::{PreviewRequest, parse_preview};
pub use target::{UrlProblem, fetch_url, named_origins};

use super::cache::{CacheOptions, LOCKDOWN_MAX_AGE_MS, MAX_AGE_MS};
use super::scrape::{Location, ProxyMode, ScrapeOptions};
use super::session;
use super::validation::{Fields, Issues, Path, ValidationError, refusal};
use crate::error_code::ErrorCode;

/// What parsing must be told about this installation.
#[derive(Clone, Copy)]
pub struct RequestContext<'a> {
    /// Whether a host without a top-level domain is known here (`WEIR_ALLOW_HOSTS`). `localhost` always is: whether
    /// it may be reached is for the address guard to say.
    pub knows_host: &'a dyn Fn(&str) -> bool,
}

impl RequestContext<'static> {
    /// Of no installation in particular.
    pub const ANYWHERE: Self = Self { knows_host: &|_| false };
}

/// A direct scrape, valid.
#[derive(Debug, Clone, PartialEq)]
pub struct ScrapeRequest {
    /// Exactly as it came; [`fetch_url`] gives the address to fetch.
    pub url: String,
    pub options: ScrapeOptions,
    /// Who sends the request, for statistics; clients of ours put their name here.
    pub origin: Option<String>,
    pub integration: Option<String>,
}

/// Longest `includeTags` and `excludeTags`.
const MAX_SELECTORS: i64 = 200;
/// Longest CSS selector, characters.
const MAX_SELECTOR_LENGTH: usize = 1_000;
/// Most extra request headers.
const MAX_HEADERS: usize = 100;
/// Longest value of an extra request header, bytes.
const MAX_HEADER_LENGTH: usize = 16_384;
/// Most languages of a location, and the longest one.
const MAX_LANGUAGES: i64 = 20;
const MAX_LANGUAGE_LENGTH: usize = 64;
/// Bounds of `timeout`, milliseconds (SPEC 8).
const TIMEOUT_MS: std::ops::RangeInclusive<i64> = 1_000..=300_000;
/// Bounds of `waitFor`, milliseconds (CONTRACT 3.2).
const WAIT_FOR_MS: std::ops::RangeInclusive<i64> = 0..=60_000;

/// An option that is valid, would change the result, and is not built yet.
pub(super) struct Unavailable {
    code: ErrorCode,
    path: Path,
    name: String,
}

/// Reads the body of `POST /v2/scrape` (CONTRACT 3.1).
///
/// # Errors
/// Every wrong field; or the first option that is not available yet.
pub fn parse_scrape(body: &Value, context: RequestContext<'_>) -> Result<ScrapeRequest, ValidationError> {
    let mut issues = Issues::default();
    let mut unavailable = Vec::new();
    let request = Fields::open(body, Path::new(), &mut issues).map(|mut fields| {
        let url = target::read(&mut fields, "url", context).unwrap_or_default();
        let options = read_options(&mut fields, &mut unavailable);
        let request = ScrapeRequest {
            url,
            options,
            origin: label(&mut fields, "origin"),
            integration: label(&mut fields, "integration"),
        };
        fields.finish();
        request
    });
    issues.into_result()?;
    refuse_unavailable(unavailable)?;
    request.ok_or_else(|| refusal(ErrorCode::BadRequest, Path::new(), "Bad Request"))
}

/// The first unavailable option as an error.
fn refuse_unavailable(unavailable: Vec<Unavailable>) -> Result<(), ValidationError> {
    match unavailable.into_iter().next() {
        None => Ok(()),
        Some(Unavailable { code, path, name }) => Err(refusal(code, path, format!("{name} is not available yet"))),
    }
}

fn label(fields: &mut Fields<'_, '_>, name: &'static str) -> Option<String> {
    fields.text(name, 0..=256).map(str::to_owned)
}

/// Reads the options of CONTRACT 3.2, the same for a scrape and, flattened, for a batch.
fn read_options(fields: &mut Fields<'_, '_>, unavailable: &mut Vec<Unavailable>) -> ScrapeOptions {
    let defaults = ScrapeOptions::default();
    let timeout = fields.integer("timeout", TIMEOUT_MS).unwrap_or(i64::from(defaults.timeout));
    let wait_for = fields.integer("waitFor", WAIT_FOR_MS).unwrap_or(0);
    if wait_for * 2 > timeout {
        fields.issues.rule(fields.path_of("waitFor"), "waitFor must not exceed half of timeout");
    }
    let skip_tls_verification = fields.bool("skipTlsVerification");
    let options = ScrapeOptions {
        formats: formats::read(fields, unavailable).unwrap_or(defaults.formats),
        only_main_content: fields.bool("onlyMainContent").unwrap_or(defaults.only_main_content),
        only_clean_content: fields.bool("onlyCleanContent").unwrap_or(defaults.only_clean_content),
        check_prompt_injection: fields.bool("checkPromptInjection").unwrap_or(defaults.check_prompt_injection),
        include_tags: read_selectors(fields, "includeTags"),
        exclude_tags: read_selectors(fields, "excludeTags"),
        headers: fields
            .get("headers")
            .map(|v| read_headers(v, fields.path_of("headers"), fields.issues))
            .unwrap_or_default(),
        wait_for: wait_for as u32,
        mobile: fields.bool("mobile").unwrap_or(defaults.mobile),
        skip_tls_verification: skip_tls_verification.unwrap_or(defaults.skip_tls_verification),
        tls_consent: skip_tls_verification == Some(true),
        timeout: timeout as u32,
        actions: actions::read(fields, wait_for),
        location: read_location(fields),
        remove_base64_images: fields.bool("removeBase64Images").unwrap_or(defaults.remove_base64_images),
        block_ads: fields.bool("blockAds").unwrap_or(defaults.block_ads),
        proxy: match fields.choice("proxy", &["basic", "stealth", "enhanced", "auto"]) {
            Some("basic") => ProxyMode::Basic,
            Some("stealth" | "enhanced") => ProxyMode::Enhanced,
            _ => ProxyMode::Auto,
        },
        redact_pii: redaction::read(fields),
        parsers: parsers::read(fields, unavailable).unwrap_or(defaults.parsers),
        cache: read_cache(fields),
        profile: session::read_profile(fields),
        zero_retention: fields.bool("zeroDataRetention").unwrap_or(false),
    };
    if options.only_clean_content && options.zero_retention {
        let text = "onlyCleanContent is not supported with zero data retention";
        fields.issues.rule(fields.path_of("onlyCleanContent"), text);
    }
    read_other_options(fields);
    options
}

fn read_cache(fields: &mut Fields<'_, '_>) -> CacheOptions {
    let lockdown = fields.bool("lockdown").unwrap_or(false);
    let max_age = fields.integer("maxAge", 0..=i64::MAX);
    CacheOptions {
        max_age: max_age.unwrap_or(if lockdown { LOCKDOWN_MAX_AGE_MS } else { MAX_AGE_MS }),
        min_age: fields.integer("minAge", 0..=i64::MAX),
        store_in_cache: fields.bool("storeInCache").unwrap_or(true),
        lockdown,
    }
}

/// Options that are judged and need nothing done.
fn read_other_options(fields: &mut Fields<'_, '_>) {
    fields.bool("fastMode");
    fields.string("useMock");
    fields.ignore(&["auditMetadata", "threatProtection", "domainTools", "toolDetail"]);
}

fn read_selectors(fields: &mut Fields<'_, '_>, name: &'static str) -> Vec<String> {
    let list = fields.strings(name, MAX_SELECTORS).unwrap_or_default();
    for (i, selector) in list.iter().enumerate() {
        let message = if selector.trim().is_empty() {
            format!("{name} must not contain empty selectors")
        } else if selector.chars().count() > MAX_SELECTOR_LENGTH {
            format!("{name}: a selector must be at most {MAX_SELECTOR_LENGTH} characters")
        } else {
            continue;
        };
        let mut path = fields.path_of(name);
        path.push(i.into());
        fields.issues.rule(path, message);
    }
    list
}

/// A character of an HTTP token (RFC 9110 5.6.2).
fn is_token_char(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// A map of header names to values; both fit HTTP.
pub(super) fn read_headers(value: &Value, path: Path, issues: &mut Issues) -> BTreeMap<String, String> {
    let Some(map) = value.as_object() else {
        issues.wrong_type(path, "object", Some(value));
        return BTreeMap::new();
    };
    if map.len() > MAX_HEADERS {
        issues.out_of_range(path, "array", map.len() as i64, &(0..=MAX_HEADERS as i64));
        return BTreeMap::new();
    }
    let mut headers = BTreeMap::new();
    for (name, value) in map {
        let mut at = path.clone();
        at.push(name.as_str().into());
        let Some(text) = value.as_str() else {
            issues.wrong_type(at, "string", Some(value));
            continue;
        };
        if name.is_empty() || !name.bytes().all(is_token_char) {
            issues.rule(at, "headers: a name must be an HTTP token");
        } else if text.len() > MAX_HEADER_LENGTH {
            issues.rule(at, format!("headers: a value must be at most {MAX_HEADER_LENGTH} bytes"));
        } else if text.chars().any(|c| c.is_control() && c != '\t') {
            issues.rule(at, "headers: a value must not contain line breaks or other control characters");
        } else {
            headers.insert(name.clone(), text.to_owned());
        }
    }
    headers
}

pub(super) fn read_location(fields: &mut Fields<'_, '_>) -> Option<Location> {
    let mut location = fields.object("location")?.nulls_are_absent();
    let mut country = "US".to_owned();
    if let Some(text) = location.string("country") {
        // The newest clients name pools of US addresses.
        let upper = text.to_ascii_uppercase();
        match upper.as_str() {
            "US-GENERIC" | "US-WHITELIST" => {}
            code if countries::is_country(code) => country = upper,
            _ => {
                let path = location.path_of("country");
                location.issues.rule(path, "Invalid country code. Please use a valid ISO 3166-1 alpha-2 country code.");
            }
        }
    }
    let languages = location.strings("languages", MAX_LANGUAGES).unwrap_or_default();
    for (i, language) in languages.iter().enumerate() {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_*,;=. ".contains(&b);
        if language.trim().is_empty() || language.len() > MAX_LANGUAGE_LENGTH || !language.bytes().all(fits) {
            let mut path = location.path_of("languages");
            path.push(i.into());
            location.issues.rule(path, "Invalid language. Please use a language tag such as en-US.");
        }
    }
    location.finish();
    Some(Location { country, languages })
}

#[cfg(test)]
mod tests;
