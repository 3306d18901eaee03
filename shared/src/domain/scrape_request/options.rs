//! The options of wire 3.2, the same for a scrape and, flattened, for a batch; and those of version 1 (wire 26), which are
//! most of them with other defaults.

use std::collections::BTreeMap;

use serde_json::Value;

use super::unavailable::Unavailable;
use super::{actions, formats, parsers, redaction, threat, v1};
use crate::domain::api_version::ApiVersion;
use crate::domain::scrape::{CacheOptions, Format, LOCKDOWN_MAX_AGE_MS, MAX_AGE_MS, ProxyMode, ScrapeOptions};
use crate::domain::validation::{Fields, Issues, Path};
use crate::domain::{location, profile};

/// Longest `includeTags` and `excludeTags`.
const MAX_SELECTORS: i64 = 200;
/// Longest CSS selector, characters.
const MAX_SELECTOR_LENGTH: usize = 1_000;
/// Most extra request headers.
const MAX_HEADERS: usize = 100;
/// Longest value of an extra request header, bytes.
const MAX_HEADER_LENGTH: usize = 16_384;
/// Bounds of `timeout`, milliseconds (spec 8).
const TIMEOUT_MS: std::ops::RangeInclusive<i64> = 1_000..=300_000;
/// Bounds of `waitFor`, milliseconds (wire 3.2).
const WAIT_FOR_MS: std::ops::RangeInclusive<i64> = 0..=60_000;

/// A short text for statistics.
pub(super) fn label(fields: &mut Fields<'_, '_>, name: &'static str) -> Option<String> {
    fields.text(name, 0..=256).map(str::to_owned)
}

/// What a body of this version asks for that names no option.
pub(super) fn default_options(version: ApiVersion) -> ScrapeOptions {
    match version {
        ApiVersion::V1 => v1::default_options(),
        ApiVersion::V2 => ScrapeOptions::default(),
    }
}

/// Reads the options of a page.
pub(super) fn read_options(
    version: ApiVersion,
    fields: &mut Fields<'_, '_>,
    unavailable: &mut Vec<Unavailable>,
) -> ScrapeOptions {
    let sites = threat::read(fields, unavailable);
    let options = match version {
        ApiVersion::V1 => v1::read_options(fields, unavailable),
        ApiVersion::V2 => read_v2_options(fields, unavailable),
    };
    read_other_options(fields);
    ScrapeOptions { sites, ..options }
}

fn read_v2_options(fields: &mut Fields<'_, '_>, unavailable: &mut Vec<Unavailable>) -> ScrapeOptions {
    let formats = formats::read(fields, unavailable);
    let defaults = ScrapeOptions::default();
    let options = ScrapeOptions {
        formats: formats.unwrap_or_else(|| defaults.formats.clone()),
        only_clean_content: fields.bool("onlyCleanContent").unwrap_or(defaults.only_clean_content),
        check_prompt_injection: fields.bool("checkPromptInjection").unwrap_or(defaults.check_prompt_injection),
        location: location::read(fields),
        redact_pii: redaction::read(fields),
        parsers: parsers::read(fields).unwrap_or_else(|| defaults.parsers.clone()),
        cache: read_cache(fields),
        profile: profile::read(fields),
        ..read_shared_options(fields, defaults)
    };
    refuse_beside_raw_body(&options, fields);
    if options.only_clean_content && options.zero_retention {
        let text = "onlyCleanContent is not supported with zero data retention";
        fields.issues.rule(fields.path_of("onlyCleanContent"), text);
    }
    options
}

/// The body of the site's response comes of no browser, and nothing is taken out of it: options that want either would be
/// ignored.
fn refuse_beside_raw_body(options: &ScrapeOptions, fields: &mut Fields<'_, '_>) {
    if !options.wants(&Format::RawBase64) {
        return;
    }
    for (name, is_given) in [
        ("actions", !options.actions.is_empty()),
        ("waitFor", options.wait_for > 0),
        ("profile", options.profile.is_some()),
        ("redactPII", options.redact_pii.is_some()),
        ("onlyCleanContent", options.only_clean_content),
        ("checkPromptInjection", options.check_prompt_injection),
    ] {
        if is_given {
            let text = format!("{name} cannot be combined with the rawBase64 format, which is the response as it came");
            fields.issues.rule(fields.path_of(name), text);
        }
    }
}

/// The options that both versions have; what is not named is as in `defaults`.
pub(super) fn read_shared_options(fields: &mut Fields<'_, '_>, defaults: ScrapeOptions) -> ScrapeOptions {
    let timeout = fields.integer("timeout", TIMEOUT_MS).unwrap_or(i64::from(defaults.timeout));
    let wait_for = fields.integer("waitFor", WAIT_FOR_MS).unwrap_or(0);
    if wait_for * 2 > timeout {
        fields.issues.rule(fields.path_of("waitFor"), "waitFor must not exceed half of timeout");
    }
    let skip_tls_verification = fields.bool("skipTlsVerification");
    ScrapeOptions {
        only_main_content: fields.bool("onlyMainContent").unwrap_or(defaults.only_main_content),
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
        remove_base64_images: fields.bool("removeBase64Images").unwrap_or(defaults.remove_base64_images),
        block_ads: fields.bool("blockAds").unwrap_or(defaults.block_ads),
        proxy: match fields.choice("proxy", &["basic", "stealth", "enhanced", "auto"]) {
            Some("basic") => ProxyMode::Basic,
            Some("stealth" | "enhanced") => ProxyMode::Enhanced,
            Some("auto") => ProxyMode::Auto,
            _ => defaults.proxy,
        },
        zero_retention: fields.bool("zeroDataRetention").unwrap_or(false),
        ..defaults
    }
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
    fields.ignore(&["auditMetadata", "domainTools", "toolDetail"]);
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
