//! The API's side of the workers' private listeners: open, close and use a browser session on the worker that owns it,
//! hand a scrape to a worker.
//!
//! A session's calls have one connection each: they are rare beside what they start, and it tells a worker that never saw
//! a request from one that may have carried it out. Nothing here repeats a request; callers do where that is harmless.

use std::fmt;
use std::time::Duration;

use actix_web::web::Bytes;
use anyhow::Context;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::SendRequest;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;
use weir_shared::domain::session::Language;
use weir_shared::hand_over;
use weir_shared::ids::{KeyId, SessionId};

/// Header that every route of a worker asks for.
pub const INTERNAL_HEADER: &str = "x-weir-internal";
/// A worker that does not take a connection within this is away.
const CONNECT: Duration = Duration::from_secs(2);
/// Bound on starting a browser, also a busy machine's, and on bringing a scrape's page back in it; below
/// `store::sessions::OPENING_MS`.
const OPEN: Duration = Duration::from_secs(40);
/// Bound on shutting a browser down and saving its profile.
const CLOSE: Duration = Duration::from_secs(30);
/// What an execution may take past its own timeout: its client waits 5 s longer (CONTRACT 1.10).
const EXECUTE_MARGIN: Duration = Duration::from_secs(4);
/// Largest answer read, bytes: the output of an execution is capped far below by the worker.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// Speaks to workers with the installation's secret.
pub struct WorkerClient {
    secret: HeaderValue,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum CallError {
    /// No connection: the worker never saw the request.
    Unreachable(String),
    /// The connection broke: the worker may have done what it was asked.
    Lost(String),
    /// The bound passed: the worker may still be at it.
    Late(Duration),
}

impl CallError {
    fn lost(error: &dyn fmt::Display) -> Self {
        Self::Lost(error.to_string())
    }
}

/// A worker's answer.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// A connection to a worker's private listener; one request at a time.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// Sends and receives.
    _driver: AbortOnDropHandle<hyper::Result<()>>,
}

impl Connection {
    /// Waits until it takes the next request. `false`: it never will.
    pub async fn is_ready(&mut self) -> bool {
        self.sender.ready().await.is_ok()
    }

    async fn send(
        &mut self,
        request: Result<Request<Full<Bytes>>, hyper::http::Error>,
        longest: usize,
    ) -> Result<Answer, CallError> {
        let request = request.map_err(|e| CallError::lost(&e))?;
        let (head, body) = self.sender.send_request(request).await.map_err(|e| CallError::lost(&e))?.into_parts();
        let body = Limited::new(body, longest).collect().await.map_err(|e| CallError::lost(&e))?;
        Ok(Answer { status: head.status, headers: head.headers, body: body.to_bytes() })
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(cause) => write!(f, "the worker cannot be reached: {cause}"),
            Self::Lost(cause) => write!(f, "the worker did not answer: {cause}"),
            Self::Late(bound) => write!(f, "the worker did not answer within {} s", bound.as_secs()),
        }
    }
}

/// What became of a session that was to be opened.
#[derive(Debug)]
pub enum Opening {
    /// Its row is active.
    Opened,
    /// The scrape that it continues could not be brought back; the text is for the caller.
    NotReplayed(String),
    /// The worker says why not.
    Failed(String),
}

/// What became of a session that was to be closed.
#[derive(Debug, PartialEq, Eq)]
pub enum Closing {
    /// Its row is destroyed.
    Closed,
    /// The worker does not have it.
    Unknown,
    Failed(String),
}

/// Code to be run.
#[derive(Debug)]
pub struct Code<'a> {
    pub code: &'a str,
    pub language: Language,
    pub timeout: Duration,
}

/// What became of code that was to be run.
#[derive(Debug)]
pub enum Execution {
    Ran(Output),
    /// The worker does not have the session.
    Unknown,
    /// The session takes no more calls.
    Ended,
    /// The code was not run.
    Failed(String),
}

/// What code left (SPEC 2.2).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    pub stdout: Option<String>,
    /// The value of the last expression, or the output.
    pub result: Option<String>,
    pub stderr: Option<String>,
    pub exit_code: Option<i64>,
    /// It ran into its timeout.
    #[serde(default)]
    pub killed: bool,
    pub error: Option<String>,
    /// Output was cut.
    #[serde(default)]
    pub truncated: bool,
}

/// What became of a prompt.
#[derive(Debug)]
pub enum Prompted {
    /// The agent worked on it, with success or not.
    Answered(Answered),
    /// The worker does not have the session.
    Unknown,
    /// The session takes no more calls.
    Ended,
    /// The worker has no language model.
    NoModel,
    /// Another prompt took all the time there was.
    Busy,
    /// Nothing was done; the text is for the caller.
    Failed(String),
}

/// What the agent left.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answered {
    pub success: bool,
    /// Its final answer.
    pub output: Option<String>,
    /// The last snapshot of the page.
    pub result: Option<String>,
    pub error: Option<String>,
    /// It ran into the timeout.
    pub killed: bool,
    /// What it saw, did and why: a JSON list, passed on as it is.
    pub steps: Box<RawValue>,
}

impl WorkerClient {
    /// A client with the installation's secret.
    ///
    /// # Errors
    /// When the secret does not fit into a header.
    pub fn new(secret: &str) -> anyhow::Result<Self> {
        let mut secret = HeaderValue::from_str(secret).context("the internal secret does not fit into a header")?;
        secret.set_sensitive(true);
        Ok(Self { secret })
    }

