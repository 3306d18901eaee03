//! The page slots of one worker: who may start a page now. Pages somebody waits for go before background pages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Whether somebody waits for the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// A caller waits for it.
    Direct,
    /// Pages of a batch.
    Background,
}

/// The slots of a worker, a fixed number of them.
#[derive(Debug, Clone)]
pub struct PageSlots {
    shared: Arc<Mutex<Occupancy>>,
}

#[derive(Debug)]
struct Occupancy {
    free: usize,
    size: usize,
    direct: VecDeque<oneshot::Sender<Slot>>,
    background: VecDeque<oneshot::Sender<Slot>>,
}

/// The right to work on one page; given back when dropped.
#[derive(Debug)]
pub struct Slot {
    slots: Option<PageSlots>,
}

impl PageSlots {
    /// `size` slots, 1 upwards, all of them free.
    pub fn new(size: usize) -> Self {
        let occupancy = Occupancy { free: size, size, direct: VecDeque::new(), background: VecDeque::new() };
        Self { shared: Arc::new(Mutex::new(occupancy)) }
    }

    /// Waits for a slot: direct pages first, each kind in order of arrival.
    pub async fn acquire(&self, urgency: Urgency) -> Slot {
        let receiver = {
            let mut occupancy = self.lock();
            if occupancy.free > 0 {
                occupancy.free -= 1;
                return Slot { slots: Some(self.clone()) };
            }
            let (sender, receiver) = oneshot::channel();
            match urgency {
                Urgency::Direct => occupancy.direct.push_back(sender),
                Urgency::Background => occupancy.background.push_back(sender),
            }
            receiver
        };
        receiver.await.expect("the slots outlive their waiters and serve each of them")
    }

    /// Takes up to `most` further slots that are free now.
    pub fn take_free(&self, most: usize) -> Vec<Slot> {
        let mut occupancy = self.lock();
        let count = occupancy.free.min(most);
        occupancy.free -= count;
        drop(occupancy);
        (0..count).map(|_| Slot { slots: Some(self.clone()) }).collect()
    }

    /// Whether no slot is free now.
    pub fn is_full(&self) -> bool {
        self.lock().free == 0
    }

    /// Slots in use now.
    pub fn busy(&self) -> usize {
        let occupancy = self.lock();
        occupancy.size - occupancy.free
    }

    fn lock(&self) -> MutexGuard<'_, Occupancy> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self) {
        let mut occupancy = self.lock();
        while let Some(waiter) = occupancy.direct.pop_front().or_else(|| occupancy.background.pop_front()) {
            match waiter.send(Slot { slots: Some(self.clone()) }) {
                Ok(()) => return,
                // The waiter left; its slot must not come back through `drop` while the lock is held.
                Err(mut unwanted) => unwanted.slots = None,
            }
        }
        occupancy.free += 1;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(slots) = self.slots.take() {
            slots.give_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn a_direct_page_goes_before_waiting_background_pages() {
        let slots = PageSlots::new(1);
        let held = slots.acquire(Urgency::Background).await;
        let mut background = Box::pin(slots.acquire(Urgency::Background));
        let mut direct = Box::pin(slots.acquire(Urgency::Direct));
        assert!((&mut background).now_or_never().is_none());
        assert!((&mut direct).now_or_never().is_none());
        drop(held);
        let first = (&mut direct).now_or_never();
        assert!(first.is_some() && (&mut background).now_or_never().is_none());
        drop(first);
        assert!(background.now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_waiter_that_leaves_does_not_lose_the_slot() {
        let slots = PageSlots::new(1);
        let held = slots.acquire(Urgency::Direct).await;
        let mut gone = Box::pin(slots.acquire(Urgency::Direct));
        assert!((&mut gone).now_or_never().is_none());
        drop(gone);
        drop(held);
        assert_eq!(slots.busy(), 0);
        assert_eq!(slots.take_free(5).len(), 1);
        assert_eq!(slots.busy(), 0);
    }
}
