//! Waiting for a database that is not there yet, as when a machine starts everything at once.
//!
//! Only what passes by itself is waited for: a server that does not answer, is starting up, has no connection to spare or is
//! read-only, a file that somebody else has locked, and one on a full disk or on a file system that was mounted read-only. A
//! wrong password, a file that is ours to read alone or a database that nobody has made is an error at once.

use std::io;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use rustix::fs::{Access, access, statvfs};
use rustix::io::Errno;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio_util::sync::CancellationToken;

use super::error::{SQLITE_BUSY, SQLITE_FULL, sqlite_code};
use crate::config::DatabaseUrl;
use crate::store::{Db, PoolUse, StoreError};
use crate::{clock, private};

/// How long the database is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause between tries.
const PAUSE: Duration = Duration::from_millis(500);
/// Bound on one try.
const TRY: Duration = Duration::from_secs(5);
/// The log says at once that we wait, and then this often.
const TELL: Duration = Duration::from_secs(10);

impl Db {
    /// As [`Db::connect`], but a database that is not there yet or takes no writes is waited for, 60 s at most. `None`: `stop`
    /// was cancelled meanwhile.
    ///
    /// # Errors
    /// When the database cannot be had by waiting, or not in that time.
    pub async fn connect_patiently(
        url: &DatabaseUrl,
        connections: u32,
        usage: PoolUse,
        stop: &CancellationToken,
    ) -> anyhow::Result<Option<Self>> {
        let connected = async {
            match url {
                DatabaseUrl::Postgres(text) => {
                    arrival(text).await?;
                    Self::connect(url, connections, usage).await
                }
                DatabaseUrl::Sqlite(path) => writable(path, || Self::connect(url, connections, usage)).await,
            }
        };
        stop.run_until_cancelled(connected).await.transpose()
    }

    /// As [`Db::connect`], for somebody who asks now: a server that is not there is told of at once, with the reason and its
    /// address. A pool tries again until its time is over, and then does not know why.
    ///
    /// # Errors
    /// As [`Db::connect`].
    pub async fn connect_at_once(url: &DatabaseUrl, connections: u32, usage: PoolUse) -> anyhow::Result<Self> {
        if let DatabaseUrl::Postgres(text) = url {
            let options: PgConnectOptions = text.parse().context("DATABASE_URL")?;
            let reached = within(TRY, async {
                let connection = PgConnection::connect_with(&options).await?;
                Ok(tokio::time::timeout(PAUSE, connection.close()).await)
            });
            let _ = reached.await.with_context(|| format!("cannot reach Postgres, {}", named(&options)))?;
        }
        Self::connect(url, connections, usage).await
    }
}

/// Work with a bound.
async fn within<T>(bound: Duration, work: impl Future<Output = sqlx::Result<T>>) -> sqlx::Result<T> {
    let done = tokio::time::timeout(bound, work).await;
    done.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
}

/// Opens the file, and returns when it can be written: the first that a process does is to bring its tables up to date.
async fn writable(path: &Path, connect: impl AsyncFn() -> anyhow::Result<Db>) -> anyhow::Result<Db> {
    let mut opened = None;
    let work = while_it_passes(path, async || {
        let db = match &opened {
            Some(db) => Db::clone(db),
            None => opened.insert(connect().await?).clone(),
        };
        match db.try_write().await {
            Ok(()) => Ok(db),
            Err(StoreError::Unavailable(error)) => Err(error.into()),
            Err(error) => Err(error.into()),
        }
    });
    work.await.with_context(|| format!("cannot write {}", path.display()))
}

/// Does work on SQLite's file, again and again while what stops it passes by itself, [`PATIENCE`] at most.
///
/// # Errors
/// Those of the work.
pub(super) async fn while_it_passes<T>(
    path: &Path,
    mut work: impl AsyncFnMut() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let (end, mut tell_at) = (clock::deadline(PATIENCE), clock::instant());
    loop {
        // Each try has SQLite's own patience.
        let error = match work().await {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        let now = clock::instant();
        let Some(why) = why_it_passes(&error, path).filter(|_| now < end) else { return Err(error) };
        if now >= tell_at {
            let left_s = (end - now).as_secs();
            tracing::warn!(file = %path.display(), error = %format!("{error:#}"), left_s, "waiting for the database: {why}");
            tell_at = now + TELL;
        }
        // What found it locked at once would ask without a pause.
        tokio::time::sleep(PAUSE).await;
    }
}

/// Why a file that cannot be written may be written later without anybody's changing it. `None`: it may not.
fn why_it_passes(error: &anyhow::Error, path: &Path) -> Option<&'static str> {
    match why_not_written(error, path)? {
        Refusal::Locked => Some("somebody else has locked it"),
        Refusal::DiskFull => Some("its disk is full"),
        Refusal::ReadOnlyFileSystem => Some("its file system is read-only"),
        Refusal::Denied => None,
    }
}

