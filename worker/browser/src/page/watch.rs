//! How a page comes to its end: which of the browser's events say so, and what the page waits for meanwhile.
//!
//! A document comes to rest by its load event, and the script in it (`early.js`) says when. Many come to no load event: the
//! browser stops at what is no document, or is cut off. So the frame's events are followed from here:
//!
//! ```text
//!          frameNavigated        loadEventFired
//!   NotYet --------------> Begun --------------> Done <---------------------+
//!                           | ^                                             |
//!        frameStoppedLoading| | frameStartedLoading (a script leads on)     |
//!                           v |                                             |
//!                         Stopped -- a second later, its document says: ----+ "interactive", "complete": it is read
//!                                                                           +-> "loading": it was cut, and the page fails
//! ```
//!
//! From each of them `frameNavigated` leads to `Begun`, of the next document, and `loadEventFired` to `Done`. Beside that it is
//! known whether the frame loads something that has not taken the document's place (`frameStartedLoading`, until
//! `frameNavigated` or `frameStoppedLoading`). When that stops, or a document does that has begun, the script is told
//! (`stopped`), and waits no longer for what was to come: the document that stands there is the answer. Once a page has been
//! read and its actions run, nothing is `Stopped`: whatever half of a document they led to is the answer.
//!
//! What is answered, by what happens (docs/decisions/scrape.md, "A rendered page that ends otherwise than by loading"), and the
//! test of `tests/it/rendered.rs` that it stands in, by its first words:
//!
//! | what happens | what is answered | test |
//! |---|---|---|
//! | a script or a form leads to another document | that one | `what_a_script_leads_to` |
//! | it leads to an app, an address for mail, a 204, a download, and the page shows text | the page, at once | `a_page_is_answered` |
//! | it leads to a file, and the page shows no text | the file, asked for as after a redirect | `what_a_script_leads_to` |
//! | a form is sent by POST, and a file comes | an error: nobody asks for it again | `what_a_script_leads_to` |
//! | the page stops or closes itself | the page | `a_page_is_answered` |
//! | a part of it never comes, and its time is up | what is parsed of it | `a_page_is_answered` |
//! | its connection is cut | an error of the site | `a_page_is_answered` |
//! | the same, of what an action led to | the document as far as it came | `actions_have_their_effect` |
//! | its site allows it no scripts (`sandbox`) | the document once it is complete, looked at from outside | `a_page_is_answered` |
//! | it breaks the script that waits | the document as it stands, read in a world of its own (`wait.rs`) | `a_page_is_answered` |
//! | our proxy refuses it, over plain HTTP | the error that the refusal names (`verdict.rs`) | `actions_have_their_effect` |
//! | a PDF is announced as a page | the file | `what_a_script_leads_to` |

use std::borrow::Cow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use headless_chrome::protocol::cdp::types::Method as _;
use headless_chrome::protocol::cdp::{Page, Runtime};
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;
use url::Url;
use weir_shared::clock;

use crate::cdp::{Events, Pending, lock};
use crate::error::RenderError;
use crate::intercept::Interception;
use crate::kept::{Conduct, Navigated};
use crate::tab::Tab;

/// How far the main document is.
enum Loading {
    NotYet,
    Begun,
    Done,
    /// The browser stopped before the load event: the connection was cut in the middle, or the page has stopped itself. How
    /// far the document had come tells which, once the page has answered.
    Stopped(Instant, Pending<Said>),
}

/// Time for a document that has stopped to begin again (a redirect by script), before it counts as cut.
const CUT_AFTER: Duration = Duration::from_secs(1);

/// Where a page has come to, by the browser's word.
#[derive(Debug, Default)]
pub(super) struct LedTo {
    /// The address of the document that stands there. Its scripts could name any other.
    pub document: Option<Url>,
    /// What is no document: a download.
    pub file: Option<Url>,
    /// By a form, so that its address alone is not what was asked for.
    pub is_posted: bool,
}

/// A page while it is rendered.
pub(super) struct Watched<'a> {
    pub tab: &'a Tab,
    pub conduct: &'a Conduct,
    pub is_read: &'a AtomicBool,
    pub led_to: &'a Mutex<LedTo>,
}

