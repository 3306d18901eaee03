//! Many pages in the background (SPEC 2.4, CONTRACT 4). What follows the start is shared with crawls: see `jobs`.

pub mod start;
