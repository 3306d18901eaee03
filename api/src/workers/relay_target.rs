//! Which worker a session's CDP clients and viewers are passed on to.

use async_trait::async_trait;
use weir_shared::domain::session::SessionState;
use weir_shared::ids::{SessionId, TeamId};
use weir_shared::store::{Db, sessions};

use crate::error::ApiResult;

/// A session, as far as connections to it go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RelayTarget {
    /// It takes connections, on the worker with this private address.
    Active {
        worker: String,
        /// `streamWebView` of its creation.
        is_streamed: bool,
        /// Whose session it is.
        team: TeamId,
    },
    /// It has ended, or ends now.
    Destroyed,
}

/// Finds sessions.
#[async_trait]
pub trait RelayTargets: Send + Sync {
    /// `None`: the session is unknown, or was never shown to anybody.
    ///
    /// # Errors
    /// When the rows cannot be read.
    async fn find(&self, id: SessionId) -> ApiResult<Option<RelayTarget>>;
}

/// Finds them in their rows.
pub struct RowTargets {
    db: Db,
}

impl RowTargets {
    /// Reads from this database.
    pub fn new(db: Db) -> Self {
        Self { db }
    }
}

#[async_trait]
impl RelayTargets for RowTargets {
    async fn find(&self, id: SessionId) -> ApiResult<Option<RelayTarget>> {
        let Some(row) = sessions::load(&self.db, id).await? else { return Ok(None) };
        Ok(match (row.state.shown(), row.worker) {
            (None, _) => None,
            (Some(_), Some(owner)) if row.state == SessionState::Active => {
                Some(RelayTarget::Active { worker: owner.address, is_streamed: row.stream_web_view, team: row.team_id })
            }
            (Some(_), _) => Some(RelayTarget::Destroyed),
        })
    }
}
