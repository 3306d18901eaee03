//! The places for deliveries of webhooks: some for each team, which its receivers share.
//!
//! A receiver that does not answer holds each place for as long as it may take. So whoever of a team's receivers has the fewest
//! places gets the next one, and the last one is for a receiver that has less than half: the team's others do not wait for it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use url::Url;
use weir_shared::ids::TeamId;
use weir_shared::shares::Common;
use weir_shared::store::StoreResult;

use crate::context::{WorkerContext, stopping};

/// Places of all teams.
#[derive(Debug)]
pub struct Receivers {
    all: Arc<Semaphore>,
    /// Places of one team.
    each: usize,
    teams: Common<TeamId, Mutex<Team>>,
}

/// One place, given back when it is dropped.
#[derive(Debug)]
pub struct Place {
    _of_team: TeamPlace,
    _of_all: OwnedSemaphorePermit,
}

/// What one team has, and who of it waits.
#[derive(Debug)]
struct Team {
    size: usize,
    /// Places of each receiver that has any.
    held: HashMap<String, usize>,
    /// In order of arrival.
    waiting: VecDeque<(String, oneshot::Sender<TeamPlace>)>,
}

/// One of a team's places.
#[derive(Debug)]
struct TeamPlace {
    team: Arc<Mutex<Team>>,
    receiver: String,
}

impl Receivers {
    /// `all` places, of which one team has `each` at most, 1 upwards.
    pub fn new(all: usize, each: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(all)), each, teams: Common::default() }
    }

    /// A place for deliveries to an address that the team has named, as soon as there is one.
    ///
    /// # Errors
    /// When the worker stops first: the wake-up goes back.
    pub async fn take(&self, team: TeamId, url: &str, context: &WorkerContext) -> StoreResult<Place> {
        tokio::select! {
            biased;
            () = context.draining.cancelled() => Err(stopping()),
            () = context.fenced.cancelled() => Err(stopping()),
            place = self.place(team, url) => Ok(place),
        }
    }

    async fn place(&self, team: TeamId, url: &str) -> Place {
        let own = self.teams.of(&team, || Mutex::new(Team::new(self.each)));
        // Who waits is never forgotten, and the semaphore never closed, so both are given in the end.
        loop {
            let Ok(of_team) = wait(&own, receiver_of(url)).await else { continue };
            let Ok(of_all) = Arc::clone(&self.all).acquire_owned().await else { continue };
            return Place { _of_team: of_team, _of_all: of_all };
        }
    }
}

/// Who answers at an address: host and port.
fn receiver_of(url: &str) -> String {
    let parsed = Url::parse(url).ok();
    let found = parsed.as_ref().and_then(|url| Some((url.host_str()?, url.port_or_known_default()?)));
    found.map_or_else(|| url.to_owned(), |(host, port)| format!("{host}:{port}"))
}

/// Stands in the team's line until the receiver has a place.
fn wait(team: &Arc<Mutex<Team>>, receiver: String) -> oneshot::Receiver<TeamPlace> {
    let (sender, place) = oneshot::channel();
    lock(team).waiting.push_back((receiver, sender));
    give(team);
    place
}

/// Gives the places that are free.
fn give(team: &Arc<Mutex<Team>>) {
    loop {
        let Some((receiver, sender)) = lock(team).next() else { return };
        // Who has gone in this moment gives it back by not taking it.
        let _ = sender.send(TeamPlace { team: Arc::clone(team), receiver });
    }
}

fn lock(team: &Mutex<Team>) -> MutexGuard<'_, Team> {
    team.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Team {
    fn new(size: usize) -> Self {
        Self { size, held: HashMap::new(), waiting: VecDeque::new() }
    }

    /// Whose turn it is, with the place counted. `None`: nobody's.
    fn next(&mut self) -> Option<(String, oneshot::Sender<TeamPlace>)> {
        self.waiting.retain(|(_, sender)| !sender.is_closed());
        let free = self.size.saturating_sub(self.held.values().sum());
        let held = |receiver: &String| self.held.get(receiver).copied().unwrap_or(0);
        let (has, index) =
            self.waiting.iter().enumerate().map(|(index, (receiver, _))| (held(receiver), index)).min()?;
        // A team with one place has none to spare.
        if free == 0 || (free == 1 && has >= self.size / 2 && self.size > 1) {
            return None;
        }
        let (receiver, sender) = self.waiting.remove(index)?;
        *self.held.entry(receiver.clone()).or_default() += 1;
        Some((receiver, sender))
    }
}

impl Drop for TeamPlace {
    fn drop(&mut self) {
        let mut team = lock(&self.team);
        if let Some(held) = team.held.get_mut(&self.receiver) {
            *held -= 1;
            if *held == 0 {
                team.held.remove(&self.receiver);
            }
        }
        drop(team);
        give(&self.team);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::pin::pin;

    use futures_util::FutureExt as _;

    use super::*;

    const DEAD: &str = "https://dead.example/a";
    const GOOD: &str = "https://good.example/hook";

    #[tokio::test]
    async fn a_receiver_that_holds_its_places_leaves_one_to_the_others_of_its_team() {
        let (receivers, team) = (Receivers::new(64, 8), TeamId::new());
        let mut held = Vec::new();
        for n in 0..7 {
            // Another path and the port that goes without saying are the same receiver.
            let url = format!("https://dead.example:443/{n}");
            held.push(receivers.place(team, &url).now_or_never().expect("seven of eight"));
        }
        let mut more: Vec<_> = (0..20).map(|_| Box::pin(receivers.place(team, DEAD))).collect();
        assert!(more.iter_mut().all(|place| place.now_or_never().is_none()), "the last one is another's");
        let good = receivers.place(team, GOOD).now_or_never().expect("nobody is waited for");
        let mut next = pin!(receivers.place(team, GOOD));
        assert!(next.as_mut().now_or_never().is_none(), "all are taken");
        held.pop();
        let second = next.as_mut().now_or_never().expect("it has fewer than those that came before it");
        drop(good);
        assert!(more.iter_mut().all(|place| place.now_or_never().is_none()), "the last one again");
        drop(second);
        let taken: Vec<_> = more.iter_mut().filter_map(|place| place.now_or_never()).collect();
        assert_eq!(taken.len(), 1, "seven again");
        let _other = receivers.place(TeamId::new(), DEAD).now_or_never().expect("another team's");
    }

    #[tokio::test]
    async fn who_has_gone_takes_no_place_with_it() {
        let (receivers, team) = (Receivers::new(2, 1), TeamId::new());
        let only = receivers.place(team, DEAD).await;
        let mut gone = Box::pin(receivers.place(team, GOOD));
        assert!((&mut gone).now_or_never().is_none());
        let mut given = Box::pin(receivers.place(team, GOOD));
        assert!((&mut given).now_or_never().is_none());
        drop(gone);
        drop(only);
        // It was given in the moment in which it goes.
        drop(given);
        let place = receivers.place(team, DEAD).now_or_never().expect("it came back");
        drop(place);
        // The number of all teams is kept, too.
        let [_one, _two] = [receivers.place(team, DEAD).await, receivers.place(TeamId::new(), DEAD).await];
        assert!(receivers.place(TeamId::new(), GOOD).now_or_never().is_none());
    }
}
