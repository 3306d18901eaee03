//! Brings a scraped page back in a session's browser, and keeps its appearance up there.
//!
//! ```text
//! auto-attach ──> each tab, before its first request: name, language, place, window, certificates, own headers
//! first tab   ──> the address as it was asked for, so that redirects set their cookies again
//!             ──> where the scrape ended, if that is elsewhere and no action led there; its wait, its actions
//! ```
//!
//! A session that only has a place gets its tabs dressed, and no page.
//!
//! What a CDP session sets ends with it, so the connection stays for as long as the session lives: that is the
//! [`Companion`]. Once the page is there it holds nothing up: dialogs are the page's own again.
//!
//! A scrape's actions come after its wait, but for those that only look at the page.

use std::time::Duration;

use headless_chrome::protocol::cdp::types::Method as _;
use headless_chrome::protocol::cdp::{Browser, Emulation, Fetch, Inspector, Page, Runtime, Storage, Target};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use url::Url;
use weir_sandbox::Version;
use weir_shared::clock;
use weir_shared::domain::action::Action;

use super::actions::Runner;
use super::cdp::{Cdp, CdpError, Event, Events};
use super::intercept::{Interception, OwnHeaders};
use super::locale::Place;
use super::shot::Camera;
use super::wait::{self, Look, WaitScript};
use super::{Brought, RenderError, RenderRequest, appearance};

/// Time for each step that involves no page.
const STEP: Duration = Duration::from_secs(5);

/// Keeps every tab of a session appearing as its scrape did, until it is dropped.
pub struct Companion {
    cdp: Cdp,
    /// Cookies of the scrape's caller.
    pub brought: Brought,
    _task: AbortOnDropHandle<()>,
}

impl Drop for Companion {
    fn drop(&mut self) {
        self.cdp.close();
    }
}

impl Companion {
    /// Opens the page of `request` in the browser's first tab, as the request asks, and goes on to `end` if the page
    /// ends elsewhere. Pictures are loaded; ads are refused by the session's way out, if at all. A page that lies behind
    /// an ad host, a click counter, say, is opened once more after `let_ads_in`, which says whether they were refused.
    ///
    /// # Errors
    /// When the page cannot be opened by the request's deadline.
    pub async fn bring_back(
        cdp: Cdp,
        request: &RenderRequest,
        end: &Url,
        let_ads_in: &(dyn Fn() -> bool + Sync),
    ) -> Result<Self, RenderError> {
        Self::begin(cdp, request, Some((end, let_ads_in))).await
    }

    /// Has the browser appear from the place of `request`, and opens nothing.
    ///
    /// # Errors
    /// When the browser does not answer by the request's deadline.
    pub async fn appear(cdp: Cdp, request: &RenderRequest) -> Result<Self, RenderError> {
        Self::begin(cdp, request, None).await
    }

    async fn begin(
        cdp: Cdp,
        request: &RenderRequest,
        page: Option<(&Url, &(dyn Fn() -> bool + Sync))>,
    ) -> Result<Self, RenderError> {
        let work = async {
            let version = cdp.call::<Browser::GetVersion>(None, json!({}), clock::deadline(STEP)).await?;
            let mut wardrobe = Wardrobe::new(cdp.clone(), request, &Version::from_product(&version.product));
            let brought = Brought::note(&cdp, request, clock::deadline(STEP)).await?;
            let session = wardrobe.first_tab().await?;
            let opening = async {
                match page {
                    Some((end, let_ads_in)) => match open(&cdp, &session, request, end).await {
                        Err(RenderError::Site(_)) if let_ads_in() => open(&cdp, &session, request, end).await,
                        opened => opened,
                    },
                    // What was said to the tab before is done when it answers.
                    None => {
                        let nothing = json!({ "expression": "0" });
                        let asked = cdp.call::<Runtime::Evaluate>(Some(&session), nothing, request.deadline);
                        asked.await.map(drop).map_err(RenderError::from)
                    }
                }
            };
            let opened = tokio::select! {
                opened = opening => opened,
                lost = wardrobe.serve() => Err(lost),
            };
            opened.map(|()| (wardrobe, brought))
        };
        let (mut wardrobe, brought) = match tokio::time::timeout_at(request.deadline, work).await {
            Ok(Ok(opened)) => opened,
            Ok(Err(error)) => {
                cdp.close();
                return Err(error);
            }
            Err(_) => {
                cdp.close();
                return Err(RenderError::Timeout);
            }
        };
        let task = tokio::spawn(async move { while !matches!(wardrobe.serve().await, RenderError::BrowserLost) {} });
        Ok(Self { cdp, brought, _task: AbortOnDropHandle::new(task) })
    }
}

