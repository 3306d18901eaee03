//! What becomes of a page's requests: ads are refused, a caller's headers and cookies go to the origins that the caller
//! named and nowhere else, and a certificate that does not verify is accepted only where none of that would be sent.
//!
//! The browser holds back only requests that match a pattern, so a page without such requests pays nothing. A caller's
//! headers are put on requests to a named origin, and taken off those to others, which a redirect leads to with
//! them: on what opens a document there, and on what a document from there asks for. A document stands in its frame once the
//! browser says so (`Page.frameNavigated`), and not when it is asked for: until then, and for ever where nothing comes of it,
//! the one before it goes on. Cookies know hosts and not origins, so while the caller's are in the browser's store, nothing of their host but
//! the named origins is asked for; a page that goes there loses them.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use headless_chrome::protocol::cdp::types::Method as _;
use headless_chrome::protocol::cdp::{Fetch, Network, Page, Security};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;
use weir_fetch::{AdHosts, CallerHeaders};
use weir_shared::clock;
use weir_shared::domain::header_rules::may_carry;
use weir_shared::domain::scrape::Certificates;
use weir_shared::domain::site_rules::{RefusedHosts, SiteRules};

use super::RenderRequest;
use super::cdp::{Cdp, Event, Pending};
use super::kept::Navigated;

/// Time for cookies to be taken out of the store.
const STEP: Duration = Duration::from_secs(5);
/// Time for a browser to say what stands in its frames; a page that keeps it waiting gets no headers.
const LOOK: Duration = Duration::from_millis(500);
/// Frames whose place is known at once; a page with more gets no headers for what its frames ask for.
const MAX_FRAMES: usize = 10_000;

/// The caller's headers, sorted by how a browser sends them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct OwnHeaders {
    /// Replaces the browser's, in scripts too.
    pub user_agent: Option<String>,
    /// Replaces the browser's, in scripts too.
    pub accept_language: Option<String>,
    /// Go into the cookie store, so that the site can change them. Empty for a page at an origin that nobody named.
    cookie_pairs: Vec<(String, String)>,
    /// Added to the requests to the named origins.
    extra: BTreeMap<String, String>,
}

impl OwnHeaders {
    /// Sorts the headers of a request.
    pub fn split(request: &RenderRequest) -> Self {
        let mut own = Self::default();
        for (name, value) in request.headers.appearance() {
            match name.to_ascii_lowercase().as_str() {
                "user-agent" => own.user_agent = Some(value.clone()),
                _ => own.accept_language = Some(value.clone()),
            }
        }
        let is_named = request.headers.names(&request.url);
        for (name, value) in request.headers.secrets() {
            let name = name.to_ascii_lowercase();
            match name.as_str() {
                "cookie" if is_named => own.cookie_pairs.extend(value.split(';').filter_map(|pair| {
                    let (name, value) = pair.split_once('=')?;
                    Some((name.trim().to_owned(), value.trim().to_owned()))
                })),
                // What a browser cannot unpack it does not ask for.
                "cookie" | "accept-encoding" => {}
                name if !may_carry(name) => {}
                _ => {
                    own.extra.insert(name, value.clone());
                }
            }
        }
        own
    }

    /// Whether a cookie is one of the caller's.
    pub fn has_cookie(&self, name: &str, value: &str) -> bool {
        self.cookie_pairs.iter().any(|(own, given)| own == name && given == value)
    }

    /// Names and values of the caller's cookies.
    pub fn into_cookie_pairs(self) -> Vec<(String, String)> {
        self.cookie_pairs
    }

    /// Cookies to set before the page loads, in the protocol's form.
    pub fn cookies(&self, request: &RenderRequest) -> Vec<Value> {
        let url = request.url.as_str();
        let is_secure = request.url.scheme() == "https";
        let param = |(name, value): &(String, String)| json!({ "name": name, "value": value, "url": url, "path": "/", "secure": is_secure });
        self.cookie_pairs.iter().map(param).collect()
    }
}

