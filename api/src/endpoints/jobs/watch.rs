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
//! A refusal is told after the handshake: 3000 not authorised, 3003 another team's, 1008 unknown, 1011 our fault.

use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use actix_web::body::{BodyStream, MessageBody as _};
use actix_web::guard::GuardContext;
use actix_web::http::header::{self, HeaderMap};
use actix_web::web::{Bytes, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use actix_ws::{CloseCode, CloseReason, Message, MessageStream};
use serde::Serialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use weir_shared::clock;
use weir_shared::domain::job::JobStatus;
use weir_shared::error_code::ErrorCode;
use weir_shared::hang_up::HangUp;
use weir_shared::store::work::documents::{self, Part, StoredDocument};
use weir_shared::store::work::jobs::JobRow;

use super::outlet::{Outlet, Saying, frames};
use super::status::{Body, DEFAULT_LIMIT, PAGE_BYTES, shown};
use super::{Served, load, served_by};
use crate::app::{App, AppData};
use crate::callers::auth::{Credentials, credentials};
use crate::callers::limits::Bucket;
use crate::error::{ApiError, ApiResult};
use crate::http::answers::Room;
use crate::http::{connections, extract};

/// Time between pings.
const PING: Duration = Duration::from_secs(20);
/// A client that says nothing for so long, not even a pong, is gone.
const SILENCE: Duration = Duration::from_secs(70);
/// A client that takes nothing of a frame for so long is too slow: the documents are there over HTTP.
const SLOW: Duration = Duration::from_secs(30);
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
    Refused(ApiError),
}

impl From<ApiError> for WatchEnd {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
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
    let protocol = first_protocol(request.headers()).map(str::to_owned);
    let offered: Vec<&str> = protocol.as_deref().into_iter().collect();
    // The library's own way of sending takes dozens of frames ahead of the client.
    let (response, _, messages) = actix_ws::handle_with_protocols(&request, payload, &offered)?;
    let authorized = match (credentials(request.headers()), &protocol) {
        (Credentials::Absent, Some(key)) => app.caller_with(Credentials::Token(key)).await,
        (given, _) => app.caller_with(given).await,
    };
    let over = CancellationToken::new();
    let line = connections::hang_up_on_reader(&request).map(Arc::new);
    let (response, library) = response.into_parts();
    let (outlet, frames) = frames(library, over.clone(), line.clone());
    let response = response.set_body(BodyStream::new(frames).boxed());
    let over = over.drop_guard();
    actix_web::rt::spawn(async move {
        let _over = over;
        app.metrics.sockets.inc();
        let admitted = match authorized {
            Ok(caller) => app.admit(&caller, Bucket::Status).await.map(|()| caller),
            Err(error) => Err(error),
        };
        let mut socket = Socket { outlet, ear: Ear { messages, heard: clock::instant(), ping: None } };
        let end = match admitted {
            Ok(caller) => match open(&app, served, &id, |job| job.team_id == caller.team_id()).await {
                Ok(job) => stream(&app, served, &mut socket, job).await,
                Err(error) => WatchEnd::Refused(error),
            },
            Err(error) => WatchEnd::Refused(error),
        };
        close(socket, end, line.as_deref()).await;
        app.metrics.sockets.dec();
    });
    Ok(response)
}

/// The first subprotocol offered: the JavaScript client's key.
fn first_protocol(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::SEC_WEBSOCKET_PROTOCOL)?.to_str().ok()?;
    value.split(',').map(str::trim).find(|p| !p.is_empty())
}

async fn open(app: &App, served: Served, id: &str, owns: impl FnOnce(&JobRow) -> bool) -> Result<JobRow, ApiError> {
    let job = load(app, served, extract::path_id(id)?).await?;
    if owns(&job) { Ok(job) } else { Err(ApiError::new(ErrorCode::Forbidden, "Forbidden")) }
}

