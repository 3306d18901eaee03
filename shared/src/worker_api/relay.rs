//! WebSockets of a session's CDP clients and viewers. The API has checked the client's capability, asks the worker for the
//! same handshake, and passes bytes on unread.

use serde::{Deserialize, Serialize};

use super::SessionPath;
use crate::ids::SessionId;

/// `GET`, answered with 101: one CDP client.
pub const CDP: SessionPath = SessionPath("/sessions/{id}/cdp");
/// `GET` with a [`LiveQuery`], answered with 101: one viewer.
pub const LIVE: SessionPath = SessionPath("/sessions/{id}/live");

/// Query of [`LIVE`].
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct LiveQuery {
    /// 1: the viewer may use the page too. Anything else: it watches.
    #[serde(default)]
    control: u8,
}

impl LiveQuery {
    /// Of a viewer with or without control.
    pub const fn new(has_control: bool) -> Self {
        Self { control: has_control as u8 }
    }

    /// Whether the viewer may use the page too.
    pub const fn has_control(self) -> bool {
        self.control == 1
    }

    /// Path and query for this session.
    pub fn path(self, id: SessionId) -> String {
        format!("{}?control={}", LIVE.of(id), self.control)
    }
}

/// Close codes of a live view's WebSocket. The page has a word for each; a new one is new to pages that are open.
pub mod close_code {
    /// The session has ended. API and worker say it.
    pub const ENDED: u16 = 4000;
    /// The worker's view stopped; connect again.
    pub const TRY_AGAIN: u16 = 4001;
    /// The session has as many viewers as it may. The worker says it.
    pub const FULL: u16 = 4002;
    /// The token is not a capability of this session. The API says it.
    pub const REFUSED: u16 = 4003;
    /// The session was made without a live view. The API says it.
    pub const OFF: u16 = 4005;
}
