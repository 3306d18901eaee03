//! What a WebSocket sends: one frame at a time, in parts, as fast as its client takes them.
//!
//! Who has a frame to send makes the next one when all of it was taken. So a client that does not read holds one frame in
//! memory, however many there are for it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_http::ws::{CloseReason, OpCode, Parser};
use actix_web::body::BoxBody;
use actix_web::web::{Bytes, BytesMut};
use futures_util::Stream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use weir_shared::hang_up::HangUp;

use crate::http::answers::PART;

/// Where frames are put.
pub struct Outlet {
    frames: mpsc::Sender<Outgoing>,
    /// Changes with every part that is taken.
    parts: watch::Receiver<()>,
}

/// The client does not take the frame, or the connection has ended.
#[derive(Debug)]
pub struct NotTaken;

/// What is said in a frame.
#[derive(Debug)]
pub enum Saying {
    Text(String),
    Ping,
    /// With the bytes of the ping that it answers.
    Pong(Bytes),
    Close(Option<CloseReason>),
}

impl Saying {
    fn encode(&self) -> Bytes {
        let mut frame = BytesMut::new();
        match self {
            Self::Text(text) => Parser::write_message(&mut frame, text, OpCode::Text, true, false),
            Self::Ping => Parser::write_message(&mut frame, [], OpCode::Ping, true, false),
            Self::Pong(bytes) => Parser::write_message(&mut frame, bytes, OpCode::Pong, true, false),
            Self::Close(reason) => Parser::write_close(&mut frame, reason.clone(), false),
        }
        frame.freeze()
    }
}

/// A frame that is not yet taken.
struct Outgoing {
    bytes: Bytes,
    taken: oneshot::Sender<()>,
}

/// The answer's body.
pub struct Frames {
    /// The library's own body, kept to the end: without it the client's frames are not read any more.
    _library: BoxBody,
    frames: mpsc::Receiver<Outgoing>,
    current: Option<Outgoing>,
    parts: watch::Sender<()>,
    over: Pin<Box<WaitForCancellationFutureOwned>>,
    /// The connection ends with the answer.
    _line: Option<Arc<HangUp>>,
}

/// An outlet, and the body whose end comes when the outlet is dropped and `over` is cancelled.
pub fn frames(library: BoxBody, over: CancellationToken, line: Option<Arc<HangUp>>) -> (Outlet, Frames) {
    let (sender, receiver) = mpsc::channel(1);
    let (taken, parts) = watch::channel(());
    let over = Box::pin(over.cancelled_owned());
    let frames = Frames { _library: library, frames: receiver, current: None, parts: taken, over, _line: line };
    (Outlet { frames: sender, parts }, frames)
}

impl Outlet {
    /// Sends a frame, and returns when it was taken. Where this is dropped before, the frame goes out all the same.
    ///
    /// # Errors
    /// When the connection has ended, or nothing was taken for `patience`.
    pub async fn send(&mut self, saying: Saying, patience: Duration) -> Result<(), NotTaken> {
        let bytes = saying.encode();
        // The text waits once, in its frame.
        drop(saying);
        let (taken, is_taken) = oneshot::channel();
        let outgoing = Outgoing { bytes, taken };
        let mut sending = std::pin::pin!(async {
            self.frames.send(outgoing).await.ok()?;
            is_taken.await.ok()
        });
        loop {
            tokio::select! {
                biased;
                sent = &mut sending => return sent.ok_or(NotTaken),
                part = tokio::time::timeout(patience, self.parts.changed()) => match part {
                    Ok(Ok(())) => {}
                    _ => return Err(NotTaken),
                },
            }
        }
    }
}

impl Stream for Frames {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut frame = match self.current.take() {
            Some(frame) => frame,
            None => match self.frames.poll_recv(context) {
                Poll::Ready(Some(frame)) => frame,
                Poll::Ready(None) => return self.over.as_mut().poll(context).map(|()| None),
                Poll::Pending => return Poll::Pending,
            },
        };
        let most = frame.bytes.len().min(PART);
        let part = frame.bytes.split_to(most);
        if frame.bytes.is_empty() {
            // Nobody waits any more, or is told.
            let _ = frame.taken.send(());
        } else {
            self.current = Some(frame);
        }
        self.parts.send_replace(());
        Poll::Ready(Some(Ok(part)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use futures_util::{FutureExt as _, StreamExt as _};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn pair() -> (Outlet, Frames, CancellationToken) {
        let over = CancellationToken::new();
        let (outlet, frames) = frames(BoxBody::new(()), over.clone(), None);
        (outlet, frames, over)
    }

    #[tokio::test]
    async fn a_frame_goes_out_in_parts_and_the_next_is_sent_when_all_of_it_was_taken() {
        let (mut outlet, mut frames, over) = pair();
        assert!(frames.next().now_or_never().is_none());
        let text = "x".repeat(PART * 2);
        {
            let mut sending = std::pin::pin!(outlet.send(Saying::Text(text.clone()), LONG));
            let mut got = Vec::new();
            for _ in 0..2 {
                assert!(sending.as_mut().now_or_never().is_none(), "it is not all taken");
                let part = frames.next().await.unwrap().unwrap();
                assert!(part.len() <= PART);
                got.extend_from_slice(&part);
            }
            assert!(sending.as_mut().now_or_never().is_none(), "it is not all taken");
            got.extend_from_slice(&frames.next().await.unwrap().unwrap());
            assert!(got.ends_with(text.as_bytes()));
            sending.now_or_never().unwrap().unwrap();
        }
        assert!(frames.next().now_or_never().is_none());
        drop(outlet);
        assert!(frames.next().now_or_never().is_none(), "the client may still say something");
        over.cancel();
        assert!(frames.next().await.is_none());
    }

    #[tokio::test]
    async fn who_takes_nothing_is_given_up_and_who_takes_slowly_is_not() {
        let (mut outlet, mut frames, _over) = pair();
        let patience = Duration::from_millis(100);
        let send = outlet.send(Saying::Text("x".repeat(PART * 8)), patience);
        let takes = async {
            for _ in 0..9 {
                tokio::time::sleep(patience / 4).await;
                frames.next().await.unwrap().unwrap();
            }
        };
        // The taker comes first: however long the machine stands still, its pause is over before the patience is.
        let ((), sent) = futures_util::future::join(takes, send).await;
        sent.unwrap();
        outlet.send(Saying::Text("more".into()), patience).await.unwrap_err();
        drop(frames);
        outlet.send(Saying::Text("more".into()), LONG).await.unwrap_err();
    }
}
