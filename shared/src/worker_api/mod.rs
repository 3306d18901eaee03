//! What the API and the workers say to each other, over the private listener of each worker.
//!
//! ```text
//! POST   /scrapes                 DirectScrape                  a scrape, past the queue           direct
//! POST   /sessions                OpenSession  -> Done          start the browser of a session     sessions
//! DELETE /sessions/{id}                        -> Done          end it
//! POST   /sessions/{id}/execute   ExecuteCode  -> CodeOutput    run code in it
//! POST   /sessions/{id}/prompt    RunPrompt    -> PromptOutput  have the agent work in it
//! GET    /sessions/{id}/version                -> JSON          its Chromium's `/json/version`
//! GET    /sessions/{id}/cdp                    -> 101           DevTools protocol                  relay
//! GET    /sessions/{id}/live      LiveQuery    -> 101           live view
//! ```
//!
//! Every call carries the installation's secret ([`Secret`]), bodies are JSON, and what is not done is answered with one
//! of the [`Refusal`]s. During an upgrade processes of two releases talk to each other: a field may be added with a
//! default, and no path, field or status may change its meaning.

pub mod direct;
pub mod relay;
pub mod sessions;

mod refusal;
mod secret;

pub use refusal::{Refusal, RefusalBody};
pub use secret::{SECRET_HEADER, Secret};

use crate::ids::SessionId;

/// Longest body of a call, bytes: the longest code with every character escaped.
pub const MAX_CALL: usize = 1 << 20;
/// Longest answer the API reads, bytes. The worker caps the output of code far below.
pub const MAX_ANSWER: usize = 64 << 20;

/// The path of a call about one session.
#[derive(Debug, Clone, Copy)]
pub struct SessionPath(&'static str);

impl SessionPath {
    const ID: &str = "{id}";

    /// The path with `{id}` in it, for the worker's router.
    pub const fn pattern(self) -> &'static str {
        self.0
    }

    /// The path for this session.
    pub fn of(self, id: SessionId) -> String {
        self.0.replace(Self::ID, &id.to_string())
    }
}

#[cfg(test)]
mod tests;
