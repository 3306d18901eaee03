//! Zero data retention (spec 4.7): what a request brought leaves the rows when it has been delivered.
//!
//! A direct scrape is delivered with its answer: its content and addresses are taken out of the rows at once, and what is
//! left of them (ids, counts, the bill) goes ten minutes later. What is read later, as batches and crawls are, goes ten
//! minutes after its end.

use std::time::Duration;

use sqlx::{Connection as _, SqliteConnection};

use crate::blobs::Blobs;
use crate::ids::{JobId, TeamId};
use crate::store::accounts::team_lock;
use crate::store::{Db, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{blocking, on_db, on_pool};

/// How long rows stay after the end of their job, milliseconds.
pub const GRACE_MS: i64 = 600_000;
/// Jobs changed in one transaction.
const STEP: i64 = 500;
/// The longest that writers wait while SQLite's log is emptied, and the pause between tries.
const EMPTYING: Duration = Duration::from_millis(100);
/// Tries in a row: short reads come and go.
const EMPTYING_TRIES: u32 = 10;

/// Takes content and addresses out of the rows of a job that has ended. Locks as every writer does: team, pages, job.
pub async fn blank(tx: &mut Tx, job: JobId) -> StoreResult<()> {
    const OWNER: &str = "SELECT team_id FROM job WHERE id = $1";
    const ROWS: [&str; 6] = [
        "UPDATE page SET url = '', error = NULL WHERE job_id = $1",
        "UPDATE page_attempt SET error = '' WHERE job_id = $1",
        "DELETE FROM document WHERE job_id = $1",
        "DELETE FROM task_step WHERE job_id = $1",
        "DELETE FROM task WHERE job_id = $1",
        "UPDATE job SET options = '{\"zeroDataRetention\":true}', target = '', site = NULL WHERE id = $1",
    ];
    let owner: Option<(TeamId,)> = on_db!(tx, |conn| sqlx::query_as(OWNER).bind(job).fetch_optional(conn).await?);
    let Some((team,)) = owner else { return Ok(()) };
    team_lock::lock(tx, team).await?;
    overwrite(tx, true).await?;
    for sql in ROWS {
        on_db!(tx, |conn| sqlx::query(sql).bind(job).execute(conn).await?.rows_affected());
    }
    overwrite(tx, false).await
}

/// Whether whole pages that fall free in SQLite's file are overwritten, too; what is freed inside of pages always is.
/// Postgres leaves that to its vacuum.
pub(in crate::store) async fn overwrite(tx: &mut Tx, on: bool) -> StoreResult<()> {
    if let Tx::Sqlite(tx) = tx {
        let sql = if on { "PRAGMA secure_delete = ON" } else { "PRAGMA secure_delete = FAST" };
        sqlx::query(sql).execute(&mut **tx).await?;
    }
    Ok(())
}

/// The same in a transaction of its own, blobs included.
pub async fn forget(db: &Db, blobs: &Blobs, job: JobId) -> StoreResult<()> {
    let mut tx = db.begin().await?;
    blank(&mut tx, job).await?;
    tx.commit().await?;
    let blobs = blobs.clone();
    let _ = blocking::run(move || blobs.remove_job(job)).await;
    Ok(())
}

/// Some of the jobs that keep nothing and have ended become due [`GRACE_MS`] later, where they would be kept longer.
/// Returns whether there may be more.
pub async fn shorten(tx: &mut Tx) -> StoreResult<bool> {
    // The time is a part of the index that finds them.
    const SQL: &str = "UPDATE job SET expires_at = finished_at + 600000 WHERE id IN (SELECT id FROM job \
        WHERE zero_retention AND finished_at IS NOT NULL AND expires_at > finished_at + 600000 LIMIT $1)";
    const { assert!(GRACE_MS == 600_000) };
    let moved = on_db!(tx, |conn| sqlx::query(SQL).bind(STEP).execute(conn).await?.rows_affected());
    Ok(moved == STEP.unsigned_abs())
}

/// Whether there are jobs that keep nothing.
pub async fn any(db: &Db) -> StoreResult<bool> {
    const SQL: &str = "SELECT COUNT(*) FROM (SELECT id FROM job WHERE zero_retention LIMIT 1) AS found";
    let found: (i64,) = on_pool!(db, |pool| sqlx::query_as(SQL).fetch_one(pool).await?);
    Ok(found.0 > 0)
}

/// Empties SQLite's log, which still holds what was written before. `false`: somebody reads of it, and it is to be tried
/// again.
///
/// Nobody stands behind a reader for it: folded into the file is what no reader needs, beside whoever writes, and only a
/// log of which nothing is left is emptied, for which writers wait a tenth of a second at most.
pub async fn empty_log(db: &Db) -> StoreResult<bool> {
    type Folded = (i64, i64, i64);
    let Db::Sqlite(db) = db else { return Ok(true) };
    // Not the connection that all writers of this process share.
    let options = (*db.pool.connect_options()).clone().busy_timeout(EMPTYING);
    let mut connection = SqliteConnection::connect_with(&options).await?;
    let mut is_empty = false;
    for _ in 0..EMPTYING_TRIES {
        let (_, pages, folded): Folded =
            sqlx::query_as("PRAGMA wal_checkpoint(PASSIVE)").fetch_one(&mut connection).await?;
        if pages == folded {
            let (is_busy, ..): Folded =
                sqlx::query_as("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(&mut connection).await?;
            is_empty = is_busy == 0;
        }
        if is_empty {
            break;
        }
        tokio::time::sleep(EMPTYING).await;
    }
    connection.close().await?;
    Ok(is_empty)
}

/// Whether a job keeps nothing.
pub async fn is_zero(db: &Db, job: JobId) -> StoreResult<bool> {
    const SQL: &str = "SELECT COUNT(*) FROM job WHERE id = $1 AND zero_retention";
    let found: (i64,) = on_pool!(db, |pool| sqlx::query_as(SQL).bind(job).fetch_one(pool).await?);
    Ok(found.0 > 0)
}

/// When the rows of a direct scrape go at the latest: it ends within `timeout_ms`.
pub fn expiry(now: Timestamp, timeout_ms: i64) -> Timestamp {
    now.plus_ms(timeout_ms + GRACE_MS)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::domain::job::{JobKind, JobStatus};
    use crate::domain::scrape::ScrapeOptions;
    use crate::ids::WorkerId;
    use crate::store::testing;
    use crate::store::work::page::end::{Finished, Outcome};
    use crate::store::work::page::finish::finish_many;
    use crate::store::work::page::{claim, rows};
    use crate::store::work::{documents, jobs, pages};

    #[tokio::test]
    async fn a_blanked_job_keeps_its_counts_and_nothing_it_brought() {
        for db in testing::databases().await {
            let team = testing::team(&db, "a").await;
            let root = std::env::temp_dir().join(format!("weir-blobs-{}", crate::random::id()));
            let blobs = Blobs::open(&root).unwrap();
            let options = ScrapeOptions { zero_retention: true, ..ScrapeOptions::default() };
            let (id, now) = (JobId::new(), db.now());
            let new = jobs::NewJob {
                id,
                team,
                key: None,
                kind: JobKind::Batch,
                options: &options,
                target: "http://secret.test/a",
                origin: None,
                max_concurrency: None,
                webhook: None,
                total: 1,
                created_at: now,
                expires_at: now.plus_ms(86_400_000),
            };
            let mut tx = db.begin().await.unwrap();
            jobs::insert(&mut tx, &new).await.unwrap();
            let urls = ["http://secret.test/a".to_owned()];
            let page = rows::insert_many(&mut tx, id, team, 0, &urls, now).await.unwrap()[0];
            tx.commit().await.unwrap();
            let claimed = claim::claim_one(&db, team, page, WorkerId::new(), 50, now).await.unwrap().unwrap().0;
            let mut tx = db.begin().await.unwrap();
            let text = serde_json::json!({ "markdown": "secret" });
            let document = documents::encode(&text).unwrap();
            let outcome = Outcome::Done { document, credits: 1 };
            finish_many(&mut tx, &[Finished { page: claimed, kind: Some(JobKind::Batch), key: None, outcome }], now)
                .await
                .unwrap();
            assert!(!shorten(&mut tx).await.unwrap(), "no more than this one");
            tx.commit().await.unwrap();
            assert!(any(&db).await.unwrap());
            assert!(is_zero(&db, id).await.unwrap());
            assert_eq!(jobs::load(&db, id).await.unwrap().unwrap().expires_at, now.plus_ms(GRACE_MS));

            forget(&db, &blobs, id).await.unwrap();
            empty_log(&db).await.unwrap();
            let job = jobs::load(&db, id).await.unwrap().unwrap();
            assert_eq!((job.status, job.completed, job.target.as_str()), (JobStatus::Completed, 1, ""));
            assert_eq!(pages::load(&db, page).await.unwrap().unwrap().url, "");
            assert!(documents::by_page(&db, &blobs, page).await.unwrap().is_none());
            assert!(jobs::spec(&db, id).await.unwrap().unwrap().options.zero_retention);
            let (plain, _) = testing::job(&db, team, JobKind::Batch, 1, None).await;
            assert!(!is_zero(&db, plain).await.unwrap());
        }
    }

    #[tokio::test]
    async fn a_long_reader_keeps_nobody_from_writing_while_the_log_is_emptied() {
        for db in testing::databases().await {
            let Db::Sqlite(sqlite) = &db else { continue };
            testing::team(&db, "before").await;
            // Like a backup: a read transaction that stays open.
            let mut reader = sqlite.pool.begin().await.unwrap();
            sqlx::query("SELECT COUNT(*) FROM team").execute(&mut *reader).await.unwrap();
            testing::team(&db, "after").await;
            let path = sqlite.pool.connect_options().get_filename().to_owned();
            let url = crate::config::DatabaseUrl::Sqlite(path.clone());
            let neighbour = Db::connect(&url, 1, crate::store::PoolUse::Rows).await.unwrap();
            let writes = async {
                let began = crate::clock::Stopwatch::start();
                for n in 0..20 {
                    testing::team(&neighbour, &format!("neighbour {n}")).await;
                    tokio::task::yield_now().await;
                }
                began.elapsed()
            };
            let (is_empty, took) = tokio::join!(empty_log(&db), writes);
            // A writer waits ten seconds before it gives up.
            assert!(took.as_secs() < 9, "{took:?}");
            assert!(!is_empty.unwrap(), "it is read");
            drop(reader);
            assert!(empty_log(&db).await.unwrap());
            let log = std::fs::metadata(format!("{}-wal", path.display())).unwrap();
            assert_eq!(log.len(), 0);
        }
    }
}
