//! A fresh database for each service: an SQLite file in its folder, or a Postgres database of its own.

#[path = "../../shared/src/store/testing/postgres_template.rs"]
mod postgres_template;
#[path = "../../shared/src/store/testing/sqlite_template.rs"]
mod sqlite_template;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};
use weir_shared::config::DatabaseUrl;
use weir_shared::random;
use weir_shared::store::{self, Db, PoolUse};

/// Which database a service under test uses.
#[derive(Clone, Debug)]
pub enum Database {
    Sqlite,
    /// Holds the address of a cluster where databases may be created.
    Postgres(String),
}

impl Database {
    /// The cluster of `WEIR_TEST_POSTGRES_URL`, if that is set.
    pub fn postgres() -> Option<Self> {
        match std::env::var("WEIR_TEST_POSTGRES_URL") {
            Ok(url) if !url.is_empty() => Some(Self::Postgres(url)),
            _ => {
                assert!(!crate::require_all(), "WEIR_TEST_POSTGRES_URL is not set");
                None
            }
        }
    }

    /// Makes the database of one service, with its tables.
    pub async fn create(&self, folder: &Path) -> FreshDatabase {
        match self {
            Self::Sqlite => {
                let path = folder.join("weir.db");
                sqlite_template::create(&path, async |draft| migrate(DatabaseUrl::Sqlite(draft)).await).await;
                FreshDatabase { url: format!("sqlite://{}", path.display()), drop_in: None }
            }
            Self::Postgres(cluster) => {
                let name = format!("weir_{}", random::id().simple());
                let migrate = async |url| migrate(DatabaseUrl::Postgres(url)).await;
                let url = postgres_template::create(cluster, &name, migrate).await;
                FreshDatabase { url, drop_in: Some((cluster.clone(), name)) }
            }
        }
    }
}

async fn migrate(url: DatabaseUrl) {
    let db = Db::connect(&url, 1, PoolUse::Rows).await.unwrap();
    store::migrate(&db).await.unwrap();
    db.close().await;
}

/// Whether a write gets its turn: `false` where one that has begun does not end.
pub(crate) async fn is_writable(url: &str) -> bool {
    let Some(path) = url.strip_prefix("sqlite://") else { return true };
    let options = SqliteConnectOptions::new().filename(path).busy_timeout(Duration::from_millis(300));
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    let is_writable = sqlx::query("BEGIN IMMEDIATE").execute(&mut connection).await.is_ok();
    connection.close().await.unwrap();
    is_writable
}

/// A connection to a service's database, past the service.
enum DatabaseConnection {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

/// The same call on either.
macro_rules! on_either {
    ($connection:expr, |$name:ident| $body:expr) => {
        match $connection {
            DatabaseConnection::Sqlite($name) => $body,
            DatabaseConnection::Postgres($name) => $body,
        }
    };
}

impl DatabaseConnection {
    async fn open(url: &str) -> sqlx::Result<Self> {
        Ok(if url.starts_with("sqlite:") {
            Self::Sqlite(SqliteConnection::connect(url).await?)
        } else {
            Self::Postgres(PgConnection::connect(url).await?)
        })
    }

    /// Runs statements without values.
    async fn run(&mut self, sql: &str) {
        let sql = AssertSqlSafe(sql.to_owned());
        on_either!(self, |connection| sqlx::raw_sql(sql).execute(connection).await.map(|_| ())).unwrap();
    }

    /// The one number that a statement answers with.
    async fn number(&mut self, sql: &str) -> i64 {
        let sql = AssertSqlSafe(sql.to_owned());
        on_either!(self, |connection| sqlx::query_scalar(sql).fetch_one(connection).await).unwrap()
    }

