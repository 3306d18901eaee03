//! Renders one page: a browser context and a target of its own, thrown away afterwards, or left to the next page of its site
//! (`kept`).
//!
//! ```text
//! createBrowserContext -> createTarget -> attach   (kept ready: one spare per browser, without a document)
//! set-up calls, sent together        user agent, wait script, request filter, cookies, …
//! Page.navigate                      answered when the document arrives, or with a net error
//! Runtime.evaluate (awaited promise) answered with the document once the page has come to rest;
//!                                    a script redirect cuts it off, then it is asked again
//! actions                            when asked for; then the document is asked for again
//! Page.captureScreenshot             when asked for
//! disposeBrowserContext              unless the tab is kept; also when the caller went away
//! ```
//!
//! Nothing of one page may be seen by another: no cookie, no cache entry, no storage outlives the context, or is there when
//! the next page takes the tab.
//!
//! `watch` says how a page comes to its end, and what is answered then; `verdict` whether that is a page of the site.

mod verdict;
mod watch;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use headless_chrome::protocol::cdp::types::Method as _;
use headless_chrome::protocol::cdp::{Browser, Fetch, Network, Page, Storage};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use url::Url;
use weir_sandbox::{Exit, OwnExit};
use weir_shared::clock;
use weir_shared::domain::action::ActionResults;

use super::actions::Runner;
use super::appearance;
use super::browser_process::BrowserProcess;
use super::cdp::{CdpError, Pending, lock};
use super::error::RenderError;
use super::intercept::{Interception, OwnHeaders};
use super::kept::{Conduct, TabKey};
use super::locale::Place;
use super::shot::Camera;
use super::tab::{BlankPage, KeptTab, Tab};
use super::wait::{self, Look, Settled};
use super::{RenderRequest, Rendered, Shot, branding, egress};
use watch::{LedTo, Watched, serve_events};

/// The least that is kept back for a screenshot.
const SHOT_RESERVE: Duration = Duration::from_millis(1500);

/// Renders `request` in a page of `process`, by its deadline.
pub(super) async fn render(process: &Arc<BrowserProcess>, request: &RenderRequest) -> Result<Rendered, RenderError> {
    let ended = process.ended();
    let explained = |error| process.explained(ended, error);
    let work = async {
        let rules = Rules::of(process, request);
        let PageRoute { proxy, own: own_exit } = PageRoute::of(process, request, &rules)?;
        let is_plain = proxy.is_none() && own_exit.is_none() && rules.interception.enable_params().is_none();
        let key = if is_plain { TabKey::of(request) } else { None };
        // Where no other page of the site was lately, none is expected.
        let keep = key.clone().filter(|key| process.begins(key));
        if let Some(page) = left_by_another(process, request, key).await {
            match rules.render(page, keep.clone()).await.map_err(explained) {
                // Perhaps for what was there before.
                Err(RenderError::PageCrashed | RenderError::Internal(_)) => {}
                // Perhaps the tab was slow to leave the empty document.
                Err(RenderError::Site(net)) if net == wait::TOO_MANY_DOCUMENTS => {}
                done => return done,
            }
        }
        process.make_room(0);
        let spare = if proxy.is_none() && !request.in_profile { process.take_spare() } else { None };
        let mut page = match spare {
            Some(page) => page,
            None if request.in_profile => BlankPage::open_in_profile(process, request.deadline).await?,
            None => BlankPage::open(process, proxy.as_deref(), request.deadline).await?,
        };
        page.tab.exit = own_exit;
        rules.render(page, keep).await.map_err(explained)
    };
    tokio::time::timeout_at(request.deadline, work).await.unwrap_or(Err(RenderError::Timeout))
}

/// The tab that another page of the site has left, cleared.
async fn left_by_another(process: &BrowserProcess, request: &RenderRequest, key: Option<TabKey>) -> Option<BlankPage> {
    let key = key?;
    process.take_kept(&key)?.cleared(&key, &request.url).await
}

/// What holds for a page in whatever tab it is rendered.
struct Rules<'a> {
    process: &'a Arc<BrowserProcess>,
    request: &'a RenderRequest,
    own: OwnHeaders,
    refuses_ads: bool,
    interception: Interception,
}

