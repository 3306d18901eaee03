//! How an attempt at a page may end, and what it leaves: types only.

use crate::domain::job::JobKind;
use crate::error_code::ErrorCode;
use crate::ids::{JobId, KeyId, PageId};
use crate::store::contents::derived::Derived;
use crate::store::contents::snapshots::Packed;
use crate::store::contents::version::{Body, Version};
use crate::time::Timestamp;

use super::rows::Claimed;

/// How an attempt ended.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The page's document.
    Done { document: Encoded, credits: i64 },
    /// Given up for good.
    Failed { code: ErrorCode, error: String, credits: i64 },
    /// Failed, worth another try at `run_at`.
    Retry { code: ErrorCode, error: String, run_at: Timestamp },
    /// Its worker died under it: back to its place in the queue, the claim stays counted.
    Lost { reason: &'static str },
    /// Not started or not finished for a reason that is not the page's: back to its place as if never claimed.
    GivenBack,
    /// Not its turn: back to the queue as if never claimed, until then.
    Postponed { run_at: Timestamp },
    /// A page of a crawl with what it led to. Without a document it is not delivered, and neither is one that turns
    /// out to be another page again.
    Crawled { document: Option<Encoded>, credits: i64, discovery: Box<Discovery> },
    /// A page of a crawl, by its key, that robots.txt forbids.
    Blocked { key: String },
    /// The step of a crawl that reads the sitemaps is done.
    SitemapsRead { warning: Option<String> },
}

impl Outcome {
    /// When the page is due again, where it is only put off.
    pub fn run_at(&self) -> Option<Timestamp> {
        match self {
            Self::Retry { run_at, .. } | Self::Postponed { run_at } => Some(*run_at),
            _ => None,
        }
    }

    /// Whether a crawled page leads anywhere, or may be another page again.
    pub(in crate::store) fn changes_crawl(&self) -> bool {
        match self {
            Self::Crawled { document, discovery, .. } => document.is_none() || !discovery.is_empty(),
            _ => false,
        }
    }

    /// The document to store, if there is one.
    pub fn document_mut(&mut self) -> Option<&mut Encoded> {
        match self {
            Self::Done { document, .. } | Self::Crawled { document: Some(document), .. } => Some(document),
            _ => None,
        }
    }

    /// What the site has sent, where that is stored with the document.
    pub(in crate::store) fn version(&self) -> Option<&Version> {
        self.document()?.0.version.as_deref()
    }

    /// The document to store and what it costs, if there is one.
    pub(in crate::store) fn document(&self) -> Option<(&Encoded, i64)> {
        match self {
            Self::Done { document, credits } | Self::Crawled { document: Some(document), credits, .. } => {
                Some((document, *credits))
            }
            _ => None,
        }
    }
}

/// A document ready to be stored.
#[derive(Debug, Clone)]
pub struct Encoded {
    /// Bytes of the JSON text.
    pub size: i64,
    /// Bytes of the compressed text.
    pub packed: i64,
    /// Where the compressed text lies.
    pub body: Body,
    /// What the site has sent, where that is kept.
    pub version: Option<Box<Version>>,
    /// What the page's changes are told from the next time.
    pub snapshot: Option<Box<Packed>>,
    /// What was made of the site's answer at a cost, and is kept with it.
    pub derived: Option<Box<Derived>>,
    /// What its attempt did and how long each took, JSON (`document.steps`).
    pub steps: Option<String>,
}

/// An address found on a page or in a sitemap, with its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub key: String,
    pub url: String,
}

/// What a page of a crawl brought besides its document.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    /// Key of where its redirects ended.
    pub landing: Option<String>,
    /// Key of what the page calls itself: only a page that is well speaks for this one.
    pub canonical: Option<String>,
    /// The site answered with an error.
    pub is_error: bool,
    /// Links that the crawl follows, in order, without repeats.
    pub found: Vec<Found>,
    /// Links that it would follow if robots.txt did not forbid them.
    pub blocked: Vec<Found>,
    /// Where the site is, from the start page.
    pub base: Option<String>,
    /// A sentence for the status.
    pub warning: Option<String>,
}

impl Discovery {
    /// What is to be entered: links that are followed, and links that robots.txt forbids.
    pub fn addresses(&self) -> impl Iterator<Item = &Found> {
        self.found.iter().chain(&self.blocked)
    }

    /// Where the crawl's site is, which its start page alone says: the address that was asked for, if it does not move it.
    pub fn base_of<'a>(&'a self, page: &'a Claimed) -> Option<&'a str> {
        (page.idx == 0).then(|| self.base.as_deref().unwrap_or(&page.url))
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.landing.is_none()
            && self.canonical.is_none()
            && !self.is_error
            && self.found.is_empty()
            && self.blocked.is_empty()
            && self.base.is_none()
            && self.warning.is_none()
    }
}

/// An attempt with its end. `kind` and `key` go into the ledger; `None` only where nothing is billed.
#[derive(Debug)]
pub struct Finished {
    pub page: Claimed,
    pub kind: Option<JobKind>,
    pub key: Option<KeyId>,
    pub outcome: Outcome,
}

/// What came of a group.
#[derive(Debug, Default)]
pub struct Report {
    /// Pages whose end was written; the others were overtaken.
    pub written: Vec<PageId>,
    /// Jobs that ended with them.
    pub ended: Vec<JobId>,
}
