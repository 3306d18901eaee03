//! The wire form of scrape options (wire 3.2) into [`ScrapeOptions`]: parsed once, at the edge.
//!
//! A body is first judged whole, with every wrong field collected. Options of later releases are held to their
//! contract too; only then one that would change the result is refused with the words "not available yet", so that
//! nothing is ever silently ignored.

mod actions;
mod batch;
mod body;
mod crawl;
mod fields;
mod formats;
mod map;
mod monitor;
mod options;
mod parsers;
mod preview;
mod redaction;
mod scrape;
mod search;
mod task;
mod threat;
mod unavailable;
mod upload;
mod v1;
mod wire_form;

pub use batch::{BatchRequest, parse_batch};
pub use crawl::{CrawlRequest, crawl_fields, parse_crawl, with_prompt_options};
pub use map::parse_map;
pub use monitor::{
    AIMLESS, DEFAULT_RETENTION_DAYS, HIDDEN, MonitorRequest, is_aimless, parse_monitor, parse_monitor_change,
};
pub use preview::{PreviewRequest, parse_preview};
pub use scrape::{ScrapeRequest, parse_scrape};
pub use search::parse_search;
pub use task::{AgentRequest, ExtractRequest, parse_agent, parse_extract, parse_v1_extract};
pub(in crate::domain) use unavailable::no_exchange;
pub use upload::{AnnouncedFile, NOT_FOR_FILES, ParseRequest, parse_announced, parse_upload, parse_upload_ref};
pub use v1::{parse_v1_batch, parse_v1_crawl, parse_v1_llmstxt, parse_v1_map, parse_v1_scrape, parse_v1_search};
pub use wire_form::wire_form;

#[cfg(test)]
mod tests;
