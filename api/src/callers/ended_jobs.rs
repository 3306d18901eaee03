//! Rows of jobs that have ended, remembered for a moment: a client that pages through fifty thousand documents reads
//! the row once, not five hundred times.
//!
//! Such a row changes when an operator replays its pages or deletes the job. Who takes it from here holds it against the
//! database in the statement that reads the documents (`find_of_ended`).

use std::time::Duration;

use tokio::time::Instant;
use weir_shared::domain::job::JobStatus;
use weir_shared::ids::JobId;
use weir_shared::store::work::jobs::JobRow;

use crate::callers::remembered::Remembered;

/// How long a row is trusted.
const TRUSTED: Duration = Duration::from_millis(500);
/// Most rows remembered at once.
const MOST: usize = 1_000;

/// The rows, by job.
pub struct EndedJobs(Remembered<JobId, JobRow>);

impl Default for EndedJobs {
    fn default() -> Self {
        Self(Remembered::new(TRUSTED, MOST))
    }
}

impl EndedJobs {
    /// The row, if it was read a moment ago.
    pub fn get(&self, id: JobId, now: Instant) -> Option<JobRow> {
        self.0.get(&id, now)
    }

    /// Keeps the row when its job has ended.
    pub fn remember(&self, job: &JobRow, now: Instant) {
        if job.status != JobStatus::Scraping {
            self.0.put(job.id, job.clone(), now);
        }
    }
}
