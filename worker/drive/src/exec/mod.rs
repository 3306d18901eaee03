//! Code of a session's callers, run in boxes: one box a language, started when it is first needed.
//!
//! ```text
//! Runners ── node, python ── a box each with a persistent runner: variables live as long as it
//!         └─ bash ────────── a box with a runner that starts a shell a call, and a box that keeps agent-browser's daemon
//! ```
//!
//! A runner (`worker/boxed/`) gets calls over its control socket and answers there; what code prints comes through the
//! box's pipes and is told apart by a random marker per call. Calls of one language stand in line, languages run side
//! by side. A call that exceeds its time ends with its whole box; the browser, and with it the session, goes on.
//! Nothing here runs code outside of a box: how boxes are made is [`StartBox`]'s.

mod assets;
mod boxes;
mod capture;
mod runner;
mod slot;
#[cfg(test)]
mod tests;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

pub use assets::Assets;
pub use boxes::{BoxHandle, Program, StartBox, StartedBox, TMP};
pub use watch::Free;
pub use weir_shared::domain::session::Language;

use slot::Slot;
use watch::Watch;
use weir_shared::clock;
use weir_shared::worker_api::sessions::RunBounds;

use crate::relay::Activity;

/// How a call ended, as clients read it (wire 8.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Execution {
    /// What was printed, at most [`OUTPUT_LIMIT`] bytes and a note; when nothing was, the value of the last expression.
    pub stdout: String,
    /// The value of the last expression, otherwise `stdout`.
    pub result: Option<String>,
    /// What was printed there, errors included; limited like `stdout`.
    pub stderr: String,
    /// Exit code of the call: 0 is success, 137 follows a kill.
    pub exit_code: i32,
    /// The time was exceeded and everything that the code had started was killed.
    pub killed: bool,
    /// Present when `exit_code` is not 0.
    pub error: Option<String>,
    /// Output or value were cut.
    pub truncated: bool,
    /// The value of the last expression alone (wire 8.4: the result of interact).
    pub last_value: Option<String>,
}

/// Why code was not run. It has not begun, so the call may be repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecError {
    /// No box, or no runner in it. The text is for the log.
    #[error("the code runner did not start: {0}")]
    Start(String),
    /// The runner could not reach the session's browser, because a script without end had blocked one of its pages.
    #[error("a page of the session does not answer: a script of it ran without end")]
    Blocked,
    /// The runner could not reach the session's browser.
    #[error("the code runner could not reach the browser: {0}")]
    Browser(String),
    /// Calls before it in the same language took all the time there was.
    #[error("another call is still running in this session")]
    Busy,
    /// The session ended.
    #[error("the session has ended")]
    Closed,
}

/// Captured bytes of each of stdout and stderr; what exceeds them is read and dropped.
pub const OUTPUT_LIMIT: usize = 1 << 20;

/// How long after its beginning a session's pages are watched.
const WATCHED_AFTER: Duration = Duration::from_millis(150);

/// A call that has to be given up ends so long before its answer is due: its box is killed, its last output read, and the
/// answer has a way to go.
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// Whoever stood in line gets at least this long to run, or its whole timeout if that is less.
const IN_LINE_AT_LEAST: Duration = Duration::from_secs(5);

/// How long [`Runners::close`] waits for a language's calls to notice.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// The code runners of one session.
#[derive(Debug)]
pub struct Runners {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    node: Slot,
    python: Slot,
    bash: Slot,
    watch: Arc<Watch>,
    closed: CancellationToken,
}

impl Runners {
    /// Starts no box yet. `cdp` is the filtered socket of the session's browser, which the boxes see as
    /// [`boxes::CDP_URL`]; here it serves to free pages that are blocked, by a connection that is made from now on beside
    /// what the caller does. `activity`: that of the session, which knows what the browser is told.
    pub fn new(boxes: Arc<dyn StartBox>, cdp: PathBuf, activity: &Arc<Activity>, assets: Arc<Assets>) -> Self {
        let closed = CancellationToken::new();
        let watch = Arc::new(Watch::new(cdp, closed.clone()));
        // A page that is blocked before anybody is attached to it can be freed by nobody. A moment later, since the session's
        // own client connects to the same browser now.
        let (later, open) = (Arc::clone(&watch), closed.clone());
        tokio::spawn(async move {
            if open.run_until_cancelled(tokio::time::sleep(WATCHED_AFTER)).await.is_some() {
                later.begin();
            }
        });
        let slot = |language| {
            let browser = (Arc::clone(&watch), Arc::clone(activity));
            Slot::new(language, Arc::clone(&boxes), browser, Arc::clone(&assets), closed.clone())
        };
        let inner = Inner {
            node: slot(Language::Node),
            python: slot(Language::Python),
            bash: slot(Language::Bash),
            watch: Arc::clone(&watch),
            closed: closed.clone(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Runs `code` within these bounds, starts and waits included. Goes on when the returned future is dropped.
    ///
    /// # Errors
    /// When the code has not begun to run; whatever happens to it afterwards is an [`Execution`].
    pub async fn execute(&self, language: Language, code: &str, bounds: RunBounds) -> Result<Execution, ExecError> {
        let (inner, code) = (Arc::clone(&self.inner), code.to_owned());
        let give_up = clock::deadline(bounds.answer.saturating_sub(LAST_MOMENT));
        // A caller that goes away leaves no half-read answer behind.
        let running = tokio::spawn(async move { inner.slot(language).execute(&code, bounds.run, give_up).await });
        running.await.unwrap_or_else(|error| Err(ExecError::Start(format!("the call was lost: {error}"))))
    }

    /// What frees the session's pages when they are blocked.
    pub fn free(&self) -> Free {
        let watch = Arc::clone(&self.inner.watch);
        Arc::new(move || {
            let watch = Arc::clone(&watch);
            Box::pin(async move { watch.free().await })
        })
    }

    /// Starts the runner of `language` ahead of its first call. A failure shows in that call.
    pub async fn warm(&self, language: Language) {
        self.inner.slot(language).warm().await;
    }

    /// Ends every box, and the calls in them with [`ExecError::Closed`]. Afterwards no call runs.
    pub async fn close(&self) {
        self.inner.closed.cancel();
        let Inner { node, python, bash, .. } = &*self.inner;
        tokio::join!(node.close(), python.close(), bash.close());
    }
}

impl Drop for Runners {
    fn drop(&mut self) {
        self.inner.closed.cancel();
    }
}

impl Inner {
    fn slot(&self, language: Language) -> &Slot {
        match language {
            Language::Node => &self.node,
            Language::Python => &self.python,
            Language::Bash => &self.bash,
        }
    }
}
