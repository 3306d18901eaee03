//! Connections, migrations and the shape of what they lead to, on both databases.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use super::{kept, lines, migrations};
use crate::clock::{self, Stopwatch};
use crate::random;
use crate::store::testing::{databases, team};
use crate::store::{Db, PoolUse, PostgresDb, SqliteDb, migrate, testing};
use crate::{on_db, on_pool};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn the_files_of_a_database_are_its_users_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = std::env::temp_dir().join(format!("weir-files-{}", random::id()));
    let url = crate::config::DatabaseUrl::Sqlite(folder.join("weir.db"));
    let files = || std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let all_shut = || files().iter().all(|file| mode(file) == 0o600);
    let connect = async || {
        let db = Db::connect(&url, 2, crate::store::PoolUse::Rows).await.unwrap();
        crate::store::migrate(&db).await.unwrap();
        team(&db, &random::id().to_string()).await;
        db
    };
    let first = connect().await;
    assert_eq!((mode(&folder), all_shut()), (0o700, true), "{:?}", files());
    assert!(files().iter().any(|file| file.ends_with("weir.db-wal")), "the log is among them: {:?}", files());
    // As an earlier release has left them.
    let open = |path: &std::path::Path| std::fs::set_permissions(path, PermissionsExt::from_mode(0o644)).unwrap();
    files().iter().for_each(|file| open(file));
    let second = connect().await;
    assert!(all_shut(), "{:?}", files());
    first.close().await;
    second.close().await;
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn heartbeats_do_not_fold_the_log_into_the_file() {
    for db in databases().await {
        let Db::Sqlite(sqlite) = &db else { continue };
        let url = crate::config::DatabaseUrl::Sqlite(sqlite.pool.connect_options().get_filename().to_owned());
        let beats = Db::connect(&url, 1, PoolUse::Heartbeats).await.unwrap();
        for (db, pages) in [(&db, 4_000), (&beats, 0)] {
            let Db::Sqlite(sqlite) = db else { continue };
            let mut tx = sqlite.begin().await.unwrap();
            let found: (i64,) = sqlx::query_as("PRAGMA wal_autocheckpoint").fetch_one(&mut *tx).await.unwrap();
            assert_eq!(found.0, pages);
        }
    }
}

#[tokio::test]
async fn a_process_that_freezes_in_a_transaction_lets_go_of_its_rows() {
    for db in databases().await {
        // On SQLite the lock is the kernel's, which keeps it for a process that stands still and frees it when that ends.
        let Db::Postgres(PostgresDb { pool, .. }) = &db else { continue };
        let team = team(&db, "frozen").await;
        let lock = || sqlx::query("SELECT id FROM team WHERE id = $1 FOR UPDATE").bind(team);
        let mut frozen = pool.begin().await.unwrap();
        lock().execute(&mut *frozen).await.unwrap();
        let waited = tokio::time::timeout(Duration::from_secs(60), lock().execute(pool)).await;
        waited.expect("the row is free in time").unwrap();
        assert!(frozen.commit().await.is_err(), "what it wrote is not kept");
    }
}

#[tokio::test]
async fn both_databases_have_the_same_tables_and_columns() {
    let mut shapes = Vec::new();
    for db in databases().await {
        let shape: Vec<(String, String)> = match &db {
            Db::Sqlite(SqliteDb { pool, .. }) => sqlx::query_as(
                "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' \
                 AND m.name NOT LIKE 'sqlite_%' AND m.name NOT IN ('Jobs', 'Workers', '_sqlx_migrations', \
                 '_service_migrations') ORDER BY 1, 2",
            )
            .fetch_all(pool)
            .await
            .unwrap(),
            Db::Postgres(PostgresDb { pool, .. }) => sqlx::query_as(
                "SELECT table_name::text, column_name::text FROM information_schema.columns \
                 WHERE table_schema = 'public' AND table_name <> '_service_migrations' ORDER BY 1, 2",
            )
            .fetch_all(pool)
            .await
            .unwrap(),
        };
        shapes.push(shape);
    }
    assert!(shapes.windows(2).all(|pair| pair[0] == pair[1]));
    assert!(shapes[0].len() > 50);
}

