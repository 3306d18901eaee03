//! A page's document before it is whole, and the step that makes it whole: metadata, price, packing.

use serde_json::{Value, json};
use url::Url;
use weir_shared::domain::action::ActionResults;
use weir_shared::domain::document::Document;
use weir_shared::domain::pdf_blocks;
use weir_shared::domain::price::{self, Bill};
use weir_shared::domain::scrape::{Format, ScrapeOptions};
use weir_shared::domain::target::without_user;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::MonitorId;
use weir_shared::store::contents::derived::{Derived, Piece};
use weir_shared::store::contents::snapshots::{Packed, Snapshot};
use weir_shared::store::work::documents;
use weir_shared::time::Timestamp;

use super::error::PageError;
use super::product::{Harvest, Product};
use super::request::{PageRequest, Stored};
use super::sent::Sent;
use super::task::PageTask;
use crate::learn::Source;

/// Everything of a site's response that goes into the document besides the extracted parts.
pub struct SiteResponse {
    /// After redirects.
    pub url: Url,
    pub status: u16,
    pub content_type: Option<String>,
    pub timezone: Option<String>,
    pub screenshot: Option<String>,
    pub branding: Option<Value>,
    pub actions: Option<ActionResults>,
    pub warnings: Vec<String>,
    /// As clients know it: `basic` or `stealth`.
    pub proxy_used: &'static str,
    /// Everything that came over TLS came over certificates that verify.
    pub is_trusted: bool,
    /// The site was not asked: the page was stored.
    pub stored: Option<Stored>,
    /// What is kept for later requests, if all of it came as it should.
    pub sent: Option<Sent>,
    /// What was made of it at a cost, and may be kept with it.
    pub derived: Vec<Piece>,
}

impl SiteResponse {
    /// What a request has led to, without what only browsers bring.
    pub fn new(request: &PageRequest, url: Url, status: u16, content_type: Option<String>) -> Self {
        Self {
            status,
            content_type,
            timezone: None,
            screenshot: None,
            branding: None,
            actions: None,
            warnings: request.warnings_at(&url),
            proxy_used: request.route.proxy_used,
            is_trusted: request.is_trusted,
            stored: request.stored.clone(),
            sent: None,
            derived: Vec::new(),
            url,
        }
    }

    /// A file that the caller has sent.
    pub fn of_file(url: Url, content_type: Option<String>) -> Self {
        Self {
            url,
            status: 200,
            content_type,
            timezone: None,
            screenshot: None,
            branding: None,
            actions: None,
            warnings: Vec::new(),
            proxy_used: "basic",
            is_trusted: true,
            stored: None,
            sent: None,
            derived: Vec::new(),
        }
    }
}

/// A document before it is whole. Its markdown is there whenever something is made of it, asked for or not.
pub struct Draft {
    pub response: SiteResponse,
    pub document: Document,
    /// What the page says of itself as data.
    pub structured: Option<Value>,
    pub harvest: Option<Harvest>,
    /// The page's HTML, where it may be read by what was learned.
    pub source: Option<Source>,
    /// What is delivered so far.
    pub bill: Bill,
    /// What its changes are told from the next time.
    pub tracked: Option<Box<Tracked>>,
}

/// What a page's changes are told from the next time, before what it was made of is known.
pub struct Tracked {
    pub key: String,
    pub scraped_at: Timestamp,
    pub monitor: Option<MonitorId>,
    pub snapshot: Snapshot,
    /// The text is not this page's but that of an earlier one, which is as good as the same.
    pub is_of_before: bool,
}

impl Tracked {
    /// Packs it for a page made of the content with this digest. Computes.
    fn pack(mut self, digest: Option<&str>) -> Result<Packed, PageError> {
        if !self.is_of_before {
            self.snapshot.version = digest.map(str::to_owned);
        }
        let packed = Packed::new(self.key, self.scraped_at, &self.snapshot);
        let failed = |_| PageError::again(ErrorCode::Unknown, "The page's history could not be written.");
        Ok(packed.map_err(failed)?.of_monitor(self.monitor))
    }
}

/// What was made of a page.
pub enum Made {
    /// All that was asked for.
    Whole(Box<Product>),
    /// A language model is still to read it, or its changes are to be told.
    Unread(Box<Draft>),
}

/// Whether a draft with these options is the whole document.
fn is_whole(options: &ScrapeOptions) -> bool {
    !options.needs_text()
        && !options.only_clean_content
        && options.change_tracking().is_none()
        && options.redact_pii.is_none()
}

