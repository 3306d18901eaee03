//! Who is signed in: the cookie, what it lets its bearer do, and what keeps pages of other sites from using it.
//!
//! Every handler of the console begins with [`enter`], which judges the whole request: no handler can forget the cookie,
//! the CSRF token, the origin or the role, because it has no team to work for without it.

use std::sync::Arc;

use actix_web::http::Method;
use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use actix_web::{HttpMessage, HttpRequest};
use weir_shared::domain::console::{self, Role};
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::TeamId;
use weir_shared::store::accounts::keys;
use weir_shared::store::accounts::teams::{self, TeamRow};
use weir_shared::store::console::sign_ins::{self, SessionRow};
use weir_shared::time::Timestamp;

use crate::app::App;
use crate::callers::auth::{Caller, CallerTeam};
use crate::callers::open_mode;
use crate::error::{ApiError, ApiResult};

/// The cookie. Its path is the console's, so that it goes with no call of the public API.
const COOKIE: &str = "weir_console";
const CSRF: HeaderName = HeaderName::from_static("x-weir-csrf");
/// Which session an answer is of ([`console::mark`]). A tab goes by it: the cookie is the browser's, and another tab may have
/// signed in as somebody else.
pub const SESSION: HeaderName = HeaderName::from_static("x-weir-session");

/// Who asks, for whose things.
pub struct Viewer {
    /// Digest of the session's secret.
    pub session: String,
    pub role: Role,
    /// The team of a team's session, or the one that an operator has named.
    pub team: Option<Arc<TeamRow>>,
    pub row: SessionRow,
    /// What requests that change something have to carry.
    pub csrf: String,
    /// What its answers name the session by.
    pub mark: String,
}

impl Viewer {
    /// Whose rows a list shows; `None`: everybody's.
    pub fn scope(&self) -> Option<TeamId> {
        self.team.as_ref().map(|team| team.id)
    }

    /// The one team that is meant.
    ///
    /// # Errors
    /// 400 when an operator has named none.
    pub fn one_team(&self) -> ApiResult<&Arc<TeamRow>> {
        self.team.as_ref().ok_or_else(|| ApiError::new(ErrorCode::BadRequest, "Which team? Name it with ?team=ID"))
    }

    /// Who calls the public API: the one team, by the key that signed in.
    ///
    /// # Errors
    /// As [`Viewer::one_team`].
    pub fn caller(&self) -> ApiResult<Caller> {
        Ok(Caller { team: Arc::clone(self.one_team()?), key: self.row.who.key })
    }

    /// Refuses things of somebody else: to who may not see them there are none.
    ///
    /// # Errors
    /// 404.
    pub fn may_see(&self, owner: TeamId, what: &str) -> ApiResult<()> {
        match self.scope() {
            Some(team) if team != owner => Err(ApiError::new(ErrorCode::NotFound, format!("{what} not found"))),
            _ => Ok(()),
        }
    }

    /// Refuses whoever is no operator.
    ///
    /// # Errors
    /// 403.
    pub fn only_operators(&self) -> ApiResult<()> {
        match self.role {
            Role::Operator | Role::Reader => Ok(()),
            Role::Team => Err(ApiError::new(ErrorCode::Forbidden, "This is for the operator's key")),
        }
    }
}

/// Who asks. Notes the team for the access log.
///
/// # Errors
/// 401 when nobody is signed in, 403 when the request changes something and does not come from the console's own page or
/// its role reads only, 404 for another team than one's own, 400 for no team.
pub async fn enter(app: &App, request: &HttpRequest) -> ApiResult<Viewer> {
    let now = app.db.now();
    let secret = cookie(request.headers()).ok_or_else(not_signed_in)?;
    let session = console::digest(&secret);
    let row = find(app, &session, now).await?.ok_or_else(not_signed_in)?;
    let csrf = console::csrf_token(&secret);
    if !is_safe(request.method()) {
        check_token(app, request, &csrf)?;
        if row.who.role == Role::Reader {
            return Err(ApiError::new(ErrorCode::Forbidden, "This key reads only"));
        }
    }
    sign_ins::seen(&app.db, &session, &row, now).await?;
    let team = team(app, &row, request.query_string()).await?;
    if let Some(team) = &team {
        request.extensions_mut().insert(CallerTeam(team.id));
    }
    Ok(Viewer { session, role: row.who.role, team, row, csrf, mark: console::mark(&secret) })
}

/// What the cookie of somebody who signs out holds: this changes nothing but the session, so that readers may.
///
/// # Errors
/// 401 when nobody is signed in, 403 when the request does not come from the console's own page.
pub async fn leave(app: &App, request: &HttpRequest) -> ApiResult<String> {
    let secret = cookie(request.headers()).ok_or_else(not_signed_in)?;
    find(app, &console::digest(&secret), app.db.now()).await?.ok_or_else(not_signed_in)?;
    check_token(app, request, &console::csrf_token(&secret))?;
    Ok(secret)
}

