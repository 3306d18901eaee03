//! `/cdp/{id}`: the DevTools protocol of a session (wire 8.5), for clients that connect to a WebSocket address.
//!
//! The token in the query is the only credential. It is checked before anything is said about the session, and the log
//! has paths without queries.

use actix_web::web::{Path, Payload, Query};
use actix_web::{HttpRequest, HttpResponse};
use schemars::json_schema;
use serde::Deserialize;
use serde_json::json;
use weir_shared::domain::capability::{Capability, verify};
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{SessionId, TeamId};
use weir_shared::worker_api::relay::CDP;

use super::splice::{self, Handshake, WorkerSocket};
use super::{locate, session_id};
use crate::app::{App, AppData};
use crate::error::{ApiError, ApiResult};
use crate::http::connections;
use crate::openapi::{Group, Operation};

/// The capability in the query.
#[derive(Deserialize)]
pub struct Token {
    #[serde(default)]
    token: String,
}

/// The WebSocket in the API's document.
pub fn doc() -> Operation {
    let text = "What `cdpUrl` of a session leads to: the DevTools protocol over a WebSocket, for `connectOverCDP` and the like.";
    with_token(Operation::public("connectToBrowserSession", "Connect to a session", text))
        .bare_answer(101, "The WebSocket.")
        .errors(&[400, 429])
}

/// Discovery in the API's document.
pub fn doc_version() -> Operation {
    let text = "For clients that are given an http address: the browser's version and where its WebSocket is.";
    with_token(Operation::public("getBrowserVersion", "Discover a session's WebSocket", text)).answer_with(
        200,
        "The browser.",
        "application/json",
        |_| {
            json_schema!({"type": "object", "properties": {"webSocketDebuggerUrl": {"type": "string"}},
            "required": ["webSocketDebuggerUrl"], "additionalProperties": true})
        },
    )
}

fn with_token(operation: Operation) -> Operation {
    operation
        .group(Group::Browser)
        .query("token", json!({"type": "string"}), "The capability in `cdpUrl`.")
        .errors(&[401, 404, 410, 500, 502, 503])
}

/// `GET /cdp/{id}?token=`: the WebSocket.
///
/// # Errors
/// 401 for a token that is not this session's, 404 when the session is unknown, 410 when it has ended, 400 for anything
/// but a WebSocket handshake, 429 when the team's sockets or the session's clients are as many as may be, 502 and 503 when
/// its browser or its worker does not answer.
pub async fn handle(
    app: AppData,
    request: HttpRequest,
    id: Path<String>,
    token: Query<Token>,
    payload: Payload,
) -> ApiResult<HttpResponse> {
    let (id, worker, team) = admit(&app, &id, &token).await?;
    let handshake = Handshake::of(&request)?;
    let place = app.places.socket(team)?;
    let socket = WorkerSocket::open(&worker, &CDP.of(id), &app.internal_secret, &handshake).await?;
    Ok(socket.pass_on(payload, (connections::hang_up(&request), place), &app.stopping))
}

/// `GET /cdp/{id}/json/version?token=`: discovery, for clients that are given an http address.
///
/// # Errors
/// As [`handle`].
pub async fn version(
    app: AppData,
    request: HttpRequest,
    id: Path<String>,
    token: Query<Token>,
) -> ApiResult<HttpResponse> {
    let (id, worker, _) = admit(&app, &id, &token).await?;
    let version = app.workers.version(&worker, id).await;
    let version = version.map_err(|error| splice::unreachable(&worker, &error))?;
    let mut version = version.map_err(|refused| splice::refused(refused.refusal(), &refused))?;
    let base = app.base_url(&request);
    // The scheme's first four letters are the same with and without TLS.
    let base = base.strip_prefix("http").map_or_else(|| base.clone(), |rest| format!("ws{rest}"));
    version.insert("webSocketDebuggerUrl".to_owned(), format!("{base}/cdp/{id}?token={}", token.token).into());
    Ok(HttpResponse::Ok().insert_header(("Cache-Control", "no-store")).json(version))
}

/// The session, its worker and its team, for whoever knows its token. The token comes first: without it, a session that
/// is and one that is not look the same.
async fn admit(app: &App, id: &str, token: &Token) -> ApiResult<(SessionId, String, TeamId)> {
    let id = session_id(id)?;
    if !verify(app.internal_secret.as_bytes(), Capability::Cdp, id, &token.token) {
        return Err(ApiError::new(ErrorCode::Unauthorized, "Unauthorized: Invalid token"));
    }
    let (worker, _, team) = locate(app, id).await?;
    Ok((id, worker, team))
}
