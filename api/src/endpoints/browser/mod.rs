//! Browser sessions (spec 4.1 to 4.4, wire 8): rows here, browsers on the worker that each row names.

pub mod cdp;
pub mod create;
pub mod delete;
pub mod execute;
pub mod list;
pub mod live;
pub(super) mod opening;
pub mod profiles;
pub mod show;
mod splice;

use schemars::JsonSchema;
use serde::Serialize;
use weir_shared::clock;
use weir_shared::domain::capability::{Capability, token};
use weir_shared::domain::session::{EndReason, SessionState};
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{SessionId, TeamId};
use weir_shared::store::sessions::{self, SessionRow};
use weir_shared::store::work::nodes;
use weir_shared::time::Timestamp;

use crate::app::App;
use crate::callers::auth::Caller;
use crate::error::{ApiError, ApiResult};
use crate::workers::relay_target::RelayTarget;

/// Where a session is driven and watched. Each address holds its own capability: no key is needed with it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Addresses {
    /// For `connectOverCDP` and the like, as it is.
    cdp_url: String,
    /// Watch only.
    live_view_url: String,
    /// Watch and use.
    interactive_live_view_url: String,
}

impl Addresses {
    /// `base` is the address clients reach us by, without a slash at the end.
    pub(super) fn new(base: &str, secret: &str, id: SessionId) -> Self {
        let token = |kind| token(secret.as_bytes(), kind, id);
        // The scheme's first four letters are the same with and without TLS.
        let socket_base = base.strip_prefix("http").map_or_else(|| base.to_owned(), |rest| format!("ws{rest}"));
        Self {
            cdp_url: format!("{socket_base}/cdp/{id}?token={}", token(Capability::Cdp)),
            // A fragment is not sent with the request, so it is in nobody's log.
            live_view_url: format!("{base}/live/{id}#{}", token(Capability::View)),
            interactive_live_view_url: format!("{base}/live/{id}#{}", token(Capability::Control)),
        }
    }
}

/// Where a session is watched, and where it is watched and used.
pub fn live_addresses(base: &str, secret: &str, id: SessionId) -> (String, String) {
    let Addresses { live_view_url, interactive_live_view_url, .. } = Addresses::new(base, secret, id);
    (live_view_url, interactive_live_view_url)
}

/// What was given and has no effect, and what of the session is not as it was asked for.
pub(super) fn joined(of_body: Option<String>, of_session: Option<String>) -> Option<String> {
    let texts: Vec<String> = of_body.into_iter().chain(of_session).collect();
    (!texts.is_empty()).then(|| texts.join(" "))
}

/// A session as lists show it (spec 2.1). Destroyed ones keep their addresses: clients require the strings.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "BrowserSession")]
struct Entry {
    id: SessionId,
    #[schemars(extend("enum" = SessionState::SHOWN))]
    status: &'static str,
    #[serde(flatten)]
    addresses: Addresses,
    stream_web_view: bool,
    #[schemars(extend("format" = "date-time"))]
    created_at: String,
    #[schemars(extend("format" = "date-time"))]
    last_activity: String,
    #[schemars(extend("format" = "date-time"))]
    expires_at: String,
}

impl Entry {
    /// `None`: the session is not told of yet.
    fn new(row: &SessionRow, base: &str, secret: &str) -> Option<Self> {
        Some(Self {
            id: row.id,
            status: row.state.shown()?,
            addresses: Addresses::new(base, secret, row.id),
            stream_web_view: row.stream_web_view,
            created_at: row.created_at.to_iso(),
            last_activity: row.last_activity.to_iso(),
            expires_at: row.expires_at.to_iso(),
        })
    }
}

fn not_found() -> ApiError {
    ApiError::new(ErrorCode::NotFound, "Browser session not found.")
}

pub(super) fn gone() -> ApiError {
    ApiError::new(ErrorCode::Gone, "Browser session has been destroyed.")
}

/// An id from a path or a body. A malformed one names no session.
fn session_id(text: &str) -> ApiResult<SessionId> {
    text.parse().map_err(|_| not_found())
}

