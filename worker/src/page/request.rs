//! Where a page is asked for, through which proxy, and what goes along: as a fetch and as a rendering.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use url::Url;
use weir_shared::domain::location::Location;
use weir_shared::domain::scrape::{Format, ScrapeOptions};
use weir_shared::domain::target::fetch_url;
use weir_shared::error_code::ErrorCode;
use weir_shared::store::contents::cache::Found;
use weir_shared::store::work::jobs::JobSpec;
use weir_shared::store::work::page::rows::Claimed;
use weir_shared::time::Timestamp;

use super::error::PageError;
use super::task::PageTask;
use crate::browser::{Acting, RenderRequest, ScreenshotRequest, languages};
use crate::fetch::{CallerHeaders, Chosen, FetchRequest, ProxyKind, ProxyPools, ProxyUrl};

/// Said of a page that nobody named, when there are headers for those that somebody did.
const UNNAMED: &str = "The request's headers were not sent: they go to the origins of the URLs that it names, and this page's is none of them.";

/// Through which of the operator's proxies a page is asked for, if through any.
pub struct ProxyRoute {
    /// `None`: directly.
    pub chosen: Option<Chosen>,
    /// As clients know it: `basic` or `stealth`.
    pub proxy_used: &'static str,
    /// What the caller should know: it is not the proxy that was asked for.
    pub warning: Option<&'static str>,
}

impl ProxyRoute {
    /// A route of the wanted kind, or the next best, for what appears from `location`. `avoid`: places of proxies that
    /// have failed for it.
    pub fn choose(proxies: &ProxyPools, location: Option<&Location>, kind: ProxyKind, avoid: &[usize]) -> Self {
        let country = location.map(|location| location.country.as_str());
        let is_enhanced = kind == ProxyKind::Enhanced && proxies.has(kind);
        let chosen = proxies.choose(if is_enhanced { kind } else { ProxyKind::Basic }, country, avoid);
        let warning = if kind == ProxyKind::Enhanced && !is_enhanced {
            Some("No enhanced proxy is configured (WEIR_PROXY_ENHANCED); the page was asked for without one.")
        } else if chosen.as_ref().is_some_and(|chosen| chosen.is_elsewhere) {
            Some("No proxy in the asked country is configured or at hand; another was used.")
        } else {
            None
        };
        Self { chosen, proxy_used: if is_enhanced { "stealth" } else { "basic" }, warning }
    }

    /// The place of its proxy among the operator's; `None`: directly.
    pub fn place(&self) -> Option<usize> {
        self.chosen.as_ref().map(|chosen| chosen.place)
    }
}

/// Where a page comes from whose site is not asked.
#[derive(Debug, Clone)]
pub struct Stored {
    /// When it was stored.
    pub at: Timestamp,
    /// What its content is known by.
    pub digest: String,
}

/// Where a page is asked for, and how.
pub struct PageRequest {
    pub url: Url,
    pub route: ProxyRoute,
    /// Everything that came over TLS so far came over certificates that verify.
    pub is_trusted: bool,
    /// What the caller should know, beyond what the route says.
    pub warnings: Vec<String>,
    /// What the caller gave to be sent along, and where it may go.
    caller: CallerHeaders,
    /// The caller's headers went along with the first request.
    begins_at_home: bool,
    /// The site is not asked: the page was stored.
    pub stored: Option<Stored>,
}

impl PageRequest {
    /// For a claimed page, by a route.
    ///
    /// # Errors
    /// When the address cannot be asked for.
    pub fn new(page: &Claimed, spec: &JobSpec, route: ProxyRoute) -> Result<Self, PageError> {
        let url =
            fetch_url(&spec.asked(&page.url)).map_err(|_| PageError::last(ErrorCode::Site, "The URL is not valid."))?;
        let caller = CallerHeaders::new(spec.named(&page.url), &spec.options.headers);
        let begins_at_home = caller.has_secrets_for(&url);
        Ok(Self { url, route, is_trusted: true, warnings: Vec::new(), caller, begins_at_home, stored: None })
    }

