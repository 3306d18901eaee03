//! The body of `POST /v2/batch/scrape` (spec 4.7, wire 4.1): scrape options flattened beside the batch's own fields.

use serde_json::{Map, Value};

use super::body::{Nulls, read_body};
use super::fields::{label, read_headers};
use super::options::read_options;
use crate::domain::api_version::ApiVersion;
use crate::domain::header_rules::may_carry;
use crate::domain::scrape::ScrapeOptions;
use crate::domain::target::{self, RequestContext};
use crate::domain::validation::{Fields, Issues, Path, ValidationError, read_id};
use crate::domain::webhook::WebhookSpec;
use crate::error_code::ErrorCode;
use crate::ids::JobId;

/// Fields of a batch besides the scrape options.
pub(super) const OWN_FIELDS: &[&str] = &[
    "urls",
    "webhook",
    "maxConcurrency",
    "appendToId",
    "ignoreInvalidURLs",
    "zeroDataRetention",
    "origin",
    "integration",
    "auditMetadata",
];
/// Events a webhook can ask for (wire 7).
pub(super) const EVENTS: &[&str] = &["started", "page", "completed", "failed", "cancelled"];
/// Largest `metadata` of a webhook, bytes of JSON: it comes with every delivery.
const MAX_METADATA: usize = 65_536;

/// A batch, valid.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchRequest {
    /// Exactly as they came, in order, duplicates kept; at least one.
    pub urls: Vec<String>,
    /// URLs that were skipped; `None` when the caller wants them to fail the request.
    pub invalid_urls: Option<Vec<String>>,
    pub options: ScrapeOptions,
    /// Whether the body names scrape options at all: an append without any takes the batch's own.
    pub has_options: bool,
    pub webhook: Option<WebhookSpec>,
    /// Pages of this batch at once, 1 upwards; the team's limit caps it.
    pub max_concurrency: Option<i64>,
    /// Add to this running batch instead of starting one.
    pub append_to_id: Option<JobId>,
    /// Skip invalid URLs instead of failing. Default true; false in version 1.
    pub ignore_invalid_urls: bool,
    pub origin: Option<String>,
    pub integration: Option<String>,
    pub version: ApiVersion,
}

/// Reads the body.
///
/// # Errors
/// Every wrong field; the first option that is not available yet; a plain 400 when not one URL is valid.
pub fn parse_batch(body: &Value, context: RequestContext<'_>) -> Result<BatchRequest, ValidationError> {
    parse_batch_of(ApiVersion::V2, body, context)
}

pub(super) fn parse_batch_of(
    version: ApiVersion,
    body: &Value,
    context: RequestContext<'_>,
) -> Result<BatchRequest, ValidationError> {
    let request = read_body(version, body, Nulls::of(version), |fields, unavailable| {
        let ignore_invalid_urls = fields.bool("ignoreInvalidURLs").unwrap_or(version == ApiVersion::V2);
        let (urls, invalid) = read_urls(fields, ignore_invalid_urls, context);
        let options = read_options(version, fields, unavailable);
        BatchRequest {
            urls,
            invalid_urls: ignore_invalid_urls.then_some(invalid),
            options,
            has_options: body.as_object().is_some_and(|b| b.keys().any(|k| !OWN_FIELDS.contains(&k.as_str()))),
            webhook: read_webhook(version, fields),
            max_concurrency: fields.integer("maxConcurrency", 1..=i64::from(i32::MAX)),
            append_to_id: read_id(fields, "appendToId"),
            ignore_invalid_urls,
            origin: label(fields, "origin"),
            integration: label(fields, "integration"),
            version,
        }
    })?;
    if request.urls.is_empty() {
        let message = "No valid URLs provided".to_owned();
        return Err(ValidationError { code: ErrorCode::Invalid, message, issues: Vec::new() });
    }
    Ok(request)
}

