//! The life of a page: its row is written, claimed, perhaps rescued or replayed, and ended.
//!
//! | file | what it holds |
//! |---|---|
//! | `rows` | a page as a worker has it, and the one INSERT |
//! | `end` | how an attempt may end: types only |
//! | `scrape` | a job of one page somebody waits for |
//! | `claim`, `rescue`, `replay` | into work, back from it, and once more after a failure |
//! | `finish`, `results` | the end of an attempt: state and counts; document, cache and bill |
//! | `fast` | the same for a page somebody waits for, as one statement |
//!
//! Lock order of every writing transaction, which keeps Postgres free of deadlocks: team, then pages, then jobs.

pub mod claim;
pub mod end;
pub mod fast;
pub mod finish;
pub mod replay;
pub mod rescue;
pub(super) mod results;
pub mod rows;
pub mod scrape;
