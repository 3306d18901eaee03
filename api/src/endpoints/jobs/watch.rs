//! The WebSocket on the status path (wire 6): documents as they come.
//!
//! ```text
//! client                                   server
//!   | GET, Upgrade, Authorization            |
//!   |   or the key as subprotocol            |
//!   |<--------------- 101, subprotocol echoed|
//!   |<-- {"type":"catchup","data":{status}}  |
//!   |<-- {"type":"document","data":{…}}  *   |
//!   |<-- {"type":"done","data":{status}}     |  only when it completed: both clients call it a success
//!   |<-- close 1000                          |
//! ```
//!
//! Both clients take a catchup with a final status for the end and stop listening. So the one of a finished job
//! whose documents do not all fit says `scraping`, and `done` comes after the rest.
//! A refusal is told after the handshake: 3000 not authorised, 3003 another team's, 1008 unknown, 1011 our fault. A key that is
//! revoked while its socket is open is as good as none. While the database is away the client is kept waiting for a minute,
//! and then told nothing but goodbye, as one is told at once that is too many (1013).

use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use actix_http::BoxedPayloadStream;
use actix_web::body::{BodyStream, MessageBody as _};
use actix_web::guard::GuardContext;
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::web::{Bytes, Path, Payload};
use actix_web::{FromRequest as _, HttpRequest, HttpResponse, dev};
use actix_ws::{CloseCode, CloseReason, Message, MessageStream};
use serde::Serialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use weir_shared::clock;
use weir_shared::domain::job::JobStatus;
use weir_shared::error_code::ErrorCode;
use weir_shared::hang_up::HangUp;
use weir_shared::shares::Share;
use weir_shared::store::work::documents::{self, Part, StoredDocument};
use weir_shared::store::work::jobs::JobRow;

use super::inlet::ShortFrames;
use super::outlet::{Outlet, Saying, frames};
use super::status::{Body, DEFAULT_LIMIT, PAGE_BYTES, shown};
use super::{Served, load, served_by};
use crate::app::{App, AppData};
use crate::callers::auth::Credentials;
use crate::callers::limits::Bucket;
use crate::endpoints::outage::Patience;
use crate::error::{ApiError, ApiResult};
use crate::http::answers::Room;
use crate::http::{connections, extract};

/// Time between pings, and between looks whether the key still stands.
const PING: Duration = Duration::from_secs(20);
/// A client that says nothing for so long, not even a pong, is gone.
const SILENCE: Duration = Duration::from_secs(70);
/// A client that takes nothing of a frame for so long is too slow: the documents are there over HTTP.
const SLOW: Duration = Duration::from_secs(30);
/// How long a client is kept while the database is away.
const OUTAGE: Duration = Duration::from_secs(60);
/// Time for a client to answer our close frame, and for one that has left to take it.
const FAREWELL: Duration = Duration::from_secs(2);
/// Most bytes of a close frame's text (RFC 6455, 5.5).
const MAX_REASON: usize = 123;
/// Documents read at once, and their bytes: what one socket may hold in memory behind its first frame. They count among the
/// team's answers until they are sent.
const FRAMES_AT_ONCE: i64 = 50;
const BYTES_AT_ONCE: usize = 2 * 1024 * 1024;

/// Whether a GET asks for a WebSocket.
pub fn is_upgrade(context: &GuardContext<'_>) -> bool {
    let value = context.head().headers().get(header::UPGRADE).and_then(|v| v.to_str().ok());
    value.is_some_and(|v| v.split(',').any(|p| p.trim().eq_ignore_ascii_case("websocket")))
}

#[derive(Serialize)]
struct Frame<T> {
    r#type: &'static str,
    data: T,
}

#[derive(Serialize)]
struct ErrorFrame<'a> {
    r#type: &'static str,
    error: &'a str,
}

/// Why a stream ends.
enum WatchEnd {
    /// Everything was said.
    Done,
    /// The client said goodbye, for this reason.
    Left(Option<CloseReason>),
    /// The client is not there any more, fell silent or is too slow.
    Gone,
    /// The process stops; the client goes on over HTTP.
    Stopping,
    /// The database, or the place of the blobs, stays away. That says nothing of the job, whose end both clients take an
    /// `error` frame for; without one they go on over HTTP.
    Away,
    /// There are as many sockets as may be. Without an `error` frame the client goes on over HTTP here, too.
    Crowded,
    Refused(ApiError),
}

