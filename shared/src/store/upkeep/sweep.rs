//! What nobody needs any more: expired jobs, jobs that were never accepted, old wake-ups, dead workers.
//!
//! All of it goes in slices, each a transaction of its own: whoever else writes waits for one slice at most, and what one
//! process leaves undone the next one finds in the rows.

use crate::clock::Stopwatch;
use crate::domain::job::{JobKind, JobStatus, PageState};
use crate::domain::monitor::ORIGIN;
use crate::domain::node::NodeState;
use crate::domain::session::SessionState;
use crate::domain::webhook::DeliveryState;
use crate::ids::{JobId, PageId};
use crate::queue;
use crate::store::accounts::turns;
use crate::store::contents::{retention, sitemaps};
use crate::store::db::slices::Slices;
use crate::store::monitors::checks;
use crate::store::work::{cancel, jobs};
use crate::store::{Db, StoreResult, Tx, console};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

/// Expired jobs that are removed together. (A transaction that a crash of the database loses is done again.)
const JOBS: i64 = 1_000;
/// How long the results of a check that runs are left alone before it is asked again whether it still does, milliseconds.
const HELD_MS: i64 = 600_000;
/// So long past the expiry of a job receivers may still be told of it, milliseconds: one that was deleted while it ran is told
/// of as cancelled.
const UNTOLD_MS: i64 = 600_000;
/// Bytes of documents that are removed at once: they weigh more than their number.
const DOCUMENT_BYTES: i64 = 8 << 20;

/// The tables that hold rows of a job, with their keys, in the order in which they are emptied. Pages go first: without
/// its page no attempt writes anything more. Documents come after them.
const PARTS: [(&str, &str); 8] = [
    ("page", "id"),
    ("page_attempt", "page_id, epoch"),
    ("webhook_delivery", "id"),
    ("webhook_attempt", "delivery_id, attempt"),
    ("crawl_url", "job_id, key"),
    ("crawl", "job_id"),
    ("task_step", "job_id, key"),
    ("task", "job_id"),
];

/// A job that somebody waits for and that keeps nothing: its rows go when they were to go when it began.
const IS_AT_ONCE: &str = sql!(
    "(zero_retention AND kind IN (",
    JobKind::Scrape.sql(),
    ", ",
    JobKind::Map.sql(),
    ", ",
    JobKind::Search.sql(),
    "))"
);

/// Which jobs [`keep_running`] moves: `$2` and `$3` are those of [`to_keep`]. Jobs that run are few, and those that expire
/// by then are nearly all: the sum keeps the databases from the index of the latter.
pub(super) const IS_TO_KEEP: &str =
    sql!("status = ", JobStatus::Scraping.sql(), " AND created_at < $2 AND expires_at + 0 < $3 AND NOT ", IS_AT_ONCE);

/// Jobs that began before the first time and expire before the second are kept for longer where they run, if results stay
/// for `ttl_ms`.
pub(super) fn to_keep(now: Timestamp, ttl_ms: i64) -> (Timestamp, Timestamp) {
    (now.plus_ms(-ttl_ms / 4), now.plus_ms(ttl_ms))
}

/// Moves on the expiry of jobs that run, so that results stay for `ttl_ms` after the end of a job, however long it takes. One
/// that is over within a quarter of that time goes when it was to go when it began; another one's expiry is moved by a quarter
/// more than is needed, so a job is written once in that time.
pub async fn keep_running(db: &Db, slices: &mut Slices, now: Timestamp, ttl_ms: i64) -> StoreResult<()> {
    // Whoever writes a job at the moment is not waited for: others of its jobs may be ours already. It is for the next time.
    macro_rules! keep {
        ($lock:literal) => {
            sql!(
                "UPDATE job SET expires_at = $1 WHERE id IN (SELECT id FROM job WHERE ",
                IS_TO_KEEP,
                " LIMIT $4",
                $lock,
                ")"
            )
        };
    }
    let (begun, expiring) = to_keep(now, ttl_ms);
    let until = now.plus_ms(ttl_ms + ttl_ms / 4);
    loop {
        let rows = slices.rows();
        let mut tx = db.begin_relaxed().await?;
        let began = Stopwatch::start();
        let sql = if matches!(tx, Tx::Postgres(_)) { keep!(" FOR NO KEY UPDATE SKIP LOCKED") } else { keep!("") };
        let kept = on_db!(&mut tx, |conn| {
            sqlx::query(sql).bind(until).bind(begun).bind(expiring).bind(rows).execute(conn).await?.rows_affected()
        });
        tx.commit().await?;
        if kept > 0 {
            slices.pause(began).await;
        }
        if kept < rows.unsigned_abs() {
            return Ok(());
        }
    }
}

