//! Room for large answers: those of one team that are read from the database, made or sent at the same time stay within a
//! bound, so that callers who ask for much at once, or do not read what they asked for, neither fill the process nor keep
//! it from others.
//!
//! Who reads documents takes their room before they are unpacked ([`crate::app::App::open`]); an answer that was made
//! without it takes it before it is sent, and where many such wait, the team's next call is refused. An answer's room is
//! given back with its last bytes, which go out in small parts: the server would copy one that is whole into a buffer of its
//! own. A client that reads nothing is cut off after a minute ([`crate::http::connections`]).

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::body::{BodySize, BoxBody, EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::web::{self, Bytes};
use actix_web::{Error, HttpMessage as _, HttpRequest, ResponseError as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::TeamId;
use weir_shared::shares::Common;

use crate::app::App;
use crate::callers::auth::CallerTeam;
use crate::error::{ApiError, ApiResult};

/// Answers of more bytes than this are large.
const LARGE: usize = 256 << 10;
/// Bytes of large answers that a team may have at once. One that is longer has all of it.
const PER_TEAM: usize = 64 << 20;
/// Bytes that are counted as one.
const UNIT: usize = 1 << 10;
/// How long an answer waits for room: longer than a client that reads nothing keeps it.
const PATIENCE: Duration = Duration::from_secs(90);
/// Seconds after which a caller whose answers take all the room may try again.
const RETRY_SECONDS: u64 = 5;
/// What is handed to the server at a time, bytes.
pub const PART: usize = 64 << 10;

/// The teams that have large answers now.
#[derive(Debug)]
pub struct Answers {
    teams: Common<TeamId, OfTeam>,
    patience: Duration,
}

/// A team's room, in units.
#[derive(Debug)]
struct OfTeam {
    room: Arc<Semaphore>,
    /// Bytes of answers that are made and wait for it.
    made: AtomicUsize,
}

/// Room that an answer has, given back when it is dropped. A small answer needs none.
#[derive(Debug, Default)]
pub struct Room(Option<(OwnedSemaphorePermit, Arc<OfTeam>)>);

/// An answer that is made and waits for room.
struct Made {
    team: Arc<OfTeam>,
    bytes: usize,
}

impl Drop for Made {
    fn drop(&mut self) {
        self.team.made.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Default for Answers {
    fn default() -> Self {
        Self { teams: Common::default(), patience: PATIENCE }
    }
}

impl Answers {
    /// Room for this many bytes, as soon as the team's other answers leave it.
    ///
    /// # Errors
    /// 429 when they have not for long.
    pub async fn room(&self, team: TeamId, bytes: usize) -> ApiResult<Room> {
        self.room_within(self.patience, team, bytes).await
    }

    /// Refuses another call of a team whose answers are made and not read.
    ///
    /// # Errors
    /// 429 when as much of them waits as the room has.
    pub fn refuse_unread(&self, team: TeamId) -> ApiResult<()> {
        let made = self.teams.held(&team).map_or(0, |team| team.made.load(Ordering::Relaxed));
        if made < PER_TEAM { Ok(()) } else { Err(unread()) }
    }

    /// Room for an answer that is made, and holds what it takes while it waits.
    async fn room_of_made(&self, team: TeamId, bytes: usize) -> ApiResult<Room> {
        let made = Made { team: self.teams.of(&team, OfTeam::default), bytes };
        made.team.made.fetch_add(bytes, Ordering::Relaxed);
        self.room(team, bytes).await
    }

    async fn room_within(&self, patience: Duration, team: TeamId, bytes: usize) -> ApiResult<Room> {
        if bytes <= LARGE {
            return Ok(Room::default());
        }
        let units = u32::try_from(bytes.min(PER_TEAM).div_ceil(UNIT)).unwrap_or(u32::MAX);
        let team = self.teams.of(&team, OfTeam::default);
        match tokio::time::timeout(patience, Arc::clone(&team.room).acquire_many_owned(units)).await {
            // Semaphores are never closed.
            Ok(taken) => Ok(Room(taken.ok().map(|permit| (permit, team)))),
            Err(_) => Err(unread()),
        }
    }
}

impl Default for OfTeam {
    fn default() -> Self {
        Self { room: Arc::new(Semaphore::new(PER_TEAM / UNIT)), made: AtomicUsize::new(0) }
    }
}

fn unread() -> ApiError {
    let text = format!(
        "Answers to your requests that you have not read yet take up {} MB together. Read them, or ask for fewer large ones \
         at once.",
        PER_TEAM >> 20
    );
    ApiError::new(ErrorCode::RateLimited, text).retry_after(RETRY_SECONDS)
}

impl Room {
    /// Has the answer to the request keep the room until it is sent.
    pub fn keep_for_answer(self, request: &HttpRequest) {
        if self.0.is_some() {
            request.extensions_mut().insert(self);
        }
    }
}

/// The middleware next to the handlers: large answers have room, and go out in parts.
///
/// # Errors
/// What the handler failed with, unchanged.
pub async fn hold(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody, BoxBody>>, Error> {
    let response = next.call(request).await?;
    let size = match response.response().body().size() {
        BodySize::Sized(size) => usize::try_from(size).unwrap_or(usize::MAX),
        BodySize::None | BodySize::Stream => 0,
    };
    if size <= LARGE {
        return Ok(response.map_into_left_body());
    }
    let (request, response) = response.into_parts();
    let (kept, team) = {
        let mut known = request.extensions_mut();
        (known.remove::<Room>(), known.get::<CallerTeam>().map(|team| team.0))
    };
    let room = match (kept, team, request.app_data::<web::Data<App>>()) {
        (Some(room), ..) => Ok(room),
        // A read whose documents alone are small.
        (None, ..) if request.method().is_safe() && size <= 2 * LARGE => Ok(Room::default()),
        // What was only read does not wait with all that it takes: it can be asked for again.
        (None, Some(team), Some(app)) if request.method().is_safe() => {
            app.answers.room_within(Duration::ZERO, team, size).await
        }
        (None, Some(team), Some(app)) => app.answers.room_of_made(team, size).await,
        // Files that are in the program: nothing of them is made for whoever asks.
        (None, ..) => Ok(Room::default()),
    };
    let room = match room {
        Ok(room) => room,
        Err(error) => {
            return Ok(ServiceResponse::new(request, error.error_response().map_into_right_body()));
        }
    };
    let (head, body) = response.into_parts();
    let response = match body.try_into_bytes() {
        Ok(bytes) => head.set_body(EitherBody::right(BoxBody::new(Held { bytes, _room: room }))),
        Err(body) => head.set_body(EitherBody::left(body)),
    };
    Ok(ServiceResponse::new(request, response))
}

/// A body with its room.
#[derive(Debug)]
struct Held {
    bytes: Bytes,
    _room: Room,
}

impl MessageBody for Held {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.bytes.len() as u64)
    }

    fn poll_next(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Infallible>>> {
        let next = self.bytes.len().min(PART);
        Poll::Ready((next > 0).then(|| Ok(self.bytes.split_to(next))))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::pin::pin;

    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_teams_large_answers_share_a_bound_that_others_do_not_notice() {
        let answers = Answers { patience: Duration::from_millis(300), ..Answers::default() };
        let (one, other) = (TeamId::new(), TeamId::new());
        let first = answers.room(one, 40 << 20).await.unwrap();
        let mut second = pin!(answers.room(one, 30 << 20));
        assert!(second.as_mut().now_or_never().is_none(), "there is no room for both");
        answers.room(one, LARGE).now_or_never().unwrap().unwrap();
        let mut whole = pin!(answers.room(other, 500 << 20));
        let whole = whole.as_mut().now_or_never().unwrap().unwrap();
        drop(first);
        let second = second.await.unwrap();
        // What is longer than the whole room waits for all of it, and not for ever.
        let refused = answers.room(one, 500 << 20).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::RateLimited);
        // As much as the room has may wait that is made already; whoever calls then is refused.
        let (mut first, mut more) =
            (pin!(answers.room_of_made(one, 40 << 20)), pin!(answers.room_of_made(one, 40 << 20)));
        assert!(first.as_mut().now_or_never().is_none());
        answers.refuse_unread(one).unwrap();
        assert!(more.as_mut().now_or_never().is_none());
        assert_eq!(answers.refuse_unread(one).unwrap_err().code(), ErrorCode::RateLimited);
        answers.refuse_unread(other).unwrap();
        drop((second, whole));
        let (first, more) = (first.await, more.await.is_err());
        assert!(first.is_ok() && more);
        answers.refuse_unread(one).unwrap();
        drop(first);
    }

    #[tokio::test]
    async fn a_body_goes_out_in_parts_and_gives_its_room_back_at_its_end() {
        let (answers, team) = (Answers::default(), TeamId::new());
        let room = answers.room(team, PER_TEAM).await.unwrap();
        let bytes = Bytes::from((0..PART * 2 + 7).map(|n| n as u8).collect::<Vec<_>>());
        let mut body = Box::pin(Held { bytes: bytes.clone(), _room: room });
        let mut sent = Vec::new();
        while let Some(part) = std::future::poll_fn(|context| body.as_mut().poll_next(context)).await {
            let part = part.unwrap();
            assert!(part.len() <= PART);
            sent.extend_from_slice(&part);
            assert!(answers.room(team, PER_TEAM).now_or_never().is_none());
        }
        assert_eq!(sent, bytes);
        drop(body);
        answers.room(team, PER_TEAM).now_or_never().unwrap().unwrap();
    }
}
