//! When a page has come to rest: the script that decides it, and what the script answers.
//!
//! `early.js` runs before the page's own scripts and counts what the page waits for; its hidden function
//! resolves with the document. A page is at rest when it is loaded, has no short timer and no request
//! outstanding, has not changed for a moment, and shows something. So a page with its content in the
//! bundle is answered at once, and one that still loads is waited for, 8 s at most after its load event.

use std::time::Duration;

use headless_chrome::protocol::cdp::Runtime;
use headless_chrome::protocol::cdp::types::Method as _;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use url::Url;
use weir_shared::clock;
use weir_shared::random;

use super::cdp::{Cdp, CdpError};
use super::error::RenderError;

/// Documents that are followed by script redirects, before it counts as a loop.
const MAX_DOCUMENTS: usize = 20;

/// What is said then, in the browser's word for redirects by the site.
pub(super) const TOO_MANY_DOCUMENTS: &str = "ERR_TOO_MANY_REDIRECTS";

/// Largest document, in UTF-16 units (the specification's 50 MiB for any ASCII page).
const DOCUMENT_LIMIT: usize = 50 << 20;

/// What the script answers.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settled {
    /// Where the page is in the end.
    pub url: String,
    /// Of the last document; 0 when the browser does not tell.
    pub status: u16,
    /// Of the last document, without parameters.
    pub content_type: String,
    /// The document as it is now; absent when it is over the limit.
    pub html: Option<String>,
    /// Another document is on its way.
    #[serde(default)]
    pub leaving: bool,
    /// Size of the whole document, CSS pixels.
    pub width: f64,
    /// See `width`.
    pub height: f64,
}

/// The names of one browser: random, so that pages cannot look for them.
#[derive(Debug, Clone)]
pub struct WaitScript {
    key: String,
    source: String,
}

impl WaitScript {
    /// A script under a random name of its own.
    pub fn with_own_key() -> Self {
        let key = format!("_{}", random::hex::<8>());
        let source = include_str!("early.js").replace("KEY", &key);
        Self { key, source }
    }

    /// To be run before the scripts of every document.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// An expression that ends what the document does. Its value is the document's origin; nothing where some of it may go on.
    pub fn quit(&self) -> String {
        format!("window.{key}?{key}.quit():null", key = self.key)
    }

    /// An expression that gives the document the address of the next one, of the same origin. The next one takes its place in
    /// the history then, instead of following it.
    pub fn stand_at(next: &Url) -> String {
        format!("history.replaceState(null,'',{})", Value::from(next.as_str()))
    }

    /// An expression whose promise resolves with [`Settled`]. Documents in which no early script can run
    /// (and the first, empty one) are answered as they stand.
    fn expression(&self, budget: Duration, look: Look) -> String {
        let html =
            if look.document { "document.documentElement?document.documentElement.outerHTML:''" } else { "null" };
        format!(
            "window.{key}?{key}({{budget:{budget},extra:{extra},limit:{limit},scroll:{scroll}}}):\
             ({{url:location.href,status:0,contentType:document.contentType,html:{html},width:0,height:0}})",
            key = self.key,
            limit = if look.document { DOCUMENT_LIMIT } else { 0 },
            budget = budget.as_millis(),
            extra = look.wait_for.as_millis(),
            scroll = look.scroll,
        )
    }
}

/// What is waited for.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// By when the page must have come to rest; it is answered as it is then.
    pub budget: Instant,
    /// Time after that.
    pub wait_for: Duration,
    /// Whether the document is wanted; otherwise the page is only waited for.
    pub document: bool,
    /// Whether what waits to be scrolled to is scrolled to; the page stands at its top then.
    pub scroll: bool,
    /// What a document gets, from when it takes the place of the one looked at.
    pub next: Duration,
}

impl Look {
    /// The page at rest, nothing of it wanted.
    pub fn only_rest(budget: Instant) -> Self {
        Self { budget, wait_for: Duration::ZERO, document: false, scroll: false, next: Duration::ZERO }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Evaluated {
    result: RemoteValue,
    exception_details: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct RemoteValue {
    value: Option<Settled>,
}

/// The document of a page at rest, after script redirects. The page has a document on its way: `about:blank` is waited
/// past.
pub async fn settle(
    cdp: &Cdp,
    session: &str,
    script: &WaitScript,
    look: Look,
    deadline: Instant,
) -> Result<Settled, RenderError> {
    let mut until = look.budget;
    for _ in 0..MAX_DOCUMENTS {
        let budget = until.saturating_duration_since(clock::instant()).saturating_sub(look.wait_for);
        let params = json!({
            "expression": script.expression(budget, look),
            "awaitPromise": true, "returnByValue": true,
        });
        let pending = cdp.send_as::<Evaluated>(Runtime::Evaluate::NAME, Some(session), params);
        match pending.by(deadline).await {
            Ok(Evaluated { result: RemoteValue { value: Some(settled) }, .. }) if settled.url != "about:blank" => {
                return Ok(settled);
            }
            // The blank page still stands: the document has not been swapped in yet.
            Ok(Evaluated { result: RemoteValue { value: Some(_) }, .. }) => {
                tokio::time::sleep(Duration::from_millis(5)).await
            }
            Ok(Evaluated { exception_details, .. }) => {
                return Err(RenderError::Internal(format!("the wait script failed: {exception_details:?}")));
            }
            // The page went to another document under the promise.
            Err(CdpError::Refused { message, .. })
                if ["navigated", "context", "Promise was collected"].iter().any(|part| message.contains(part)) =>
            {
                until = until.max(clock::deadline(look.next).min(deadline));
            }
            Err(e) => return Err(e.into()),
        }
    }
    Err(RenderError::Site(TOO_MANY_DOCUMENTS.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_browser_has_its_own_name_for_the_script() {
        let (a, b) = (WaitScript::with_own_key(), WaitScript::with_own_key());
        assert_ne!(a.key, b.key);
        assert!(a.source().contains(&a.key) && !a.source().contains("'KEY'"));
        let look = Look::only_rest(clock::instant());
        assert!(a.expression(Duration::from_secs(1), look).contains("budget:1000,extra:0"));
    }
}
