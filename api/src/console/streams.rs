//! The tabs of a process that listen to how things stand, and what they are told. `stream` asks and tells.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use weir_shared::ids::TeamId;
use weir_shared::time::Timestamp;

/// Tabs that one process serves at once: of all teams, and as many of operators, whom no team keeps out.
const MOST: usize = 64;
/// Of these, tabs of one team.
const EACH: usize = 16;

/// Where a tab hears of samples; `None`: there is none yet.
pub type Told = watch::Receiver<Option<Arc<Sample>>>;

/// What all tabs of a process share.
#[derive(Default)]
pub struct Streams(Mutex<State>);

#[derive(Default)]
struct State {
    /// Sessions that listen: how many tabs, and what ends them.
    sessions: HashMap<String, (usize, CancellationToken)>,
    /// Tabs of each team, and of operators (`None`).
    tabs: HashMap<Option<TeamId>, usize>,
    /// Where the task tells what it found; `None`: there is no task.
    told: Option<watch::Sender<Option<Arc<Sample>>>>,
}

/// What a tab gets that listens.
pub struct Joined {
    pub told: Told,
    pub over: CancellationToken,
    /// Whether nobody asks the database yet.
    pub is_first: bool,
}

/// How things stood at a moment.
#[derive(Debug, Default)]
pub struct Sample {
    pub at: Option<Timestamp>,
    pub teams: BTreeMap<TeamId, TeamSample>,
    pub workers: Vec<Worker>,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct TeamSample {
    pub queued: i64,
    pub jobs: i64,
    pub oldest: Option<Timestamp>,
    pub running: i64,
    pub sessions: i64,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsoleStreamWorker")]
pub struct Worker {
    pub id: String,
    pub name: String,
    pub state: String,
    pub busy: i64,
    pub slots: i64,
    pub sessions: i64,
    pub session_slots: i64,
    pub browsers: i64,
    pub memory_bytes: Option<i64>,
    pub pages_per_second: f64,
    #[serde(skip)]
    #[schemars(skip)]
    pub rates: BTreeMap<String, (f64, f64)>,
}

impl Streams {
    /// Ends the streams of a session.
    pub fn end(&self, session: &str) {
        let state = self.lock();
        if let Some((_, over)) = state.sessions.get(session) {
            over.cancel();
        }
    }

    /// Another tab listens, of a team's session or an operator's; `None`: there are too many.
    pub fn join(&self, session: &str, team: Option<TeamId>) -> Option<Joined> {
        let mut state = self.lock();
        let alike = |tabs: &&Option<TeamId>| tabs.is_some() == team.is_some();
        let all: usize = state.tabs.iter().filter(|(of, _)| alike(of)).map(|(_, tabs)| tabs).sum();
        let own = state.tabs.get(&team).copied().unwrap_or_default();
        if all >= MOST || (team.is_some() && own >= EACH) {
            return None;
        }
        state.tabs.insert(team, own + 1);
        let (tabs, over) = state.sessions.entry(session.to_owned()).or_default();
        *tabs += 1;
        let over = over.clone();
        let (told, is_first) = match &state.told {
            Some(told) => (told.subscribe(), false),
            None => {
                let (told, receiver) = watch::channel(None);
                state.told = Some(told);
                (receiver, true)
            }
        };
        Some(Joined { told, over, is_first })
    }

    /// A tab that had joined is gone.
    pub fn leave(&self, session: &str, team: Option<TeamId>) {
        let mut state = self.lock();
        if let Some(tabs) = state.tabs.get_mut(&team) {
            *tabs -= 1;
            if *tabs == 0 {
                state.tabs.remove(&team);
            }
        }
        if let Some((tabs, _)) = state.sessions.get_mut(session) {
            *tabs -= 1;
            if *tabs == 0 {
                state.sessions.remove(session);
            }
        }
    }

    /// Sessions that listen; `None`: nobody does, and the task is over.
    pub fn listeners(&self) -> Option<Vec<String>> {
        let mut state = self.lock();
        if state.tabs.is_empty() {
            state.told = None;
            return None;
        }
        Some(state.sessions.keys().cloned().collect())
    }

    pub fn tell(&self, sample: Sample) {
        let state = self.lock();
        if let Some(told) = &state.told {
            told.send_replace(Some(Arc::new(sample)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_team_takes_all_tabs_and_teams_none_of_the_operators() {
        let streams = Streams::default();
        let teams: Vec<_> = (0..6).map(|_| Some(TeamId::new())).collect();
        let join = |team| (0..2 * MOST).filter(|_| streams.join("session", team).is_some()).count();
        assert_eq!(teams.iter().map(|team| join(*team)).collect::<Vec<_>>(), [EACH, EACH, EACH, EACH, 0, 0]);
        assert_eq!(join(None), MOST);
        streams.leave("session", teams[0]);
        assert_eq!([join(teams[1]), join(teams[5]), join(None)], [0, 1, 0]);
        for (team, tabs) in [(teams[0], EACH - 1), (teams[5], 1), (None, MOST)] {
            (0..tabs).for_each(|_| streams.leave("session", team));
        }
        for team in &teams[1..4] {
            assert!(streams.listeners().is_some());
            (0..EACH).for_each(|_| streams.leave("session", *team));
        }
        assert!(streams.listeners().is_none(), "all are gone");
    }
}
