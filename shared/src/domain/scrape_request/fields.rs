//! The fields that bodies of both versions have, and what several kinds of bodies read alike.

use std::collections::BTreeMap;

use serde_json::Value;

use super::actions;
use crate::domain::scrape::{ProxyMode, ScrapeOptions};
use crate::domain::validation::{Fields, Issues, Path};

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
        site_templates: fields.bool("siteTemplates").unwrap_or(defaults.site_templates),
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

/// Options that are judged and need nothing done.
pub(super) fn read_other_options(fields: &mut Fields<'_, '_>) {
    fields.bool("fastMode");
    fields.string("useMock");
    fields.ignore(&["auditMetadata", "domainTools", "toolDetail"]);
}

pub(super) fn read_selectors(fields: &mut Fields<'_, '_>, name: &'static str) -> Vec<String> {
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
