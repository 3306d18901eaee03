//! The worker's side of `/cdp/{id}` and `/live/{id}`: WebSockets for the API processes, which have checked the
//! client's capability.

use std::any::Any;
use std::sync::Arc;

use actix_web::dev::Extensions;
use actix_web::rt::net::TcpStream;
use actix_web::web::{self, Data, Path, Payload, Query, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use weir_shared::hang_up::Line;
use weir_shared::worker_api::Refusal;
use weir_shared::worker_api::relay::{CDP, LIVE, LiveQuery};
use weir_shared::worker_api::sessions::VERSION;

use super::{SessionHandle, Sessions, Source, Upstream, live, relay_cdp, socket, upgrade};
use crate::calls::{FromApi, Refused};

/// Finds the sessions that connections ask for.
pub struct Relays(Arc<dyn Sessions>);

impl Relays {
    /// Routes to these sessions.
    pub fn new(sessions: Arc<dyn Sessions>) -> Self {
        Self(sessions)
    }

    /// The session, while it takes connections. A malformed id names no session.
    fn find(&self, id: &str) -> Result<Arc<SessionHandle>, Refused> {
        let session = id.parse().ok().and_then(|id| self.0.find(id));
        session.filter(|session| !session.ended.is_cancelled()).ok_or_else(Refused::unknown_session)
    }
}

fn silent() -> Refused {
    Refused::new(Refusal::Failed, "the session's browser does not answer")
}

/// Notes a new connection of the listener, so that an upgraded one can be ended.
pub fn remember(connection: &dyn Any, known: &mut Extensions) {
    if let Some(connection) = connection.downcast_ref::<TcpStream>() {
        known.insert(Line::of(connection));
    }
}

/// Registers the upgrades and [`VERSION`].
pub fn configure(config: &mut ServiceConfig, relays: Data<Relays>) {
    config
        .app_data(relays)
        .route(CDP.pattern(), web::get().to(cdp))
        .route(LIVE.pattern(), web::get().to(watch))
        .route(VERSION.pattern(), web::get().to(version));
}

async fn version(_: FromApi, relays: Data<Relays>, id: Path<String>) -> Result<HttpResponse, Refused> {
    let session = relays.find(&id)?;
    match socket::version(session.browser.as_ref()).await {
        Ok(version) => Ok(HttpResponse::Ok().json(version)),
        Err(_) => Err(silent()),
    }
}

/// One CDP client. Refused with [`CLIENTS`](super::CLIENTS) of them, and when the session's Chromium does not answer.
async fn cdp(
    _: FromApi,
    relays: Data<Relays>,
    request: HttpRequest,
    id: Path<String>,
    payload: Payload,
) -> Result<HttpResponse, Refused> {
    let session = relays.find(&id)?;
    // Taken before anything is waited for, or any number could come while none is counted yet.
    let Ok(place) = Arc::clone(&session.places).try_acquire_owned() else {
        return Err(Refused::new(Refusal::TooManyClients, "too many clients of this session"));
    };
    // Chromium first: a client that gets 101 can talk at once.
    let upstream = match Upstream::connect(session.browser.as_ref(), &session.budget).await {
        Ok(upstream) => upstream,
        Err(error) => {
            tracing::warn!(session.id = %id, %error, "the session's browser does not answer");
            return Err(silent());
        }
    };
    let (response, client) = upgrade::accept(&request, payload)?;
    actix_web::rt::spawn(async move {
        let end = relay_cdp(client, upstream, Source::Client, &session).await;
        tracing::debug!(session.id = %id, ?end, "a CDP client's connection ended");
        drop(place);
    });
    Ok(response)
}

/// One viewer. A session without a live view is unknown here.
async fn watch(
    _: FromApi,
    relays: Data<Relays>,
    request: HttpRequest,
    id: Path<String>,
    query: Query<LiveQuery>,
    payload: Payload,
) -> Result<HttpResponse, Refused> {
    let session = relays.find(&id)?;
    let view = session.live.clone().ok_or_else(Refused::unknown_session)?;
    let (response, viewer) = upgrade::accept(&request, payload)?;
    actix_web::rt::spawn(async move { live::serve_viewer(&view, viewer, query.has_control()).await });
    Ok(response)
}
