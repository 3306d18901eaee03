//! Who calls and how much each may ask for, and what is remembered of callers from one request to the next.
//!
//! It knows nothing of bodies and answers ([`crate::http`]).

pub mod auth;
pub mod ended_jobs;
pub mod first_key;
pub mod limits;
pub mod open_mode;
pub mod places;
pub mod queue_headroom;
pub(crate) mod remembered;
pub mod turns;
