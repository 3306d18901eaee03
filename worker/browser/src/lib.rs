//! The browser engine of scraping: a pool of Chromium processes that renders pages.
//!
//! ```text
//! BrowserPool (pool)   N browsers x M pages, supervised; pages under which one was lost: alone
//!   BrowserProcess     one browser: its box (from [`weir_sandbox`]), connection, spare page, health
//!     Cdp (cdp)        the protocol's client
//!   render (page)      one page
//!     tab              where: in a context of its own
//!     kept             ... or in that of the last page of its site, cleared
//!     wait, early.js   when a page has come to rest
//!     appearance       how it appears
//!     actions, shot    what is done on it (acting: once), pictures of it
//!     intercept, locale, user_agent, egress   requests and certificates, place, name, refusals
//!     consent          pop-ups that pictures do not show
//!   outgrown           ends the page that takes too much memory
//!   flooding           ends the page that keeps the browser from all others
//! solo                 a page in a browser of its own, on a profile
//! companion            a scraped page once more, in the browser of a session
//! brought              cookies of a request, which no profile keeps
//! ```
//!
//! Pages are hostile: Chromium runs in a box, its own sandbox on inside, reaches the network through the egress
//! proxy alone, and nothing of one page survives into another.
//!
//! # What of `headless_chrome` is used
//!
//! Its generated types of the protocol: names of methods, parameters and answers. How a browser is started and how it is
//! talked to are ours:
//!
//! - It starts Chromium as a child of the worker, with the worker's rights, and connects to a port of the host. A page is
//!   hostile, so its browser starts in a box that has neither the host's files nor its network; the debugging port is on
//!   the box's loopback, reached by a socket that the box hands out ([`weir_sandbox`]).
//! - Its transport blocks a thread for each call and needs about 115 ms for one, measured; [`cdp`] needs 0.3 ms and sends
//!   many calls before it waits for the first answer.

use std::time::Duration;

use tokio::time::Instant;
use url::Url;
use weir_fetch::CallerHeaders;
use weir_shared::domain::action::{Action, ActionResults};
use weir_shared::domain::scrape::Certificates;
use weir_shared::domain::site_rules::SiteRules;
use weir_shared::guests::Holder;
use weir_shared::ids::TeamId;

mod acting;
mod actions;
mod appearance;
mod branding;
mod brought;
mod browser_process;
pub mod cdp;
mod companion;
mod consent;
mod egress;
mod error;
mod flooding;
mod intercept;
mod kept;
mod locale;
mod outgrown;
mod page;
mod pool;
mod shot;
mod solo;
mod tab;
mod user_agent;
pub mod wait;

pub use acting::{Acting, Permit};
pub use brought::Brought;
pub use companion::Companion;
pub use error::{FileAt, LedFile, RenderError};
pub use locale::languages;
pub use pool::{BrowserConfig, BrowserPool, PoolStats};
pub use solo::Solo;

/// One page to render.
#[derive(Debug, Clone)]
pub struct RenderRequest {
    /// Where; `http` or `https`.
    pub url: Url,
    /// Further headers. They go to the origins that the caller named and to no other; `User-Agent` and
    /// `Accept-Language` replace the browser's, `Cookie` fills its cookie store.
    pub headers: CallerHeaders,
    /// Wait after the page has come to rest.
    pub wait_for: Duration,
    /// Appear as a phone.
    pub mobile: bool,
    /// Which certificates are good enough.
    pub certificates: Certificates,
    /// Refuse ads and trackers, and hide consent pop-ups in the screenshot.
    pub block_ads: bool,
    /// Country (ISO 3166 alpha-2) and languages to appear from.
    pub location: Option<(String, Vec<String>)>,
    /// Picture to take. Without one, without branding and without actions that take some, pictures, media and fonts are
    /// not loaded.
    pub screenshot: Option<ScreenshotRequest>,
    /// What is done on the page before it is read.
    pub actions: Vec<Action>,
    /// Whether to keep the main document as it was served.
    pub want_raw: bool,
    /// Whether to read what the page looks like from its computed styles.
    pub want_branding: bool,
    /// When to give up, waiting for a free page included.
    pub deadline: Instant,
    /// Go through this one of the operator's proxies, by its place among them.
    pub upstream: Option<usize>,
    /// The page opens in the browser's own profile instead of a context that is thrown away.
    pub in_profile: bool,
    /// Sites that neither the page nor its parts may ask.
    pub sites: SiteRules,
    /// Whose page it is, if its tab may go on to the next page of that team and site; `None`: the tab ends with the page.
    pub team: Option<TeamId>,
    /// Whose page it is among those that want one; `None`: it waits for its turn however long others take.
    pub holder: Option<Holder>,
    /// Whether its actions may begin, and have.
    pub acting: Acting,
}

