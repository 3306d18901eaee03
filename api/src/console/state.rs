//! What a process keeps for the console. It stands below [`crate::app`], and all else of the console above.

use super::attempts::Attempts;
use super::streams::Streams;

/// What a process keeps for the console.
#[derive(Default)]
pub struct Console {
    pub(super) attempts: Attempts,
    /// Tabs that listen.
    pub(super) streams: Streams,
}
