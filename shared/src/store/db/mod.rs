//! The two databases: how they are reached, read and written, and what every statement is made with.
//!
//! Nothing here knows what the tables hold, except those that the room itself needs (settings, signals). What callers name
//! of `handle`, `connect` and `error` they name in [`super`].

#[macro_use]
pub(crate) mod sql;

pub(super) mod arrival;
pub mod clock;
pub(super) mod connect;
pub mod copies;
pub(super) mod error;
pub(super) mod handle;
mod kept;
mod lasting_plans;
pub mod lines;
pub mod migrations;
pub(super) mod parts;
pub mod settings;
pub(crate) mod shortage;
pub mod signals;
pub mod slices;
#[cfg(test)]
mod tests;
pub(super) mod writer;
