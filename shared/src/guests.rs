//! Guests: who has waited a moment and has few pages in work begins beside places that others hold long.
//!
//! A page may take minutes: its site says nothing, a model thinks, its caller wants to wait. Where such pages hold every place,
//! nobody else's may stand behind them. What callers on the line wait for and background pages of a team are two holders, each
//! with guests of its own.

use std::collections::HashMap;
use std::time::Duration;

use crate::ids::TeamId;

/// How long a place is waited for before a guest is let in.
pub const STILL: Duration = Duration::from_millis(250);
/// A holder's share of the places: one in so many, one at least. With fewer in work it may begin as a guest.
const SHARE: usize = 4;

/// Whether somebody waits for the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Urgency {
    /// A caller waits for it.
    Direct,
    /// A page of a batch, a crawl, a task or a check.
    Background,
}

/// Whose pages they are.
pub type Holder = (TeamId, Urgency);

/// Who holds how many places.
#[derive(Debug)]
pub struct Guests {
    places: usize,
    held: HashMap<Holder, usize>,
}

impl Guests {
    /// For a number of `places`.
    pub fn new(places: usize) -> Self {
        Self { places, held: HashMap::new() }
    }

    /// There are so many places from now on.
    pub fn resize(&mut self, places: usize) {
        self.places = places;
    }

    /// A holder's share of the places.
    pub fn share(&self) -> usize {
        (self.places / SHARE).max(1)
    }

    /// How many places the holder has.
    pub fn held(&self, holder: Holder) -> usize {
        self.held.get(&holder).copied().unwrap_or_default()
    }

    /// Whether the holder has so few in work that it may begin as a guest, where there is room.
    pub fn may_enter(&self, holder: Holder) -> bool {
        self.held(holder) < self.share()
    }

    /// Counts a page that the holder begins.
    pub fn count(&mut self, holder: Holder) {
        *self.held.entry(holder).or_default() += 1;
    }

    /// Counts it off again.
    pub fn uncount(&mut self, holder: Holder) {
        if let Some(own) = self.held.get_mut(&holder) {
            *own -= 1;
            if *own == 0 {
                self.held.remove(&holder);
            }
        }
    }

    /// Whether nobody holds anything.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}
