//! Jobs in, pages and results out: the worker process of the service.
//!
//! What stands alone has a crate of its own, which knows nothing of jobs and rows, and is reached here under its short
//! name: [`extract`] (HTML to markdown), [`fetch`] (HTTP behind the address guard), [`sandbox`] (boxes for what is not
//! trusted) and [`browser`] (Chromium).

pub mod agent;
pub mod changes;
pub mod context;
pub mod exec;
pub mod finisher;
pub mod frontier_memory;
pub mod gate;
pub mod handed;
pub mod jobs;
pub mod listener;
pub mod metrics;
pub mod node;
mod on_call;
pub mod pdf;
pub mod reader;
pub mod redact;
pub mod relay;
pub mod replayer;
pub mod runner;
pub mod sessions;
pub mod site;
pub mod sweeper;
pub mod tidier;

pub use weir_browser as browser;
pub use weir_extract as extract;
pub use weir_fetch as fetch;
pub use weir_sandbox as sandbox;
