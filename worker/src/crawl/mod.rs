//! Pages of a crawl: what comes before the page itself, and what it leads to.
//!
//! ```text
//! frontier_memory, rules, turn   known addresses; what robots.txt says; when it is a page's turn
//! visit                          what a page leads to
//! ahead, sitemaps                very many addresses, entered before their page ends; what the sitemaps list
//! page                           one page, around the attempt that every page has
//! ```

pub mod ahead;
pub mod frontier_memory;
pub mod page;
mod rules;
mod sitemaps;
mod turn;
mod visit;
