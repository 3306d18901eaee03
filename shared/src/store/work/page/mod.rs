//! The life of a page: its row is written, claimed, perhaps rescued or replayed, and ended.
//!
//! | file | what it holds |
//! |---|---|
//! | `rows` | a page as a worker has it, and the one INSERT |
//! | `end` | how an attempt may end: types only |
//! | `scrape` | a job of one page somebody waits for |
//! | `claim`, `rescue`, `replay` | into work, back from it, and once more after a failure |
//! | `acting` | actions are begun by one claim |
//! | `finish` | the end of attempts, step by step: `moves`, `counts`, `results` |
//! | `rules` | what holds wherever a statement is written, as parts of SQL |
//! | `fast` | the same for a page somebody waits for, as one statement |
//!
//! Lock order of every writing transaction, which keeps Postgres free of deadlocks: team, then pages, then jobs.

pub mod acting;
pub mod claim;
mod counts;
pub mod end;
pub mod fast;
pub mod finish;
mod moves;
pub mod replay;
pub mod rescue;
pub(super) mod results;
pub mod rows;
pub(super) mod rules;
pub mod scrape;
