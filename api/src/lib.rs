//! HTTP in, rows and jobs out. The routes stand in [`routes`], in the order of the specification; each names the file
//! of its operation. Nothing here fetches a page: that is the workers' side of the rows.
//!
//! What handlers are made with stands in rooms that know no endpoint: [`http`] knows [`callers`], and [`workers`] neither.

pub mod app;
pub mod callers;
pub mod cli;
pub mod console;
pub mod docs;
pub mod endpoints;
pub mod error;
pub mod health;
pub mod http;
pub mod http_server;
pub mod mcp;
pub mod metrics;
pub mod openapi;
pub mod routes;
pub mod server;
pub mod welcome;
pub mod workers;

#[cfg(test)]
mod browser_tests;
#[cfg(test)]
mod service_tests;
