//! Keeps the queue library from looking for tickets where there are none.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use apalis_core::backend::{Backend, BackendConfig, WireFormatBackend};
use apalis_core::worker::context::WorkerContext;
use futures_util::Stream;
use futures_util::task::AtomicWaker;
use tokio::sync::watch;

/// Lets a library backend fetch only when called.
///
/// Left alone the library fetches whenever it is polled, also after each acknowledgement. Here it may fetch as many
/// tickets as the last call said are due; a fetch under way is polled when it wakes us, whatever the calls say.
pub struct OnCall<B> {
    backend: B,
    calls: Pin<Box<dyn Stream<Item = u64> + Send + Sync>>,
    /// Tickets it may still fetch.
    due: u64,
    bell: Arc<Bell>,
}

impl<B> OnCall<B> {
    /// `calls` says how many tickets are due.
    pub fn new(backend: B, calls: watch::Receiver<u64>) -> Self {
        let calls = futures_util::stream::unfold(calls, |mut calls| async move {
            calls.changed().await.ok()?;
            let due = *calls.borrow_and_update();
            Some((due, calls))
        });
        Self { backend, calls: Box::pin(calls), due: 0, bell: Arc::default() }
    }
}

/// Remembers that the backend asked to be polled again.
#[derive(Default)]
struct Bell {
    rang: AtomicBool,
    task: AtomicWaker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rang.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl<B: Backend> Backend for OnCall<B> {
    type Task = B::Task;
    type Error = B::Error;

    fn poll_ready(&mut self, cx: &mut Context<'_>, worker: &WorkerContext) -> Poll<Result<(), B::Error>> {
        self.backend.poll_ready(cx, worker)
    }

    fn poll_next(&mut self, cx: &mut Context<'_>, worker: &WorkerContext) -> Poll<Option<Result<B::Task, B::Error>>> {
        // Ends only when the source has taken our waker: no call is lost.
        while let Poll::Ready(Some(due)) = self.calls.as_mut().poll_next(cx) {
            self.due = due;
        }
        self.bell.task.register(cx.waker());
        if !self.bell.rang.swap(false, Ordering::AcqRel) && self.due == 0 {
            return Poll::Pending;
        }
        let waker = Waker::from(Arc::clone(&self.bell));
        let polled = self.backend.poll_next(&mut Context::from_waker(&waker), worker);
        if polled.is_ready() {
            self.due = self.due.saturating_sub(1);
        }
        polled
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, worker: &WorkerContext) -> Poll<Result<(), B::Error>> {
        self.backend.poll_close(cx, worker)
    }
}

apalis_core::delegate_config!(OnCall<B>, backend);
apalis_core::delegate_codec!(OnCall<B>, backend);
