//! Rules without IO: nothing here reads a clock, an environment variable or a socket.

pub mod action;
pub mod activity;
pub mod api_version;
mod asked;
pub mod cache;
pub mod capability;
pub mod crawl;
pub mod describe;
pub mod document;
pub mod interact;
pub mod job;
pub mod json_schema;
pub mod location;
pub mod map;
pub mod node;
pub mod price;
pub mod profile;
pub mod scrape;
pub mod scrape_request;
pub mod screenshot;
pub mod search;
pub mod session;
mod states;
pub mod target;
pub mod validation;
pub mod webhook;
mod words;
