//! Slots that teams share: a fixed number of them, for the pages of a worker or the readers of files. What somebody waits for
//! goes before what is done in the background, and who has few in work before who has many.
//!
//! A slot is held for as long as its page takes, which may be minutes. Who has few in work does not stand behind that:
//! [`guests`](crate::guests) begin beside the slots, as many as there are slots at most. While no slot comes back they follow
//! one another at once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::clock;
use crate::guests::{Guests, Holder, STILL, Urgency};

/// A line so short is not looked through for those who have left it.
const FEW: usize = 64;

/// A fixed number of slots.
#[derive(Debug, Clone)]
pub struct Slots {
    shared: Arc<Mutex<Occupancy>>,
}

#[derive(Debug)]
struct Occupancy {
    size: usize,
    /// Slots in use: more than there are while guests are among them.
    busy: usize,
    /// When a slot last came back: a guest's place is none.
    turned: Instant,
    guests: Guests,
    direct: Line,
    background: Line,
}

/// Those who wait, in order of arrival.
#[derive(Debug, Default)]
struct Line {
    waiters: VecDeque<Waiter>,
    /// At so many those who have left since are taken out.
    most: usize,
}

/// Who waits; whose page it will be is not known before it is claimed where there is no holder.
type Waiter = (Option<Holder>, oneshot::Sender<Slot>);

/// The right to work on one thing; given back when dropped.
#[derive(Debug)]
pub struct Slot {
    slots: Option<Slots>,
    holder: Option<Holder>,
    /// Whether it is a guest's place.
    is_guests: bool,
}

impl Slots {
    /// `size` slots, 1 upwards, all of them free.
    pub fn new(size: usize) -> Self {
        let occupancy = Occupancy {
            size,
            busy: 0,
            turned: clock::instant(),
            guests: Guests::new(size),
            direct: Line::default(),
            background: Line::default(),
        };
        Self { shared: Arc::new(Mutex::new(occupancy)) }
    }

    /// Waits for a slot, what somebody waits for first, and of each kind whoever has the fewest in work; or for a guest's
    /// place, where no slot has come back for a moment.
    pub async fn acquire(&self, holder: Holder) -> Slot {
        if let Some(slot) = self.try_acquire(holder) {
            return slot;
        }
        let mut slot = std::pin::pin!(self.wait(Some(holder), holder.1));
        loop {
            if let Ok(slot) = tokio::time::timeout(STILL, &mut slot).await {
                return slot;
            }
            if let Some(guest) = self.guest(holder) {
                return guest;
            }
        }
    }

    /// A slot for the next page somebody waits for, whosever that is; `None`: none comes back in a moment, and who the
    /// page's team is makes a difference.
    pub async fn acquire_for_anybody(&self) -> Option<Slot> {
        tokio::time::timeout(STILL, self.wait(None, Urgency::Direct)).await.ok()
    }

    async fn wait(&self, holder: Option<Holder>, urgency: Urgency) -> Slot {
        let receiver = {
            let mut occupancy = self.lock();
            if occupancy.busy < occupancy.size {
                return self.occupy(&mut occupancy, holder);
            }
            let (sender, receiver) = oneshot::channel();
            match urgency {
                Urgency::Direct => occupancy.direct.join((holder, sender)),
                Urgency::Background => occupancy.background.join((holder, sender)),
            }
            receiver
        };
        receiver.await.expect("the slots outlive their waiters and serve each of them")
    }

    /// A slot without waiting: one that is free, or a guest's place where no slot has come back for a moment.
    pub fn try_acquire(&self, holder: Holder) -> Option<Slot> {
        let mut occupancy = self.lock();
        let may_begin = occupancy.busy < occupancy.size
            || occupancy.is_still() && occupancy.may_enter(holder) && occupancy.next_guest().is_none();
        may_begin.then(|| self.occupy(&mut occupancy, Some(holder)))
    }

    /// A guest's place, for a holder with few pages in work.
    fn guest(&self, holder: Holder) -> Option<Slot> {
        let mut occupancy = self.lock();
        occupancy.may_enter(holder).then(|| self.occupy(&mut occupancy, Some(holder)))
    }

    /// Takes up to `most` further slots that are free now.
    pub fn take_free(&self, most: usize, holder: Holder) -> Vec<Slot> {
        let mut occupancy = self.lock();
        let count = occupancy.size.saturating_sub(occupancy.busy).min(most);
        (0..count).map(|_| self.occupy(&mut occupancy, Some(holder))).collect()
    }

