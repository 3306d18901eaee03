//! Version 1 of the API (wire 26): what clients of before call, and the official SDKs under `.v1`.
//!
//! It is a translation. Bodies are read into the requests of version 2 (`scrape_request/v1.rs` in `shared`), the same
//! code runs them, and answers are made of the same documents: what differs in them is said here and nowhere else.
//!
//! ```text
//! document   what was read out of a page is in `extract` as well as in `json`
//! llmstxt    a map, written as a text
//! map        links are texts
//! search     one list of hits
//! team       what is left, in snake case
//! ```
//!
//! Status, errors, cancel and WebSocket of jobs are those of `jobs`, which knows the version from its route.

pub mod batch;
pub mod crawl;
pub mod document;
pub mod extract;
pub mod llmstxt;
pub mod map;
pub mod scrape;
pub mod search;
pub mod team;
