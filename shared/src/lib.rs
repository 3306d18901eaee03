//! What the API and the workers must agree on: settings, ids, the rules of the domain, the rows and the queue.
//! No HTTP server, no browser.

pub mod blobs;
pub mod bm25;
pub mod clock;
pub mod config;
pub mod crawl_prompt;
pub mod descriptors;
pub mod domain;
pub mod error_code;
pub mod examination;
pub mod fault;
pub mod figures;
pub mod guard;
pub mod guests;
pub mod hang_up;
pub mod ids;
pub mod lasting;
pub mod llm;
pub mod lookups;
pub mod memory;
pub mod operator_http;
pub mod passages;
pub mod private;
pub mod queue;
pub mod random;
pub mod retry_after;
pub mod runners;
pub mod schedule;
pub mod search;
pub mod shares;
pub mod slots;
pub mod store;
pub mod telemetry;
pub mod texts;
pub mod time;
pub mod traces;
pub mod wake;
pub mod witness;
pub mod worker_api;

pub use weir_blocking as blocking;
