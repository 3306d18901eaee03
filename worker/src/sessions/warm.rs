//! Browsers that wait started, so that a session without a profile begins within milliseconds.
//!
//! One is started at a time, and only while the machine is not busy with something else; a browser serves one session
//! and is never used again. A session that comes while one is being started gets that one: it comes sooner than another that
//! is begun beside it, which would slow down both, as when a worker has just started.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;
use weir_shared::lasting;

use super::start::{Started, start_cold};
use crate::sandbox::Sandbox;

/// Pause after a start that failed.
const PAUSE: Duration = Duration::from_secs(5);
/// Quiet time after a browser was taken before the next is warmed: its page is loading now.
const SETTLE: Duration = Duration::from_millis(500);
/// How long a start that is under way at the end is waited for.
const LAST_START: Duration = Duration::from_secs(15);

/// The waiting browsers of one worker.
pub(super) struct WarmPool<T = Started> {
    shared: Arc<Shared<T>>,
    /// Ends the filling.
    stop: CancellationToken,
    filler: Mutex<Option<tokio::task::JoinHandle<()>>>,
}

struct Shared<T> {
    shelf: Mutex<Shelf<T>>,
    taken: Notify,
    size: usize,
}

/// What waits, and what is on its way to that.
struct Shelf<T> {
    waiting: VecDeque<T>,
    is_coming: bool,
    /// Who gets the one that is on its way.
    awaited: Option<oneshot::Sender<T>>,
}

enum Taken<T> {
    Waiting(T),
    Coming(oneshot::Receiver<T>),
    Nothing,
}

impl WarmPool {
    /// Keeps `size` browsers waiting until `stop`, or its own end.
    pub(super) fn start(sandbox: Arc<Sandbox>, size: usize, stop: &CancellationToken) -> Self {
        Self::keep(size, stop, move || {
            let sandbox = Arc::clone(&sandbox);
            async move { start_cold(&sandbox, None).await }
        })
    }

    /// A browser that is alive: one that waits, or the one that is being started where nobody else gets it.
    pub(super) async fn take(&self) -> Option<Started> {
        loop {
            let started = self.next().await?;
            if started.is_alive() {
                return Some(started);
            }
            // It died while it waited; its remains are removed off this path.
            tokio::spawn(async move { started.discard().await });
        }
    }

    /// Ends the waiting browsers.
    pub(super) async fn stop(&self) {
        for started in self.end().await {
            started.discard().await;
        }
    }
}

impl<T: Send + 'static> WarmPool<T> {
    fn keep<S, F, E>(size: usize, stop: &CancellationToken, start: S) -> Self
    where
        S: Fn() -> F + Clone + Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        let shelf = Mutex::new(Shelf { waiting: VecDeque::new(), is_coming: false, awaited: None });
        let (shared, stop) = (Arc::new(Shared { shelf, taken: Notify::new(), size }), stop.child_token());
        let (of_filler, ends) = (Arc::clone(&shared), stop.clone());
        let filling = move || fill(start.clone(), Arc::clone(&of_filler), ends.clone());
        let filler = (size > 0).then(|| tokio::spawn(lasting::again("browsers that wait", filling)));
        Self { shared, stop, filler: Mutex::new(filler) }
    }

    /// How many wait.
    pub(super) fn count(&self) -> usize {
        self.shared.lock().waiting.len()
    }

    async fn next(&self) -> Option<T> {
        let taken = self.shared.lock().take();
        match taken {
            Taken::Waiting(started) => {
                self.shared.taken.notify_one();
                Some(started)
            }
            // None comes where it could not be started: then nobody waits for the next try.
            Taken::Coming(coming) => coming.await.ok(),
            Taken::Nothing => None,
        }
    }

    /// Ends the filling, and gives what waits.
    async fn end(&self) -> Vec<T> {
        self.stop.cancel();
        let filler = self.filler.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(filler) = filler {
            // A start under way is finished and then found below.
            let _ = tokio::time::timeout(LAST_START, filler).await;
        }
        self.shared.lock().waiting.drain(..).collect()
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Shelf<T>> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Shelf<T> {
    fn take(&mut self) -> Taken<T> {
        if let Some(started) = self.waiting.pop_front() {
            return Taken::Waiting(started);
        }
        if !self.is_coming || self.awaited.is_some() {
            return Taken::Nothing;
        }
        let (sender, coming) = oneshot::channel();
        self.awaited = Some(sender);
        Taken::Coming(coming)
    }

    /// `true`: somebody has waited for it.
    fn put(&mut self, started: T) -> bool {
        let unwanted = match self.awaited.take() {
            Some(waits) => waits.send(started).err(),
            None => Some(started),
        };
        let is_taken = unwanted.is_none();
        self.waiting.extend(unwanted);
        is_taken
    }
}

/// One is being started, for as long as this is there. Whoever waits for it waits no longer then.
struct Coming<'a, T>(&'a Shared<T>);

