//! How a function of the store fails.

use sqlx::error::{DatabaseError, ErrorKind};
use sqlx::postgres::PgDatabaseError;
use sqlx::sqlite::SqliteError;

use super::shortage;

/// What can go wrong between us and the database. "Not found" is `Option`, not an error.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A unique key is taken.
    #[error("conflict: {0}")]
    Conflict(String),
    /// The database is away, full, locked or broken; the same call may work later.
    #[error("the database is unavailable: {0}")]
    Unavailable(sqlx::Error),
    /// A row holds what it must not, or was to hold it: the database refuses the value, however often it is given.
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

    /// The database answers and lets nobody write: it is read-only, or its disk is full or broken.
    pub fn takes_no_writes(&self) -> bool {
        matches!(self, Self::Unavailable(error) if is_refused_write(error))
    }

    /// Whether the same call may work later without anybody's changing it. A statement that is wrong, a table that is missing
    /// and a privilege that was not granted stay so.
    pub fn may_pass(&self) -> bool {
        // Postgres has a class for those, SQLite one code.
        let error = match self {
            Self::Unavailable(error) => error,
            other => return matches!(other, Self::BlobsAway(_)),
        };
        let Some(error) = error.as_database_error() else { return true };
        let code = error.code().unwrap_or_default();
        match error.try_downcast_ref::<PgDatabaseError>() {
            Some(_) => !code.starts_with("42"),
            None => primary(&code) != Some(1),
        }
    }

    /// Whether a commit that failed so may have happened all the same: its answer was lost on the way. What the database itself
    /// answers is true, unless it says that it ends the connection.
    pub fn leaves_commit_open(&self) -> bool {
        // Of Postgres: `connection_exception`, which poolers say, too, and `operator_intervention`.
        const ENDS: &[&str] = &["08", "57"];
        let Self::Unavailable(error) = self else { return false };
        let Some(error) = error.as_database_error() else { return true };
        let is_of_postgres = error.try_downcast_ref::<PgDatabaseError>().is_some();
        is_of_postgres && error.code().is_some_and(|code| ENDS.iter().any(|class| code.starts_with(class)))
    }
}

/// Whether it is the value that the database has something against: Postgres's class for that (a text with U+0000, a number
/// out of range), SQLite's codes, and checks of columns.
fn is_refused_value(error: &dyn DatabaseError) -> bool {
    const POSTGRES: &str = "22";
    // `SQLITE_TOOBIG`, `SQLITE_MISMATCH`.
    const SQLITE: &[i32] = &[18, 20];
    if matches!(error.kind(), ErrorKind::CheckViolation | ErrorKind::NotNullViolation) {
        return true;
    }
    let code = error.code().unwrap_or_default();
    match error.try_downcast_ref::<PgDatabaseError>() {
        Some(_) => code.starts_with(POSTGRES),
        None => primary(&code).is_some_and(|code| SQLITE.contains(&code)),
    }
}

/// Whether one of the error's causes is that the database lets nobody write ([`StoreError::takes_no_writes`]).
pub fn takes_no_writes(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref().is_some_and(StoreError::takes_no_writes)
            || cause.downcast_ref().is_some_and(is_refused_write)
    })
}

fn is_refused_write(error: &sqlx::Error) -> bool {
    // `read_only_sql_transaction`, `disk_full`.
    const POSTGRES: &[&str] = &["25006", "53100"];
    // `SQLITE_READONLY`, `SQLITE_IOERR`, `SQLITE_FULL`.
    const SQLITE: &[i32] = &[8, 10, SQLITE_FULL];
    let Some(error) = error.as_database_error() else { return false };
    let code = error.code().unwrap_or_default();
    match error.try_downcast_ref::<PgDatabaseError>() {
        Some(_) => POSTGRES.contains(&&*code),
        None => primary(&code).is_some_and(|code| SQLITE.contains(&code)),
    }
}

/// Postgres's code, where one of the error's causes is Postgres's answer.
pub fn postgres_code(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        let error = cause.downcast_ref::<sqlx::Error>()?.as_database_error()?;
        Some(error.try_downcast_ref::<PgDatabaseError>()?.code().to_owned())
    })
}

