//! What becomes of a page's requests: ads are refused, and a caller's headers go to the caller's site and
//! nowhere else.
//!
//! The browser holds back only requests that match a pattern, so a page without such requests pays nothing.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use headless_chrome::protocol::cdp::Fetch;
use serde::Deserialize;
use serde_json::{Value, json};
use url::{Origin, Url};

use super::cdp::{Cdp, Event};
use super::{BrowserCookie, RenderRequest, blocklist};

/// Headers that a browser writes itself; a caller's are left out.
const BROWSER_HEADERS: &[&str] = &[
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "upgrade",
    "keep-alive",
    "te",
    "trailer",
    "proxy-authorization",
    "proxy-connection",
    "accept-encoding",
    "expect",
];

/// The caller's headers, sorted by how a browser sends them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct OwnHeaders {
    /// Replaces the browser's, in scripts too.
    pub user_agent: Option<String>,
    /// Replaces the browser's, in scripts too.
    pub accept_language: Option<String>,
    /// Go into the cookie store, so that the site can change them.
    cookie_pairs: Vec<(String, String)>,
    /// Added to the requests to the origin of the page.
    extra: BTreeMap<String, String>,
}

impl OwnHeaders {
    /// Sorts the headers of a request.
    pub fn split(request: &RenderRequest) -> Self {
        let mut own = Self::default();
        for (name, value) in &request.headers {
            let name = name.to_ascii_lowercase();
            match name.as_str() {
                "user-agent" => own.user_agent = Some(value.clone()),
                "accept-language" => own.accept_language = Some(value.clone()),
                "cookie" => own.cookie_pairs.extend(value.split(';').filter_map(|pair| {
                    let (name, value) = pair.split_once('=')?;
                    Some((name.trim().to_owned(), value.trim().to_owned()))
                })),
                name if BROWSER_HEADERS.contains(&name) => {}
                _ => {
                    own.extra.insert(name, value.clone());
                }
            }
        }
        own
    }

    /// Cookies to set before the page loads, in the protocol's form.
    pub fn cookies(&self, request: &RenderRequest) -> Vec<Value> {
        let url = request.url.as_str();
        let pairs = self.cookie_pairs.iter().map(|(name, value)| json!({ "name": name, "value": value, "url": url }));
        pairs.chain(request.cookies.iter().map(|cookie| cookie_param(cookie, url))).collect()
    }
}

fn cookie_param(cookie: &BrowserCookie, url: &str) -> Value {
    let mut param =
        json!({ "name": cookie.name, "value": cookie.value, "secure": cookie.secure, "httpOnly": cookie.http_only });
    match &cookie.domain {
        Some(domain) => {
            param["domain"] = domain.as_str().into();
            param["path"] = cookie.path.as_deref().unwrap_or("/").into();
        }
        None => {
            param["url"] = url.into();
            if let Some(path) = &cookie.path {
                param["path"] = path.as_str().into();
            }
        }
    }
    if let Some(expires) = cookie.expires {
        param["expires"] = expires.into();
    }
    param
}

/// The rules of one page.
#[derive(Debug)]
pub(super) struct Interception {
    blocks_ads: bool,
    /// The page's own site keeps its requests even when it is on the block list itself.
    own_host: Option<String>,
    own: Option<(Origin, BTreeMap<String, String>)>,
    pattern: Option<String>,
}

impl Interception {
    /// The rules that `request` asks for. `refuses_ads`: its proxy does so already.
    pub fn new(request: &RenderRequest, own: &OwnHeaders, refuses_ads: bool) -> Self {
        let has_extra = !own.extra.is_empty();
        Self {
            blocks_ads: request.block_ads && !refuses_ads,
            own_host: request.url.host_str().map(str::to_owned),
            own: has_extra.then(|| (request.url.origin(), own.extra.clone())),
            pattern: has_extra.then(|| format!("{}/*", request.url.origin().ascii_serialization())),
        }
    }

    /// Parameters of `Fetch.enable`; `None` when nothing is to be held back.
    pub fn enable_params(&self) -> Option<Value> {
        let mut patterns = Vec::new();
        if self.blocks_ads {
            static ADS: OnceLock<Vec<Value>> = OnceLock::new();
            let ads = ADS.get_or_init(|| blocklist::url_patterns().map(|p| json!({ "urlPattern": p })).collect());
            patterns.extend(ads.iter().cloned());
        }
        patterns.extend(self.pattern.iter().map(|p| json!({ "urlPattern": p })));
        (!patterns.is_empty()).then(|| json!({ "patterns": patterns }))
    }

