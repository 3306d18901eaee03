//! A scrape that the API dispatches directly: to a worker with a free slot, past the queue. The worker writes its rows
//! with the page already claimed, works on it and answers with the document.
//!
//! Nothing depends on it: whoever gets no answer looks for the rows, and writes them for the queue where there are none.

use serde::{Deserialize, Serialize};

use crate::domain::activity::Endpoint;
use crate::domain::api_version::ApiVersion;
use crate::domain::job::JobKind;
use crate::domain::scrape::ScrapeOptions;
use crate::ids::{JobId, KeyId, PageId, TeamId};
use crate::store::work::jobs::NewJob;
use crate::store::work::page::scrape::NewScrape;
use crate::time::Timestamp;

/// `POST` a [`DirectScrape`]; [`DirectAnswer`] has the statuses.
pub const PATH: &str = "/scrapes";
/// Header of an answer with a document: bytes of its JSON text, whose compressed form is the body.
pub const SIZE_HEADER: &str = "x-weir-size";
/// Longest such scrape in JSON, bytes; a longer one takes the queue.
pub const LIMIT: usize = 256 << 10;
/// Longest answer, bytes: a larger document is read from where it is stored.
pub const MAX_ANSWER: usize = 1 << 20;

/// What a worker made of a scrape, by the status of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectAnswer {
    /// The body is the compressed document, [`SIZE_HEADER`] its size.
    Document,
    /// The rows say what became of it, if there are any.
    Unknown,
    /// The page has ended, and its rows say how.
    Ended,
    /// Nothing is written: no free slot, or the team is at its limits.
    Refused,
    /// The worker does not know the call: it is of another release, or not ours.
    Foreign,
}

impl DirectAnswer {
    /// The status of the answer. A worker never sends [`DirectAnswer::Foreign`]; it has the status of an unknown path.
    pub const fn status(self) -> u16 {
        match self {
            Self::Document => 200,
            Self::Unknown => 202,
            Self::Ended => 204,
            Self::Refused => 503,
            Self::Foreign => 404,
        }
    }

    /// What a status says.
    pub const fn of_status(status: u16) -> Self {
        match status {
            200 => Self::Document,
            204 => Self::Ended,
            503 => Self::Refused,
            400..500 => Self::Foreign,
            _ => Self::Unknown,
        }
    }
}

/// A scrape of one page that somebody waits for, before it is written.
#[derive(Debug, Serialize, Deserialize)]
pub struct DirectScrape {
    pub job: JobId,
    pub page: PageId,
    pub team: TeamId,
    pub key: Option<KeyId>,
    pub options: ScrapeOptions,
    pub url: String,
    /// The URL as lists show it; empty where nothing may be kept.
    pub target: String,
    pub origin: Option<String>,
    /// Of the API; processes of earlier releases know one.
    #[serde(default)]
    pub version: ApiVersion,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

impl DirectScrape {
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
        NewScrape { job, page: self.page, url: &self.url, endpoint: Endpoint::Scrape, version: self.version }
    }
}
