//! The page slots of one worker: who may start a page now. Pages somebody waits for go before background pages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Whether somebody waits for the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// A caller is on the line.
    Direct,
    /// Pages of a batch.
    Background,
}

/// A fixed number of slots.
#[derive(Debug, Clone)]
pub struct Gate {
    shared: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    free: usize,
    size: usize,
    direct: VecDeque<oneshot::Sender<Slot>>,
    background: VecDeque<oneshot::Sender<Slot>>,
}

/// The right to work on one page; given back when dropped.
#[derive(Debug)]
pub struct Slot {
    gate: Option<Gate>,
}

impl Gate {
    /// A gate of `size` slots, 1 upwards.
    pub fn new(size: usize) -> Self {
        let state = State { free: size, size, direct: VecDeque::new(), background: VecDeque::new() };
        Self { shared: Arc::new(Mutex::new(state)) }
    }

    /// Waits for a slot: direct pages first, each kind in order of arrival.
    pub async fn acquire(&self, urgency: Urgency) -> Slot {
        let receiver = {
            let mut state = self.lock();
            if state.free > 0 {
                state.free -= 1;
                return Slot { gate: Some(self.clone()) };
            }
            let (sender, receiver) = oneshot::channel();
            match urgency {
                Urgency::Direct => state.direct.push_back(sender),
                Urgency::Background => state.background.push_back(sender),
            }
            receiver
        };
        receiver.await.expect("a gate outlives its waiters and serves each of them")
    }

    /// Takes up to `most` further slots that are free now.
    pub fn take_free(&self, most: usize) -> Vec<Slot> {
        let mut state = self.lock();
        let count = state.free.min(most);
        state.free -= count;
        drop(state);
        (0..count).map(|_| Slot { gate: Some(self.clone()) }).collect()
    }

    /// Whether no slot is free now.
    pub fn is_full(&self) -> bool {
        self.lock().free == 0
    }

    /// Slots in use now.
    pub fn busy(&self) -> usize {
        let state = self.lock();
        state.size - state.free
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self) {
        let mut state = self.lock();
        while let Some(waiter) = state.direct.pop_front().or_else(|| state.background.pop_front()) {
            match waiter.send(Slot { gate: Some(self.clone()) }) {
                Ok(()) => return,
                // The waiter left; its slot must not come back through `drop` while the lock is held.
                Err(mut unwanted) => unwanted.gate = None,
            }
        }
        state.free += 1;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(gate) = self.gate.take() {
            gate.give_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn a_direct_page_goes_before_waiting_background_pages() {
        let gate = Gate::new(1);
        let held = gate.acquire(Urgency::Background).await;
        let mut background = Box::pin(gate.acquire(Urgency::Background));
        let mut direct = Box::pin(gate.acquire(Urgency::Direct));
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
        let gate = Gate::new(1);
        let held = gate.acquire(Urgency::Direct).await;
        let mut gone = Box::pin(gate.acquire(Urgency::Direct));
        assert!((&mut gone).now_or_never().is_none());
        drop(gone);
        drop(held);
        assert_eq!(gate.busy(), 0);
        assert_eq!(gate.take_free(5).len(), 1);
        assert_eq!(gate.busy(), 0);
    }
}