fn check_token(app: &App, request: &HttpRequest, right: &str) -> ApiResult<()> {
    from_own_page(app, request)?;
    let given = request.headers().get(CSRF).and_then(|v| v.to_str().ok()).unwrap_or_default();
    if console::is_same(given, right) {
        return Ok(());
    }
    Err(ApiError::new(ErrorCode::Forbidden, "The request does not come from the console's page (X-Weir-CSRF)"))
}

/// A session that has not ended, neither by itself nor because the console's key is another one now.
pub async fn find(app: &App, session: &str, now: Timestamp) -> ApiResult<Option<SessionRow>> {
    let found = sign_ins::find(&app.db, session, now).await?;
    let settings = &app.settings.api.console;
    Ok(found.filter(|row| {
        let of_settings = match row.who.role {
            Role::Team => return true,
            Role::Operator => &settings.key,
            Role::Reader => &settings.read_key,
        };
        // Who came by a link needs none.
        let Some(begun_with) = &row.who.console_key else { return true };
        of_settings.as_ref().is_some_and(|key| keys::digest(key) == *begun_with)
    }))
}

async fn team(app: &App, row: &SessionRow, query: &str) -> ApiResult<Option<Arc<TeamRow>>> {
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    let named = pairs.find(|(name, _)| name == "team").map(|(_, id)| id.parse::<TeamId>());
    let unknown = || ApiError::new(ErrorCode::NotFound, "Team not found");
    let id = match (row.who.team, named) {
        (_, Some(Err(_))) => return Err(unknown()),
        (Some(own), Some(Ok(other))) if own != other => return Err(unknown()),
        (Some(own), _) => own,
        (None, Some(Ok(id))) => id,
        (None, None) => return Ok(None),
    };
    let found = teams::by_id(&app.db, id).await?.filter(|team| team.removed_at.is_none());
    Ok(Some(Arc::new(found.ok_or_else(unknown)?)))
}

fn not_signed_in() -> ApiError {
    ApiError::new(ErrorCode::Unauthorized, "Not signed in")
}

fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// Refuses requests of pages from elsewhere: browsers say where a request comes from, and no page can change that.
///
/// # Errors
/// 403.
pub fn from_own_page(app: &App, request: &HttpRequest) -> ApiResult<()> {
    if open_mode::is_from_own_page(&app.settings.api, request.headers()) {
        return Ok(());
    }
    Err(ApiError::new(ErrorCode::Forbidden, "The request comes from a page of another site"))
}

/// What the cookie holds. Two of the name are none: a page of a neighbouring name may have set one of them.
pub fn cookie(headers: &HeaderMap) -> Option<String> {
    let lines = headers.get_all(header::COOKIE).filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(name, _)| *name == COOKIE).map(|(_, value)| value);
    let value = values.next()?;
    (values.next().is_none() && value.len() == 64).then(|| value.to_owned())
}

/// [`SESSION`] of answers to a request.
pub fn mark_of(headers: &HeaderMap) -> Option<HeaderValue> {
    HeaderValue::from_str(&console::mark(&cookie(headers)?)).ok()
}

/// `Set-Cookie` of a session that begins, or for one that ends (`None`).
pub fn set_cookie(secret: Option<&str>, is_https: bool) -> HeaderValue {
    let value = secret.unwrap_or_default();
    let age = if secret.is_some() { sign_ins::LIFETIME_MS / 1_000 } else { 0 };
    let secure = if is_https { "; Secure" } else { "" };
    let text = format!("{COOKIE}={value}; Path=/console; Max-Age={age}; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn one_cookie_of_the_name_counts_and_two_are_none() {
        let secret = "a".repeat(64);
        let read = |lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(header::COOKIE, HeaderValue::from_str(line).unwrap());
            }
            cookie(&headers)
        };
        let own = format!("weir_console={secret}");
        assert_eq!(read(&[&own]).as_deref(), Some(secret.as_str()));
        assert_eq!(read(&[&format!("other=1; {own}; more=2")]).as_deref(), Some(secret.as_str()));
        assert_eq!(read(&[&format!("{own}; weir_console=x")]), None);
        assert_eq!(read(&[&own, &own]), None);
        assert_eq!(read(&["weir_console=short", "x"]), None);
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn the_cookie_is_for_the_console_alone_and_no_script_reads_it() {
        let text = set_cookie(Some("s"), true);
        let text = text.to_str().unwrap();
        assert_eq!(text, "weir_console=s; Path=/console; Max-Age=43200; HttpOnly; SameSite=Strict; Secure");
        assert!(set_cookie(None, false).to_str().unwrap().starts_with("weir_console=; Path=/console; Max-Age=0;"));
    }
}
