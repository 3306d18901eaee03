//! What this crate's own tests share: fresh, migrated databases, and a page as it is claimed.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../../shared/src/store/testing/postgres_template.rs"]
mod postgres_template;
#[path = "../../shared/src/store/testing/sqlite_template.rs"]
mod sqlite_template;

use weir_shared::config::DatabaseUrl;
use weir_shared::ids::{JobId, PageId, TeamId};
use weir_shared::random;
use weir_shared::store::work::page::rows::Claimed;
use weir_shared::store::{self, Db, PoolUse};
use weir_shared::time::Timestamp;

/// A file of its own.
pub async fn sqlite() -> DatabaseUrl {
    let path = std::env::temp_dir().join(format!("weir-worker-{}/weir.db", random::id()));
    sqlite_template::create(&path, async |draft| drop(migrated(DatabaseUrl::Sqlite(draft)).await)).await;
    DatabaseUrl::Sqlite(path)
}

/// A database of its own on the Postgres server under test, if there is one.
pub async fn postgres() -> Option<DatabaseUrl> {
    let Ok(server) = std::env::var("WEIR_TEST_POSTGRES_URL") else {
        eprintln!("skipped on Postgres: WEIR_TEST_POSTGRES_URL is not set");
        return None;
    };
    let migrate = async |url| drop(migrated(DatabaseUrl::Postgres(url)).await);
    let name = format!("weir_{}", random::id().simple());
    Some(DatabaseUrl::Postgres(postgres_template::create(&server, &name, migrate).await))
}

async fn migrated(url: DatabaseUrl) -> DatabaseUrl {
    let db = Db::connect(&url, 1, PoolUse::Rows).await.unwrap();
    store::migrate(&db).await.unwrap();
    db.close().await;
    url
}

/// A page at its first claim, of a job and a team of its own.
pub fn claimed_page() -> Claimed {
    Claimed {
        id: PageId::new(),
        job_id: JobId::new(),
        team_id: TeamId::new(),
        idx: 0,
        url: String::new(),
        depth: 0,
        epoch: 1,
        claims: 1,
        tries: 0,
        queued_at: Timestamp(1_000),
        started_at: Timestamp(1_000),
        owner: None,
        limited: false,
        may_rest: false,
        dispatched: false,
    }
}
