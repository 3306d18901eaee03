//! Where extraction and encoding run: on threads that may compute for long, and not more of them than are of use.
//!
//! The threads are our own. A thread that has ended a piece takes the next one that waits, so that nobody is woken up while
//! there is enough to do; tokio's threads for blocking calls are woken up for each call. Pieces of one holder begin in their
//! order, those of several in turns; and no holder has all threads, so that nobody's small page waits for the end of somebody
//! else's large ones.

use std::collections::{HashMap, VecDeque};
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};
use std::thread;

use tokio::sync::oneshot;
use weir_shared::error_code::ErrorCode;
use weir_shared::guests::Holder;

use super::error::PageError;

type Piece = Box<dyn FnOnce() + Send>;

/// How often a thread looks whether there is something before it rests, the others having their turn in between: the next
/// piece of a page often comes at once, and to be woken up costs more.
const LOOKS: u32 = 4;

/// Pieces that wait for a thread; there are at most a few for each page that is worked on.
static PIECES: LazyLock<Pieces> = LazyLock::new(|| {
    // More threads would not be faster, and each keeps memory of its own; with fewer, two long pieces would be all of a small
    // machine.
    let threads = 2 * thread::available_parallelism().map_or(2, NonZero::get);
    for _ in 0..threads {
        if let Err(error) = thread::Builder::new().name("weir-cpu".to_owned()).spawn(|| PIECES.work()) {
            tracing::error!(%error, "a thread for the extraction of pages cannot be started");
        }
    }
    Pieces { each: threads - 1, lines: Mutex::default(), news: Condvar::new() }
});

struct Pieces {
    /// Threads that one holder has at most.
    each: usize,
    lines: Mutex<Lines>,
    /// There is something for a thread that rests.
    news: Condvar,
}

#[derive(Default)]
struct Lines {
    lines: HashMap<Holder, Line>,
    /// Those with pieces that wait.
    turns: VecDeque<Holder>,
    waiting: usize,
    /// Threads that look whether there is something before they rest.
    looking: usize,
    resting: usize,
}

/// What one holder has, as long as it has anything.
#[derive(Default)]
struct Line {
    waiting: VecDeque<Piece>,
    running: usize,
}

impl Lines {
    /// The next piece, of the first in turn who may have another thread.
    fn next(&mut self, each: usize) -> Option<(Holder, Piece)> {
        for _ in 0..self.turns.len() {
            let holder = self.turns.pop_front()?;
            let line = self.lines.get_mut(&holder)?;
            let piece = if line.running < each { line.waiting.pop_front() } else { None };
            line.running += usize::from(piece.is_some());
            if !line.waiting.is_empty() {
                self.turns.push_back(holder);
            }
            if let Some(piece) = piece {
                self.waiting -= 1;
                return Some((holder, piece));
            }
        }
        None
    }

    fn ended(&mut self, holder: Holder) {
        if let Some(line) = self.lines.get_mut(&holder) {
            line.running -= 1;
            if line.running == 0 && line.waiting.is_empty() {
                self.lines.remove(&holder);
            }
        }
    }
}

impl Pieces {
    fn hand_in(&self, holder: Holder, piece: Piece) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let line = lines.lines.entry(holder).or_default();
        line.waiting.push_back(piece);
        let (is_first, has_room) = (line.waiting.len() == 1, line.running < self.each);
        if is_first {
            lines.turns.push_back(holder);
        }
        lines.waiting += 1;
        let is_news = has_room && lines.resting > 0 && lines.waiting > lines.looking;
        drop(lines);
        if is_news {
            self.news.notify_one();
        }
    }

    /// What a thread does.
    fn work(&self) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let mut looks = 0;
        loop {
            if let Some((holder, piece)) = lines.next(self.each) {
                lines.looking -= usize::from(looks > 0);
                looks = 0;
                drop(lines);
                piece();
                lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
                lines.ended(holder);
            } else if looks < LOOKS {
                lines.looking += usize::from(looks == 0);
                looks += 1;
                drop(lines);
                thread::yield_now();
                lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            } else {
                lines.looking -= 1;
                looks = 0;
                lines.resting += 1;
                lines = self.news.wait(lines).unwrap_or_else(PoisonError::into_inner);
                lines.resting -= 1;
            }
        }
    }
}

