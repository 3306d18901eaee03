//! Whether the wall clock has run evenly of late. Who is dead is judged by the wall clock, because signs of life are written
//! down by it: when it is set forward, or the machine has slept, all of them look old at once, also those of the living.
//! They get the time to give another one.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::time::Timestamp;

/// Between two looks the clocks of a machine may go apart by this much, milliseconds. With the pause between two signs of
/// life it stays well below the age at which a silent worker counts as dead.
const JUMP_MS: i64 = 2_000;
/// How long nobody is judged after a jump: three times the pause between two signs of life.
const SETTLING: Duration = Duration::from_secs(6);

/// Compares the wall clock with the one that only runs forward. Who judges seldom looks now and then besides, or what the
/// two go apart by in days is taken for a jump.
#[derive(Debug)]
pub struct EvenClock(Mutex<Seen>);

#[derive(Debug)]
struct Seen {
    at: Instant,
    wall: Timestamp,
    /// When the last jump was noticed.
    jumped: Option<Instant>,
}

impl EvenClock {
    /// Begins with what both clocks say now.
    pub fn new(at: Instant, wall: Timestamp) -> Self {
        Self(Mutex::new(Seen { at, wall, jumped: None }))
    }

    /// Whether ages by the wall clock can be trusted: it has not jumped since the last look, nor shortly before it.
    pub fn is_even(&self, at: Instant, wall: Timestamp) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = i64::try_from(at.saturating_duration_since(seen.at).as_millis()).unwrap_or(i64::MAX);
        let apart = wall.0.saturating_sub(seen.wall.0).saturating_sub(passed);
        if apart.saturating_abs() > JUMP_MS {
            tracing::warn!(ms = apart, "the wall clock has jumped; for a moment silence says nothing of workers");
            seen.jumped = Some(at);
        }
        // Looks of several threads come in any order; what lies behind says nothing.
        if at >= seen.at {
            (seen.at, seen.wall) = (at, wall);
        }
        seen.jumped.is_none_or(|jumped| at.saturating_duration_since(jumped) >= SETTLING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::store::nodes::{DEAD_MS, HEARTBEAT_MS};

    #[test]
    fn ages_are_not_trusted_until_everybody_had_time_for_a_sign_of_life() {
        const { assert!(JUMP_MS + 2 * HEARTBEAT_MS < DEAD_MS && SETTLING.as_millis() as i64 > 2 * HEARTBEAT_MS) };
        let (start, wall) = (clock::instant(), Timestamp(1_000_000));
        let looks = |jumps: &[(u64, i64)]| {
            let clock = EvenClock::new(start, wall);
            let look = |&(seconds, ahead): &(u64, i64)| {
                let at = start + Duration::from_secs(seconds);
                clock.is_even(at, wall.plus_ms(seconds as i64 * 1_000 + ahead))
            };
            jumps.iter().map(look).collect::<Vec<_>>()
        };
        assert_eq!(looks(&[(1, 0), (60, 900), (61, -900)]), [true, true, true], "put right in passing");
        for jump in [60_000, -60_000, 86_400_000] {
            assert_eq!(looks(&[(1, jump), (3, jump), (6, jump), (7, jump)]), [false, false, false, true], "{jump}");
        }
        assert_eq!(looks(&[(1, 9_000), (5, 0), (8, 0), (11, 0)]), [false, false, false, true], "and back");
        assert_eq!(looks(&[(2, 0), (1, 0), (3, 0)]), [true, true, true], "looks that come late");
    }
}
