//! The bodies of `POST /v2/extract` and `POST /v2/agent` (wire 22, 23).

use serde_json::{Map, Value};
use uuid::Uuid;

use super::batch::{EVENTS, read_webhook_of};
use super::body::{Nulls, read_body};
use super::fields::label;
use super::formats::read_learn;
use super::options::{default_options, read_options};
use super::threat;
use super::unavailable::{Unavailable, no_exchange_here};
use crate::domain::api_version::ApiVersion;
use crate::domain::json_schema;
use crate::domain::location;
use crate::domain::reach;
use crate::domain::scrape::{Format, JsonFormat, ScrapeOptions};
use crate::domain::target::{self, RequestContext};
use crate::domain::task::{
    AgentMode, AgentSpec, DEFAULT_MAX_CREDITS, DEFAULT_PAGES, Effort, ExtractSpec, MAX_AGENT_URLS, MAX_PAGES,
    MAX_PROMPT, MAX_TIME_MS, MAX_URLS,
};
use crate::domain::validation::{Fields, ValidationError, read_id, refusal};
use crate::domain::webhook::WebhookSpec;
use crate::error_code::ErrorCode;

/// Fields that clients try out start so.
const EXPERIMENTAL: &str = "__experimental_";
/// Events of an agent.
const AGENT_EVENTS: &[&str] = &["started", "action", "completed", "failed", "cancelled"];
/// What an agent is said to be driven by when nothing is said.
const DEFAULT_MODEL: &str = "spark-1-pro";
/// Most calls that a catalogue's field may name.
const MAX_CALLS: i64 = 30;

/// An extraction, valid.
#[derive(Debug, Clone, PartialEq)]
pub struct ExtractRequest {
    pub spec: ExtractSpec,
    /// What each page is scraped with.
    pub scrape: ScrapeOptions,
    /// URLs that were skipped; `None` when the caller wants them to fail the request.
    pub invalid_urls: Option<Vec<String>>,
    pub webhook: Option<WebhookSpec>,
    pub origin: Option<String>,
    pub integration: Option<String>,
}

/// An agent, valid.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRequest {
    pub spec: AgentSpec,
    pub scrape: ScrapeOptions,
    pub thread: Option<Uuid>,
    pub webhook: Option<WebhookSpec>,
    pub origin: Option<String>,
}

/// Reads the body of `POST /v2/extract`.
///
/// # Errors
/// Every wrong field; that there is neither a URL nor a prompt.
pub fn parse_extract(body: &Value, context: RequestContext<'_>) -> Result<ExtractRequest, ValidationError> {
    parse_extract_of(ApiVersion::V2, body, context)
}

/// Reads the body of `POST /v1/extract`.
///
/// # Errors
/// As [`parse_extract`].
pub fn parse_v1_extract(body: &Value, context: RequestContext<'_>) -> Result<ExtractRequest, ValidationError> {
    parse_extract_of(ApiVersion::V1, body, context)
}

fn parse_extract_of(
    version: ApiVersion,
    body: &Value,
    context: RequestContext<'_>,
) -> Result<ExtractRequest, ValidationError> {
    let known = without_experiments(body);
    let request = read_body(version, known.as_ref().unwrap_or(body), Nulls::Absent, |fields, unavailable| {
        read_extract(version, fields, unavailable, context)
    })?;
    if request.spec.urls.is_empty() {
        let refused = |text: &str| Err(refusal(ErrorCode::BadRequest, vec!["urls".into()], text));
        if request.invalid_urls.as_ref().is_some_and(|invalid| !invalid.is_empty()) {
            return refused("No valid URLs provided");
        }
        if request.spec.prompt.is_none() {
            return refused("Either 'urls' or 'prompt' must be provided.");
        }
    }
    Ok(request)
}

