//! Takes a connection over from the HTTP server: what comes in the request's body and goes out in the answer's is then
//! one stream of bytes in both directions.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::error::PayloadError;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, web};
use bytes::Bytes;
use futures_util::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_util::sync::PollSender;
use weir_shared::hang_up::{HangUp, Line};
use weir_shared::worker_api::Refusal;

use crate::calls::Refused;

/// Largest piece handed to the server at once, bytes; a few of them may wait.
const PIECE: usize = 128 << 10;
const PIECES: usize = 2;

/// An upgraded connection. Lives on the thread that accepted it.
pub struct Upgraded {
    from: web::Payload,
    /// Read from the client and not yet taken.
    left: Bytes,
    to: PollSender<Bytes>,
}

/// Answers a WebSocket handshake: the response to return and the stream that it opens.
///
/// # Errors
/// 400 with what the request lacks.
pub fn accept(request: &HttpRequest, payload: web::Payload) -> Result<(HttpResponse, Upgraded), Refused> {
    let text = |name: header::HeaderName| request.headers().get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let asked = text(header::UPGRADE).eq_ignore_ascii_case("websocket") && text(header::SEC_WEBSOCKET_VERSION) == "13";
    let key = text(header::SEC_WEBSOCKET_KEY);
    if !asked || key.is_empty() {
        return Err(Refused::new(Refusal::Malformed, "this path speaks WebSocket only"));
    }
    let accepted = HeaderValue::from_str(&derive_accept_key(key.as_bytes())).expect("base64 is a header value");
    let hang_up = request.conn_data::<Line>().and_then(|line| line.hang_up(request.peer_addr()));
    let (to, pieces) = mpsc::channel(PIECES);
    let response = HttpResponse::SwitchingProtocols()
        .upgrade("websocket")
        .insert_header((header::SEC_WEBSOCKET_ACCEPT, accepted))
        .streaming(Pieces { pieces, _hang_up: hang_up });
    Ok((response, Upgraded { from: payload, left: Bytes::new(), to: PollSender::new(to) }))
}

struct Pieces {
    pieces: mpsc::Receiver<Bytes>,
    /// The connection ends with the stream.
    _hang_up: Option<HangUp>,
}

impl Stream for Pieces {
    type Item = Result<Bytes, io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.pieces.poll_recv(cx).map(|piece| piece.map(Ok))
    }
}

impl AsyncRead for Upgraded {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        while self.left.is_empty() {
            match ready!(Pin::new(&mut self.from).poll_next(cx)) {
                Some(Ok(bytes)) => self.left = bytes,
                Some(Err(PayloadError::Incomplete(_))) | None => return Poll::Ready(Ok(())),
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error.to_string()))),
            }
        }
        let size = self.left.len().min(buffer.remaining());
        buffer.put_slice(&self.left.split_to(size));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Upgraded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
        ready!(self.to.poll_reserve(cx)).map_err(|_| closed())?;
        let piece = &bytes[..bytes.len().min(PIECE)];
        self.to.send_item(Bytes::copy_from_slice(piece)).map_err(|_| closed())?;
        Poll::Ready(Ok(piece.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The server sends a piece as soon as it has it.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.to.close();
        Poll::Ready(Ok(()))
    }
}
