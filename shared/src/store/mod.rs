//! All SQL of the service: one text for SQLite and Postgres wherever possible.
//!
//! [`Db`] is one of two pools, [`Tx`] one of two transactions; [`on_db!`] runs the same body against whichever is
//! behind. Every function of the modules below has a test that runs on both databases.
//!
//! On SQLite every writing transaction starts with `BEGIN IMMEDIATE` (a deferred one fails at its lock upgrade), the
//! file is in WAL mode with `synchronous = NORMAL`, and several processes share it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::sqlite::{
    SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{Connection as _, Postgres, Transaction};

use crate::clock::Clock;
use crate::config::DatabaseUrl;
use crate::fault::Faults;
use crate::private;
use crate::time::Timestamp;

#[macro_use]
mod sql;

pub mod activity;
mod arrival;
#[cfg(test)]
mod bulk_tests;
pub mod cache;
pub mod cancel;
pub mod clock;
pub mod console;
pub mod crawls;
pub mod credits;
pub mod documents;
pub mod drafts;
#[cfg(test)]
mod fault_tests;
pub mod feedback;
pub mod frontier;
pub mod jobs;
pub mod keys;
pub mod leases;
pub mod lines;
pub mod maps;
pub mod migrations;
pub mod model_usage;
pub mod nodes;
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
pub mod settings;
pub mod signals;
pub mod sitemaps;
pub mod slices;
pub mod snapshots;
pub mod sweep;
pub mod team_lock;
pub mod teams;
#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;
pub mod turns;
pub mod uploads;
pub mod webhooks;

pub use migrations::migrate;
use signals::{Signal, Signals, SqliteTx};

/// What can go wrong between us and the database. "Not found" is `Option`, not an error.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A unique key is taken.
    #[error("conflict: {0}")]
    Conflict(String),
    /// The database is away, full, locked or broken; the same call may work later.
    #[error("the database is unavailable: {0}")]
    Unavailable(sqlx::Error),
    /// A row holds what it must not.
    #[error("corrupt row: {0}")]
    Corrupt(String),
    /// The place of the blobs does not answer; the same call may work later.
    #[error("the blobs are unavailable: {0}")]
    BlobsAway(std::io::Error),
    /// This one document cannot be read any more: its blob is gone or damaged.
    #[error("a lost document: {0}")]
    Lost(String),
}

impl StoreError {
    /// Postgres refused to wait longer for somebody else's lock; nothing of the transaction was done.
    pub fn is_lock_wait(&self) -> bool {
        const LOCK_NOT_AVAILABLE: &str = "55P03";
        let Self::Unavailable(sqlx::Error::Database(error)) = self else { return false };
        error.code().is_some_and(|code| code == LOCK_NOT_AVAILABLE)
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(e) if e.is_unique_violation() => Self::Conflict(e.message().to_owned()),
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => Self::Corrupt(error.to_string()),
            _ => Self::Unavailable(error),
        }
    }
}

impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> Self {
        Self::Corrupt(error.to_string())
    }
}

/// After this time, ms, Postgres ends a connection that stands still in a transaction, as those of a frozen or cut-off
/// machine do: its rows would stay locked until the network gives up, for hours. Ours ask statement after statement.
const IDLE_IN_TRANSACTION: &str = "5000";

/// A rested connection that does not answer for this long is taken for dead, and another one used.
const PING: Duration = Duration::from_secs(2);

/// How long the ends of pages wait on Postgres for a lock of somebody else, ms: beside those of other teams, and alone.
const LOCK_PATIENCE: &str = "150";
const LATE_LOCK_PATIENCE: &str = "2000";

/// How long closing waits for connections that are in use.
const CLOSE_PATIENCE: Duration = Duration::from_millis(500);

/// How long a claim waits on Postgres for its team's lock, ms.
macro_rules! claim_patience {
    () => {
        "300"
    };
}
pub(crate) use claim_patience;

/// Result of a store function.
pub type StoreResult<T> = Result<T, StoreError>;

/// The database: one of the two pools.
#[derive(Debug, Clone)]
pub enum Db {
    Sqlite(SqliteDb),
    Postgres(PostgresDb),
}

/// SQLite has one writer at a time. Inside a process writers wait in line for one connection, which costs nothing;
/// the file's own lock, where waiting means sleeping, is left for the other processes.
#[derive(Debug, Clone)]
pub struct SqliteDb {
    pub reads: SqlitePool,
    /// One connection.
    pub writes: SqlitePool,
    /// How other processes hear of what this one commits.
    pub signals: Arc<Signals>,
    pub clock: Clock,
    pub faults: Faults,
}

/// A pool of connections to Postgres.
#[derive(Debug, Clone)]
pub struct PostgresDb {
    pub pool: PgPool,
    pub clock: Clock,
    pub faults: Faults,
}

