//! The shape of the database: which migrations it has, which are missing, and applying those.
//!
//! Processes of two releases work side by side during an upgrade, and binaries may be taken back by one release: changes
//! only add, so a database that is newer than this build is used as it is. A migration whose text is another one than
//! when it was applied is refused: what is there cannot be told.
//!
//! On Postgres a migration needs tables for itself, and whoever comes while it waits for one waits behind it. So it stands in
//! line for a moment only, gives up, lets the others through, and begins anew.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use anyhow::{Context as _, bail};
use sqlx::Connection as _;
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool};
use tokio_util::sync::CancellationToken;

use super::arrival;
use super::error::{SQLITE_BUSY, StoreError, StoreResult, sqlite_code};
use super::handle::{Db, SqliteDb};
use super::lines;
use super::writer::BEGIN;
use crate::{clock, on_pool, random};

/// Where it stands which of our migrations were applied.
const TABLE: &str = "_service_migrations";
/// The same of the queue library's, which on Postgres has a schema of its own.
const QUEUE_TABLE: &str = "_sqlx_migrations";
const QUEUE_TABLE_POSTGRES: &str = "apalis._sqlx_migrations";

/// How long a migration stands in line for a lock, ms. Pages' ends that wait for a lock wait longer; and Postgres looks after a
/// second who waits for whom, so of two that wait for each other it is the migration that gives way.
const LOCK_PATIENCE: &str = "800";
/// Pause before it stands in line again, in which those behind it have their turn; and a part of it by chance.
const PAUSE: Duration = Duration::from_secs(3);
const PAUSE_MORE_MS: u64 = 2_000;
/// How long the locks are waited for altogether.
const PATIENCE: Duration = Duration::from_secs(600);
/// The log says at once for whom a migration waits, and then this often.
const TELL: Duration = Duration::from_secs(10);
/// Between two looks for whom it waits.
const LOOK: Duration = Duration::from_millis(250);
/// Bound on ending a connection.
const ENDING: Duration = Duration::from_secs(2);
/// Who has the lock of SQLite's file for longer than this may be a migration: where tables are missing nobody else writes.
const A_MOMENT: Duration = Duration::from_secs(1);
/// What the connection of a migration is called in Postgres.
const NAME: &str = "weir migration";

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

/// Brings the database to this build's shape: the queue library's tables, then ours. Safe to repeat; one process migrates at a
/// time, others wait for it. A newer database is left as it is.
///
/// # Errors
/// When the database does not answer, a migration fails, one that was applied has changed since, or somebody has for minutes
/// what it needs.
pub async fn migrate(db: &Db) -> anyhow::Result<()> {
    migrate_patiently(db, &CancellationToken::new()).await.map(drop)
}

/// As [`migrate`]. `None`: `stop` was cancelled meanwhile; nothing of ours is at work in the database then.
///
/// # Errors
/// As there.
pub async fn migrate_patiently(db: &Db, stop: &CancellationToken) -> anyhow::Result<Option<()>> {
    let Some(shape) = stop.run_until_cancelled(shape(db)).await.transpose()? else { return Ok(None) };
    shape.accept()?;
    // Nearly always, and every process and every command begins so.
    if shape.missing.is_empty() {
        return Ok(Some(()));
    }
    match db {
        Db::Sqlite(db) => {
            let path = db.pool.connect_options().get_filename().to_owned();
            let (theirs, ours) = (theirs(true), ours(true));
            let work = arrival::while_it_passes(&path, async || {
                // Not the library's `setup()`: that turns `synchronous` off.
                migrate_sqlite(db, &theirs).await.context("queue tables")?;
                migrate_sqlite(db, &ours).await.context("migrations/sqlite")
            });
            stop.run_until_cancelled(work).await.transpose()
        }
        Db::Postgres(db) => migrate_postgres(&db.pool, stop).await,
    }
}

