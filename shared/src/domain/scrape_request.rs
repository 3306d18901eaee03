//! The wire form of scrape options (wire 3.2) into [`ScrapeOptions`]: parsed once, at the edge.
//!
//! A body is first judged whole, with every wrong field collected. Options of later releases are held to their
//! contract too; only then one that would change the result is refused with the words "not available yet", so that
//! nothing is ever silently ignored.

mod actions;
mod batch;
mod crawl;
mod formats;
mod map;
mod options;
mod parsers;
mod preview;
mod redaction;
mod search;
mod threat;
mod unavailable;
mod upload;
mod v1;
mod wire_form;

use serde_json::Value;

pub use batch::{BatchRequest, parse_batch};
pub use crawl::{CrawlRequest, crawl_fields, parse_crawl, with_prompt_options};
pub use map::parse_map;
pub use preview::{PreviewRequest, parse_preview};
pub use search::parse_search;
pub use upload::{AnnouncedFile, ParseRequest, parse_announced, parse_upload, parse_upload_ref};
pub use v1::{parse_v1_batch, parse_v1_crawl, parse_v1_llmstxt, parse_v1_map, parse_v1_scrape, parse_v1_search};
pub use wire_form::wire_form;

use super::api_version::ApiVersion;
use super::scrape::ScrapeOptions;
use super::target::{self, RequestContext};
use super::validation::{Fields, Issues, Path, ValidationError, refusal};
use crate::error_code::ErrorCode;
use options::{label, read_options};
pub(in crate::domain) use unavailable::no_exchange;
use unavailable::refuse_unavailable;

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

fn parse_scrape_of(
    version: ApiVersion,
    body: &Value,
    context: RequestContext<'_>,
) -> Result<ScrapeRequest, ValidationError> {
    if body.get("alexandria").is_some_and(|value| !value.is_null()) {
        return Err(no_exchange(vec!["alexandria".into()]));
    }
    let mut issues = Issues::default();
    let mut unavailable = Vec::new();
    let request = Fields::open(body, Path::new(), &mut issues).map(|fields| {
        let mut fields = fields.of_version(version);
        let url = target::read(&mut fields, "url", context).unwrap_or_default();
        let options = read_options(version, &mut fields, &mut unavailable);
        let request = ScrapeRequest {
            url,
            options,
            origin: label(&mut fields, "origin"),
            integration: label(&mut fields, "integration"),
            version,
        };
        fields.finish();
        request
    });
    issues.into_result_of(version)?;
    refuse_unavailable(unavailable)?;
    request.ok_or_else(|| refusal(ErrorCode::BadRequest, Path::new(), "Bad Request"))
}

#[cfg(test)]
mod tests;
