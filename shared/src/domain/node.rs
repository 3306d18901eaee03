//! The life of a worker process, as the others see it in its row.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::figures::Ended;
use super::states::states;

states! {
    /// State of a worker.
    NodeState {
        /// Takes work.
        Live = "live",
        /// Finishes what it has and stops.
        Draining = "draining",
        /// Writes nothing any more: what it had is for others.
        Dead = "dead",
    }
    /// How a worker goes on. A dead one stays dead: its process announces itself anew under another id.
    NodeMove {
        /// The operator asks for it.
        Drain: Live => Draining,
        /// It signed off, its process is gone, or its heartbeat is too old.
        Die: Live => Dead,
        /// The same of one that drains.
        Stop: Draining => Dead,
    }
}

/// What a worker had to do at its last heartbeat, as its row has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Load {
    pub version: String,
    /// Page slots in use.
    pub busy: i64,
    /// Chromium processes of the scraping pool.
    pub browsers: i64,
    /// Why no browser for pages can be started, while that is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browser_problem: Option<String>,
    /// It is set to take no browser sessions (`WEIR_SESSIONS_PER_WORKER=0`), so nobody waits for its offer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub takes_no_sessions: bool,
    /// Browser sessions.
    pub sessions: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<i64>,
    /// Pages since the process began, by engine.
    pub pages: BTreeMap<String, Ended>,
}