impl From<ApiError> for WatchEnd {
    fn from(error: ApiError) -> Self {
        if error.may_pass() { Self::Away } else { Self::Refused(error) }
    }
}

/// Upgrades the connection and streams the job.
///
/// # Errors
/// When the request is not a valid handshake.
pub async fn handle(
    app: AppData,
    request: HttpRequest,
    id: Path<String>,
    payload: Payload,
) -> Result<HttpResponse, actix_web::Error> {
    let served = served_by(&request)?;
    let given = Given::of(request.headers());
    let offered: Vec<&str> = given.protocol.as_deref().into_iter().collect();
    // The library's own way of sending takes dozens of frames ahead of the client.
    let mut payload = dev::Payload::from(Box::pin(ShortFrames::of(payload)) as BoxedPayloadStream);
    let payload = Payload::from_request(&request, &mut payload).await?;
    let (response, _, messages) = actix_ws::handle_with_protocols(&request, payload, &offered)?;
    let over = CancellationToken::new();
    let line = connections::hang_up_on_reader(&request).map(Arc::new);
    let (response, library) = response.into_parts();
    let (outlet, frames) = frames(library, over.clone(), line.clone());
    let response = response.set_body(BodyStream::new(frames).boxed());
    let over = over.drop_guard();
    actix_web::rt::spawn(async move {
        let _over = over;
        app.metrics.sockets.inc();
        let ear = Ear { messages, heard: clock::instant(), ping: None };
        let socket = Socket { outlet, ear, ping_at: clock::deadline(PING) };
        let look_at = app.db.clock().instant() + PING;
        let mut watch = Watch { app: &app, served, given, look_at, socket, place: None };
        let end = watch.stream(&id).await.err().unwrap_or(WatchEnd::Done);
        close(watch.socket, end, line.as_deref()).await;
        app.metrics.sockets.dec();
    });
    Ok(response)
}

/// What a socket was opened with.
struct Given {
    authorization: Option<HeaderValue>,
    /// The first subprotocol offered: the JavaScript client's key.
    protocol: Option<String>,
}

impl Given {
    fn of(headers: &HeaderMap) -> Self {
        let offered = headers.get(header::SEC_WEBSOCKET_PROTOCOL).and_then(|value| value.to_str().ok());
        let first = offered.and_then(|value| value.split(',').map(str::trim).find(|p| !p.is_empty()));
        Self { authorization: headers.get(header::AUTHORIZATION).cloned(), protocol: first.map(str::to_owned) }
    }

    fn credentials(&self) -> Credentials<'_> {
        match (Credentials::of(self.authorization.as_ref()), &self.protocol) {
            (Credentials::Absent, Some(key)) => Credentials::Token(key),
            (given, _) => given,
        }
    }
}

/// A socket, and on whose behalf it is told of a job.
struct Watch<'a> {
    app: &'a App,
    served: Served,
    given: Given,
    /// When it is looked again whether the key still stands.
    look_at: Instant,
    socket: Socket,
    /// The team's, for as long as the job is watched; `None`: it is not known yet whose socket this is.
    place: Option<Share>,
}