/// What tabs are dressed with.
struct Wardrobe {
    cdp: Cdp,
    events: Events,
    settings: Vec<(&'static str, Value)>,
    interception: Interception,
    cookies: Vec<Value>,
}

fn is_wanted(method: &str) -> bool {
    matches!(
        method,
        "Target.attachedToTarget"
            | "Fetch.requestPaused"
            | "Security.certificateError"
            | "Page.javascriptDialogOpening"
            | "Inspector.targetCrashed"
    )
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AttachedTo<'a> {
    session_id: &'a str,
}

impl Wardrobe {
    fn new(cdp: Cdp, request: &RenderRequest, version: &Version) -> Self {
        let own = OwnHeaders::split(request);
        let place = request.location.as_ref().map(|(country, languages)| Place::new(country, languages));
        Self {
            events: cdp.every_event(is_wanted),
            settings: appearance::settings(request, &own, version, place.as_ref()),
            // The session's way out refuses ads.
            interception: Interception::new(request, &own, None),
            cookies: own.cookies(request),
            cdp,
        }
    }

    /// Attaches to what is there and to what will come; returns the session of the tab that is there.
    async fn first_tab(&mut self) -> Result<String, RenderError> {
        if !self.cookies.is_empty() {
            let cookies = json!({ "cookies": self.cookies });
            let set = self.cdp.send_as::<Value>(Storage::SetCookies::NAME, None, cookies);
            refusable(set.by(clock::deadline(STEP)).await)?;
        }
        if self.settings.iter().any(|(method, _)| *method == Emulation::SetGeolocationOverride::NAME) {
            let may = json!({ "permissions": ["geolocation"] });
            let granted = self.cdp.send_as::<Value>(Browser::GrantPermissions::NAME, None, may);
            refusable(granted.by(clock::deadline(STEP)).await)?;
        }
        let pages = json!([{ "type": "page" }, { "exclude": true }]);
        let params = json!({ "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true, "filter": pages });
        self.cdp.send_as::<Value>(Target::SetAutoAttach::NAME, None, params).by(clock::deadline(STEP)).await?;
        let deadline = clock::deadline(STEP);
        loop {
            let event = tokio::time::timeout_at(deadline, self.events.next()).await;
            let event = event.map_err(|_| RenderError::Internal("the browser has no tab".into()))?;
            let event = event.ok_or(RenderError::BrowserLost)?;
            if let Some(session) = self.dress(&event) {
                return Ok(session);
            }
        }
    }

    /// Gives a new tab its appearance, before its first request.
    fn dress(&self, event: &Event) -> Option<String> {
        if event.method != "Target.attachedToTarget" {
            return None;
        }
        let session = event.params::<AttachedTo<'_>>()?.session_id.to_owned();
        for (method, params) in &self.settings {
            drop(self.cdp.send_as::<Value>(method, Some(&session), params));
        }
        if let Some(params) = self.interception.enable_params() {
            self.cdp.post::<Fetch::Enable>(Some(&session), params);
        }
        self.cdp.post::<Runtime::RunIfWaitingForDebugger>(Some(&session), json!({}));
        Some(session)
    }

    /// Answers what tabs would otherwise wait for. Returns when the browser is gone, or a page is lost.
    async fn serve(&mut self) -> RenderError {
        loop {
            let Some(event) = self.events.next().await else { return RenderError::BrowserLost };
            match event.method.as_str() {
                "Target.attachedToTarget" => _ = self.dress(&event),
                "Fetch.requestPaused" => self.interception.answer(&event, &self.cdp, &event.session).await,
                "Security.certificateError" => {
                    self.interception.judge_certificate(&event, &self.cdp, &event.session);
                }
                // Only while the page is being opened, as for a scrape.
                "Page.javascriptDialogOpening" => {
                    let accept = json!({ "accept": true });
                    self.cdp.post::<Page::HandleJavaScriptDialog>(Some(&event.session), accept);
                }
                _ => return RenderError::PageCrashed,
            }
        }
    }
}

/// A setting that is refused does not keep the page from being brought back.
fn refusable(outcome: Result<Value, CdpError>) -> Result<(), CdpError> {
    match outcome {
        Err(CdpError::Refused { method, message, .. }) => {
            tracing::warn!(method, message, "page setting refused");
            Ok(())
        }
        other => other.map(drop),
    }
}

async fn open(cdp: &Cdp, session: &str, request: &RenderRequest, end: &Url) -> Result<(), RenderError> {
    let script = WaitScript::with_own_key();
    let on = Some(session);
    cdp.post::<Page::Enable>(on, json!({}));
    cdp.post::<Inspector::Enable>(on, json!({}));
    let source = json!({ "source": script.source() });
    let added = cdp.call::<Page::AddScriptToEvaluateOnNewDocument>(on, source, request.deadline).await?;
    let opened = load(cdp, session, request, end, &script).await;
    cdp.post::<Page::RemoveScriptToEvaluateOnNewDocument>(on, json!({ "identifier": added.identifier }));
    opened?;
    cdp.post::<Inspector::Disable>(on, json!({}));
    let off = cdp.send_as::<Value>(Page::Disable::NAME, on, json!({}));
    off.by(request.deadline).await?;
    Ok(())
}

async fn load(
    cdp: &Cdp,
    session: &str,
    request: &RenderRequest,
    end: &Url,
    script: &WaitScript,
) -> Result<(), RenderError> {
    let look = Look::only_rest(request.deadline - request.wait_for);
    let is_acted_on = request.actions.iter().any(Action::acts_again);
    let first = match navigate(cdp, session, &request.url, request.deadline).await {
        Ok(()) => Some(wait::settle(cdp, session, script, look, request.deadline).await?),
        // Where the scrape ended may still be there.
        Err(error) if is_acted_on || *end == request.url => return Err(error),
        Err(_) => None,
    };
    if first.is_none_or(|settled| !is_acted_on && !is_same(&settled.url, end)) {
        navigate(cdp, session, end, request.deadline).await?;
        wait::settle(cdp, session, script, look, request.deadline).await?;
    }
    tokio::time::sleep(request.wait_for).await;
    if request.actions.iter().any(Action::is_replayed) {
        let camera = Camera { cdp, session, request, deadline: request.deadline };
        Runner { camera, script, end: request.deadline }.replay(&request.actions).await?;
    }
    Ok(())
}

/// Whether a page is where the scrape was; fragments aside.
fn is_same(shown: &str, end: &Url) -> bool {
    let (Ok(mut shown), mut end) = (Url::parse(shown), end.clone()) else { return false };
    shown.set_fragment(None);
    end.set_fragment(None);
    shown == end
}

async fn navigate(cdp: &Cdp, session: &str, url: &Url, deadline: Instant) -> Result<(), RenderError> {
    let began = cdp.call::<Page::Navigate>(Some(session), json!({ "url": url.as_str() }), deadline).await?;
    match began.error_text.filter(|error| !error.is_empty()) {
        Some(error) => Err(RenderError::from_net(&error)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_the_same_whatever_its_fragment() {
        let end = Url::parse("http://site.test/a?b=1#c").expect("url");
        assert!(is_same("http://site.test/a?b=1", &end) && is_same("http://site.test/a?b=1#d", &end));
        assert!(!is_same("http://site.test/a", &end) && !is_same("about:blank", &end));
    }
}
