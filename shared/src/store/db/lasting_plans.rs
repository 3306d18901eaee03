//! SQLite makes a statement's plan once, and not again for each value that is bound to it.
//!
//! By itself it looks at the values for some plans: at the number of a `LIMIT`, the pattern of a `LIKE`, what may imply
//! the condition of a partial index. The plan is then made anew at every run, which costs more than most of our
//! statements do. It is also another plan than the one that the test of the plans (`shared/tests/plans.rs`) has seen.

use libsqlite3_sys::{SQLITE_DBCONFIG_ENABLE_QPSG, SQLITE_OK, sqlite3_db_config};
use sqlx::sqlite::SqliteConnection;

/// Has a new connection keep its plans.
///
/// # Errors
/// When SQLite refuses.
pub(super) async fn keep(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let mut handle = connection.lock_handle().await?;
    let (on, no_answer) = (1, std::ptr::null_mut::<i32>());
    #[expect(unsafe_code, reason = "the setting has no other door; the handle is locked and open while it is borrowed")]
    let code =
        unsafe { sqlite3_db_config(handle.as_raw_handle().as_ptr(), SQLITE_DBCONFIG_ENABLE_QPSG, on, no_answer) };
    if code == SQLITE_OK {
        Ok(())
    } else {
        Err(sqlx::Error::Configuration(format!("SQLite does not keep its plans: {code}").into()))
    }
}

#[cfg(test)]
mod tests {
    use libsqlite3_sys::{SQLITE_STMTSTATUS_REPREPARE, sqlite3_next_stmt, sqlite3_stmt_status};

    use super::*;
    use crate::store::{Db, testing};

    /// How often the statements of a connection were prepared anew.
    async fn prepared_anew(connection: &mut SqliteConnection) -> i32 {
        let mut handle = connection.lock_handle().await.expect("a handle");
        let database = handle.as_raw_handle().as_ptr();
        let (mut times, mut statement) = (0, std::ptr::null_mut());
        loop {
            #[expect(unsafe_code, reason = "the statements are those of the handle that is locked here")]
            unsafe {
                statement = sqlite3_next_stmt(database, statement);
                if statement.is_null() {
                    return times;
                }
                times += sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_REPREPARE, 0);
            }
        }
    }

    #[tokio::test]
    async fn a_statement_is_planned_once_whatever_is_bound_to_it() {
        for db in testing::databases().await {
            let Db::Sqlite(sqlite) = &db else { continue };
            let (mut reads, mut writes) =
                (sqlite.pool.acquire().await.expect("one"), sqlite.begin().await.expect("one"));
            for connection in [&mut *reads, &mut *writes] {
                // Those of the migrations were prepared anew when tables came.
                let before = prepared_anew(connection).await;
                for number in 1..6_i64 {
                    for sql in [
                        "SELECT id FROM job ORDER BY id LIMIT $1",
                        "SELECT id FROM job WHERE id LIKE $1 || 'a%'",
                        "SELECT id FROM page WHERE state = $1 AND job_id = 'x'",
                    ] {
                        sqlx::query(sql).bind(number).fetch_all(&mut *connection).await.expect("rows");
                    }
                }
                assert_eq!(prepared_anew(connection).await, before);
            }
        }
    }
}