/// Valid and invalid URLs. Entries that are not strings are an issue either way.
fn read_urls(
    fields: &mut Fields<'_, '_>,
    ignore_invalid: bool,
    context: RequestContext<'_>,
) -> (Vec<String>, Vec<String>) {
    let (mut valid, mut invalid) = (Vec::new(), Vec::new());
    if fields.required("urls").is_none() {
        return (valid, invalid);
    }
    let Some(list) = fields.array("urls", i64::MAX) else { return (valid, invalid) };
    if list.is_empty() {
        fields.issues.out_of_range(fields.path_of("urls"), "array", 0, &(1..=i64::MAX));
    }
    // Exactly, because lists that grow need the room of millions of addresses twice.
    valid.reserve_exact(list.len());
    for (i, entry) in list.iter().enumerate() {
        match entry.as_str() {
            Some(url) if target::check(url, context).is_ok() => valid.push(target::kept(url)),
            Some(url) if ignore_invalid => {
                if invalid.is_empty() {
                    invalid.reserve_exact(list.len() - i);
                }
                invalid.push(url.to_owned());
            }
            _ => {
                let mut path = fields.path_of("urls");
                path.push(i.into());
                target::read_value(entry, path, context, fields.issues);
            }
        }
    }
    (valid, invalid)
}

/// A URL, or a strict object (wire 7).
pub(super) fn read_webhook(version: ApiVersion, fields: &mut Fields<'_, '_>) -> Option<WebhookSpec> {
    read_webhook_of(version, fields, EVENTS)
}

/// The same where other events can be asked for.
pub(super) fn read_webhook_of(
    version: ApiVersion,
    fields: &mut Fields<'_, '_>,
    known: &[&'static str],
) -> Option<WebhookSpec> {
    let value = fields.get("webhook")?;
    let path = fields.path_of("webhook");
    match value {
        Value::String(url) => {
            check_receiver(url, path, fields.issues);
            Some(WebhookSpec {
                url: url.clone(),
                headers: Default::default(),
                metadata: Map::new(),
                events: Vec::new(),
                version,
            })
        }
        Value::Object(_) => read_webhook_object(version, value, path, fields.issues, known),
        other => {
            fields.issues.wrong_union(path, "string or object", other);
            None
        }
    }
}

fn read_webhook_object(
    version: ApiVersion,
    value: &Value,
    path: Path,
    issues: &mut Issues,
    known: &[&'static str],
) -> Option<WebhookSpec> {
    let mut webhook = Fields::open(value, path, issues)?.nulls_are_absent();
    let mut url = String::new();
    if webhook.required("url").is_some()
        && let Some(text) = webhook.string("url")
    {
        check_receiver(text, webhook.path_of("url"), webhook.issues);
        url = text.to_owned();
    }
    let headers =
        webhook.get("headers").map(|v| read_headers(v, webhook.path_of("headers"), webhook.issues)).unwrap_or_default();
    for name in headers.keys().filter(|name| !may_carry(name)) {
        let mut path = webhook.path_of("headers");
        path.push(name.as_str().into());
        webhook.issues.rule(path, format!("headers: {name} is written by the service itself"));
    }
    let metadata = read_metadata(&mut webhook);
    let events = webhook.strings("events", 100).unwrap_or_default();
    for (i, event) in events.iter().enumerate() {
        if !known.contains(&event.as_str()) {
            let mut path = webhook.path_of("events");
            path.push(i.into());
            webhook.issues.wrong_choice(path, known);
        }
    }
    webhook.finish();
    Some(WebhookSpec { url, headers, metadata, events, version })
}

fn read_metadata(webhook: &mut Fields<'_, '_>) -> Map<String, Value> {
    let Some(value) = webhook.get("metadata") else { return Map::new() };
    let path = webhook.path_of("metadata");
    match value {
        Value::Object(map) if value.to_string().len() <= MAX_METADATA => return map.clone(),
        Value::Object(_) => webhook.issues.rule(path, format!("metadata must be at most {MAX_METADATA} bytes of JSON")),
        other => webhook.issues.wrong_type(path, "object", Some(other)),
    }
    Map::new()
}

/// A receiver is any http or https URL; whether its address may be reached is judged at each delivery.
fn check_receiver(text: &str, path: Path, issues: &mut Issues) {
    match url::Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.host().is_some() => {}
        Ok(_) => issues.rule(path, "Webhook URL uses unsupported protocol"),
        Err(_) => issues.format(path, "url", "Invalid webhook URL"),
    }
}