/// An open transaction on one of the two. Dropped without [`Tx::commit`] it rolls back.
pub enum Tx {
    Sqlite(SqliteTx),
    Postgres(Transaction<'static, Postgres>),
}

/// Runs the same body against whichever database is behind `$tx` (a `Tx`, by mutable reference). It is compiled once
/// per arm, so both sides are type-checked with their own drivers and no generic bounds appear.
#[macro_export]
macro_rules! on_db {
    ($tx:expr, |$conn:ident| $body:expr) => {
        match $tx {
            $crate::store::Tx::Sqlite(tx) => {
                let $conn = &mut **tx;
                $body
            }
            $crate::store::Tx::Postgres(tx) => {
                let $conn = &mut **tx;
                $body
            }
        }
    };
}

/// The same for a read outside a transaction, with the pool as executor.
#[macro_export]
macro_rules! on_pool {
    ($db:expr, |$pool:ident| $body:expr) => {
        match $db {
            $crate::store::Db::Sqlite(db) => {
                let $pool = &db.reads;
                $body
            }
            $crate::store::Db::Postgres(db) => {
                let $pool = &db.pool;
                $body
            }
        }
    };
}

/// What a process uses its connections for: the queue library's own pool may lose its last writes in a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolUse {
    /// Rows: what is committed is on disk.
    Rows,
    /// Wake-ups being fetched and acknowledged: a lost write is a second delivery, which claims fence.
    Wakeups,
    /// Signs of life: they never fold SQLite's log into the file, which takes long when it has grown.
    Heartbeats,
    /// Ends of pages of any team: nobody else's lock is waited for ([`StoreError::is_lock_wait`]).
    Ends,
    /// Ends of pages of teams whose lock somebody holds: it is waited for, in turns.
    LateEnds,
    /// What an operator asks for at the command line: a statement may take its time, and who asked can end it.
    Commands,
}

impl Db {
    /// Opens the pool. `connections` is the most there may be, 1 upwards.
    pub async fn connect(url: &DatabaseUrl, connections: u32, usage: PoolUse) -> anyhow::Result<Self> {
        match url {
            DatabaseUrl::Sqlite(path) => Ok(Self::Sqlite(SqliteDb {
                writes: connect_sqlite(path, 1, usage).await?,
                reads: connect_sqlite(path, connections, usage).await?,
                signals: Arc::new(Signals::open(path)?),
                clock: Clock::system(),
                faults: Faults::of_environment(),
            })),
            DatabaseUrl::Postgres(text) => {
                let options: PgConnectOptions = text.parse().context("DATABASE_URL")?;
                let bound = if usage == PoolUse::Commands { lines::UNBOUNDED } else { lines::STATEMENT };
                let mut options = options.options([
                    ("idle_in_transaction_session_timeout", IDLE_IN_TRANSACTION),
                    ("statement_timeout", bound),
                ]);
                options = match usage {
                    PoolUse::Rows | PoolUse::Commands => options,
                    PoolUse::Wakeups | PoolUse::Heartbeats => options.options([("synchronous_commit", "off")]),
                    PoolUse::Ends => options.options([("lock_timeout", LOCK_PATIENCE)]),
                    PoolUse::LateEnds => options.options([("lock_timeout", LATE_LOCK_PATIENCE)]),
                };
                let pool = PgPoolOptions::new()
                    .max_connections(connections)
                    .min_connections(1)
                    .acquire_timeout(Duration::from_secs(10))
                    // Buffers that a group of documents has filled would stay that large, on every connection.
                    .after_release(|connection, _| {
                        connection.shrink_buffers();
                        Box::pin(std::future::ready(Ok(true)))
                    })
                    // Only a connection that has rested may have died or fallen silent unseen, as in a restart of the server.
                    .test_before_acquire(false)
                    .before_acquire(|connection, about| {
                        Box::pin(async move {
                            if about.idle_for > Duration::from_millis(500) {
                                let answered = tokio::time::timeout(PING, connection.ping()).await;
                                answered.map_err(|_| sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()))??;
                            }
                            Ok(true)
                        })
                    })
                    .connect_with(options.application_name("weir"))
                    .await
                    .context("cannot reach Postgres")?;
                let db = Self::Postgres(PostgresDb { pool, clock: Clock::system(), faults: Faults::of_environment() });
                clock::keep_step(&db).await?;
                Ok(db)
            }
        }
    }

    /// The same pool with a clock that others have too: tests move it for all at once.
    #[must_use]
    pub fn with_clock(mut self, shared: Clock) -> Self {
        match &mut self {
            Self::Sqlite(SqliteDb { clock, .. }) | Self::Postgres(PostgresDb { clock, .. }) => *clock = shared,
        }
        self
    }

    /// The clock that goes with the rows.
    pub fn clock(&self) -> &Clock {
        match self {
            Self::Sqlite(SqliteDb { clock, .. }) | Self::Postgres(PostgresDb { clock, .. }) => clock,
        }
    }

    /// The time now, as the rows have it.
    pub fn now(&self) -> Timestamp {
        self.clock().now()
    }

    /// What tests have armed around these rows.
    pub fn faults(&self) -> &Faults {
        match self {
            Self::Sqlite(SqliteDb { faults, .. }) | Self::Postgres(PostgresDb { faults, .. }) => faults,
        }
    }

    /// Starts a transaction that may write.
    pub async fn begin(&self) -> StoreResult<Tx> {
        Ok(match self {
            Self::Sqlite(db) => Tx::Sqlite(db.begin().await?),
            Self::Postgres(db) => Tx::Postgres(db.pool.begin().await?),
        })
    }

    /// Starts a transaction whose loss in a crash of the database is harmless: claims, heartbeats, a scrape whose
    /// caller still waits.
    pub async fn begin_relaxed(&self) -> StoreResult<Tx> {
        Ok(match self {
            Self::Sqlite(db) => Tx::Sqlite(db.begin().await?),
            Self::Postgres(db) => Tx::Postgres(db.pool.begin_with("BEGIN; SET LOCAL synchronous_commit = off").await?),
        })
    }

    /// Starts a transaction that claims pages: as [`Db::begin_relaxed`], and on Postgres it fails rather than wait long
    /// for a team's lock ([`StoreError::is_lock_wait`]), because who claims has slots and a connection in hand.
    pub async fn begin_claim(&self) -> StoreResult<Tx> {
        const BEGIN: &str =
            concat!("BEGIN; SET LOCAL synchronous_commit = off; SET LOCAL lock_timeout = ", claim_patience!());
        Ok(match self {
            Self::Sqlite(db) => Tx::Sqlite(db.begin().await?),
            Self::Postgres(db) => Tx::Postgres(db.pool.begin_with(BEGIN).await?),
        })
    }

    /// One trivial read: whether the database answers.
    pub async fn ping(&self) -> StoreResult<()> {
        on_pool!(self, |pool| sqlx::query("SELECT 1").execute(pool).await?.rows_affected());
        Ok(())
    }

    /// Closes every connection; on SQLite the last one folds the log into the file. A connection that is lent for
    /// good (a listener's) is not waited for.
    pub async fn close(&self) {
        let close = async {
            if let Self::Sqlite(db) = self {
                db.writes.close().await;
            }
            on_pool!(self, |pool| pool.close().await);
        };
        if tokio::time::timeout(CLOSE_PATIENCE, close).await.is_err() {
            tracing::debug!("a lent connection was left open");
        }
    }
}

