//! What a worker does with a ticket: one file a kind.

mod cached;
mod complete;
mod crawl_page;
pub mod deliver_webhook;
pub mod map_site;
mod read_sitemaps;
pub mod scrape_page;
pub mod serve_team;
