//! Blobs that are nobody's, and their removal.
//!
//! ```text
//! blob_waste   jobs that are gone, whose blobs lie under one prefix
//! page_blob    other blobs that may be nobody's: written before each is stored, and when its owner goes
//! ```
//!
//! A place of blobs knows no transactions: what was stored for a row that never came, or was to be removed when its process
//! died, nobody would find again. So each blob's row is written first, and goes with the transaction that makes the blob
//! somebody's, or is found settled when it is due.

use std::sync::Arc;

use futures_util::{StreamExt as _, stream};

use crate::blobs::Blobs;
use crate::ids::JobId;
use crate::store::{Db, StoreError, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{blocking, on_db, on_pool};

/// Jobs whose blobs are looked for in one round, and at the same time.
const JOBS: i64 = 64;
const AT_ONCE: usize = 16;
/// Blobs that are looked at in one round.
const STEP: i64 = 500;
/// How long a blob may wait for its owner, milliseconds.
pub const OWNERLESS_MS: i64 = 6 * 3_600_000;
/// What remains of it when a blob is kept at the latest, milliseconds: longer than a transaction takes.
const MARGIN_MS: i64 = 600_000;
/// Between two tries to remove a blob, or the blobs of a job, milliseconds.
const PAUSE_MS: i64 = 60_000;

/// Puts a blob where it waits for its owner, for [`OWNERLESS_MS`]. May be asked for again after an error.
///
/// # Errors
/// [`StoreError::BlobsAway`] when it cannot be stored now; others when the database cannot be asked.
pub async fn put(db: &Db, blobs: &Blobs, key: &str, bytes: Arc<Vec<u8>>) -> StoreResult<()> {
    let key = key.to_owned();
    let mut tx = db.begin_relaxed().await?;
    expect(&mut tx, std::slice::from_ref(&key), db.now().plus_ms(OWNERLESS_MS)).await?;
    tx.commit().await?;
    let blobs = blobs.clone();
    let stored = blocking::run(move || blobs.put(&key, &bytes)).await;
    stored.flatten().map_err(StoreError::BlobsAway)
}

/// Writes down that these blobs may be nobody's from then on.
///
/// # Errors
/// When the database cannot be asked.
pub async fn expect(tx: &mut Tx, blobs: &[String], due_at: Timestamp) -> StoreResult<()> {
    const SQL: &str = "INSERT INTO page_blob (blob, due_at) VALUES ($1, $2) \
        ON CONFLICT (blob) DO UPDATE SET due_at = excluded.due_at";
    for blob in blobs {
        on_db!(tx, |conn| sqlx::query(SQL).bind(blob).bind(due_at).execute(conn).await?.rows_affected());
    }
    Ok(())
}

/// Makes a blob that was put with [`put`] somebody's with this transaction. `false`: it comes too late, the blob may be
/// gone.
///
/// # Errors
/// When the database cannot be asked.
pub async fn keep(tx: &mut Tx, blob: &str, now: Timestamp) -> StoreResult<bool> {
    const SQL: &str = "DELETE FROM page_blob WHERE blob = $1 AND due_at > $2";
    let by = now.plus_ms(MARGIN_MS);
    Ok(on_db!(tx, |conn| sqlx::query(SQL).bind(blob).bind(by).execute(conn).await?.rows_affected()) > 0)
}

/// Removes blobs of jobs that are gone. What cannot be removed now is tried again a minute later. Returns how many jobs
/// were looked at.
pub async fn remove_of_jobs(db: &Db, blobs: &Blobs, now: Timestamp) -> StoreResult<usize> {
    const DUE: &str = "SELECT job_id FROM blob_waste WHERE due_at <= $1 ORDER BY due_at LIMIT $2";
    const LATER: &str = "UPDATE blob_waste SET due_at = $2 WHERE job_id = $1";
    const GONE: &str = "DELETE FROM blob_waste WHERE job_id = $1";
    let due: Vec<(JobId,)> = on_pool!(db, |pool| sqlx::query_as(DUE).bind(now).bind(JOBS).fetch_all(pool).await?);
    let removals = due.into_iter().map(|(job,)| {
        let blobs = blobs.clone();
        async move { (job, blocking::run(move || blobs.remove_job(job)).await.is_ok_and(|done| done)) }
    });
    let done: Vec<(JobId, bool)> = stream::iter(removals).buffer_unordered(AT_ONCE).collect().await;
    if done.is_empty() {
        return Ok(0);
    }
    let later = now.plus_ms(PAUSE_MS);
    let mut tx = db.begin_relaxed().await?;
    for (job, is_gone) in &done {
        on_db!(&mut tx, |conn| {
            let query = if *is_gone { sqlx::query(GONE).bind(*job) } else { sqlx::query(LATER).bind(*job).bind(later) };
            query.execute(conn).await?.rows_affected()
        });
    }
    tx.commit().await?;
    Ok(done.len())
}

/// Removes other blobs that are nobody's: those of contents are somebody's while one names them, all others were kept in
/// time or are not. Returns how many were looked at.
///
/// # Errors
/// When the database cannot be asked.
pub async fn remove(db: &Db, blobs: &Blobs, now: Timestamp) -> StoreResult<usize> {
    const DUE: &str = "SELECT blob, (SELECT COUNT(*) FROM page_content c WHERE c.blob = page_blob.blob) \
        FROM page_blob WHERE due_at <= $1 ORDER BY due_at LIMIT $2";
    const SETTLED: &str = "DELETE FROM page_blob WHERE blob = $1 AND due_at <= $2";
    type Due = (String, i64);
    let mut due: Vec<Due> = on_pool!(db, |pool| sqlx::query_as(DUE).bind(now).bind(STEP).fetch_all(pool).await?);
    if due.is_empty() {
        return Ok(0);
    }
    let blobs = blobs.clone();
    // One that cannot be removed now is tried again later.
    let removal = move || {
        let left: Vec<Due> = due.extract_if(.., |(blob, users)| *users == 0 && !blobs.remove(blob)).collect();
        (due, left)
    };
    let removal = blocking::run(removal).await;
    let (settled, left) = removal.map_err(StoreError::BlobsAway)?;
    let mut tx = db.begin_relaxed().await?;
    for (blob, _) in &settled {
        on_db!(&mut tx, |conn| sqlx::query(SETTLED).bind(blob).bind(now).execute(conn).await?.rows_affected());
    }
    let left: Vec<String> = left.into_iter().map(|row| row.0).collect();
    expect(&mut tx, &left, now.plus_ms(PAUSE_MS)).await?;
    tx.commit().await?;
    Ok(settled.len() + left.len())
}
