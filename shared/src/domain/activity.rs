//! What a team asked for, as its activity list shows it (spec 2.6, 4.12).

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use uuid::Uuid;

use super::job::JobKind;
use super::session::SessionKind;
use super::words::words;
use crate::time::Timestamp;

/// How far back the list goes, milliseconds (spec 8).
pub const WINDOW_MS: i64 = 86_400_000;
/// Entries of a page when the caller does not say, and at most (spec 8).
pub const DEFAULT_LIMIT: i64 = 50;
pub const MAX_LIMIT: i64 = 100;

words! {
    /// What was called: the filter values of spec 4.12.
    Endpoint {
        Scrape = "scrape",
        Crawl = "crawl",
        BatchScrape = "batch_scrape",
        Search = "search",
        Extract = "extract",
        Llmstxt = "llmstxt",
        DeepResearch = "deep_research",
        Map = "map",
        Agent = "agent",
        Browser = "browser",
        Interact = "interact",
    }
}

impl From<JobKind> for Endpoint {
    fn from(kind: JobKind) -> Self {
        match kind {
            JobKind::Scrape => Self::Scrape,
            JobKind::Batch => Self::BatchScrape,
            JobKind::Crawl => Self::Crawl,
            JobKind::Map => Self::Map,
            JobKind::Search => Self::Search,
            JobKind::Extract => Self::Extract,
            JobKind::Agent => Self::Agent,
        }
    }
}

impl From<SessionKind> for Endpoint {
    fn from(kind: SessionKind) -> Self {
        match kind {
            SessionKind::Browser => Self::Browser,
            SessionKind::Interact => Self::Interact,
        }
    }
}

/// Where a page of the list ended: the next one holds what is older. Opaque to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    pub created_at: Timestamp,
    pub id: Uuid,
}

impl Cursor {
    /// The text that clients send back.
    pub fn encode(self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(format!("{}:{}", self.created_at.0, self.id))
    }

    /// Reads it; `None` when we did not give it out.
    pub fn decode(text: &str) -> Option<Self> {
        let text = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        let (time, id) = text.split_once(':')?;
        Some(Self { created_at: Timestamp(time.parse().ok()?), id: Uuid::parse_str(id).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_was_and_nothing_else_is_one() {
        let cursor = Cursor { created_at: Timestamp(1_700_000_000_123), id: crate::random::id() };
        assert_eq!(Cursor::decode(&cursor.encode()), Some(cursor));
        for wrong in ["", "x", "!!", "MTIz", &BASE64_URL_SAFE_NO_PAD.encode("1:2"), &"A".repeat(10_000)] {
            assert_eq!(Cursor::decode(wrong), None, "{wrong}");
        }
    }
}
