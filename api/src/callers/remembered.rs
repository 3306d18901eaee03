//! Values remembered for a moment, by key: what many requests in a row ask for is read once.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The values. At the bound those whose moment has passed are forgotten, and all of them where that frees nothing.
pub struct Remembered<K, V> {
    values: Mutex<HashMap<K, (Instant, V)>>,
    /// How long a value is trusted.
    trusted: Duration,
    /// Most values remembered at once.
    most: usize,
}

impl<K: Eq + Hash, V: Clone> Remembered<K, V> {
    /// None yet.
    pub fn new(trusted: Duration, most: usize) -> Self {
        Self { values: Mutex::default(), trusted, most }
    }

    /// The value, if it was put here a moment before `now`.
    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q, now: Instant) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        values.get(key).filter(|(until, _)| *until > now).map(|(_, value)| value.clone())
    }

    /// Keeps the value for a moment from `now`.
    pub fn put(&self, key: K, value: V, now: Instant) {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        if values.len() >= self.most {
            values.retain(|_, (until, _)| *until > now);
            if values.len() >= self.most {
                values.clear();
            }
        }
        values.insert(key, (now + self.trusted, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_forgotten_when_its_moment_has_passed_and_there_are_never_too_many() {
        let second = Duration::from_secs(1);
        let values = Remembered::new(second, 2);
        let start = weir_shared::clock::instant();
        values.put("a".to_owned(), 1, start);
        values.put("b".to_owned(), 2, start + second / 2);
        assert_eq!((values.get("a", start), values.get("a", start + second)), (Some(1), None));
        // The first one makes room.
        values.put("c".to_owned(), 3, start + second);
        assert_eq!((values.get("b", start + second), values.get("c", start + second)), (Some(2), Some(3)));
        // Nothing else can be forgotten than all.
        values.put("d".to_owned(), 4, start + second);
        assert_eq!((values.get("b", start + second), values.get("d", start + second)), (None, Some(4)));
    }
}
