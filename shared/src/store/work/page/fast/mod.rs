//! A page that somebody waits for, in one statement on Postgres, and on SQLite as one string of them between BEGIN and
//! COMMIT: claimed with its wake-up, written as claimed already, ended. The statements are put together from the
//! rules of the general way and leave the same rows; a test runs both and compares every table.

mod postgres;
mod sqlite;
#[cfg(test)]
mod tests;
mod values;

use crate::domain::job::JobStatus;
use crate::ids::WorkerId;
use crate::store::work::jobs::JobSpec;
use crate::store::{Db, StoreError, StoreResult};
use crate::time::Timestamp;

use super::end::{Finished, Report};
use super::rows::Claimed;
use super::scrape::NewScrape;
use values::DirectEnd;

/// Takes the next page somebody waits for, with its job's spec, and removes its wake-up: all that a worker with a free
/// place does before it fetches. `None`: there is none, or it is no longer queued, or its team is at its limit; its
/// wake-up stays, and [`super::claim::claim_one`] settles it when the library delivers it.
///
/// # Errors
/// On Postgres the team's lock is not waited for long ([`StoreError::is_lock_wait`]).
pub async fn claim_next(
    db: &Db,
    worker: WorkerId,
    default_limit: i64,
    now: Timestamp,
) -> StoreResult<Option<(Claimed, JobSpec)>> {
    match db {
        Db::Postgres(db) => postgres::claim_next(db, worker, default_limit, now).await,
        Db::Sqlite(db) => sqlite::claim_next(db, worker, default_limit, now).await,
    }
}

/// Writes the job with its page, claimed by `worker`: all that a worker with a free place does before it fetches a page
/// that came to it by direct dispatch. `None`: nothing is written, for its team is at its limit (`default_limit` when it has none of its own)
/// or has pages that wait for a place.
///
/// # Errors
/// On Postgres the team's lock is not waited for long ([`StoreError::is_lock_wait`]).
pub async fn insert_claimed(
    db: &Db,
    scrape: &NewScrape<'_>,
    worker: WorkerId,
    default_limit: i64,
    now: Timestamp,
) -> StoreResult<Option<Claimed>> {
    let is_written = match db {
        Db::Postgres(db) => postgres::insert_claimed(db, scrape, worker, default_limit, now).await?,
        Db::Sqlite(db) => sqlite::insert_claimed(db, scrape, worker, default_limit, now).await?,
    };
    Ok(is_written.then(|| Claimed {
        id: scrape.page,
        job_id: scrape.job.id,
        team_id: scrape.job.team,
        idx: 0,
        url: scrape.url.to_owned(),
        depth: 0,
        epoch: 1,
        claims: 1,
        tries: 0,
        queued_at: scrape.job.created_at,
        started_at: now,
        owner: Some(worker),
        limited: false,
        may_rest: false,
        dispatched: true,
    }))
}

/// Writes the end of a page that is simply done. `None`: nothing is written, because it is not such an end, or was
/// overtaken, or more hangs on it (a replay, a team that waits for a place); [`super::finish::finish_many`] sees to it.
pub(super) async fn finish(db: &Db, end: &Finished, now: Timestamp) -> StoreResult<Option<Report>> {
    let Some(direct) = DirectEnd::of(end) else { return Ok(None) };
    let status = match db {
        Db::Postgres(db) => postgres::finish(db, &direct, now).await?,
        Db::Sqlite(db) => sqlite::finish(db, &direct, now).await?,
    };
    let Some(status) = status else { return Ok(None) };
    let status: JobStatus = status.parse().map_err(StoreError::Corrupt)?;
    let is_over = matches!(status, JobStatus::Completed | JobStatus::Failed);
    let ended = if is_over { vec![end.page.job_id] } else { Vec::new() };
    Ok(Some(Report { written: vec![end.page.id], ended }))
}
