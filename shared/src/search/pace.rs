//! How fast a backend is asked. One that refuses rests for as long as it says, and so does one that takes no more within its
//! second; a short rest is waited for. One that has limited lately is asked by one at a time, so that its next answer says
//! when it wants the next question.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::header::HeaderMap;
use tokio::time::Instant;

use crate::clock;

/// How long a backend rests that refuses, when it does not say.
pub(super) const REST: Duration = Duration::from_secs(60);
/// Shortest and longest rest, whatever it says.
const LEAST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(600);
/// So long after it has limited, a backend is asked by one at a time.
const LATELY: Duration = Duration::from_secs(5);

/// What is known of a backend's limits.
#[derive(Debug, Default)]
pub(super) struct Pace {
    limits: Mutex<Limits>,
    /// Whoever asks a backend that limits.
    line: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Limits {
    /// Until when it rests.
    rests_until: Option<Instant>,
    /// When it last said so.
    said_at: Option<Instant>,
}

/// The right to ask a backend once.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    _line: Option<tokio::sync::MutexGuard<'a, ()>>,
}

impl Pace {
    /// The backend is to be left alone for so long.
    pub(super) fn rest_for(&self, rest: Duration) {
        let until = clock::deadline(rest.clamp(LEAST, MOST));
        let mut limits = self.limits();
        limits.rests_until = limits.rests_until.max(Some(until));
        limits.said_at = Some(clock::instant());
    }

    /// How long it still rests.
    pub(super) fn rest(&self) -> Option<Duration> {
        let until = self.limits().rests_until?;
        until.checked_duration_since(clock::instant()).filter(|rest| !rest.is_zero())
    }

    /// Waits for a turn, for rests out of `patience`. Who has none waits for nobody else either.
    ///
    /// # Errors
    /// With how long it would take, where that is longer.
    pub(super) async fn turn(&self, patience: &mut Duration) -> Result<Turn<'_>, Duration> {
        if let Some(rest) = self.rest().filter(|rest| rest > patience) {
            return Err(rest);
        }
        let limits_lately = self.limits().said_at.is_some_and(|at| at.elapsed() < LATELY);
        let line = match limits_lately {
            false => None,
            true if patience.is_zero() => Some(self.line.try_lock().map_err(|_| LEAST)?),
            true => Some(self.line.lock().await),
        };
        while let Some(rest) = self.rest() {
            *patience = patience.checked_sub(rest).ok_or(rest)?;
            tokio::time::sleep(rest).await;
        }
        Ok(Turn { _line: line })
    }

    fn limits(&self) -> MutexGuard<'_, Limits> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long nothing is left, where an answer counts what is left in windows of time, the shortest first, as Brave does:
/// `X-RateLimit-Remaining: 0, 1000` with `X-RateLimit-Reset: 1, 1419704` is a second. `None`: something is left, or it says
/// nothing that can be understood.
pub(super) fn spent(headers: &HeaderMap) -> Option<Duration> {
    let list = |name: &str| -> Option<Vec<u64>> {
        headers.get(name)?.to_str().ok()?.split(',').map(|number| number.trim().parse().ok()).collect()
    };
    let (left, resets) = (list("x-ratelimit-remaining")?, list("x-ratelimit-reset")?);
    left.iter().zip(resets).filter(|(left, _)| **left == 0).map(|(_, reset)| Duration::from_secs(reset)).max()
}