    fn occupy(&self, occupancy: &mut Occupancy, holder: Option<Holder>) -> Slot {
        let is_guests = occupancy.busy >= occupancy.size;
        occupancy.busy += 1;
        if let Some(holder) = holder {
            occupancy.guests.count(holder);
        }
        Slot { slots: Some(self.clone()), holder, is_guests }
    }

    /// How many are in use now, guests among them.
    pub fn busy(&self) -> usize {
        self.lock().busy
    }

    /// There are so many from now on, 1 upwards. Those in use stay so.
    pub fn resize(&self, size: usize) {
        let mut occupancy = self.lock();
        occupancy.size = size;
        occupancy.guests.resize(size);
        self.serve(&mut occupancy);
    }

    /// Whether no slot is free now.
    pub fn is_full(&self) -> bool {
        let occupancy = self.lock();
        occupancy.busy >= occupancy.size
    }

    fn lock(&self) -> MutexGuard<'_, Occupancy> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self, holder: Option<Holder>, is_guests: bool) {
        let mut occupancy = self.lock();
        occupancy.busy -= 1;
        if let Some(holder) = holder {
            occupancy.guests.uncount(holder);
        }
        if !is_guests || occupancy.busy < occupancy.size {
            occupancy.turned = clock::instant();
        }
        self.serve(&mut occupancy);
    }

    /// Gives those who wait what is free.
    fn serve(&self, occupancy: &mut Occupancy) {
        while let Some((holder, waiter)) = occupancy.next_waiter() {
            let is_guests = occupancy.busy >= occupancy.size;
            match waiter.send(Slot { slots: Some(self.clone()), holder, is_guests }) {
                Ok(()) => {
                    occupancy.busy += 1;
                    if let Some(holder) = holder {
                        occupancy.guests.count(holder);
                    }
                }
                // The waiter left; its slot must not come back through `drop` while the lock is held.
                Err(mut unwanted) => unwanted.slots = None,
            }
        }
    }
}

impl Occupancy {
    /// Who may begin now and is next.
    fn next_waiter(&mut self) -> Option<Waiter> {
        if self.busy < self.size {
            return self.direct.next(&self.guests).or_else(|| self.background.next(&self.guests));
        }
        if !self.is_still() || self.busy >= 2 * self.size {
            return None;
        }
        let (line, at) = self.next_guest()?;
        match line {
            Urgency::Direct => self.direct.waiters.remove(at),
            Urgency::Background => self.background.waiters.remove(at),
        }
    }

    /// Who waits in which line and place and may begin as a guest, if there is room.
    fn next_guest(&self) -> Option<(Urgency, usize)> {
        let direct = self.direct.next_guest(&self.guests).map(|at| (Urgency::Direct, at));
        direct.or_else(|| self.background.next_guest(&self.guests).map(|at| (Urgency::Background, at)))
    }

    /// Whether no slot has come back for a moment.
    fn is_still(&self) -> bool {
        self.turned.elapsed() >= STILL
    }

    /// Whether there is a guest's place for the holder.
    fn may_enter(&self, holder: Holder) -> bool {
        self.busy < 2 * self.size && self.guests.may_enter(holder)
    }
}

impl Line {
    /// Who is next: whose holder has the fewest in work, of those the first. Of whom nobody knows the holder is taken to have
    /// its share: who has less goes before, and who has more behind.
    fn next(&mut self, guests: &Guests) -> Option<Waiter> {
        let held = |(holder, _): &Waiter| holder.map_or(guests.share(), |holder| guests.held(holder));
        let (at, _) = self.waiters.iter().enumerate().min_by_key(|(_, waiter)| held(waiter))?;
        self.waiters.remove(at)
    }

    /// The place of who is next of those with few in work.
    fn next_guest(&self, guests: &Guests) -> Option<usize> {
        let waiters = self.waiters.iter().enumerate();
        let held = waiters.filter_map(|(at, (holder, waiter))| match holder {
            Some(holder) if !waiter.is_closed() && guests.may_enter(*holder) => Some((guests.held(*holder), at)),
            _ => None,
        });
        held.min().map(|(_, at)| at)
    }

