//! How fast the model is asked. So many questions at a time as the operator allows; fewer where its endpoint refuses for the
//! moment or does not keep up, and more again as it answers. Who has few questions under way goes before a crowd. An endpoint
//! that refuses rests for as long as it says, or twice as long each time, and what would be asked waits for that.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::{Allowance, ModelError};
use crate::clock;
use crate::guests::Holder;
use crate::slots::{Slot, Slots};

/// The first rest of an endpoint that does not say how long it wants to be left alone, and the longest one of any.
const REST: Duration = Duration::from_millis(500);
const MAX_REST: Duration = Duration::from_secs(60);
/// An endpoint that has refused everything for so long is out of order: nobody waits for it any longer, and one question
/// each rest tries it.
const OUT_OF_ORDER: Duration = Duration::from_mins(2);
/// So many good answers for each question at a time, and one more is asked at a time.
const GOOD: usize = 4;
/// What an answer takes, before there was any.
const USUAL: Duration = Duration::from_secs(10);
/// The share that one answer has in what answers take on average: one in so many.
const SHARE: u32 = 8;

/// What is known of an endpoint's limits.
#[derive(Debug)]
pub(super) struct Pace {
    line: Slots,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Questions at a time: what the operator allows, and what the endpoint takes.
    most: usize,
    at_once: usize,
    /// Good answers since that last changed, and when it was lowered.
    good: usize,
    lowered: Option<Instant>,
    /// How long answers take.
    usual: Option<Duration>,
    /// What it has said since its last good answer.
    refusal: Option<Refusal>,
}

#[derive(Debug)]
struct Refusal {
    status: u16,
    /// Since when it says nothing else, and when it said so last to a question that knew of no refusal.
    since: Instant,
    at: Instant,
    /// How long it rests, and until when.
    rest: Duration,
    until: Instant,
}

/// The right to ask once.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    pace: &'a Pace,
    began: Instant,
    _slot: Slot,
}

impl Pace {
    /// At most so many questions at a time, 1 upwards.
    pub(super) fn new(most: usize) -> Self {
        let state = State { most, at_once: most, good: 0, lowered: None, usual: None, refusal: None };
        Self { line: Slots::new(most), state: Mutex::new(state) }
    }

    /// Waits for a turn. Whoever stops waiting has none.
    ///
    /// # Errors
    /// With what the endpoint has said last, where it rests for longer than there is time, or is out of order.
    pub(super) async fn turn(&self, holder: Holder, time: &Allowance) -> Result<Turn<'_>, ModelError> {
        let _standing = time.stand_still();
        let slot = self.line.acquire(holder).await;
        while let Some(rest) = self.rest(time)? {
            tokio::time::sleep(rest).await;
        }
        Ok(Turn { pace: self, began: clock::instant(), _slot: slot })
    }

    fn rest(&self, time: &Allowance) -> Result<Option<Duration>, ModelError> {
        let state = self.lock();
        let Some(refusal) = &state.refusal else { return Ok(None) };
        let rest = refusal.until.saturating_duration_since(clock::instant());
        if rest.is_zero() {
            return Ok(None);
        }
        if refusal.since.elapsed() >= OUT_OF_ORDER || !time.outlasts(rest) {
            return Err(ModelError::Status(refusal.status));
        }
        Ok(Some(rest))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lower(&self, state: &mut State) {
        state.at_once = state.at_once.min(self.line.busy()).div_ceil(2);
        (state.good, state.lowered) = (0, Some(clock::instant()));
        self.line.resize(state.at_once);
    }
}

