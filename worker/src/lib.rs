//! Jobs in, pages and results out: the worker process of the service.

pub mod agent;
pub mod browser;
pub mod changes;
pub mod context;
mod crawl;
mod dispatch;
pub mod exec;
pub mod extract;
pub mod fetch;
pub mod finisher;
mod jobs;
mod lease;
pub mod listener;
mod map;
pub mod metrics;
pub mod node;
mod page;
pub mod pdf;
mod process;
mod queue;
pub mod reader;
pub mod redact;
pub mod relay;
pub mod replayer;
pub mod sandbox;
pub mod sessions;
pub mod site;
pub mod sweeper;
#[cfg(test)]
mod testing;
pub mod tidier;
