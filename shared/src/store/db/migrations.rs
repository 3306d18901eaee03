//! The shape of the database: which migrations it has, which are missing, and applying those.
//!
//! Processes of two releases work side by side during an upgrade, and binaries may be taken back by one release: changes
//! only add, so a database that is newer than this build is used as it is. A migration whose text is another one than
//! when it was applied is refused: what is there cannot be told.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use sqlx::Connection as _;
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use super::error::{StoreError, StoreResult};
use super::handle::{Db, PostgresDb, SqliteDb};
use super::lines;
use super::writer::BEGIN;
use crate::on_pool;

/// Where it stands which of our migrations were applied.
const TABLE: &str = "_service_migrations";
/// The same of the queue library's, which on Postgres has a schema of its own.
const QUEUE_TABLE: &str = "_sqlx_migrations";
const QUEUE_TABLE_POSTGRES: &str = "apalis._sqlx_migrations";

/// Postgres's code for a transaction that it broke off because two waited for each other.
const DEADLOCK: &str = "40P01";
/// How often a migration is begun that is broken off so. Each takes at least the second after which Postgres looks.
const DEADLOCK_TRIES: u32 = 10;

/// How a database differs from what this build expects.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Migrations of this build that the database does not have, in the order in which they are applied.
    pub missing: Vec<String>,
    /// Migrations that a newer build has applied.
    pub newer: Vec<String>,
    /// Migrations whose text has changed since they were applied, or whose application was broken off.
    pub damaged: Vec<String>,
}

impl Shape {
    /// Fails where the database cannot be used, and tells the log of what a newer build has done.
    ///
    /// # Errors
    /// When a migration has changed since it was applied, or was broken off.
    pub fn accept(&self) -> anyhow::Result<()> {
        if !self.damaged.is_empty() {
            bail!("migrations that were changed since they were applied, or broken off: {}", self.damaged.join(", "));
        }
        if !self.newer.is_empty() {
            let migrations = self.newer.join(", ");
            tracing::warn!(migrations, "the database is newer than this build, which uses it as it is");
        }
        Ok(())
    }
}

/// Our migrations for such a database.
fn ours(is_sqlite: bool) -> Migrator {
    let mut ours =
        if is_sqlite { sqlx::migrate!("../migrations/sqlite") } else { sqlx::migrate!("../migrations/postgres") };
    ours.dangerous_set_table_name(TABLE);
    // `Shape` says which, and looks for it before anything is applied.
    ours.set_ignore_missing(true);
    ours
}

/// The queue library's migrations.
fn theirs(is_sqlite: bool) -> Migrator {
    let mut theirs = if is_sqlite {
        apalis_sqlite::SqliteStorage::migrations()
    } else {
        apalis_postgres::PostgresStorage::migrations()
    };
    theirs.set_ignore_missing(true);
    theirs
}

/// Compares the database with this build, without changing it. One that is empty misses everything.
///
/// # Errors
/// When the database does not answer.
pub async fn shape(db: &Db) -> StoreResult<Shape> {
    let is_sqlite = matches!(db, Db::Sqlite(_));
    let queue_table = if is_sqlite { QUEUE_TABLE } else { QUEUE_TABLE_POSTGRES };
    let mut shape = Shape::default();
    compare(&mut shape, "queue ", &theirs(is_sqlite), applied(db, queue_table).await?);
    compare(&mut shape, "", &ours(is_sqlite), applied(db, TABLE).await?);
    Ok(shape)
}

/// The shape of an SQLite file that is not there, which to open would make it.
pub fn shape_of_no_file() -> Shape {
    let mut shape = Shape::default();
    compare(&mut shape, "queue ", &theirs(true), BTreeMap::new());
    compare(&mut shape, "", &ours(true), BTreeMap::new());
    shape
}

fn compare(shape: &mut Shape, prefix: &str, known: &Migrator, mut applied: BTreeMap<i64, Applied>) {
    for migration in known.iter().filter(|migration| !migration.migration_type.is_down_migration()) {
        let name = name(prefix, migration.version, &migration.description);
        match applied.remove(&migration.version) {
            None => shape.missing.push(name),
            Some(found) if !found.is_whole || found.checksum != *migration.checksum => shape.damaged.push(name),
            Some(_) => {}
        }
    }
    for (version, found) in applied {
        let name = name(prefix, version, &found.description);
        if found.is_whole { shape.newer.push(name) } else { shape.damaged.push(name) }
    }
}

