//! Maps: what a site's sitemaps, its page, some further pages and earlier jobs of the team say about its addresses.
//!
//! ```text
//! robots.txt ─> sitemaps, streamed ─┐
//! the page itself ──────────────────┼─> one set of links ─> further pages when it is thin ─> order ─> answer
//! what the team knows of the site ──┘
//! ```
//!
//! The links are in `links`, what puts them in is in `walk` (one page of the site: `page`), the answer is made in `answer`
//! (its order: `rank`), and `work` goes from the claim to the end.

mod answer;
mod error;
mod links;
mod page;
mod rank;
mod walk;
pub mod work;
