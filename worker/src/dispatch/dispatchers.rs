//! For which teams this worker claims pages at the moment, and when it looks for those of others.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use weir_shared::ids::TeamId;
use weir_shared::time::Timestamp;

/// The teams this worker is claiming pages for: one dispatcher each. A wake-up for a team that has its dispatcher already
/// makes that one look once more.
#[derive(Debug, Default)]
pub struct TeamDispatchers {
    /// The teams with a dispatcher at work; whether a wake-up came meanwhile.
    at_work: Mutex<HashMap<TeamId, bool>>,
    /// When a team is served again without a wake-up: a page of it is due then.
    alarms: Mutex<HashMap<TeamId, Timestamp>>,
}

impl TeamDispatchers {
    /// Starts the team's dispatcher. `false`: it is at work, and will look again.
    pub fn start(&self, team: TeamId) -> bool {
        let mut at_work = self.at_work.lock().unwrap_or_else(PoisonError::into_inner);
        match at_work.get_mut(&team) {
            Some(again) => {
                *again = true;
                false
            }
            None => {
                at_work.insert(team, false);
                true
            }
        }
    }

    /// Ends it, unless a wake-up came meanwhile (`false`: look again).
    pub fn end(&self, team: TeamId) -> bool {
        let mut at_work = self.at_work.lock().unwrap_or_else(PoisonError::into_inner);
        if at_work.get(&team) == Some(&true) {
            at_work.insert(team, false);
            return false;
        }
        at_work.remove(&team);
        true
    }

    /// Sets the team's alarm, of which there is one. `false`: it goes off earlier anyway.
    pub fn set_alarm(&self, team: TeamId, at: Timestamp) -> bool {
        let mut alarms = self.alarms.lock().unwrap_or_else(PoisonError::into_inner);
        if alarms.get(&team).is_some_and(|set| *set <= at) {
            return false;
        }
        alarms.insert(team, at);
        true
    }

    /// Takes the alarm that goes off now. `false`: an earlier one has replaced it.
    pub fn take_alarm(&self, team: TeamId, at: Timestamp) -> bool {
        let mut alarms = self.alarms.lock().unwrap_or_else(PoisonError::into_inner);
        let is_set = alarms.get(&team) == Some(&at);
        if is_set {
            alarms.remove(&team);
        }
        is_set
    }

    /// Ends it whatever came: after an error, when its wake-up is delivered again.
    pub fn abandon(&self, team: TeamId) {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner).remove(&team);
    }
}