/// A migration as its file is called.
fn name(prefix: &str, version: i64, description: &str) -> String {
    format!("{prefix}{version:04}_{}", description.replace(' ', "_"))
}

struct Applied {
    description: String,
    is_whole: bool,
    checksum: Vec<u8>,
}

/// What was applied, by version. Nothing where the table is missing.
async fn applied(db: &Db, table: &str) -> StoreResult<BTreeMap<i64, Applied>> {
    let sql = format!("SELECT version, description, success, checksum FROM {table}");
    let rows = on_pool!(db, |pool| sqlx::query_as(sqlx::AssertSqlSafe(sql)).fetch_all(pool).await);
    let rows: Vec<(i64, String, bool, Vec<u8>)> = match rows {
        Ok(rows) => rows,
        Err(sqlx::Error::Database(error)) if is_missing_table(&*error) => return Ok(BTreeMap::new()),
        Err(error) => return Err(StoreError::from(error)),
    };
    let entry = |(version, description, is_whole, checksum)| (version, Applied { description, is_whole, checksum });
    Ok(rows.into_iter().map(entry).collect())
}

/// Whether a statement failed because its table is not there.
pub fn is_missing_table(error: &dyn sqlx::error::DatabaseError) -> bool {
    let text = error.message();
    text.contains("no such table") || text.contains("does not exist")
}

/// Brings the database to this build's shape: the queue library's tables, then ours. Safe to repeat; run by one
/// process at a time (`weir migrate`, and the start of `weir serve`). A newer database is left as it is.
///
/// # Errors
/// When the database does not answer, a migration fails, or one that was applied has changed since.
pub async fn migrate(db: &Db) -> anyhow::Result<()> {
    let shape = shape(db).await?;
    shape.accept()?;
    // Nearly always, and every process and every command begins so.
    if shape.missing.is_empty() {
        return Ok(());
    }
    let is_sqlite = matches!(db, Db::Sqlite(_));
    let (theirs, ours) = (theirs(is_sqlite), ours(is_sqlite));
    match db {
        Db::Sqlite(db) => {
            // Not the library's `setup()`: that turns `synchronous` off.
            migrate_sqlite(db, &theirs).await.context("queue tables")?;
            migrate_sqlite(db, &ours).await.context("migrations/sqlite")?;
        }
        Db::Postgres(PostgresDb { pool, .. }) => {
            // What changes a large table takes its time, and so does another process that is at it: no bound on statements.
            let options = pool.connect_options().as_ref().clone().options([("statement_timeout", lines::UNBOUNDED)]);
            let mut tries = 1;
            while let Err(error) = migrate_postgres(&options, &theirs, &ours).await {
                if tries >= DEADLOCK_TRIES || !is_deadlock(&error) {
                    return Err(error);
                }
                tracing::warn!("a running process and a migration waited for each other; migrating once more");
                tries += 1;
            }
        }
    }
    Ok(())
}

/// Applies what is missing, each migration in a transaction that has the file's lock from its beginning: one that began by
/// reading, as of an index that is there no more, is refused at once where another connection writes.
async fn migrate_sqlite(db: &SqliteDb, migrator: &Migrator) -> anyhow::Result<()> {
    let mut turn = db.writer.turn().await?;
    for migration in migrator.iter() {
        let mut tx = turn.begin_with(BEGIN).await?;
        migrator.run_to(migration.version, &mut *tx).await?;
        tx.commit().await?;
    }
    turn.end();
    Ok(())
}

/// Applies what is missing over connections of its own: one that broke off in a migration still holds the lock that lets
/// one process migrate at a time.
async fn migrate_postgres(options: &PgConnectOptions, theirs: &Migrator, ours: &Migrator) -> anyhow::Result<()> {
    let patient = PgPoolOptions::new().max_connections(2).connect_with(options.clone()).await;
    let patient = patient.context("cannot reach Postgres")?;
    let migrated = async {
        theirs.run(&patient).await.context("queue tables")?;
        ours.run(&patient).await.context("migrations/postgres")
    };
    let migrated = migrated.await;
    patient.close().await;
    migrated
}

/// Whether Postgres broke a migration off, because a running process held a table that it needs and waited for one that
/// it had. Nothing of it was applied.
fn is_deadlock(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| match cause.downcast_ref::<sqlx::Error>() {
        Some(sqlx::Error::Database(error)) => error.code().as_deref() == Some(DEADLOCK),
        _ => false,
    })
}