/// The rules of one page.
#[derive(Debug)]
pub(super) struct Interception {
    /// What is refused here; `None`: nothing, or its proxy does so.
    ads: Option<Arc<AdHosts>>,
    /// As requested: what its rules call the page.
    page: Url,
    /// The frame of the page itself, once it has asked for its document.
    main_frame: OnceLock<String>,
    /// The page's own site keeps its requests even when it is on the block list itself.
    own_host: Option<String>,
    /// Whose headers they are, and which origins were named.
    caller: CallerHeaders,
    /// Added to the requests to the named origins.
    extra: BTreeMap<String, String>,
    /// Names of the caller's cookies, in the store of the page's host until it leaves the named origins of that host.
    cookies: Vec<String>,
    has_cookies: Arc<AtomicBool>,
    /// Frames whose document comes from a named origin, or may. What others ask of it is not the caller's doing.
    frames: Mutex<HashMap<String, Stands>>,
    certificates: Certificates,
    /// Every site may know the browser from before.
    in_profile: bool,
    /// The URL holds a name or a password.
    has_credentials: bool,
    has_untrusted: AtomicBool,
    /// Sites that the caller does not want to be asked.
    sites: SiteRules,
    /// A document of such a site was refused.
    has_refused_site: AtomicBool,
    /// The last certificate that was refused, in the browser's words.
    refused: Mutex<Option<String>>,
}

impl Interception {
    /// The rules that `request` asks for. `ads`: what to refuse; `None` where its proxy does all of that already.
    pub fn new(request: &RenderRequest, own: &OwnHeaders, ads: Option<Arc<AdHosts>>) -> Self {
        let url = &request.url;
        Self {
            ads,
            page: url.clone(),
            main_frame: OnceLock::new(),
            own_host: url.host_str().map(str::to_owned),
            caller: request.headers.clone(),
            extra: own.extra.clone(),
            cookies: own.cookie_pairs.iter().map(|(name, _)| name.clone()).collect(),
            has_cookies: Arc::new(AtomicBool::new(!own.cookie_pairs.is_empty())),
            frames: Mutex::default(),
            certificates: request.certificates,
            in_profile: request.in_profile,
            has_credentials: !url.username().is_empty() || url.password().is_some(),
            has_untrusted: AtomicBool::new(false),
            sites: request.sites.clone(),
            has_refused_site: AtomicBool::new(false),
            refused: Mutex::default(),
        }
    }

    /// Parameters of `Fetch.enable`; `None` when nothing is to be held back.
    pub fn enable_params(&self) -> Option<Value> {
        let has_rules =
            !self.extra.is_empty() || !self.cookies.is_empty() || !self.sites.is_empty() || self.ads.is_some();
        has_rules.then(|| json!({ "patterns": [{ "urlPattern": "*" }] }))
    }

    /// What the page's way out refuses, for what the browser does not hold back (sockets, requests of workers, pages that are
    /// fetched beforehand): blocked sites, and, as long as the caller's cookies are there, all of their host but what was
    /// named. `None`: nothing.
    pub fn refused(&self) -> Option<RefusedHosts> {
        let sites = self.sites.refused();
        let Some(own) = self.own_host.clone().filter(|_| !self.cookies.is_empty()) else { return sites };
        let (caller, has_cookies) = (self.caller.clone(), Arc::clone(&self.has_cookies));
        Some(Arc::new(move |host, port| {
            host == own && has_cookies.load(Ordering::Relaxed) && !caller.names_port(host, port)
                || sites.as_ref().is_some_and(|sites| sites(host, port))
        }))
    }

    /// Answers one `Fetch.requestPaused`.
    pub async fn answer(&self, event: &Event, cdp: &Cdp, session: &str) {
        let Some(paused) = event.params::<Paused<'_>>() else { return };
        let id = paused.request_id;
        let mut verdict = self.verdict(&paused);
        if verdict == Verdict::Leave {
            verdict = if self.forget_cookies(cdp, session).await { Verdict::Pass } else { Verdict::Refuse };
        }
        if verdict == Verdict::Unknown {
            let is_at_home = self.look_at(paused.frame_id, cdp, session).await;
            verdict = if is_at_home { Verdict::PassWithExtra } else { Verdict::Pass };
        }
        let headers = match verdict {
            Verdict::Refuse | Verdict::Leave => {
                let refused = json!({ "requestId": id, "errorReason": "BlockedByClient" });
                return cdp.post::<Fetch::FailRequest>(Some(session), refused);
            }
            Verdict::Pass | Verdict::Unknown => self.without_extra(&paused.request.headers),
            Verdict::PassWithExtra => Some(self.with_extra(&paused.request.headers)),
        };
        let mut params = json!({ "requestId": id });
        if let Some(headers) = headers {
            if headers.get("referer").is_some_and(String::is_empty) {
                // A redirect keeps its referrer unless the request is made anew, which a URL has it do.
                params["url"] = paused.request.url.as_str().into();
            }
            let entry = |(name, value): (String, String)| json!({ "name": name, "value": value });
            params["headers"] = headers.into_iter().map(entry).collect();
        }
        cdp.post::<Fetch::ContinueRequest>(Some(session), params);
    }

