//! What a page costs, in credits: the one place for the prices of pages (wire 11.3).
//!
//! A page is billed by its [`Bill`], which says what was delivered. Before it is accepted, [`most`] says what it may
//! come to.

use super::scrape::{Format, ProxyMode, ScrapeOptions};
use crate::error_code::ErrorCode;

/// A page of a scrape, batch or crawl; it covers the first page of a PDF.
const PAGE: i64 = 1;
/// Each further page of a PDF.
const PDF_PAGE: i64 = 1;
/// A sound or a film.
const MEDIA: i64 = 4;
/// Data read by a language model, once, however many formats ask for it.
const DATA: i64 = 4;
/// Each answer or quotation.
const ANSWER: i64 = 4;
/// Taking out data of persons.
const REDACTION: i64 = 4;
/// An enhanced proxy that was used.
const STEALTH: i64 = 4;
/// A change of a watched page that was judged (wire 24).
const JUDGEMENT: i64 = 1;
/// A page of which nothing is kept.
const ZERO_RETENTION: i64 = 1;
/// A page in lockdown that was there, and one that was not.
pub const LOCKDOWN_HIT: i64 = 5;
const LOCKDOWN_MISS: i64 = 1;

/// What was delivered of a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bill {
    /// A language model has read data out of it.
    pub data: bool,
    /// Questions answered and quotations given.
    pub answers: i64,
    /// Pages that were read of a PDF; 0 for all else, and for a PDF that is answered as base64.
    pub pdf_pages: u32,
    /// Sounds and films whose address was found.
    pub media: i64,
    /// Nothing of it is kept.
    pub zero_retention: bool,
    /// Data of persons was taken out.
    pub redacted: bool,
    /// It came through an enhanced proxy.
    pub stealth: bool,
    /// Its change was judged.
    pub judged: bool,
}

impl Bill {
    /// A page of which nothing is delivered yet.
    pub fn of(options: &ScrapeOptions) -> Self {
        Self { zero_retention: options.zero_retention, ..Self::default() }
    }

    /// Counts a delivered format.
    pub fn add(&mut self, format: &Format) {
        match format {
            Format::Json(_) => self.data = true,
            Format::ChangeTracking(tracking) => {
                self.data |= tracking.json;
                self.judged |= tracking.watch.as_ref().is_some_and(|watch| watch.goal.is_some());
            }
            Format::Question(_) | Format::Highlights(_) | Format::Query(_) => self.answers += 1,
            Format::Audio | Format::Video => self.media += 1,
            _ => {}
        }
    }

    /// The sum.
    pub fn credits(self) -> i64 {
        let once = |is_due: bool, price: i64| if is_due { price } else { 0 };
        let pages = PAGE + PDF_PAGE * i64::from(self.pdf_pages.saturating_sub(1));
        let read = once(self.data, DATA) + self.answers * ANSWER + self.media * MEDIA;
        let careful = once(self.zero_retention, ZERO_RETENTION) + once(self.redacted, REDACTION);
        pages + read + careful + once(self.stealth, STEALTH) + once(self.judged, JUDGEMENT)
    }
}

/// The most that a page with these options can cost: what a team must have to ask for it. An enhanced proxy that `auto`
/// may come to need is not in it.
pub fn most(options: &ScrapeOptions) -> i64 {
    if options.cache.lockdown {
        return LOCKDOWN_HIT;
    }
    let (redacted, stealth) = (options.redact_pii.is_some(), options.proxy == ProxyMode::Enhanced);
    let mut bill = Bill { redacted, stealth, ..Bill::of(options) };
    options.formats.iter().for_each(|format| bill.add(format));
    bill.credits()
}

/// The price of a page that failed: nothing, unless its name does not exist, or it was not there in lockdown.
pub fn of_failure(code: ErrorCode) -> i64 {
    match code {
        ErrorCode::DnsResolution => 1,
        ErrorCode::LockdownCacheMiss => LOCKDOWN_MISS,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::scrape::{ChangeTracking, Highlights, JsonFormat, Question, Redaction};

    #[test]
    fn prices_are_those_of_the_table() {
        let of = |formats: Vec<Format>| most(&ScrapeOptions { formats, ..ScrapeOptions::default() });
        let question = || Format::Question(Question { question: "x".into() });
        let highlights = || Format::Highlights(Highlights { query: "x".into() });
        assert_eq!(of(vec![Format::Markdown, Format::Html, Format::Links]), 1);
        assert_eq!(of(vec![Format::Summary]), 1);
        assert_eq!(of(vec![Format::Json(JsonFormat::default())]), 5);
        let tracking = |json| Format::ChangeTracking(ChangeTracking { json, git_diff: true, ..Default::default() });
        assert_eq!((of(vec![tracking(false)]), of(vec![tracking(true)])), (1, 5));
        assert_eq!(of(vec![Format::Json(JsonFormat::default()), tracking(true)]), 5, "not added twice");
        assert_eq!((of(vec![Format::Audio]), of(vec![Format::Markdown, Format::Audio, Format::Video])), (5, 9));
        let pdf = |pdf_pages| Bill { pdf_pages, ..Bill::default() }.credits();
        assert_eq!([0, 1, 3, 200].map(pdf), [1, 1, 3, 200]);
        assert_eq!(of(vec![question()]), 5);
        let redacted = ScrapeOptions { redact_pii: Some(Redaction::default()), ..ScrapeOptions::default() };
        assert_eq!(most(&redacted), 5);
        let of_proxy = |proxy| most(&ScrapeOptions { proxy, ..ScrapeOptions::default() });
        assert_eq!([ProxyMode::Basic, ProxyMode::Auto, ProxyMode::Enhanced].map(of_proxy), [1, 1, 5]);
        assert_eq!(of(vec![Format::Json(JsonFormat::default()), question(), highlights()]), 13);
    }

    #[test]
    fn what_is_not_kept_and_what_is_only_read_from_the_cache_has_its_price() {
        let mut options = ScrapeOptions { zero_retention: true, ..ScrapeOptions::default() };
        assert_eq!(most(&options), 2);
        options.cache.lockdown = true;
        assert_eq!(most(&options), 5);
        for (code, credits) in [
            (ErrorCode::DnsResolution, 1),
            (ErrorCode::LockdownCacheMiss, 1),
            (ErrorCode::NoCachedData, 0),
            (ErrorCode::Timeout, 0),
        ] {
            assert_eq!(of_failure(code), credits);
        }
    }
}