/// The columns and the condition of an index, by whichever database it is written down.
fn index_parts(definition: &str) -> String {
    let parts = definition.split_once('(').unwrap().1.to_lowercase();
    let parts = parts.replace("::text", "").replace("::bigint", "").replace("= any (array[", "in");
    parts.chars().filter(|c| !c.is_whitespace() && !"()[]\"".contains(*c)).collect()
}

/// Plans are held to their indexes on SQLite, where they do not depend on what is in the tables; the same indexes are
/// what Postgres has to choose from.
#[tokio::test]
async fn both_databases_have_the_same_indexes() {
    let mut all = Vec::new();
    for db in databases().await {
        let indexes: Vec<(String, String, String)> = match &db {
            Db::Sqlite(SqliteDb { pool, .. }) => sqlx::query_as(
                "SELECT tbl_name, name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL \
                 AND tbl_name NOT IN ('Jobs', 'Workers') ORDER BY 1, 2",
            )
            .fetch_all(pool)
            .await
            .unwrap(),
            Db::Postgres(PostgresDb { pool, .. }) => sqlx::query_as(
                "SELECT tablename::text, indexname::text, indexdef FROM pg_indexes WHERE schemaname = 'public' \
                 AND indexname NOT IN (SELECT conname FROM pg_constraint) ORDER BY 1, 2",
            )
            .fetch_all(pool)
            .await
            .unwrap(),
        };
        let indexes = indexes.into_iter().map(|(table, name, text)| (table, name, index_parts(&text)));
        all.push(indexes.collect::<std::collections::BTreeSet<_>>());
    }
    assert!(all[0].len() > 30, "{:?}", all[0]);
    for pair in all.windows(2) {
        let differ: Vec<_> = pair[0].symmetric_difference(&pair[1]).collect();
        assert!(differ.is_empty(), "{differ:#?}");
    }
}

/// A database behind a way that can fall silent.
async fn behind_a_line(connections: u32) -> Option<(testing::Line, Db)> {
    let Ok(server) = std::env::var("WEIR_TEST_POSTGRES_URL") else {
        eprintln!("skipped: WEIR_TEST_POSTGRES_URL is not set");
        return None;
    };
    let line = testing::Line::to(&testing::fresh_postgres(&server).await).await;
    let db =
        Db::connect(&crate::config::DatabaseUrl::Postgres(line.url.clone()), connections, PoolUse::Rows).await.unwrap();
    Some((line, db))
}