    /// For a page that was stored, as it was asked for then.
    ///
    /// # Errors
    /// As for [`PageRequest::new`].
    pub fn of_stored(task: &PageTask, found: &Found) -> Result<Self, PageError> {
        let route = ProxyRoute { chosen: None, proxy_used: "basic", warning: None };
        let request = Self::new(&task.page, &task.spec, route)?;
        let url = found.head.asked.as_ref().unwrap_or(&found.head.url).clone();
        let stored = Stored { at: found.stored_at, digest: found.digest().to_owned() };
        Ok(Self { url, stored: Some(stored), ..request })
    }

    /// Whether what the site sends now may be answered to others later, as far as the way to it tells.
    pub fn may_be_kept(&self, task: &PageTask) -> bool {
        self.stored.is_none() && self.route.warning.is_none() && task.keeps_pages()
    }

    /// The operator's proxy; `None`: directly.
    pub fn proxy(&self) -> Option<&ProxyUrl> {
        self.route.chosen.as_ref().map(|chosen| &chosen.proxy)
    }

    /// What the caller should know about a page that ended at `end`.
    pub fn warnings_at(&self, end: &Url) -> Vec<String> {
        let of_route = self.route.warning.iter().map(|text| (*text).to_owned());
        let of_headers = if self.caller.are_kept_back() {
            Some(UNNAMED.to_owned())
        } else if self.begins_at_home && !self.caller.names(end) {
            let end = end.origin().ascii_serialization();
            Some(format!(
                "The page led to {end}, where the request's headers were not sent: they go to the origin of the URL alone."
            ))
        } else {
            None
        };
        of_route.chain(self.warnings.iter().cloned()).chain(of_headers).collect()
    }

    /// The page without a browser.
    pub fn to_fetch<'a>(&'a self, options: &'a ScrapeOptions, deadline: Instant) -> FetchRequest<'a> {
        FetchRequest {
            url: &self.url,
            headers: &self.caller,
            accept_language: accept_language(options.location.as_ref()),
            mobile: options.mobile,
            certificates: options.certificates(),
            deadline,
            proxy: self.proxy(),
            sites: &options.sites,
        }
    }

    /// The page in a browser.
    pub fn to_render(&self, task: &PageTask, deadline: Instant) -> RenderRequest {
        let (options, is_kept) = (task.options(), self.may_be_kept(task));
        let screenshot = options.screenshot().map(|shot| ScreenshotRequest {
            full_page: shot.full_page,
            quality: shot.quality,
            viewport: shot.viewport.map(|v| (v.width, v.height)),
        });
        RenderRequest {
            url: self.url.clone(),
            headers: self.caller.clone(),
            wait_for: Duration::from_millis(u64::from(options.wait_for)),
            mobile: options.mobile,
            certificates: options.certificates(),
            block_ads: options.block_ads,
            location: options.location.as_ref().map(|l| (l.country.clone(), l.languages.clone())),
            screenshot,
            actions: options.actions.clone(),
            // Whoever asks for it later has it, too.
            want_raw: options.wants(&Format::RawHtml) || is_kept,
            want_branding: options.wants(&Format::Branding),
            deadline,
            in_profile: false,
            sites: options.sites.clone(),
            upstream: self.route.place(),
            team: (!options.zero_retention).then_some(task.page.team_id),
            holder: Some(task.holder()),
            acting: if options.actions.is_empty() { Acting::default() } else { Acting::with(Arc::new(task.clone())) },
        }
    }
}

/// `de-DE,de;q=0.9`: the languages in falling weight; those of the country when none are named.
pub fn accept_language(location: Option<&Location>) -> Option<String> {
    let location = location?;
    let languages = languages(&location.country, &location.languages);
    if languages.is_empty() {
        return None;
    }
    let weigh = |(i, tag): (usize, &String)| {
        if i == 0 { tag.clone() } else { format!("{tag};q=0.{}", 9_usize.saturating_sub(i - 1).max(1)) }
    };
    Some(languages.iter().take(10).enumerate().map(weigh).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_fall_in_weight() {
        let location = Location {
            country: "DE".to_owned(),
            languages: vec!["de-DE".to_owned(), "de".to_owned(), "en".to_owned()],
        };
        assert_eq!(accept_language(Some(&location)).as_deref(), Some("de-DE,de;q=0.9,en;q=0.8"));
        let country = Location { country: "FR".to_owned(), languages: Vec::new() };
        assert_eq!(accept_language(Some(&country)).as_deref(), Some("fr-FR,fr;q=0.9"));
    }
}