impl<'a> Rules<'a> {
    fn of(process: &'a Arc<BrowserProcess>, request: &'a RenderRequest) -> Self {
        // A browser with a profile has one way out, which lets ads pass.
        let refuses_ads = request.block_ads && !request.in_profile && process.access.ads.are_refused_to(&request.url);
        let own = OwnHeaders::split(request);
        // The way out knows hosts only; rules about more are asked here, of pages that do not lie on such a host.
        let ads = &process.access.ads;
        let are_asked = !refuses_ads || ads.have_rules() && ads.are_refused_to(&request.url);
        let ads = (request.block_ads && are_asked).then(|| Arc::clone(ads));
        let interception = Interception::new(request, &own, ads);
        Self { process, request, own, refuses_ads, interception }
    }

    /// Renders it in `page`, whose tab is left to further pages of `keep`.
    async fn render(&self, mut page: BlankPage, keep: Option<TabKey>) -> Result<Rendered, RenderError> {
        let conduct = Conduct::of(&self.request.url);
        let is_read = AtomicBool::new(false);
        let led_to = Mutex::default();
        let prepared = std::mem::take(&mut page.prepared);
        let render = Render {
            tab: &page.tab,
            request: self.request,
            own: &self.own,
            refuses_ads: self.refuses_ads,
            deadline: self.request.deadline,
            // The document is read, and travels.
            reserve: clock::reserve(self.request.deadline),
            is_read: &is_read,
            led_to: &led_to,
            is_first: page.pages == 0,
        };
        let watched = Watched { tab: &page.tab, conduct: &conduct, is_read: &is_read, led_to: &led_to };
        // What came before an answer is read as soon as the render gives way (`look`).
        let rendered = tokio::select! {
            biased;
            done = render.run(prepared, &self.interception) => done,
            failed = serve_events(&watched, &mut page.events, &self.interception) => Err(failed),
        }?;
        // A certificate that was let through once is not asked about again.
        if let Some(key) = keep.filter(|key| key.has(&rendered.url) && rendered.is_trusted) {
            KeptTab::leave(self.process, key, page, conduct);
        }
        Ok(rendered)
    }
}

/// How the page goes out.
struct PageRoute {
    /// The proxy of its context, where it is not the browser's own.
    proxy: Option<String>,
    /// The same proxy, where nobody else has it.
    own: Option<OwnExit>,
}

impl PageRoute {
    fn of(process: &BrowserProcess, request: &RenderRequest, rules: &Rules<'_>) -> Result<Self, RenderError> {
        let refuses_ads = rules.refuses_ads;
        let exit = Exit { upstream: request.upstream, refuses_ads };
        if let Some(own) = process.own_exit(exit, rules.interception.refused())? {
            return Ok(Self { proxy: Some(format!("http://{}", own.proxy())), own: Some(own) });
        }
        let proxy = match request.upstream {
            Some(place) => Some(process.upstream_proxy(place, refuses_ads).ok_or(RenderError::Proxy)?),
            None => (!refuses_ads).then(|| process.open_proxy()),
        };
        Ok(Self { proxy, own: None })
    }
}

struct Render<'a> {
    tab: &'a Tab,
    request: &'a RenderRequest,
    own: &'a OwnHeaders,
    /// The page's proxy refuses ads.
    refuses_ads: bool,
    deadline: Instant,
    /// Time before the deadline by which the page must have come to rest.
    reserve: Duration,
    /// The page has come to rest once: from here on a document that stops half-way is what an action led to (a
    /// download, say), and no failure of the page.
    is_read: &'a AtomicBool,
    led_to: &'a Mutex<LedTo>,
    /// No other page was in the tab, so it has to be told everything.
    is_first: bool,
}

