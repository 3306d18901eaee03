//! A claimed page together with its job and its worker: what every step from the request to the document works on.

use std::borrow::Cow;
use std::sync::Arc;

use url::Url;
use weir_shared::domain::cache;
use weir_shared::domain::scrape::{Format, ScrapeOptions};
use weir_shared::guests::{Holder, Urgency};
use weir_shared::store::work::jobs::JobSpec;
use weir_shared::store::work::page::rows::Claimed;
use weir_shared::traces::TraceParent;

use super::product::Harvest;
use super::steps::Attempted;
use crate::context::WorkerContext;

/// A claimed page with its job and its worker. Steps that compute take a copy to their own thread.
#[derive(Clone)]
pub struct PageTask {
    pub context: Arc<WorkerContext>,
    pub page: Claimed,
    pub spec: Arc<JobSpec>,
    /// How often its site has asked for a pause in this attempt.
    pub rests: u32,
    /// The attempt's span.
    pub trace: Option<TraceParent>,
    /// What is known of the attempt so far.
    pub attempted: Arc<Attempted>,
}

impl PageTask {
    /// What the caller asked for.
    pub fn options(&self) -> &ScrapeOptions {
        &self.spec.options
    }

    /// The address that it is asked for by, with the name and the password that its caller gave for it. What is kept of it goes
    /// by this one; what is answered and told of it, by [`Claimed::url`] without them.
    pub fn address(&self) -> Cow<'_, str> {
        self.spec.asked(&self.page.url)
    }

    /// Whose page it is, where teams share something.
    pub fn holder(&self) -> Holder {
        let urgency = if self.spec.kind.is_direct() { Urgency::Direct } else { Urgency::Background };
        (self.page.team_id, urgency)
    }

    /// Whether what sites send may be kept for later requests, as far as the options tell.
    pub fn keeps_pages(&self) -> bool {
        self.context.process.settings.cache_size > 0 && self.options().cache.is_kept()
    }

    /// Whether the page may be answered without asking its site.
    pub fn asks_store(&self) -> bool {
        self.context.process.settings.cache_size > 0 && cache::is_asked(self.options())
    }

    /// Whether what is made of a stored page at a cost may be kept with it. In lockdown nothing of the request is.
    pub fn keeps_derived(&self) -> bool {
        let options = self.options();
        let is_lasting = options.cache.store_in_cache && !options.cache.lockdown && !options.zero_retention;
        is_lasting && self.context.process.settings.cache_size > 0
    }

    /// Whether a file's text is to be made markdown: it is asked for, or something is read out of it.
    pub fn wants_markdown(&self) -> bool {
        self.options().wants(&Format::Markdown) || self.options().needs_text()
    }

    /// Where a file of a crawl leads; `None` when the page belongs to none.
    pub fn harvest(&self, url: &Url, links: Vec<String>) -> Option<Harvest> {
        self.spec.crawl.is_some().then(|| Harvest { url: url.clone(), canonical: None, links })
    }
}
