//! The Model Context Protocol: Weir's routes as tools for language models, under the names of the official server.
//!
//! A tool is a route of the API. Its arguments are the route's own, described by the API's document, and a call of it is
//! a request to that route with the caller's key: keys, limits, rules, prices and logs are those of HTTP, and nothing
//! here judges anything again.
//!
//! ```text
//! POST /mcp   endpoints/mcp ──┐                            ┌── this process, over its own address
//!                             ├── server ── tools ── weir ─┤
//! weir mcp    cli/mcp ────────┘                            └── the Weir at WEIR_URL
//! ```
//!
//! The protocol itself is the SDK's (rmcp). What a job finds is a resource: the tool that starts one answers a link.

mod arguments;
mod files;
mod resources;
mod schema;
mod server;
mod tools;
mod weir;

pub use server::Server;
pub use weir::Weir;

#[cfg(test)]
mod tests;
