//! The turns of teams in the line of pages that somebody waits for ([`Turn`]): those that this process has sent there and
//! whose callers still wait.

use std::sync::{Mutex, PoisonError};

use weir_shared::ids::TeamId;
use weir_shared::queue::Turn;
use weir_shared::shares::Common;

/// Of all teams with pages there.
pub type Turns = Common<TeamId, TeamTurns>;

/// The turns of one team.
#[derive(Debug, Default)]
pub struct TeamTurns {
    next: Mutex<Turn>,
}

impl TeamTurns {
    /// The first turn that the team's next page may have; each page has one of its own.
    pub fn next(&self) -> Turn {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let own = *next;
        *next = own.next();
        own
    }

    /// Notes the turn of a page that could have had `not_before`. An earlier one says that the turns have begun anew.
    pub fn took(&self, not_before: Turn, turn: Turn) {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        *next = if turn < not_before { turn.next() } else { (*next).max(turn.next()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_teams_pages_have_one_turn_after_another_until_the_line_begins_anew() {
        let (team, first) = (TeamTurns::default(), Turn::default());
        let [one, two] = [team.next(), team.next()];
        assert_eq!([one, two], [first, first.next()], "pages at the same moment have two");
        let late = (0..10).fold(first, |turn, _| turn.next());
        team.took(one, late);
        team.took(two, late);
        let three = team.next();
        assert_eq!(three, late.next(), "the line is further");
        team.took(three, first);
        assert_eq!(team.next(), first.next(), "nobody waited");
    }
}
