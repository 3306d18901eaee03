//! Whole databases: taking a copy of one that is in use, and telling whether one is empty.

pub mod postgres;

use std::path::Path;

use anyhow::{Context as _, bail};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, SqliteConnection};

use crate::private;
use crate::store::{PostgresDb, SqliteDb, StoreResult};

/// Writes a copy of an SQLite database, as it is at one moment, to a file, which must not be there. Nobody waits for it.
///
/// # Errors
/// When the database cannot be read or the file not be written.
pub async fn copy_sqlite(db: &SqliteDb, to: &Path) -> anyhow::Result<()> {
    private::file_options().create_new(true).open(to).with_context(|| format!("cannot write {}", to.display()))?;
    let name = to.to_str().context("the path is no text")?;
    sqlx::query("VACUUM INTO $1").bind(name).execute(&db.pool).await.context("cannot copy the database")?;
    std::fs::File::open(to)?.sync_all()?;
    Ok(())
}

/// Fails where the file is no whole SQLite database.
///
/// # Errors
/// As said.
pub async fn check_sqlite(file: &Path) -> anyhow::Result<()> {
    let options = SqliteConnectOptions::new().filename(file).read_only(true).immutable(true);
    let mut connection = SqliteConnection::connect_with(&options).await?;
    let (found,): (String,) = sqlx::query_as("PRAGMA quick_check").fetch_one(&mut connection).await?;
    connection.close().await?;
    if found != "ok" {
        bail!("{} is damaged: {found}", file.display());
    }
    Ok(())
}

/// Whether a Postgres database holds nothing but what extensions have made.
pub async fn is_empty_postgres(db: &PostgresDb) -> StoreResult<bool> {
    const SQL: &str = "SELECT COUNT(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
        WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema') \
        AND n.nspname NOT LIKE 'pg_toast%' AND n.nspname NOT LIKE 'pg_temp%' \
        AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid \
        AND d.deptype = 'e')";
    let (count,): (i64,) = sqlx::query_as(SQL).fetch_one(&db.pool).await?;
    Ok(count == 0)
}