impl Render<'_> {
    async fn run(
        &self,
        mut prepared: Vec<Pending<Value>>,
        interception: &Interception,
    ) -> Result<Rendered, RenderError> {
        let place = self.request.location.as_ref().map(|(country, languages)| Place::new(country, languages));
        if self.is_first {
            self.send_setup(&mut prepared, interception, place.as_ref());
        }
        for call in prepared {
            // A setting that is refused (an unknown time zone, say) does not keep the page from being read.
            match call.by(self.deadline).await {
                Ok(_) => {}
                Err(CdpError::Refused { method, message, .. }) => {
                    tracing::warn!(method, message, "page setting refused")
                }
                Err(e) => return Err(e.into()),
            }
        }
        self.navigate(interception).await?;
        let mut settled = self.settle().await?;
        self.check(&settled, interception).await?;
        let actions = if self.request.actions.is_empty() {
            None
        } else {
            let results = self.act().await?;
            settled = self.settle_again().await?;
            self.check(&settled, interception).await?;
            Some(results)
        };
        let url = Url::parse(&settled.url).unwrap_or_else(|_| self.request.url.clone());
        let raw_html = if self.request.want_raw { self.raw().await } else { None };
        let branding = if self.request.want_branding {
            let (cdp, session) = (&self.tab.process.cdp, &self.tab.session);
            Some(branding::read(cdp, session, &self.tab.target, self.deadline).await?)
        } else {
            None
        };
        let screenshot = match &self.request.screenshot {
            Some(shot) => {
                let (data, mime) = self.camera().take(shot, (settled.width, settled.height)).await?;
                Some(Shot { data, mime })
            }
            None => None,
        };
        Ok(Rendered {
            url,
            status: if settled.status == 0 { 200 } else { settled.status },
            content_type: Some(settled.content_type),
            html: settled.html.ok_or(RenderError::PageTooLarge)?,
            raw_html,
            screenshot,
            branding,
            actions,
            timezone: place.and_then(|p| p.timezone.map(str::to_owned)),
            is_trusted: !interception.has_untrusted(),
            is_follower: !self.is_first,
        })
    }

    /// Sends what this request needs beyond the blank page, without waiting.
    fn send_setup(&self, calls: &mut Vec<Pending<Value>>, interception: &Interception, place: Option<&Place>) {
        let (tab, request) = (self.tab, self.request);
        for (method, params) in appearance::settings(request, self.own, &tab.process.version, place) {
            calls.push(tab.process.cdp.send_as(method, Some(&tab.session), params));
        }
        if place.is_some_and(|place| place.position.is_some()) {
            let may = json!({ "permissions": ["geolocation"], "browserContextId": tab.context });
            calls.push(tab.process.cdp.send_as(Browser::GrantPermissions::NAME, None, may));
        }
        if request.want_raw {
            calls.push(
                tab.send::<Network::Enable>(
                    json!({ "maxResourceBufferSize": 64 << 20, "maxTotalBufferSize": 96 << 20 }),
                ),
            );
        }
        if let Some(params) = interception.enable_params() {
            calls.push(tab.send::<Fetch::Enable>(params));
        }
        let cookies = self.own.cookies(request);
        if !cookies.is_empty() {
            let mut params = json!({ "cookies": cookies });
            if let Some(context) = &tab.context {
                params["browserContextId"] = context.as_str().into();
            }
            calls.push(tab.process.cdp.send_as(Storage::SetCookies::NAME, None, params));
        }
    }

    async fn navigate(&self, interception: &Interception) -> Result<(), RenderError> {
        let url = &self.request.url;
        let began = self.tab.call::<Page::Navigate>(json!({ "url": url.as_str() }), self.deadline).await?;
        let Some(error) = began.error_text.filter(|e| !e.is_empty()) else {
            if self.is_first {
                return Ok(());
            }
            let stays = || RenderError::Internal("the tab has not left the page before".into());
            return began.loader_id.map(drop).ok_or_else(stays);
        };
        // What was refused looks as if the page had given it up itself.
        if let Some(certificate) = interception.refused_certificate().filter(|_| error.contains("ERR_ABORTED")) {
            return Err(RenderError::Ssl(certificate));
        }
        if error.contains("ERR_BLOCKED_BY_CLIENT") && interception.has_refused_site() {
            return Err(RenderError::SiteRefused);
        }
        if error.contains("ERR_TUNNEL_CONNECTION_FAILED") || error.contains("ERR_PROXY") {
            return Err(self.refusal(url).await.unwrap_or_else(|| RenderError::from_net(&error)));
        }
        Err(RenderError::from_net(&error))
    }

    /// What the egress proxy has against `url`.
    async fn refusal(&self, url: &Url) -> Option<RenderError> {
        if self.refuses_ads && !self.tab.process.access.ads.are_refused_to(url) {
            return Some(RenderError::Site("ERR_BLOCKED_BY_CLIENT".into()));
        }
        let process = &self.tab.process;
        // Asked by the same way: nobody but the operator's proxy connects to the site.
        let egress = match self.request.upstream {
            Some(place) => *process.access.upstreams.get(place)?,
            None => process.access.egress,
        };
        egress::refusal(egress, url, self.deadline).await
    }

    /// By when the page must have come to rest.
    fn end(&self) -> Instant {
        self.deadline - if self.request.screenshot.is_some() { self.reserve.max(SHOT_RESERVE) } else { self.reserve }
    }

    /// The document at rest, after script redirects; without actions it is the document that is wanted.
    async fn settle(&self) -> Result<Settled, RenderError> {
        let is_last = self.request.actions.is_empty();
        let look =
            Look { wait_for: self.request.wait_for, document: is_last, scroll: is_last, ..Look::only_rest(self.end()) };
        self.look(look).await
    }

    /// The document as the actions have left it.
    async fn settle_again(&self) -> Result<Settled, RenderError> {
        self.look(Look { document: true, ..Look::only_rest(self.end()) }).await
    }

    async fn look(&self, look: Look) -> Result<Settled, RenderError> {
        let (process, session) = (&self.tab.process, &self.tab.session);
        let mut settled = wait::settle(&process.cdp, session, &process.wait, look, self.deadline).await?;
        tokio::task::yield_now().await;
        let Some(address) = lock(self.led_to).document.clone() else { return Ok(settled) };
        if is_of_same_site(&settled.url, &address) {
            settled.url = address.into();
            return Ok(settled);
        }
        // Another document has come right after the answer, or the page has told something else: address and document are
        // read together, where no page's script is.
        wait::as_it_stands(&process.cdp, session, look, self.deadline).await
    }

    fn camera(&self) -> Camera<'_> {
        Camera {
            cdp: &self.tab.process.cdp,
            session: &self.tab.session,
            request: self.request,
            deadline: self.deadline,
        }
    }

    async fn act(&self) -> Result<ActionResults, RenderError> {
        self.is_read.store(true, Ordering::Relaxed);
        let runner = Runner { camera: self.camera(), script: &self.tab.process.wait, end: self.end() };
        runner.perform(&self.request.actions, &self.request.acting).await
    }

    /// The main document as it was served; `None` when the browser has let go of it.
    async fn raw(&self) -> Option<String> {
        let frame =
            self.tab.process.cdp.send_as::<FrameTree>(Page::GetFrameTree::NAME, Some(&self.tab.session), json!({}));
        let loader = frame.by(self.deadline).await.ok()?.frame_tree.frame.loader_id;
        let body =
            self.tab.call::<Network::GetResponseBody>(json!({ "requestId": loader }), self.deadline).await.ok()?;
        if body.base_64_encoded {
            let bytes = base64::engine::general_purpose::STANDARD.decode(body.body).ok()?;
            return Some(String::from_utf8_lossy(&bytes).into_owned());
        }
        Some(body.body)
    }
}

/// Whether what a page says of its address names the origin that the browser says.
fn is_of_same_site(told: &str, address: &Url) -> bool {
    Url::parse(told).is_ok_and(|told| told == *address || told.origin() == address.origin())
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameTree {
    frame_tree: TopFrame,
}

#[derive(Debug, Deserialize)]
struct TopFrame {
    frame: Frame,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Frame {
    loader_id: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_tells_no_more_of_its_address_than_the_browser_does() {
        let is_same = |told, address| is_of_same_site(told, &Url::parse(address).expect("url"));
        assert!(is_same("http://a.test/moved#x", "http://a.test/"));
        assert!(is_same("chrome-error://chromewebdata/", "chrome-error://chromewebdata/"));
        for told in ["http://b.test/", "https://a.test/", "http://a.test:81/", "about:blank", ""] {
            assert!(!is_same(told, "http://a.test/"), "{told}");
        }
    }
}
