//! Waiting for a database that is not there yet, as when a machine starts everything at once.
//!
//! Only what passes by itself is waited for: a server that does not answer, is starting up or has no connection to
//! spare, a file that somebody else has locked. A wrong password or a database that nobody has made is an error at once.

use std::io;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio_util::sync::CancellationToken;

use super::connect::is_busy;
use super::{Db, PoolUse, StoreError};
use crate::clock;
use crate::config::DatabaseUrl;

/// How long the database is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause between tries.
const PAUSE: Duration = Duration::from_millis(500);
/// Bound on one try.
const TRY: Duration = Duration::from_secs(5);
/// The log says at once that we wait, and then this often.
const TELL: Duration = Duration::from_secs(10);

impl Db {
    /// As [`Db::connect`], but a server that is not there yet is waited for, 60 s at most. `None`: `stop` was cancelled
    /// meanwhile.
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
                DatabaseUrl::Sqlite(path) => unlocked(path, || Self::connect(url, connections, usage)).await,
            }
        };
        stop.run_until_cancelled(connected).await.transpose()
    }
}

/// Opens the file, and returns when it can be written: the first that a process does is to bring its tables up to date.
async fn unlocked(path: &Path, connect: impl AsyncFn() -> anyhow::Result<Db>) -> anyhow::Result<Db> {
    let end = clock::deadline(PATIENCE);
    let mut opened = None;
    loop {
        // Each try has SQLite's own patience.
        let tried = match &opened {
            None => connect().await.map(|db| opened = Some(db)),
            Some(db) => match db.begin_relaxed().await {
                Ok(tx) => {
                    tx.commit().await?;
                    return Ok(db.clone());
                }
                Err(StoreError::Unavailable(error)) => Err(error.into()),
                Err(error) => return Err(error.into()),
            },
        };
        let Err(error) = tried else { continue };
        let is_locked = error.chain().filter_map(|cause| cause.downcast_ref()).any(is_busy);
        let now = clock::instant();
        if !is_locked || now >= end {
            return Err(error.context(format!("cannot write {}", path.display())));
        }
        let left_s = (end - now).as_secs();
        tracing::warn!(file = %path.display(), left_s, "waiting for the database: somebody else has locked it");
        // What found it locked at once would ask without a pause.
        tokio::time::sleep(PAUSE).await;
    }
}

/// Returns when the server takes a connection.
async fn arrival(text: &str) -> anyhow::Result<()> {
    let options: PgConnectOptions = text.parse().context("DATABASE_URL")?;
    let options = options.disable_statement_logging();
    let (server, end) = (named(&options), clock::deadline(PATIENCE));
    let mut tell_at = clock::instant();
    loop {
        let attempt = tokio::time::timeout(TRY, PgConnection::connect_with(&options)).await;
        let error = match attempt.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into())) {
            Ok(connection) => {
                let _ = tokio::time::timeout(TRY, connection.close()).await;
                return Ok(());
            }
            Err(error) => error,
        };
        let now = clock::instant();
        if !passes(&error) || now + PAUSE >= end {
            return Err(error).with_context(|| format!("cannot reach Postgres, {server}"));
        }
        if now >= tell_at {
            let left_s = (end - now).as_secs();
            tracing::warn!(%server, %error, left_s, "waiting for the database");
            tell_at = now + TELL;
        }
        tokio::time::sleep(PAUSE).await;
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
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// A server that answers each start of a connection with this error.
    async fn refusing(code: &'static str) -> DatabaseUrl {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut asked = [0; 512];
                // It has no TLS.
                if stream.read(&mut asked).await.unwrap_or(0) == 8 {
                    let _ = stream.write_all(b"N").await;
                    let _ = stream.read(&mut asked).await;
                }
                let fields = format!("SFATAL\0VFATAL\0C{code}\0Mrefused by the test\0\0");
                let length = u32::try_from(fields.len() + 4).unwrap();
                let _ = stream.write_all(&[b"E", &length.to_be_bytes()[..], fields.as_bytes()].concat()).await;
            }
        });
        DatabaseUrl::Postgres(format!("postgres://weir:hidden@127.0.0.1:{port}/weir"))
    }

    #[tokio::test]
    async fn a_wrong_password_and_an_unknown_database_are_errors_at_once() {
        for code in ["28P01", "28000", "3D000"] {
            let (url, stop) = (refusing(code).await, CancellationToken::new());
            let tried = Db::connect_patiently(&url, 1, PoolUse::Rows, &stop);
            let error = tokio::time::timeout(Duration::from_secs(20), tried).await.unwrap().unwrap_err();
            let text = format!("{error:#}");
            assert!(text.contains("refused by the test") && text.contains("weir@127.0.0.1:"), "{text}");
            assert!(!text.contains("hidden"), "{text}");
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
        let db = tokio::time::timeout(Duration::from_secs(20), tried).await.unwrap().unwrap().unwrap();
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
            let ended = tokio::time::timeout(Duration::from_secs(20), tried).await.unwrap().unwrap();
            assert!(ended.is_none(), "the stop ends the wait");
        }
    }
}