impl<'a, T> Coming<'a, T> {
    fn begin(shared: &'a Shared<T>) -> Self {
        shared.lock().is_coming = true;
        Self(shared)
    }
}

impl<T> Drop for Coming<'_, T> {
    fn drop(&mut self) {
        let mut shelf = self.0.lock();
        shelf.is_coming = false;
        shelf.awaited = None;
    }
}

async fn fill<T, S, F, E>(start: S, shared: Arc<Shared<T>>, stop: CancellationToken)
where
    S: Fn() -> F,
    F: Future<Output = Result<T, E>>,
    E: fmt::Display,
{
    while !stop.is_cancelled() {
        let missing = shared.lock().waiting.len() < shared.size;
        let pause = if missing {
            let coming = Coming::begin(&shared);
            let started = start().await;
            let is_taken = started.map(|started| shared.lock().put(started));
            drop(coming);
            match is_taken {
                Ok(false) => continue,
                Ok(true) => SETTLE,
                Err(error) => {
                    tracing::warn!(%error, "a browser could not be started ahead of time; it is tried again");
                    PAUSE
                }
            }
        } else {
            tokio::select! {
                () = shared.taken.notified() => SETTLE,
                () = stop.cancelled() => return,
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::Semaphore;

    use super::*;

    /// Each start is counted, waits for a permit, and fails where there will be none any more.
    fn pool(size: usize) -> (WarmPool<u32>, Arc<Semaphore>, Arc<AtomicU32>) {
        let (gate, begun) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicU32::new(0)));
        let of_start = (Arc::clone(&gate), Arc::clone(&begun));
        let start = move || {
            let (gate, begun) = of_start.clone();
            async move {
                let number = begun.fetch_add(1, Ordering::SeqCst) + 1;
                gate.acquire().await.map(|permit| {
                    permit.forget();
                    number
                })
            }
        };
        (WarmPool::keep(size, &CancellationToken::new(), start), gate, begun)
    }

    async fn until(what: impl Fn() -> bool) {
        while !what() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_session_gets_the_browser_that_is_being_started_and_another_one_does_not_wait_for_it() {
        let (pool, gate, begun) = pool(1);
        assert_eq!(pool.next().await, None, "nothing has begun");
        until(|| begun.load(Ordering::SeqCst) == 1).await;
        let (first, other) = tokio::join!(pool.next(), async {
            let other = pool.next().await;
            gate.add_permits(1);
            other
        });
        assert_eq!((first, other, pool.count()), (Some(1), None, 0));
    }

    #[tokio::test]
    async fn nobody_waits_for_a_start_that_has_failed() {
        let (pool, gate, begun) = pool(1);
        until(|| begun.load(Ordering::SeqCst) == 1).await;
        let (first, ()) = tokio::join!(pool.next(), async { gate.close() });
        assert_eq!((first, pool.next().await), (None, None));
    }

    #[tokio::test]
    async fn the_end_of_a_life_waits_for_a_start_and_not_for_who_has_nothing_to_do() {
        let (pool, gate, begun) = pool(1);
        gate.add_permits(1);
        until(|| pool.count() == 1).await;
        let ended = tokio::time::timeout(LAST_START / 2, pool.end()).await;
        assert_eq!((ended.unwrap_or_default(), begun.load(Ordering::SeqCst)), (vec![1], 1));
    }
}
