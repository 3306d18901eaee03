//! A scrape that the API hands to a worker with a free place, past the queue: the worker writes its rows with the page
//! already claimed, works on it and answers with the document. Nothing depends on it: whoever gets no answer looks for
//! the rows, and writes them for the queue where there are none.

use serde::{Deserialize, Serialize};

use crate::domain::activity::Endpoint;
use crate::domain::job::JobKind;
use crate::domain::scrape::ScrapeOptions;
use crate::ids::{JobId, KeyId, PageId, TeamId};
use crate::store::jobs::NewJob;
use crate::store::page::scrape::NewScrape;
use crate::time::Timestamp;

/// Where a worker's private listener takes them, by POST.
pub const PATH: &str = "/scrapes";
/// Header of an answer with a document: bytes of its JSON text, whose compressed form is the body.
pub const SIZE_HEADER: &str = "x-weir-size";
/// Longest such scrape in JSON, bytes; a longer one takes the queue.
pub const LIMIT: usize = 256 << 10;
/// Longest answer, bytes: a larger document is read from where it is stored.
pub const MAX_ANSWER: usize = 1 << 20;

/// A scrape of one page that somebody waits for, before it is written.
#[derive(Debug, Serialize, Deserialize)]
pub struct HandedScrape {
    pub job: JobId,
    pub page: PageId,
    pub team: TeamId,
    pub key: Option<KeyId>,
    pub options: ScrapeOptions,
    pub url: String,
    /// The URL as lists show it; empty where nothing may be kept.
    pub target: String,
    pub origin: Option<String>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

impl HandedScrape {
    /// Its rows.
    pub fn rows(&self) -> NewScrape<'_> {
        let job = NewJob {
            id: self.job,
            team: self.team,
            key: self.key,
            kind: JobKind::Scrape,
            options: &self.options,
            target: &self.target,
            origin: self.origin.as_deref(),
            max_concurrency: None,
            webhook: None,
            total: 1,
            created_at: self.created_at,
            expires_at: self.expires_at,
        };
        NewScrape { job, page: self.page, url: &self.url, endpoint: Endpoint::Scrape }
    }
}