    /// Answers one `Fetch.requestPaused`.
    pub fn answer(&self, event: &Event, cdp: &Cdp, session: &str) {
        let Some(paused) = event.params::<Paused<'_>>() else { return };
        let id = paused.request_id;
        match self.verdict(&paused) {
            Verdict::Refuse => {
                cdp.post::<Fetch::FailRequest>(
                    Some(session),
                    json!({ "requestId": id, "errorReason": "BlockedByClient" }),
                );
            }
            Verdict::Pass => cdp.post::<Fetch::ContinueRequest>(Some(session), json!({ "requestId": id })),
            Verdict::PassWith(headers) => {
                cdp.post::<Fetch::ContinueRequest>(Some(session), json!({ "requestId": id, "headers": headers }));
            }
        }
    }

    fn verdict(&self, paused: &Paused<'_>) -> Verdict {
        let Ok(url) = Url::parse(&paused.request.url) else { return Verdict::Pass };
        let host = url.host_str().unwrap_or_default();
        if self.blocks_ads && Some(host) != self.own_host.as_deref() && blocklist::is_ad_host(host) {
            return Verdict::Refuse;
        }
        match &self.own {
            Some((origin, extra)) if *origin == url.origin() => {
                let mut headers: BTreeMap<String, String> = paused
                    .request
                    .headers
                    .iter()
                    .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
                    .collect();
                headers.extend(extra.iter().map(|(name, value)| (name.clone(), value.clone())));
                Verdict::PassWith(
                    headers.into_iter().map(|(name, value)| json!({ "name": name, "value": value })).collect(),
                )
            }
            _ => Verdict::Pass,
        }
    }
}

#[derive(Debug, PartialEq)]
enum Verdict {
    Refuse,
    Pass,
    PassWith(Vec<Value>),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Paused<'a> {
    request_id: &'a str,
    request: PausedRequest,
}

#[derive(Debug, Deserialize)]
struct PausedRequest {
    url: String,
    headers: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paused(url: &str) -> Paused<'static> {
        let headers = BTreeMap::from([("Accept".to_owned(), "*/*".to_owned())]);
        Paused { request_id: "1", request: PausedRequest { url: url.to_owned(), headers } }
    }

    fn request(headers: &[(&str, &str)]) -> RenderRequest {
        let mut request = RenderRequest::new(Url::parse("https://shop.test/a").expect("url"));
        request.headers = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        request
    }

    #[test]
    fn headers_go_to_the_origin_of_the_page_only() {
        let request = request(&[("Authorization", "Bearer x"), ("Host", "evil.test"), ("User-Agent", "Mine")]);
        let own = OwnHeaders::split(&request);
        assert_eq!(own.user_agent.as_deref(), Some("Mine"));
        let rules = Interception::new(&request, &own, false);
        let Verdict::PassWith(headers) = rules.verdict(&paused("https://shop.test/api")) else {
            panic!("headers expected")
        };
        assert_eq!(
            headers,
            [json!({"name": "accept", "value": "*/*"}), json!({"name": "authorization", "value": "Bearer x"})]
        );
        assert_eq!(rules.verdict(&paused("https://other.test/api")), Verdict::Pass);
        assert_eq!(rules.verdict(&paused("http://shop.test/api")), Verdict::Pass);
    }

    #[test]
    fn a_cookie_header_becomes_cookies() {
        let request = request(&[("Cookie", "a=1; b=x=y; broken")]);
        let cookies = OwnHeaders::split(&request).cookies(&request);
        assert_eq!(cookies.len(), 2);
        assert_eq!(cookies[1]["value"], "x=y");
    }

    #[test]
    fn nothing_is_held_back_when_the_proxy_refuses_the_ads() {
        let mut request = request(&[]);
        request.block_ads = true;
        let own = OwnHeaders::default();
        assert!(Interception::new(&request, &own, true).enable_params().is_none());
        assert!(Interception::new(&request, &own, false).enable_params().is_some());
    }

    #[test]
    fn ads_are_refused_except_on_their_own_site() {
        let mut request = request(&[]);
        request.block_ads = true;
        let rules = Interception::new(&request, &OwnHeaders::default(), false);
        assert_eq!(rules.verdict(&paused("https://ad.doubleclick.net/x.js")), Verdict::Refuse);
        request.url = Url::parse("https://hotjar.com/").expect("url");
        let rules = Interception::new(&request, &OwnHeaders::default(), false);
        assert_eq!(rules.verdict(&paused("https://hotjar.com/")), Verdict::Pass);
    }
}
