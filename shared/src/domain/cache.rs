//! Which pages may be answered from the cache, and what tells them apart (spec 4.7, wire 2.3, 3.2).
//!
//! What a page is known by is everything that was asked of it, so an option that is added later is part of it by
//! itself. Requests that carry something of the caller's own to the site, or change anything there, neither read the
//! cache nor write to it; a caller's own words in the request keep the page to its team.

use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use url::Url;

use super::price;
use super::scrape::{CacheOptions, Format, ProxyMode, ScrapeOptions};
use super::target::fetch_url;
use crate::ids::{PageId, TeamId};
use crate::time::Timestamp;

/// What a page is known by in the cache: a digest of all that was asked of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CacheKey(pub String);

/// What to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    pub key: CacheKey,
    /// When it was stored: not before, not after.
    pub from: Timestamp,
    pub to: Timestamp,
}

/// What is asked of the cache for this request; `None`: nothing, because the caller does not want it or the options
/// keep the page out of it.
pub fn lookup(url: &str, options: &ScrapeOptions, team: TeamId, now: Timestamp) -> Option<Lookup> {
    if !options.cache.is_asked() {
        return None;
    }
    let key = key(url, options, team)?;
    let (from, to) = match options.cache.min_age {
        Some(least) => (Timestamp(0), now.plus_ms(-least.max(1).min(now.0))),
        // No upper bound: a page with a time ahead of this clock is young enough, too.
        None => (now.plus_ms(-options.cache.max_age.min(now.0)), Timestamp(i64::MAX)),
    };
    Some(Lookup { key, from, to })
}

/// Whether the answer depends on something that only this caller has, or asking changes something at the site.
fn is_sensitive(options: &ScrapeOptions) -> bool {
    !options.headers.is_empty()
        || !options.actions.is_empty()
        || options.change_tracking().is_some()
        || options.proxy == ProxyMode::Enhanced
        || options.profile.is_some()
        || options.zero_retention && !options.cache.lockdown
}

/// Whether others must not even learn that it was asked for: it holds words of the caller's own.
fn is_private(url: &Url, options: &ScrapeOptions) -> bool {
    let is_common = |format: &Format| {
        matches!(
            format,
            Format::Markdown | Format::Html | Format::RawHtml | Format::Links | Format::Images | Format::Screenshot(_)
        )
    };
    !url.username().is_empty()
        || !options.sites.is_empty()
        || url.password().is_some()
        || !options.formats.iter().all(is_common)
}

/// What the page of this request is known by; `None`: its options keep it out of the cache.
pub fn key(url: &str, options: &ScrapeOptions, team: TeamId) -> Option<CacheKey> {
    if is_sensitive(options) {
        return None;
    }
    let mut url = fetch_url(url).ok()?;
    // A fragment is for the reader, unless the page's scripts take it for a path.
    if !url.fragment().is_some_and(|fragment| fragment.starts_with(['/', '!'])) {
        url.set_fragment(None);
    }
    let team = is_private(&url, options).then_some(team);
    let mut plain = ScrapeOptions {
        zero_retention: false,
        trace_parent: None,
        // What an untrusted certificate gave is not kept, whoever accepted it.
        tls_consent: false,
        cache: CacheOptions::default(),
        timeout: ScrapeOptions::default().timeout,
        ..options.clone()
    };
    plain.formats.sort_by_cached_key(|format| serde_json::to_string(format).unwrap_or_default());
    let text = serde_json::to_vec(&(1, team, url.as_str(), &plain)).ok()?;
    Some(CacheKey(hex::encode(Sha256::digest(text))))
}

/// What of a cached document is the new request's own.
#[derive(Debug, Clone, Copy)]
pub struct Hit<'a> {
    /// As requested now.
    pub url: &'a str,
    pub page: PageId,
    pub cached_at: Timestamp,
    pub lockdown: bool,
    /// Milliseconds that a limit made it wait.
    pub limited_ms: Option<i64>,
}

