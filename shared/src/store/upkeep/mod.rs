//! What is done for all from time to time: removing what has expired, and putting right what a clock or a dead process has
//! left. One process at a time does it ([`leases`]), in slices that keep nobody waiting.

pub mod attention;
#[cfg(test)]
mod bulk_tests;
pub mod leases;
#[cfg(test)]
mod lock_order_tests;
pub mod removal;
#[cfg(test)]
mod removal_tests;
pub mod set_back;
pub mod sweep;
