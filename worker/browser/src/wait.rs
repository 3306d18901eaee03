//! When a page has come to rest: the script that decides it, and what the script answers.
//!
//! `early.js` runs before the page's own scripts and counts what the page waits for; its hidden function
//! resolves with the document. A page is at rest when it is loaded, has no short timer and no request
//! outstanding, has not changed for a moment, and shows something. So a page with its content in the
//! bundle is answered at once, and one that still loads is waited for, 8 s at most after its load event.
//!
//! A page may break the script, or hinder it. Where it gives no answer the document is read without it.

use std::pin::pin;
use std::time::Duration;

use headless_chrome::protocol::cdp::types::Method as _;
use headless_chrome::protocol::cdp::{Page, Runtime};
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

/// How long the script may answer late, at most half of the time that is left then, before the document is read without it.
const LATE: Duration = Duration::from_secs(2);

/// What [`Settled`] has of a document, whatever its page has done to the script's functions and to names of the document's.
const STANDS: &str = "limit => {\
    const own = name => Object.getOwnPropertyDescriptor(Document.prototype, name).get.call(document);\
    const root = own('documentElement'), entry = performance.getEntriesByType('navigation')[0];\
    const html = limit && root ? root.outerHTML : '';\
    return { url: location.href, status: entry && entry.responseStatus || 0, contentType: own('contentType'),\
        html: html.length > limit ? null : html, width: root ? root.scrollWidth : 0, height: root ? root.scrollHeight : 0 };\
}";

/// How soon a document is looked at again in which nothing can be waited for.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What the script answers.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settled {
    /// Where the page is in the end, in its own words: what is answered of it goes by the browser's (`page`).
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
    /// The document shows no text.
    #[serde(default)]
    pub blank: bool,
    /// The document is still to be waited for, which the script cannot do in it.
    #[serde(default)]
    early: bool,
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

    /// An expression that tells the document that the browser has stopped loading, for good if it `is_last`. Its value is how
    /// far the document has come, as `readyState` has it.
    pub fn stopped(&self, is_last: bool) -> String {
        format!("window.{key}?{key}.stopped({is_last}):document.readyState", key = self.key)
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
             ({{__proto__:null,then:undefined,url:location.href,status:0,contentType:document.contentType,html:{html},width:0,height:0}})",
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
struct Evaluated {
    result: RemoteValue,
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
    let mut documents = 0;
    while documents < MAX_DOCUMENTS {
        let budget = until.saturating_duration_since(clock::instant()).saturating_sub(look.wait_for);
        let params = json!({
            "expression": script.expression(budget, look),
            "awaitPromise": true, "returnByValue": true,
        });
        let asked = cdp.send_as::<Evaluated>(Runtime::Evaluate::NAME, Some(session), params);
        let mut asked = pin!(asked.by(deadline));
        let late = LATE.min(deadline.saturating_duration_since(until) / 2);
        let answer = tokio::select! {
            biased;
            answer = &mut asked => answer,
            () = tokio::time::sleep_until(until + late) => {
                // The script may still be at it, with a large document.
                tokio::select! {
                    biased;
                    answer = &mut asked => answer,
                    Ok(settled) = as_it_stands(cdp, session, look, deadline) => return Ok(settled),
                    else => Err(CdpError::Timeout { method: Runtime::Evaluate::NAME }),
                }
            }
        };
        match answer {
            Ok(Evaluated { result: RemoteValue { value: Some(settled) }, .. }) if settled.early => {
                tokio::time::sleep(LOOK_EVERY).await
            }
            Ok(Evaluated { result: RemoteValue { value: Some(settled) }, .. }) if settled.url != "about:blank" => {
                return Ok(settled);
            }
            // The blank page still stands: the document has not been swapped in yet.
            Ok(Evaluated { result: RemoteValue { value: Some(_) }, .. }) => {
                documents += 1;
                tokio::time::sleep(Duration::from_millis(5)).await
            }
            // The page has taken away what the script needs.
            Ok(_) | Err(CdpError::Shape { .. }) => return as_it_stands(cdp, session, look, deadline).await,
            // The page went to another document under the promise.
            Err(CdpError::Refused { message, .. })
                if ["navigated", "context", "Promise was collected"].iter().any(|part| message.contains(part)) =>
            {
                documents += 1;
                until = until.max(clock::deadline(look.next).min(deadline));
            }
            Err(e) => return Err(e.into()),
        }
    }
    Err(RenderError::Site(TOO_MANY_DOCUMENTS.into()))
}

/// The document as it stands, read in a world of its own that the page's scripts do not reach. Nothing is waited for.
pub async fn as_it_stands(cdp: &Cdp, session: &str, look: Look, deadline: Instant) -> Result<Settled, RenderError> {
    let on = Some(session);
    let frame = cdp.call::<Page::GetFrameTree>(on, json!({}), deadline).await?.frame_tree.frame.id;
    let params = json!({ "frameId": frame, "worldName": "wait" });
    let world = cdp.call::<Page::CreateIsolatedWorld>(on, params, deadline).await?.execution_context_id;
    let limit = if look.document { DOCUMENT_LIMIT } else { 0 };
    let params = json!({ "expression": format!("({STANDS})({limit})"), "contextId": world, "returnByValue": true });
    let stands = cdp.send_as::<Evaluated>(Runtime::Evaluate::NAME, on, params).by(deadline).await?;
    stands.result.value.ok_or_else(|| RenderError::Internal("the document cannot be read".into()))
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
