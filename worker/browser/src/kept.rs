//! Tabs that go on: a page may take the place of another one of its site, instead of a tab of its own.
//!
//! A context, a target and a process are a third of what a page with scripts costs. So where the same team asks for more
//! pages of an origin, in the same appearance, the next one goes on in the tab of the last one:
//!
//! ```text
//! page at rest ──> keep    its scripts end, its document is emptied
//! next page    ──> take    cookies, storage and cache of the tab are cleared, then it goes there
//! nobody comes ──> closed after a second
//! ```
//!
//! No page finds anything of the last one but a process that has run before; a site finds what its own headers have had the
//! browser say of itself (`Accept-CH`), as of a visitor who comes again. Where more might stay the tab is closed: a page that
//! has opened windows or had other sites in its frames, that was led through other documents, that has workers, sockets or
//! requests that outlive it, that got headers, cookies, a profile, an address with a password or a certificate that does not
//! verify, or whose request is of zero data retention.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;
use url::{Origin, Url};
use weir_shared::clock;
use weir_shared::domain::scrape::Certificates;
use weir_shared::ids::TeamId;

use super::RenderRequest;
use super::cdp::Event;

/// How long a tab is kept for a next page.
pub(super) const KEEP: Duration = Duration::from_secs(1);

/// How long a page of a site is remembered: tabs of sites with one page are not kept.
const REMEMBER: Duration = Duration::from_secs(10);

/// Sites that are remembered at once.
const MAX_SITES: usize = 64;

/// Whose pages may follow each other in a tab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TabKey {
    team: TeamId,
    /// Scheme, host and port.
    pub origin: String,
    mobile: bool,
    location: Option<(String, Vec<String>)>,
    certificates: Certificates,
    want_raw: bool,
}

impl TabKey {
    /// Of a page that leaves nothing in its tab but what can be cleared; `None`: it needs one of its own.
    pub fn of(request: &RenderRequest) -> Option<Self> {
        let url = &request.url;
        let is_plain = !request.in_profile
            && !request.shows_pictures()
            && request.upstream.is_none()
            && request.headers.is_empty()
            && request.actions.is_empty()
            && request.sites.is_empty()
            // With one it would be a place in a document that has the same address.
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        Some(Self {
            team: request.team.filter(|_| is_plain)?,
            origin: url.origin().ascii_serialization(),
            mobile: request.mobile,
            location: request.location.clone(),
            certificates: request.certificates,
            want_raw: request.want_raw,
        })
    }

    /// Whether `url` lies on the origin.
    pub fn has(&self, url: &Url) -> bool {
        url.origin().ascii_serialization() == self.origin
    }
}

/// The tabs of one browser that nobody is in.
#[derive(Debug)]
pub(super) struct KeptTabs<T> {
    state: Mutex<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    /// The oldest first, each with its number.
    tabs: VecDeque<(u64, TabKey, T)>,
    last: u64,
    /// Whose pages were here lately.
    sites: VecDeque<(TabKey, Instant)>,
    is_closed: bool,
}

impl<T> Default for KeptTabs<T> {
    fn default() -> Self {
        let state = State { tabs: VecDeque::new(), last: 0, sites: VecDeque::new(), is_closed: false };
        Self { state: Mutex::new(state) }
    }
}

impl<T> KeptTabs<T> {
    /// Notes a page that begins. Whether another one of its site began lately, so that a third may come.
    pub fn begin(&self, key: &TabKey) -> bool {
        let now = clock::instant();
        let mut state = self.lock();
        let before = state.sites.iter().position(|(site, _)| site == key).and_then(|at| state.sites.remove(at));
        if state.sites.len() == MAX_SITES {
            state.sites.pop_front();
        }
        state.sites.push_back((key.clone(), now));
        before.is_some_and(|(_, at)| now.duration_since(at) < REMEMBER)
    }

    /// The tab that was left last by a page with the same key.
    pub fn take(&self, key: &TabKey) -> Option<T> {
        let mut state = self.lock();
        let at = state.tabs.iter().rposition(|(_, kept, _)| kept == key)?;
        state.tabs.remove(at).map(|(_, _, tab)| tab)
    }

