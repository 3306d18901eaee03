//! `/v2/extract` (wire 22): data out of named pages.

pub mod start;
pub mod status;