    fn verdict(&self, paused: &Paused<'_>) -> Verdict {
        let Ok(url) = Url::parse(&paused.request.url) else { return Verdict::Pass };
        let is_document = paused.resource_type == "Document";
        let is_allowed = if is_document { self.sites.allows_document(&url) } else { self.sites.allows(&url) };
        if !is_allowed {
            if is_document {
                self.has_refused_site.store(true, Ordering::Relaxed);
            }
            return Verdict::Refuse;
        }
        let host = url.host_str().unwrap_or_default();
        let is_own_host = Some(host) == self.own_host.as_deref();
        if !is_own_host && self.ads.as_ref().is_some_and(|ads| ads.has(host)) || self.is_ad(paused, &url) {
            return Verdict::Refuse;
        }
        let is_named = self.caller.names(&url);
        if is_document {
            self.is_asked_for(paused.frame_id, is_named);
        }
        if is_named {
            return match self.stands(paused.frame_id) {
                _ if self.extra.is_empty() => Verdict::Pass,
                _ if is_document => Verdict::PassWithExtra,
                _ if self.comes_from_elsewhere(&paused.request.headers) => Verdict::Pass,
                Some(Stands::AtHome) => Verdict::PassWithExtra,
                Some(Stands::Perhaps) => Verdict::Unknown,
                None => Verdict::Pass,
            };
        }
        if is_own_host && self.has_cookies.load(Ordering::Relaxed) {
            return if is_document { Verdict::Leave } else { Verdict::Refuse };
        }
        Verdict::Pass
    }