impl Turn<'_> {
    /// The endpoint has answered.
    pub(super) fn answered(self) {
        let state = &mut *self.pace.lock();
        let took = self.began.elapsed();
        let before = state.usual.unwrap_or(took);
        state.usual = Some((before * (SHARE - 1) + took) / SHARE);
        // What was asked before says nothing of what the endpoint takes since.
        if state.lowered.is_some_and(|at| at > self.began) {
            return;
        }
        state.refusal = None;
        state.good += 1;
        if state.good >= GOOD * state.at_once && state.at_once < state.most {
            (state.at_once, state.good) = (state.at_once + 1, 0);
            self.pace.line.resize(state.at_once);
        }
    }

    /// The endpoint has refused for the moment, and `asked` for a pause where it did.
    pub(super) fn refused(self, status: u16, asked: Option<Duration>) {
        let now = clock::instant();
        let state = &mut *self.pace.lock();
        let before = state.refusal.take();
        let is_told = before.as_ref().is_some_and(|refusal| refusal.at > self.began);
        let own = before.as_ref().map_or(REST, |refusal| if is_told { refusal.rest } else { 2 * refusal.rest });
        let rest = asked.unwrap_or(own).clamp(REST, MAX_REST);
        let until = if is_told && asked.is_none() { now } else { now + rest };
        state.refusal = Some(match before {
            Some(refusal) => Refusal {
                status,
                since: refusal.since,
                at: if is_told { refusal.at } else { now },
                rest,
                until: refusal.until.max(until),
            },
            None => Refusal { status, since: now, at: now, rest, until },
        });
        if !is_told {
            self.pace.lower(state);
            tracing::warn!(
                status,
                rest_ms = rest.as_millis(),
                at_once = state.at_once,
                "the language model refuses for now"
            );
        }
    }

    /// The endpoint has not answered in time. Says whether it had others to answer as well, which it may have done first;
    /// not where it had no more time than answers take, which is the caller's doing.
    pub(super) fn late(self) -> bool {
        let state = &mut *self.pace.lock();
        if self.began.elapsed() < state.usual.unwrap_or(USUAL) {
            return false;
        }
        if state.lowered.is_some_and(|at| at > self.began) {
            return true;
        }
        if self.pace.line.busy() < 2 {
            return false;
        }
        self.pace.lower(state);
        tracing::warn!(at_once = state.at_once, "the language model does not keep up");
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use futures_util::FutureExt as _;

    use super::*;
    use crate::guests::Urgency;
    use crate::ids::TeamId;

    fn holder() -> Holder {
        (TeamId::new(), Urgency::Background)
    }

    fn minutes(n: u64) -> Allowance {
        Allowance::until(clock::deadline(Duration::from_mins(n)))
    }

    async fn turns<'a>(pace: &'a Pace, n: usize, time: &Allowance) -> Vec<Turn<'a>> {
        let one = holder();
        let mut turns = Vec::new();
        for _ in 0..n {
            turns.push(pace.turn(one, time).await.unwrap());
        }
        turns
    }

    /// How long the endpoint rests since it has refused last, and whether that was written down. How much of it is left
    /// depends on the machine.
    fn rest_of(pace: &Pace) -> (Duration, bool) {
        let state = pace.lock();
        let refusal = state.refusal.as_ref().unwrap();
        (refusal.rest, refusal.until == refusal.at + refusal.rest)
    }

    #[tokio::test]
    async fn one_refusal_of_many_questions_lowers_once_and_answers_raise_again() {
        let (pace, time) = (Pace::new(8), minutes(1));
        for turn in turns(&pace, 8, &time).await {
            turn.refused(429, None);
        }
        assert_eq!(pace.lock().at_once, 4);
        assert_eq!(rest_of(&pace), (REST, true));
        let began = clock::instant();
        pace.lock().refusal.as_mut().unwrap().until = began + REST;
        let again = pace.turn(holder(), &time).await.unwrap();
        assert!(began.elapsed() + Duration::from_millis(5) >= REST);
        again.refused(429, None);
        assert_eq!(pace.lock().at_once, 1, "one was under way");
        assert_eq!(rest_of(&pace), (2 * REST, true));
        for at_once in 1..8 {
            assert_eq!(pace.lock().at_once, at_once);
            for _ in 0..GOOD * at_once {
                pace.turn(holder(), &time).await.unwrap().answered();
            }
        }
        for _ in 0..100 {
            pace.turn(holder(), &time).await.unwrap().answered();
        }
        assert_eq!(pace.lock().at_once, 8, "never more than is allowed");
    }

    #[tokio::test]
    async fn a_rest_that_is_asked_for_is_kept_as_far_as_there_is_time() {
        let (pace, time) = (Pace::new(2), minutes(1));
        let [first, second] = <[_; 2]>::try_from(turns(&pace, 2, &time).await).unwrap();
        first.refused(429, Some(Duration::from_secs(7)));
        second.refused(503, Some(Duration::from_hours(9)));
        let rest = pace.rest(&Allowance::of_background(clock::instant())).unwrap().unwrap();
        assert!(rest > Duration::from_secs(50) && rest <= MAX_REST, "{rest:?}");
        let short = Allowance::until(clock::deadline(Duration::from_secs(30)));
        assert_eq!(pace.turn(holder(), &short).await.err(), Some(ModelError::Status(503)));
    }

    #[tokio::test]
    async fn nobody_waits_for_an_endpoint_that_is_out_of_order() {
        let (pace, time) = (Pace::new(2), minutes(9));
        pace.turn(holder(), &time).await.unwrap().refused(429, None);
        let rests_until = |until| pace.lock().refusal.as_mut().unwrap().until = until;
        pace.lock().refusal.as_mut().unwrap().since -= OUT_OF_ORDER;
        rests_until(clock::deadline(MAX_REST));
        assert_eq!(pace.turn(holder(), &time).await.err(), Some(ModelError::Status(429)));
        rests_until(clock::instant());
        let tries = pace.turn(holder(), &time).await.unwrap();
        tries.refused(429, None);
        assert_eq!(rest_of(&pace), (2 * REST, true));
        rests_until(clock::deadline(MAX_REST));
        assert_eq!(pace.turn(holder(), &time).await.err(), Some(ModelError::Status(429)));
    }

    #[tokio::test]
    async fn who_is_late_among_others_has_them_asked_less() {
        let (pace, time) = (Pace::new(8), minutes(1));
        let mut asked = turns(&pace, 8, &time).await;
        assert!(!asked.pop().unwrap().late(), "no answer comes so soon");
        asked.pop().unwrap().answered();
        let usual = pace.lock().usual.unwrap();
        tokio::time::sleep(usual).await;
        assert_eq!(pace.lock().at_once, 8);
        assert!(asked.pop().unwrap().late());
        assert_eq!(pace.lock().at_once, 3);
        assert!(asked.pop().unwrap().late(), "it was sent before");
        assert_eq!(pace.lock().at_once, 3);
        let crowd = pace.turn(holder(), &time).now_or_never();
        assert!(crowd.is_none(), "four are still under way");
        drop(asked);
        let alone = pace.turn(holder(), &time).await.unwrap();
        tokio::time::sleep(usual).await;
        assert!(!alone.late(), "the endpoint had nothing else to do");
        assert_eq!(pace.lock().at_once, 3);
    }
}
