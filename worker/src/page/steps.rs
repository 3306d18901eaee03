//! What an attempt does and how long each step takes, for whoever looks at the page in the console.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use serde::Serialize;
use tokio_util::task::task_tracker::TaskTrackerToken;
use weir_shared::clock::Stopwatch;

/// Most steps kept: a page that needs more has asked for a site again and again.
const MOST: usize = 16;

/// What is known of an attempt while it is under way.
#[derive(Debug)]
pub struct Attempted {
    /// What got the page, when it is known.
    pub engine: OnceLock<&'static str>,
    /// An action may have had its effect on the site: whatever fails now is final, and nobody asks for the page again.
    has_acted: AtomicBool,
    /// There from the moment at which the row may say that the actions have begun.
    acting: OnceLock<TaskTrackerToken>,
    began: Stopwatch,
    steps: Mutex<Vec<Step>>,
}

/// Its name, milliseconds from the attempt's beginning, and how long it took.
#[derive(Debug, Serialize)]
struct Step(&'static str, u64, u64);

/// A step under way; it is noted when it is dropped.
#[must_use = "a step ends when it is dropped"]
pub struct Underway<'a> {
    of: &'a Attempted,
    name: &'static str,
    began: u64,
}

impl Attempted {
    pub fn begin() -> Self {
        Self {
            engine: OnceLock::new(),
            has_acted: AtomicBool::new(false),
            acting: OnceLock::new(),
            began: Stopwatch::start(),
            steps: Mutex::default(),
        }
    }

    /// Its row is about to say that the actions begin. `acting`: who waits for such pages.
    pub fn may_act(&self, acting: TaskTrackerToken) {
        let _ = self.acting.set(acting);
    }

    /// Whether its row may say that the actions have begun.
    pub fn may_have_acted(&self) -> bool {
        self.acting.get().is_some()
    }

    pub fn acts(&self) {
        self.has_acted.store(true, Ordering::Relaxed);
    }

    pub fn has_acted(&self) -> bool {
        self.has_acted.load(Ordering::Relaxed)
    }

    pub fn step(&self, name: &'static str) -> Underway<'_> {
        Underway { of: self, name, began: self.elapsed() }
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// All steps as JSON; `None`: there were none.
    pub fn told(&self) -> Option<String> {
        let steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        if steps.is_empty() { None } else { serde_json::to_string(&*steps).ok() }
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        let took = self.of.elapsed().saturating_sub(self.began);
        let mut steps = self.of.steps.lock().unwrap_or_else(PoisonError::into_inner);
        if steps.len() < MOST {
            steps.push(Step(self.name, self.began, took));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_noted_at_their_end_and_there_are_never_too_many() {
        let attempted = Attempted::begin();
        assert_eq!(attempted.told(), None);
        let outer = attempted.step("render");
        drop(attempted.step("fetch"));
        drop(outer);
        let told = attempted.told().unwrap_or_default();
        assert!(told.starts_with("[[\"fetch\",") && told.contains("[\"render\","), "{told}");
        for _ in 0..MOST {
            drop(attempted.step("fetch"));
        }
        let told = attempted.told().unwrap_or_default();
        assert_eq!(told.matches("fetch").count(), MOST - 1, "{told}");
    }
}