/// Removes some of the jobs past their expiry with all their rows; their blobs are left to
/// [`crate::store::contents::waste`]. Returns how many are gone; 0: none is due, or those that are have rows that somebody
/// writes at the moment. Jobs that run stay, but for those that keep nothing and whose callers are gone; and those of which
/// receivers are being told have a while for that, unless they keep nothing.
pub async fn expire(db: &Db, slices: &mut Slices, now: Timestamp) -> StoreResult<u64> {
    const OLDEST: &str = sql!(
        "SELECT id, status, zero_retention, origin FROM job WHERE expires_at <= $1 AND (status <> ",
        JobStatus::Scraping.sql(),
        " OR ",
        IS_AT_ONCE,
        ") AND (zero_retention OR expires_at <= $3 OR NOT EXISTS (SELECT 1 FROM webhook_delivery \
         WHERE webhook_delivery.job_id = job.id AND webhook_delivery.state = ",
        DeliveryState::Waiting.sql(),
        ")) ORDER BY expires_at LIMIT $2"
    );
    let told_by = now.plus_ms(-UNTOLD_MS);
    let mut due: Vec<(JobId, String, bool, Option<String>)> =
        on_pool!(db, |pool| sqlx::query_as(OLDEST).bind(now).bind(JOBS).bind(told_by).fetch_all(pool).await?);
    if due.iter().any(|job| job.3.as_deref() == Some(ORIGIN)) {
        let in_hand = checks::jobs_in_hand(db).await?;
        let held: Vec<JobId> = due.iter().map(|job| job.0).filter(|job| in_hand.contains(job)).collect();
        let mut tx = db.begin_relaxed().await?;
        jobs::keep_until(&mut tx, &held, now.plus_ms(1), now.plus_ms(HELD_MS)).await?;
        tx.commit().await?;
        due.retain(|job| !in_hand.contains(&job.0));
    }
    for (job, status, ..) in &due {
        if status == JobStatus::Scraping.as_str() {
            let mut tx = db.begin_relaxed().await?;
            let began = Stopwatch::start();
            cancel::job(&mut tx, *job, now).await?;
            tx.commit().await?;
            slices.pause(began).await;
        }
    }
    let mut gone = 0;
    for keeps_nothing in [false, true] {
        let jobs: Vec<JobId> = due.iter().filter(|job| job.2 == keeps_nothing).map(|job| job.0).collect();
        if !jobs.is_empty() {
            gone += remove_jobs(db, slices, &jobs, keeps_nothing, now).await?;
        }
    }
    Ok(gone)
}

/// Removes jobs that have ended with all their rows. Returns how many are gone: others have rows that somebody writes at the
/// moment.
pub(super) async fn remove_jobs(
    db: &Db,
    slices: &mut Slices,
    jobs: &[JobId],
    keeps_nothing: bool,
    now: Timestamp,
) -> StoreResult<u64> {
    for (table, key) in PARTS {
        loop {
            let rows = slices.rows();
            let mut tx = db.begin_relaxed().await?;
            let began = Stopwatch::start();
            retention::overwrite(&mut tx, keeps_nothing).await?;
            let removed = remove_rows(&mut tx, table, key, jobs, rows).await?;
            retention::overwrite(&mut tx, false).await?;
            tx.commit().await?;
            if removed > 0 {
                slices.pause(began).await;
            }
            if removed < rows.unsigned_abs() {
                break;
            }
        }
    }
    loop {
        let mut tx = db.begin_relaxed().await?;
        let began = Stopwatch::start();
        retention::overwrite(&mut tx, keeps_nothing).await?;
        let removed = remove_documents(&mut tx, jobs, slices.rows()).await?;
        retention::overwrite(&mut tx, false).await?;
        tx.commit().await?;
        if removed == 0 {
            break;
        }
        slices.pause(began).await;
    }
    let mut tx = db.begin_relaxed().await?;
    let began = Stopwatch::start();
    retention::overwrite(&mut tx, keeps_nothing).await?;
    let removed = remove_last(&mut tx, jobs, now).await?;
    retention::overwrite(&mut tx, false).await?;
    tx.commit().await?;
    slices.pause(began).await;
    Ok(removed)
}