/// Answers what a page would otherwise wait for. Returns only when the page is lost.
pub(super) async fn serve_events(
    watched: &Watched<'_>,
    events: &mut Events,
    interception: &Interception,
) -> RenderError {
    let Watched { tab, conduct, is_read, led_to } = watched;
    let mut loading = Loading::NotYet;
    // The frame loads something that has not taken the document's place so far.
    let mut is_leaving = false;
    loop {
        let next = match &mut loading {
            Loading::Stopped(at, how_far) => match tokio::time::timeout_at(*at + CUT_AFTER, events.next()).await {
                Ok(next) => next,
                Err(_) if how_far.now_or_never().is_some_and(|said| said.is_ok_and(|said| said.is_cut())) => {
                    return RenderError::Site("ERR_CONTENT_LENGTH_MISMATCH".into());
                }
                Err(_) => {
                    loading = Loading::Done;
                    continue;
                }
            },
            _ => events.next().await,
        };
        let Some(event) = next else { return RenderError::BrowserLost };
        conduct.note(&event, &tab.target);
        interception.note(&event);
        let is_main = || event.params::<OfFrame<'_>>().is_some_and(|p| p.frame_id == tab.target);
        match event.method.as_str() {
            "Page.frameStartedLoading" if is_main() => {
                is_leaving = true;
                if matches!(loading, Loading::Stopped(..)) {
                    loading = Loading::Begun;
                }
            }
            "Page.frameNavigated" => {
                let navigated = event.params::<Navigated<'_>>().map(|navigated| navigated.frame);
                if let Some(frame) = navigated.filter(|frame| frame.id == tab.target) {
                    (loading, is_leaving) = (Loading::Begun, false);
                    let mut led_to = lock(led_to);
                    (led_to.document, led_to.file) = (frame.address(), None);
                }
            }
            "Page.navigatedWithinDocument" => {
                if let Some(moved) = event.params::<Moved<'_>>().filter(|moved| moved.frame_id == tab.target) {
                    lock(led_to).document = Url::parse(&moved.url).ok();
                }
            }
            "Page.loadEventFired" => loading = Loading::Done,
            "Page.frameStoppedLoading" if (is_leaving || matches!(loading, Loading::Begun)) && is_main() => {
                // After actions a document that stops half-way is what one of them led to, and is read as it is.
                let is_last = is_read.load(Ordering::Relaxed);
                let stopped = json!({ "expression": tab.process.wait.stopped(is_last), "returnByValue": true });
                let how_far = tab.process.cdp.send_as(Runtime::Evaluate::NAME, Some(&tab.session), stopped);
                is_leaving = false;
                if matches!(loading, Loading::Begun) && !is_last {
                    loading = Loading::Stopped(clock::instant(), how_far);
                }
            }
            "Page.frameRequestedNavigation" => {
                if let Some(asked) = event.params::<Requested<'_>>().filter(|asked| asked.frame_id == tab.target) {
                    lock(led_to).is_posted = asked.reason == "formSubmissionPost";
                }
            }
            "Page.downloadWillBegin" => {
                if let Some(begun) = event.params::<Download<'_>>().filter(|begun| begun.frame_id == tab.target) {
                    lock(led_to).file = Url::parse(&begun.url).ok();
                }
            }
            "Page.frameStartedLoading" | "Page.frameStoppedLoading" | "Page.frameDetached" | "Page.windowOpen" => {}
            "Fetch.requestPaused" => interception.answer(&event, &tab.process.cdp, &tab.session).await,
            "Security.certificateError" => interception.judge_certificate(&event, &tab.process.cdp, &tab.session),
            "Page.javascriptDialogOpening" => {
                tab.process.cdp.post::<Page::HandleJavaScriptDialog>(Some(&tab.session), json!({ "accept": true }));
            }
            _ => return RenderError::PageCrashed,
        }
        if events.has_lagged() {
            // A paused request that nobody answers would hang until the deadline.
            return RenderError::Internal("the page sent more events than could be read".into());
        }
    }
}

/// The value of an expression.
#[derive(Deserialize)]
pub(super) struct Said {
    pub result: Words,
}

#[derive(Deserialize)]
pub(super) struct Words {
    pub value: Option<String>,
}

impl Said {
    /// Of a document that the browser has stopped loading. One that was stopped by its page, or that its page was about to
    /// leave, is complete.
    fn is_cut(&self) -> bool {
        self.result.value.as_deref() == Some("loading")
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Requested<'a> {
    frame_id: &'a str,
    reason: &'a str,
}

/// Another address of the same document.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Moved<'a> {
    frame_id: &'a str,
    #[serde(borrow)]
    url: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Download<'a> {
    frame_id: &'a str,
    #[serde(borrow)]
    url: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfFrame<'a> {
    frame_id: &'a str,
}