    /// Makes the worker start the browser of a session that is placed there, and the runner of `language` beside it.
    ///
    /// # Errors
    /// When no answer comes within 40 s.
    pub async fn open(&self, address: &str, id: SessionId, language: Option<Language>) -> Result<Opening, CallError> {
        let ask = json!({"id": id, "language": language.map(Language::as_str)});
        let (status, body) = self.call(Method::POST, address, "/sessions", Some(ask), OPEN).await?;
        Ok(match status {
            StatusCode::OK => Opening::Opened,
            StatusCode::FAILED_DEPENDENCY => Opening::NotReplayed(words(&body)),
            _ => Opening::Failed(failure(status, &body)),
        })
    }

    /// Makes the worker close a session; it answers when the row is destroyed. Harmless when repeated.
    ///
    /// # Errors
    /// When no answer comes within 30 s.
    pub async fn close(&self, address: &str, id: SessionId) -> Result<Closing, CallError> {
        let (status, body) = self.call(Method::DELETE, address, &format!("/sessions/{id}"), None, CLOSE).await?;
        Ok(match status {
            StatusCode::OK => Closing::Closed,
            StatusCode::NOT_FOUND => Closing::Unknown,
            _ => Closing::Failed(failure(status, &body)),
        })
    }

    /// Runs code in a session. Not to be repeated unless it was [`CallError::Unreachable`]: it may have run.
    ///
    /// # Errors
    /// When no answer comes within the code's timeout and a margin.
    pub async fn execute(&self, address: &str, id: SessionId, code: &Code<'_>) -> Result<Execution, CallError> {
        let Code { code, language, timeout } = *code;
        let body = json!({"code": code, "language": language.as_str(), "timeout_ms": timeout.as_millis() as u64});
        let path = format!("/sessions/{id}/execute");
        let (status, body) = self.call(Method::POST, address, &path, Some(body), timeout + EXECUTE_MARGIN).await?;
        Ok(match status {
            StatusCode::OK => match serde_json::from_slice(&body) {
                Ok(output) => Execution::Ran(output),
                Err(error) => return Err(CallError::Lost(format!("its answer cannot be read: {error}"))),
            },
            StatusCode::NOT_FOUND => Execution::Unknown,
            StatusCode::GONE => Execution::Ended,
            _ => Execution::Failed(failure(status, &body)),
        })
    }

    /// Has the agent work on a task in a session. Not to be repeated unless it was [`CallError::Unreachable`].
    ///
    /// # Errors
    /// When no answer comes within the timeout and a margin.
    pub async fn prompt(
        &self,
        address: &str,
        id: SessionId,
        prompt: &str,
        timeout: Duration,
        key: Option<KeyId>,
    ) -> Result<Prompted, CallError> {
        let body = json!({"prompt": prompt, "timeout_ms": timeout.as_millis() as u64, "key": key});
        let path = format!("/sessions/{id}/prompt");
        let (status, body) = self.call(Method::POST, address, &path, Some(body), timeout + EXECUTE_MARGIN).await?;
        Ok(match status {
            StatusCode::OK => match serde_json::from_slice(&body) {
                Ok(answered) => Prompted::Answered(answered),
                Err(error) => return Err(CallError::Lost(format!("its answer cannot be read: {error}"))),
            },
            StatusCode::NOT_FOUND => Prompted::Unknown,
            StatusCode::GONE => Prompted::Ended,
            StatusCode::NOT_IMPLEMENTED => Prompted::NoModel,
            StatusCode::CONFLICT => Prompted::Busy,
            _ => Prompted::Failed(words(&body)),
        })
    }

    /// Hands a scrape to a worker. Its answer is as late as the page: callers bound the wait.
    ///
    /// # Errors
    /// When the connection breaks; the scrape may be in work.
    pub async fn hand_over(
        &self,
        connection: &mut Connection,
        address: &str,
        scrape: Bytes,
    ) -> Result<Answer, CallError> {
        connection.send(self.request(Method::POST, address, hand_over::PATH, scrape), hand_over::MAX_ANSWER).await
    }

    /// A connection to a worker, of the runtime that this is called in.
    ///
    /// # Errors
    /// When there is none within 2 s.
    pub async fn connect(&self, address: &str) -> Result<Connection, CallError> {
        let stream = match tokio::time::timeout(CONNECT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(CallError::Unreachable(error.to_string())),
            Err(_) => return Err(CallError::Unreachable("it does not take the connection".to_owned())),
        };
        // A small request must not wait for the answer to an earlier segment.
        let _ = stream.set_nodelay(true);
        let (sender, driver) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|e| CallError::lost(&e))?;
        Ok(Connection { sender, _driver: AbortOnDropHandle::new(tokio::spawn(driver)) })
    }

    /// One request on a connection of its own, within `bound`.
    async fn call(
        &self,
        method: Method,
        address: &str,
        path: &str,
        body: Option<Value>,
        bound: Duration,
    ) -> Result<(StatusCode, Bytes), CallError> {
        let work = async {
            let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
            let mut connection = self.connect(address).await?;
            let answer = connection.send(self.request(method, address, path, body), MAX_ANSWER).await?;
            Ok((answer.status, answer.body))
        };
        match tokio::time::timeout(bound, work).await {
            Ok(outcome) => outcome,
            Err(_) => Err(CallError::Late(bound)),
        }
    }

    fn request(
        &self,
        method: Method,
        address: &str,
        path: &str,
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
        Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, address)
            .header(INTERNAL_HEADER, self.secret.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
    }
}

/// The worker's own words, for the log.
fn failure(status: StatusCode, body: &[u8]) -> String {
    format!("{}: {}", status.as_u16(), words(body))
}

/// The text of an error.
fn words(body: &[u8]) -> String {
    let said = serde_json::from_slice::<Value>(body).ok();
    let said = said.as_ref().and_then(|body| body["error"].as_str()).unwrap_or("no reason given");
    said.chars().take(500).collect()
}
