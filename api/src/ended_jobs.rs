//! Rows of jobs that have ended, remembered for a moment: a client that pages through fifty thousand documents reads
//! the row once, not five hundred times.
//!
//! Such a row changes only when an operator replays its pages; that shows up when the moment has passed.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use weir_shared::domain::job::JobStatus;
use weir_shared::ids::JobId;
use weir_shared::store::jobs::JobRow;

/// How long a row is trusted.
const TRUSTED: Duration = Duration::from_millis(500);
/// Most rows remembered at once.
const MOST: usize = 1_000;

/// The rows, by job.
#[derive(Default)]
pub struct EndedJobs(Mutex<HashMap<JobId, (Instant, JobRow)>>);

impl EndedJobs {
    /// The row, if it was read a moment ago.
    pub fn get(&self, id: JobId) -> Option<JobRow> {
        let map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        map.get(&id).filter(|(until, _)| *until > Instant::now()).map(|(_, job)| job.clone())
    }

    /// Keeps the row when its job has ended.
    pub fn remember(&self, job: &JobRow) {
        if job.status == JobStatus::Scraping {
            return;
        }
        let now = Instant::now();
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if map.len() >= MOST {
            map.retain(|_, (until, _)| *until > now);
            if map.len() >= MOST {
                map.clear();
            }
        }
        map.insert(job.id, (now + TRUSTED, job.clone()));
    }
}
