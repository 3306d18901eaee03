//! The worker's side of `/cdp/{id}` and `/live/{id}`: WebSockets for the API processes, which have checked the
//! client's capability.

use std::any::Any;
use std::sync::Arc;

use actix_web::dev::Extensions;
use actix_web::http::StatusCode;
use actix_web::rt::net::TcpStream;
use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse, ResponseError};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use weir_shared::hang_up::Line;

use super::{CLIENTS, SessionHandle, Sessions, Source, Upstream, live, relay_cdp, socket, upgrade};

/// Header of every request to a worker.
pub const INTERNAL: &str = "x-weir-internal";

/// What the routes need.
pub struct Relays {
    sessions: Arc<dyn Sessions>,
    /// Digest of the secret: digests of equal length compare without telling where they differ.
    secret: [u8; 32],
}

impl Relays {
    /// Routes to these sessions for callers that know the installation's internal secret.
    pub fn new(sessions: Arc<dyn Sessions>, secret: &str) -> Self {
        Self { sessions, secret: Sha256::digest(secret).into() }
    }

    pub fn admits(&self, request: &HttpRequest) -> bool {
        let given = request.headers().get(INTERNAL).map(|v| v.as_bytes()).unwrap_or_default();
        let given: [u8; 32] = Sha256::digest(given).into();
        given.iter().zip(&self.secret).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    }

    fn find(&self, request: &HttpRequest, id: &str) -> Result<Arc<SessionHandle>, Refusal> {
        if !self.admits(request) {
            return Err(Refusal(StatusCode::UNAUTHORIZED, "the internal secret is missing or wrong"));
        }
        let session = id.parse().ok().and_then(|id| self.sessions.find(id));
        session.filter(|s| !s.ended.is_cancelled()).ok_or(NOT_HERE)
    }
}

/// Why a request gets nothing, for the API process that sent it.
#[derive(Debug)]
pub struct Refusal(pub(super) StatusCode, pub(super) &'static str);

const NOT_HERE: Refusal = Refusal(StatusCode::NOT_FOUND, "no such session on this worker");
const SILENT: Refusal = Refusal(StatusCode::BAD_GATEWAY, "the session's browser does not answer");

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.1)
    }
}

impl ResponseError for Refusal {
    fn status_code(&self) -> StatusCode {
        self.0
    }

    fn error_response(&self) -> HttpResponse {
        HttpResponse::build(self.0).json(json!({"error": self.1}))
    }
}

/// Notes a new connection of the listener, so that an upgraded one can be ended.
pub fn remember(connection: &dyn Any, known: &mut Extensions) {
    if let Some(connection) = connection.downcast_ref::<TcpStream>() {
        known.insert(Line::of(connection));
    }
}

/// Registers `GET /sessions/{id}/cdp`, `/sessions/{id}/live` and `/sessions/{id}/version`.
pub fn configure(config: &mut ServiceConfig, relays: web::Data<Relays>) {
    config
        .app_data(relays)
        .route("/sessions/{id}/cdp", web::get().to(cdp))
        .route("/sessions/{id}/live", web::get().to(watch))
        .route("/sessions/{id}/version", web::get().to(version));
}

/// `GET /sessions/{id}/version`: what Chromium says of itself under `/json/version`, without its addresses.
async fn version(
    relays: web::Data<Relays>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, Refusal> {
    let session = relays.find(&request, &id)?;
    match socket::version(session.browser.as_ref()).await {
        Ok(version) => Ok(HttpResponse::Ok().json(version)),
        Err(_) => Err(SILENT),
    }
}

/// `GET /sessions/{id}/cdp`: 101, or 404 when the session is not here, 429 with
/// [`CLIENTS`] clients, 502 when its Chromium does not answer.
async fn cdp(
    relays: web::Data<Relays>,
    request: HttpRequest,
    id: web::Path<String>,
    payload: web::Payload,
) -> Result<HttpResponse, Refusal> {
    let session = relays.find(&request, &id)?;
    if session.activity.clients() >= CLIENTS {
        return Err(Refusal(StatusCode::TOO_MANY_REQUESTS, "too many clients of this session"));
    }
    // Chromium first: a client that gets 101 can talk at once.
    let upstream = match Upstream::connect(session.browser.as_ref(), &session.budget).await {
        Ok(upstream) => upstream,
        Err(error) => {
            tracing::warn!(session.id = %id, %error, "the session's browser does not answer");
            return Err(SILENT);
        }
    };
    let (response, client) = upgrade::accept(&request, payload)?;
    actix_web::rt::spawn(async move {
        let end = relay_cdp(client, upstream, Source::Client, &session).await;
        tracing::debug!(session.id = %id, ?end, "a CDP client's connection ended");
    });
    Ok(response)
}

#[derive(Deserialize)]
struct LiveQuery {
    #[serde(default)]
    control: u8,
}

/// `GET /sessions/{id}/live?control=0|1`: 101, or 404 when the session is not here or shows no live view.
async fn watch(
    relays: web::Data<Relays>,
    request: HttpRequest,
    id: web::Path<String>,
    query: web::Query<LiveQuery>,
    payload: web::Payload,
) -> Result<HttpResponse, Refusal> {
    let session = relays.find(&request, &id)?;
    let view = session.live.clone().ok_or(NOT_HERE)?;
    let (response, viewer) = upgrade::accept(&request, payload)?;
    let control = query.control == 1;
    actix_web::rt::spawn(async move { live::serve_viewer(&view, viewer, control).await });
    Ok(response)
}
