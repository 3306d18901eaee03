//! Which pages may be answered without asking their sites, and what tells them apart (spec 4.7, wire 2.3, 3.2).
//!
//! What is kept is what a site has sent ([`Head`] and its [`Parts`]), under what influences fetching and nothing else:
//! every format is made of it when it is read. Requests that carry something of the caller's own to the site, or change
//! anything there, neither read what is kept nor add to it.
//!
//! ```text
//! page        what came, and what a browser has made of it
//! raw         a page of HTML that came over HTTP alone, where nobody has looked whether it needs a browser
//! drawn       rendered with this picture taken
//! branding    rendered with its looks read
//! ```
//!
//! Each of them has a second place for what answers that it is gone: that counts for an hour, and does not take the place
//! of the page.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use url::Url;

use super::scrape::{CacheOptions, Format, LOCKDOWN_MAX_AGE_MS, ProxyMode, ScrapeOptions};
use super::screenshot::Screenshot;
use super::target::{fetch_url, has_user};
use crate::clock::APART_MS;
use crate::ids::TeamId;
use crate::time::Timestamp;

/// How long a page that is gone (404, 410) counts, milliseconds.
const GONE_MS: i64 = 3_600_000;

/// What a page is known by: a digest of all that influences fetching it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CacheKey(pub String);

/// What to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    /// Any of these will do, if what is found there [serves](Head::serves) the request.
    pub keys: Vec<CacheKey>,
    /// When it was stored: not before, not after.
    pub from: Timestamp,
    pub to: Timestamp,
    /// What has expired by then does not count.
    pub now: Timestamp,
}

/// Which of a site's answers a version is.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
enum Which<'a> {
    Page,
    Raw,
    Drawn(&'a Screenshot),
    Branding,
}

/// Whether anything is looked for, for a request with these options. What is told of its changes must be new.
pub fn is_asked(options: &ScrapeOptions) -> bool {
    options.cache.is_asked() && options.change_tracking().is_none() && !is_sensitive(options)
}

/// Whether what a site answers to a request with these options may be of use to later ones.
pub fn is_kept(options: &ScrapeOptions) -> bool {
    options.cache.is_kept() && !is_sensitive(options)
}

/// What is looked for, for this request; `None`: nothing, because the caller does not want it or the options keep the page
/// out of it.
pub fn lookup(url: &str, options: &ScrapeOptions, team: TeamId, now: Timestamp) -> Option<Lookup> {
    if !is_asked(options) {
        return None;
    }
    let place = Place::of(url, options, team)?;
    let from = oldest(&options.cache, now);
    let to = match options.cache.min_age {
        Some(least) => now.plus_ms(-least.max(1).min(now.0)),
        None if options.cache.lockdown => Timestamp(i64::MAX),
        // Clocks of processes differ a little; what lies further ahead is of a clock that was wrong, and of no known age.
        None => now.plus_ms(APART_MS),
    };
    let which = match (options.screenshot(), options.wants(&Format::Branding)) {
        _ if options.wants(&Format::RawBase64) => vec![Which::Page, Which::Raw],
        (Some(shot), _) => vec![Which::Drawn(shot)],
        (None, true) => vec![Which::Branding],
        (None, false) => vec![Which::Page, Which::Raw],
    };
    let keys = which.iter().flat_map(|which| [place.key(*which, false), place.key(*which, true)]).collect();
    Some(Lookup { keys, from, to, now })
}

/// From when on what was stored is young enough.
pub fn oldest(options: &CacheOptions, now: Timestamp) -> Timestamp {
    match options.min_age {
        Some(_) => Timestamp(0),
        None => now.plus_ms(-options.max_age.min(now.0)),
    }
}

/// Everywhere that an answer to this request may be kept, however old it is.
pub fn all_places(url: &str, options: &ScrapeOptions, team: TeamId) -> Vec<CacheKey> {
    let Some(place) = Place::of(url, options, team) else { return Vec::new() };
    let drawn = options.screenshot().map(Which::Drawn);
    [Some(Which::Page), Some(Which::Raw), drawn].into_iter().flatten().map(|which| place.key(which, false)).collect()
}

