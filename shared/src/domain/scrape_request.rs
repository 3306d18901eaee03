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
mod unavailable;

use serde_json::Value;

pub use batch::{BatchRequest, parse_batch};
pub use crawl::{CrawlRequest, crawl_fields, parse_crawl, with_prompt_options};
pub use map::parse_map;
pub use preview::{PreviewRequest, parse_preview};
pub use search::parse_search;

use super::scrape::ScrapeOptions;
use super::target::{self, RequestContext};
use super::validation::{Fields, Issues, Path, ValidationError, refusal};
use crate::error_code::ErrorCode;
use options::{label, read_options};
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
}

/// Reads the body of `POST /v2/scrape` (wire 3.1).
///
/// # Errors
/// Every wrong field; or the first option that is not available yet.
pub fn parse_scrape(body: &Value, context: RequestContext<'_>) -> Result<ScrapeRequest, ValidationError> {
    let mut issues = Issues::default();
    let mut unavailable = Vec::new();
    let request = Fields::open(body, Path::new(), &mut issues).map(|mut fields| {
        let url = target::read(&mut fields, "url", context).unwrap_or_default();
        let options = read_options(&mut fields, &mut unavailable);
        let request = ScrapeRequest {
            url,
            options,
            origin: label(&mut fields, "origin"),
            integration: label(&mut fields, "integration"),
        };
        fields.finish();
        request
    });
    issues.into_result()?;
    refuse_unavailable(unavailable)?;
    request.ok_or_else(|| refusal(ErrorCode::BadRequest, Path::new(), "Bad Request"))
}

#[cfg(test)]
mod tests;