    fn join(&mut self, waiter: Waiter) {
        if self.waiters.len() >= self.most {
            self.waiters.retain(|(_, waiter)| !waiter.is_closed());
            self.most = (2 * self.waiters.len()).max(FEW);
        }
        self.waiters.push_back(waiter);
    }
}

impl Slot {
    /// Says whose page the slot is for, once that is known.
    pub fn is_for(mut self, holder: Holder) -> Self {
        if let Some(slots) = &self.slots
            && self.holder.is_none()
        {
            slots.lock().guests.count(holder);
            self.holder = Some(holder);
        }
        self
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(slots) = self.slots.take() {
            slots.give_back(self.holder, self.is_guests);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::time::Duration;

    use futures_util::FutureExt;

    use super::*;
    use crate::ids::TeamId;

    fn team(urgency: Urgency) -> Holder {
        (TeamId::new(), urgency)
    }

    #[tokio::test]
    async fn a_direct_page_goes_before_waiting_background_pages() {
        let slots = Slots::new(1);
        let held = slots.acquire(team(Urgency::Background)).await;
        let mut background = Box::pin(slots.acquire(team(Urgency::Background)));
        let mut direct = Box::pin(slots.acquire(team(Urgency::Direct)));
        assert!((&mut background).now_or_never().is_none());
        assert!((&mut direct).now_or_never().is_none());
        drop(held);
        let first = (&mut direct).now_or_never();
        assert!(first.is_some() && (&mut background).now_or_never().is_none());
        drop(first);
        assert!(background.now_or_never().is_some());
    }

    #[tokio::test]
    async fn who_has_few_in_work_goes_before_a_crowd() {
        let (slots, crowd, other) = (Slots::new(8), team(Urgency::Direct), team(Urgency::Direct));
        let mut held = slots.take_free(8, crowd);
        let mut waiting: Vec<_> = (0..100).map(|_| Box::pin(slots.wait(Some(crowd), Urgency::Direct))).collect();
        for one in &mut waiting {
            assert!(one.now_or_never().is_none());
        }
        let mut anybody = Box::pin(slots.wait(None, Urgency::Direct));
        assert!((&mut anybody).now_or_never().is_none());
        let mut theirs: Vec<_> = (0..9).map(|_| Box::pin(slots.wait(Some(other), Urgency::Direct))).collect();
        for one in &mut theirs {
            assert!(one.now_or_never().is_none());
        }
        // Up to a quarter of the slots before what may be anybody's, then as many as the crowd has.
        let mut taken = Vec::new();
        for one in &mut theirs[..2] {
            held.pop();
            taken.push(one.now_or_never().expect("it is the other's turn"));
        }
        held.pop();
        let somebodys = (&mut anybody).now_or_never().expect("a quarter of the slots is the other's");
        drop(somebodys);
        taken.push((&mut theirs[2]).now_or_never().expect("the crowd has five, the other two"));
        held.pop();
        taken.push((&mut theirs[3]).now_or_never().expect("the crowd has four, the other three"));
        held.pop();
        assert!((&mut waiting[0]).now_or_never().is_some(), "the crowd has three now, the other four");
    }

    #[tokio::test]
    async fn a_waiter_that_leaves_does_not_lose_the_slot() {
        let (slots, one) = (Slots::new(1), team(Urgency::Direct));
        let held = slots.acquire(one).await;
        let mut gone = Box::pin(slots.acquire(one));
        assert!((&mut gone).now_or_never().is_none());
        drop(gone);
        drop(held);
        assert!(!slots.is_full());
        assert_eq!(slots.take_free(5, one).len(), 1);
        assert!(!slots.is_full());
    }

    /// A slot has come back just now, however long the machine stands still meanwhile.
    fn has_turned(slots: &Slots) {
        slots.lock().turned = clock::deadline(Duration::from_secs(3_600));
    }

    #[tokio::test]
    async fn waiters_that_leave_do_not_pile_up() {
        let (slots, one) = (Slots::new(1), team(Urgency::Direct));
        let held = slots.acquire(one).await;
        for _ in 0..10 * FEW {
            assert!(slots.wait(None, Urgency::Direct).now_or_never().is_none());
        }
        assert!(slots.lock().direct.waiters.len() <= FEW);
        let mut last = Box::pin(slots.wait(None, Urgency::Direct));
        assert!((&mut last).now_or_never().is_none());
        drop(held);
        assert!(last.now_or_never().is_some());
    }

    #[tokio::test]
    async fn nobody_waits_long_behind_others_long_pages() {
        let (slots, long, other) = (Slots::new(8), team(Urgency::Background), team(Urgency::Background));
        let held = slots.take_free(20, long);
        assert_eq!(held.len(), 8);
        has_turned(&slots);
        assert!(slots.try_acquire(other).is_none(), "a slot may come back any moment");
        slots.lock().turned = clock::instant();
        let began = clock::instant();
        let first = slots.acquire(other).await;
        assert!(began.elapsed() >= STILL);
        let second = slots.try_acquire(other).expect("no slot has come back for a while");
        assert!(slots.try_acquire(other).is_none(), "a quarter of the slots is its guests' share");
        assert!(slots.try_acquire(long).is_none(), "who has slots is no guest");
        let urgent = slots.try_acquire((long.0, Urgency::Direct)).expect("its callers have a share of their own");
        // What comes back first makes up for the guests.
        let mut waiting = Box::pin(slots.wait(Some(long), Urgency::Background));
        assert!((&mut waiting).now_or_never().is_none());
        drop((first, second, urgent));
        assert!((&mut waiting).now_or_never().is_none());
        drop(held);
        waiting.await;
        assert!(slots.lock().guests.is_empty(), "all are back");
        assert_eq!(slots.lock().busy, 0);
    }

    #[tokio::test]
    async fn guests_follow_one_another_at_once_while_no_slot_comes_back() {
        let (slots, long) = (Slots::new(8), team(Urgency::Background));
        let [other, third] = [(); 2].map(|()| team(Urgency::Background));
        let mut held = slots.take_free(8, long);
        tokio::time::sleep(STILL).await;
        let both = [slots.acquire(other).await, slots.acquire(other).await];
        let mut next = Box::pin(slots.acquire(other));
        let mut crowd = Box::pin(slots.acquire(long));
        assert!((&mut next).now_or_never().is_none() && (&mut crowd).now_or_never().is_none());
        drop(both);
        let guest = (&mut next).now_or_never().expect("no slot has come back");
        assert!((&mut crowd).now_or_never().is_none(), "who has slots is no guest");
        drop(guest);
        drop(slots.acquire(third).now_or_never().expect("no slot has come back"));
        // A slot that came back is waited for again.
        held.pop();
        let slot = crowd.await;
        assert!(slots.lock().turned.elapsed() < Duration::from_secs(60));
        has_turned(&slots);
        assert!(slots.try_acquire(third).is_none() && slots.try_acquire(other).is_none());
        drop((slot, held));
        assert!(slots.lock().guests.is_empty());
    }

    #[tokio::test]
    async fn guests_take_turns_where_there_are_many() {
        let slots = Slots::new(4);
        let _held = slots.take_free(4, team(Urgency::Background));
        tokio::time::sleep(STILL).await;
        let [first, second] = [(); 2].map(|()| team(Urgency::Background));
        let mut guests: Vec<Slot> = (0..3).filter_map(|_| slots.try_acquire(team(Urgency::Background))).collect();
        guests.push(slots.try_acquire(first).expect("the fourth place"));
        assert_eq!(guests.len(), 4);
        let mut waits = Box::pin(slots.wait(Some(second), Urgency::Background));
        assert!((&mut waits).now_or_never().is_none());
        guests.pop();
        assert!(slots.try_acquire(first).is_none(), "another one has waited");
        assert!((&mut waits).now_or_never().is_some());
    }

    #[tokio::test]
    async fn guests_are_no_more_than_slots() {
        let slots = Slots::new(4);
        let _held = slots.take_free(4, team(Urgency::Direct));
        tokio::time::sleep(STILL).await;
        let guests: Vec<Slot> = (0..9).filter_map(|_| slots.try_acquire(team(Urgency::Direct))).collect();
        assert_eq!(guests.len(), 4);
        drop(guests);
        tokio::time::sleep(STILL).await;
        assert!(slots.acquire_for_anybody().await.is_none(), "whose page it would be is not known");
    }

    #[tokio::test]
    async fn a_slot_counts_for_whose_page_it_became() {
        let (slots, one) = (Slots::new(1), team(Urgency::Direct));
        let slot = slots.acquire_for_anybody().await.unwrap().is_for(one);
        tokio::time::sleep(STILL).await;
        assert!(slots.try_acquire(one).is_none());
        drop(slot);
        assert!(slots.lock().guests.is_empty());
    }
}
