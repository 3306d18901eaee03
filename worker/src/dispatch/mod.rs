//! Which pages are claimed, and when they are started.

pub mod routes;
pub mod slots;
pub mod team;
