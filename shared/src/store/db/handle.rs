//! The two databases behind one type, and their transactions.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::postgres::PgPool;
use sqlx::sqlite::SqlitePool;
use sqlx::{Postgres, SqlSafeStr as _, Transaction};

use super::error::StoreResult;
use super::kept::Kept;
use super::signals::{Signal, Signals};
use super::slices::Bulk;
use super::writer::{SqliteTx, Writer};
use crate::clock::Clock;
use crate::fault::Faults;
use crate::time::Timestamp;

/// How long closing waits for connections that are in use.
const CLOSE_PATIENCE: Duration = Duration::from_millis(500);

/// How long a claim waits on Postgres for its team's lock, ms.
macro_rules! claim_patience {
    () => {
        "300"
    };
}
pub(crate) use claim_patience;

/// The database: one of the two pools.
#[derive(Debug, Clone)]
pub enum Db {
    Sqlite(SqliteDb),
    Postgres(PostgresDb),
}

/// One file, read by a pool of connections and written by one.
#[derive(Debug, Clone)]
pub struct SqliteDb {
    /// For what is read, and for the queue library's own statements.
    pub pool: SqlitePool,
    pub(in crate::store) writer: Writer,
    pub(super) bulk: Arc<Bulk>,
    /// How other processes hear of what this one commits.
    pub signals: Arc<Signals>,
    pub clock: Clock,
    pub faults: Faults,
}

/// A pool of connections to Postgres.
#[derive(Debug, Clone)]
pub struct PostgresDb {
    pub pool: PgPool,
    /// What stays out of it between statements that somebody waits for.
    pub(in crate::store) kept: Kept,
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
                let $pool = &db.pool;
                $body
            }
            $crate::store::Db::Postgres(db) => {
                let $pool = &db.pool;
                $body
            }
        }
    };
}

/// The same for a read that is asked often while somebody waits: on Postgres by a connection that stays out of the pool
/// ([`super::kept`]).
macro_rules! on_kept {
    ($db:expr, |$executor:ident| $body:expr) => {
        match $db {
            $crate::store::Db::Sqlite(db) => {
                let $executor = &db.pool;
                $body
            }
            $crate::store::Db::Postgres(db) => {
                let mut lent = db.kept.take(&db.pool).await?;
                let $executor = &mut *lent;
                let read = $body;
                db.kept.keep(&db.pool, lent);
                read
            }
        }
    };
}
pub(crate) use on_kept;

impl Db {
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
            Self::Postgres(db) => Tx::Postgres(begun(&db.pool, "BEGIN").await?),
        })
    }

    /// Starts a transaction whose loss in a crash of the database is harmless: claims, heartbeats, a scrape whose
    /// caller still waits.
    pub async fn begin_relaxed(&self) -> StoreResult<Tx> {
        Ok(match self {
            Self::Sqlite(db) => Tx::Sqlite(db.begin().await?),
            Self::Postgres(db) => Tx::Postgres(begun(&db.pool, "BEGIN; SET LOCAL synchronous_commit = off").await?),
        })
    }

    /// Starts a transaction that claims pages: as [`Db::begin_relaxed`], and on Postgres it fails rather than wait long
    /// for a team's lock ([`StoreError::is_lock_wait`]), because who claims has slots and a connection in hand.
    pub async fn begin_claim(&self) -> StoreResult<Tx> {
        const BEGIN: &str =
            concat!("BEGIN; SET LOCAL synchronous_commit = off; SET LOCAL lock_timeout = ", claim_patience!());
        Ok(match self {
            Self::Sqlite(db) => Tx::Sqlite(db.begin().await?),
            Self::Postgres(db) => Tx::Postgres(begun(&db.pool, BEGIN).await?),
        })
    }

    /// One trivial read: whether the database answers.
    pub async fn ping(&self) -> StoreResult<()> {
        on_pool!(self, |pool| sqlx::query("SELECT 1").execute(pool).await?.rows_affected());
        Ok(())
    }

    /// Whether the database takes what is written. Something has to be written for that: a transaction that changes nothing
    /// succeeds where everything is read-only and on a full disk. On SQLite it is a number in the file's head that nobody
    /// uses, so that a file without tables can be tried; on Postgres one row, by one statement, so that a process that stands
    /// still holds it locked for nobody.
    pub async fn try_write(&self) -> StoreResult<()> {
        const POSTGRES: &str = "INSERT INTO setting (name, value) VALUES ('written_at', $1) \
            ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        match self {
            Self::Sqlite(db) => {
                let mut tx = db.begin().await?;
                sqlx::query("PRAGMA user_version = 0").execute(&mut *tx).await?;
                tx.commit().await?;
            }
            Self::Postgres(db) => {
                sqlx::query(POSTGRES).bind(self.now().to_string()).execute(&db.pool).await?;
            }
        }
        Ok(())
    }

    /// Closes every connection; on SQLite the last one folds the log into the file. A connection that is lent for
    /// good (a listener's) is not waited for.
    pub async fn close(&self) {
        let close = async {
            match self {
                Self::Sqlite(db) => {
                    db.writer.close().await;
                    db.pool.close().await;
                }
                Self::Postgres(db) => {
                    // The pool is marked as closed with the call, before those that rest outside of it come back: a
                    // statement that ends in between would keep its connection.
                    let closed = db.pool.close();
                    db.kept.give_back();
                    closed.await;
                }
            }
        };
        if tokio::time::timeout(CLOSE_PATIENCE, close).await.is_err() {
            tracing::debug!("a lent connection was left open");
        }
    }
}

/// A transaction that `statement` begins. In a box: what the pool may have to do first (connect, greet, TLS) is 14 KB of
/// state, which would otherwise be a part of every future that writes, and be moved with it.
///
/// The beginning goes on where nobody waits for it any more. sqlx rolls back what has begun; of a beginning that was given up
/// half-way it knows nothing, and what the connection's next user writes would be a part of a transaction that nobody ends.
fn begun<'a>(pool: &'a PgPool, statement: &'static str) -> BoxFuture<'a, sqlx::Result<Transaction<'static, Postgres>>> {
    Box::pin(async move {
        let beginning = Transaction::begin(pool.acquire().await?, Some(statement.into_sql_str()));
        tokio::spawn(beginning).await.map_err(|_| sqlx::Error::WorkerCrashed)?
    })
}

impl SqliteDb {
    pub(super) async fn begin(&self) -> StoreResult<SqliteTx> {
        Ok(self.writer.begin(&self.signals).await?)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use sqlx::{Connection as _, PgConnection};

    use super::*;
    use crate::store::testing::databases;

    #[tokio::test]
    async fn a_beginning_that_is_given_up_half_way_takes_nothing_from_who_comes_next() {
        for db in databases().await {
            // On SQLite there is one who writes, and its turn is taken back whole.
            let Db::Postgres(PostgresDb { pool, .. }) = &db else { continue };
            sqlx::query("CREATE TABLE written (n BIGINT)").execute(pool).await.unwrap();
            for n in 0..200 {
                let patience = Duration::from_micros(10 * n);
                drop(tokio::time::timeout(patience, db.begin()).await);
                sqlx::query("INSERT INTO written VALUES (1)").execute(pool).await.unwrap();
            }
            // What is in a transaction that nobody ends is seen by nobody else.
            let mut other = PgConnection::connect_with(&pool.connect_options()).await.unwrap();
            let count: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM written").fetch_one(&mut other).await.unwrap();
            assert_eq!(count, 200);
        }
    }
}
