//! What a site says about itself: its robots.txt and its sitemaps. Used by maps and crawls.
//!
//! Both readers are bounded in size, depth and time whatever a site sends, and keep what was readable.

mod pattern;
pub mod robots;
mod robots_store;
pub mod sitemap;
pub mod sitemap_cache;
mod sitemap_reader;

pub use self::robots::{Robots, RobotsRules};
pub use self::robots_store::RobotsStore;

use crate::fetch::ProxyUrl;

/// The agent whose rules of robots.txt are followed unless a caller names another.
pub const ROBOTS_AGENT: &str = "Weir";

/// How a site's own files are asked for. No caller's headers go with them: what is read is shared between callers.
#[derive(Debug, Clone, Default)]
pub struct SiteRoute {
    /// `Accept-Language`; absent: the fetcher's own.
    pub accept_language: Option<String>,
    /// Upstream proxy to go through.
    pub proxy: Option<ProxyUrl>,
    /// Its place among the operator's, for a browser.
    pub upstream: Option<usize>,
}
