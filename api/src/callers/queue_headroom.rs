//! How many more pages may wait in teams' queues, remembered for a moment: single pages are accepted on it without a look
//! at the rows.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use weir_shared::ids::TeamId;

/// Headroom of teams, as far as it was read lately.
#[derive(Default)]
pub struct QueueHeadroom(Mutex<HashMap<TeamId, (Instant, i64)>>);

impl QueueHeadroom {
    /// How long a look at the rows counts.
    const TRUSTED: Duration = Duration::from_secs(1);
    /// The part of the headroom that one process may fill on one look: with 64 processes the bound holds exactly.
    const PART: i64 = 64;

    /// Takes one page of what is known; `false`: look at the rows again.
    pub fn take(&self, team: TeamId, now: Instant) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get_mut(&team) {
            Some((seen, left)) if *left > 0 && now - *seen < Self::TRUSTED => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }

    /// Notes how many more pages of the team may wait, as its rows say now.
    pub fn learn(&self, team: TeamId, headroom: i64, now: Instant) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (seen, _)| now - *seen < Self::TRUSTED);
        known.insert(team, (now, headroom / Self::PART));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_fills_a_part_of_the_headroom_before_it_looks_again() {
        let (headroom, team) = (QueueHeadroom::default(), TeamId::new());
        let now = weir_shared::clock::instant();
        assert!(!headroom.take(team, now), "nothing is known");
        headroom.learn(team, 2 * QueueHeadroom::PART, now);
        assert_eq!([headroom.take(team, now), headroom.take(team, now), headroom.take(team, now)], [true, true, false]);
        assert!(!headroom.take(TeamId::new(), now));
    }
}
