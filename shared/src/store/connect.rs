//! How connections are opened, and with which settings.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{
    SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

use super::db::{Db, PostgresDb, SqliteDb};
use super::signals::Signals;
use super::{clock, lasting_plans, lines};
use crate::clock::Clock;
use crate::config::DatabaseUrl;
use crate::fault::Faults;
use crate::private;

/// After this time, ms, Postgres ends a connection that stands still in a transaction, as those of a frozen or cut-off
/// machine do: its rows would stay locked until the network gives up, for hours. Ours ask statement after statement.
const IDLE_IN_TRANSACTION: &str = "5000";

/// A rested connection that does not answer for this long is taken for dead, and another one used.
const PING: Duration = Duration::from_secs(2);

/// How long the ends of pages wait on Postgres for a lock of somebody else, ms: beside those of other teams, and alone.
const LOCK_PATIENCE: &str = "150";
const LATE_LOCK_PATIENCE: &str = "2000";

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
        .after_connect(|connection, _| Box::pin(lasting_plans::keep(connection)))
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