/// CPU work for this holder off the async threads. What nobody waits for any more is not begun.
///
/// # Errors
/// What `work` answers; `UNKNOWN_ERROR` when it panics.
pub async fn blocking<T: Send + 'static>(
    holder: Holder,
    work: impl FnOnce() -> Result<T, PageError> + Send + 'static,
) -> Result<T, PageError> {
    let (answer, answered) = oneshot::channel();
    PIECES.hand_in(
        holder,
        Box::new(move || {
            if answer.is_closed() {
                return;
            }
            // Nothing of what a panic leaves behind is seen again.
            let outcome = catch_unwind(AssertUnwindSafe(work));
            let _ = answer.send(outcome);
        }),
    );
    match answered.await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) | Err(_) => {
            tracing::error!("extraction panicked");
            Err(PageError::last(ErrorCode::Unknown, "Internal error while reading the page."))
        }
    }
}

/// What computes on a thread of its own for pieces that are handed in after it.
pub struct Ahead<T>(oneshot::Receiver<T>);

/// Begins CPU work whose result a later piece of the same holder asks for. What nobody will ask for any more is not begun.
pub fn ahead<T: Send + 'static>(holder: Holder, work: impl FnOnce() -> T + Send + 'static) -> Ahead<T> {
    let (answer, answered) = oneshot::channel();
    PIECES.hand_in(
        holder,
        Box::new(move || {
            if answer.is_closed() {
                return;
            }
            match catch_unwind(AssertUnwindSafe(work)) {
                Ok(done) => {
                    let _ = answer.send(done);
                }
                Err(_) => tracing::error!("what was computed ahead panicked"),
            }
        }),
    );
    Ahead(answered)
}

impl<T> Ahead<T> {
    /// Its result. `None`: it panicked. Blocks, for a piece of the same holder that was handed in later: those begin in their
    /// order, so this one has a thread already and nobody waits for one that could not begin.
    pub fn wait(self) -> Option<T> {
        self.0.blocking_recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    use weir_shared::guests::Urgency;
    use weir_shared::ids::TeamId;

    use super::*;

    fn anybody() -> Holder {
        (TeamId::new(), Urgency::Direct)
    }

    #[tokio::test]
    async fn a_panic_costs_no_thread() {
        for _ in 0..100 {
            assert!(blocking::<()>(anybody(), || panic!("a page")).await.is_err());
        }
        assert_eq!(blocking(anybody(), || Ok(1)).await.ok(), Some(1));
    }

    #[tokio::test]
    async fn what_is_done_ahead_is_there_for_as_many_as_come_later() {
        let teams = [anybody(), anybody()];
        let pieces: Vec<_> = (0..1_000_u32)
            .map(|number| {
                let holder = teams[number as usize % 2];
                let (before, broken) = (ahead(holder, move || number), ahead::<u32>(holder, || panic!("a page")));
                tokio::spawn(blocking(holder, move || Ok((before.wait(), broken.wait()))))
            })
            .collect();
        for (number, piece) in (0..).zip(pieces) {
            assert_eq!(piece.await.unwrap().ok(), Some((Some(number), None)));
        }
    }

    /// Pieces that are at work until their gates are dropped, on as many threads.
    async fn at_work(holder: Holder, threads: usize) -> Vec<mpsc::Sender<()>> {
        let (began, mut beginning) = tokio::sync::mpsc::unbounded_channel();
        let gate = || {
            let (gate, closed) = mpsc::channel::<()>();
            let began = began.clone();
            tokio::spawn(blocking(holder, move || {
                let _ = began.send(());
                let _ = closed.recv();
                Ok(())
            }));
            gate
        };
        let gates: Vec<_> = (0..threads).map(|_| gate()).collect();
        for _ in &gates {
            beginning.recv().await.expect("each has a thread");
        }
        gates
    }

    // One test: each takes what threads there are.
    #[tokio::test]
    async fn nobody_has_all_threads_and_what_nobody_waits_for_is_not_begun() {
        let (team, other) = (anybody(), anybody());
        let gates = at_work(team, PIECES.each).await;
        let more: Vec<_> = (0..50).map(|_| tokio::spawn(blocking(team, || Ok(2)))).collect();
        for _ in 0..10 {
            assert_eq!(blocking(other, || Ok(1)).await.ok(), Some(1));
        }
        assert!(more.iter().all(|piece| !piece.is_finished()), "these wait for the threads of their team");

        let last = at_work(other, 1).await;
        let is_begun = Arc::new(AtomicBool::new(false));
        let begin = Arc::clone(&is_begun);
        let mut given_up = Box::pin(blocking(other, move || {
            begin.store(true, Ordering::SeqCst);
            Ok(())
        }));
        assert!(tokio::time::timeout(Duration::from_millis(50), &mut given_up).await.is_err(), "no thread is left");
        drop(given_up);
        drop((gates, last));
        for piece in more {
            assert_eq!(piece.await.unwrap().ok(), Some(2));
        }
        assert_eq!(blocking(other, || Ok(1)).await.ok(), Some(1));
        assert!(!is_begun.load(Ordering::SeqCst));
    }
}