    async fn close(self) {
        on_either!(self, |connection| connection.close().await).unwrap();
    }
}

/// What keeps others from writing until it is released: SQLite's one write lock, or the rows of teams on Postgres.
pub struct WriteLock(DatabaseConnection);

impl WriteLock {
    /// Waits for the lock; on Postgres it is that of every team but `spared`.
    pub(crate) async fn take(url: &str, spared: &str) -> Self {
        let mut lock = Self::begin(url).await;
        if let DatabaseConnection::Postgres(connection) = &mut lock.0 {
            let rows = sqlx::query("SELECT id FROM team WHERE name <> $1 FOR UPDATE").bind(spared);
            assert!(!rows.fetch_all(connection).await.unwrap().is_empty(), "there is a team to lock");
        }
        lock
    }

    /// Waits for the lock; on Postgres it is that of one table, as somebody holds it who makes an index.
    pub(crate) async fn take_table(url: &str, table: &str) -> Self {
        let mut lock = Self::begin(url).await;
        if matches!(lock.0, DatabaseConnection::Postgres(_)) {
            lock.0.run(&format!("LOCK TABLE {table} IN SHARE MODE")).await;
        }
        lock
    }

    async fn begin(url: &str) -> Self {
        let mut connection = DatabaseConnection::open(url).await.unwrap();
        let begin = match connection {
            DatabaseConnection::Sqlite(_) => "BEGIN IMMEDIATE",
            DatabaseConnection::Postgres(_) => "SET idle_in_transaction_session_timeout = 0; BEGIN",
        };
        connection.run(begin).await;
        Self(connection)
    }

    pub async fn release(mut self) {
        self.0.run("ROLLBACK").await;
        self.0.close().await;
    }
}

/// Runs one statement in a service's database, past the service.
pub(crate) async fn execute(url: &str, sql: &str) {
    let mut connection = DatabaseConnection::open(url).await.unwrap();
    connection.run(sql).await;
    connection.close().await;
}

/// What nobody may hold once a service has ended in good order, with how much of it there is: a name for people, then the
/// number of rows. Of a database that only the service's own network reaches nothing is said.
pub(crate) async fn rows_left(url: &str, none_died: bool) -> Vec<String> {
    // A stand-in has no process that could end its sessions.
    const HELD: &[(&str, &str)] = &[
        ("pages in work", "SELECT COUNT(*) FROM page WHERE state = 'running'"),
        (
            "sessions",
            "SELECT COUNT(*) FROM browser_session WHERE state <> 'destroyed' \
             AND NOT EXISTS (SELECT 1 FROM worker_node WHERE name = 'stand-in')",
        ),
        (
            "leases of profiles",
            "SELECT COUNT(*) FROM profile_lease WHERE NOT EXISTS (SELECT 1 FROM worker_node WHERE name = 'stand-in')",
        ),
    ];
    const WAKEUPS: &str = "SELECT COUNT(*) FROM JOBS WHERE lock_by IS NOT NULL AND status IN ('Queued', 'Running')";
    let is_sqlite = url.starts_with("sqlite:");
    let wakeups = WAKEUPS.replace("JOBS", if is_sqlite { "Jobs" } else { "apalis.jobs" });
    let mut looks = HELD.to_vec();
    // What a worker held that was killed others take over, seconds later.
    if none_died {
        let alive = "SELECT COUNT(*) FROM worker_node WHERE state <> 'dead' AND name <> 'stand-in'";
        looks.push(("workers that count as alive", alive));
        looks.push(("wake-ups in hand", &wakeups));
    }
    let mut left = Vec::new();
    let Ok(mut connection) = DatabaseConnection::open(url).await else { return left };
    for (what, sql) in looks {
        let count = connection.number(sql).await;
        if count > 0 {
            left.push(format!("{what}: {count}"));
        }
    }
    left
}

/// Tables that hold this text in any column, and the number of documents.
pub(crate) async fn tables_with(url: &str, text: &str) -> (Vec<String>, i64) {
    const DOCUMENTS: &str = "SELECT COUNT(*) FROM document";
    let mut found = Vec::new();
    if url.starts_with("sqlite:") {
        let mut connection = SqliteConnection::connect(url).await.unwrap();
        let tables = "SELECT m.name, group_concat('CAST(\"' || c.name || '\" AS TEXT) LIKE $1', ' OR ') FROM sqlite_master m, \
            pragma_table_info(m.name) c WHERE m.type = 'table' GROUP BY m.name";
        let tables: Vec<(String, String)> = sqlx::query_as(tables).fetch_all(&mut connection).await.unwrap();
        for (table, matches) in tables {
            let sql = AssertSqlSafe(format!("SELECT COUNT(*) FROM \"{table}\" WHERE {matches}"));
            let (count,): (i64,) =
                sqlx::query_as(sql).bind(format!("%{text}%")).fetch_one(&mut connection).await.unwrap();
            if count > 0 {
                found.push(table);
            }
        }
        let (documents,) = sqlx::query_as(DOCUMENTS).fetch_one(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        return (found, documents);
    }
    let mut connection = PgConnection::connect(url).await.unwrap();
    let tables = "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables \
        WHERE schemaname NOT IN ('pg_catalog', 'information_schema')";
    let tables: Vec<(String,)> = sqlx::query_as(tables).fetch_all(&mut connection).await.unwrap();
    for (table,) in tables {
        let sql = AssertSqlSafe(format!("SELECT COUNT(*) FROM {table} t WHERE CAST(t AS TEXT) LIKE $1"));
        let (count,): (i64,) = sqlx::query_as(sql).bind(format!("%{text}%")).fetch_one(&mut connection).await.unwrap();
        if count > 0 {
            found.push(table);
        }
    }
    let (documents,) = sqlx::query_as(DOCUMENTS).fetch_one(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    (found, documents)
}

/// The database of one service, removed when it is dropped.
pub struct FreshDatabase {
    pub url: String,
    drop_in: Option<(String, String)>,
}

impl Drop for FreshDatabase {
    fn drop(&mut self) {
        let Some((cluster, name)) = self.drop_in.take() else { return };
        // Drop is not async: a thread with a small runtime does it, and a cluster that is gone is fine.
        let remove = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                if let Ok(mut connection) = PgConnection::connect(&cluster).await {
                    let sql = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
                    let _ = sqlx::query(AssertSqlSafe(sql)).execute(&mut connection).await;
                }
            });
        };
        let _ = std::thread::spawn(remove).join();
    }
}

