//! What calls do while the database is away for a moment. What was accepted is waited for all the same, and where the answer
//! to a commit was lost it is looked what became of it, so that nobody is told of a failure that was none.

use std::time::Duration;

use tokio::time::Instant;
use weir_shared::clock;
use weir_shared::fault::FaultPoint;
use weir_shared::ids::JobId;
use weir_shared::store::work::jobs;
use weir_shared::store::{Db, StoreResult, Tx};

use crate::app::App;
use crate::error::{ApiError, ApiResult};

/// The pauses between tries.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
/// How long it is tried to read for its answer what is done.
const READING: Duration = Duration::from_secs(10);
/// How long it is looked whether a commit has happened. One that is not there yet may still come: Postgres ends a transaction
/// that hears nothing after five seconds.
const LOOKING: Duration = Duration::from_secs(6);
const LOOK_PAUSE: Duration = Duration::from_millis(300);

/// How a question is asked again while the database is away.
pub struct Patience {
    until: Instant,
    /// Before it is asked again: twice the last one.
    pause: Duration,
}

impl Patience {
    pub fn until(until: Instant) -> Self {
        Self { until, pause: FIRST_PAUSE }
    }

    /// How long to wait before the question is asked again that was refused so.
    ///
    /// # Errors
    /// The refusal, where it does not pass by itself or it is too late.
    pub fn after(&mut self, refusal: ApiError) -> ApiResult<Duration> {
        let left = self.until.saturating_duration_since(clock::instant());
        if !refusal.may_pass() || left.is_zero() {
            return Err(refusal);
        }
        let pause = self.pause.min(left);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(pause)
    }
}

/// Asks again for as long as the database is away, until `until`; once at least.
///
/// # Errors
/// Those of the question.
pub async fn patiently<T, F>(until: Instant, mut ask: impl FnMut() -> F) -> ApiResult<T>
where
    F: Future<Output = ApiResult<T>>,
{
    let mut patience = Patience::until(until);
    loop {
        match ask().await {
            Ok(answer) => return Ok(answer),
            Err(refusal) => tokio::time::sleep(patience.after(refusal)?).await,
        }
    }
}

/// Reads for its answer what is done.
///
/// # Errors
/// Those of reading it.
pub async fn read<T, F>(read: impl FnMut() -> F) -> ApiResult<T>
where
    F: Future<Output = ApiResult<T>>,
{
    patiently(clock::deadline(READING), read).await
}

/// Commits what a caller asks for. `has_happened` looks for it in the rows, and is asked where the answer to the commit was lost.
///
/// # Errors
/// Those of the commit, where it is not known to have happened.
pub async fn commit<F>(app: &App, tx: Tx, has_happened: impl Fn() -> F) -> ApiResult<()>
where
    F: Future<Output = StoreResult<bool>>,
{
    commit_to(&app.db, tx, has_happened).await.map_err(ApiError::from)
}

/// The same for who is no caller, such as a command.
///
/// # Errors
/// As [`commit`]. Where the error leaves it open, the commit may have happened.
pub async fn commit_to<F>(db: &Db, tx: Tx, has_happened: impl Fn() -> F) -> StoreResult<()>
where
    F: Future<Output = StoreResult<bool>>,
{
    let committed = tx.commit().await.and_then(|()| db.faults().reach(FaultPoint::CallCommitted));
    let Err(error) = committed else { return Ok(()) };
    let look = async {
        loop {
            match has_happened().await {
                Ok(true) => return true,
                Err(error) if !error.may_pass() => return false,
                Ok(false) | Err(_) => tokio::time::sleep(LOOK_PAUSE).await,
            }
        }
    };
    if error.leaves_commit_open() && tokio::time::timeout(LOOKING, look).await.unwrap_or(false) {
        tracing::warn!(%error, "the answer to a commit was lost; it has happened");
        return Ok(());
    }
    Err(error)
}

/// As [`commit`], where a job is begun.
///
/// # Errors
/// As [`commit`].
pub async fn commit_job(app: &App, tx: Tx, job: JobId) -> ApiResult<()> {
    commit(app, tx, || async { Ok(jobs::load(&app.db, job).await?.is_some()) }).await
}

#[cfg(test)]
mod tests {
    use weir_shared::store::StoreError;

    use super::*;

    fn away() -> ApiError {
        StoreError::BlobsAway(std::io::ErrorKind::ConnectionReset.into()).into()
    }

    #[tokio::test]
    async fn what_passes_is_asked_again_until_the_end_and_what_does_not_once() {
        let mut tries = 0;
        let answer = patiently(clock::deadline(READING), || {
            tries += 1;
            std::future::ready(if tries < 3 { Err(away()) } else { Ok(()) })
        });
        assert!(answer.await.is_ok());
        assert_eq!(tries, 3);
        let mut tries = 0;
        let refused = patiently(clock::deadline(READING), || {
            tries += 1;
            std::future::ready(Err::<(), _>(ApiError::job_not_found()))
        });
        assert!(refused.await.is_err_and(|error| !error.may_pass()));
        assert_eq!(tries, 1);
        let until = clock::deadline(FIRST_PAUSE / 2);
        let refused = patiently(until, || std::future::ready(Err::<(), _>(away()))).await;
        assert!(refused.is_err_and(|error| error.may_pass()) && clock::instant() >= until);
    }
}
