//! Chance: the only module that asks for random numbers.
//!
//! Ids sort by time. Names, marks and jitter come from the thread's generator, which a test can replace by one with a
//! known start ([`seed`]). Keys come from the operating system and can fail ([`fill_secret`]); no seed reaches them.
//! `clippy.toml` forbids the functions behind these elsewhere.

#![expect(clippy::disallowed_methods, reason = "this is the one place that they are called in")]

use std::cell::RefCell;

use rand::rngs::{OsRng, StdRng};
use rand::{Rng as _, SeedableRng as _, TryRngCore as _};
use ulid::Ulid;
use uuid::Uuid;

thread_local! {
    /// The generator with a known start, in tests.
    static SEEDED: RefCell<Option<StdRng>> = const { RefCell::new(None) };
}

/// A fresh id (UUID version 7): those of one process sort in the order in which they were made.
pub fn id() -> Uuid {
    Uuid::now_v7()
}

/// The same in the queue library's form. Its own are in no order within a millisecond, and wake-ups of one second are
/// taken in the order of their ids.
pub fn wakeup_id() -> Ulid {
    Ulid::from(id().as_u128())
}

/// Random bytes, for what must only be different each time or hard to guess from outside.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    draw(|generator| generator.fill_bytes(&mut bytes));
    bytes
}

/// Twice as many random hexadecimal digits as `N`.
pub fn hex<const N: usize>() -> String {
    hex::encode(bytes::<N>())
}

/// A random number from 0 to `most`, both included.
pub fn up_to(most: u64) -> u64 {
    draw(|generator| generator.random_range(0..=most))
}

/// A random position in something of this length, which must not be 0.
pub fn index(length: usize) -> usize {
    draw(|generator| generator.random_range(0..length))
}

/// Fills `bytes` with what no one can foresee, from the operating system.
///
/// # Errors
/// When the operating system gives none.
pub fn fill_secret(bytes: &mut [u8]) -> Result<(), rand::rand_core::OsError> {
    OsRng.try_fill_bytes(bytes)
}

/// From now on this thread draws the same numbers each time, until the answer is dropped. For tests.
pub fn seed(start: u64) -> Seeded {
    SEEDED.set(Some(StdRng::seed_from_u64(start)));
    Seeded
}

/// As long as it lives, its thread draws from a generator with a known start ([`seed`]).
#[derive(Debug)]
#[must_use = "the seed is gone when this is dropped"]
pub struct Seeded;

impl Drop for Seeded {
    fn drop(&mut self) {
        SEEDED.set(None);
    }
}

fn draw<T>(with: impl FnOnce(&mut dyn rand::RngCore) -> T) -> T {
    SEEDED.with_borrow_mut(|seeded| match seeded {
        Some(generator) => with(generator),
        None => with(&mut rand::rng()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_one_millisecond_sort_in_the_order_in_which_they_were_made() {
        let ids: Vec<String> = (0..5_000).map(|_| wakeup_id().to_string()).collect();
        assert!(ids.is_sorted());
    }

    #[test]
    fn a_seed_gives_the_same_numbers_until_it_is_dropped() {
        let draw = || (up_to(1_000_000), index(1_000_000), hex::<8>());
        let [first, second] = [7, 7].map(|start| {
            let _seeded = seed(start);
            draw()
        });
        assert_eq!(first, second);
        assert_eq!(first.2.len(), 16);
        assert_ne!(draw(), draw());
    }
}