impl RenderRequest {
    /// Whether pictures of the page are wanted, or what depends on them.
    fn shows_pictures(&self) -> bool {
        self.screenshot.is_some() || self.want_branding || self.actions.iter().any(Action::shows_pictures)
    }

    /// Whether it is rendered once more with ads after this: they have kept its page away, and nothing has had its effect.
    fn wants_ads_after(&self, error: &RenderError) -> bool {
        self.block_ads && error.is_of_ads() && !self.acting.has_begun()
    }

    /// A request with the defaults of a scrape and 60 s.
    pub fn new(url: Url) -> Self {
        Self {
            url,
            headers: CallerHeaders::default(),
            wait_for: Duration::ZERO,
            mobile: false,
            certificates: Certificates::Trusted,
            block_ads: false,
            location: None,
            screenshot: None,
            actions: Vec::new(),
            want_raw: false,
            want_branding: false,
            deadline: weir_shared::clock::deadline(Duration::from_secs(60)),
            upstream: None,
            in_profile: false,
            sites: SiteRules::default(),
            team: None,
            holder: None,
            acting: Acting::default(),
        }
    }
}

/// A picture to take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScreenshotRequest {
    /// The whole page instead of the window.
    pub full_page: bool,
    /// JPEG quality, 1 to 100; absent: PNG.
    pub quality: Option<u8>,
    /// Window size, CSS pixels; absent: that of the device.
    pub viewport: Option<(u32, u32)>,
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shot {
    /// The file, as base64.
    pub data: String,
    /// `image/png` or `image/jpeg`.
    pub mime: &'static str,
}

impl Shot {
    /// The picture as clients get it.
    pub fn data_uri(&self) -> String {
        format!("data:{};base64,{}", self.mime, self.data)
    }

    /// The same the other way round. `None`: it is no picture of ours.
    pub fn of_data_uri(uri: &str) -> Option<Self> {
        let (mime, data) = uri.strip_prefix("data:")?.split_once(";base64,")?;
        let mime = ["image/png", "image/jpeg"].into_iter().find(|known| *known == mime)?;
        Some(Self { data: data.to_owned(), mime })
    }
}

/// What came of a page.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// Where the page was in the end.
    pub url: Url,
    /// Status of the last document; 4xx and 5xx are documents like others.
    pub status: u16,
    /// Its content type, without parameters.
    pub content_type: Option<String>,
    /// The document after its scripts, open shadow roots flattened.
    pub html: String,
    /// The document as served, when asked for and still held by the browser.
    pub raw_html: Option<String>,
    /// When asked for.
    pub screenshot: Option<Shot>,
    /// What the page looks like, when asked for.
    pub branding: Option<serde_json::Value>,
    /// Of the request's actions, if it has any.
    pub actions: Option<ActionResults>,
    /// The time zone that the page was given.
    pub timezone: Option<String>,
    /// Everything that came over TLS came over certificates that verify.
    pub is_trusted: bool,
    /// Another page of its site was in the tab before.
    pub is_follower: bool,
}
