//! `/console/api/sessions`: browser sessions of a team or of all, with the addresses of their live views.

use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use weir_shared::domain::console::Role;
use weir_shared::domain::session::{SessionState, parse_status};
use weir_shared::ids::{PageId, SessionId, WorkerId};
use weir_shared::store::sessions::{self, SessionRow};

use super::body;
use super::job::iso;
use super::jobs::{cursor, limit, listed};
use super::session::{Viewer, enter};
use super::wire::{Team, TeamNames};
use crate::app::AppData;
use crate::endpoints::browser::live_addresses;
use crate::error::ApiResult;
use crate::openapi::{Group, Operation};

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Query {
    status: Option<String>,
    cursor: Option<String>,
    limit: Option<i64>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConsoleSessions")]
struct Sessions {
    sessions: Vec<Session>,
    next: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsoleSession")]
struct Session {
    id: SessionId,
    team: Team,
    /// browser or interact.
    kind: &'static str,
    /// active or destroyed.
    status: Option<&'static str>,
    /// The page that an interact session continues.
    page_id: Option<PageId>,
    profile: Option<Profile>,
    worker: WorkerId,
    #[schemars(extend("format" = "date-time"))]
    created_at: String,
    #[schemars(extend("format" = "date-time"))]
    last_activity: String,
    #[schemars(extend("format" = "date-time"))]
    expires_at: String,
    #[schemars(extend("format" = "date-time"))]
    ended_at: Option<String>,
    end_reason: Option<&'static str>,
    /// Held back while it lives, billed once it has ended.
    credits: i64,
    stream_web_view: bool,
    /// While it is active.
    live_view_url: Option<String>,
    /// The same to use it; not for readers.
    interactive_live_view_url: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConsoleProfile")]
struct Profile {
    name: String,
    save: bool,
}

/// `GET /console/api/sessions` in the API's document.
pub fn doc() -> Operation {
    listed(Operation::new(Group::Console, "consoleListSessions", "List browser sessions", "Newest first."))
        .query("status", json!({"type": "string", "enum": SessionState::SHOWN}), "Only these.")
        .answer::<Sessions>("The sessions.")
}

/// `GET /console/api/sessions`.
///
/// # Errors
/// Those of [`enter`], 400.
pub async fn list(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    let viewer = enter(&app, &request).await?;
    let query: Query = body::query(&request)?;
    let status = parse_status(query.status.as_deref())?;
    let (before, limit) = (cursor(query.cursor.as_deref())?, limit(query.limit)?);
    let rows = sessions::list_before(&app.db, viewer.scope(), status, before, limit).await?;
    let names = TeamNames::load(&app).await?;
    let next = rows.last().filter(|_| rows.len() as i64 == limit).map(|row| row.id.to_string());
    let base = app.base_url(&request);
    let sessions = rows.iter().map(|row| shown(row, &viewer, &names, &base, &app.internal_secret)).collect();
    Ok(HttpResponse::Ok().json(Sessions { sessions, next }))
}

fn shown(row: &SessionRow, viewer: &Viewer, names: &TeamNames, base: &str, secret: &str) -> Session {
    let (watch, control) = live_addresses(base, secret, row.id);
    let is_active = row.state == SessionState::Active;
    let may_use = viewer.role != Role::Reader;
    Session {
        id: row.id,
        team: names.of(row.team_id),
        kind: row.kind.as_str(),
        status: row.state.shown(),
        page_id: row.page_id,
        profile: row.profile.as_ref().map(|profile| Profile { name: profile.name.clone(), save: profile.save_changes }),
        worker: row.worker_id,
        created_at: row.created_at.to_iso(),
        last_activity: row.last_activity.to_iso(),
        expires_at: row.expires_at.to_iso(),
        ended_at: iso(row.ended_at),
        end_reason: row.end_reason.map(|reason| reason.as_str()),
        credits: row.credits,
        stream_web_view: row.stream_web_view,
        live_view_url: is_active.then_some(watch),
        interactive_live_view_url: (is_active && may_use).then_some(control),
    }
}