/// Where an answer of a site is kept, and how long it counts, milliseconds; `None`: it is not.
pub fn places(url: &str, options: &ScrapeOptions, team: TeamId, head: &Head) -> Option<(Vec<CacheKey>, i64)> {
    let (is_gone, counts_ms) = match head.status {
        200 => (false, LOCKDOWN_MAX_AGE_MS),
        404 | 410 => (true, GONE_MS),
        _ => return None,
    };
    if !options.cache.is_kept() {
        return None;
    }
    let place = Place::of(url, options, team)?;
    let mut which = vec![if head.is_unseen { Which::Raw } else { Which::Page }];
    which.extend(options.screenshot().filter(|_| head.parts.shot.is_some()).map(Which::Drawn));
    which.extend(head.parts.branding.map(|_| Which::Branding));
    Some((which.into_iter().map(|which| place.key(which, is_gone)).collect(), counts_ms))
}

/// Whether the answer depends on something that only this caller has, or asking changes something at the site.
fn is_sensitive(options: &ScrapeOptions) -> bool {
    !options.headers.is_empty()
        || !options.actions.is_empty()
        || options.proxy == ProxyMode::Enhanced
        || options.profile.is_some()
        || options.upload.is_some()
        || options.zero_retention && !options.cache.lockdown
}

/// A way of asking for a page, as text.
struct Place(Vec<u8>);

impl Place {
    /// `None`: what is asked for so is not kept.
    fn of(url: &str, options: &ScrapeOptions, team: TeamId) -> Option<Self> {
        if is_sensitive(options) {
            return None;
        }
        let url = normal(fetch_url(url).ok()?);
        // Others must not even learn that it was asked for: it holds words of the caller's own.
        let is_private = has_user(&url) || !options.sites.is_empty();
        let way = (
            2,
            is_private.then_some(team),
            url.as_str(),
            options.mobile,
            &options.location,
            options.block_ads,
            options.wait_for,
            options.skip_tls_verification,
            &options.sites,
        );
        serde_json::to_vec(&way).ok().map(Self)
    }

    fn key(&self, which: Which<'_>, is_gone: bool) -> CacheKey {
        let mut digest = Sha256::new();
        digest.update(&self.0);
        digest.update(serde_json::to_vec(&(which, is_gone)).unwrap_or_default());
        CacheKey(short(digest))
    }
}

/// A digest as text: 192 bits of it, because every row has several.
pub fn short(digest: Sha256) -> String {
    URL_SAFE_NO_PAD.encode(&digest.finalize()[..24])
}

/// A fragment is for the reader, unless the page's scripts take it for a path.
fn normal(mut url: Url) -> Url {
    if !url.fragment().is_some_and(|fragment| fragment.starts_with(['/', '!'])) {
        url.set_fragment(None);
    }
    url
}

/// What is known of a site's answer besides its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Head {
    /// Where it ended, after redirects.
    pub url: Url,
    /// Where it was asked for last before those, where that is another address: a page may have sent its readers on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub asked: Option<Url>,
    pub status: u16,
    /// The header as sent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub content_type: Option<String>,
    /// The charset of the header.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub charset: Option<String>,
    /// The time zone that a browser has shown.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timezone: Option<String>,
    /// Nobody has looked whether it needs a browser.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub is_unseen: bool,
    pub parts: Parts,
}

/// The lengths of a content's parts, bytes, in their order. `None`: it has no such part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Parts {
    /// The body of the answer, its content codings undone; what a browser was sent is text.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub body: Option<usize>,
    /// The document after its scripts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dom: Option<usize>,
    /// The picture, as a data URI.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shot: Option<usize>,
    /// What the page looks like, JSON.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub branding: Option<usize>,
}

impl Parts {
    /// All of them, in their order.
    pub fn all(&self) -> [Option<usize>; 4] {
        [self.body, self.dom, self.shot, self.branding]
    }
}

impl Head {
    /// Whether a browser has rendered it.
    pub fn is_rendered(&self) -> bool {
        self.parts.dom.is_some()
    }