/// Adds the end of a statement: `(` is open before the jobs.
fn push_jobs<Database: sqlx::Database>(query: &mut sqlx::QueryBuilder<Database>, jobs: &[JobId])
where
    JobId: for<'a> sqlx::Encode<'a, Database> + sqlx::Type<Database>,
{
    let mut list = query.separated(", ");
    for job in jobs {
        list.push_bind(*job);
    }
    query.push(")");
}

/// Removes up to `limit` rows of these jobs from one table. What somebody is just writing stays for the next time: to wait
/// for it would be a deadlock when it waits for us.
async fn remove_rows(tx: &mut Tx, table: &str, key: &str, jobs: &[JobId], limit: i64) -> StoreResult<u64> {
    let lock = if matches!(tx, Tx::Postgres(_)) { " FOR UPDATE SKIP LOCKED" } else { "" };
    Ok(on_db!(tx, |conn| {
        let mut delete = sqlx::QueryBuilder::new("DELETE FROM ");
        delete.push(table).push(" WHERE (").push(key).push(") IN (SELECT ").push(key).push(" FROM ").push(table);
        delete.push(" WHERE job_id IN (");
        push_jobs(&mut delete, jobs);
        delete.push(" LIMIT ").push_bind(limit).push(lock).push(")");
        delete.build().persistent(false).execute(conn).await?.rows_affected()
    }))
}

/// Removes some documents of these jobs.
async fn remove_documents(tx: &mut Tx, jobs: &[JobId], limit: i64) -> StoreResult<usize> {
    type Row = (PageId, Option<i64>);
    let found: Vec<Row> = on_db!(tx, |conn| {
        let mut select =
            sqlx::QueryBuilder::new("SELECT page_id, CAST(LENGTH(body) AS BIGINT) FROM document WHERE job_id IN (");
        push_jobs(&mut select, jobs);
        select.push(" LIMIT ").push_bind(limit);
        select.build_query_as().persistent(false).fetch_all(conn).await?
    });
    let mut bytes = 0;
    let fits = |(_, size): &&Row| {
        let is_first = bytes == 0;
        bytes += size.unwrap_or(0).max(1);
        is_first || bytes <= DOCUMENT_BYTES
    };
    let gone: Vec<PageId> = found.iter().take_while(fits).map(|row| row.0).collect();
    if gone.is_empty() {
        return Ok(0);
    }
    on_db!(tx, |conn| {
        let mut delete = sqlx::QueryBuilder::new("DELETE FROM document WHERE page_id IN (");
        let mut list = delete.separated(", ");
        for page in &gone {
            list.push_bind(*page);
        }
        delete.push(")");
        delete.build().persistent(false).execute(conn).await?.rows_affected()
    });
    Ok(gone.len())
}

/// Removes the job rows of which nothing else is left. That they may have blobs is written down with it.
async fn remove_last(tx: &mut Tx, jobs: &[JobId], now: Timestamp) -> StoreResult<u64> {
    let gone: Vec<(JobId,)> = on_db!(tx, |conn| {
        let mut delete = sqlx::QueryBuilder::new("DELETE FROM job WHERE id IN (");
        push_jobs(&mut delete, jobs);
        delete.push(" AND NOT EXISTS (SELECT 1 FROM page WHERE page.job_id = job.id) RETURNING id");
        delete.build_query_as().persistent(false).fetch_all(conn).await?
    });
    if !gone.is_empty() {
        on_db!(tx, |conn| {
            let mut insert = sqlx::QueryBuilder::new("INSERT INTO blob_waste (job_id, due_at) ");
            insert.push_values(&gone, |mut values, (job,)| {
                values.push_bind(*job).push_bind(now);
            });
            insert.push(" ON CONFLICT (job_id) DO NOTHING");
            insert.build().persistent(false).execute(conn).await?.rows_affected()
        });
    }
    Ok(gone.len() as u64)
}