/// Says everything there is to say about the job until it has ended.
async fn stream(app: &App, served: Served, socket: &mut Socket, job: JobRow) -> WatchEnd {
    match send_all(app, served, socket, job).await {
        Ok(()) => WatchEnd::Done,
        Err(end) => end,
    }
}

async fn send_all(app: &App, served: Served, socket: &mut Socket, mut job: JobRow) -> Result<(), WatchEnd> {
    let mut sent = catch_up(app, served, socket, &job).await?;
    loop {
        while sent < job.completed {
            sent += send_documents(app, served, socket, &job, sent..job.completed).await?;
        }
        if job.status != JobStatus::Scraping {
            break;
        }
        let seen = (job.completed, job.failed, job.status);
        job = wait_for_change(app, served, socket, &job, seen).await?;
    }
    if job.status == JobStatus::Completed {
        let data = Body::new(app, served.version, &job, &[], None).await?;
        socket.send(text(&Frame { r#type: "done", data })?).await?;
    }
    Ok(())
}

/// The first frame. Returns how many documents it carried.
async fn catch_up(app: &App, served: Served, socket: &mut Socket, job: &JobRow) -> Result<i64, WatchEnd> {
    let limit = DEFAULT_LIMIT.min(job.completed);
    let (documents, _room) = match limit {
        1.. => read(app, job, Part { skip: 0, limit, max_bytes: PAGE_BYTES }).await?,
        _ => (Vec::new(), Room::default()),
    };
    let count = documents.len() as i64;
    let mut body = Body::new(app, served.version, job, &documents, None).await?;
    if count < job.completed {
        body.status = JobStatus::Scraping.as_str();
    }
    let frame = text(&Frame { r#type: "catchup", data: body })?;
    // It waits for its client once, not as documents, too.
    drop(documents);
    socket.send(frame).await?;
    Ok(count)
}

/// Documents of the job, with the room that they take until they are sent.
async fn read(app: &App, job: &JobRow, part: Part) -> ApiResult<(Vec<StoredDocument>, Room)> {
    app.open(job.team_id, documents::find(&app.db, job.id, part).await?).await
}

/// Sends the first of these documents. Returns how many.
async fn send_documents(
    app: &App,
    served: Served,
    socket: &mut Socket,
    job: &JobRow,
    open: Range<i64>,
) -> Result<i64, WatchEnd> {
    let limit = FRAMES_AT_ONCE.min(open.end - open.start);
    let (documents, _room) = read(app, job, Part { skip: open.start, limit, max_bytes: BYTES_AT_ONCE }).await?;
    if documents.is_empty() {
        // The job has expired and was removed while its documents were sent.
        return Err(WatchEnd::Refused(ApiError::job_expired()));
    }
    for document in &documents {
        socket.send(text(&Frame { r#type: "document", data: shown(served.version, &document.json) })?).await?;
    }
    Ok(documents.len() as i64)
}

/// Waits for news of the job, with an ear to the client.
async fn wait_for_change(
    app: &App,
    served: Served,
    socket: &mut Socket,
    job: &JobRow,
    seen: (i64, i64, JobStatus),
) -> Result<JobRow, WatchEnd> {
    loop {
        let ping_at = clock::deadline(PING);
        tokio::select! {
            changed = app.wake.job_changed(job.id, seen, ping_at) => changed.map_err(ApiError::from)?,
            end = socket.listen() => return Err(end),
            () = app.stopping.cancelled() => return Err(WatchEnd::Stopping),
        }
        let job = load(app, served, job.id).await?;
        if (job.completed, job.failed, job.status) != seen {
            return Ok(job);
        }
        socket.ping().await?;
    }
}

fn text(frame: &impl Serialize) -> ApiResult<Saying> {
    Ok(Saying::Text(serde_json::to_string(frame).map_err(|e| ApiError::internal(&e))?))
}

struct Socket {
    outlet: Outlet,
    ear: Ear,
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
        self.answer_ping().await
    }

    async fn ping(&mut self) -> Result<(), WatchEnd> {
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
