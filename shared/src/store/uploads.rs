//! Files that callers send: blobs that are gone after a while, whoever dies meanwhile.

use super::{Db, StoreError, StoreResult};
use crate::blobs::Blobs;
use crate::ids::JobId;
use crate::on_db;

/// After which an upload is removed at the latest, milliseconds: longer than any page that reads it may take.
const KEPT_MS: i64 = 20 * 60_000;

/// Stores a file under an id of its own. It is removed by [`remove`], or some minutes later by itself: that is written
/// down before the file is.
///
/// # Errors
/// When the database or the place of blobs is away.
pub async fn store(db: &Db, blobs: &Blobs, file: Vec<u8>) -> StoreResult<JobId> {
    const SQL: &str = "INSERT INTO blob_waste (job_id, due_at) VALUES ($1, $2)";
    let id = JobId::new();
    let due = db.now().plus_ms(KEPT_MS);
    let mut tx = db.begin().await?;
    on_db!(&mut tx, |conn| sqlx::query(SQL).bind(id).bind(due).execute(conn).await?.rows_affected());
    tx.commit().await?;
    let blobs = blobs.clone();
    let put = tokio::task::spawn_blocking(move || blobs.put(&Blobs::upload_key(id), &file));
    match put.await {
        Ok(Ok(())) => Ok(id),
        Ok(Err(error)) => Err(StoreError::BlobsAway(error)),
        Err(error) => Err(StoreError::BlobsAway(std::io::Error::other(error))),
    }
}

/// Removes a file now. Where that fails it is done later.
pub async fn remove(blobs: &Blobs, id: JobId) {
    let blobs = blobs.clone();
    let _ = tokio::task::spawn_blocking(move || blobs.remove_job(id)).await;
}
