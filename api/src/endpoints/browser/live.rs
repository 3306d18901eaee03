//! `/live/{id}`: the page that shows a session, and its WebSocket (wire 8.5).
//!
//! ```text
//! page                          API                                  worker
//!   | GET /live/{id}/socket      |                                      |
//!   |<---------------------- 101 |                                      |
//!   | first message: the token ->| checks it: view or control           |
//!   |                            | GET /sessions/{id}/live?control=0|1 ->|
//!   |<======================= bytes, unread =========================>|
//! ```
//!
//! The page takes the token from the part of its address that browsers do not send, so no request line holds it.

use std::time::Duration;

use actix_http::ws::hash_key;
use actix_web::http::header::{self, HeaderValue};
use actix_web::web::{Bytes, BytesMut, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use futures_util::StreamExt;
use weir_shared::domain::capability::{Capability, verify};
use weir_shared::error_code::ErrorCode;
use weir_shared::hang_up::HangUp;
use weir_shared::ids::SessionId;
use weir_shared::shares::Share;
use weir_shared::worker_api::relay::LiveQuery;
use weir_shared::worker_api::relay::close_code::{ENDED, OFF, REFUSED};

use super::splice::{Handshake, WorkerSocket};
use super::{locate, session_id};
use crate::app::{App, AppData};
use crate::error::{ApiError, ApiResult};
use crate::http::asset::asset;
use crate::http::connections;
use crate::openapi::{Group, Operation};

const PAGE: &str = include_str!("live/index.html");
const SCRIPT: &str = include_str!("live/view.js");
const STYLE: &str = include_str!("live/view.css");

/// Everything comes from here, nothing may be added, and any site may show the page in a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors *";

/// Time for the first message.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time for a client to answer a close frame.
const FAREWELL: Duration = Duration::from_secs(2);
/// Longest first message, bytes; a token has 64.
const FIRST: usize = 125;

/// RFC 6455: the service has a problem, try again.
const TRY_AGAIN: u16 = 1013;

/// The page in the API's document.
pub fn doc_page() -> Operation {
    let text = "What `liveViewUrl` and `interactiveLiveViewUrl` lead to: a page that shows a session, and lets it be used. \
        The part of the address after # is the capability.";
    Operation::public("watchBrowserSession", "Live view", text)
        .group(Group::Browser)
        .any_id()
        .text_answer("The page.", "text/html; charset=utf-8")
}

/// The page's script in the API's document.
pub fn doc_script() -> Operation {
    let text = "The live view's script.";
    Operation::public("getLiveViewScript", "Script of the live view", text)
        .group(Group::Browser)
        .text_answer("The script.", "text/javascript; charset=utf-8")
}

/// The page's style in the API's document.
pub fn doc_style() -> Operation {
    let text = "The live view's style.";
    Operation::public("getLiveViewStyle", "Style of the live view", text)
        .group(Group::Browser)
        .text_answer("The style.", "text/css; charset=utf-8")
}

/// The page's WebSocket in the API's document.
pub fn doc_socket() -> Operation {
    let text = "The live view's WebSocket; its first message is the capability.";
    Operation::public("openLiveViewSocket", "WebSocket of the live view", text)
        .group(Group::Browser)
        .bare_answer(101, "The WebSocket. What is wrong is told by its close code.")
        .errors(&[400, 404, 500])
}

/// `GET /live/{id}`: the same page for every session; which one, and whether it may, it learns on its socket.
pub async fn page() -> HttpResponse {
    asset("text/html; charset=utf-8", POLICY, PAGE)
}

/// `GET /live/view.js`.
pub async fn script() -> HttpResponse {
    asset("text/javascript; charset=utf-8", POLICY, SCRIPT)
}

/// `GET /live/view.css`.
pub async fn style() -> HttpResponse {
    asset("text/css; charset=utf-8", POLICY, STYLE)
}

/// `GET /live/{id}/socket`: the page's WebSocket. Refusals are told by its close code, because a page sees no status.
///
/// # Errors
/// 400 for anything but a WebSocket handshake, 404 for a malformed id.
pub async fn socket(app: AppData, request: HttpRequest, id: Path<String>, payload: Payload) -> ApiResult<HttpResponse> {
    let id = session_id(&id)?;
    let handshake = Handshake::of(&request)?;
    // The handshake's answer alone: the frames of this connection are the worker's business.
    let accept = HeaderValue::from_bytes(&hash_key(handshake.key())).map_err(|e| ApiError::internal(&e))?;
    Ok(HttpResponse::SwitchingProtocols()
        .upgrade("websocket")
        .insert_header((header::SEC_WEBSOCKET_ACCEPT, accept))
        .streaming(futures_util::stream::once(open(app, id, payload, connections::hang_up(&request))).flatten()))
}

type Body = futures_util::stream::LocalBoxStream<'static, std::io::Result<Bytes>>;

/// What the client is sent once it has said its token: the worker's side, or why not.
async fn open(app: AppData, id: SessionId, mut payload: Payload, hang_up: Option<HangUp>) -> Body {
    match admit(&app, id, &mut payload).await {
        Ok((socket, ahead, place)) => socket.join(payload, ahead, (hang_up, place), &app.stopping).boxed_local(),
        Err(refusal) => {
            let frame = futures_util::stream::iter([Ok(close_frame(&refusal))]);
            frame.chain(farewell(payload, hang_up)).boxed_local()
        }
    }
}

/// Nothing more, and ends once the client has answered the close frame.
fn farewell(mut payload: Payload, hang_up: Option<HangUp>) -> impl futures_util::Stream<Item = std::io::Result<Bytes>> {
    let answered = async move {
        let _held = hang_up;
        let _ = tokio::time::timeout(FAREWELL, payload.next()).await;
        None
    };
    futures_util::stream::once(answered).filter_map(std::future::ready)
}

/// Why a viewer is not let in: the close code and, for the page, a word.
struct ViewRefusal(u16, &'static str);

impl From<ApiError> for ViewRefusal {
    fn from(error: ApiError) -> Self {
        match error.code() {
            ErrorCode::Unauthorized | ErrorCode::NotFound => Self(REFUSED, "no such view"),
            ErrorCode::Gone => Self(ENDED, "ended"),
            _ => Self(TRY_AGAIN, "try again"),
        }
    }
}

/// Reads the token and opens the worker's side. Returns what the client sent after the token, and the place of the team's
/// that it has.
async fn admit(app: &App, id: SessionId, payload: &mut Payload) -> Result<(WorkerSocket, Bytes, Share), ViewRefusal> {
    let refused = || ViewRefusal(REFUSED, "no such view");
    let first = tokio::time::timeout(PATIENCE, first_message(payload)).await;
    let (token, ahead) = first.ok().flatten().ok_or_else(refused)?;
    let has = |kind| verify(app.internal_secret.as_bytes(), kind, id, &token);
    let has_control = has(Capability::Control);
    if !has_control && !has(Capability::View) {
        return Err(refused());
    }
    let (worker, is_streamed, team) = locate(app, id).await?;
    if !is_streamed {
        return Err(ViewRefusal(OFF, "no live view"));
    }
    let place = app.places.socket(team)?;
    let path = LiveQuery::new(has_control).path(id);
    let socket = WorkerSocket::open(&worker, &path, &app.internal_secret, &Handshake::own()).await?;
    Ok((socket, ahead, place))
}

/// The text of the first frame, and the bytes after it. `None`: the client left, or sent something else.
async fn first_message(payload: &mut Payload) -> Option<(String, Bytes)> {
    let mut bytes = BytesMut::new();
    loop {
        if let Some(frame) = parse_first(&mut bytes) {
            return Some((frame?, bytes.freeze()));
        }
        bytes.extend_from_slice(&payload.next().await?.ok()?);
    }
}

/// Takes one short text frame of a client (RFC 6455, 5.2) off the front: two bytes of head, a mask, the text.
/// `None`: more is needed; `Some(None)`: it is something else.
fn parse_first(bytes: &mut BytesMut) -> Option<Option<String>> {
    const FINAL_TEXT: u8 = 0x81;
    const MASKED: u8 = 0x80;
    let (&first, &second) = (bytes.first()?, bytes.get(1)?);
    let length = usize::from(second & !MASKED);
    if first != FINAL_TEXT || second & MASKED == 0 || length > FIRST {
        return Some(None);
    }
    if bytes.len() < 6 + length {
        return None;
    }
    let frame = bytes.split_to(6 + length);
    let text = frame[6..].iter().zip(frame[2..6].iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
    Some(String::from_utf8(text).ok())
}

/// A close frame of a server.
fn close_frame(ViewRefusal(code, reason): &ViewRefusal) -> Bytes {
    let mut frame = vec![0x88, 2 + reason.len() as u8];
    frame.extend_from_slice(&code.to_be_bytes());
    frame.extend_from_slice(reason.as_bytes());
    frame.into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn frame(first: u8, text: &[u8]) -> Vec<u8> {
        let mask = [1, 2, 3, 4];
        let mut frame = vec![first, 0x80 | text.len() as u8];
        frame.extend_from_slice(&mask);
        frame.extend(text.iter().zip(mask.iter().cycle()).map(|(b, m)| b ^ m));
        frame
    }

    #[test]
    fn the_first_frame_is_read_and_what_follows_is_kept() {
        let mut all = frame(0x81, b"token");
        all.extend_from_slice(b"rest");
        for cut in 0..all.len() - 4 {
            let mut bytes = BytesMut::from(&all[..cut]);
            assert_eq!(parse_first(&mut bytes), None, "{cut}");
        }
        let mut bytes = BytesMut::from(all.as_slice());
        assert_eq!(parse_first(&mut bytes), Some(Some("token".to_owned())));
        assert_eq!(bytes, b"rest".as_slice());
    }

    #[test]
    fn anything_but_a_short_masked_text_is_refused() {
        for wrong in [frame(0x82, b"x"), frame(0x01, b"x"), frame(0x89, b""), vec![0x81, 5], vec![0x81, 0xfe, 0, 200]] {
            assert_eq!(parse_first(&mut BytesMut::from(wrong.as_slice())), Some(None), "{wrong:?}");
        }
        assert_eq!(parse_first(&mut BytesMut::from(frame(0x81, &[0xff]).as_slice())), Some(None));
    }
}
