//! What a worker does with a ticket: one file a kind.

pub mod deliver_webhook;
pub mod scrape_page;
pub mod serve_team;
