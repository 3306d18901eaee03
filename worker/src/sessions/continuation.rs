//! What a session that continues a scrape begins with (spec 2.3, wire 8.4).

use std::time::Duration;

use tokio::time::Instant;
use url::Url;
use weir_shared::clock;
use weir_shared::domain::interact::ScrapeContext;
use weir_shared::domain::location::Location;
use weir_shared::domain::scrape::ScrapeOptions;
use weir_shared::domain::target::fetch_url;
use weir_shared::ids::PageId;
use weir_shared::store::sessions::scrape_context;

use super::resources::{OpenError, SessionResources};
use crate::browser::cdp::Cdp;
use crate::browser::{Companion, RenderError, RenderRequest, ScreenshotRequest};
use crate::fetch::CallerHeaders;

/// Bound on all of it, unless the scrape's wait leaves less than [`LOADING`] of it: a call without a timeout of its own waits
/// 32.5 s, and is to hear what came of it.
const PATIENCE: Duration = Duration::from_secs(30);
/// What is left for the page beside the scrape's wait. The API waits 40 s for the session.
const LOADING: Duration = Duration::from_secs(4);
/// How long a browser may take to put on its appearance.
const APPEARING: Duration = Duration::from_secs(10);
/// Longest wait that is repeated (wire 8.4).
const WAIT_FOR: Duration = Duration::from_secs(30);

/// A scrape that a session continues.
pub(super) struct Scrape {
    pub kept: ScrapeContext,
    /// As it was asked for.
    pub url: Url,
    /// Where it ended.
    pub end: Url,
    deadline: Instant,
}

impl Scrape {
    /// What is kept of the scrape of `page`.
    ///
    /// # Errors
    /// When nothing is, or it cannot be read.
    pub async fn load(resources: &SessionResources, page: PageId) -> Result<Self, OpenError> {
        let kept = scrape_context::load(&resources.db, &resources.blobs, page, resources.db.now()).await?;
        let gone = || OpenError::Replay("Replay context is unavailable. Rerun the scrape and try again.".to_owned());
        let kept = kept.ok_or_else(gone)?;
        let (Ok(url), Ok(end)) = (fetch_url(&kept.url), fetch_url(&kept.final_url)) else { return Err(gone()) };
        let deadline = clock::deadline(patience(&kept.options));
        Ok(Self { kept, url, end, deadline })
    }

    /// How its page is asked for once more.
    pub fn request(&self) -> RenderRequest {
        request(&self.kept, self.url.clone(), self.deadline)
    }
}

/// The wait of a scrape that is repeated.
fn wait_of(options: &ScrapeOptions) -> Duration {
    Duration::from_millis(u64::from(options.wait_for)).min(WAIT_FOR)
}

/// How long bringing it back may take.
fn patience(options: &ScrapeOptions) -> Duration {
    PATIENCE.max(wait_of(options) + LOADING)
}

/// Why a scrape was not brought back, in a sentence for the caller.
pub(super) fn not_replayed(error: &RenderError) -> OpenError {
    let text = "Failed to initialize browser session from the original scrape context";
    OpenError::Replay(format!("{text}: {}", error.message()))
}

/// Has a browser that has just started appear from a place.
///
/// # Errors
/// When it does not answer.
pub(super) async fn appear_from(location: &Location, cdp: Cdp) -> Result<Companion, OpenError> {
    let failed = |error: &dyn std::fmt::Display| OpenError::Browser(error.to_string());
    let nowhere = Url::parse("about:blank").map_err(|error| failed(&error))?;
    let request = RenderRequest {
        location: Some((location.country.clone(), location.languages.clone())),
        deadline: clock::deadline(APPEARING),
        ..RenderRequest::new(nowhere)
    };
    Companion::appear(cdp, &request).await.map_err(|error| failed(&error))
}

fn request(kept: &ScrapeContext, url: Url, deadline: Instant) -> RenderRequest {
    let options = &kept.options;
    let certificates = options.certificates();
    RenderRequest {
        wait_for: wait_of(options),
        mobile: options.mobile,
        certificates,
        location: options.location.as_ref().map(|place| (place.country.clone(), place.languages.clone())),
        // Its result is not wanted, only the size of its window.
        screenshot: options.screenshot().and_then(|shot| shot.viewport).map(|window| ScreenshotRequest {
            viewport: Some((window.width, window.height)),
            ..ScreenshotRequest::default()
        }),
        deadline,
        headers: CallerHeaders::new(kept.named.as_deref(), &options.headers),
        actions: options.actions.clone(),
        sites: options.sites.clone(),
        ..RenderRequest::new(url)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use weir_shared::domain::scrape::{Certificates, Format};
    use weir_shared::domain::screenshot::{Screenshot, Viewport};

    use super::*;

    #[test]
    fn a_page_that_does_not_come_back_is_told_to_the_call_that_asked_for_it() {
        let of = |wait_for| patience(&ScrapeOptions { wait_for, ..ScrapeOptions::default() });
        assert_eq!([0, 26_000, 30_000, 60_000].map(|wait| of(wait).as_secs()), [30, 30, 34, 34]);
    }

    #[test]
    fn the_page_appears_as_it_was_scraped() {
        let shot = Screenshot { viewport: Some(Viewport { width: 640, height: 480 }), ..Screenshot::default() };
        let headers = BTreeMap::from([("X-Own".to_owned(), "1".to_owned())]);
        let options = ScrapeOptions {
            formats: vec![Format::Markdown, Format::Screenshot(shot)],
            headers: headers.clone(),
            wait_for: 45_000,
            mobile: true,
            location: Some(Location { country: "DE".into(), languages: vec!["de".into()] }),
            ..ScrapeOptions::default()
        };
        let url = "http://site.test/";
        let named = Some(url.to_owned());
        let kept = ScrapeContext { url: url.into(), named, final_url: url.into(), options, is_enhanced: false };
        let made = request(&kept, url.parse().expect("url"), clock::instant());
        assert_eq!((made.wait_for, made.mobile), (WAIT_FOR, true));
        assert_eq!(made.certificates, Certificates::AnyWithoutSecrets);
        assert_eq!(made.location, Some(("DE".to_owned(), vec!["de".to_owned()])));
        assert_eq!(made.headers, CallerHeaders::new(Some(url), &headers));
        assert_eq!(made.screenshot.and_then(|shot| shot.viewport), Some((640, 480)));
    }
}
