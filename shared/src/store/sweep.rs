//! What nobody needs any more: expired jobs, old tickets, dead workers. In small steps, so that no sweep holds the
//! database for long.

use crate::blobs::Blobs;
use crate::ids::JobId;
use crate::time::Timestamp;
use crate::{on_db, on_pool};

use super::{Db, StoreResult, Tx, cache, crawls, jobs, retention, sitemaps};

/// Rows removed in one transaction.
const STEP: i64 = 500;

/// Removes a part of the jobs past their expiry. Returns `true` while there is more.
pub async fn expire(db: &Db, blobs: &Blobs, now: Timestamp) -> StoreResult<bool> {
    const OLDEST: &str = "SELECT id, status FROM job WHERE expires_at <= $1 ORDER BY expires_at LIMIT 20";
    let due: Vec<(JobId, String)> = on_pool!(db, |pool| sqlx::query_as(OLDEST).bind(now).fetch_all(pool).await?);
    for (job, status) in &due {
        if status == "scraping" {
            let mut tx = db.begin().await?;
            jobs::cancel(&mut tx, *job, now).await?;
            tx.commit().await?;
        }
        loop {
            let mut tx = db.begin().await?;
            let removed = remove_part(&mut tx, *job).await?;
            tx.commit().await?;
            if removed == 0 {
                break;
            }
        }
        let (blobs, job) = (blobs.clone(), *job);
        // A failure leaves waste behind, which is told where it happens.
        let _ = tokio::task::spawn_blocking(move || blobs.remove_job(job)).await;
    }
    Ok(due.len() == 20)
}

/// Removes up to [`STEP`] rows of a job, the job itself last. Returns how many.
async fn remove_part(tx: &mut Tx, job: JobId) -> StoreResult<u64> {
    cache::take_over(tx, job, STEP).await?;
    let is_zero = is_zero(tx, job).await?;
    retention::overwrite(tx, is_zero).await?;
    let removed = remove_rows(tx, job).await;
    if is_zero {
        retention::overwrite(tx, false).await?;
    }
    removed
}

async fn is_zero(tx: &mut Tx, job: JobId) -> StoreResult<bool> {
    const SQL: &str = "SELECT COUNT(*) FROM job WHERE id = $1 AND zero_retention";
    let found: (i64,) = on_db!(tx, |conn| sqlx::query_as(SQL).bind(job).fetch_one(conn).await?);
    Ok(found.0 > 0)
}

async fn remove_rows(tx: &mut Tx, job: JobId) -> StoreResult<u64> {
    const PARTS: [&str; 7] = [
        "DELETE FROM document WHERE job_id = $1 AND seq IN (SELECT seq FROM document WHERE job_id = $1 \
         ORDER BY seq LIMIT $2)",
        "DELETE FROM webhook_attempt WHERE job_id = $1 AND $2 > 0",
        "DELETE FROM webhook_delivery WHERE id IN (SELECT id FROM webhook_delivery WHERE job_id = $1 LIMIT $2)",
        "DELETE FROM page_attempt WHERE job_id = $1 AND $2 > 0",
        "DELETE FROM page WHERE id IN (SELECT id FROM page WHERE job_id = $1 LIMIT $2)",
        "DELETE FROM crawl_url WHERE job_id = $1 AND key IN (SELECT key FROM crawl_url WHERE job_id = $1 LIMIT $2)",
        "DELETE FROM crawl WHERE job_id = $1 AND $2 > 0",
    ];
    for part in PARTS {
        let removed = on_db!(tx, |conn| sqlx::query(part).bind(job).bind(STEP).execute(conn).await?.rows_affected());
        if removed > 0 {
            return Ok(removed);
        }
    }
    const JOB: &str = "DELETE FROM job WHERE id = $1";
    on_db!(tx, |conn| sqlx::query(JOB).bind(job).execute(conn).await?.rows_affected());
    Ok(0)
}

/// Removes finished tickets, sitemaps kept too long, the library's records of workers long gone, our dead workers and old idempotency keys.
pub async fn prune(tx: &mut Tx, now: Timestamp) -> StoreResult<()> {
    const NODES: &str = "DELETE FROM worker_node WHERE state = 'dead' AND heartbeat_at < $1 AND NOT EXISTS \
        (SELECT 1 FROM page WHERE page.state = 'running' AND page.owner = worker_node.id) AND NOT EXISTS \
        (SELECT 1 FROM browser_session s WHERE s.worker_id = worker_node.id AND s.state <> 'destroyed')";
    const KEYS: &str = "DELETE FROM idempotency_key WHERE created_at < $1";
    let hour = now.plus_ms(-3_600_000);
    let day = now.plus_ms(-86_400_000);
    on_db!(tx, |conn| {
        sqlx::query(NODES).bind(hour).execute(&mut *conn).await?;
        sqlx::query(KEYS).bind(day).execute(conn).await?.rows_affected()
    });
    crawls::prune_turns(tx, hour).await?;
    sitemaps::expire(tx, now).await?;
    // The library's own tables, so the two differ.
    match tx {
        Tx::Sqlite(tx) => {
            sqlx::query(
                "DELETE FROM Jobs WHERE rowid IN (SELECT rowid FROM Jobs WHERE status IN ('Done', 'Killed') \
                 AND done_at < strftime('%s', 'now') - 30 LIMIT 2000)",
            )
            .execute(&mut **tx)
            .await?;
            sqlx::query(
                "DELETE FROM Workers WHERE last_seen < strftime('%s', 'now') - 600 \
                 AND NOT EXISTS (SELECT 1 FROM Jobs WHERE Jobs.lock_by = Workers.id)",
            )
            .execute(&mut **tx)
            .await?;
        }
        Tx::Postgres(tx) => {
            sqlx::query(
                "DELETE FROM apalis.jobs WHERE id IN (SELECT id FROM apalis.jobs WHERE status IN ('Done', 'Killed') \
                 AND done_at < now() - interval '30 seconds' LIMIT 2000)",
            )
            .execute(&mut **tx)
            .await?;
            sqlx::query(
                "DELETE FROM apalis.workers w WHERE last_seen < now() - interval '10 minutes' \
                 AND NOT EXISTS (SELECT 1 FROM apalis.jobs j WHERE j.lock_by = w.id)",
            )
            .execute(&mut **tx)
            .await?;
        }
    }
    Ok(())
}

/// Gives a part of SQLite's free pages back to the file system; Postgres does this by itself.
pub async fn shrink(db: &Db) -> StoreResult<()> {
    if let Db::Sqlite(db) = db {
        sqlx::query("PRAGMA incremental_vacuum(500)").execute(&db.writes).await?;
    }
    Ok(())
}
