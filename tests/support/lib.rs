//! Harness of the service tests: the real binaries, a real site, real databases, nothing mocked.
//!
//! A test starts a [`FixtureSite`] and a [`TestService`], talks HTTP to the service and reads what the
//! site saw. Both end with everything they started when they are dropped, also when the test failed.
#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]
#![allow(clippy::disallowed_methods, reason = "tests read the clock and the environment themselves")]

mod bucket;
mod bucket_stand_in;
mod caller;
mod collector;
mod console;
mod contract;
mod database;
mod forward_proxy;
mod hostile_files;
mod hosts;
mod lost_answer;
mod model;
mod moved_clock;
mod own_pages;
mod page;
mod process;
mod relay_stage;
mod ruled_site;
mod search;
mod service;
mod site;
mod stand_in;
mod wait;

pub use bucket::BucketStore;
pub use bucket_stand_in::{BucketStandIn, BucketState};
pub use caller::{Answer, Caller};
pub use collector::{Collector, SentSpan, Taking};
pub use console::ConsoleUser;
pub use contract::fault;
pub use database::{Database, PostgresCluster, WriteLock};
pub use forward_proxy::ForwardProxy;
pub use hostile_files::{HostileFile, Told, hostile_files};
pub use hosts::{Host, Hub};
pub use lost_answer::LostAnswer;
pub use model::{ModelStandIn, Said};
pub use moved_clock::MovedClock;
pub use own_pages::{Gate, OwnPages};
pub use page::{Truth, documents_at, documents_of, ended_at, errors_of, finished, markdown_of};
pub use process::{
    ChildUse, ChildWatch, Process, ProcessInfo, free_port, processes_mentioning, signal, threads_have_stopped,
};
pub use relay_stage::{RelayStage, StageChromium};
pub use ruled_site::RuledSite;
pub use search::{Answered, SearchAsked, SearchStandIn, found};
pub use service::{Machine, ServiceOptions, TestService, WEBHOOK_SECRET, binary_folder, files_below};
pub use site::{FixtureSite, SiteOptions};
pub use stand_in::StandIn;
pub use wait::{wait_until, wait_until_none, wait_until_within};

use std::path::PathBuf;

use weir_shared::random;

/// The checkout, for files beside the crate such as the site's program.
pub fn checkout() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A part of what `scripts/setup --tests` installs, such as `venv/bin/python`.
pub fn installed(part: &str) -> Option<PathBuf> {
    let cache =
        std::env::var("WEIR_CACHE").unwrap_or_else(|_| format!("{}/.cache/weir", std::env::var("HOME").unwrap()));
    let path = PathBuf::from(cache).join("sdk").join(part);
    if path.exists() {
        return Some(path);
    }
    assert!(!require_all(), "{} is missing: scripts/setup --tests installs it", path.display());
    eprintln!("skipped: {} is missing, scripts/setup --tests installs it", path.display());
    None
}

/// The path of a file or folder of one test alone. A short one: the paths of sockets below it have a bound.
pub fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("weir-{name}-{}", random::hex::<6>()))
}

/// True for root, who may give processes networks and files of their own.
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// True when `scripts/test` runs: what is missing then is a failure, not a skipped test.
pub fn require_all() -> bool {
    std::env::var("WEIR_TEST_REQUIRE_ALL").is_ok_and(|value| value == "1")
}

/// True when the long fault tests are asked for (`scripts/test --long`).
pub fn long_tests() -> bool {
    std::env::var("WEIR_TEST_LONG").is_ok_and(|value| value == "1")
}

/// Runs one test body on SQLite and on Postgres:
/// `both_databases! { async fn a_sentence(database) { … } }`.
#[macro_export]
macro_rules! both_databases {
    ($($(#[$meta:meta])* async fn $name:ident($database:ident) $body:block)+) => {$(
        $(#[$meta])*
        mod $name {
            use super::*;

            async fn body($database: $crate::Database) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_sqlite() {
                body($crate::Database::Sqlite).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_postgres() {
                match $crate::Database::postgres() {
                    Some(database) => body(database).await,
                    None => eprintln!("skipped: WEIR_TEST_POSTGRES_URL is not set"),
                }
            }
        }
    )+};
}

/// The same for what goes through the whole service at length, while what the databases do differently is tried elsewhere:
/// on one of them in every run, and on the other one in the long tests:
/// `first_on! { postgres: async fn a_sentence(database) { … } }`.
#[macro_export]
macro_rules! first_on {
    (sqlite: $($rest:tt)+) => { $crate::first_on! { is_sqlite = true, $($rest)+ } };
    (postgres: $($rest:tt)+) => { $crate::first_on! { is_sqlite = false, $($rest)+ } };
    (is_sqlite = $is_sqlite:literal, $($(#[$meta:meta])* async fn $name:ident($database:ident) $body:block)+) => {
        $crate::both_databases! {$(
            $(#[$meta])*
            async fn $name($database) {
                if matches!($database, $crate::Database::Sqlite) != $is_sqlite && !$crate::long_tests() {
                    eprintln!("skipped: a long test on this database, WEIR_TEST_LONG=1 runs it");
                    return;
                }
                $body
            }
        )+}
    };
}
