//! Many pages in the background (spec 2.4, wire 4). What follows the start is shared with crawls: see `jobs`.

pub mod start;