/// SQLite's code for a full disk, and for a file that is locked.
pub(super) const SQLITE_FULL: i32 = 13;
pub(super) const SQLITE_BUSY: i32 = 5;

/// SQLite's code of an error, if it is SQLite's: the upper bytes tell of the occasion.
pub(super) fn sqlite_code(error: &sqlx::Error) -> Option<i32> {
    let error = error.as_database_error()?;
    error.try_downcast_ref::<SqliteError>()?;
    error.code()?.parse().ok()
}

/// What SQLite's code says: the upper bytes tell of the occasion.
pub(super) fn primary(code: &str) -> Option<i32> {
    code.parse::<i32>().ok().map(|code| code & 0xff)
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(e) if e.is_unique_violation() => Self::Conflict(e.message().to_owned()),
            sqlx::Error::Database(e) if is_refused_value(&**e) => Self::Corrupt(error.to_string()),
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => Self::Corrupt(error.to_string()),
            _ => {
                if matches!(error, sqlx::Error::PoolTimedOut) {
                    shortage::noticed();
                }
                Self::Unavailable(error)
            }
        }
    }
}

impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> Self {
        Self::Corrupt(error.to_string())
    }
}

/// Result of a store function.
pub type StoreResult<T> = Result<T, StoreError>;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use sqlx::AssertSqlSafe;

    use super::*;
    use crate::store::testing::databases;
    use crate::store::{Db, SqliteDb};

    async fn refused(db: &Db, statements: &'static str) -> StoreError {
        let mut tx = db.begin().await.unwrap();
        let refused = match &mut tx {
            crate::store::Tx::Sqlite(tx) => sqlx::raw_sql(statements).execute(&mut **tx).await.map(drop),
            crate::store::Tx::Postgres(tx) => sqlx::raw_sql(statements).execute(&mut **tx).await.map(drop),
        };
        refused.unwrap_err().into()
    }

    #[tokio::test]
    async fn a_database_that_takes_no_writes_is_told_from_a_statement_that_is_wrong() {
        for db in databases().await {
            let wrong = refused(&db, "SELECT nothing FROM nowhere").await;
            assert!(!wrong.takes_no_writes() && !wrong.may_pass() && !wrong.leaves_commit_open(), "{wrong}");
            let unfit = match &db {
                Db::Postgres(_) => "SELECT CAST(99999999999 AS INTEGER)",
                Db::Sqlite(_) => "SELECT zeroblob(9999999999)",
            };
            let absent = "INSERT INTO page_content (digest, size, packed, used_at) VALUES ('a', NULL, 1, 1)";
            for statements in [unfit, absent] {
                let refused = refused(&db, statements).await;
                assert!(matches!(refused, StoreError::Corrupt(_)) && !refused.may_pass(), "{refused:?}");
            }
            let lost = StoreError::from(sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into()));
            assert!(lost.may_pass() && lost.leaves_commit_open() && !lost.takes_no_writes(), "{lost}");
            let read_only = match &db {
                Db::Postgres(_) => refused(&db, "SET TRANSACTION READ ONLY; UPDATE setting SET value = value").await,
                Db::Sqlite(SqliteDb { pool, .. }) => {
                    let options = (*pool.connect_options()).clone().read_only(true);
                    let other = sqlx::SqlitePool::connect_with(options).await.unwrap();
                    let refused = sqlx::query("UPDATE setting SET value = value").execute(&other).await;
                    refused.unwrap_err().into()
                }
            };
            assert!(read_only.takes_no_writes() && read_only.may_pass(), "{read_only}");
            assert!(!read_only.leaves_commit_open(), "{read_only}");
            let Db::Sqlite(SqliteDb { pool, .. }) = &db else { continue };
            let mut connection = pool.acquire().await.unwrap();
            let pages: i64 = sqlx::query_scalar("PRAGMA page_count").fetch_one(&mut *connection).await.unwrap();
            let bound = AssertSqlSafe(format!("PRAGMA max_page_count = {pages}"));
            sqlx::query(bound).execute(&mut *connection).await.unwrap();
            let large = "CREATE TABLE large AS SELECT randomblob(10000000) AS filler";
            let full = StoreError::from(sqlx::query(large).execute(&mut *connection).await.unwrap_err());
            assert!(full.takes_no_writes() && full.may_pass(), "{full}");
        }
    }
}
