//! One file per operation.

pub mod agent;
pub mod batch_scrape;
pub mod browser;
pub mod crawl;
pub mod direct;
pub mod extract;
pub mod feedback;
pub mod interact;
pub mod jobs;
pub mod map;
pub mod mcp;
pub mod monitor;
pub mod outage;
pub mod parse;
pub mod retention;
pub mod scrape;
pub mod search;
mod tasks;
pub mod team;
pub mod v1;