#[tokio::test]
async fn a_rested_connection_that_fell_silent_is_not_waited_for() {
    let Some((line, db)) = behind_a_line(1).await else { return };
    let Db::Postgres(PostgresDb { pool, .. }) = &db else { unreachable!("it is Postgres's") };
    db.ping().await.unwrap();
    while pool.num_idle() == 0 {
        tokio::task::yield_now().await;
    }
    line.freeze();
    // One that was used just now is not tried before it is used again.
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    let began = Stopwatch::start();
    db.ping().await.unwrap();
    assert!(began.elapsed() < std::time::Duration::from_secs(9), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_connection_that_is_kept_is_used_again_and_given_up_when_it_falls_silent() {
    let Some((line, db)) = behind_a_line(3).await else { return };
    let Db::Postgres(PostgresDb { pool, kept, .. }) = &db else { unreachable!("it is Postgres's") };
    let who = async |lent: &mut kept::Lent| {
        sqlx::query_scalar::<_, i32>("SELECT pg_backend_pid()").fetch_one(&mut **lent).await.unwrap()
    };
    let mut first = kept.take(pool).await.unwrap();
    let mut second = kept.take(pool).await.unwrap();
    let (one, other) = (who(&mut first).await, who(&mut second).await);
    assert_ne!(one, other);
    kept.keep(pool, second);
    kept.keep(pool, first);
    let mut again = kept.take(pool).await.unwrap();
    assert_eq!(who(&mut again).await, one);
    // The other one went back.
    while pool.num_idle() == 0 {
        tokio::task::yield_now().await;
    }
    kept.keep(pool, again);
    line.freeze();
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    let began = Stopwatch::start();
    let mut fresh = kept.take(pool).await.unwrap();
    assert!(![one, other].contains(&who(&mut fresh).await));
    assert!(began.elapsed() < std::time::Duration::from_secs(9), "{:?}", began.elapsed());
    kept.keep(pool, fresh);
    // Nothing is missing in the pool: all but the one that is kept can be had at once.
    let most = pool.options().get_max_connections();
    let mut all = Vec::new();
    for _ in 1..most {
        all.push(pool.acquire().await.unwrap());
    }
    assert!(pool.try_acquire().is_none());
    drop(all);
    db.close().await;
    assert_eq!(pool.size(), 0);
    // After the end there is none to be had.
    assert!(kept.take(pool).await.is_err());
}

#[tokio::test]
async fn of_a_larger_pool_those_that_were_used_last_are_kept_and_fall_silent_together() {
    let Some((line, db)) = behind_a_line(8).await else { return };
    let Db::Postgres(PostgresDb { pool, kept, .. }) = &db else { unreachable!("it is Postgres's") };
    let who = async |lent: &mut kept::Lent| {
        sqlx::query_scalar::<_, i32>("SELECT pg_backend_pid()").fetch_one(&mut **lent).await.unwrap()
    };
    let (mut all, mut pids) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let mut lent = kept.take(pool).await.unwrap();
        pids.push(who(&mut lent).await);
        all.push(lent);
    }
    for lent in all {
        kept.keep(pool, lent);
    }
    // Two of eight stay: the first went back when the third came.
    let (mut third, mut second) = (kept.take(pool).await.unwrap(), kept.take(pool).await.unwrap());
    assert_eq!([who(&mut second).await, who(&mut third).await], pids[1..]);
    kept.keep(pool, second);
    kept.keep(pool, third);
    // The first has been asked by the pool whether it answers: in the middle of that the silence would take it away.
    while pool.num_idle() == 0 {
        tokio::task::yield_now().await;
    }
    line.freeze();
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    // One that does not answer is found out once, and the other goes with it.
    let began = Stopwatch::start();
    let (mut fresh, mut other) = (kept.take(pool).await.unwrap(), kept.take(pool).await.unwrap());
    assert!(![who(&mut fresh).await, who(&mut other).await].iter().any(|pid| pids.contains(pid)));
    assert!(began.elapsed() < std::time::Duration::from_secs(9), "{:?}", began.elapsed());
    kept.keep(pool, fresh);
    kept.keep(pool, other);
    // Nothing is missing in the pool: all but those that are kept can be had at once.
    let mut rest = Vec::new();
    for _ in 2..pool.options().get_max_connections() {
        rest.push(pool.acquire().await.unwrap());
    }
    assert!(pool.try_acquire().is_none());
    drop(rest);
    // What is still in use when the pool is closed is not kept.
    let last = kept.take(pool).await.unwrap();
    let used = async {
        while !pool.is_closed() {
            tokio::task::yield_now().await;
        }
        kept.keep(pool, last);
    };
    tokio::join!(db.close(), used);
    assert_eq!(pool.size(), 0);
}

/// Takes as long as a statement may, so only with the long tests.
#[tokio::test]
async fn a_statement_that_nobody_answers_ends() {
    if std::env::var("WEIR_TEST_LONG").is_err() {
        return;
    }
    let Some((line, db)) = behind_a_line(1).await else { return };
    let Db::Postgres(PostgresDb { pool, .. }) = &db else { unreachable!("it is Postgres's") };
    lines::watch(pool);
    let mut tx = db.begin().await.unwrap();
    line.freeze();
    let began = Stopwatch::start();
    let asked = on_db!(&mut tx, |conn| sqlx::query("SELECT 1").execute(conn).await.map(|done| done.rows_affected()));
    assert!(asked.is_err());
    assert!(began.elapsed() < std::time::Duration::from_secs(15), "{:?}", began.elapsed());
    drop(tx);
    db.ping().await.unwrap();
    assert!(began.elapsed() < std::time::Duration::from_secs(18), "{:?}", began.elapsed());
    // The server keeps to the bound by itself.
    let slow = sqlx::query("SELECT pg_sleep(60)").execute(pool).await.unwrap_err();
    assert!(slow.as_database_error().is_some(), "{slow}");
}

/// So a start waits for nobody, and a role that may not make tables can be used.
#[tokio::test]
async fn a_database_that_misses_nothing_is_not_touched() {
    let Ok(server) = std::env::var("WEIR_TEST_POSTGRES_URL") else {
        eprintln!("skipped: WEIR_TEST_POSTGRES_URL is not set");
        return;
    };
    let url = crate::config::DatabaseUrl::Postgres(testing::fresh_postgres(&server).await);
    let db = Db::connect(&url, 2, PoolUse::Rows).await.unwrap();
    migrate(&db).await.unwrap();
    let Db::Postgres(PostgresDb { pool, .. }) = &db else { unreachable!("it is Postgres's") };
    let database = pool.connect_options().get_database().unwrap().to_owned();
    // Its owner, too, may not make a schema then, not even one that is there.
    let revoke = format!("REVOKE CREATE ON DATABASE \"{database}\" FROM CURRENT_USER");
    sqlx::query(sqlx::AssertSqlSafe(revoke)).execute(pool).await.unwrap();
    assert!(sqlx::query("CREATE SCHEMA IF NOT EXISTS apalis").execute(pool).await.is_err());
    migrate(&db).await.unwrap();
}

/// As a process of the release before does during an upgrade, or one that opens a new file in the same moment.
#[tokio::test]
async fn a_migration_waits_for_who_writes() {
    let db = testing::databases().await.into_iter().next().unwrap();
    let Db::Sqlite(sqlite) = &db else { unreachable!("it is SQLite's") };
    let url = crate::config::DatabaseUrl::Sqlite(sqlite.pool.connect_options().get_filename().to_owned());
    let other = Db::connect(&url, 1, PoolUse::Rows).await.unwrap();
    // One that reads before it writes: none of the indexes that it drops is there.
    sqlx::query("DELETE FROM _service_migrations WHERE version = 13").execute(&sqlite.pool).await.unwrap();
    let mut lock = other.begin().await.unwrap();
    on_db!(&mut lock, |conn| sqlx::query("UPDATE team SET name = name").execute(conn).await.map(|_| ())).unwrap();
    let third = Db::connect(&url, 1, PoolUse::Rows).await.unwrap();
    let release = async {
        assert!(migrations::is_under_way(&third).await.unwrap(), "a worker goes on waiting for its tables");
        lock.commit().await.unwrap();
    };
    let (migrated, ()) = tokio::join!(migrate(&db), release);
    migrated.unwrap();
    assert!(migrations::shape(&db).await.unwrap().missing.is_empty());
    assert!(!migrations::is_under_way(&third).await.unwrap());
}

/// Makes a database as if the newest migration were still to come, which changes `job` first and `page` then.
const BEFORE_NEWEST: &str = "DELETE FROM _service_migrations WHERE version = 47; ALTER TABLE page ADD CONSTRAINT \
                             page_state_check CHECK (TRUE); ALTER TABLE job ADD CONSTRAINT job_kind_check CHECK (TRUE), \
                             ADD CONSTRAINT job_status_check CHECK (TRUE)";

/// Processes of the release before go on working during an upgrade, and take pages before jobs.
#[tokio::test]
async fn a_migration_that_a_running_process_waits_for_is_begun_once_more() {
    let Ok(server) = std::env::var("WEIR_TEST_POSTGRES_URL") else {
        eprintln!("skipped: WEIR_TEST_POSTGRES_URL is not set");
        return;
    };
    let url = crate::config::DatabaseUrl::Postgres(testing::fresh_postgres(&server).await);
    let (db, other) = (Db::connect(&url, 2, PoolUse::Rows).await.unwrap(), Db::connect(&url, 2, PoolUse::Rows));
    migrate(&db).await.unwrap();
    let Db::Postgres(PostgresDb { pool: other, .. }) = other.await.unwrap() else { unreachable!("it is Postgres's") };
    // Of two that wait for each other the migration gives way, before Postgres breaks off the one that finds it out, unless
    // this machine has the other one come late; then it is no round.
    let mut has_waited = false;
    for _ in 0..10 {
        sqlx::raw_sql(BEFORE_NEWEST).execute(&other).await.unwrap();
        let mut running = other.begin().await.unwrap();
        sqlx::query("LOCK TABLE page IN ROW EXCLUSIVE MODE").execute(&mut *running).await.unwrap();
        let running = async {
            // The migration has `job` and waits for `page`.
            let waits = "SELECT COUNT(*) FROM pg_locks WHERE relation = 'page'::regclass AND NOT granted";
            while sqlx::query_scalar::<_, i64>(waits).fetch_one(&other).await.unwrap() == 0 {
                tokio::task::yield_now().await;
            }
            match sqlx::query("LOCK TABLE job IN ROW EXCLUSIVE MODE").execute(&mut *running).await {
                Ok(_) => running.commit().await.map(|()| true),
                Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("40P01") => {
                    running.rollback().await.map(|()| false)
                }
                Err(error) => Err(error),
            }
        };
        let (migrated, waited) = tokio::join!(migrate(&db), running);
        migrated.unwrap();
        assert!(migrations::shape(&db).await.unwrap().missing.is_empty());
        has_waited = waited.unwrap();
        if has_waited {
            break;
        }
    }
    assert!(has_waited, "Postgres has broken off the running process ten times");
}

/// As beside a backup, which reads every table in one transaction.
#[tokio::test]
async fn a_migration_lets_others_through_while_somebody_reads_and_ends_with_the_stop() {
    let Ok(server) = std::env::var("WEIR_TEST_POSTGRES_URL") else {
        eprintln!("skipped: WEIR_TEST_POSTGRES_URL is not set");
        return;
    };
    let url = crate::config::DatabaseUrl::Postgres(testing::fresh_postgres(&server).await);
    let (db, other) = (Db::connect(&url, 3, PoolUse::Rows).await.unwrap(), Db::connect(&url, 1, PoolUse::Commands));
    let Db::Postgres(PostgresDb { pool: other, .. }) = other.await.unwrap() else { unreachable!("it is Postgres's") };
    sqlx::raw_sql(BEFORE_NEWEST).execute(&other).await.unwrap();
    let mut reader = other.begin_with("BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0").await.unwrap();
    sqlx::query("LOCK TABLE page IN ACCESS SHARE MODE").execute(&mut *reader).await.unwrap();
    let stop = CancellationToken::new();
    let stopping = async {
        testing::wait_for_a_lock(&db).await;
        // A worker that misses its tables looks for that, and goes on waiting.
        while !migrations::is_under_way(&db).await.unwrap() {
            tokio::task::yield_now().await;
        }
        // What a scrape does stands behind the migration, which gives way.
        for statement in ["SELECT COUNT(*) FROM page", "UPDATE page SET state = state", "UPDATE job SET kind = kind"] {
            let through = on_pool!(&db, |pool| sqlx::query(statement).execute(pool).await.map(|_| ()));
            through.unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
        // The next time it is told to end while it stands in line.
        testing::wait_for_a_lock(&db).await;
        stop.cancel();
        clock::instant()
    };
    let (migrated, stopped_at) = tokio::join!(migrations::migrate_patiently(&db, &stop), stopping);
    assert!(migrated.unwrap().is_none() && stopped_at.elapsed() < Duration::from_secs(10));
    let ours = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND \
                application_name = 'weir migration'";
    let end = clock::deadline(Duration::from_secs(10));
    while on_pool!(&db, |pool| sqlx::query_scalar::<_, i64>(ours).fetch_one(pool).await.unwrap()) > 0 {
        assert!(clock::instant() < end, "nobody of ours is left in line");
        tokio::task::yield_now().await;
    }
    assert!(!migrations::is_under_way(&db).await.unwrap());
    assert_eq!(migrations::shape(&db).await.unwrap().missing, ["0047_words"], "nothing of it was applied");
    reader.rollback().await.unwrap();
    migrate(&db).await.unwrap();
    assert!(migrations::shape(&db).await.unwrap().missing.is_empty());
}

#[tokio::test]
async fn a_migration_waits_for_a_disk_that_is_full() {
    let folder = std::env::temp_dir().join(format!("weir-full-{}", random::id()));
    let url = crate::config::DatabaseUrl::Sqlite(folder.join("weir.db"));
    let db = Db::connect(&url, 1, PoolUse::Rows).await.unwrap();
    let Db::Sqlite(sqlite) = &db else { unreachable!("it is SQLite's") };
    // To this connection the disk is full; after an error the next one is taken.
    let mut turn = sqlite.writer.turn().await.unwrap();
    sqlx::query("PRAGMA max_page_count = 1").execute(&mut *turn).await.unwrap();
    turn.end();
    migrate(&db).await.unwrap();
    assert!(migrations::shape(&db).await.unwrap().missing.is_empty());
    db.close().await;
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Under `serializable` writers of one team's rows break each other off, and callers are told that the database is away.
#[tokio::test]
async fn a_database_with_another_default_isolation_is_used_with_ours() {
    let Ok(server) = std::env::var("WEIR_TEST_POSTGRES_URL") else {
        eprintln!("skipped: WEIR_TEST_POSTGRES_URL is not set");
        return;
    };
    let text = testing::fresh_postgres(&server).await;
    let options: sqlx::postgres::PgConnectOptions = text.parse().unwrap();
    let name = options.get_database().unwrap().to_owned();
    let url = crate::config::DatabaseUrl::Postgres(text);
    let Db::Postgres(PostgresDb { pool: owner, .. }) = Db::connect(&url, 1, PoolUse::Rows).await.unwrap() else {
        unreachable!("it is Postgres's")
    };
    let sql = format!("ALTER DATABASE \"{name}\" SET default_transaction_isolation = 'serializable'");
    sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&owner).await.unwrap();
    for usage in [PoolUse::Rows, PoolUse::Wakeups, PoolUse::Heartbeats, PoolUse::Ends, PoolUse::Commands] {
        let Db::Postgres(PostgresDb { pool, .. }) = Db::connect(&url, 1, usage).await.unwrap() else {
            unreachable!("it is Postgres's")
        };
        let isolation: String = sqlx::query_scalar("SHOW transaction_isolation").fetch_one(&pool).await.unwrap();
        assert_eq!(isolation, "read committed", "{usage:?}");
    }
}

/// Takes longer than a statement may, so only with the long tests.
#[tokio::test]
async fn a_migration_may_wait_longer_than_a_statement_may_take() {
    let Ok(server) = std::env::var("WEIR_TEST_POSTGRES_URL") else {
        eprintln!("skipped: WEIR_TEST_POSTGRES_URL is not set");
        return;
    };
    if std::env::var("WEIR_TEST_LONG").is_err() {
        return;
    }
    let url = crate::config::DatabaseUrl::Postgres(testing::fresh_postgres(&server).await);
    let (db, other) = (Db::connect(&url, 2, PoolUse::Rows).await.unwrap(), Db::connect(&url, 1, PoolUse::Commands));
    migrate(&db).await.unwrap();
    let Db::Postgres(PostgresDb { pool: other, .. }) = other.await.unwrap() else { unreachable!("it is Postgres's") };
    sqlx::raw_sql(BEFORE_NEWEST).execute(&other).await.unwrap();
    let mut lock = other.begin_with("BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0").await.unwrap();
    sqlx::query("LOCK TABLE job").execute(&mut *lock).await.unwrap();
    let (began, again) = (clock::instant(), migrate(&db));
    let release = async {
        // A command's statement may take as long.
        sqlx::query("SELECT pg_sleep(13)").execute(&mut *lock).await.unwrap();
        lock.commit().await.unwrap();
    };
    let (migrated, ()) = tokio::join!(again, release);
    migrated.unwrap();
    assert!(began.elapsed() >= std::time::Duration::from_secs(13));
}
