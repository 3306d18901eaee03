//! Teams and their keys: what they may, how often, what they did, used and said.
//!
//! Everything that a caller owns belongs to a team, and [`team_lock`] is the first lock of whoever changes any of it. What
//! is billed is written here alone ([`credits`]).

pub mod activity;
pub mod credits;
pub mod feedback;
pub mod keys;
pub mod ledger;
pub mod model_usage;
pub mod rates;
pub mod team_lock;
pub mod teams;
pub mod turns;
