//! Whole sites (spec 2.8, wire 5). What follows the start is shared with batches: see `jobs`.

pub mod active;
pub mod params_preview;
pub mod start;
