//! Whether the silence of a worker says something of the worker. Who is dead is judged by the age of what everybody writes
//! into the database as a sign of life. All of it looks old at once, also that of the living, when nobody could write for a
//! while, and when the wall clock was set forward or the machine has slept. Then everybody gets the time to give another one.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::time::Timestamp;

/// Between two looks the clocks of a machine may go apart by this much, milliseconds. With the pause between two signs of
/// life it stays well below the age at which a silent worker counts as dead.
const JUMP_MS: i64 = 2_000;
/// Who has not written for so long does not know whether others could.
const GAP: Duration = Duration::from_millis(4_500);
/// How long nobody is judged after a jump or a gap: a sign of life that was begun in the gap may take until its bound, and
/// another one follows after the pause between two.
const SETTLING: Duration = Duration::from_secs(6);

/// What a process that may judge others has seen of late: how the wall clock ran beside the one that only runs forward, and
/// when it could write to the database itself.
#[derive(Debug)]
pub struct Witness(Mutex<Seen>);

#[derive(Debug)]
struct Seen {
    at: Instant,
    wall: Timestamp,
    /// When it could write last. `None`: it could not when it tried last.
    written: Option<Instant>,
    /// When the last jump was noticed, or the last gap was over.
    unsettled: Option<Instant>,
}

impl Witness {
    /// Begins with what both clocks say now. The database has just answered.
    pub fn new(at: Instant, wall: Timestamp) -> Self {
        Self(Mutex::new(Seen { at, wall, written: Some(at), unsettled: None }))
    }

    /// The process has written to the database, or could have: to be told every two seconds.
    pub fn wrote(&self, at: Instant, wall: Timestamp) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.look(at, wall);
        if seen.written.is_none_or(|written| at.saturating_duration_since(written) > GAP) {
            seen.unsettled = Some(at);
        }
        seen.written = Some(at);
    }

    /// It has tried to write, in vain.
    pub fn could_not_write(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).written = None;
    }

    /// When it could write last; `None`: it could not when it tried last.
    pub fn written(&self) -> Option<Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).written
    }

    /// Whether ages of signs of life can be trusted: the process could write all the time of late, and the wall clock has not
    /// jumped. To be asked when the transaction that judges has begun, which may have been waited for.
    pub fn may_judge(&self, at: Instant, wall: Timestamp) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.look(at, wall);
        seen.written.is_some_and(|written| at.saturating_duration_since(written) <= GAP)
            && seen.unsettled.is_none_or(|since| at.saturating_duration_since(since) >= SETTLING)
    }
}

impl Seen {
    /// Compares the clocks with what they said at the last look.
    fn look(&mut self, at: Instant, wall: Timestamp) {
        let passed = i64::try_from(at.saturating_duration_since(self.at).as_millis()).unwrap_or(i64::MAX);
        let apart = wall.0.saturating_sub(self.wall.0).saturating_sub(passed);
        if apart.saturating_abs() > JUMP_MS {
            tracing::warn!(ms = apart, "the wall clock has jumped; for a moment silence says nothing of workers");
            self.unsettled = Some(at);
        }
        // Looks of several threads come in any order; what lies behind says nothing.
        if at >= self.at {
            (self.at, self.wall) = (at, wall);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::store::work::nodes::{DEAD_MS, HEARTBEAT_MS};

    const _: () = {
        assert!(JUMP_MS + 2 * HEARTBEAT_MS < DEAD_MS && SETTLING.as_millis() as i64 > 2 * HEARTBEAT_MS);
        // A gap that is not noticed makes nobody look dead: it, and one pause before it and one after.
        assert!(GAP.as_millis() as i64 + 2 * HEARTBEAT_MS < DEAD_MS);
    };

    #[test]
    fn ages_are_not_trusted_until_everybody_had_time_for_a_sign_of_life() {
        let (start, wall) = (clock::instant(), Timestamp(1_000_000));
        let looks = |jumps: &[(u64, i64)]| {
            let witness = Witness::new(start, wall);
            let look = |&(seconds, ahead): &(u64, i64)| {
                let at = start + Duration::from_secs(seconds);
                let wall = wall.plus_ms(seconds as i64 * 1_000 + ahead);
                witness.wrote(at, wall);
                witness.may_judge(at, wall)
            };
            jumps.iter().map(look).collect::<Vec<_>>()
        };
        assert_eq!(looks(&[(1, 0), (3, 900), (4, -900)]), [true, true, true], "put right in passing");
        for jump in [60_000, -60_000, 86_400_000] {
            assert_eq!(looks(&[(1, jump), (3, jump), (6, jump), (7, jump)]), [false, false, false, true], "{jump}");
        }
        assert_eq!(looks(&[(1, 9_000), (5, 0), (8, 0), (11, 0)]), [false, false, false, true], "and back");
        assert_eq!(looks(&[(2, 0), (1, 0), (3, 0)]), [true, true, true], "looks that come late");
    }

    #[test]
    fn nobody_is_judged_while_the_database_takes_nothing_nor_shortly_after() {
        let (start, wall) = (clock::instant(), Timestamp(1_000_000));
        let at = |seconds: u64| (start + Duration::from_secs(seconds), wall.plus_ms(seconds as i64 * 1_000));
        let witness = Witness::new(start, wall);
        let wrote = |seconds| witness.wrote(at(seconds).0, at(seconds).1);
        let may_judge = |seconds| witness.may_judge(at(seconds).0, at(seconds).1);
        assert!(may_judge(4), "a pause");
        assert!(!may_judge(5), "nothing was heard of the last attempt");
        wrote(20);
        assert_eq!([20, 23].map(may_judge), [false, false], "others may not have come to it yet");
        (22..=26).step_by(2).for_each(wrote);
        assert!(may_judge(26));
        witness.could_not_write();
        assert!(!may_judge(26));
        wrote(27);
        (29..=33).step_by(2).for_each(wrote);
        assert_eq!([32, 33].map(may_judge), [false, true], "a failure is a gap, however short");
    }
}