/// Removes the pages of jobs that were never accepted.
pub async fn remove_drafts(db: &Db, slices: &mut Slices, now: Timestamp) -> StoreResult<()> {
    const DUE: &str = "SELECT job_id FROM job_draft WHERE due_at <= $1 ORDER BY due_at LIMIT 20";
    const GONE: &str = "DELETE FROM job_draft WHERE job_id = $1 AND due_at <= $2";
    let due: Vec<(JobId,)> = on_pool!(db, |pool| sqlx::query_as(DUE).bind(now).fetch_all(pool).await?);
    for (job,) in due {
        loop {
            let rows = slices.rows();
            let mut tx = db.begin_relaxed().await?;
            let began = Stopwatch::start();
            let removed = remove_rows(&mut tx, "page", "id", &[job], rows).await?;
            let is_last = removed < rows.unsigned_abs();
            if is_last {
                on_db!(&mut tx, |conn| sqlx::query(GONE).bind(job).bind(now).execute(conn).await?.rows_affected());
            }
            tx.commit().await?;
            slices.pause(began).await;
            if is_last {
                break;
            }
        }
    }
    Ok(())
}

/// Removes wake-ups that the library has done with, all there are.
pub async fn prune_wakeups(db: &Db, slices: &mut Slices) -> StoreResult<()> {
    loop {
        let rows = slices.rows();
        let mut tx = db.begin_relaxed().await?;
        let began = Stopwatch::start();
        let removed = queue::remove_done(&mut tx, rows).await?;
        tx.commit().await?;
        if removed == 0 {
            return Ok(());
        }
        slices.pause(began).await;
    }
}

/// Removes sitemaps kept too long, the library's records of workers long gone, our dead workers and old idempotency keys;
/// a part of each.
pub async fn prune(tx: &mut Tx, now: Timestamp) -> StoreResult<()> {
    const NODES: &str = sql!(
        "DELETE FROM worker_node WHERE state = ",
        NodeState::Dead.sql(),
        " AND heartbeat_at < $1 AND NOT EXISTS (SELECT 1 FROM page WHERE page.state = ",
        PageState::Running.sql(),
        " AND page.owner = worker_node.id) AND NOT EXISTS \
         (SELECT 1 FROM browser_session s WHERE s.worker_id = worker_node.id AND s.state <> ",
        SessionState::Destroyed.sql(),
        ")"
    );
    const KEYS: &str = "DELETE FROM idempotency_key WHERE (team_id, key) IN \
        (SELECT team_id, key FROM idempotency_key WHERE created_at < $1 LIMIT 1000)";
    let hour = now.plus_ms(-3_600_000);
    let day = now.plus_ms(-86_400_000);
    on_db!(tx, |conn| {
        sqlx::query(NODES).bind(hour).execute(&mut *conn).await?;
        sqlx::query(KEYS).bind(day).execute(conn).await?.rows_affected()
    });
    turns::prune_turns(tx, hour).await?;
    sitemaps::expire(tx, now).await?;
    console::sign_ins::expire(tx, now).await?;
    console::figures::expire(tx, now).await?;
    queue::remove_workers(tx).await
}

/// Gives a part of SQLite's free pages back to the file system; Postgres does this by itself.
pub async fn shrink(db: &Db) -> StoreResult<()> {
    if let Db::Sqlite(db) = db {
        let mut turn = db.writer.turn().await?;
        sqlx::query("PRAGMA incremental_vacuum(500)").execute(&mut *turn).await?;
        turn.end();
    }
    Ok(())
}
