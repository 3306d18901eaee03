//! Bounds what half-read messages hold in memory. A message may have 256 MiB, and strangers may open many connections:
//! so past the first megabytes of a message a connection reads on only while it is one of a few, and the others wait.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::PollSemaphore;

/// Bytes of a message that anybody may have read.
const SMALL: usize = 16 << 20;
/// Larger messages on their way at once, in the whole process.
const LARGE_AT_ONCE: usize = 6;
/// Time for a larger message, from its first large byte until it is sent on.
pub const LARGE_TIME: Duration = Duration::from_secs(120);

static LARGE: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(LARGE_AT_ONCE)));

#[derive(Default)]
struct State {
    /// Bytes read since the last message was sent on.
    bytes: usize,
    /// Held while they are many.
    large: Option<(OwnedSemaphorePermit, Instant)>,
}

/// What a connection holds. Clones share it.
#[derive(Clone, Default)]
pub struct Meter(Arc<Mutex<State>>);

impl Meter {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The message is sent on: what was read for it is no longer held.
    pub fn reset(&self) {
        *self.state() = State::default();
    }

    /// Whether a large message takes too long.
    pub fn is_overdue(&self) -> bool {
        self.state().large.as_ref().is_some_and(|(_, since)| since.elapsed() > LARGE_TIME)
    }
}

/// A stream whose reading is metered.
pub struct Metered<S> {
    inner: S,
    meter: Meter,
    turns: PollSemaphore,
}

impl<S> Metered<S> {
    pub fn new(inner: S, meter: Meter) -> Self {
        Self { inner, meter, turns: PollSemaphore::new(Arc::clone(&LARGE)) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let waits = {
            let state = self.meter.state();
            state.bytes > SMALL && state.large.is_none()
        };
        if waits {
            // The semaphore is never closed.
            let turn = ready!(self.turns.poll_acquire(cx)).ok_or(io::ErrorKind::BrokenPipe)?;
            self.meter.state().large = Some((turn, Instant::now()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        self.meter.state().bytes += buffer.filled().len() - before;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn a_few_large_messages_are_read_and_the_next_waits_for_its_turn() {
        let mut readers = Vec::new();
        for _ in 0..LARGE_AT_ONCE {
            let meter = Meter::default();
            let mut reader = Metered::new(tokio::io::repeat(7), meter.clone());
            let mut bytes = vec![0; SMALL + (1 << 20)];
            reader.read_exact(&mut bytes).await.expect("read");
            reader.read_exact(&mut bytes[..9]).await.expect("read");
            assert!(!meter.is_overdue());
            readers.push((meter, reader));
        }
        let meter = Meter::default();
        let mut late = Metered::new(tokio::io::repeat(7), meter.clone());
        let mut bytes = vec![0; SMALL + (1 << 20)];
        let mut all =
            Box::pin(async move { late.read_exact(&mut bytes).await.and(late.read_exact(&mut [0; 9]).await) });
        assert!(tokio::time::timeout(Duration::from_millis(100), &mut all).await.is_err(), "it waits");
        readers[0].0.reset();
        tokio::time::timeout(Duration::from_secs(5), all).await.expect("its turn came").expect("read");
    }
}
