//! What comes of a page: its document, ready to be stored, what that costs, and where the page leads.

use url::Url;
use weir_shared::store::work::page::end::Encoded;

/// What came of a page.
pub struct Product {
    pub document: Encoded,
    /// The status that the site answered with.
    pub status: u16,
    /// What it costs; its metadata says the same.
    pub credits: i64,
    /// For a crawl: what the page leads to.
    pub harvest: Option<Harvest>,
}

/// Where a page of a crawl leads.
pub struct Harvest {
    /// Its address after redirects.
    pub url: Url,
    /// What it calls itself.
    pub canonical: Option<Url>,
    /// Absolute, in order, without repeats.
    pub links: Vec<String>,
}

/// Which engine made the document, for the metrics.
#[derive(Debug, Clone, Copy)]
pub enum Engine {
    Cache,
    Http,
    Browser,
    Upload,
}

impl Engine {
    /// Its name in the metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cache => "cache",
            Self::Http => "http",
            Self::Browser => "browser",
            Self::Upload => "upload",
        }
    }
}