/// Whether somebody seems to bring the database to another shape now. On Postgres a migration that waits for others has no
/// connection for some seconds between two tries; of SQLite's file it is known only that somebody has its lock.
///
/// # Errors
/// When the database does not answer.
pub async fn is_under_way(db: &Db) -> StoreResult<bool> {
    const TRIES: &str =
        "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1";
    match db {
        Db::Sqlite(_) => match tokio::time::timeout(A_MOMENT, db.try_write()).await {
            Err(_) => Ok(true),
            Ok(Err(StoreError::Unavailable(error))) if sqlite_code(&error).is_some_and(|c| c & 0xff == SQLITE_BUSY) => {
                Ok(true)
            }
            Ok(tried) => tried.map(|()| false),
        },
        Db::Postgres(db) => {
            let tries: i64 = sqlx::query_scalar(TRIES).bind(NAME).fetch_one(&db.pool).await?;
            Ok(tries > 0)
        }
    }
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

/// Applies what is missing, again and again while others have what it needs. `None` as in [`migrate_patiently`].
async fn migrate_postgres(pool: &PgPool, stop: &CancellationToken) -> anyhow::Result<Option<()>> {
    // What changes a large table takes its time: no bound on statements.
    let bounds = [("statement_timeout", lines::UNBOUNDED), ("lock_timeout", LOCK_PATIENCE)];
    let options = pool.connect_options().as_ref().clone().options(bounds).application_name(NAME);
    let (end, mut tell_at) = (clock::deadline(PATIENCE), clock::instant());
    loop {
        let mut holder = None;
        let Some(tried) = try_postgres(pool, &options, &mut holder, stop).await else { return Ok(None) };
        let Err(error) = tried else { return Ok(Some(())) };
        if !is_in_the_way(&error) {
            return Err(error);
        }
        let (now, holder) = (clock::instant(), holder.as_deref().unwrap_or("somebody else's lock"));
        if now >= end {
            let minutes = PATIENCE.as_secs() / 60;
            return Err(error.context(format!("a migration has waited for {holder}, {minutes} minutes in all")));
        }
        if now >= tell_at {
            let (error, left_s) = (format!("{error:#}"), (end - now).as_secs());
            tracing::warn!(%error, left_s, "a migration waits for {holder}; others are let through meanwhile");
            tell_at = now + TELL;
        }
        let pause = PAUSE + Duration::from_millis(random::up_to(PAUSE_MORE_MS));
        if stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return Ok(None);
        }
    }
}

/// Applies what is missing over a connection of its own: one that broke off in a migration still holds the lock that lets one
/// process migrate at a time. `holder` becomes whom it waited for. `None` as in [`migrate_patiently`].
async fn try_postgres(
    pool: &PgPool,
    options: &PgConnectOptions,
    holder: &mut Option<String>,
    stop: &CancellationToken,
) -> Option<anyhow::Result<()>> {
    let opened = match stop.run_until_cancelled(connection_for_migrations(options)).await? {
        Ok(opened) => opened,
        Err(error) => return Some(Err(error).context("cannot reach Postgres")),
    };
    let (mut connection, pid) = opened;
    let applying = async {
        theirs(false).run(&mut connection).await.context("queue tables")?;
        ours(false).run(&mut connection).await.context("migrations/postgres")
    };
    let tried = tokio::select! {
        tried = applying => Some(tried),
        () = stop.cancelled() => None,
        never = look_for_holder(pool, pid, holder) => match never {},
    };
    if tried.is_some() {
        let _ = tokio::time::timeout(ENDING, connection.close()).await;
    } else {
        // Its server process would go on with its statement, or stand in line, although nobody hears of it any more.
        let end = sqlx::query("SELECT pg_terminate_backend($1)").bind(pid).execute(pool);
        let _ = tokio::time::timeout(ENDING, end).await;
    }
    tried
}

/// A connection, and the server's process behind it.
async fn connection_for_migrations(options: &PgConnectOptions) -> sqlx::Result<(PgConnection, i32)> {
    // A server that can looks now and then whether we are still there: of us, too, it hears nothing where we are killed.
    const LOOK_FOR_US: &str =
        "SELECT set_config(name, '1000', false) FROM pg_settings WHERE name = 'client_connection_check_interval'";
    let mut connection = PgConnection::connect_with(options).await?;
    let _ = sqlx::query(LOOK_FOR_US).execute(&mut connection).await;
    let pid = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut connection).await?;
    Ok((connection, pid))
}

/// Looks whom a migration waits for, as long as it is at work.
async fn look_for_holder(pool: &PgPool, pid: i32, holder: &mut Option<String>) -> Infallible {
    const HOLDERS: &str = "SELECT holder.pid, a.application_name, \
        CAST(EXTRACT(EPOCH FROM clock_timestamp() - a.xact_start) AS BIGINT) \
        FROM unnest(pg_blocking_pids($1)) AS holder (pid) LEFT JOIN pg_stat_activity a ON a.pid = holder.pid \
        ORDER BY a.xact_start LIMIT 1";
    loop {
        tokio::time::sleep(LOOK).await;
        let found =
            sqlx::query_as::<_, (i32, Option<String>, Option<i64>)>(HOLDERS).bind(pid).fetch_optional(pool).await;
        if let Ok(Some((pid, name, age_s))) = found {
            let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| "without a name".to_owned());
            // Of what other roles do we may not know since when.
            let since = age_s.map(|age_s| format!(", {age_s} s in its transaction")).unwrap_or_default();
            *holder = Some(format!("process {pid} of Postgres ({name}{since})"));
        }
    }
}

/// Whether a migration gave way to somebody who has what it needs. Nothing of it was applied.
fn is_in_the_way(error: &anyhow::Error) -> bool {
    // `lock_not_available`, after [`LOCK_PATIENCE`]; and `deadlock_detected`, where the server looks for those sooner.
    const GAVE_WAY: &[&str] = &["55P03", "40P01"];
    error.chain().any(|cause| match cause.downcast_ref::<sqlx::Error>() {
        Some(sqlx::Error::Database(error)) => error.code().is_some_and(|code| GAVE_WAY.contains(&&*code)),
        _ => false,
    })
}
