//! HTTP in, rows and jobs out. The routes stand in [`routes`], in the order of the specification; each names the file
//! of its operation. Nothing here fetches a page: that is the workers' side of the rows.

pub mod access_log;
pub mod answers;
pub mod app;
mod arriving;
mod asset;
pub mod auth;
pub mod base_url;
pub mod bodies;
pub mod cli;
mod connections;
pub mod console;
mod cors;
pub mod direct_dispatch;
pub mod docs;
pub mod ended_jobs;
pub mod endpoints;
pub mod error;
pub mod extract;
pub mod first_key;
mod handed_over;
mod head;
pub mod health;
pub mod http_server;
pub mod json;
pub mod limits;
pub mod mcp;
pub mod metrics;
pub mod open_mode;
pub mod openapi;
mod pace;
pub mod queue_headroom;
pub mod relay_target;
mod remembered;
pub mod routes;
pub mod server;
pub mod silent_workers;
pub mod turns;
pub mod welcome;
pub mod worker_client;

#[cfg(test)]
mod browser_tests;
#[cfg(test)]
mod service_tests;
