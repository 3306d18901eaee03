//! The API's side of the workers' private listeners ([`weir_shared::worker_api`]): open, close and use a browser session on
//! the worker that owns it, dispatch a scrape directly.
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
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;
use weir_shared::ids::SessionId;
use weir_shared::worker_api::sessions::{
    CLOSE, CodeOutput, Done, EXECUTE, ExecuteCode, OPEN, OpenSession, PROMPT, PromptOutput, RunPrompt, VERSION,
};
use weir_shared::worker_api::{MAX_ANSWER, Refusal, RefusalBody, SECRET_HEADER, direct};

/// A worker that does not take a connection within this is away.
const CONNECT_BOUND: Duration = Duration::from_secs(2);
/// Bound on starting a browser, also a busy machine's, and on bringing a scrape's page back in it; below
/// `store::sessions::OPENING_MS`.
const OPEN_BOUND: Duration = Duration::from_secs(40);
/// Bound on shutting a browser down and saving its profile.
const CLOSE_BOUND: Duration = Duration::from_secs(30);
/// Bound on what a session's Chromium says of itself.
const VERSION_BOUND: Duration = Duration::from_secs(15);

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

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(cause) => write!(f, "the worker cannot be reached: {cause}"),
            Self::Lost(cause) => write!(f, "the worker did not answer: {cause}"),
            Self::Late(bound) => write!(f, "the worker did not answer within {} s", bound.as_secs()),
        }
    }
}

/// A worker's answer that it did not do what it was asked.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused {
    status: StatusCode,
    /// The worker's words. Only [`Refusal`] says whether they are for a client.
    pub text: String,
}

impl Refused {
    /// Why; `None`: for a reason that this release does not know.
    pub fn refusal(&self) -> Option<Refusal> {
        Refusal::of_status(self.status.as_u16())
    }
}

/// For the log.
impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status.as_u16(), self.text)
    }
}

/// What a worker answers: what it was asked for, or that it did not do it.
pub type Reply<T> = Result<T, Refused>;

/// An answer as it came.
#[derive(Debug)]
pub struct RawAnswer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl RawAnswer {
    fn read<T: DeserializeOwned>(self) -> Result<Reply<T>, CallError> {
        if self.status != StatusCode::OK {
            return Ok(Err(Refused { status: self.status, text: RefusalBody::text_of(&self.body) }));
        }
        match serde_json::from_slice(&self.body) {
            Ok(answer) => Ok(Ok(answer)),
            Err(error) => Err(CallError::Lost(format!("its answer cannot be read: {error}"))),
        }
    }
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
    ) -> Result<RawAnswer, CallError> {
        let request = request.map_err(|e| CallError::lost(&e))?;
        let (head, body) = self.sender.send_request(request).await.map_err(|e| CallError::lost(&e))?.into_parts();
        let body = Limited::new(body, longest).collect().await.map_err(|e| CallError::lost(&e))?;
        Ok(RawAnswer { status: head.status, headers: head.headers, body: body.to_bytes() })
    }
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

    /// Makes the worker start the browser of a session that is placed there, and the runner of a language beside it.
    ///
    /// # Errors
    /// When no answer comes within 40 s.
    pub async fn open(&self, address: &str, wanted: &OpenSession) -> Result<Reply<Done>, CallError> {
        let body = json_of(wanted)?;
        self.call(Method::POST, address, OPEN, body, OPEN_BOUND).await?.read()
    }

    /// Makes the worker close a session; it answers when the row is destroyed. Harmless when repeated.
    ///
    /// # Errors
    /// When no answer comes within 30 s.
    pub async fn close(&self, address: &str, id: SessionId) -> Result<Reply<Done>, CallError> {
        self.call(Method::DELETE, address, &CLOSE.of(id), Bytes::new(), CLOSE_BOUND).await?.read()
    }

    /// Runs code in a session. Not to be repeated unless it was [`CallError::Unreachable`]: it may have run.
    ///
    /// # Errors
    /// When no answer comes within the code's bound.
    pub async fn execute(
        &self,
        address: &str,
        id: SessionId,
        code: &ExecuteCode<'_>,
    ) -> Result<Reply<CodeOutput>, CallError> {
        self.call(Method::POST, address, &EXECUTE.of(id), json_of(code)?, code.bounds.answer).await?.read()
    }

    /// Has the agent work on a task in a session. Not to be repeated unless it was [`CallError::Unreachable`].
    ///
    /// # Errors
    /// When no answer comes within the prompt's bound.
    pub async fn prompt(
        &self,
        address: &str,
        id: SessionId,
        prompt: &RunPrompt<'_>,
    ) -> Result<Reply<PromptOutput>, CallError> {
        self.call(Method::POST, address, &PROMPT.of(id), json_of(prompt)?, prompt.bounds.answer).await?.read()
    }

    /// What a session's Chromium says of itself.
    ///
    /// # Errors
    /// When no answer comes within 15 s.
    pub async fn version(&self, address: &str, id: SessionId) -> Result<Reply<Map<String, Value>>, CallError> {
        self.call(Method::GET, address, &VERSION.of(id), Bytes::new(), VERSION_BOUND).await?.read()
    }

    /// Sends a scrape to a worker that has a slot for it. Its answer is as late as the page: callers bound the wait.
    ///
    /// # Errors
    /// When the connection breaks; the scrape may be in work.
    pub async fn dispatch(
        &self,
        connection: &mut Connection,
        address: &str,
        scrape: Bytes,
    ) -> Result<RawAnswer, CallError> {
        connection.send(self.request(Method::POST, address, direct::PATH, scrape), direct::MAX_ANSWER).await
    }

    /// A connection to a worker, of the runtime that this is called in.
    ///
    /// # Errors
    /// When there is none within 2 s.
    pub async fn connect(&self, address: &str) -> Result<Connection, CallError> {
        let stream = match tokio::time::timeout(CONNECT_BOUND, TcpStream::connect(address)).await {
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
        body: Bytes,
        bound: Duration,
    ) -> Result<RawAnswer, CallError> {
        let work = async {
            let mut connection = self.connect(address).await?;
            connection.send(self.request(method, address, path, body), MAX_ANSWER).await
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
            .header(SECRET_HEADER, self.secret.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
    }
}

fn json_of(body: &impl serde::Serialize) -> Result<Bytes, CallError> {
    serde_json::to_vec(body).map(Bytes::from).map_err(|error| CallError::Unreachable(error.to_string()))
}
