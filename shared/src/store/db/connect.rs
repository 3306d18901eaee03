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

use super::error::{SQLITE_BUSY, sqlite_code};
use super::handle::{Db, PostgresDb, SqliteDb};
use super::kept::{self, Kept};
use super::signals::Signals;
use super::writer::{SQLITE_PATIENCE, Writer};
use super::{clock, lasting_plans, lines};
use crate::clock::{Clock, Stopwatch};
use crate::config::DatabaseUrl;
use crate::fault::Faults;
use crate::private;

/// After this time, ms, Postgres ends a connection that stands still in a transaction, as those of a frozen or cut-off
/// machine do: its rows would stay locked until the network gives up, for hours. Ours ask statement after statement.
const IDLE_IN_TRANSACTION: &str = "5000";

/// What each statement of a transaction sees: also what others have committed while it waited for a lock, which is what the
/// order of locks is there for. A server, database or role may have another default, under which writers break each other off.
const ISOLATION: &str = "read committed";

/// After this time a file that was locked is opened again.
const REOPENING: Duration = Duration::from_millis(10);

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
            DatabaseUrl::Sqlite(path) => {
                let pool = connect_sqlite(path, connections, usage).await?;
                Ok(Self::Sqlite(SqliteDb {
                    writer: Writer::new(pool.connect_options()),
                    bulk: Arc::default(),
                    pool,
                    signals: Arc::new(Signals::open(path)?),
                    clock: Clock::system(),
                    faults: Faults::of_environment(),
                }))
            }
            DatabaseUrl::Postgres(text) => {
                let options: PgConnectOptions = text.parse().context("DATABASE_URL")?;
                let bound = if usage == PoolUse::Commands { lines::UNBOUNDED } else { lines::STATEMENT };
                let mut options = options.options([
                    ("default_transaction_isolation", ISOLATION),
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
                    .test_before_acquire(false)
                    .before_acquire(|connection, about| {
                        Box::pin(async move { kept::is_there(connection, about.idle_for).await.map(|()| true) })
                    })
                    .connect_with(options.application_name("weir"))
                    .await
                    .context("cannot reach Postgres")?;
                let (kept, clock, faults) = (Kept::default(), Clock::system(), Faults::of_environment());
                let db = Self::Postgres(PostgresDb { pool, kept, clock, faults });
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
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        .busy_timeout(SQLITE_PATIENCE)
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
    // Only a new file can take it, by its first connection; of others the pragma would wait for the writer, and write, for
    // nothing.
    let first = if is_new { options.clone().auto_vacuum(SqliteAutoVacuum::Incremental) } else { options.clone() };
    let pool = SqlitePoolOptions::new()
        .max_connections(connections)
        .min_connections(1)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .after_connect(|connection, _| Box::pin(lasting_plans::keep(connection)))
        // A full disk makes SQLite roll back by itself, and the driver still counts the transaction as open: such a
        // connection would refuse every further one.
        .before_acquire(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }))
        .acquire_timeout(SQLITE_PATIENCE);
    let opening = Stopwatch::start();
    loop {
        match pool.clone().connect_with(first.clone()).await {
            Err(error) if is_busy(&error) && opening.elapsed() < SQLITE_PATIENCE => tokio::time::sleep(REOPENING).await,
            opened => {
                let pool = opened.with_context(|| format!("cannot open {}", path.display()))?;
                pool.set_connect_options(options);
                return Ok(pool);
            }
        }
    }
}

/// Whether SQLite found the file locked. Of two that give a new or a restored file its log in the same moment it refuses
/// one at once, whatever patience it was told to have: each might wait for the other for ever.
fn is_busy(error: &sqlx::Error) -> bool {
    sqlite_code(error).is_some_and(|code| code & 0xff == SQLITE_BUSY)
}

/// Makes the database's file before SQLite does, for our user only, and shuts one that an earlier release left open to
/// others. SQLite gives the files beside it the same mode when it makes them. A file that is there is not opened: to
/// close it again would take away the locks of this process's connections.
fn keep_private(path: &Path) -> anyhow::Result<()> {
    match private::make(path) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The API and each worker open a database that a restore has just made, or an empty one, in the same moment.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_database_that_is_not_yet_in_its_mode_is_opened_by_many_at_once() {
        let folder = std::env::temp_dir().join(format!("weir-open-{}", crate::random::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for round in 0..60 {
            let path = folder.join(format!("{round}.db"));
            if round % 2 == 0 {
                let options = SqliteConnectOptions::new()
                    .filename(&path)
                    .create_if_missing(true)
                    .journal_mode(SqliteJournalMode::Delete);
                let plain = SqlitePool::connect_with(options).await.unwrap();
                sqlx::query("CREATE TABLE t (n INTEGER)").execute(&plain).await.unwrap();
                plain.close().await;
            }
            let opening: Vec<_> = (0..4)
                .map(|_| {
                    let path = path.clone();
                    tokio::spawn(async move { connect_sqlite(&path, 2, PoolUse::Rows).await })
                })
                .collect();
            for opened in opening {
                let pool = opened.await.unwrap().unwrap_or_else(|error| panic!("round {round}: {error:#}"));
                pool.close().await;
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
