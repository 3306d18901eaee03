//! The body of `POST /v2/scrape` (wire 3.1).

use serde_json::Value;

use super::body::{Nulls, read_body};
use super::fields::label;
use super::options::read_options;
use super::unavailable::no_exchange;
use crate::domain::api_version::ApiVersion;
use crate::domain::scrape::ScrapeOptions;
use crate::domain::target::{self, RequestContext};
use crate::domain::validation::ValidationError;

/// A direct scrape, valid.
#[derive(Debug, Clone, PartialEq)]
pub struct ScrapeRequest {
    /// Exactly as it came; [`target::fetch_url`] gives the address to fetch.
    pub url: String,
    pub options: ScrapeOptions,
    /// Who sends the request, for statistics; clients of ours put their name here.
    pub origin: Option<String>,
    pub integration: Option<String>,
    pub version: ApiVersion,
}

/// Reads the body of `POST /v2/scrape` (wire 3.1).
///
/// # Errors
/// Every wrong field; or the first option that is not available yet.
pub fn parse_scrape(body: &Value, context: RequestContext<'_>) -> Result<ScrapeRequest, ValidationError> {
    parse_scrape_of(ApiVersion::V2, body, context)
}

pub(super) fn parse_scrape_of(
    version: ApiVersion,
    body: &Value,
    context: RequestContext<'_>,
) -> Result<ScrapeRequest, ValidationError> {
    if body.get("alexandria").is_some_and(|value| !value.is_null()) {
        return Err(no_exchange(vec!["alexandria".into()]));
    }
    read_body(version, body, Nulls::of(version), |fields, unavailable| {
        let url = target::read(fields, "url", context).unwrap_or_default();
        let options = read_options(version, fields, unavailable);
        ScrapeRequest {
            url,
            options,
            origin: label(fields, "origin"),
            integration: label(fields, "integration"),
            version,
        }
    })
}
