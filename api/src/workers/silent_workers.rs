//! Workers that have let a call wait in vain: one that takes connections and does nothing counts as alive for as long as its
//! heartbeats come, and has ever more room than those that work.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use weir_shared::ids::WorkerId;

/// For so long others come first.
const LAST: Duration = Duration::from_secs(60);

/// Those that this process has met.
#[derive(Debug, Default)]
pub struct SilentWorkers(Mutex<HashMap<WorkerId, Instant>>);

impl SilentWorkers {
    /// Notes one that did not answer.
    pub fn note(&self, worker: WorkerId, now: Instant) {
        self.lock().insert(worker, now);
    }

    /// It has answered.
    pub fn forget(&self, worker: WorkerId) {
        self.lock().remove(&worker);
    }

    /// Those of the last minute.
    pub fn now(&self, now: Instant) -> Vec<WorkerId> {
        let mut silent = self.lock();
        silent.retain(|_, noted| now.saturating_duration_since(*noted) < LAST);
        silent.keys().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<WorkerId, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use weir_shared::clock;

    use super::*;

    #[test]
    fn a_silent_worker_is_remembered_for_a_minute_or_until_it_answers() {
        let (silent, now) = (SilentWorkers::default(), clock::instant());
        let (one, other) = (WorkerId::new(), WorkerId::new());
        silent.note(one, now);
        silent.note(other, now + LAST / 2);
        assert_eq!(silent.now(now + LAST / 2).len(), 2);
        assert_eq!(silent.now(now + LAST), [other]);
        silent.forget(other);
        assert!(silent.now(now + LAST).is_empty());
    }
}