impl Draft {
    /// A page with what was made of it and nothing else.
    pub fn new(mut response: SiteResponse, mut document: Document, options: &ScrapeOptions) -> Self {
        document.actions = response.actions.take();
        document.branding = response.branding.take();
        for (format, is_there) in
            [(Format::Product, document.product.is_some()), (Format::Menu, document.menu.is_some())]
        {
            if options.wants(&format) && !is_there {
                response.warnings.push(format!("No {} was found on the page.", format.name()));
            }
        }
        let media = [&document.audio, &document.video].into_iter().flatten().count() as i64;
        let bill = Bill { stealth: response.proxy_used == "stealth", media, ..Bill::of(options) };
        Self { response, document, structured: None, harvest: None, source: None, bill, tracked: None }
    }

    /// Something the caller should know.
    pub fn warn(&mut self, sentence: &str) {
        self.response.warnings.push(sentence.to_owned());
    }

    /// Ends the document on this thread if nothing is to be read. Computes.
    ///
    /// # Errors
    /// When the document cannot be written.
    pub fn advance(self, task: &PageTask) -> Result<Made, PageError> {
        if is_whole(task.options()) {
            self.encode(task).map(|product| Made::Whole(product.into()))
        } else {
            Ok(Made::Unread(self.into()))
        }
    }

    /// Writes the metadata and packs the document. Computes.
    ///
    /// # Errors
    /// When the document cannot be written.
    pub fn encode(mut self, task: &PageTask) -> Result<Product, PageError> {
        let credits = self.credits(task);
        self.write_metadata(task, credits);
        let Self { response, mut document, harvest, bill, tracked, .. } = self;
        document.screenshot = response.screenshot;
        if let Some(blocks) = &mut document.blocks {
            pdf_blocks::settle(blocks, document.markdown.as_deref());
        }
        if !response.warnings.is_empty() {
            document.warning = Some(response.warnings.join(" "));
        }
        // Without a verified certificate anybody may have sent it, so it is not answered to others.
        let may_be_shared = response.is_trusted && !bill.stealth;
        let mut document = documents::encode(&document).map_err(|error| {
            tracing::error!(%error, page.id = %task.page.id, "a document cannot be written as JSON");
            PageError::last(ErrorCode::Unknown, "The document could not be written.")
        })?;
        document.version = response.sent.filter(|_| may_be_shared).and_then(|sent| sent.packed(task));
        let digest = match (&document.version, response.stored) {
            (Some(version), _) => Some(version.digest.clone()),
            (None, stored) => stored.map(|stored| stored.digest),
        };
        document.snapshot = tracked.map(|tracked| tracked.pack(digest.as_deref()).map(Box::new)).transpose()?;
        document.derived = digest
            .filter(|_| !response.derived.is_empty())
            .map(|digest| Derived { digest, pieces: response.derived }.into());
        Ok(Product { document, harvest, status: response.status, credits })
    }

    /// What the page costs: the same whether its site was asked or not, but for lockdown.
    fn credits(&self, task: &PageTask) -> i64 {
        let is_locked = task.options().cache.lockdown && self.response.stored.is_some();
        if is_locked { price::LOCKDOWN_HIT } else { self.bill.credits() }
    }

    fn write_metadata(&mut self, task: &PageTask, credits: i64) {
        let (page, response) = (&task.page, &self.response);
        let meta = &mut self.document.metadata;
        let mut put = |key: &str, value: Value| meta.insert(key.to_owned(), value);
        put("sourceURL", json!(without_user(&page.url)));
        put("url", json!(response.url.as_str()));
        put("statusCode", json!(response.status));
        put("scrapeId", json!(page.id));
        if let Some(content_type) = &response.content_type {
            put("contentType", json!(content_type));
        }
        if let Some(timezone) = &response.timezone {
            put("timezone", json!(timezone));
        }
        if response.status >= 400 {
            put("error", json!(format!("The page answered with status {}.", response.status)));
        }
        put("proxyUsed", json!(response.proxy_used));
        put("creditsUsed", json!(credits));
        put("concurrencyLimited", json!(page.limited));
        if page.limited {
            put("concurrencyQueueDurationMs", json!(page.started_at.ms_since(page.queued_at)));
        }
        if let Some(stored) = &response.stored {
            put("cacheState", json!("hit"));
            put("cachedAt", json!(stored.at.to_iso()));
        } else if task.asks_store() {
            put("cacheState", json!("miss"));
        }
    }
}
