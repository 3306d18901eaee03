//! What a WebSocket's client sends: frames of which none is long.
//!
//! The library looks at a frame's length when all of the frame has come: until then it keeps whatever a client sends, however much
//! that is. Here the announced length is read as soon as it is there, and a frame that is too long ends what is read.

use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::error::PayloadError;
use actix_web::web::Bytes;
use futures_util::{Stream, StreamExt as _};

/// Longest payload of a frame, bytes: the library's own bound.
const MAX_FRAME: u64 = 64 * 1024;
/// Longest head of a frame (RFC 6455, 5.2): two bytes, the length in eight, the mask in four.
const MAX_HEAD: usize = 14;

/// A connection's bytes up to the first frame that is too long.
pub struct ShortFrames<S> {
    bytes: S,
    head: Head,
    /// What is still to come of the current frame's payload, bytes.
    left: u64,
    is_over: bool,
}

/// The part of a frame's head that has come.
#[derive(Default)]
struct Head {
    bytes: [u8; MAX_HEAD],
    len: usize,
}

impl Head {
    /// Takes the next byte. The length of the payload, once all of the head is there.
    fn take(&mut self, byte: u8) -> Option<u64> {
        self.bytes[self.len] = byte;
        self.len += 1;
        if self.len < 2 {
            return None;
        }
        let is_masked = self.bytes[1] & 0x80 != 0;
        let short = self.bytes[1] & 0x7f;
        let extended = match short {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        if self.len < 2 + extended + if is_masked { 4 } else { 0 } {
            return None;
        }
        let long = self.bytes[2..2 + extended].iter().fold(0, |length, byte| (length << 8) | u64::from(*byte));
        *self = Self::default();
        Some(if extended == 0 { short.into() } else { long })
    }
}

impl<S> ShortFrames<S> {
    /// Of what comes after the handshake.
    pub fn of(bytes: S) -> Self {
        Self { bytes, head: Head::default(), left: 0, is_over: false }
    }

    /// Whether no frame that begins in this part is too long.
    fn are_short(&mut self, mut part: &[u8]) -> bool {
        while let Some((first, rest)) = part.split_first() {
            if self.left > 0 {
                let skipped = usize::try_from(self.left).map_or(part.len(), |left| left.min(part.len()));
                self.left -= skipped as u64;
                part = &part[skipped..];
                continue;
            }
            part = rest;
            match self.head.take(*first) {
                Some(length) if length > MAX_FRAME => return false,
                Some(length) => self.left = length,
                None => {}
            }
        }
        true
    }
}

impl<S: Stream<Item = Result<Bytes, PayloadError>> + Unpin> Stream for ShortFrames<S> {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let next = std::task::ready!(self.bytes.poll_next_unpin(context));
        match next {
            Some(Ok(part)) if !self.are_short(&part) => {
                self.is_over = true;
                Poll::Ready(Some(Err(PayloadError::Overflow)))
            }
            next => Poll::Ready(next),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use futures_util::stream;

    use super::*;

    /// A masked frame of text with so much payload, as clients send it.
    fn frame(announced: u64, payload: usize) -> Vec<u8> {
        let mut frame = vec![0x81];
        match announced {
            0..=125 => frame.push(0x80 | announced as u8),
            126..=0xffff => {
                frame.push(0x80 | 126);
                frame.extend((announced as u16).to_be_bytes());
            }
            _ => {
                frame.push(0x80 | 127);
                frame.extend(announced.to_be_bytes());
            }
        }
        frame.extend([1, 2, 3, 4]);
        frame.extend(vec![0xff; payload]);
        frame
    }

    /// How many bytes get through, in parts of this size, and whether all do.
    async fn through(bytes: &[u8], part: usize) -> (usize, bool) {
        let parts: Vec<Result<Bytes, PayloadError>> =
            bytes.chunks(part).map(|part| Ok(Bytes::copy_from_slice(part))).collect();
        let got: Vec<_> = ShortFrames::of(stream::iter(parts)).collect().await;
        (got.iter().flatten().map(Bytes::len).sum(), got.iter().all(Result::is_ok))
    }

    #[tokio::test]
    async fn frames_pass_up_to_the_one_that_is_too_long_however_they_come_in() {
        let short = [frame(0, 0), frame(5, 5), frame(125, 125), frame(126, 126), frame(MAX_FRAME, 65_536), frame(2, 2)];
        let short = short.concat();
        for part in [1, 2, 3, 7, 1_000, 100_000] {
            assert_eq!(through(&short, part).await, (short.len(), true), "{part}");
            for announced in [MAX_FRAME + 1, 1 << 40, u64::MAX] {
                let long = [short.clone(), frame(announced, 500)].concat();
                let (got, is_all) = through(&long, part).await;
                assert!(!is_all && got < short.len() + MAX_HEAD, "{part} {announced}: {got}");
            }
        }
    }

    #[tokio::test]
    async fn nothing_is_read_any_more_after_it() {
        let parts: [Result<Bytes, PayloadError>; 2] = [Ok(frame(1 << 40, 0).into()), Ok(frame(1, 1).into())];
        let mut frames = ShortFrames::of(stream::iter(parts));
        assert!(matches!(frames.next().await, Some(Err(PayloadError::Overflow))));
        assert!(frames.next().await.is_none());
    }
}
