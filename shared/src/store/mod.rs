//! All SQL of the service: one text for SQLite and Postgres wherever possible.
//!
//! [`Db`] is one of two pools, [`Tx`] one of two transactions; [`on_db!`] runs the same body against whichever is
//! behind. Every function of the modules below has a test that runs on both databases.
//!
//! On SQLite every writing transaction starts with `BEGIN IMMEDIATE` (a deferred one fails at its lock upgrade), the
//! file is in WAL mode with `synchronous = NORMAL`, and several processes share it.

#[macro_use]
pub(crate) mod sql;

pub mod activity;
mod arrival;
pub mod attention;
#[cfg(test)]
mod bulk_tests;
pub mod cache;
pub mod cancel;
pub mod clock;
mod connect;
pub mod console;
pub mod copies;
pub mod crawls;
pub mod credits;
mod db;
pub mod derived;
pub mod documents;
pub mod drafts;
mod error;
pub mod extractors;
#[cfg(test)]
mod fault_tests;
pub mod feedback;
pub mod finder;
pub mod frontier;
pub mod jobs;
mod kept;
pub mod keys;
mod lasting_plans;
pub mod leases;
pub mod ledger;
pub mod lines;
#[cfg(test)]
mod lock_order_tests;
pub mod maps;
pub mod migrations;
pub mod model_usage;
pub mod monitors;
pub mod nodes;
pub mod orphans;
pub mod page;
pub mod pages;
mod parts;
pub mod profiles;
pub mod queue_depth;
pub mod rates;
pub mod retention;
pub mod scrape_context;
pub mod searches;
pub mod sessions;
pub mod set_back;
pub mod settings;
pub(crate) mod shortage;
pub mod signals;
pub mod site_templates;
pub mod sitemaps;
pub mod slices;
pub mod snapshots;
pub mod sweep;
pub mod tasks;
pub mod team_lock;
pub mod teams;
#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;
pub mod turns;
pub mod uploads;
pub mod waste;
pub mod webhooks;
mod writer;

pub use arrival::{Refusal, why_not_written};
pub use connect::PoolUse;
pub(crate) use db::claim_patience;
pub use db::{Db, PostgresDb, SqliteDb, Tx};
pub use error::{StoreError, StoreResult, postgres_code, takes_no_writes};
pub use migrations::{migrate, migrate_patiently};
