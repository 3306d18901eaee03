//! When a page has come to rest: the script that decides it, and what the script answers.
//!
//! `early.js` runs before the page's own scripts and counts what the page waits for; its hidden function
//! resolves with the document. A page is at rest when it is loaded, has no short timer and no request
//! outstanding, has not changed for a moment, and shows something. So a page with its content in the
//! bundle is answered at once, and one that still loads is waited for, 8 s at most after its load event.

use std::time::Duration;

use serde::Deserialize;

/// Largest document, in UTF-16 units (the specification's 50 MiB for any ASCII page).
const DOCUMENT_LIMIT: usize = 50 << 20;

/// What the script answers.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Settled {
    /// Where the page is in the end.
    pub url: String,
    /// Of the last document; 0 when the browser does not tell.
    pub status: u16,
    /// Of the last document, without parameters.
    pub content_type: String,
    /// The document as it is now; absent when it is over the limit.
    pub html: Option<String>,
    /// Size of the whole document, CSS pixels.
    pub width: f64,
    /// See `width`.
    pub height: f64,
}

/// The names of one browser: random, so that pages cannot look for them.
#[derive(Debug, Clone)]
pub(super) struct WaitScript {
    key: String,
    source: String,
}

impl WaitScript {
    /// A script with a name of its own.
    pub fn new() -> Self {
        let key = format!("_{:016x}", rand::random::<u64>());
        let source = include_str!("early.js").replace("KEY", &key);
        Self { key, source }
    }

    /// To be run before the scripts of every document.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// An expression whose promise resolves with [`Settled`]. Documents in which no early script can run
    /// (and the first, empty one) are answered as they stand.
    pub fn expression(&self, budget: Duration, extra: Duration) -> String {
        format!(
            "window.{key}?{key}({{budget:{budget},extra:{extra},limit:{DOCUMENT_LIMIT}}}):\
             ({{url:location.href,status:0,contentType:document.contentType,html:document.documentElement?document.documentElement.outerHTML:'',\
             width:0,height:0}})",
            key = self.key,
            budget = budget.as_millis(),
            extra = extra.as_millis(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_browser_has_its_own_name_for_the_script() {
        let (a, b) = (WaitScript::new(), WaitScript::new());
        assert_ne!(a.key, b.key);
        assert!(a.source().contains(&a.key) && !a.source().contains("'KEY'"));
        assert!(a.expression(Duration::from_secs(1), Duration::ZERO).contains("budget:1000,extra:0"));
    }
}
