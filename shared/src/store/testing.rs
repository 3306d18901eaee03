//! Fresh databases for tests: a SQLite file each time, and a Postgres database when `WEIR_TEST_POSTGRES_URL` names a
//! server.

#![allow(clippy::unwrap_used, reason = "tests")]

mod postgres_template;
mod sqlite_template;

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::clock;
use crate::config::DatabaseUrl;
use crate::domain::job::JobKind;
use crate::domain::scrape::ScrapeOptions;
use crate::ids::{JobId, PageId, TeamId};
use crate::on_pool;
use crate::random;
use crate::store::accounts::teams;
use crate::store::work::jobs;
use crate::store::work::page::rows;
use crate::store::{Db, PoolUse, migrate};

/// A fresh, migrated database of each kind there is.
pub async fn databases() -> Vec<Db> {
    let path = std::env::temp_dir().join(format!("weir-test-{}/weir.db", random::id()));
    sqlite_template::create(&path, async |draft| open(&DatabaseUrl::Sqlite(draft)).await.close().await).await;
    let mut all = vec![open(&DatabaseUrl::Sqlite(path)).await];
    match std::env::var("WEIR_TEST_POSTGRES_URL") {
        Ok(server) => all.push(open(&DatabaseUrl::Postgres(fresh_postgres(&server).await)).await),
        Err(_) => eprintln!("skipped on Postgres: WEIR_TEST_POSTGRES_URL is not set"),
    }
    all
}

/// Makes a migrated database on the server; returns its address.
pub async fn fresh_postgres(server: &str) -> String {
    let migrated = async |url: String| open(&DatabaseUrl::Postgres(url)).await.close().await;
    postgres_template::create(server, &format!("weir_{}", random::id().simple()), migrated).await
}

async fn open(url: &DatabaseUrl) -> Db {
    let db = Db::connect(url, 4, PoolUse::Rows).await.unwrap();
    migrate(&db).await.unwrap();
    db
}

/// A server that answers each start of a connection with this error.
pub async fn refusing(code: &'static str) -> DatabaseUrl {
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

/// A team with nothing set.
pub async fn team(db: &Db, name: &str) -> TeamId {
    let mut tx = db.begin().await.unwrap();
    let id = teams::insert(&mut tx, name, db.now()).await.unwrap();
    tx.commit().await.unwrap();
    id
}

/// A job with `count` pages, all queued.
pub async fn job(db: &Db, team: TeamId, kind: JobKind, count: usize, max: Option<i64>) -> (JobId, Vec<PageId>) {
    let now = db.now();
    let id = JobId::new();
    let options = ScrapeOptions::default();
    let mut tx = db.begin().await.unwrap();
    let new = jobs::NewJob {
        id,
        team,
        key: None,
        kind,
        options: &options,
        target: "http://site.test/",
        origin: None,
        max_concurrency: max,
        webhook: None,
        total: count as i64,
        created_at: now,
        expires_at: now.plus_ms(86_400_000),
    };
    jobs::insert(&mut tx, &new).await.unwrap();
    let urls: Vec<String> = (0..count).map(|n| format!("http://site.test/{n}")).collect();
    let ids = rows::insert_many(&mut tx, id, team, 0, &urls, now).await.unwrap();
    tx.commit().await.unwrap();
    (id, ids)
}

/// A way to a server over TCP that can fall silent, as a proxy or a machine does that hangs: what is open stays open, and
/// the kernel acknowledges what is sent, but nothing passes any more. New connections pass.
pub struct Line {
    /// The server's address by this way.
    pub url: String,
    frozen: tokio::sync::watch::Sender<u64>,
    task: tokio::task::JoinHandle<()>,
}

impl Line {
    pub async fn to(server: &str) -> Self {
        let mut url = url::Url::parse(server).unwrap();
        let target = (url.host_str().unwrap().to_owned(), url.port().unwrap_or(5432));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        url.set_port(Some(listener.local_addr().unwrap().port())).unwrap();
        let frozen = tokio::sync::watch::Sender::new(0);
        let sender = frozen.clone();
        let task = tokio::spawn(async move {
            loop {
                let (mut near, _) = listener.accept().await.unwrap();
                let mut far = tokio::net::TcpStream::connect(target.clone()).await.unwrap();
                let mut frozen = sender.subscribe();
                tokio::spawn(async move {
                    let is_frozen = tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => false,
                        _ = frozen.changed() => true,
                    };
                    if is_frozen {
                        std::future::pending::<()>().await;
                    }
                    drop((near, far));
                });
            }
        });
        Self { url: url.to_string(), frozen, task }
    }

    /// From now on nothing passes on the connections that are open.
    pub fn freeze(&self) {
        self.frozen.send_modify(|times| *times += 1);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Waits until somebody waits for a lock of Postgres.
pub async fn wait_for_a_lock(db: &Db) {
    let end = clock::deadline(Duration::from_secs(60));
    let sql = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    loop {
        let waiting: (i64,) = on_pool!(db, |pool| sqlx::query_as(sql).fetch_one(pool).await.unwrap());
        if waiting.0 > 0 {
            return;
        }
        assert!(clock::instant() < end, "nobody waits");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
