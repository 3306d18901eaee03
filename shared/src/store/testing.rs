//! Fresh databases for tests: a SQLite file each time, and a Postgres database when `WEIR_TEST_POSTGRES_URL` names a
//! server.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::config::DatabaseUrl;
use crate::domain::job::JobKind;
use crate::domain::scrape::ScrapeOptions;
use crate::ids::{JobId, PageId, TeamId};
use crate::time::Timestamp;

use super::{Db, PoolUse, jobs, migrate, pages, teams};

/// A fresh, migrated database of each kind there is.
pub async fn databases() -> Vec<Db> {
    let path = std::env::temp_dir().join(format!("weir-test-{}/weir.db", uuid::Uuid::now_v7()));
    let mut all = vec![open(&DatabaseUrl::Sqlite(path)).await];
    match std::env::var("WEIR_TEST_POSTGRES_URL") {
        Ok(server) => all.push(open(&DatabaseUrl::Postgres(fresh_postgres(&server).await)).await),
        Err(_) => eprintln!("skipped on Postgres: WEIR_TEST_POSTGRES_URL is not set"),
    }
    all
}

/// Makes an empty database on the server; returns its address.
pub async fn fresh_postgres(server: &str) -> String {
    let admin = sqlx::PgPool::connect(server).await.unwrap();
    let name = format!("weir_{}", uuid::Uuid::now_v7().simple());
    sqlx::query(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&admin).await.unwrap();
    admin.close().await;
    let mut url = url::Url::parse(server).unwrap();
    url.set_path(&name);
    url.to_string()
}

async fn open(url: &DatabaseUrl) -> Db {
    let db = Db::connect(url, 4, PoolUse::Rows).await.unwrap();
    migrate(&db).await.unwrap();
    db
}

/// A team with nothing set.
pub async fn team(db: &Db, name: &str) -> TeamId {
    let mut tx = db.begin().await.unwrap();
    let id = teams::insert(&mut tx, name, Timestamp::now()).await.unwrap();
    tx.commit().await.unwrap();
    id
}

/// A job with `count` pages, all queued.
pub async fn job(db: &Db, team: TeamId, kind: JobKind, count: usize, max: Option<i64>) -> (JobId, Vec<PageId>) {
    let now = Timestamp::now();
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
    let ids = pages::insert_many(&mut tx, id, team, 0, &urls, now).await.unwrap();
    tx.commit().await.unwrap();
    (id, ids)
}
