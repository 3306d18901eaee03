//! A connection to an origin that is cut once it says too often that an answer will come.
//!
//! The HTTP library takes such heads (1xx) one after the other for as long as there are any, before anybody else's turn on
//! its thread and whatever became of who has asked. It tells of each, and cannot be told to stop; so what it reads from
//! breaks.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};

use hyper::Request;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::upstream::BoxStream;

/// Heads before the answer to one request, besides those that come together with the last of them. Sites send one or two.
const MOST: u32 = 64;

/// Such heads that have come since the last request.
#[derive(Debug, Clone, Default)]
pub(super) struct Heads(Arc<AtomicU32>);

impl Heads {
    /// From here on they are counted for `request`.
    pub fn count_for<B>(&self, request: &mut Request<B>) {
        self.0.store(0, Ordering::Relaxed);
        let seen = Arc::clone(&self.0);
        hyper::ext::on_informational(request, move |_| {
            seen.fetch_add(1, Ordering::Relaxed);
        });
    }
}

/// What the answers are read from.
pub(super) struct Patient {
    pub(super) stream: BoxStream,
    pub(super) heads: Heads,
}

impl AsyncRead for Patient {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.heads.0.load(Ordering::Relaxed) > MOST {
            return Poll::Ready(Err(io::Error::other("no answer after very many heads")));
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
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
