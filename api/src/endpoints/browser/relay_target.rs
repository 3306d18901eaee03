//! Which worker a session's CDP clients and viewers are passed on to.

use async_trait::async_trait;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::SessionId;

use crate::app::App;
use crate::error::{ApiError, ApiResult};

/// A session, as far as connections to it go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RelayTarget {
    /// It takes connections, on the worker with this private address.
    Active {
        worker: String,
        /// `streamWebView` of its creation.
        is_streamed: bool,
    },
    /// It has ended, or ends now.
    Destroyed,
}

/// Finds sessions.
#[async_trait]
pub trait RelayTargets: Send + Sync {
    /// `None`: there is no such session, or none that anybody was told of.
    ///
    /// # Errors
    /// When the rows cannot be read.
    async fn find(&self, id: SessionId) -> ApiResult<Option<RelayTarget>>;
}

/// An installation without sessions.
pub struct NoSessions;

#[async_trait]
impl RelayTargets for NoSessions {
    async fn find(&self, _: SessionId) -> ApiResult<Option<RelayTarget>> {
        Ok(None)
    }
}

/// Where an active session lives, and whether it is streamed.
///
/// # Errors
/// 404 when it is unknown, 410 when it has ended.
pub async fn locate(app: &App, id: SessionId) -> ApiResult<(String, bool)> {
    match app.relay_targets.find(id).await? {
        Some(RelayTarget::Active { worker, is_streamed }) => Ok((worker, is_streamed)),
        Some(RelayTarget::Destroyed) => Err(gone()),
        None => Err(not_found()),
    }
}

/// An id from a path. A malformed one names no session.
///
/// # Errors
/// 404.
pub fn session_id(text: &str) -> ApiResult<SessionId> {
    text.parse().map_err(|_| not_found())
}

pub(super) fn not_found() -> ApiError {
    ApiError::new(ErrorCode::NotFound, "Browser session not found.")
}

pub(super) fn gone() -> ApiError {
    ApiError::new(ErrorCode::Gone, "Browser session has been destroyed.")
}
