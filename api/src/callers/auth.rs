//! Who calls (spec 5): a bearer key, looked up by its digest.
//!
//! Answers are remembered for a moment, so that a client that reads its status a thousand times costs one query, and a
//! revoked key still stops working within that moment.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix_web::http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{KeyId, TeamId};
use weir_shared::store::Db;
use weir_shared::store::accounts::keys;
use weir_shared::store::accounts::teams::{self, DEFAULT_TEAM, TeamRow};

use crate::callers::remembered::Remembered;
use crate::error::{ApiError, ApiResult};

/// How long a lookup is trusted: a revoked key works this long at most.
const TRUSTED: Duration = Duration::from_millis(1_500);
/// Most callers remembered at once.
const MOST: usize = 10_000;

/// The authenticated caller of a request. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Caller {
    pub team: Arc<TeamRow>,
    /// `None` with `WEIR_AUTH=open`.
    pub key: Option<KeyId>,
}

impl Caller {
    /// The team's id.
    pub fn team_id(&self) -> TeamId {
        self.team.id
    }
}

/// Left in the request's extensions by the console: who calls, in the place of a key. Nothing else puts it there.
pub struct SignedIn(pub Caller);

/// Left in the request's extensions for the access log.
#[derive(Debug, Clone, Copy)]
pub struct CallerTeam(pub TeamId);

/// Callers seen a moment ago, by the digest of their key.
pub struct CallerCache {
    callers: Remembered<String, Caller>,
    /// Keys that were looked up since the last minute was written.
    used: Mutex<HashSet<KeyId>>,
}

impl Default for CallerCache {
    fn default() -> Self {
        Self { callers: Remembered::new(TRUSTED, MOST), used: Mutex::default() }
    }
}

/// What the `Authorization` header says.
#[derive(Debug, PartialEq, Eq)]
pub enum Credentials<'a> {
    /// There is no header.
    Absent,
    /// There is one, without a token in it.
    Empty,
    Token(&'a str),
}

/// Reads `Authorization: Bearer <key>`.
pub fn credentials(headers: &HeaderMap) -> Credentials<'_> {
    Credentials::of(headers.get(AUTHORIZATION))
}

impl<'a> Credentials<'a> {
    /// The same of the header's value.
    pub fn of(authorization: Option<&'a HeaderValue>) -> Self {
        let Some(value) = authorization else { return Self::Absent };
        let text = value.to_str().unwrap_or_default().trim();
        match text.split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty() => {
                Self::Token(token.trim())
            }
            _ => Self::Empty,
        }
    }
}

impl CallerCache {
    /// Whose credentials these are (wire 2.1). With `WEIR_AUTH=open` everybody is the default team, whatever they
    /// send.
    ///
    /// # Errors
    /// 401 without credentials, without a token, or with an unknown one.
    pub async fn find(&self, db: &Db, auth_required: bool, credentials: Credentials<'_>) -> ApiResult<Caller> {
        let refused = |text: &str| ApiError::new(ErrorCode::Unauthorized, text);
        if !auth_required {
            return self.default_caller(db).await;
        }
        let digest = match credentials {
            Credentials::Absent => return Err(refused("Unauthorized")),
            Credentials::Empty => return Err(refused("Unauthorized: Token missing")),
            Credentials::Token(token) => keys::digest(token),
        };
        if let Some(caller) = self.callers.get(&digest, db.clock().instant()) {
            return Ok(caller);
        }
        let found = keys::find(db, &digest).await?;
        let (key, team) = found.ok_or_else(|| refused("Unauthorized: Invalid token"))?;
        let caller = Caller { team: Arc::new(team), key: Some(key) };
        self.note_use(key);
        self.callers.put(digest, caller.clone(), db.clock().instant());
        Ok(caller)
    }

    /// That a key is used is noted where it is looked up, so that the many requests between two lookups cost nothing.
    fn note_use(&self, key: KeyId) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() < MOST {
            used.insert(key);
        }
    }

    /// Keys that were used since this was asked last.
    pub fn take_used(&self) -> Vec<KeyId> {
        std::mem::take(&mut *self.used.lock().unwrap_or_else(PoisonError::into_inner)).into_iter().collect()
    }

    async fn default_caller(&self, db: &Db) -> ApiResult<Caller> {
        if let Some(caller) = self.callers.get(DEFAULT_TEAM, db.clock().instant()) {
            return Ok(caller);
        }
        let team = teams::by_name(db, DEFAULT_TEAM).await?;
        let team = team.ok_or_else(|| ApiError::internal(&"the default team is missing"))?;
        let caller = Caller { team: Arc::new(team), key: None };
        self.callers.put(DEFAULT_TEAM.to_owned(), caller.clone(), db.clock().instant());
        Ok(caller)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_header_is_read_as_clients_write_it() {
        for (header, expected) in [
            (None, Credentials::Absent),
            (Some(""), Credentials::Empty),
            (Some("Bearer"), Credentials::Empty),
            (Some("Bearer "), Credentials::Empty),
            (Some("weir_abc"), Credentials::Empty),
            (Some("Basic abc"), Credentials::Empty),
            (Some("Bearer weir_abc"), Credentials::Token("weir_abc")),
            (Some("bearer  weir_abc "), Credentials::Token("weir_abc")),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(text) = header {
                headers.insert(AUTHORIZATION, HeaderValue::from_str(text).unwrap());
            }
            assert_eq!(credentials(&headers), expected, "{header:?}");
        }
    }
}