    /// Keeps a tab. Its number, for [`KeptTabs::expire`]; what comes back has no place, and is closed.
    pub fn put(&self, key: TabKey, tab: T) -> Result<u64, T> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(tab);
        }
        state.last += 1;
        let number = state.last;
        state.tabs.push_back((number, key, tab));
        Ok(number)
    }

    /// The tab, if nobody has taken it.
    pub fn expire(&self, number: u64) -> Option<T> {
        let mut state = self.lock();
        let at = state.tabs.iter().position(|(kept, _, _)| *kept == number)?;
        state.tabs.remove(at).map(|(_, _, tab)| tab)
    }

    /// Those above `room`, the oldest ones.
    pub fn surplus(&self, room: usize) -> Vec<T> {
        let mut state = self.lock();
        let count = state.tabs.len().saturating_sub(room);
        state.tabs.drain(..count).map(|(_, _, tab)| tab).collect()
    }

    /// All of them; none is kept from here on.
    pub fn close(&self) -> Vec<T> {
        let mut state = self.lock();
        state.is_closed = true;
        state.tabs.drain(..).map(|(_, _, tab)| tab).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a page does beside its document, as far as that would stay in its tab.
#[derive(Debug)]
pub(super) struct Conduct {
    /// The origin that is cleared after it.
    home: Origin,
    /// Documents that it has shown.
    documents: AtomicU32,
    /// It has opened a window or a dialog, has crashed, or had other sites in its frames.
    has_more: AtomicBool,
}

impl Conduct {
    /// Of a page that is about to be opened.
    pub fn of(page: &Url) -> Self {
        Self { home: page.origin(), documents: AtomicU32::new(0), has_more: AtomicBool::new(false) }
    }

    /// Takes note of an event of the page whose main frame is `main`.
    pub fn note(&self, event: &Event, main: &str) {
        match event.method.as_str() {
            "Page.frameNavigated" => match event.params::<Navigated<'_>>().map(|navigated| navigated.frame) {
                Some(frame) if frame.id == main => _ = self.documents.fetch_add(1, Ordering::Relaxed),
                Some(frame) if self.is_at_home(&frame.url) => {}
                _ => self.has_more.store(true, Ordering::Relaxed),
            },
            // A frame that goes to another site leaves the page's process.
            "Page.frameDetached" if event.params::<Detached<'_>>().is_some_and(|frame| frame.reason == "remove") => {}
            "Page.frameDetached" | "Page.windowOpen" | "Page.javascriptDialogOpening" | "Inspector.targetCrashed" => {
                self.has_more.store(true, Ordering::Relaxed)
            }
            _ => {}
        }
    }

    /// Whether a frame with this address can store nothing but what is cleared after the page.
    fn is_at_home(&self, address: &str) -> bool {
        let Ok(url) = Url::parse(address) else { return false };
        matches!(url.scheme(), "about" | "data" | "chrome-error") || url.origin() == self.home
    }

    /// Whether there was one document, and nothing beside it.
    pub fn ends_with_document(&self) -> bool {
        self.documents.load(Ordering::Relaxed) <= 1 && !self.has_more.load(Ordering::Relaxed)
    }
}

/// A document that has taken its place in a frame.
#[derive(Deserialize)]
pub(super) struct Navigated<'a> {
    #[serde(borrow)]
    pub frame: NavigatedFrame<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NavigatedFrame<'a> {
    pub id: &'a str,
    /// Without what follows `#`.
    #[serde(borrow)]
    pub url: Cow<'a, str>,
    #[serde(borrow)]
    pub url_fragment: Option<Cow<'a, str>>,
}

impl NavigatedFrame<'_> {
    /// Its address as its document has it.
    pub fn address(&self) -> Option<Url> {
        let fragment = self.url_fragment.as_deref().unwrap_or_default();
        let mut url = Url::parse(&format!("{}{fragment}", self.url)).ok()?;
        // Refused where there can be neither.
        let _ = (url.set_username(""), url.set_password(None));
        Some(url)
    }
}

#[derive(Deserialize)]
struct Detached<'a> {
    reason: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(url: &str, team: TeamId) -> RenderRequest {
        RenderRequest { team: Some(team), ..RenderRequest::new(Url::parse(url).expect("url")) }
    }

    #[test]
    fn a_tab_goes_to_pages_of_its_team_origin_and_appearance_alone() {
        let (team, other) = (TeamId::new(), TeamId::new());
        let kept = KeptTabs::default();
        let key = |request: &RenderRequest| TabKey::of(request).expect("a key");
        let page = request("http://site.test/a", team);
        kept.put(key(&page), "tab").expect("open");
        let strangers = [
            request("http://site.test/a", other),
            request("https://site.test/a", team),
            request("http://site.test:81/a", team),
            request("http://www.site.test/a", team),
            RenderRequest { mobile: true, ..page.clone() },
            RenderRequest { want_raw: true, ..page.clone() },
            RenderRequest { location: Some(("DE".into(), Vec::new())), ..page.clone() },
            RenderRequest { certificates: Certificates::Any, ..page.clone() },
        ];
        for stranger in &strangers {
            assert_eq!(kept.take(&key(stranger)), None, "{stranger:?}");
        }
        assert_eq!(kept.take(&key(&request("http://site.test/b", team))), Some("tab"));
        assert_eq!(kept.take(&key(&page)), None);
    }

    #[test]
    fn a_page_that_leaves_more_than_can_be_cleared_has_a_tab_of_its_own() {
        use weir_fetch::CallerHeaders;
        let page = request("http://site.test/a", TeamId::new());
        let headers = [("x-key".to_owned(), "1".to_owned())].into();
        let own = [
            RenderRequest { team: None, ..page.clone() },
            RenderRequest { in_profile: true, ..page.clone() },
            RenderRequest { upstream: Some(0), ..page.clone() },
            RenderRequest { headers: CallerHeaders::new(Some("http://site.test/a"), &headers), ..page.clone() },
            RenderRequest { want_branding: true, ..page.clone() },
            request("http://me:secret@site.test/a", TeamId::new()),
            request("http://me@site.test/a", TeamId::new()),
            request("http://site.test/a#b", TeamId::new()),
        ];
        assert!(TabKey::of(&page).is_some());
        for request in &own {
            assert_eq!(TabKey::of(request), None, "{request:?}");
        }
    }

    #[test]
    fn a_site_is_known_from_its_second_page_on_and_a_closed_browser_keeps_nothing() {
        let key = TabKey::of(&request("http://site.test/a", TeamId::new())).expect("a key");
        let kept = KeptTabs::default();
        assert!(!kept.begin(&key));
        assert!(kept.begin(&key) && kept.begin(&key));
        let first = kept.put(key.clone(), 1).expect("open");
        kept.put(key.clone(), 2).expect("open");
        kept.put(key.clone(), 3).expect("open");
        assert_eq!(kept.surplus(2), [1]);
        assert_eq!(kept.expire(first), None);
        assert_eq!(kept.take(&key), Some(3));
        assert_eq!(kept.close(), [2]);
        assert_eq!(kept.put(key, 4), Err(4));
    }
}
