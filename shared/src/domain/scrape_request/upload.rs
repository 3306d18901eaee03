//! The options of `POST /v2/parse` (wire 21): those of a scrape that mean something for a file.

use serde_json::Value;

use super::body::{Nulls, read_body};
use super::fields::label;
use super::options::read_options;
use crate::domain::api_version::ApiVersion;
use crate::domain::scrape::{CacheOptions, Format, ProxyMode, ScrapeOptions};
use crate::domain::validation::{Path, ValidationError, refusal};
use crate::error_code::ErrorCode;

/// Milliseconds for a file whose options name no `timeout`.
const TIMEOUT: u32 = 30_000;

/// How a file is read, valid.
#[derive(Debug, Clone, PartialEq)]
pub struct ParseRequest {
    pub options: ScrapeOptions,
    /// Who sends the request, for statistics.
    pub origin: Option<String>,
    pub integration: Option<String>,
}

/// Reads the options.
///
/// # Errors
/// Every wrong field; the first option that files do not have, or that is not available yet.
pub fn parse_upload(body: &Value) -> Result<ParseRequest, ValidationError> {
    let mut request = read_body(ApiVersion::V2, body, Nulls::Wrong, |fields, unavailable| {
        let has_timeout = fields.get("timeout").is_some();
        let options = read_options(ApiVersion::V2, fields, unavailable);
        ParseRequest {
            options: ScrapeOptions { timeout: if has_timeout { options.timeout } else { TIMEOUT }, ..options },
            origin: label(fields, "origin"),
            integration: label(fields, "integration"),
        }
    })?;
    if let Some(text) = unsupported(&request.options) {
        return Err(refusal(ErrorCode::ParseUnsupportedOptions, Path::new(), text));
    }
    // A file is read anew each time, and kept for nobody.
    request.options.cache = CacheOptions { max_age: 0, store_in_cache: false, ..CacheOptions::default() };
    Ok(request)
}

/// The first option that a file cannot have, as a sentence.
fn unsupported(options: &ScrapeOptions) -> Option<String> {
    let what = [
        (!options.actions.is_empty(), "actions"),
        (options.wait_for > 0, "waitFor"),
        (options.location.is_some(), "location overrides"),
        (options.mobile, "mobile rendering"),
        (options.change_tracking().is_some(), "change tracking"),
        (options.screenshot().is_some(), "screenshot output"),
        (options.wants(&Format::Branding), "branding output"),
        (options.wants(&Format::RawBase64), "rawBase64 output"),
        (options.wants(&Format::Audio), "audio output"),
        (options.wants(&Format::Video), "video output"),
        (options.profile.is_some(), "profiles"),
        (options.cache.is_only_cache(), "answers from the cache"),
    ];
    if let Some((_, what)) = what.into_iter().find(|(is_asked, _)| *is_asked) {
        return Some(format!("Parse uploads do not support {what}."));
    }
    let is_enhanced = options.proxy == ProxyMode::Enhanced;
    is_enhanced.then(|| "Parse uploads only support proxy values of auto or basic.".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    #[test]
    fn what_clients_send_by_themselves_is_read_and_changes_nothing() {
        let plain = parse_upload(&json!({})).unwrap();
        assert_eq!(
            (plain.options.timeout, plain.options.cache.max_age, plain.options.cache.store_in_cache),
            (30_000, 0, false)
        );
        let sent = json!({"formats": ["markdown"], "storeInCache": true, "maxAge": 5, "fastMode": false, "mobile": false,
            "proxy": "auto", "onlyMainContent": false, "origin": "mcp", "integration": "cli", "timeout": 60_000});
        let read = parse_upload(&sent).unwrap();
        assert_eq!(
            (read.options.timeout, read.options.only_main_content, read.options.cache.max_age),
            (60_000, false, 0)
        );
    }

    #[test]
    fn what_no_file_has_is_refused_by_its_name() {
        for (body, words) in [
            (json!({"actions": [{"type": "wait", "milliseconds": 5}]}), "actions."),
            (json!({"waitFor": 5}), "waitFor."),
            (json!({"location": {"country": "DE"}}), "location overrides."),
            (json!({"mobile": true}), "mobile rendering."),
            (json!({"formats": ["markdown", "changeTracking"]}), "change tracking."),
            (json!({"formats": ["screenshot"]}), "screenshot output."),
            (json!({"formats": ["branding"]}), "branding output."),
            (json!({"formats": ["video"]}), "video output."),
            (json!({"lockdown": true}), "answers from the cache."),
            (json!({"proxy": "stealth"}), "proxy values of auto or basic."),
        ] {
            let error = parse_upload(&body).unwrap_err();
            assert_eq!(error.code, ErrorCode::ParseUnsupportedOptions, "{body}");
            assert!(error.message.ends_with(words), "{body}: {}", error.message);
        }
        assert_eq!(parse_upload(&json!({"url": "http://a.test/"})).unwrap_err().code, ErrorCode::BadRequest);
    }
}
