//! Jobs and all that they are made of: pages, crawls, tasks, maps and searches, their documents and webhooks, and the
//! workers that do them.
//!
//! It is one room because the end of a page is one transaction over most of these tables: it may let a crawl grow, end the
//! job, call back a task and write webhooks ([`page::finish`]).

pub mod cancel;
pub mod crawls;
pub mod documents;
pub mod drafts;
#[cfg(test)]
mod fault_tests;
pub mod frontier;
pub mod jobs;
pub mod maps;
pub mod nodes;
pub mod page;
pub mod pages;
pub mod queue_depth;
pub mod searches;
pub mod tasks;
#[cfg(test)]
mod tests;
pub mod webhooks;
