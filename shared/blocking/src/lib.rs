//! Work that blocks, on a thread of its own.
//!
//! Where the machine gives no further thread, as when no process is free, the runtime's own `spawn_blocking` panics, and
//! takes with it whoever asked: a task that lasts as long as its process never comes back from that. Here it is an error,
//! and what was not begun is not begun later either.

use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Pause before a thread is asked for again.
const AGAIN: Duration = Duration::from_millis(500);

/// Work that goes on, whether or not somebody waits for it. Gives an error where there was no thread for it, where it
/// panicked, and where the runtime ends.
#[derive(Debug)]
pub struct Begun<T>(Option<oneshot::Receiver<T>>);

impl<T> Future for Begun<T> {
    type Output = io::Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.0.as_mut() {
            Some(told) => Pin::new(told).poll(cx).map_err(|_| io::Error::other("work on a thread of its own broke")),
            None => Poll::Ready(Err(io::Error::new(io::ErrorKind::ResourceBusy, "the system gives no further thread"))),
        }
    }
}

/// Begins work now. Without a thread for it the future gives an error.
pub fn run<T, F>(work: F) -> Begun<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    begin(work).unwrap_or(Begun(None))
}

/// Begins work now. Without a thread for it the caller has it back.
///
/// # Errors
/// The work, not begun.
pub fn begin<T, F>(work: F) -> Result<Begun<T>, F>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let (tell, told) = oneshot::channel();
    let (ours, theirs) = Offered::of(work);
    let doing = move || {
        if let Some(work) = theirs.take() {
            let _ = tell.send(work());
        }
    };
    #[expect(clippy::disallowed_methods, reason = "the one place that asks for it")]
    let spawned = catch_unwind(AssertUnwindSafe(|| drop(tokio::task::spawn_blocking(doing))));
    // The runtime keeps what it has panicked over, for the next thread: that one finds nothing to do.
    match spawned {
        Ok(()) => Ok(Begun(Some(told))),
        Err(_) => ours.take().map_or(Ok(Begun(Some(told))), Err),
    }
}

/// Does work as soon as there is a thread for it. Dropped before, it is not done.
///
/// # Errors
/// When it panicked, or the runtime ends.
pub async fn run_at_last<T, F>(mut work: F) -> io::Result<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    loop {
        match begin(work) {
            Ok(begun) => return begun.await,
            Err(back) => work = back,
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Does work that nobody waits for, in a runtime or outside of one. Without a thread it is done as soon as there is one,
/// and outside of a runtime at once.
pub fn detach(name: &'static str, work: impl FnOnce() + Send + 'static) {
    let (ours, theirs) = Offered::of(work);
    let doing = move || {
        if let Some(work) = theirs.take() {
            work();
        }
    };
    if std::thread::Builder::new().name(name.to_owned()).spawn(doing).is_ok() {
        return;
    }
    let Some(work) = ours.take() else { return };
    match Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn(run_at_last(work))),
        Err(_) => work(),
    }
}

/// Work that is done by whoever takes it first.
struct Offered<F>(Arc<Mutex<Option<F>>>);

impl<F> Offered<F> {
    fn of(work: F) -> (Self, Self) {
        let place = Arc::new(Mutex::new(Some(work)));
        (Self(Arc::clone(&place)), Self(place))
    }

    fn take(&self) -> Option<F> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// One that gets no threads: nowhere is room for such a stack.
    fn runtime_without_threads() -> io::Result<tokio::runtime::Runtime> {
        tokio::runtime::Builder::new_current_thread().enable_all().thread_stack_size(1 << 60).build()
    }

    #[test]
    fn without_a_thread_work_is_an_error_and_is_never_done() {
        let runtime = runtime_without_threads().unwrap();
        let done = Arc::new(AtomicUsize::new(0));
        let count = || {
            let done = Arc::clone(&done);
            move || done.fetch_add(1, Ordering::SeqCst)
        };
        runtime.block_on(async {
            assert_eq!(run(count()).await.unwrap_err().kind(), io::ErrorKind::ResourceBusy);
            let Err(back) = begin(count()) else { panic!("there is a thread") };
            assert_eq!(back(), 0);
        });
        drop(runtime);
        assert_eq!(done.load(Ordering::SeqCst), 1, "only by the one who had it back");
    }

    #[test]
    fn work_that_waits_for_a_thread_is_done_once_there_is_one() {
        let (without, with) = (runtime_without_threads().unwrap(), tokio::runtime::Runtime::new().unwrap());
        let mut work = Box::pin(run_at_last(|| 5));
        let stop = tokio_util::sync::CancellationToken::new();
        without.block_on(async {
            // Looked at once: it finds no thread and waits.
            assert!(futures_util::poll!(&mut work).is_pending());
        });
        std::thread::scope(|scope| {
            // Its clock goes on.
            scope.spawn(|| without.block_on(stop.cancelled()));
            assert_eq!(with.block_on(work).unwrap(), 5);
            stop.cancel();
        });
    }

    #[tokio::test]
    async fn work_goes_on_when_nobody_waits_and_a_panic_is_an_error() {
        let (tell, told) = oneshot::channel();
        drop(run(move || tell.send(7)));
        assert_eq!(told.await.unwrap(), 7);
        assert!(run(|| panic!("on purpose")).await.is_err());
        let (tell, told) = oneshot::channel();
        detach("test", move || _ = tell.send(8));
        assert_eq!(told.await.unwrap(), 8);
    }
}
