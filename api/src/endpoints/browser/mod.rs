//! Browser sessions (SPEC 4.1 to 4.4, CONTRACT 8): their capabilities' addresses.

pub mod cdp;
pub mod live;
pub mod relay_target;
mod splice;
