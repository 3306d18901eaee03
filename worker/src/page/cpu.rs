//! Where extraction and encoding run: on threads that may compute for long, and not more of them than are of use.
//!
//! The threads are our own. A thread that has ended a piece takes the next one that waits, so that nobody is woken up while
//! there is enough to do; tokio's threads for blocking calls are woken up for each call.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;
use std::thread;

use crossbeam_channel::Sender;
use tokio::sync::oneshot;
use weir_shared::error_code::ErrorCode;

use super::error::PageError;

type Piece = Box<dyn FnOnce() + Send>;

/// Pieces that wait for a thread; there are at most a few for each page that is worked on.
static PIECES: LazyLock<Sender<Piece>> = LazyLock::new(|| {
    let (sender, receiver) = crossbeam_channel::unbounded::<Piece>();
    // More threads would not be faster, and each keeps memory of its own; with fewer, two long pieces would be all of a small
    // machine.
    for _ in 0..2 * thread::available_parallelism().map_or(2, NonZero::get) {
        let receiver = receiver.clone();
        let work = move || receiver.iter().for_each(|piece| piece());
        if let Err(error) = thread::Builder::new().name("weir-cpu".to_owned()).spawn(work) {
            tracing::error!(%error, "a thread for the extraction of pages cannot be started");
        }
    }
    sender
});

/// CPU work off the async threads. What nobody waits for any more is not begun.
///
/// # Errors
/// What `work` answers; `UNKNOWN_ERROR` when it panics.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PageError> + Send + 'static,
) -> Result<T, PageError> {
    let (answer, answered) = oneshot::channel();
    let piece = Box::new(move || {
        if answer.is_closed() {
            return;
        }
        // Nothing of what a panic leaves behind is seen again.
        let outcome = catch_unwind(AssertUnwindSafe(work));
        let _ = answer.send(outcome);
    });
    // Without any thread it is dropped, and nothing is answered.
    let _ = PIECES.send(piece);
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

/// Begins CPU work whose result a later piece asks for. What nobody will ask for any more is not begun.
pub fn ahead<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Ahead<T> {
    let (answer, answered) = oneshot::channel();
    let piece = Box::new(move || {
        if answer.is_closed() {
            return;
        }
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(done) => {
                let _ = answer.send(done);
            }
            Err(_) => tracing::error!("what was computed ahead panicked"),
        }
    });
    let _ = PIECES.send(piece);
    Ahead(answered)
}

impl<T> Ahead<T> {
    /// Its result. `None`: it panicked. Blocks, for a piece that was handed in later: pieces begin in their order, so this
    /// one has a thread already and nobody waits for one that could not begin.
    pub fn wait(self) -> Option<T> {
        self.0.blocking_recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_panic_costs_no_thread() {
        for _ in 0..100 {
            assert!(blocking::<()>(|| panic!("a page")).await.is_err());
        }
        assert_eq!(blocking(|| Ok(1)).await.ok(), Some(1));
    }

    #[tokio::test]
    async fn what_is_done_ahead_is_there_for_as_many_as_come_later() {
        let pieces: Vec<_> = (0..1_000_u32)
            .map(|number| {
                let (before, broken) = (ahead(move || number), ahead::<u32>(|| panic!("a page")));
                tokio::spawn(blocking(move || Ok((before.wait(), broken.wait()))))
            })
            .collect();
        for (number, piece) in (0..).zip(pieces) {
            assert_eq!(piece.await.unwrap().ok(), Some((Some(number), None)));
        }
    }

    #[tokio::test]
    async fn what_nobody_waits_for_is_not_begun() {
        let (began, mut beginning) = tokio::sync::mpsc::unbounded_channel();
        let gates: Vec<_> = (0..2 * thread::available_parallelism().map_or(2, NonZero::get))
            .map(|_| {
                let (gate, closed) = mpsc::channel::<()>();
                let began = began.clone();
                tokio::spawn(blocking(move || {
                    let _ = began.send(());
                    let _ = closed.recv();
                    Ok(())
                }));
                gate
            })
            .collect();
        for _ in &gates {
            beginning.recv().await.expect("each thread is at work");
        }
        let is_begun = Arc::new(AtomicBool::new(false));
        let begin = Arc::clone(&is_begun);
        let mut given_up = Box::pin(blocking(move || {
            begin.store(true, Ordering::SeqCst);
            Ok(())
        }));
        assert!(futures_util::poll!(&mut given_up).is_pending());
        drop(given_up);
        drop(gates);
        assert_eq!(blocking(|| Ok(1)).await.ok(), Some(1));
        assert!(!is_begun.load(Ordering::SeqCst));
    }
}