fn read_extract(
    version: ApiVersion,
    fields: &mut Fields<'_, '_>,
    unavailable: &mut Vec<Unavailable>,
    context: RequestContext<'_>,
) -> ExtractRequest {
    let ignore_invalid = fields.bool("ignoreInvalidURLs").unwrap_or(version == ApiVersion::V2);
    let (urls, invalid) = read_urls(fields, MAX_URLS, ignore_invalid, context);
    let prompt = fields.text("prompt", 0..=MAX_PROMPT).map(str::to_owned).filter(|text| !text.trim().is_empty());
    let web_search = fields.bool("enableWebSearch").unwrap_or(false);
    let external = fields.bool("allowExternalLinks").unwrap_or(false);
    let mut scrape = read_scrape_options(version, fields, unavailable);
    scrape.sites = std::mem::take(&mut scrape.sites).and(threat::read(fields, unavailable));
    read_engine(fields);
    fields.bool("urlTrace");
    fields.ignore(&["auditMetadata", "domainTools", "toolDetail"]);
    let system_prompt = fields.text("systemPrompt", 0..=MAX_PROMPT).map(str::to_owned);
    let schema = read_schema(fields);
    let learn = version == ApiVersion::V2 && read_learn(fields, schema.is_some());
    if let Some(schema) = schema.as_ref().filter(|_| learn) {
        scrape.formats.push(Format::Json(learned(schema, [&system_prompt, &prompt])));
    }
    let warning = (external && !web_search).then(|| {
        "allowExternalLinks: the given pages and what their globs match were read, and no links to other sites."
            .to_owned()
    });
    let spec = ExtractSpec {
        web_search: web_search || urls.is_empty(),
        urls,
        prompt,
        schema,
        system_prompt,
        include_subdomains: fields.bool("includeSubdomains").unwrap_or(true),
        ignore_sitemap: fields.bool("ignoreSitemap").unwrap_or(false),
        show_sources: fields.bool("showSources").unwrap_or(false),
        learn,
        limit: fields.integer("limit", 1..=MAX_PAGES as i64).map_or(DEFAULT_PAGES, |limit| limit as usize),
        timeout: fields.integer("timeout", 1_000..=MAX_TIME_MS).unwrap_or(MAX_TIME_MS),
        warning,
        version,
    };
    ExtractRequest {
        spec,
        scrape,
        invalid_urls: ignore_invalid.then_some(invalid),
        webhook: read_webhook_of(version, fields, EVENTS),
        origin: label(fields, "origin"),
        integration: label(fields, "integration"),
    }
}

/// What is read of each page as it is scraped: what another page may say is not required.
fn learned(schema: &Value, words: [&Option<String>; 2]) -> JsonFormat {
    let words: Vec<&str> = words.into_iter().flatten().map(String::as_str).collect();
    let prompt = (!words.is_empty()).then(|| words.join("\n\n"));
    JsonFormat { prompt, schema: Some(json_schema::relaxed(schema)), learn: true, ..JsonFormat::default() }
}

/// The body without the fields that clients try out; `None`: there are none.
fn without_experiments(body: &Value) -> Option<Value> {
    let fields = body.as_object()?;
    if !fields.keys().any(|name| name.starts_with(EXPERIMENTAL)) {
        return None;
    }
    let known: Map<String, Value> = fields
        .iter()
        .filter(|(name, _)| !name.starts_with(EXPERIMENTAL))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    Some(Value::Object(known))
}

/// Valid and invalid URLs. A glob is judged by what is before its star.
fn read_urls(
    fields: &mut Fields<'_, '_>,
    most: i64,
    ignore_invalid: bool,
    context: RequestContext<'_>,
) -> (Vec<String>, Vec<String>) {
    let (mut valid, mut invalid) = (Vec::new(), Vec::new());
    for (i, entry) in fields.array("urls", most).into_iter().flatten().enumerate() {
        let plain = |url: &str| target::check(url.strip_suffix("/*").unwrap_or(url), context).is_ok();
        match entry.as_str() {
            Some(url) if plain(url) => valid.push(target::kept(url)),
            Some(url) if ignore_invalid => invalid.push(url.to_owned()),
            _ => {
                let mut path = fields.path_of("urls");
                path.push(i.into());
                target::read_value(entry, path, context, fields.issues);
            }
        }
    }
    (valid, invalid)
}

/// A schema that answers can be held to; an empty one is as good as none.
fn read_schema(fields: &mut Fields<'_, '_>) -> Option<Value> {
    let value = fields.get("schema")?;
    if !value.is_object() {
        fields.issues.rule(fields.path_of("schema"), "Invalid JSON schema.");
        return None;
    }
    if let Err(why) = json_schema::Schema::new(value) {
        fields.issues.rule(fields.path_of("schema"), format!("Invalid JSON schema. {why}"));
    }
    Some(value.clone()).filter(|schema| schema.as_object().is_some_and(|map| !map.is_empty()))
}

