//! One file per operation.

pub mod batch_scrape;
pub mod browser;
pub mod not_built;
pub mod scrape;
