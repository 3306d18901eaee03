//! `/console/api/sign-in`, `/me`, `/sign-out`: a key or a one-time link is exchanged for a cookie.
//!
//! Each sign-in makes a new secret, and what the browser sent before ends: a session cannot be slipped under somebody.

use std::net::IpAddr;

use actix_web::http::header::SET_COOKIE;
use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use weir_shared::domain::console::{self, Role};
use weir_shared::error_code::ErrorCode;
use weir_shared::store::accounts::{keys, teams};
use weir_shared::store::console::sign_ins::{self, SessionRow, SignIn};

use super::body;
use super::session::{self, SESSION, Viewer, cookie, enter, from_own_page, set_cookie};
use super::wire::Team;
use crate::app::{App, AppData};
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Group, Operation};

/// One of the two.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Request {
    /// An API key, `WEIR_CONSOLE_KEY` or `WEIR_CONSOLE_READ_KEY`.
    key: Option<String>,
    /// What stands after `#` in a one-time link.
    token: Option<String>,
}

/// Who is signed in.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsoleMe")]
struct Me {
    #[schemars(extend("enum" = ["team", "operator", "reader"]))]
    role: &'static str,
    /// The team of a team's session.
    team: Option<Team>,
    /// For `X-Weir-CSRF`.
    csrf: String,
    /// What `X-Weir-Session` of this session's answers says. It is no secret.
    session: String,
    #[schemars(extend("format" = "date-time"))]
    expires_at: String,
    /// The session ends when nothing is asked for this long.
    idle_ms: i64,
    version: &'static str,
    features: Features,
    /// How long results are kept.
    result_ttl_ms: u64,
    /// Base of the public API's addresses.
    public_url: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsoleFeatures")]
struct Features {
    /// Teams need credits.
    metered: bool,
    /// A language model is configured.
    model: bool,
    /// A search backend is configured.
    search: bool,
    /// `WEIR_AUTH=open`.
    open_mode: bool,
}

/// `POST /console/api/sign-in` in the API's document.
pub fn doc() -> Operation {
    Operation::new(Group::Console, "consoleSignIn", "Sign in", "Exchanges a key or a one-time link for a cookie.")
        .no_session()
        .typed_body::<Request>("ConsoleSignIn", json!({"key": "weir_…"}))
        .answer::<Me>("Signed in; `Set-Cookie` has the session.")
        .errors(&[401, 403, 429])
}

/// `GET /console/api/me` in the API's document.
pub fn doc_me() -> Operation {
    Operation::new(Group::Console, "consoleMe", "Who is signed in", "The session, and what this installation has.")
        .answer::<Me>("The session.")
}

/// `POST /console/api/sign-out` in the API's document.
pub fn doc_sign_out() -> Operation {
    Operation::new(Group::Console, "consoleSignOut", "Sign out", "Ends the session.")
        .bare_answer(204, "Signed out.")
        .errors(&[403])
}

/// Handles the request.
///
/// # Errors
/// 401 for what opens nothing, 403 for pages of other sites, 429 after too many failures.
pub async fn handle(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    from_own_page(&app, &request)?;
    let given: Request = body::read(&request, payload).await?;
    let address: Option<IpAddr> = request.peer_addr().map(|address| address.ip());
    let may_be_guessed = given.key.as_deref().is_some_and(|key| !keys::is_generated(key));
    if may_be_guessed {
        app.console.attempts.admit(address, app.db.now())?;
    }
    let before = cookie(request.headers());
    let (app_of_work, of_before) = (app.clone(), before.clone());
    let (secret, row) = app
        .beside_database(async move {
            let who = judge(&app_of_work, &given).await?;
            begin(&app_of_work, &who, of_before.as_deref()).await
        })
        .await?;
    if let Some(before) = before {
        app.console.streams.end(&console::digest(&before));
    }
    if may_be_guessed {
        app.console.attempts.succeeded(address);
    }
    let (csrf, mark) = (console::csrf_token(&secret), console::mark(&secret));
    let me = Me::of(&app, &request, &row, csrf, mark.clone()).await?;
    let is_https = app.base_url(&request).starts_with("https:");
    let cookie = set_cookie(Some(&secret), is_https);
    Ok(HttpResponse::Ok().insert_header((SET_COOKIE, cookie)).insert_header((SESSION, mark)).json(me))
}

/// Who signs in with this.
async fn judge(app: &App, given: &Request) -> ApiResult<SignIn> {
    let refused = |text: &str| ApiError::new(ErrorCode::Unauthorized, text);
    let now = app.db.now();
    match (&given.key, &given.token) {
        (Some(key), None) => {
            let settings = &app.settings.api.console;
            // Both are compared, so that the time tells nothing.
            let is_operator = settings.key.as_ref().map(|right| console::is_same(key, right)).unwrap_or_default();
            let is_reader = settings.read_key.as_ref().map(|right| console::is_same(key, right)).unwrap_or_default();
            if is_operator || is_reader {
                let role = if is_operator { Role::Operator } else { Role::Reader };
                return Ok(SignIn { role, team: None, key: None, console_key: Some(keys::digest(key)) });
            }
            let found = keys::find(&app.db, &keys::digest(key)).await?;
            let (id, team) = found.ok_or_else(|| refused("This key opens nothing here"))?;
            Ok(SignIn { role: Role::Team, team: Some(team.id), key: Some(id), console_key: None })
        }
        (None, Some(token)) => {
            let gone = || refused("This link was used, or its time is over: make another one");
            let id = console::digest(token);
            if !sign_ins::has_link(&app.db, &id, now).await? {
                return Err(gone());
            }
            let mut tx = app.db.begin().await?;
            let who = sign_ins::use_link(&mut tx, &id, now).await?;
            tx.commit().await?;
            who.ok_or_else(gone)
        }
        _ => Err(ApiError::new(ErrorCode::BadRequest, "Either key or token is needed")),
    }
}

/// Begins a session with a secret of its own; the one that the browser had ends.
async fn begin(app: &App, who: &SignIn, before: Option<&str>) -> ApiResult<(String, SessionRow)> {
    let secret = console::secret().map_err(|error| ApiError::internal(&error))?;
    let now = app.db.now();
    let mut tx = app.db.begin().await?;
    if let Some(before) = before {
        sign_ins::end(&mut tx, &console::digest(before)).await?;
    }
    let expires_at = sign_ins::insert(&mut tx, &console::digest(&secret), who, now).await?;
    tx.commit().await?;
    tracing::info!(
        role = who.role.as_str(),
        team.id = who.team.map(tracing::field::display),
        "signed in to the console"
    );
    Ok((secret, SessionRow { who: who.clone(), seen_at: now, expires_at }))
}

impl Me {
    async fn of(app: &App, request: &HttpRequest, row: &SessionRow, csrf: String, mark: String) -> ApiResult<Self> {
        let team = match row.who.team {
            Some(id) => teams::by_id(&app.db, id).await?.map(|team| Team { id, name: team.name }),
            None => None,
        };
        Ok(Self {
            role: row.who.role.as_str(),
            team,
            csrf,
            session: mark,
            expires_at: row.expires_at.to_iso(),
            idle_ms: sign_ins::IDLE_MS,
            version: env!("CARGO_PKG_VERSION"),
            features: Features {
                metered: app.settings.limits.metered,
                model: app.settings.model.is_some(),
                search: !app.settings.search.backends.is_empty(),
                open_mode: !app.settings.api.auth_required,
            },
            result_ttl_ms: u64::try_from(app.settings.result_ttl.as_millis()).unwrap_or(u64::MAX),
            public_url: app.base_url(request),
        })
    }
}

/// `GET /console/api/me`.
///
/// # Errors
/// 401 when nobody is signed in.
pub async fn me(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    let Viewer { row, csrf, mark, .. } = enter(&app, &request).await?;
    Ok(HttpResponse::Ok().json(Me::of(&app, &request, &row, csrf, mark).await?))
}

/// `POST /console/api/sign-out`. A reader may do this, too, which is why it judges by itself.
///
/// # Errors
/// 401 when nobody is signed in, 403 for requests that the console's page did not send.
pub async fn out(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    let secret = session::leave(&app, &request).await?;
    let id = console::digest(&secret);
    let mut tx = app.db.begin().await?;
    sign_ins::end(&mut tx, &id).await?;
    tx.commit().await?;
    app.console.streams.end(&id);
    let is_https = app.base_url(&request).starts_with("https:");
    Ok(HttpResponse::NoContent().insert_header((SET_COOKIE, set_cookie(None, is_https))).finish())
}