/// Options of the pages. What is read out of them is asked for elsewhere, so formats are not theirs to name.
fn read_scrape_options(
    version: ApiVersion,
    fields: &mut Fields<'_, '_>,
    unavailable: &mut Vec<Unavailable>,
) -> ScrapeOptions {
    let mut options = default_options(version);
    options.only_main_content = false;
    if let Some(nested) = fields.object("scrapeOptions") {
        let mut nested = nested.nulls_are_absent();
        let names_content = nested.get("onlyMainContent").is_some();
        let read = read_options(version, &mut nested, unavailable);
        for (name, is_given) in
            [("profile", read.profile.is_some()), ("changeTracking", read.change_tracking().is_some())]
        {
            if is_given {
                nested.issues.rule(nested.path_of(name), format!("{name} is not possible in an extraction"));
            }
        }
        nested.ignore(&["origin", "integration"]);
        nested.finish();
        options = ScrapeOptions { only_main_content: names_content && read.only_main_content, ..read };
    }
    options.formats = vec![Format::Markdown, Format::Links];
    options
}

/// Which engine another product is to use: this service has one.
fn read_engine(fields: &mut Fields<'_, '_>) {
    if let Some(nested) = fields.object("agent") {
        let mut nested = nested.nulls_are_absent();
        nested.string("model");
        nested.ignore(&["prompt", "sessionId"]);
        nested.finish();
    }
}

/// Reads the body of `POST /v2/agent`.
///
/// # Errors
/// Every wrong field; that a catalogue is asked for.
pub fn parse_agent(body: &Value, context: RequestContext<'_>) -> Result<AgentRequest, ValidationError> {
    let mut wants_exchange = false;
    let request = read_body(ApiVersion::V2, body, Nulls::Absent, |fields, unavailable| {
        wants_exchange = read_exchange(fields);
        read_agent(fields, unavailable, context)
    })?;
    if wants_exchange {
        return Err(no_exchange_here(vec!["exchange".into()]));
    }
    if request.spec.strict && request.spec.urls.is_empty() && request.thread.is_none() {
        let text = "strictConstrainToURLs needs urls";
        return Err(refusal(ErrorCode::BadRequest, vec!["strictConstrainToURLs".into()], text));
    }
    Ok(request)
}

fn read_agent(
    fields: &mut Fields<'_, '_>,
    unavailable: &mut Vec<Unavailable>,
    context: RequestContext<'_>,
) -> AgentRequest {
    let mut prompt = String::new();
    if fields.required("prompt").is_some() {
        prompt = fields.text("prompt", 1..=MAX_PROMPT).unwrap_or_default().to_owned();
        if prompt.trim().is_empty() && fields.issues.is_empty() {
            fields.issues.rule(fields.path_of("prompt"), "prompt must not be blank");
        }
    }
    let (urls, _) = read_urls(fields, MAX_AGENT_URLS, false, context);
    let strict = fields.bool("strictConstrainToURLs").unwrap_or(false);
    let mut scrape =
        ScrapeOptions { formats: vec![Format::Markdown, Format::Links], ..default_options(ApiVersion::V2) };
    scrape.only_main_content = false;
    scrape.sites = threat::read(fields, unavailable);
    if strict {
        scrape.sites.documents = reach::hosts_of(&urls);
    }
    scrape.location = location::read(fields);
    scrape.zero_retention = fields.bool("zeroDataRetention").unwrap_or(false);
    fields.ignore(&["auditMetadata", "domainTools", "toolDetail"]);
    let spec = AgentSpec {
        prompt,
        urls,
        schema: read_schema(fields),
        max_credits: fields.integer("maxCredits", 1..=i64::from(i32::MAX)).unwrap_or(DEFAULT_MAX_CREDITS),
        strict,
        model: label(fields, "model").unwrap_or_else(|| DEFAULT_MODEL.to_owned()),
        effort: fields.choice("effort", &["low", "medium", "high"]).and_then(|word| word.parse::<Effort>().ok()),
        mode: fields.choice("mode", &["extract", "chat"]).and_then(|word| word.parse::<AgentMode>().ok()),
        integration: label(fields, "integration"),
        before: Vec::new(),
    };
    AgentRequest {
        spec,
        scrape,
        thread: read_id(fields, "threadId"),
        webhook: read_webhook_of(ApiVersion::V2, fields, AGENT_EVENTS),
        origin: label(fields, "origin"),
    }
}

