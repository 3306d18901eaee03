//! What lasts beyond the page that brought it: what sites have sent, what was made or learned of that, what callers have
//! sent, and how all of it goes again.
//!
//! The end of a page writes most of it, in its own transaction (`work::page`). Of jobs and pages this room knows the ids;
//! [`retention`] alone changes their rows, where they are to keep nothing.

pub mod cache;
pub mod derived;
pub mod extractors;
pub mod finder;
pub mod of_team;
pub mod orphans;
pub mod retention;
pub mod site_templates;
pub mod sitemaps;
pub mod snapshots;
pub mod uploads;
pub mod version;
pub mod waste;
