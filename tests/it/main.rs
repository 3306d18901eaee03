//! The service tests, one binary. Each module names what it proves; each test's name is its claim.
#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]
#![allow(clippy::disallowed_methods, reason = "tests read the clock and the environment themselves")]

mod actions;
mod auth;
mod backup;
mod batch;
mod browser;
mod cache;
mod changes;
mod cli;
mod concurrency;
mod crawl;
mod document;
mod errors;
mod escape;
mod faults;
mod formats;
mod guard;
mod health;
mod hosts;
mod idempotency_paging;
mod interact;
mod limits;
mod locked;
mod map;
mod options;
mod params_preview;
mod pdf;
mod profiles;
mod proxies;
mod reading;
mod redact;
mod relay;
mod replay;
mod retention;
mod scrape;
mod sdk;
mod sessions;
mod site_walk;
mod team;
mod walls;
mod webhooks;
mod websocket;
