//! The one connection by which a process writes its rows to SQLite, and the line before it.
//!
//! SQLite has one writer at a time. Inside a process writers wait in line for one connection, which costs nothing; the
//! file's own lock, where waiting means sleeping, is left for the other processes, and for the queue library, which writes
//! by a pool of its own. The connection is nobody's pool's: of each that comes back a pool asks whether it answers, which
//! next to a short transaction is a tenth of a scrape.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{Connection as _, Executor as _};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::lasting_plans;
use super::signals::{Signal, Signals};

/// How a transaction begins and ends, also within a string of statements: the lock is taken at once, for one that began by
/// reading could not wait for it.
pub(in crate::store) const BEGIN: &str = "BEGIN IMMEDIATE";
pub(in crate::store) const COMMIT: &str = "COMMIT";

/// How long SQLite's file may be somebody else's before a statement, or who opens it, gives up.
pub(super) const SQLITE_PATIENCE: Duration = Duration::from_secs(10);

/// The connection, opened when it is first wanted. A clone is the same one.
#[derive(Debug, Clone)]
pub struct Writer {
    options: Arc<SqliteConnectOptions>,
    line: Arc<Line>,
    is_closed: Arc<AtomicBool>,
}

/// The connection while nobody has it, and who waits for it.
type Line = Mutex<Option<SqliteConnection>>;

/// The connection in somebody's hands. Dropped before [`Turn::end`], as where a statement failed or nobody waits for it any
/// more, it is closed, and SQLite takes back what was not committed.
#[derive(Debug)]
pub(in crate::store) struct Turn {
    connection: SqliteConnection,
    line: OwnedMutexGuard<Option<SqliteConnection>>,
}

/// A transaction, with what other processes are told of when it is committed. Dropped without [`SqliteTx::commit`] it
/// rolls back.
pub struct SqliteTx {
    /// `None`: it has ended.
    turn: Option<Turn>,
    signals: Arc<Signals>,
    told: [bool; Signal::ALL.len()],
}

impl Writer {
    pub(super) fn new(options: Arc<SqliteConnectOptions>) -> Self {
        Self { options, line: Arc::default(), is_closed: Arc::default() }
    }

    /// Waits for the connection.
    ///
    /// # Errors
    /// When it is another's for longer than anybody waits for SQLite, cannot be opened, or the database is closed.
    pub(in crate::store) async fn turn(&self) -> sqlx::Result<Turn> {
        let waiting = tokio::time::timeout(SQLITE_PATIENCE, Arc::clone(&self.line).lock_owned());
        let mut line = waiting.await.map_err(|_| sqlx::Error::PoolTimedOut)?;
        if self.is_closed.load(Ordering::Acquire) {
            return Err(sqlx::Error::PoolClosed);
        }
        let connection = match line.take() {
            Some(connection) => connection,
            None => {
                let mut connection = SqliteConnection::connect_with(&self.options).await?;
                lasting_plans::keep(&mut connection).await?;
                connection
            }
        };
        Ok(Turn { connection, line })
    }

    /// Starts a transaction.
    pub(super) async fn begin(&self, signals: &Arc<Signals>) -> sqlx::Result<SqliteTx> {
        let mut turn = self.turn().await?;
        turn.execute(BEGIN).await?;
        Ok(SqliteTx { turn: Some(turn), signals: Arc::clone(signals), told: Default::default() })
    }

    /// Closes the connection for good, after whoever has it; nobody gets it from now on, however long that takes.
    pub(super) async fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        if let Some(connection) = self.line.lock().await.take()
            && let Err(error) = connection.close().await
        {
            tracing::debug!(%error, "SQLite's writer was not closed cleanly");
        }
    }
}

impl Turn {
    /// The next one's turn. No transaction may be open.
    pub(in crate::store) fn end(self) {
        let Self { connection, mut line } = self;
        *line = Some(connection);
    }
}

impl Deref for Turn {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.connection
    }
}

impl DerefMut for Turn {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }
}

impl SqliteTx {
    pub(super) fn tell(&mut self, signal: Signal) {
        self.told[signal as usize] = true;
    }

    pub(super) async fn commit(mut self) -> sqlx::Result<()> {
        if let Some(mut turn) = self.turn.take() {
            turn.execute(COMMIT).await?;
            turn.end();
        }
        for signal in Signal::ALL {
            if self.told[signal as usize] {
                self.signals.send(signal);
            }
        }
        Ok(())
    }
}

impl Drop for SqliteTx {
    fn drop(&mut self) {
        let Some(mut turn) = self.turn.take() else { return };
        // Where no runtime is left the connection is closed.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            // Of a full disk SQLite rolls back by itself, and refuses this.
            if turn.execute("ROLLBACK").await.is_ok() {
                turn.end();
            }
        });
    }
}