/// A cached document as the answer to another request, with its price: that of a fresh one.
///
/// # Errors
/// When the stored text is not a document.
pub fn answer(document: &RawValue, hit: Hit<'_>) -> serde_json::Result<(BTreeMap<String, Box<RawValue>>, i64)> {
    let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(document.get())?;
    let mut meta: Map<String, Value> = match fields.get("metadata") {
        Some(text) => serde_json::from_str(text.get())?,
        None => Map::new(),
    };
    let fresh = meta.get("creditsUsed").and_then(Value::as_i64).unwrap_or(1);
    let credits = if hit.lockdown { price::LOCKDOWN_HIT } else { fresh };
    for (name, value) in [
        ("sourceURL", json!(hit.url)),
        ("scrapeId", json!(hit.page)),
        ("cacheState", json!("hit")),
        ("cachedAt", json!(hit.cached_at.to_iso())),
        ("creditsUsed", json!(credits)),
        ("concurrencyLimited", json!(hit.limited_ms.is_some())),
    ] {
        meta.insert(name.to_owned(), value);
    }
    match hit.limited_ms {
        Some(waited) => meta.insert("concurrencyQueueDurationMs".to_owned(), json!(waited)),
        None => meta.remove("concurrencyQueueDurationMs"),
    };
    fields.insert("metadata".to_owned(), to_raw_value(&meta)?);
    Ok((fields, credits))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::domain::action::Action;
    use crate::domain::scrape::{ChangeTracking, MAX_AGE_MS};
    use crate::domain::screenshot::Screenshot;

    fn with(change: impl FnOnce(&mut ScrapeOptions)) -> ScrapeOptions {
        let mut options = ScrapeOptions::default();
        change(&mut options);
        options
    }

    #[test]
    fn what_changes_the_result_changes_the_key_and_nothing_else_does() {
        let team = TeamId::new();
        let plain = ScrapeOptions::default();
        let key_of = |url: &str, options: &ScrapeOptions| key(url, options, team).unwrap();
        let own = key_of("https://a.com/x?b=1", &plain);
        for (url, options) in [
            ("https://A.com/x?b=1#part", plain.clone()),
            ("https://a.com/x?b=1", with(|o| o.timeout = 5_000)),
            ("https://a.com/x?b=1", with(|o| o.cache.max_age = 5)),
            ("https://a.com/x?b=1", with(|o| o.tls_consent = true)),
            ("https://a.com/x?b=1", with(|o| o.cache.store_in_cache = false)),
            ("https://a.com/x?b=1", with(|o| (o.cache.lockdown, o.zero_retention) = (true, true))),
        ] {
            assert_eq!(key_of(url, &options), own, "{url} {options:?}");
        }
        let two = |a, b| with(|o| o.formats = vec![a, b]);
        assert_eq!(
            key_of("a.com", &two(Format::Markdown, Format::Links)),
            key_of("http://a.com/", &two(Format::Links, Format::Markdown))
        );
        for (url, options) in [
            ("http://a.com/x?b=1", plain.clone()),
            ("https://a.com/x?b=2", plain.clone()),
            ("https://a.com/x?b=1#/part", plain.clone()),
            ("https://a.com/x?b=1", with(|o| o.mobile = true)),
            ("https://a.com/x?b=1", with(|o| o.wait_for = 5)),
            ("https://a.com/x?b=1", with(|o| o.only_main_content = false)),
            ("https://a.com/x?b=1", with(|o| o.formats = vec![Format::Screenshot(Screenshot::default())])),
        ] {
            assert_ne!(key_of(url, &options), own, "{url} {options:?}");
        }
    }

    #[test]
    fn what_is_a_callers_own_is_not_cached_or_stays_with_its_team() {
        let (one, other) = (TeamId::new(), TeamId::new());
        for options in [
            with(|o| _ = o.headers.insert("Cookie".into(), "a=1".into())),
            with(|o| o.actions = vec![Action::Scrape]),
            with(|o| o.proxy = ProxyMode::Enhanced),
            with(|o| o.formats = vec![Format::Markdown, Format::ChangeTracking(ChangeTracking::default())]),
            with(|o| o.zero_retention = true),
        ] {
            assert_eq!(key("https://a.com", &options, one), None, "{options:?}");
            assert_eq!(lookup("https://a.com", &options, one, Timestamp(1_700_000_000_000)), None);
        }
        let plain = ScrapeOptions::default();
        assert_eq!(key("https://a.com", &plain, one), key("https://a.com", &plain, other));
        assert_ne!(key("https://u:p@a.com", &plain, one), key("https://u:p@a.com", &plain, other));
    }

    #[test]
    fn ages_become_times() {
        let (team, now) = (TeamId::new(), Timestamp(1_000_000_000_000));
        let times = |options: &ScrapeOptions| lookup("a.com", options, team, now).map(|l| (l.from.0, l.to.0));
        assert_eq!(times(&ScrapeOptions::default()), Some((now.0 - MAX_AGE_MS, i64::MAX)));
        assert_eq!(times(&with(|o| o.cache.max_age = 0)), None);
        assert_eq!(times(&with(|o| o.cache.max_age = i64::MAX)), Some((0, i64::MAX)));
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
    fn a_hit_is_the_new_requests_own_document() {
        let stored = json!({"markdown": "# x\n", "metadata": {
            "title": "X", "url": "https://a.com/", "sourceURL": "a.com", "scrapeId": "old", "creditsUsed": 3,
            "cacheState": "miss", "concurrencyLimited": true, "concurrencyQueueDurationMs": 5,
        }});
        let hit = Hit {
            url: "https://a.com",
            page: PageId::new(),
            cached_at: Timestamp(0),
            lockdown: false,
            limited_ms: None,
        };
        let raw = to_raw_value(&stored).unwrap();
        let (fields, credits) = answer(&raw, hit).unwrap();
        let expected = json!({"markdown": "# x\n", "metadata": {
            "title": "X", "url": "https://a.com/", "sourceURL": "https://a.com", "scrapeId": hit.page, "creditsUsed": 3,
            "cacheState": "hit", "cachedAt": "1970-01-01T00:00:00.000Z", "concurrencyLimited": false,
        }});
        assert_eq!((serde_json::to_value(&fields).unwrap(), credits), (expected, 3));
        let (fields, credits) = answer(&raw, Hit { lockdown: true, limited_ms: Some(7), ..hit }).unwrap();
        let meta: Value = serde_json::from_str(fields["metadata"].get()).unwrap();
        assert_eq!((credits, &meta["creditsUsed"]), (5, &json!(5)));
        assert_eq!(meta["concurrencyQueueDurationMs"], 7);
    }
}