/// Why SQLite's file cannot be written, or not even opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Somebody else has locked it.
    Locked,
    /// Nothing more fits on its disk.
    DiskFull,
    ReadOnlyFileSystem,
    /// Our user may not write it, or not come to where it lies.
    Denied,
}

/// What an error says of SQLite's file at `path`. `None`: none of these.
pub fn why_not_written(error: &anyhow::Error, path: &Path) -> Option<Refusal> {
    let codes = || error.chain().filter_map(|cause| sqlite_code(cause.downcast_ref::<sqlx::Error>()?));
    // What lies beside the file is not written by SQLite alone.
    let of_system =
        |kind| error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).any(|e| e.kind() == kind);
    if codes().any(|code| code & 0xff == SQLITE_BUSY) {
        Some(Refusal::Locked)
    } else if codes().any(|code| is_full(code, || has_room(path))) || of_system(io::ErrorKind::StorageFull) {
        Some(Refusal::DiskFull)
    } else if is_refused(path, Errno::ROFS) {
        // SQLite says the same of a file that we may only read, for which there is another error.
        Some(Refusal::ReadOnlyFileSystem)
    } else if is_refused(path, Errno::ACCESS) || of_system(io::ErrorKind::PermissionDenied) {
        Some(Refusal::Denied)
    } else {
        None
    }
}

/// Whether SQLite's error is a full disk's. Its log's index, of the whole of which it makes sure beforehand, it reports as
/// broken, and what it cannot make at all as not to be opened.
fn is_full(code: i32, has_room: impl Fn() -> bool) -> bool {
    const SQLITE_IOERR: i32 = 10;
    const SQLITE_CANTOPEN: i32 = 14;
    match code & 0xff {
        SQLITE_FULL => true,
        SQLITE_IOERR | SQLITE_CANTOPEN => !has_room(),
        _ => false,
    }
}

/// Whether something fits on the disk of a file, and another file. Where it cannot be told, something does.
fn has_room(file: &Path) -> bool {
    // Less is the same as nothing to SQLite, which makes its files larger by tens of kilobytes.
    const LEAST: u64 = 1024 * 1024;
    let Ok(disk) = statvfs(folder_of(file)) else { return true };
    // Some blocks are root's alone.
    let blocks = if private::own_uid() == 0 { disk.f_bfree } else { disk.f_bavail };
    // Some file systems do not count files.
    blocks.saturating_mul(disk.f_frsize) >= LEAST && (disk.f_files == 0 || disk.f_favail > 0)
}

