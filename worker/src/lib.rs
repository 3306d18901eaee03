//! Jobs in, pages and results out: the worker process of the service.
//!
//! What stands alone has a crate of its own, which knows nothing of jobs and rows, and is reached here under its short
//! name: [`extract`] (HTML to markdown), [`fetch`] (HTTP behind the address guard), [`sandbox`] (boxes for what is not
//! trusted), [`browser`] (Chromium), what drives a session's browser ([`relay`], [`agent`], [`exec`]), and what files say
//! ([`pdf`], [`office`]).

pub mod changes;
pub mod context;
mod crawl;
mod dispatch;
pub mod finisher;
mod jobs;
mod learn;
mod lease;
pub mod listener;
mod map;
pub mod metrics;
mod monitors;
pub mod node;
mod page;
mod queue;
pub mod reader;
pub mod redact;
pub mod replayer;
pub mod sessions;
mod set_back;
pub mod site;
pub mod sweeper;
mod task;
#[cfg(test)]
mod testing;
pub mod tidier;

pub use weir_browser as browser;
pub use weir_drive::{agent, calls, exec, relay};
pub use weir_extract as extract;
pub use weir_fetch as fetch;
pub use weir_files::{office, pdf};
pub use weir_sandbox as sandbox;
