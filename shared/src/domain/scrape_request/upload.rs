//! The options of `POST /v2/parse` (wire 21): those of a scrape that mean something for a file.

use serde_json::Value;

use super::body::{Nulls, read_body};
use super::fields::label;
use super::options::read_options;
use crate::domain::api_version::ApiVersion;
use crate::domain::scrape::{CacheOptions, Format, ProxyMode, ScrapeOptions};
use crate::domain::upload::{MAX_BYTES, TOO_LARGE, clean_name};
use crate::domain::validation::{Fields, Path, ValidationError, refusal};
use crate::error_code::ErrorCode;

/// Milliseconds for a file whose options name no `timeout`.
const TIMEOUT: u32 = 30_000;
/// Longest `uploadRef`, `filename` and `contentType`, characters.
const MAX_REF: i64 = 512;
const MAX_GIVEN: i64 = 4_096;
const MAX_TYPE: i64 = 256;

/// Options of a scrape that files cannot have: those that [`unsupported`] refuses whatever their value, unless it is the one
/// that changes nothing.
pub const NOT_FOR_FILES: [&str; 7] = ["actions", "waitFor", "location", "mobile", "profile", "lockdown", "minAge"];

/// How a file is read, valid.
#[derive(Debug, Clone, PartialEq)]
pub struct ParseRequest {
    pub options: ScrapeOptions,
    /// Who sends the request, for statistics.
    pub origin: Option<String>,
    pub integration: Option<String>,
}

/// A file that is to come, valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnouncedFile {
    /// Without folders.
    pub name: String,
    pub content_type: Option<String>,
}

/// Reads the options.
///
/// # Errors
/// Every wrong field; the first option that files do not have, or that is not available yet.
pub fn parse_upload(body: &Value) -> Result<ParseRequest, ValidationError> {
    Ok(read(body, |_| ())?.0)
}

/// Reads the options with the `uploadRef` of a file that was sent before.
///
/// # Errors
/// As [`parse_upload`].
pub fn parse_upload_ref(body: &Value) -> Result<(ParseRequest, String), ValidationError> {
    read(body, |fields| {
        let given = fields.required("uploadRef").and_then(|_| fields.text("uploadRef", 1..=MAX_REF));
        given.unwrap_or_default().to_owned()
    })
}

fn read<T>(body: &Value, more: impl FnOnce(&mut Fields<'_, '_>) -> T) -> Result<(ParseRequest, T), ValidationError> {
    let (mut request, more) = read_body(ApiVersion::V2, body, Nulls::Wrong, |fields, unavailable| {
        let more = more(fields);
        let has_timeout = fields.get("timeout").is_some();
        let options = read_options(ApiVersion::V2, fields, unavailable);
        let request = ParseRequest {
            options: ScrapeOptions { timeout: if has_timeout { options.timeout } else { TIMEOUT }, ..options },
            origin: label(fields, "origin"),
            integration: label(fields, "integration"),
        };
        (request, more)
    })?;
    if let Some(text) = unsupported(&request.options) {
        return Err(refusal(ErrorCode::ParseUnsupportedOptions, Path::new(), text));
    }
    // A file is read anew each time, and kept for nobody.
    request.options.cache = CacheOptions { max_age: 0, store_in_cache: false, ..CacheOptions::default() };
    Ok((request, more))
}

/// Reads the body of `POST /v2/parse/upload-url`: which file is to come.
///
/// # Errors
/// Every wrong field; 400 when the file is announced to be larger than any may be.
pub fn parse_announced(body: &Value) -> Result<AnnouncedFile, ValidationError> {
    read_body(ApiVersion::V2, body, Nulls::Absent, |fields, _| {
        let given = fields.required("filename").and_then(|_| fields.text("filename", 1..=MAX_GIVEN));
        let name = given.and_then(clean_name);
        if given.is_some() && name.is_none() {
            fields.issues.rule(fields.path_of("filename"), "filename has nothing left without its folders");
        }
        let content_type = fields.text("contentType", 0..=MAX_TYPE).map(|kind| kind.trim().to_ascii_lowercase());
        if let Some(size) = fields.integer("declaredSizeBytes", 1..=i64::MAX)
            && size > MAX_BYTES as i64
        {
            fields.issues.rule(fields.path_of("declaredSizeBytes"), TOO_LARGE);
        }
        fields.ignore(&["origin", "integration"]);
        let content_type = content_type.filter(|kind| !kind.is_empty());
        AnnouncedFile { name: name.unwrap_or_default(), content_type }
    })
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
    fn what_files_cannot_have_is_refused_by_name() {
        let given = json!({"actions": [{"type": "wait", "milliseconds": 1}], "waitFor": 1, "location": {"country": "DE"},
            "mobile": true, "profile": {"name": "p"}, "lockdown": true, "minAge": 1});
        assert_eq!(given.as_object().unwrap().len(), NOT_FOR_FILES.len());
        for name in NOT_FOR_FILES {
            let refused = parse_upload(&json!({ name: given[name] })).unwrap_err();
            assert_eq!(refused.code, ErrorCode::ParseUnsupportedOptions, "{name}");
        }
    }

    #[test]
    fn a_file_is_announced_by_its_name() {
        let full = json!({"filename": "/home/me/report.docx", "contentType": "Text/RTF ", "declaredSizeBytes": 52_428_800,
            "origin": "mcp", "integration": "x"});
        let file = parse_announced(&full).unwrap();
        assert_eq!((file.name.as_str(), file.content_type.as_deref()), ("report.docx", Some("text/rtf")));
        let bare = parse_announced(&json!({"filename": "a.pdf", "contentType": null})).unwrap();
        assert_eq!(bare.content_type, None);
        for (body, words) in [
            (json!({}), "Required"),
            (json!({"filename": ""}), "at least 1"),
            (json!({"filename": "a/.."}), "without its folders"),
            (json!({"filename": "a.pdf", "declaredSizeBytes": 52_428_801}), "exceeds maximum size of 50MB"),
            (json!({"filename": "a.pdf", "declaredSizeBytes": 0}), "at least 1"),
            (json!({"filename": "a.pdf", "path": "x"}), "Unrecognized"),
        ] {
            let error = parse_announced(&body).unwrap_err();
            assert!(error.issues.iter().any(|issue| issue.message.contains(words)), "{body}: {error:?}");
        }
    }

    #[test]
    fn a_ref_stands_beside_the_options() {
        let (read, given) =
            parse_upload_ref(&json!({"uploadRef": "abc", "formats": ["links"], "timeout": 5_000})).unwrap();
        assert_eq!((given.as_str(), read.options.timeout), ("abc", 5_000));
        assert_eq!(parse_upload_ref(&json!({"formats": ["links"]})).unwrap_err().code, ErrorCode::BadRequest);
        assert_eq!(parse_upload(&json!({"uploadRef": "abc"})).unwrap_err().code, ErrorCode::BadRequest);
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
