//! How long work on a page or a step may wait for its answers. Where nobody waits for the work itself its time stands still
//! while a question waits for its turn: how many others ask the model is not the page's doing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::clock;

/// Longest time that stands still, altogether.
const MOST: Duration = Duration::from_mins(10);
/// How often it is looked whether time that stands still goes on.
const LOOK: Duration = Duration::from_millis(250);

/// The time that some work has. Copies are of the same time.
#[derive(Debug, Clone)]
pub struct Allowance {
    time: Arc<Mutex<Time>>,
    /// Kept back of it for what comes after.
    early: Duration,
}

#[derive(Debug)]
struct Time {
    /// When it ends, unless it stands still again.
    ends: Instant,
    /// What it was at its beginning.
    whole: Duration,
    /// Questions that wait, and since when there are any.
    waiting: usize,
    since: Instant,
    /// How long it may still stand still.
    patience: Duration,
}

/// Time stands still as long as this is held.
#[derive(Debug)]
pub(super) struct Standing<'a>(&'a Allowance);

impl Allowance {
    /// It ends at `deadline`, whatever happens: somebody waits.
    pub fn until(deadline: Instant) -> Self {
        Self::new(deadline, Duration::ZERO)
    }

    /// It ends at `deadline`, later by how long its questions wait for their turns.
    pub fn of_background(deadline: Instant) -> Self {
        Self::new(deadline, MOST)
    }

    fn new(ends: Instant, patience: Duration) -> Self {
        let since = clock::instant();
        let whole = ends.saturating_duration_since(since);
        let time = Time { ends, whole, waiting: 0, since, patience };
        Self { time: Arc::new(Mutex::new(time)), early: Duration::ZERO }
    }

    /// The same time, but for what is kept back at its end.
    pub fn without(&self, kept_back: Duration) -> Self {
        Self { time: Arc::clone(&self.time), early: self.early + kept_back }
    }

    /// When it ends, as far as is known.
    pub fn ends(&self) -> Instant {
        let time = self.lock();
        time.ends + time.stood() - self.early
    }

    /// When it ends at the latest.
    pub fn latest(&self) -> Instant {
        let time = self.lock();
        time.ends + time.patience - self.early
    }

    /// Returns so long after it has ended.
    pub async fn over(&self, late: Duration) {
        loop {
            let (ends, is_standing) = (self.ends() + late, self.lock().waiting > 0);
            if ends <= clock::instant() {
                return;
            }
            tokio::time::sleep_until(if is_standing { ends.max(clock::deadline(LOOK)) } else { ends }).await;
        }
    }

    /// Whether a wait of this length leaves some of it.
    pub(super) fn outlasts(&self, wait: Duration) -> bool {
        let time = self.lock();
        let patience = time.patience.saturating_sub(time.stood());
        let left = (time.ends + time.stood() - self.early).saturating_duration_since(clock::instant());
        wait < left.max(patience)
    }

    /// Time that stands still, where it does.
    pub(super) fn stand_still(&self) -> Standing<'_> {
        let mut time = self.lock();
        if time.waiting == 0 {
            time.since = clock::instant();
        }
        time.waiting += 1;
        drop(time);
        Standing(self)
    }

    /// Begins anew, as what it was spent on was not the work's doing. False: it does not, or has too often.
    pub(super) fn begin_anew(&self) -> bool {
        let mut time = self.lock();
        let anew = clock::deadline(time.whole);
        let given = anew.saturating_duration_since(time.ends + time.stood());
        let Some(patience) = time.patience.checked_sub(time.stood() + given) else { return false };
        time.since = clock::instant();
        (time.ends, time.patience) = (anew, patience);
        !patience.is_zero()
    }

    fn lock(&self) -> MutexGuard<'_, Time> {
        self.time.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Time {
    /// How long it has stood still since questions wait.
    fn stood(&self) -> Duration {
        if self.waiting == 0 { Duration::ZERO } else { self.since.elapsed().min(self.patience) }
    }
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        let mut time = self.0.lock();
        let stood = time.stood();
        time.waiting -= 1;
        time.since = clock::instant();
        time.ends += stood;
        time.patience -= stood;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    /// Longer than a busy machine stops for.
    const LITTLE: Duration = Duration::from_secs(10);
    const MOMENT: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn time_stands_still_while_questions_wait() {
        let time = Allowance::of_background(clock::deadline(LITTLE));
        let (first, second) = (time.stand_still(), time.stand_still());
        // As if they had waited for longer than there is time.
        time.lock().since -= 2 * LITTLE;
        drop(first);
        assert!(time.over(Duration::ZERO).now_or_never().is_none(), "another one waits");
        drop(second);
        assert!(time.over(Duration::ZERO).now_or_never().is_none());
        time.lock().ends -= LITTLE - MOMENT;
        time.over(Duration::ZERO).await;
        assert!(time.ends() <= clock::instant());
    }

    #[tokio::test]
    async fn who_waits_for_the_work_waits_no_longer() {
        let time = Allowance::until(clock::deadline(LITTLE));
        let standing = time.stand_still();
        assert!(time.outlasts(MOMENT) && !time.outlasts(LITTLE));
        time.lock().ends -= LITTLE - MOMENT;
        time.over(Duration::ZERO).await;
        assert!(!time.begin_anew());
        drop(standing);
        assert!(time.over(Duration::ZERO).now_or_never().is_some());
    }

    #[tokio::test]
    async fn it_is_never_given_without_end() {
        let time = Allowance::of_background(clock::deadline(MOST / 3));
        let kept_back = time.without(LITTLE);
        assert_eq!(time.ends() - kept_back.ends(), LITTLE);
        let before = time.ends();
        tokio::time::sleep(MOMENT).await;
        assert!(kept_back.begin_anew());
        assert!(time.ends() >= before + MOMENT, "what was spent is given back, and it is the same time");
        time.lock().patience = Duration::from_millis(1);
        tokio::time::sleep(MOMENT).await;
        assert!(!time.begin_anew());
    }
}
