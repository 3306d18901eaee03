//! Places for checks that take steps of their own: a search, a site of many pages. There are few, and no team has them all,
//! so that nobody stands behind somebody else's long work.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_shared::ids::TeamId;

/// Places of a worker, and how many of them a team may have.
const PLACES: usize = 8;
const OF_A_TEAM: usize = 5;

/// How many places each team has.
#[derive(Default)]
pub(super) struct Places(Mutex<HashMap<TeamId, usize>>);

/// A place, until it is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    team: TeamId,
}

impl Places {
    /// A place for a check of this team, if there is one.
    pub(super) fn take(self: &Arc<Self>, team: TeamId) -> Option<Place> {
        let mut taken = self.lock();
        let own = taken.get(&team).copied().unwrap_or(0);
        if own >= OF_A_TEAM || taken.values().sum::<usize>() >= PLACES {
            return None;
        }
        taken.insert(team, own + 1);
        Some(Place { places: Arc::clone(self), team })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TeamId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        if let Some(own) = taken.get_mut(&self.team) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.team);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_team_has_all_places() {
        let places = Arc::<Places>::default();
        let (one, other, third) = (TeamId::new(), TeamId::new(), TeamId::new());
        let of = |team| (0..PLACES).map_while(|_| places.take(team)).collect::<Vec<_>>();
        let mut first = of(one);
        assert_eq!((first.len(), of(other).len()), (OF_A_TEAM, PLACES - OF_A_TEAM));
        let second = of(other);
        assert!(places.take(third).is_none(), "all are taken");
        first.pop();
        assert!(places.take(third).is_some());
        drop((first, second));
        assert!(places.lock().is_empty());
    }
}
