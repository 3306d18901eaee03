//! Pages of a crawl: what comes before and after the page itself.

pub mod frontier_memory;
pub mod page;
pub mod sitemaps;
