//! Around every request: an id, one log line, the figures of `/metrics`.
//!
//! The line names path and ids; never a query string, a header or a body. Reads that went well are logged at `debug`,
//! because clients poll. What strangers make up, a method or a path, is written short and makes no figure of its own.

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{HeaderName, HeaderValue, UPGRADE};
use actix_web::http::{ConnectionType, Method, StatusCode};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, web};
use uuid::Uuid;
use weir_shared::clock::Stopwatch;
use weir_shared::random;
use weir_shared::traces::{self, Side, Span, TraceParent};

use crate::app::App;
use crate::callers::auth::CallerTeam;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Route label of a path that nothing serves, so that strangers cannot grow the figures.
const UNMATCHED: &str = "unmatched";

/// What stands for a method that HTTP does not know, for the same reason.
const OTHER: &str = "other";
/// What is written of a path, bytes; those of this service with ids in them are half as long.
const MAX_PATH: usize = 256;

/// What is asked for every few seconds, and tells nothing in a trace.
const OF_OPERATORS: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Left in the request's extensions, for requests that are made on its behalf.
#[derive(Debug, Clone)]
pub struct RequestId(pub HeaderValue);

/// The middleware.
///
/// # Errors
/// What the handler failed with, unchanged.
pub async fn observe(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let start = Stopwatch::start();
    let id = request_id(&request);
    request.extensions_mut().insert(RequestId(id.clone()));
    // What is routed as a GET may have been a HEAD.
    let asked = request.method().clone();
    let app = request.app_data::<web::Data<App>>().cloned();
    let (mut span, below) = span_of(&request);
    let mut response = traces::under(below, next.call(request)).await?;
    // This process stops: the client's next request is for another one.
    let is_last = app.is_some_and(|app| app.stopping.is_cancelled());
    // The server ends a connection on which an upgrade was offered and not taken, and would say that it was.
    let is_upgraded = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    let is_declined = response.request().headers().contains_key(UPGRADE) && !is_upgraded;
    if is_last || is_declined {
        response.response_mut().head_mut().set_connection_type(ConnectionType::Close);
    }
    let took = start.elapsed();
    let status = response.status().as_u16();
    {
        let request = response.request();
        let pattern = request.match_pattern();
        let route = pattern.as_deref().unwrap_or(UNMATCHED);
        let method = method(&asked);
        if let Some(app) = request.app_data::<web::Data<App>>() {
            app.metrics.observe(route, method, status, took);
        }
        describe(&mut span, method, route, status);
        let team = request.extensions().get::<CallerTeam>().map(|t| tracing::field::display(t.0));
        let (path, id) = (beginning(request.path()), id.to_str().unwrap_or_default());
        let duration_ms = took.as_millis() as u64;
        if asked.is_safe() && status < 400 {
            tracing::debug!(request.id = id, method, path, status, duration_ms, team.id = team, "answered");
        } else {
            tracing::info!(request.id = id, method, path, status, duration_ms, team.id = team, "answered");
        }
    }
    response.headers_mut().insert(REQUEST_ID, id);
    Ok(response)
}

fn method(method: &Method) -> &str {
    use Method as M;
    let known = [M::GET, M::POST, M::DELETE, M::PATCH, M::PUT, M::HEAD, M::OPTIONS, M::CONNECT, M::TRACE];
    if known.contains(method) { method.as_str() } else { OTHER }
}

/// As much of the path as the log is to have.
fn beginning(path: &str) -> &str {
    &path[..path.floor_char_boundary(MAX_PATH)]
}

/// The request's span, and what its work is told to be below: a caller who keeps no trace is not given one.
fn span_of(request: &ServiceRequest) -> (Span, Option<TraceParent>) {
    if !traces::is_on() || OF_OPERATORS.contains(&request.path()) {
        return (Span::default(), None);
    }
    let given = request.headers().get("traceparent").and_then(|value| value.to_str().ok()?.parse().ok());
    let span = traces::begin(given, "request", Side::Server);
    let below = span.own().or(given);
    (span, below)
}

fn describe(span: &mut Span, method: &str, route: &str, status: u16) {
    span.rename(|| format!("{method} {route}"));
    span.word("http.request.method", method);
    span.word("http.route", route);
    span.number("http.response.status_code", status.into());
    if status >= 500 {
        span.fail(&status.to_string());
    }
}

/// The id that the client or a proxy gave, when it is a plain word; else a fresh one.
fn request_id(request: &ServiceRequest) -> HeaderValue {
    let given = request.headers().get(REQUEST_ID).filter(|v| {
        let bytes = v.as_bytes();
        (1..=128).contains(&bytes.len()) && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.:".contains(b))
    });
    given.cloned().unwrap_or_else(|| {
        let mut buffer = Uuid::encode_buffer();
        let text = random::id().hyphenated().encode_lower(&mut buffer);
        HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static("unknown"))
    })
}