    /// Whether it has what these options ask for.
    pub fn serves(&self, options: &ScrapeOptions) -> bool {
        if options.wants(&Format::RawBase64) {
            return !self.is_rendered();
        }
        let has_raw = self.parts.body.is_some() || !options.wants(&Format::RawHtml);
        let has_shot = self.parts.shot.is_some() || options.screenshot().is_none();
        let has_branding = self.parts.branding.is_some() || !options.wants(&Format::Branding);
        has_raw && has_shot && has_branding
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::domain::action::Action;
    use crate::domain::scrape::{ChangeTracking, JsonFormat, MAX_AGE_MS};

    const NOW: Timestamp = Timestamp(1_700_000_000_000);

    fn with(change: impl FnOnce(&mut ScrapeOptions)) -> ScrapeOptions {
        let mut options = ScrapeOptions::default();
        change(&mut options);
        options
    }

    fn head(change: impl FnOnce(&mut Head)) -> Head {
        let url = Url::parse("https://a.com/x").unwrap();
        let mut head = Head {
            asked: None,
            url,
            status: 200,
            content_type: None,
            charset: None,
            timezone: None,
            is_unseen: false,
            parts: Parts { body: Some(3), ..Parts::default() },
        };
        change(&mut head);
        head
    }

    /// Whether what `stored` asked for is found by `asked`.
    fn finds(stored: (&str, &ScrapeOptions), head: &Head, asked: (&str, &ScrapeOptions)) -> bool {
        let team = TeamId::new();
        let Some((places, _)) = places(stored.0, stored.1, team, head) else { return false };
        let found = lookup(asked.0, asked.1, team, NOW).unwrap();
        head.serves(asked.1) && places.iter().any(|place| found.keys.contains(place))
    }

    #[test]
    fn what_influences_fetching_changes_the_key_and_nothing_else_does() {
        let plain = ScrapeOptions::default();
        let is_found =
            |url: &str, options: &ScrapeOptions| finds(("https://a.com/x?b=1", &plain), &head(|_| {}), (url, options));
        for (url, options) in [
            ("https://A.com/x?b=1#part", plain.clone()),
            ("https://a.com/x?b=1", with(|o| o.timeout = 5_000)),
            ("https://a.com/x?b=1", with(|o| o.cache.max_age = 5)),
            ("https://a.com/x?b=1", with(|o| o.tls_consent = true)),
            ("https://a.com/x?b=1", with(|o| o.cache.store_in_cache = false)),
            ("https://a.com/x?b=1", with(|o| (o.cache.lockdown, o.zero_retention) = (true, true))),
            ("https://a.com/x?b=1", with(|o| o.formats = vec![Format::Html, Format::Links, Format::RawHtml])),
            ("https://a.com/x?b=1", with(|o| o.formats = vec![Format::RawBase64])),
            ("https://a.com/x?b=1", with(|o| o.formats = vec![Format::Json(JsonFormat::default())])),
            ("https://a.com/x?b=1", with(|o| o.only_main_content = false)),
            ("https://a.com/x?b=1", with(|o| o.proxy = ProxyMode::Basic)),
        ] {
            assert!(is_found(url, &options), "{url} {options:?}");
        }
        for (url, options) in [
            ("http://a.com/x?b=1", plain.clone()),
            ("https://a.com/x?b=2", plain.clone()),
            ("https://a.com/x?b=1#/part", plain.clone()),
            ("https://a.com/x?b=1", with(|o| o.mobile = true)),
            ("https://a.com/x?b=1", with(|o| o.wait_for = 5)),
            ("https://a.com/x?b=1", with(|o| o.block_ads = false)),
            ("https://a.com/x?b=1", with(|o| o.skip_tls_verification = false)),
            ("https://a.com/x?b=1", with(|o| o.formats = vec![Format::Screenshot(Screenshot::default())])),
            ("https://a.com/x?b=1", with(|o| o.formats = vec![Format::Branding])),
        ] {
            assert!(!is_found(url, &options), "{url} {options:?}");
        }
    }

    #[test]
    fn a_drawn_page_serves_whoever_wants_what_it_has() {
        let plain = ScrapeOptions::default();
        let drawn = with(|o| o.formats = vec![Format::Screenshot(Screenshot::default())]);
        let other = Screenshot { full_page: true, ..Screenshot::default() };
        let other = with(|o| o.formats = vec![Format::Screenshot(other)]);
        let raw = with(|o| o.formats = vec![Format::RawHtml]);
        let base64 = with(|o| o.formats = vec![Format::RawBase64]);
        let rendered = head(|h| h.parts = Parts { dom: Some(5), shot: Some(9), ..Parts::default() });
        let finds = |head: &Head, stored: &ScrapeOptions, asked| finds(("a.com", stored), head, ("a.com", asked));
        for (asked, is_found) in [(&plain, true), (&drawn, true), (&other, false), (&raw, false), (&base64, false)] {
            assert_eq!(finds(&rendered, &drawn, asked), is_found, "{asked:?}");
        }
        // One that nobody has looked at is found by both, and what is gone is found too.
        let unseen = head(|h| h.is_unseen = true);
        assert!(finds(&unseen, &base64, &plain) && finds(&unseen, &base64, &base64));
        let gone = head(|h| h.status = 404);
        assert!(finds(&gone, &plain, &raw));
        assert_ne!(
            places("a.com", &plain, TeamId::new(), &gone).unwrap().0,
            places("a.com", &plain, TeamId::new(), &head(|_| {})).unwrap().0,
        );
        for (status, counts_ms) in [(200, Some(LOCKDOWN_MAX_AGE_MS)), (410, Some(3_600_000)), (500, None), (403, None)]
        {
            let kept = places("a.com", &plain, TeamId::new(), &head(|h| h.status = status));
            assert_eq!(kept.map(|kept| kept.1), counts_ms, "{status}");
        }
    }

    #[test]
    fn what_is_a_callers_own_is_not_kept_or_stays_with_its_team() {
        let (one, other) = (TeamId::new(), TeamId::new());
        let is_kept = |options: &ScrapeOptions| places("https://a.com", options, one, &head(|_| {})).is_some();
        for options in [
            with(|o| _ = o.headers.insert("Cookie".into(), "a=1".into())),
            with(|o| o.actions = vec![Action::Scrape]),
            with(|o| o.proxy = ProxyMode::Enhanced),
            with(|o| o.zero_retention = true),
        ] {
            assert!(!is_kept(&options), "{options:?}");
            assert_eq!(lookup("https://a.com", &options, one, NOW), None);
        }
        // What is told of its changes is new, and others may have it.
        let tracked = with(|o| o.formats = vec![Format::ChangeTracking(ChangeTracking::default())]);
        assert!(is_kept(&tracked) && lookup("https://a.com", &tracked, one, NOW).is_none());
        let plain = ScrapeOptions::default();
        let keys = |url: &str, options: &ScrapeOptions, team| lookup(url, options, team, NOW).unwrap().keys;
        assert_eq!(keys("https://a.com", &plain, one), keys("https://a.com", &plain, other));
        assert_ne!(keys("https://u:p@a.com", &plain, one), keys("https://u:p@a.com", &plain, other));
        let blocks = with(|o| o.sites.blocked = vec!["b.com".to_owned()]);
        assert_ne!(keys("https://a.com", &blocks, one), keys("https://a.com", &blocks, other));
    }

    #[test]
    fn ages_become_times() {
        let (team, now) = (TeamId::new(), Timestamp(1_000_000_000_000));
        let times = |options: &ScrapeOptions| lookup("a.com", options, team, now).map(|l| (l.from.0, l.to.0));
        assert_eq!(times(&ScrapeOptions::default()), Some((now.0 - MAX_AGE_MS, now.0 + APART_MS)));
        assert_eq!(times(&with(|o| o.cache.max_age = 0)), None);
        assert_eq!(times(&with(|o| o.cache.max_age = i64::MAX)), Some((0, now.0 + APART_MS)));
        assert_eq!(times(&with(|o| o.cache.min_age = Some(1))), Some((0, now.0 - 1)));
        assert_eq!(times(&with(|o| (o.cache.min_age, o.cache.max_age) = (Some(i64::MAX), 0))), Some((0, 0)));
        assert!(ScrapeOptions::default().cache.is_kept());
        for options in [
            with(|o| o.cache.store_in_cache = false),
            with(|o| o.cache.lockdown = true),
            with(|o| o.cache.min_age = Some(1)),
        ] {
            assert!(!options.cache.is_kept());
        }
    }

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let head = head(|h| (h.charset, h.is_unseen) = (Some("latin1".to_owned()), true));
        let text = serde_json::to_string(&head).unwrap();
        assert_eq!(serde_json::from_str::<Head>(&text).unwrap(), head);
        assert!(!text.contains("timezone") && !text.contains("shot"), "{text}");
    }
}