    /// What stands in a frame, as far as it is known; `None`: nothing from a named origin.
    fn stands(&self, frame: &str) -> Option<Stands> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner).get(frame).copied()
    }

    /// A frame asks for a document, of a named origin or not.
    fn is_asked_for(&self, frame: &str, is_named: bool) {
        let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_named {
            frames.remove(frame);
        } else if frames.len() < MAX_FRAMES {
            frames.entry(frame.to_owned()).or_insert(Stands::Perhaps);
        }
    }

    /// A document has taken its place in a frame. Those without an address of their own (`about:`, `data:`) are nobody's.
    fn has_come(&self, frame: &str, address: &str) -> bool {
        let is_named = Url::parse(address).is_ok_and(|url| self.caller.names(&url));
        let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_named {
            frames.remove(frame);
        } else if frames.len() < MAX_FRAMES || frames.contains_key(frame) {
            frames.insert(frame.to_owned(), Stands::AtHome);
        }
        is_named
    }

    /// Takes note of an event of a page, where its events are read.
    pub fn note(&self, event: &Event) {
        if !self.extra.is_empty()
            && event.method == "Page.frameNavigated"
            && let Some(Navigated { frame }) = event.params()
        {
            self.has_come(frame.id, &frame.url);
        }
    }

    /// Asks the browser whether a document of a named origin stands in the frame: the request was faster than the word of its
    /// document, or the one before it has sent it, or nobody reads the page's events (in sessions).
    async fn look_at(&self, frame: &str, cdp: &Cdp, session: &str) -> bool {
        let asked = cdp.send_as::<FrameTree>(Page::GetFrameTree::NAME, Some(session), json!({}));
        let Ok(FrameTree { frame_tree }) = asked.by(clock::deadline(LOOK)).await else { return false };
        frame_tree.find(frame).is_some_and(|found| self.has_come(frame, &found.url))
    }

    /// Whether a request says of itself that a page of another origin has sent it. The caller's own referrer says nothing.
    fn comes_from_elsewhere(&self, sent: &BTreeMap<String, String>) -> bool {
        sent.iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).any(|(name, value)| {
            matches!(name.as_str(), "origin" | "referer")
                && !self.is_callers(&name, value)
                && !Url::parse(value).is_ok_and(|url| self.caller.names(&url))
        })
    }

    /// Whether a rule of a list is about this request. What the caller has asked for is none of them: the first document
    /// is the page's, and so is whatever its frame goes to.
    fn is_ad(&self, paused: &Paused<'_>, url: &Url) -> bool {
        let Some(ads) = self.ads.as_ref().filter(|ads| ads.have_rules()) else { return false };
        let is_document = paused.resource_type == "Document";
        if is_document && self.main_frame.get_or_init(|| paused.frame_id.to_owned()) == paused.frame_id {
            return false;
        }
        ads.refuse(url, &self.page, filter_kind(paused.resource_type))
    }

    /// Takes the caller's cookies out of the store, for good.
    async fn forget_cookies(&self, cdp: &Cdp, session: &str) -> bool {
        let deadline = clock::deadline(STEP);
        let host = self.own_host.as_deref().unwrap_or_default();
        let taken: Vec<Pending<Value>> = self
            .cookies
            .iter()
            .map(|name| json!({ "name": name, "domain": host }))
            .map(|cookie| cdp.send_as(Network::DeleteCookies::NAME, Some(session), cookie))
            .collect();
        for answer in taken {
            if let Err(error) = answer.by(deadline).await {
                tracing::warn!(%error, "a caller's cookies stay, so the page does not leave their origin");
                return false;
            }
        }
        self.has_cookies.store(false, Ordering::Relaxed);
        true
    }

    fn with_extra(&self, sent: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let sent = sent.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
        // Cookies come from the store. Named here they would go wherever a redirect leads.
        let sent = sent.filter(|(name, _)| name != "cookie");
        sent.chain(self.extra.iter().map(|(name, value)| (name.clone(), value.clone()))).collect()
    }

    /// Whether a header is one of the caller's, by its name in small letters. Browsers write referrers anew.
    fn is_callers(&self, name: &str, value: &str) -> bool {
        let parse = |text: &str| Url::parse(text).ok();
        self.extra.get(name).is_some_and(|own| {
            own == value || name == "referer" && parse(own).is_some_and(|own| Some(own) == parse(value))
        })
    }

    /// What is sent without the caller's; `None`: none of them is there.
    fn without_extra(&self, sent: &BTreeMap<String, String>) -> Option<BTreeMap<String, String>> {
        let sent = sent.iter().map(|(name, value)| (name.to_ascii_lowercase(), value));
        let (callers, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
            sent.partition(|(name, value)| self.is_callers(name, value));
        (!callers.is_empty()).then(|| {
            let others =
                others.into_iter().filter(|(name, _)| name != "cookie").map(|(name, value)| (name, value.clone()));
            // The browser keeps the referrer beside the headers: only an empty one takes its place.
            let referrer = callers.contains_key("referer").then(|| ("referer".to_owned(), String::new()));
            others.chain(referrer).collect()
        })
    }

    /// Answers one `Security.certificateError`.
    pub fn judge_certificate(&self, event: &Event, cdp: &Cdp, session: &str) {
        let Some(error) = event.params::<CertificateError<'_>>() else { return };
        let is_accepted = self.accepts_at(&error.request_url);
        if is_accepted {
            self.has_untrusted.store(true, Ordering::Relaxed);
        } else {
            *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.error_type);
        }
        let action = if is_accepted { "continue" } else { "cancel" };
        let answer = json!({ "eventId": error.event_id, "action": action });
        cdp.post::<Security::HandleCertificateError>(Some(session), answer);
    }

    /// Whether a bad certificate at `url` is accepted. The browser remembers the answer for the whole host, so what is sent
    /// to any of its ports counts.
    fn accepts_at(&self, url: &str) -> bool {
        let has_secrets = |url: Url| {
            self.in_profile
                || self.caller.has_secrets_on_host(&url)
                || self.has_credentials && url.host_str() == self.own_host.as_deref()
        };
        self.certificates.allow_untrusted(Url::parse(url).map_or(true, has_secrets))
    }

    /// Whether something of the page came over a certificate that does not verify.
    pub fn has_untrusted(&self) -> bool {
        self.has_untrusted.load(Ordering::Relaxed)
    }

    /// Whether the page or a frame of it was to come from a site that the caller does not want to be asked.
    pub fn has_refused_site(&self) -> bool {
        self.has_refused_site.load(Ordering::Relaxed)
    }

    /// What is wrong with the last certificate that was refused.
    pub fn refused_certificate(&self) -> Option<String> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What filter lists call a kind of request of the browser's protocol.
