//! `GET /v2/browser` (spec 4.2): the team's sessions, newest first; destroyed ones for the result time.

use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use weir_shared::domain::session::{SessionState, parse_status};
use weir_shared::store::sessions;

use super::{Entry, end_orphans, forgotten_before};
use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::error::ApiResult;
use crate::openapi::{Group, Operation};

#[derive(Serialize, JsonSchema)]
struct Body {
    success: bool,
    sessions: Vec<Entry>,
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "The team's sessions, newest first; destroyed ones as long as results are kept.";
    Operation::new(Group::Browser, "listBrowserSessions", "List sessions", text)
        .query("status", json!({"type": "string", "enum": SessionState::SHOWN}), "Only these.")
        .answer::<Body>("The sessions.")
        .errors(&[400])
}

/// Handles the request.
///
/// # Errors
/// 400 for a status that is neither `active` nor `destroyed`.
pub async fn handle(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let status = status_of(request.query_string())?;
    let now = app.db.now();
    let since = forgotten_before(&app, now);
    let mut rows = sessions::list(&app.db, caller.team_id(), status, since).await?;
    if rows.iter().any(|row| row.is_orphan(now)) && end_orphans(&app).await? {
        rows = sessions::list(&app.db, caller.team_id(), status, since).await?;
    }
    let base = app.base_url(&request);
    let sessions = rows.iter().filter_map(|row| Entry::new(row, &base, &app.internal_secret)).collect();
    Ok(HttpResponse::Ok().json(Body { success: true, sessions }))
}

/// Reads `status`; other parameters are ignored.
fn status_of(query: &str) -> ApiResult<Option<SessionState>> {
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    let word = pairs.find(|(name, _)| name == "status").map(|(_, word)| word);
    Ok(parse_status(word.as_deref())?)
}
