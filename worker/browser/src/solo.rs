//! One page in a browser of its own, whose profile the page sees and changes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use weir_fetch::AdHosts;
use weir_sandbox::{BrowserBox, SessionDir};
use weir_shared::clock;

use super::browser_process::BrowserProcess;
use super::{Brought, RenderError, RenderRequest, Rendered, page};

/// One call while the browser opens or closes, and how long it may take to end by itself.
const CALL: Duration = Duration::from_secs(3);
const CLOSE: Duration = Duration::from_secs(5);

/// The browser. Dropping it kills it.
pub struct Solo {
    process: Arc<BrowserProcess>,
    /// Cookies of the caller whose page was rendered.
    brought: OnceLock<Brought>,
}

impl Solo {
    /// Connects to a browser that has just started, and gives it its cookies. On an error nothing of it is left.
    pub async fn connect(
        browser: BrowserBox,
        dir: SessionDir,
        egress: SocketAddr,
        ads: Arc<AdHosts>,
        cookies: Vec<Value>,
    ) -> anyhow::Result<Self> {
        let process = BrowserProcess::connect_alone(browser, dir, egress, ads).await?;
        let solo = Self { process, brought: OnceLock::new() };
        if !cookies.is_empty() {
            let set = json!({ "cookies": cookies });
            let set =
                solo.process.cdp.send_as::<Value>("Storage.setCookies", None, set).by(clock::deadline(CALL)).await;
            if let Err(error) = set {
                solo.stop().await;
                return Err(error).context("the cookies of the profile");
            }
        }
        Ok(solo)
    }

    /// Renders the page, the only one of this browser.
    ///
    /// # Errors
    /// See [`RenderError`].
    pub async fn render(&self, request: RenderRequest) -> Result<Rendered, RenderError> {
        let mut request = RenderRequest { in_profile: true, ..request };
        let brought = Brought::note(&self.process.cdp, &request, clock::deadline(CALL)).await?;
        let _ = self.brought.set(brought);
        let render = async {
            match page::render(&self.process, &request).await {
                Err(error) if request.wants_ads_after(&error) => {
                    request.block_ads = false;
                    page::render(&self.process, &request).await
                }
                outcome => outcome,
            }
        };
        tokio::select! {
            rendered = render => rendered,
            used = self.process.overfull() => {
                tracing::warn!(?used, "a page filled more disk than its browser may");
                Err(RenderError::PageTooLarge)
            }
        }
    }

    /// Has the browser write its profile and end. Returns the profile's cookies, as JSON: it forgets some of them when it
    /// ends. What the caller's request brought along is not among them.
    pub async fn close(&self) -> anyhow::Result<Vec<u8>> {
        let cdp = &self.process.cdp;
        let mut all: Value = cdp.send_as("Storage.getCookies", None, json!({})).by(clock::deadline(CALL)).await?;
        let mut cookies: Vec<Value> = serde_json::from_value(all["cookies"].take())?;
        if let Some(brought) = self.brought.get() {
            brought.leave_out(&mut cookies);
        }
        // The answer may or may not come before the connection ends.
        let _ = cdp.send_as::<Value>("Browser.close", None, json!({})).by(clock::deadline(CALL)).await;
        if tokio::time::timeout(CLOSE, self.process.exited()).await.is_err() {
            bail!("the browser did not end within {CLOSE:?}");
        }
        Ok(serde_json::to_vec(&cookies)?)
    }

    /// The folder of its data; `None` once it is stopped.
    pub fn home(&self) -> Option<PathBuf> {
        self.process.home()
    }

    /// Ends the browser; nothing of it is left when this returns.
    pub async fn stop(&self) {
        self.process.stop().await;
    }
}