fn filter_kind(resource_type: &str) -> &'static str {
    match resource_type {
        "Document" => "subdocument",
        "Stylesheet" => "stylesheet",
        "Image" => "image",
        "Media" | "TextTrack" => "media",
        "Font" => "font",
        "Script" => "script",
        "XHR" | "Fetch" | "EventSource" => "xmlhttprequest",
        "WebSocket" => "websocket",
        "Ping" => "ping",
        "CSPViolationReport" => "csp_report",
        _ => "other",
    }
}

#[derive(Debug, PartialEq)]
enum Verdict {
    Refuse,
    /// Without the caller's headers.
    Pass,
    /// With them.
    PassWithExtra,
    /// With them if the frame's document is from a named origin, which is to be found out.
    Unknown,
    /// After the caller's cookies are gone.
    Leave,
}

/// What is known of a frame that has asked for a document of a named origin.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stands {
    /// It may be there, or the one before it still is.
    Perhaps,
    AtHome,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameTree {
    frame_tree: Branch,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Branch {
    frame: FrameOf,
    #[serde(default)]
    child_frames: Vec<Branch>,
}

#[derive(Debug, Deserialize)]
struct FrameOf {
    id: String,
    url: String,
}

impl Branch {
    fn find(&self, id: &str) -> Option<&FrameOf> {
        let mut open = vec![self];
        while let Some(branch) = open.pop() {
            if branch.frame.id == id {
                return Some(&branch.frame);
            }
            open.extend(&branch.child_frames);
        }
        None
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Paused<'a> {
    request_id: &'a str,
    frame_id: &'a str,
    resource_type: &'a str,
    request: PausedRequest,
}

#[derive(Debug, Deserialize)]
struct PausedRequest {
    url: String,
    headers: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CertificateError<'a> {
    event_id: i64,
    error_type: String,
    #[serde(rename = "requestURL", borrow)]
    request_url: std::borrow::Cow<'a, str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paused(url: &str, kind: &'static str, frame: &'static str) -> Paused<'static> {
        let headers = BTreeMap::from([("Accept".to_owned(), "*/*".to_owned())]);
        let request = PausedRequest { url: url.to_owned(), headers };
        Paused { request_id: "1", frame_id: frame, resource_type: kind, request }
    }

    fn request(headers: &[(&str, &str)]) -> RenderRequest {
        let url = "https://shop.test/a";
        let mut request = RenderRequest::new(Url::parse(url).expect("url"));
        let headers = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        request.headers = CallerHeaders::new(Some(url), &headers);
        request
    }

    fn rules(request: &RenderRequest) -> Interception {
        Interception::new(request, &OwnHeaders::split(request), None)
    }

    #[test]
    fn sites_that_the_caller_has_blocked_are_not_asked() {
        let mut request = RenderRequest::new(Url::parse("https://shop.test/a").expect("url"));
        assert!(rules(&request).enable_params().is_none(), "a page without rules pays nothing");
        request.sites.blocked = vec!["*.bad.test".to_owned()];
        let rules = rules(&request);
        assert!(rules.enable_params().is_some());
        assert_eq!(rules.verdict(&paused("https://shop.test/a", "Document", "top")), Verdict::Pass);
        assert_eq!(rules.verdict(&paused("https://x.bad.test/i.png", "Image", "top")), Verdict::Refuse);
        assert!(!rules.has_refused_site(), "a part of a page is not the page");
        assert_eq!(rules.verdict(&paused("https://x.bad.test/", "Document", "top")), Verdict::Refuse);
        assert!(rules.has_refused_site());
    }

    #[test]
    fn headers_go_to_the_named_origin_only_and_from_its_own_pages() {
        let request = request(&[("Authorization", "Bearer x"), ("Host", "evil.test"), ("User-Agent", "Mine")]);
        assert_eq!(OwnHeaders::split(&request).user_agent.as_deref(), Some("Mine"));
        let rules = rules(&request);
        for (url, kind, frame, expected) in [
            ("https://shop.test/a", "Document", "top", Verdict::PassWithExtra),
            // The browser has said that it stands there.
            ("https://shop.test/a", "", "top", Verdict::PassWithExtra),
            ("https://shop.test/api", "XHR", "top", Verdict::PassWithExtra),
            ("https://other.test/api", "XHR", "top", Verdict::Pass),
            ("http://shop.test/api", "XHR", "top", Verdict::Pass),
            ("https://shop.test:444/api", "XHR", "top", Verdict::Pass),
            // What a page of somebody else's asks of the site, the caller has not asked for.
            ("https://other.test/", "Document", "frame", Verdict::Pass),
            ("https://shop.test/me.js", "Script", "frame", Verdict::Pass),
            ("https://other.test/", "Document", "top", Verdict::Pass),
            ("https://shop.test/me.js", "Script", "top", Verdict::Pass),
            ("https://shop.test/back", "Document", "top", Verdict::PassWithExtra),
        ] {
            if kind.is_empty() {
                assert!(rules.has_come(frame, url));
            } else {
                assert_eq!(rules.verdict(&paused(url, kind, frame)), expected, "{url} {kind} of {frame}");
            }
        }
        let sent = |list: &[(&str, &str)]| -> BTreeMap<String, String> {
            list.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()
        };
        let with = rules.with_extra(&sent(&[("Accept", "*/*"), ("Cookie", "of=the-store")]));
        assert_eq!(with, sent(&[("accept", "*/*"), ("authorization", "Bearer x")]));
        // A redirect carries along what was put on the request before it.
        let without = rules.without_extra(&sent(&[("Accept", "*/*"), ("Authorization", "Bearer x")]));
        assert_eq!(without, Some(sent(&[("accept", "*/*")])));
        assert_eq!(rules.without_extra(&sent(&[("Accept", "*/*"), ("Authorization", "Basic of-the-site")])), None);
    }

    #[test]
    fn a_document_is_at_home_when_it_has_come_and_not_when_it_is_asked_for() {
        let request = request(&[("X-Own", "1"), ("Referer", "https://search.test/?q")]);
        let rules = rules(&request);
        let script = |frame| rules.verdict(&paused("https://shop.test/me.js", "Script", frame));
        let document = |url, frame| rules.verdict(&paused(url, "Document", frame));
        // What stands in the frame goes on while its next document is on its way, and for ever if none comes.
        assert_eq!(document("https://other.test/ad", "frame"), Verdict::Pass);
        assert!(!rules.has_come("frame", "https://other.test/ad"));
        assert_eq!(document("https://shop.test/hang", "frame"), Verdict::PassWithExtra);
        assert_eq!(script("frame"), Verdict::Unknown);
        assert!(!rules.has_come("frame", "https://other.test/ad2"));
        assert_eq!(script("frame"), Verdict::Pass);
        // The page's own: by way of others, and from one of its documents to the next.
        for url in ["https://shop.test/a", "https://other.test/way", "https://shop.test/b"] {
            document(url, "top");
        }
        assert_eq!(script("top"), Verdict::Unknown);
        assert!(rules.has_come("top", "https://shop.test/b"));
        assert_eq!(script("top"), Verdict::PassWithExtra);
        document("https://shop.test/c", "top");
        assert_eq!(script("top"), Verdict::PassWithExtra);
        // It has come without being asked for, as from a page that was left and is gone back to.
        assert!(rules.has_come("back", "https://shop.test/"));
        assert_eq!(script("back"), Verdict::PassWithExtra);
        for address in ["about:blank", "about:srcdoc", "data:text/html,x", "chrome-error://chromewebdata/", ""] {
            assert!(!rules.has_come("back", address), "{address}");
            assert_eq!(script("back"), Verdict::Pass, "{address}");
        }
        // Whoever says to be somebody else is believed.
        for (name, value, expected) in [
            ("Origin", "https://shop.test", Verdict::PassWithExtra),
            ("Referer", "https://shop.test/a", Verdict::PassWithExtra),
            ("Referer", "https://search.test/?q", Verdict::PassWithExtra),
            ("Origin", "https://other.test", Verdict::Pass),
            ("origin", "null", Verdict::Pass),
            ("referer", "https://other.test/", Verdict::Pass),
        ] {
            let mut asked = paused("https://shop.test/api", "Fetch", "top");
            asked.request.headers.insert(name.to_owned(), value.to_owned());
            assert_eq!(rules.verdict(&asked), expected, "{name}: {value}");
        }
    }

    #[test]
    fn a_frame_is_found_among_those_of_the_page() {
        let tree = json!({ "frameTree": { "frame": { "id": "a", "url": "https://a.test/" }, "childFrames": [
            { "frame": { "id": "b", "url": "https://b.test/" } },
            { "frame": { "id": "c", "url": "https://c.test/" }, "childFrames": [
                { "frame": { "id": "d", "url": "https://d.test/" } } ] } ] } });
        let tree: FrameTree = serde_json::from_value(tree).expect("a tree");
        let found = |id| tree.frame_tree.find(id).map(|frame| frame.url.as_str());
        assert_eq!((found("a"), found("d"), found("e")), (Some("https://a.test/"), Some("https://d.test/"), None));
    }

    #[test]
    fn a_cookie_header_becomes_cookies_of_its_origin_and_of_nothing_else_on_the_host() {
        let mut request = request(&[("Cookie", "a=1; b=x=y; broken")]);
        let cookies = OwnHeaders::split(&request).cookies(&request);
        assert_eq!(cookies.len(), 2);
        assert_eq!((&cookies[1]["value"], &cookies[1]["secure"]), (&json!("x=y"), &json!(true)));
        let rules = rules(&request);
        for (url, kind, expected) in [
            ("https://shop.test/b", "Document", Verdict::Pass),
            ("https://other.test/", "Document", Verdict::Pass),
            ("https://shop.test:444/api", "XHR", Verdict::Refuse),
            ("http://shop.test/", "Document", Verdict::Leave),
        ] {
            assert_eq!(rules.verdict(&paused(url, kind, "top")), expected, "{url} {kind}");
        }
        let refused = rules.refused().expect("a way out with rules of its own");
        let ways =
            || [("shop.test", 443), ("shop.test", 444), ("other.test", 444)].map(|(host, port)| refused(host, port));
        assert_eq!(ways(), [false, true, false]);
        rules.has_cookies.store(false, Ordering::Relaxed);
        assert_eq!(rules.verdict(&paused("https://shop.test:444/api", "XHR", "top")), Verdict::Pass);
        assert_eq!(ways(), [false; 3], "they are gone");
        request.sites.blocked = vec!["bad.test".to_owned()];
        let refused = self::rules(&request).refused().expect("a way out with rules of its own");
        assert_eq!([refused("bad.test", 443), refused("shop.test", 80), refused("x.test", 443)], [true, true, false]);
        // A page that a crawl has come to and nobody named.
        request.url = Url::parse("https://other.test/").expect("url");
        assert!(OwnHeaders::split(&request).cookies(&request).is_empty());
    }

    #[test]
    fn untrusted_certificates_are_accepted_where_nothing_of_the_callers_is_sent_or_it_says_so() {
        let plain = request(&[("User-Agent", "Mine")]);
        let own = request(&[("X-Own", "1")]);
        let mut named = plain.clone();
        named.url = Url::parse("https://me:secret@shop.test/").expect("url");
        let profile = RenderRequest { in_profile: true, ..plain.clone() };
        for (request, here, elsewhere) in
            [(&plain, true, true), (&own, false, true), (&named, false, true), (&profile, false, false)]
        {
            for (certificates, here, elsewhere) in [
                (Certificates::Trusted, false, false),
                (Certificates::AnyWithoutSecrets, here, elsewhere),
                (Certificates::Any, true, true),
            ] {
                let rules = rules(&RenderRequest { certificates, ..request.clone() });
                let seen = (rules.accepts_at("https://shop.test/x"), rules.accepts_at("https://cdn.test/x"));
                assert_eq!(seen, (here, elsewhere), "{certificates:?} {request:?}");
            }
        }
    }

    #[test]
    fn nothing_is_held_back_when_the_proxy_refuses_the_ads() {
        let (request, own) = (request(&[]), OwnHeaders::default());
        assert!(Interception::new(&request, &own, None).enable_params().is_none());
        assert!(Interception::new(&request, &own, Some(AdHosts::builtin().into())).enable_params().is_some());
    }

    #[test]
    fn ads_are_refused_except_on_their_own_site() {
        let mut request = request(&[]);
        let ads = Arc::new(AdHosts::builtin());
        let rules = Interception::new(&request, &OwnHeaders::default(), Some(Arc::clone(&ads)));
        assert_eq!(rules.verdict(&paused("https://ad.doubleclick.net/x.js", "Script", "top")), Verdict::Refuse);
        request.url = Url::parse("https://hotjar.com/").expect("url");
        let rules = Interception::new(&request, &OwnHeaders::default(), Some(ads));
        assert_eq!(rules.verdict(&paused("https://hotjar.com/", "Document", "top")), Verdict::Pass);
    }
}
