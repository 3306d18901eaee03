//! Jobs whose pages are written before they are accepted, because they are too many for one transaction.
//!
//! Pages without a job row are seen by nobody. The job row comes in the transaction that takes the draft away; when that
//! transaction never comes, the draft says whose pages are to be removed ([`crate::store::upkeep::sweep::remove_drafts`]).

use crate::ids::JobId;
use crate::on_db;
use crate::store::{Db, StoreResult, Tx};
use crate::time::Timestamp;

/// How long the pages of a job may be written, milliseconds.
const PATIENCE_MS: i64 = 600_000;
/// So long before the end a draft is not accepted any more: the transaction has to end, too.
const LAST_MS: i64 = 60_000;

/// Announces a draft. Committed before its first page.
pub async fn begin(tx: &mut Tx, job: JobId, now: Timestamp) -> StoreResult<()> {
    const SQL: &str = "INSERT INTO job_draft (job_id, due_at) VALUES ($1, $2)";
    let due = now.plus_ms(PATIENCE_MS);
    on_db!(tx, |conn| sqlx::query(SQL).bind(job).bind(due).execute(conn).await?.rows_affected());
    Ok(())
}

/// Takes the draft away, with the job's row in the same transaction. `false`: it took too long, its pages go.
pub async fn accept(tx: &mut Tx, job: JobId, now: Timestamp) -> StoreResult<bool> {
    const SQL: &str = "DELETE FROM job_draft WHERE job_id = $1 AND due_at > $2";
    let by = now.plus_ms(LAST_MS);
    let taken = on_db!(tx, |conn| sqlx::query(SQL).bind(job).bind(by).execute(conn).await?.rows_affected());
    Ok(taken == 1)
}

/// It will not be accepted: its pages may go now.
pub async fn abandon(db: &Db, job: JobId) -> StoreResult<()> {
    const SQL: &str = "UPDATE job_draft SET due_at = 0 WHERE job_id = $1";
    let mut tx = db.begin_relaxed().await?;
    on_db!(&mut tx, |conn| sqlx::query(SQL).bind(job).execute(conn).await?.rows_affected());
    tx.commit().await
}