impl Deref for SqliteTx {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        self.turn.as_ref().expect("a transaction that has not ended")
    }
}

impl DerefMut for SqliteTx {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        self.turn.as_mut().expect("a transaction that has not ended")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::time::Duration;

    use futures_util::FutureExt as _;

    use crate::store::{Db, SqliteDb, testing};

    async fn database() -> SqliteDb {
        let found =
            testing::databases().await.into_iter().find_map(|db| if let Db::Sqlite(db) = db { Some(db) } else { None });
        let db = found.unwrap();
        let mut tx = db.begin().await.unwrap();
        sqlx::query("CREATE TABLE t (n INTEGER UNIQUE, filler BLOB)").execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
        db
    }

    async fn rows(db: &SqliteDb) -> Vec<i64> {
        sqlx::query_scalar("SELECT n FROM t ORDER BY n").fetch_all(&db.pool).await.unwrap()
    }

    async fn insert(db: &SqliteDb, n: i64) -> sqlx::Result<()> {
        let mut tx = db.writer.begin(&db.signals).await?;
        sqlx::query("INSERT INTO t (n) VALUES ($1)").bind(n).execute(&mut *tx).await?;
        tx.commit().await
    }

    /// Which connection has the turn.
    async fn who(db: &SqliteDb) -> usize {
        let mut turn = db.writer.turn().await.unwrap();
        let who = turn.lock_handle().await.unwrap().as_raw_handle().as_ptr() as usize;
        turn.end();
        who
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn writers_take_turns_with_one_connection() {
        let db = database().await;
        let first = who(&db).await;
        futures_util::future::join_all((0..40).map(|n| {
            let db = db.clone();
            tokio::spawn(async move {
                insert(&db, n).await.unwrap();
                // One that changes its mind leaves nothing, and the connection is the next one's.
                let mut tx = db.begin().await.unwrap();
                sqlx::query("INSERT INTO t (n) VALUES ($1)").bind(100 + n).execute(&mut *tx).await.unwrap();
            })
        }))
        .await
        .into_iter()
        .for_each(Result::unwrap);
        assert_eq!(rows(&db).await, (0..40).collect::<Vec<_>>());
        assert_eq!(who(&db).await, first);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_broken_off_leaves_nothing_and_no_lock() {
        const ALL: &str = "BEGIN IMMEDIATE; INSERT INTO t (n) VALUES ($1); INSERT INTO t (n) VALUES ($2); COMMIT";
        const LONG: &str = "BEGIN IMMEDIATE; INSERT INTO t (n) WITH RECURSIVE up (n) AS (SELECT 1000 UNION ALL \
            SELECT n + 1 FROM up WHERE n < 400000) SELECT n FROM up RETURNING n; COMMIT";
        let db = database().await;
        insert(&db, 1).await.unwrap();
        // Its second statement fails.
        let mut turn = db.writer.turn().await.unwrap();
        assert!(sqlx::query(ALL).bind(2).bind(1).fetch_all(&mut *turn).await.is_err());
        drop(turn);
        insert(&db, 3).await.unwrap();
        // Nobody waits for it any more.
        let mut turn = db.writer.turn().await.unwrap();
        let long = async { sqlx::query(LONG).fetch_all(&mut *turn).await.map(|_| ()) };
        assert!(tokio::time::timeout(Duration::from_millis(20), long).await.is_err());
        drop(turn);
        insert(&db, 4).await.unwrap();
        assert_eq!(rows(&db).await, [1, 3, 4]);
        // A turn that was not waited for to its end is not lost, either.
        let turn = db.writer.turn().await.unwrap();
        assert!(db.writer.turn().now_or_never().is_none());
        turn.end();
        insert(&db, 5).await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_disk_that_was_full_is_written_to_again() {
        let db = database().await;
        let set = async |pages: &str| {
            let mut turn = db.writer.turn().await.unwrap();
            sqlx::query(sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {pages}")))
                .execute(&mut *turn)
                .await
                .unwrap();
            turn.end();
        };
        set("1").await;
        let mut tx = db.begin().await.unwrap();
        let full = sqlx::query("INSERT INTO t (n, filler) VALUES (1, zeroblob(4000000))").execute(&mut *tx).await;
        assert!(full.unwrap_err().to_string().contains("full"));
        drop(tx);
        insert(&db, 2).await.unwrap();
        assert_eq!(rows(&db).await, [2]);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_closed_database_is_not_opened_again() {
        let db = database().await;
        let path = db.pool.connect_options().get_filename().to_owned();
        // However long somebody has the connection.
        let turn = db.writer.turn().await.unwrap();
        Db::Sqlite(db.clone()).close().await;
        turn.end();
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(insert(&db, 1).await, Err(sqlx::Error::PoolClosed)));
        assert!(!path.exists());
    }
}
