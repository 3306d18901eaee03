//! The tasks that this worker knows it has. A row may say more: a claim whose answer was lost with its connection, an end that
//! could not be written because the database was away.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use weir_shared::ids::JobId;
use weir_shared::store::work::tasks::ClaimedTask;

/// By job and the claim's epoch.
#[derive(Debug, Clone, Default)]
pub struct DrivenTasks(Arc<Mutex<HashSet<(JobId, i64)>>>);

impl DrivenTasks {
    /// Counts a claimed task among them until the answer is dropped.
    pub fn drive(&self, task: &ClaimedTask) -> Driven {
        let claim = (task.job, task.epoch);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(claim);
        Driven { tasks: self.clone(), claim }
    }

    /// Whether it is driven here.
    pub fn contains(&self, claim: &(JobId, i64)) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(claim)
    }
}

/// One of [`DrivenTasks`].
#[derive(Debug)]
pub struct Driven {
    tasks: DrivenTasks,
    claim: (JobId, i64),
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.tasks.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.claim);
    }
}
