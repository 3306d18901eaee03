//! Places that many want, of which no single one may have all: a bound on all holders, and a smaller one on those that
//! belong together, such as the pages of one site.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Names remembered at least before those without a holder are forgotten.
const NAMES: usize = 1_024;

/// What those of one name have in common, for as long as one of them holds it.
#[derive(Debug)]
pub struct Common<K, T>(Mutex<Named<K, T>>);

#[derive(Debug)]
struct Named<K, T> {
    of: HashMap<K, Weak<T>>,
    /// With so many names it is looked for those without a holder: twice as many as had one at the last look, so that a look
    /// costs little a name however many are held.
    full: usize,
}

impl<K, T> Default for Common<K, T> {
    fn default() -> Self {
        Self(Mutex::new(Named { of: HashMap::new(), full: NAMES }))
    }
}

impl<K: Eq + Hash, T> Common<K, T> {
    /// What those of this name have; made where nobody holds any.
    pub fn of<Q>(&self, name: &Q, make: impl FnOnce() -> T) -> Arc<T>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        let mut named = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = named.of.get(name).and_then(Weak::upgrade) {
            return own;
        }
        if named.of.len() >= named.full {
            named.of.retain(|_, own| own.strong_count() > 0);
            named.full = NAMES.max(2 * named.of.len());
        }
        let own = Arc::new(make());
        named.of.insert(name.to_owned(), Arc::downgrade(&own));
        own
    }

    /// The same; `None` where nobody holds any.
    pub fn held(&self, name: &K) -> Option<Arc<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).of.get(name).and_then(Weak::upgrade)
    }
}

/// Places that names share: a number in all, and a smaller one for each name.
#[derive(Debug)]
pub struct Shares<K = String> {
    all: Arc<Semaphore>,
    /// Places of one name.
    each: usize,
    named: Common<K, Semaphore>,
}

/// One place, given back when it is dropped.
#[derive(Debug)]
pub struct Share {
    _of_name: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl<K: Eq + Hash> Shares<K> {
    /// `all` places, of which one name takes `each` at most.
    pub fn new(all: usize, each: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(all)), each, named: Common::default() }
    }

    /// A place for somebody who belongs to `name`, as soon as there is one. Whoever waits for a place of the name keeps
    /// none of the others' from them.
    pub async fn take<Q>(&self, name: &Q) -> Share
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        let own = self.named.of(name, || Semaphore::new(self.each));
        // The semaphores are never closed, so both places are given in the end.
        loop {
            let Ok(of_name) = Arc::clone(&own).acquire_owned().await else { continue };
            let Ok(of_all) = Arc::clone(&self.all).acquire_owned().await else { continue };
            return Share { _of_name: of_name, _of_all: of_all };
        }
    }

    /// The same, if there is one now.
    pub fn try_take<Q>(&self, name: &Q) -> Option<Share>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        let own = self.named.of(name, || Semaphore::new(self.each));
        let of_name = own.try_acquire_owned().ok()?;
        let of_all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(Share { _of_name: of_name, _of_all: of_all })
    }

    /// How many places one name has.
    pub fn each(&self) -> usize {
        self.each
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::pin::pin;

    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn one_name_never_has_all_places_and_all_have_no_more_than_there_are() {
        let shares = Shares::<String>::new(3, 2);
        let first = shares.take("a").await;
        let _second = shares.take("a").await;
        let mut third = pin!(shares.take("a"));
        assert!(third.as_mut().now_or_never().is_none(), "its own places are taken");
        let other = shares.take("b").now_or_never().expect("the third waits without holding a place");
        let mut full = pin!(shares.take("c"));
        assert!(full.as_mut().now_or_never().is_none(), "all places are taken");
        drop(other);
        full.as_mut().now_or_never().unwrap();
        drop(first);
        third.as_mut().now_or_never().unwrap();
    }

    #[test]
    fn who_does_not_wait_is_told_at_once_and_keeps_nobodys_place() {
        let shares = Shares::<u8>::new(3, 2);
        let mut taken: Vec<Share> = (0..4).filter_map(|_| shares.try_take(&1)).collect();
        assert_eq!(taken.len(), shares.each());
        taken.extend(shares.try_take(&2));
        assert!(shares.try_take(&3).is_none(), "all places are taken");
        drop(taken.remove(0));
        assert!(shares.try_take(&3).is_some() && shares.try_take(&1).is_some());
    }

    #[tokio::test]
    async fn names_without_a_holder_are_forgotten() {
        let shares = Shares::<String>::new(10, 1);
        let _kept = shares.take("kept").await;
        for n in 0..3 * NAMES {
            drop(shares.take(&n.to_string()).await);
        }
        assert!(shares.named.0.lock().unwrap().of.len() <= NAMES);
        assert!(shares.take("kept").now_or_never().is_none());
        // Where many are held, they are not looked through for each that comes.
        let shares = Shares::<usize>::new(4 * NAMES, 1);
        let held: Vec<Share> = (0..2 * NAMES).filter_map(|n| shares.try_take(&n)).collect();
        assert_eq!((held.len(), shares.named.0.lock().unwrap().full), (2 * NAMES, 2 * NAMES));
        drop(held);
        for n in 0..3 * NAMES {
            drop(shares.take(&n).await);
        }
        assert!(shares.named.0.lock().unwrap().of.len() <= 2 * NAMES, "and are forgotten all the same");
    }
}
