//! Which pages are claimed, and when they are started.
//!
//! ```text
//! held, dispatchers   which pages are in work; which teams are being served
//! team                claims the pages of one team in its turn
//! direct, routes      pages that somebody waits for; the listener's call for those
//! ```

pub mod direct;
pub mod dispatchers;
pub mod held;
pub mod routes;
pub mod team;
