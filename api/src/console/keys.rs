//! `/console/api/keys`: keys of teams. A key is shown once, when it is made.

use actix_web::web::{Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::KeyId;
use weir_shared::store::accounts::keys::{self, KeyRow};

use super::body;
use super::job::iso;
use super::jobs::of_teams;
use super::session::{Viewer, enter};
use super::wire::Team;
use crate::app::{App, AppData};
use crate::endpoints::outage::{self, commit};
use crate::error::{ApiError, ApiResult};
use crate::http::extract::path_id;
use crate::openapi::{Group, Operation};

/// Characters of a name.
const NAME: usize = 100;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConsoleKeys")]
struct Keys {
    keys: Vec<Key>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsoleKey")]
struct Key {
    id: KeyId,
    team: Team,
    name: Option<String>,
    /// Its first characters.
    prefix: String,
    #[schemars(extend("format" = "date-time"))]
    created_at: String,
    /// To the minute.
    #[schemars(extend("format" = "date-time"))]
    last_used_at: Option<String>,
    #[schemars(extend("format" = "date-time"))]
    revoked_at: Option<String>,
    /// The session began with it.
    is_own: bool,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConsoleNewKey")]
struct NewKey {
    id: KeyId,
    name: Option<String>,
    prefix: String,
    /// Shown this once.
    key: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NameRequest {
    /// For people; null: none.
    name: Option<String>,
}

/// `GET /console/api/keys` in the API's document.
pub fn doc_list() -> Operation {
    of_teams(Operation::new(Group::Console, "consoleListKeys", "List keys", "Keys of a team, or of all."))
        .answer::<Keys>("The keys.")
}

/// `POST /console/api/keys` in the API's document.
pub fn doc_create() -> Operation {
    of_teams(Operation::new(Group::Console, "consoleCreateKey", "Make a key", "The key itself is shown this once."))
        .typed_body::<NameRequest>("ConsoleKeyNaming", json!({"name": "ci"}))
        .answer_with(201, "The key.", "application/json", NewKey::json_schema)
}

/// `PATCH /console/api/keys/{id}` in the API's document.
pub fn doc_rename() -> Operation {
    of_teams(Operation::new(Group::Console, "consoleRenameKey", "Name a key", "For people, to tell keys apart."))
        .typed_body::<NameRequest>("ConsoleKeyNaming", json!({"name": "ci"}))
        .answer::<Key>("The key.")
}

/// `DELETE /console/api/keys/{id}` in the API's document.
pub fn doc_revoke() -> Operation {
    of_teams(Operation::new(Group::Console, "consoleRevokeKey", "Revoke a key", "It opens nothing any more."))
        .bare_answer(204, "Revoked.")
        .errors(&[403, 409])
}

fn shown(row: KeyRow, viewer: &Viewer) -> Key {
    Key {
        is_own: viewer.row.who.key == Some(row.id),
        id: row.id,
        team: Team { id: row.team_id, name: row.team },
        name: row.name,
        prefix: row.prefix,
        created_at: row.created_at.to_iso(),
        last_used_at: iso(row.last_used_at),
        revoked_at: iso(row.revoked_at),
    }
}

fn name(given: NameRequest) -> ApiResult<Option<String>> {
    let name = given.name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    if name.as_ref().is_some_and(|name| name.chars().count() > NAME || name.chars().any(char::is_control)) {
        let text = format!("name: allowed are up to {NAME} characters, none of them a control character");
        return Err(ApiError::new(ErrorCode::BadRequest, text));
    }
    Ok(name)
}

async fn load(app: &App, viewer: &Viewer, id: &str) -> ApiResult<KeyRow> {
    let id: KeyId = path_id(id)?;
    let row = keys::load(&app.db, id).await?;
    let row = row.ok_or_else(|| ApiError::new(ErrorCode::NotFound, "Key not found"))?;
    viewer.may_see(row.team_id, "Key")?;
    Ok(row)
}

/// `GET /console/api/keys`.
///
/// # Errors
/// Those of [`enter`].
pub async fn list(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    let viewer = enter(&app, &request).await?;
    body::no_query(&request)?;
    let rows = keys::list(&app.db, viewer.scope()).await?;
    let keys = rows.into_iter().rev().map(|row| shown(row, &viewer)).collect();
    Ok(HttpResponse::Ok().json(Keys { keys }))
}

/// `POST /console/api/keys`.
///
/// # Errors
/// Those of [`enter`], 400.
pub async fn create(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    let viewer = enter(&app, &request).await?;
    body::no_query(&request)?;
    let team = viewer.one_team()?.id;
    let name = name(body::read(&request, payload).await?)?;
    let mut tx = app.db.begin().await?;
    let made = keys::create(&mut tx, team, app.db.now()).await?;
    keys::rename(&mut tx, made.id, name.as_deref()).await?;
    // A key that was made and never shown would open the door for nobody knows whom.
    commit(&app, tx, || async { Ok(keys::load(&app.db, made.id).await?.is_some()) }).await?;
    tracing::info!(key.id = %made.id, team.id = %team, "a key was made in the console");
    let id = made.id.to_string();
    let row = outage::read(|| load(&app, &viewer, &id)).await?;
    Ok(HttpResponse::Created().json(NewKey { id: made.id, name, prefix: row.prefix, key: made.key }))
}

/// `PATCH /console/api/keys/{id}`.
///
/// # Errors
/// Those of [`enter`], 400, 404.
pub async fn rename(app: AppData, request: HttpRequest, id: Path<String>, payload: Payload) -> ApiResult<HttpResponse> {
    let viewer = enter(&app, &request).await?;
    body::no_query(&request)?;
    let name = name(body::read(&request, payload).await?)?;
    let row = load(&app, &viewer, &id).await?;
    let mut tx = app.db.begin().await?;
    keys::rename(&mut tx, row.id, name.as_deref()).await?;
    tx.commit().await?;
    Ok(HttpResponse::Ok().json(shown(KeyRow { name, ..row }, &viewer)))
}

/// `DELETE /console/api/keys/{id}`.
///
/// # Errors
/// Those of [`enter`], 404, 409 when it was revoked before.
pub async fn revoke(app: AppData, request: HttpRequest, id: Path<String>) -> ApiResult<HttpResponse> {
    let viewer = enter(&app, &request).await?;
    body::no_query(&request)?;
    let row = load(&app, &viewer, &id).await?;
    let mut tx = app.db.begin().await?;
    let done = keys::revoke(&mut tx, row.id, app.db.now()).await?;
    if !done {
        return Err(ApiError::new(ErrorCode::Conflict, "The key was revoked before"));
    }
    let is_revoked = || async { Ok(keys::load(&app.db, row.id).await?.is_some_and(|key| key.revoked_at.is_some())) };
    commit(&app, tx, is_revoked).await?;
    tracing::info!(key.id = %row.id, team.id = %row.team_id, "a key was revoked in the console");
    Ok(HttpResponse::NoContent().finish())
}