/// Sessions that ended before this are forgotten.
fn forgotten_before(app: &App, now: Timestamp) -> Timestamp {
    now.plus_ms(-(app.settings.result_ttl.as_millis() as i64))
}

/// The caller's session, as its worker's life allows: one that died with it is destroyed first.
///
/// # Errors
/// 404 when it is unknown, not told of yet or forgotten, 403 when it is another team's (wire 14).
pub(super) async fn load_own(app: &App, caller: &Caller, id: SessionId) -> ApiResult<SessionRow> {
    let now = app.db.now();
    let row = sessions::load(&app.db, id).await?.ok_or_else(not_found)?;
    if row.team_id != caller.team_id() {
        return Err(ApiError::new(ErrorCode::Forbidden, "Forbidden."));
    }
    let row = if row.is_orphan(now) { reload_after_burial(app, id).await? } else { row };
    let told = row.state.shown().is_some() && row.opened_at.is_some() && row.end_reason != Some(EndReason::NotOpened);
    let kept = row.ended_at.is_none_or(|at| at > forgotten_before(app, now));
    if told && kept { Ok(row) } else { Err(not_found()) }
}

/// Where an active session lives, whether it is streamed, and whose it is.
///
/// # Errors
/// 404 when it is unknown, 410 when it has ended.
async fn locate(app: &App, id: SessionId) -> ApiResult<(String, bool, TeamId)> {
    match app.relay_targets.find(id).await? {
        Some(RelayTarget::Active { worker, is_streamed, team }) => Ok((worker, is_streamed, team)),
        Some(RelayTarget::Destroyed) => Err(gone()),
        None => Err(not_found()),
    }
}

async fn reload_after_burial(app: &App, id: SessionId) -> ApiResult<SessionRow> {
    end_orphans(app).await?;
    sessions::load(&app.db, id).await?.ok_or_else(not_found)
}

/// Destroys what dead workers have left. The sweepers do the same a little later, but there may be none, and whoever
/// asks for a slot or a session should not find it held by the dead. Returns whether there was anything.
pub(super) async fn end_orphans(app: &App) -> ApiResult<bool> {
    let may_judge = || app.witness.may_judge(clock::instant(), app.db.now());
    if !may_judge() || !sessions::orphans_exist(&app.db, app.db.now()).await? {
        return Ok(false);
    }
    // Committed by itself: ending the sessions takes the teams' locks, which stand first in the lock order.
    let mut tx = app.db.begin().await?;
    // Its turn may have been waited for.
    if !may_judge() {
        return Ok(false);
    }
    nodes::bury(&mut tx, app.db.now()).await?;
    tx.commit().await?;
    let ended = sessions::end_orphans(&app.db).await?;
    if ended > 0 {
        tracing::warn!(ended, "browser sessions of dead workers are destroyed");
    }
    Ok(true)
}

/// Destroys a session by its row alone: its worker cannot do it.
pub(super) async fn destroy_row(app: &App, id: SessionId, reason: EndReason, at: Timestamp) -> ApiResult<()> {
    let mut tx = app.db.begin().await?;
    sessions::destroy(&mut tx, id, reason, at).await?;
    tx.commit().await?;
    tracing::warn!(session.id = %id, reason = reason.as_str(), "a browser session was destroyed without its worker");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_follow_the_base_and_hold_their_own_capability() {
        let id = SessionId::new();
        let plain = Addresses::new("http://127.0.0.1:3002", "secret", id);
        assert!(plain.cdp_url.starts_with(&format!("ws://127.0.0.1:3002/cdp/{id}?token=")), "{}", plain.cdp_url);
        let tls = Addresses::new("https://weir.test/below", "secret", id);
        assert!(tls.cdp_url.starts_with(&format!("wss://weir.test/below/cdp/{id}?token=")), "{}", tls.cdp_url);
        assert!(tls.live_view_url.starts_with(&format!("https://weir.test/below/live/{id}#")));
        assert_ne!(tls.live_view_url, tls.interactive_live_view_url);
        assert_eq!(plain.cdp_url.split_once('=').map(|p| p.1), tls.cdp_url.split_once('=').map(|p| p.1));
    }
}
