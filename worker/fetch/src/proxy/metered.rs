//! Bytes are counted as they pass, so that a connection on which nothing moves can be closed.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Shared, count};

impl Shared {
    /// Returns when `activity` has not grown for the idle time.
    pub(super) async fn idle(&self, activity: &AtomicU64) {
        let mut last = activity.load(Ordering::Relaxed);
        let mut quiet = 0;
        while quiet < 4 {
            tokio::time::sleep(self.idle_timeout / 4).await;
            let now = activity.load(Ordering::Relaxed);
            quiet = if now == last { quiet + 1 } else { 0 };
            last = now;
        }
        count(&self.metrics.idle_closed);
    }
}

/// A stream that counts what passes, for [`Shared::idle`].
pub(super) struct Metered<S> {
    pub(super) stream: S,
    pub(super) activity: Arc<AtomicU64>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        if polled.is_ready() {
            count(&self.activity);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, buf);
        if polled.is_ready() {
            count(&self.activity);
        }
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        if polled.is_ready() {
            count(&self.activity);
        }
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
