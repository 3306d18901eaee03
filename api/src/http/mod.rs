//! HTTP around the handlers: how a request is read and bounded before one, and what becomes of its answer.
//!
//! It knows who calls ([`crate::callers`]) and what all handlers reach ([`crate::app`]), and no endpoint.

pub mod access_log;
pub mod answers;
pub(crate) mod arriving;
pub(crate) mod asset;
pub mod base_url;
pub mod bodies;
pub(crate) mod connections;
pub(crate) mod cors;
pub mod extract;
pub(crate) mod handed_over;
pub(crate) mod head;
pub mod json;
pub(crate) mod pace;
pub(crate) mod peers;