/// Whether the file, or the folder in which it is to be made, may not be written for this reason.
fn is_refused(file: &Path, why: Errno) -> bool {
    match access(file, Access::WRITE_OK) {
        Err(Errno::NOENT) => access(folder_of(file), Access::WRITE_OK) == Err(why),
        answer => answer == Err(why),
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns when the server takes a connection, and what is written by it.
async fn arrival(text: &str) -> anyhow::Result<()> {
    let options: PgConnectOptions = text.parse().context("DATABASE_URL")?;
    let options = options.disable_statement_logging();
    let (server, end) = (named(&options), clock::deadline(PATIENCE));
    let mut tell_at = clock::instant();
    loop {
        let Err(error) = within(TRY, greet(&options)).await else { return Ok(()) };
        let now = clock::instant();
        if !passes(&error) || now + PAUSE >= end {
            return Err(error).with_context(|| format!("cannot use Postgres, {server}"));
        }
        if now >= tell_at {
            let left_s = (end - now).as_secs();
            tracing::warn!(%server, %error, left_s, "waiting for the database");
            tell_at = now + TELL;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Connects, and asks whether the server lets anybody write. It may have no tables yet that something could be written to.
async fn greet(options: &PgConnectOptions) -> sqlx::Result<()> {
    const READ_ONLY: &str = "it takes no writes: it is a standby, or default_transaction_read_only is on";
    let mut connection = PgConnection::connect_with(options).await?;
    let asked = sqlx::query_scalar::<_, String>("SELECT current_setting('transaction_read_only')");
    let is_read_only = asked.fetch_one(&mut connection).await? == "on";
    // It is of no more use, whether it says goodbye or not.
    let _ = tokio::time::timeout(PAUSE, connection.close()).await;
    match is_read_only {
        true => Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, READ_ONLY).into()),
        false => Ok(()),
    }
}

/// Whether the same try may succeed later without anybody's doing.
fn passes(error: &sqlx::Error) -> bool {
    // `admin_shutdown`, `crash_shutdown`, `cannot_connect_now` (it is starting up), `too_many_connections`.
    const PASSING: &[&str] = &["57P01", "57P02", "57P03", "53300"];
    match error {
        sqlx::Error::Io(_) => true,
        sqlx::Error::Database(error) => error.code().is_some_and(|code| PASSING.contains(&&*code)),
        _ => false,
    }
}

/// User, server and database; never the password.
fn named(options: &PgConnectOptions) -> String {
    let database = options.get_database().unwrap_or(options.get_username());
    match options.get_socket() {
        Some(socket) => format!("{}@{}/{database}", options.get_username(), socket.display()),
        None => format!("{}@{}:{}/{database}", options.get_username(), options.get_host(), options.get_port()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use sqlx::sqlite::SqliteConnectOptions;

    use super::*;
    use crate::store::testing::refusing;

    #[tokio::test]
    async fn a_wrong_password_and_an_unknown_database_are_errors_at_once() {
        for code in ["28P01", "28000", "3D000"] {
            let (url, stop) = (refusing(code).await, CancellationToken::new());
            let tried = Db::connect_patiently(&url, 1, PoolUse::Rows, &stop);
            let error = tokio::time::timeout(PATIENCE / 2, tried).await.unwrap().unwrap_err();
            let text = format!("{error:#}");
            assert!(text.contains("refused by the test") && text.contains("weir@127.0.0.1:"), "{text}");
            assert!(!text.contains("hidden"), "{text}");
        }
    }

    #[tokio::test]
    async fn who_asks_now_hears_at_once_why_there_is_no_server() {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let nobody = DatabaseUrl::Postgres(format!("postgres://weir:hidden@127.0.0.1:{port}/weir"));
        for (url, why, code) in
            [(nobody, "refused", None), (refusing("57P03").await, "refused by the test", Some("57P03"))]
        {
            let tried = Db::connect_at_once(&url, 1, PoolUse::Commands);
            let error = tokio::time::timeout(TRY, tried).await.unwrap().unwrap_err();
            let text = format!("{error:#}");
            assert!(text.contains(why) && text.contains("weir@127.0.0.1:") && !text.contains("hidden"), "{text}");
            assert_eq!(crate::store::postgres_code(&error).as_deref(), code);
        }
    }

    #[tokio::test]
    async fn a_file_that_somebody_has_locked_is_waited_for_until_it_is_free() {
        let folder = std::env::temp_dir().join(format!("weir-locked-{}", crate::random::id()));
        let path = folder.join("weir.db");
        let (url, stop) = (DatabaseUrl::Sqlite(path.clone()), CancellationToken::new());
        Db::connect(&url, 1, PoolUse::Rows).await.unwrap().close().await;
        let mut other = SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
        sqlx::query("BEGIN EXCLUSIVE").execute(&mut other).await.unwrap();
        let mut tried = Box::pin(Db::connect_patiently(&url, 1, PoolUse::Rows, &stop));
        assert!(tokio::time::timeout(PAUSE, &mut tried).await.is_err(), "it is waited for");
        sqlx::query("ROLLBACK").execute(&mut other).await.unwrap();
        let db = tokio::time::timeout(PATIENCE, tried).await.unwrap().unwrap().unwrap();
        db.begin().await.unwrap().commit().await.unwrap();
        db.close().await;
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[tokio::test]
    async fn a_server_that_starts_up_is_waited_for_until_the_stop() {
        for code in ["57P03", "53300"] {
            let (url, stop) = (refusing(code).await, CancellationToken::new());
            let mut tried = Box::pin(Db::connect_patiently(&url, 1, PoolUse::Rows, &stop));
            assert!(tokio::time::timeout(PAUSE * 3, &mut tried).await.is_err(), "{code} is waited for");
            stop.cancel();
            let ended = tokio::time::timeout(PATIENCE / 2, tried).await.unwrap().unwrap();
            assert!(ended.is_none(), "the stop ends the wait");
        }
    }

    #[tokio::test]
    async fn a_server_that_takes_no_writes_is_waited_for_until_it_does() {
        let Ok(server) = std::env::var("WEIR_TEST_POSTGRES_URL") else {
            eprintln!("skipped: WEIR_TEST_POSTGRES_URL is not set");
            return;
        };
        let text = crate::store::testing::fresh_postgres(&server).await;
        let (url, stop) = (DatabaseUrl::Postgres(text.clone()), CancellationToken::new());
        let options: PgConnectOptions = text.parse().unwrap();
        let name = options.get_database().unwrap().to_owned();
        let mut owner =
            PgConnection::connect_with(&options.options([("default_transaction_read_only", "off")])).await.unwrap();
        let mut becomes = async |state: &str| {
            let sql = format!("ALTER DATABASE \"{name}\" SET default_transaction_read_only = {state}");
            sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&mut owner).await.unwrap();
        };
        becomes("on").await;
        let mut tried = Box::pin(Db::connect_patiently(&url, 1, PoolUse::Rows, &stop));
        assert!(tokio::time::timeout(PAUSE * 3, &mut tried).await.is_err(), "it is waited for");
        becomes("off").await;
        let db = tokio::time::timeout(PATIENCE, tried).await.unwrap().unwrap().unwrap();
        db.try_write().await.unwrap();
        db.close().await;
    }

    #[tokio::test]
    async fn a_full_disk_passes_and_a_file_that_is_ours_to_read_alone_does_not() {
        let folder = std::env::temp_dir().join(format!("weir-passes-{}", crate::random::id()));
        let path = folder.join("weir.db");
        let db = Db::connect(&DatabaseUrl::Sqlite(path.clone()), 1, PoolUse::Rows).await.unwrap();
        db.try_write().await.unwrap();
        let mut reader = SqliteConnectOptions::new().filename(&path).read_only(true).connect().await.unwrap();
        let refused = sqlx::query("PRAGMA user_version = 0").execute(&mut reader).await.unwrap_err();
        let refused = anyhow::Error::from(refused);
        assert!(crate::store::takes_no_writes(&refused), "{refused}");
        assert_eq!(why_it_passes(&refused, &path), None);
        let mut writer = SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
        sqlx::query("PRAGMA max_page_count = 1").execute(&mut writer).await.unwrap();
        let large = "CREATE TABLE large AS SELECT randomblob(10000000) AS filler";
        let full = sqlx::query(large).execute(&mut writer).await.unwrap_err();
        assert_eq!(why_it_passes(&full.into(), &path), Some("its disk is full"));
        let full = anyhow::Error::from(io::Error::from(io::ErrorKind::StorageFull)).context("cannot open");
        assert_eq!(why_it_passes(&full, &path), Some("its disk is full"));
        let denied = anyhow::Error::from(io::Error::from(io::ErrorKind::PermissionDenied)).context("cannot open");
        assert_eq!(why_it_passes(&denied, &path), None);
        db.close().await;
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_sqlite_says_of_a_disk_without_room_is_told_from_a_broken_one() {
        // `SQLITE_FULL`, `SQLITE_IOERR_SHMSIZE`, `SQLITE_IOERR_WRITE`, `SQLITE_CANTOPEN`, `SQLITE_READONLY`.
        for (code, without_room, with_room) in
            [(13, true, true), (4_874, true, false), (778, true, false), (14, true, false), (8, false, false)]
        {
            assert_eq!((is_full(code, || false), is_full(code, || true)), (without_room, with_room), "{code}");
        }
        assert!(has_room(&std::env::temp_dir().join("weir.db")) && has_room(Path::new("weir.db")));
    }
}
