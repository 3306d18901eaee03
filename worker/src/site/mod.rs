//! What a site says about itself: its robots.txt and its sitemaps. Used by maps and crawls.
//!
//! Both readers are bounded in size, depth and time whatever a site sends, and keep what was readable.

mod pattern;
pub mod robots;
mod robots_store;
mod route;
pub mod sitemap;
pub mod sitemap_cache;
mod sitemap_reader;

pub use self::robots::{Robots, RobotsRules};
pub use self::robots_store::RobotsStore;
pub use self::route::SiteRoute;

/// The agent whose rules of robots.txt are followed unless a caller names another.
pub const ROBOTS_AGENT: &str = "Weir";
