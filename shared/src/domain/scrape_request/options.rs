//! The options of wire 3.2, the same for a scrape and, flattened, for a batch; and those of version 1 (wire 26), which are
//! most of them with other defaults.

use super::fields::{read_other_options, read_shared_options};
use super::unavailable::Unavailable;
use super::v1::options as v1;
use super::{formats, parsers, redaction, threat};
use crate::domain::api_version::ApiVersion;
use crate::domain::scrape::{CacheOptions, Format, LOCKDOWN_MAX_AGE_MS, MAX_AGE_MS, ScrapeOptions};
use crate::domain::validation::Fields;
use crate::domain::{location, profile};

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
    let options = read_compared_options(version, fields, unavailable);
    formats::require_compared(&options, fields);
    options
}

/// Reads the options of a page that is compared whatever its formats are.
pub(super) fn read_compared_options(
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