/// Whether another product's catalogue is asked for: clients send the object with `enabled: false`, too.
fn read_exchange(fields: &mut Fields<'_, '_>) -> bool {
    let Some(nested) = fields.object("exchange") else { return false };
    let mut nested = nested.nulls_are_absent();
    let enabled = nested.bool("enabled");
    let toolkits = nested.array("toolkits", 5).is_some_and(|list| !list.is_empty());
    nested.integer("maxCalls", 1..=MAX_CALLS);
    nested.ignore(&["requireApproval", "approve", "decline", "onTermsRequired"]);
    nested.finish();
    enabled.unwrap_or(toolkits)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    #[test]
    fn an_extraction_is_read_and_its_rules_are_held() {
        let read = |body: Value| parse_extract(&body, RequestContext::ANYWHERE);
        let body = json!({"urls": ["https://a.test.com/*", "nope"], "prompt": "x", "schema": null, "showSources": true,
            "__experimental_x": 1, "scrapeOptions": {"formats": ["html"], "waitFor": 10}, "agent": {"model": "FIRE-1"}});
        let request = read(body).unwrap();
        assert_eq!((request.spec.urls.len(), request.invalid_urls.unwrap()), (1, vec!["nope".to_owned()]));
        assert!(request.spec.show_sources && !request.spec.web_search && !request.scrape.only_main_content);
        assert_eq!(request.scrape.formats, [Format::Markdown, Format::Links]);
        assert!(read(json!({"prompt": "who?"})).unwrap().spec.web_search);
        for (body, words) in [
            (json!({}), "Either 'urls' or 'prompt' must be provided."),
            (json!({"urls": []}), "Either 'urls' or 'prompt' must be provided."),
            (json!({"urls": ["nope"]}), "No valid URLs provided"),
            (json!({"urls": ["https://a.test.com"], "schema": {"type": "nothing"}}), "Invalid JSON schema."),
            (json!({"urls": ["https://a.test.com"], "schema": 5}), "Invalid JSON schema."),
            (json!({"urls": ["https://a.test.com"], "other": 5}), "Unrecognized key"),
        ] {
            let error = read(body.clone()).unwrap_err();
            assert!(error.message.starts_with(words), "{body}: {}", error.message);
        }
        let strict = parse_v1_extract(&json!({"urls": ["nope"], "prompt": "x"}), RequestContext::ANYWHERE);
        assert!(!strict.unwrap_err().issues.is_empty());
    }

    #[test]
    fn an_agent_is_read_and_its_rules_are_held() {
        let read = |body: Value| parse_agent(&body, RequestContext::ANYWHERE);
        let request = read(json!({"prompt": "find it", "urls": ["https://a.test.com/x"], "strictConstrainToURLs": true,
            "exchange": {"enabled": false, "toolkits": ["x"]}, "webhook": {"url": "https://h.test.com", "events": ["action"]},
            "effort": "high", "maxCredits": 7}))
        .unwrap();
        assert_eq!((request.spec.max_credits, request.spec.most_turns()), (7, 50));
        assert_eq!(request.scrape.sites.documents, ["a.test.com"]);
        for (body, words) in [
            (json!({}), "Bad Request"),
            (json!({"prompt": " "}), "prompt must not be blank"),
            (json!({"prompt": "x", "maxCredits": 0}), "Too small"),
            (json!({"prompt": "x", "strictConstrainToURLs": true}), "strictConstrainToURLs needs urls"),
            (json!({"prompt": "x", "exchange": {"enabled": true}}), "Exchange is not enabled"),
            (json!({"prompt": "x", "effort": "huge"}), "Invalid option"),
        ] {
            let error = read(body.clone()).unwrap_err();
            assert!(error.message.starts_with(words), "{body}: {}", error.message);
        }
    }
}