/// A Postgres cluster of one test's own, which it may crash and start again.
pub struct PostgresCluster {
    folder: PathBuf,
    pub url: String,
}

impl PostgresCluster {
    pub fn start() -> Self {
        let folder = crate::temporary("pg");
        let url = Self::script("start", &folder);
        Self { folder, url }
    }

    /// Crashes the server and starts it again on the same port.
    pub fn restart(&self) {
        Self::script("restart", &self.folder);
    }

    /// Crashes the server; [`PostgresCluster::restart`] starts it again.
    pub fn kill(&self) {
        Self::script("kill", &self.folder);
    }

    /// Lets those who connect and those who are connected write, or nobody.
    pub async fn takes_writes(&self, does_it: bool) {
        let options: PgConnectOptions = self.url.parse().unwrap();
        let options = options.username("admin").options([("default_transaction_read_only", "off")]);
        let mut admin = PgConnection::connect_with(&options).await.unwrap();
        let sql = match does_it {
            true => "ALTER SYSTEM RESET default_transaction_read_only",
            false => "ALTER SYSTEM SET default_transaction_read_only = on",
        };
        sqlx::query(sql).execute(&mut admin).await.unwrap();
        sqlx::query("SELECT pg_reload_conf()").execute(&mut admin).await.unwrap();
        admin.close().await.unwrap();
    }

    fn script(action: &str, folder: &Path) -> String {
        let program = crate::checkout().join("tests/support/postgres.sh");
        let output = Command::new(program).arg(action).arg(folder).output().unwrap();
        assert!(output.status.success(), "{action}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

impl Drop for PostgresCluster {
    fn drop(&mut self) {
        Self::script("stop", &self.folder);
    }
}