impl SqliteDb {
    async fn begin(&self) -> StoreResult<SqliteTx> {
        Ok(SqliteTx::new(self.writes.begin_with("BEGIN IMMEDIATE").await?, &self.signals))
    }
}

impl Tx {
    /// Tells other processes of this when it is committed. On Postgres the statements themselves do.
    pub(crate) fn tell(&mut self, signal: Signal) {
        if let Self::Sqlite(tx) = self {
            tx.tell(signal);
        }
    }

    /// Makes the changes durable and visible.
    pub async fn commit(self) -> StoreResult<()> {
        match self {
            Self::Sqlite(tx) => tx.commit().await?,
            Self::Postgres(tx) => tx.commit().await?,
        }
        Ok(())
    }
}

async fn connect_sqlite(path: &Path, connections: u32, usage: PoolUse) -> anyhow::Result<SqlitePool> {
    if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
        private::make_folder(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    keep_private(path)?;
    let is_new = std::fs::metadata(path).is_ok_and(|found| found.len() == 0);
    let mut options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        .busy_timeout(Duration::from_secs(10))
        .foreign_keys(true)
        .pragma("temp_store", "MEMORY")
        .pragma("cache_size", "-4000")
        .pragma("mmap_size", "0")
        .pragma("journal_size_limit", "33554432")
        // What is deleted inside of pages is gone; see `retention` for whole ones.
        .pragma("secure_delete", "FAST")
        // Pages that change with every group are folded into the file less often.
        .pragma("wal_autocheckpoint", if usage == PoolUse::Heartbeats { "0" } else { "4000" })
        .statement_cache_capacity(200);
    if is_new {
        // Only a new file can take it; on an old one the pragma would wait for the writer for nothing.
        options = options.auto_vacuum(SqliteAutoVacuum::Incremental);
    }
    SqlitePoolOptions::new()
        .max_connections(connections)
        .min_connections(1)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        // A full disk makes SQLite roll back by itself, and the driver still counts the transaction as open: such a
        // connection would refuse every further one.
        .before_acquire(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }))
        .acquire_timeout(Duration::from_secs(10))
        .connect_with(options)
        .await
        .with_context(|| format!("cannot open {}", path.display()))
}

/// Makes the database's file before SQLite does, for our user only, and shuts one that an earlier release left open to
/// others. SQLite gives the files beside it the same mode when it makes them. A file that is there is not opened: to
/// close it again would take away the locks of this process's connections.
fn keep_private(path: &Path) -> anyhow::Result<()> {
    match private::file_options().create_new(true).open(path) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => private::shut(path),
        Err(error) => return Err(error).with_context(|| format!("cannot open {}", path.display())),
    }
    for tail in ["-wal", "-shm", "-journal"] {
        let mut beside = path.as_os_str().to_owned();
        beside.push(tail);
        private::shut(Path::new(&beside));
    }
    Ok(())
}
