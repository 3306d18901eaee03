//! The body of `POST /v2/crawl` (wire 5.1): the crawl's own fields, with scrape options under `scrapeOptions`.

use serde_json::{Map, Value};

use super::batch::read_webhook;
use super::body::{Nulls, read_body};
use super::fields::label;
use super::formats::read_instructions;
use super::options::{default_options, read_options};
use super::threat;
use super::unavailable::Unavailable;
use crate::domain::api_version::ApiVersion;
use crate::domain::crawl::CrawlOptions;
use crate::domain::scrape::ScrapeOptions;
use crate::domain::target::{self, RequestContext};
use crate::domain::validation::{Fields, ValidationError};
use crate::domain::webhook::WebhookSpec;

/// A crawl, valid.
#[derive(Debug, Clone, PartialEq)]
pub struct CrawlRequest {
    /// Exactly as it came; [`super::fetch_url`] gives the address to fetch.
    pub url: String,
    pub options: CrawlOptions,
    /// What each page is scraped with.
    pub scrape: ScrapeOptions,
    pub webhook: Option<WebhookSpec>,
    /// Words that are to be turned into options; those that the body names win.
    pub prompt: Option<String>,
    pub origin: Option<String>,
    pub integration: Option<String>,
    pub version: ApiVersion,
}

/// Reads the body.
///
/// # Errors
/// Every wrong field; the first option that is not available yet.
pub fn parse_crawl(body: &Value, context: RequestContext<'_>) -> Result<CrawlRequest, ValidationError> {
    parse_crawl_of(ApiVersion::V2, body, context)
}

pub(super) fn parse_crawl_of(
    version: ApiVersion,
    body: &Value,
    context: RequestContext<'_>,
) -> Result<CrawlRequest, ValidationError> {
    // The JavaScript client's types allow null for what is not set.
    read_body(version, body, Nulls::Absent, |fields, unavailable| {
        let mut request = CrawlRequest {
            url: target::read(fields, "url", context).unwrap_or_default(),
            options: CrawlOptions::read(version, fields),
            scrape: read_scrape_options(version, fields, unavailable),
            webhook: read_webhook(version, fields),
            prompt: match version {
                ApiVersion::V1 => None,
                ApiVersion::V2 => read_instructions(fields, "prompt"),
            },
            origin: label(fields, "origin"),
            integration: label(fields, "integration"),
            version,
        };
        request.scrape.zero_retention |= fields.bool("zeroDataRetention").unwrap_or(false);
        let sites = threat::read(fields, unavailable);
        request.scrape.sites = std::mem::take(&mut request.scrape.sites).and(sites);
        fields.ignore(&["auditMetadata", "domainTools", "toolDetail"]);
        request
    })
}

fn read_scrape_options(
    version: ApiVersion,
    fields: &mut Fields<'_, '_>,
    unavailable: &mut Vec<Unavailable>,
) -> ScrapeOptions {
    let Some(nested) = fields.object("scrapeOptions") else { return default_options(version) };
    let mut nested = nested.nulls_are_absent();
    let options = read_options(version, &mut nested, unavailable);
    if options.profile.is_some() {
        let text = "profile is not possible in a crawl, whose pages are many and at once";
        nested.issues.rule(nested.path_of("profile"), text);
    }
    nested.ignore(&["origin", "integration"]);
    nested.finish();
    options
}

/// Of a body that was read, the fields of the crawl itself, without those of its pages: all that
/// [`with_prompt_options`] asks for.
pub fn crawl_fields(body: &Value) -> Value {
    let fields = body.as_object().into_iter().flatten();
    let own = fields.filter(|(name, _)| {
        !matches!(name.as_str(), "scrapeOptions" | "webhook" | "auditMetadata" | "threatProtection")
    });
    Value::Object(own.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// The body with the options that a prompt was turned into, where it names none itself.
pub fn with_prompt_options(body: &Value, options: &Map<String, Value>) -> Value {
    let mut merged = body.clone();
    if let Value::Object(fields) = &mut merged {
        for (name, value) in options.iter().filter(|(name, _)| *name != "url") {
            if fields.get(name).is_none_or(Value::is_null) {
                fields.insert(name.clone(), value.clone());
            }
        }
    }
    merged
}
