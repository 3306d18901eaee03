//! All SQL of the service: one text for SQLite and Postgres wherever possible.
//!
//! [`Db`] is one of two pools, [`Tx`] one of two transactions; [`on_db!`] runs the same body against whichever is
//! behind. Every function of the modules below has a test that runs on both databases.
//!
//! The tables' modules stand in rooms. A room knows those above it in this list and none below; tests may ask anywhere.
//!
//! | room | what it is for |
//! |---|---|
//! | [`db`] | the two databases: connections, transactions, migrations, and what every statement is made with |
//! | [`accounts`] | teams and their keys: what they may, how often, what they did, used and said |
//! | [`contents`] | what sites have sent, callers have given and workers have learned, and how it goes again |
//! | [`work`] | jobs, their pages and crawls, the workers that do them, and what is told of them |
//! | [`sessions`] | browser sessions, with their profiles |
//! | [`monitors`] | what is watched, its checks and what they found |
//! | [`console`] | what the operator's console shows beyond the public API |
//! | [`upkeep`] | what is done for all of them from time to time |
//!
//! On SQLite every writing transaction starts with `BEGIN IMMEDIATE` (a deferred one fails at its lock upgrade), the
//! file is in WAL mode with `synchronous = NORMAL`, and several processes share it.

#[macro_use]
pub mod db;

pub mod accounts;
pub mod console;
pub mod contents;
pub mod monitors;
#[cfg(test)]
mod room_tests;
pub mod sessions;
#[cfg(test)]
pub mod testing;
pub mod upkeep;
pub mod work;

pub use db::arrival::{Refusal, why_not_written};
pub use db::connect::PoolUse;
pub use db::error::{StoreError, StoreResult, postgres_code, takes_no_writes};
pub(crate) use db::handle::claim_patience;
pub use db::handle::{Db, PostgresDb, SqliteDb, Tx};
pub use db::migrations::{migrate, migrate_patiently};