impl Watch<'_> {
    /// Says everything there is to say about the job until it has ended.
    async fn stream(&mut self, id: &str) -> Result<(), WatchEnd> {
        let mut job = self.open(id).await?;
        let mut sent = self.catch_up(&job).await?;
        loop {
            while sent < job.completed {
                sent += self.send_documents(&job, sent..job.completed).await?;
            }
            if job.status != JobStatus::Scraping {
                break;
            }
            job = self.wait_for_change(&job).await?;
        }
        if job.status == JobStatus::Completed {
            let (app, version) = (self.app, self.served.version);
            let data = self.ask(async |_| Body::new(app, version, &job, &[], None).await).await?;
            self.socket.send(text(&Frame { r#type: "done", data })?).await?;
        }
        Ok(())
    }

    /// Asks, with an ear to the client. While the database is away it asks again, for some time.
    async fn ask<T>(&mut self, ask: impl AsyncFn(&Given) -> ApiResult<T>) -> Result<T, WatchEnd> {
        let mut patience = Patience::until(clock::deadline(OUTAGE));
        loop {
            let answer = tokio::select! {
                answer = ask(&self.given) => answer,
                end = self.socket.listen() => return Err(end),
                () = self.app.stopping.cancelled() => return Err(WatchEnd::Stopping),
            };
            let pause = match answer {
                Ok(answer) => return Ok(answer),
                Err(refusal) => patience.after(refusal)?,
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                end = self.socket.listen() => return Err(end),
                () = self.app.stopping.cancelled() => return Err(WatchEnd::Stopping),
            }
            self.socket.ping_if_due().await?;
        }
    }

    /// The caller's job.
    async fn open(&mut self, id: &str) -> Result<JobRow, WatchEnd> {
        let (app, served) = (self.app, self.served);
        let caller = self.ask(async |given| app.caller_with(given.credentials()).await).await?;
        self.ask(async |_| app.admit(&caller, Bucket::Status).await).await?;
        self.place = Some(app.places.socket(caller.team_id()).map_err(|_| WatchEnd::Crowded)?);
        let id = extract::path_id(id)?;
        let job = self.ask(async |_| load(app, served, id).await).await?;
        if job.team_id == caller.team_id() {
            Ok(job)
        } else {
            Err(ApiError::new(ErrorCode::Forbidden, "Forbidden").into())
        }
    }

    /// Looks now and then whether the key still stands: what it was for is not told of once it is revoked.
    async fn look_at_key(&mut self) -> Result<(), WatchEnd> {
        let (app, now) = (self.app, self.app.db.clock().instant());
        if now >= self.look_at {
            self.ask(async |given| app.caller_with(given.credentials()).await).await?;
            self.look_at = now + PING;
        }
        Ok(())
    }

    /// The first frame. Returns how many documents it carried.
    async fn catch_up(&mut self, job: &JobRow) -> Result<i64, WatchEnd> {
        let limit = DEFAULT_LIMIT.min(job.completed);
        let (documents, _room) = match limit {
            1.. => self.read(job, Part { skip: 0, limit, max_bytes: PAGE_BYTES }).await?,
            _ => (Vec::new(), Room::default()),
        };
        let count = documents.len() as i64;
        let (app, version) = (self.app, self.served.version);
        let mut body = self.ask(async |_| Body::new(app, version, job, &documents, None).await).await?;
        if count < job.completed {
            body.status = JobStatus::Scraping.as_str();
        }
        let frame = text(&Frame { r#type: "catchup", data: body })?;
        // It waits for its client once, not as documents, too.
        drop(documents);
        self.socket.send(frame).await?;
        Ok(count)
    }

    /// Documents of the job, with the room that they take until they are sent.
    async fn read(&mut self, job: &JobRow, part: Part) -> Result<(Vec<StoredDocument>, Room), WatchEnd> {
        let app = self.app;
        self.ask(async |_| app.open(job.team_id, documents::find(&app.db, job.id, part).await?).await).await
    }

    /// Sends the first of these documents. Returns how many.
    async fn send_documents(&mut self, job: &JobRow, open: Range<i64>) -> Result<i64, WatchEnd> {
        self.look_at_key().await?;
        let limit = FRAMES_AT_ONCE.min(open.end - open.start);
        let part = Part { skip: open.start, limit, max_bytes: BYTES_AT_ONCE };
        let (documents, _room) = self.read(job, part).await?;
        if documents.is_empty() {
            // The job has expired and was removed while its documents were sent.
            return Err(WatchEnd::Refused(ApiError::job_expired()));
        }
        for document in &documents {
            let data = shown(self.served.version, &document.json);
            self.socket.send(text(&Frame { r#type: "document", data })?).await?;
        }
        Ok(documents.len() as i64)
    }

    /// Waits for news of the job.
    async fn wait_for_change(&mut self, job: &JobRow) -> Result<JobRow, WatchEnd> {
        let (app, served, seen) = (self.app, self.served, (job.completed, job.failed, job.status));
        loop {
            self.look_at_key().await?;
            let until = self.socket.ping_at;
            let now = self.ask(async |_| {
                app.wake.job_changed(job.id, seen, until).await?;
                load(app, served, job.id).await
            });
            let now = now.await?;
            if (now.completed, now.failed, now.status) != seen {
                return Ok(now);
            }
            self.socket.ping_if_due().await?;
        }
    }
}

fn text(frame: &impl Serialize) -> ApiResult<Saying> {
    Ok(Saying::Text(serde_json::to_string(frame).map_err(|e| ApiError::internal(&e))?))
}

struct Socket {
    outlet: Outlet,
    ear: Ear,
    /// When it is to be pinged: it was sent nothing for so long then.
    ping_at: Instant,
}

impl Socket {
    /// Sends a frame, with an ear to the client. Returns when it was taken.
    async fn send(&mut self, frame: Saying) -> Result<(), WatchEnd> {
        {
            let mut sending = pin!(self.outlet.send(frame, SLOW));
            loop {
                tokio::select! {
                    biased;
                    sent = &mut sending => break sent.map_err(|_| WatchEnd::Gone)?,
                    heard = self.ear.hear() => heard?,
                }
            }
        }
        self.ping_at = clock::deadline(PING);
        self.answer_ping().await
    }

    async fn ping_if_due(&mut self) -> Result<(), WatchEnd> {
        if clock::instant() < self.ping_at {
            return Ok(());
        }
        if self.ear.heard.elapsed() > SILENCE {
            return Err(WatchEnd::Gone);
        }
        self.send(Saying::Ping).await
    }

    async fn answer_ping(&mut self) -> Result<(), WatchEnd> {
        match self.ear.ping.take() {
            Some(bytes) => self.outlet.send(Saying::Pong(bytes), SLOW).await.map_err(|_| WatchEnd::Gone),
            None => Ok(()),
        }
    }

    /// Answers pings until the client leaves. Clients have nothing else to say.
    async fn listen(&mut self) -> WatchEnd {
        loop {
            let heard = match self.ear.hear().await {
                Ok(()) => self.answer_ping().await,
                left => left,
            };
            if let Err(end) = heard {
                return end;
            }
        }
    }
}

/// What the client says.
struct Ear {
    messages: MessageStream,
    heard: Instant,
    /// A ping that was not answered yet.
    ping: Option<Bytes>,
}

impl Ear {
    /// Listens until a ping has come. `Err`: the client leaves.
    async fn hear(&mut self) -> Result<(), WatchEnd> {
        while let Some(Ok(message)) = self.messages.recv().await {
            self.heard = clock::instant();
            match message {
                Message::Ping(bytes) => {
                    self.ping = Some(bytes);
                    return Ok(());
                }
                Message::Close(reason) => return Err(WatchEnd::Left(reason)),
                _ => {}
            }
        }
        Err(WatchEnd::Gone)
    }
}

/// Says goodbye with the code of wire 6, or as the client did, and waits a moment for its answer. Who does not take the
/// goodbye is cut off.
async fn close(mut socket: Socket, end: WatchEnd, line: Option<&HangUp>) {
    let (reason, bound) = match end {
        WatchEnd::Done => (Some(CloseReason::from(CloseCode::Normal)), SLOW),
        WatchEnd::Left(ref reason) => (reason.clone(), FAREWELL),
        WatchEnd::Gone => (None, FAREWELL),
        WatchEnd::Stopping => (Some(CloseCode::Restart.into()), SLOW),
        WatchEnd::Away => (Some(CloseCode::Error.into()), SLOW),
        WatchEnd::Crowded => (Some(CloseCode::Again.into()), SLOW),
        WatchEnd::Refused(ref error) => {
            let mut description = error.to_string();
            description.truncate(description.floor_char_boundary(MAX_REASON));
            (Some(CloseReason { code: refusal_code(error.code()), description: Some(description) }), SLOW)
        }
    };
    let told = match &end {
        WatchEnd::Refused(error) => text(&ErrorFrame { r#type: "error", error: &error.to_string() }).ok(),
        _ => None,
    };
    let farewell = async {
        if let Some(told) = told {
            socket.outlet.send(told, SLOW).await?;
        }
        socket.outlet.send(Saying::Close(reason), SLOW).await
    };
    if !matches!(tokio::time::timeout(bound, farewell).await, Ok(Ok(()))) {
        if let Some(line) = line {
            line.cut();
        }
        return;
    }
    if matches!(end, WatchEnd::Left(_) | WatchEnd::Gone) {
        return;
    }
    let messages = &mut socket.ear.messages;
    let answer = async { while !matches!(messages.recv().await, Some(Ok(Message::Close(_))) | Some(Err(_)) | None) {} };
    let _ = tokio::time::timeout(FAREWELL, answer).await;
}

fn refusal_code(code: ErrorCode) -> CloseCode {
    match code {
        ErrorCode::Unauthorized => CloseCode::Other(3000),
        ErrorCode::Forbidden => CloseCode::Other(3003),
        ErrorCode::NotFound | ErrorCode::Invalid | ErrorCode::RateLimited => CloseCode::Policy,
        _ => CloseCode::Error,
    }
}
