//! Which claimed pages this worker has in work, so that a claim that the rows name and nobody works on is found.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use weir_shared::ids::PageId;
use weir_shared::store::work::page::rows::Claimed;
use weir_shared::traces::{self, Side, Span};

/// The pages that this worker knows it has, until their end is written. A row may say more: a claim whose answer is lost
/// with its connection, a page whose work broke off.
#[derive(Debug, Default)]
pub struct HeldPages(Mutex<Held>);

/// By page and epoch.
#[derive(Debug, Default)]
struct Held {
    pages: HashSet<(PageId, i64)>,
    /// Those whose work broke off before an end was handed in.
    broken: HashSet<(PageId, i64)>,
}

impl HeldPages {
    /// Holds a claimed page until the answer is dropped.
    pub fn hold(self: &Arc<Self>, page: &Claimed) -> HeldPage {
        let claim = (page.id, page.epoch);
        self.lock().pages.insert(claim);
        HeldPage { held: Arc::clone(self), claim, is_settled: false, commit: Span::default(), attempt: Span::default() }
    }

    /// Whether the page is in work here.
    pub fn contains(&self, page: &Claimed) -> bool {
        self.lock().pages.contains(&(page.id, page.epoch))
    }

    /// The pages whose work broke off, by page and epoch.
    pub fn broken(&self) -> HashSet<(PageId, i64)> {
        self.lock().broken.clone()
    }

    /// Forgets those that are in work no more.
    pub fn forget_broken<'a>(&self, gone: impl Iterator<Item = &'a (PageId, i64)>) {
        let mut held = self.lock();
        for claim in gone {
            held.broken.remove(claim);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of [`HeldPages`]. Dropped without [`HeldPage::settle`], it counts as work that broke off.
#[derive(Debug)]
pub struct HeldPage {
    held: Arc<HeldPages>,
    claim: (PageId, i64),
    is_settled: bool,
    /// The spans of its end and of the whole attempt, which end with the hold; in this order.
    commit: Span,
    attempt: Span,
}

impl HeldPage {
    /// The end of the attempt is handed in: from here on it waits to be written.
    pub fn traced(mut self, attempt: Span) -> Self {
        self.commit = traces::below(attempt.own(), "commit", Side::Internal);
        self.attempt = attempt;
        self
    }

    /// The attempt has its end: it is written, or was overtaken.
    pub fn settle(mut self) {
        self.is_settled = true;
    }
}

impl Drop for HeldPage {
    fn drop(&mut self) {
        let mut held = self.held.lock();
        held.pages.remove(&self.claim);
        if !self.is_settled {
            held.broken.insert(self.claim);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::claimed_page;

    #[test]
    fn work_that_ends_without_an_end_is_told_apart_from_a_claim_that_nobody_knew_of() {
        let held: Arc<HeldPages> = Arc::default();
        let page = |epoch| Claimed { epoch, ..claimed_page() };
        let (ended, broken, unknown) = (page(1), page(2), page(3));
        held.hold(&ended).settle();
        drop(held.hold(&broken));
        assert!([&ended, &broken, &unknown].iter().all(|page| !held.contains(page)));
        assert_eq!(held.broken(), [(broken.id, broken.epoch)].into());
        held.forget_broken([(broken.id, broken.epoch)].iter());
        assert!(held.broken().is_empty());
    }
}
