//! What a page costs, in credits (CONTRACT 11.3): the one place for the prices of what a page was asked for.
//!
//! A page is billed by its [`Bill`], which says what was delivered. Before it is accepted, [`most`] says what it may
//! come to.

use super::scrape::{Format, ProxyMode, ScrapeOptions};

/// A page of a scrape, batch or crawl.
const PAGE: i64 = 1;
/// Data read by a language model, once, however many formats ask for it.
const DATA: i64 = 4;
/// Each answer or quotation.
const ANSWER: i64 = 4;

/// Taking out data of persons.
const REDACTION: i64 = 4;

/// An enhanced proxy that was used.
const STEALTH: i64 = 4;

/// What was delivered of a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bill {
    /// A language model has read data out of it.
    pub data: bool,
    /// Questions answered and quotations given.
    pub answers: i64,
    /// Data of persons was taken out.
    pub redacted: bool,
    /// It came through an enhanced proxy.
    pub stealth: bool,
}

impl Bill {
    /// Counts a delivered format.
    pub fn add(&mut self, format: &Format) {
        match format {
            Format::Json(_) => self.data = true,
            Format::ChangeTracking(tracking) if tracking.json => self.data = true,
            Format::Question(_) | Format::Highlights(_) | Format::Query(_) => self.answers += 1,
            _ => {}
        }
    }

    /// The sum.
    pub fn credits(self) -> i64 {
        let if_so = |is: bool, price: i64| if is { price } else { 0 };
        PAGE + if_so(self.data, DATA)
            + self.answers * ANSWER
            + if_so(self.redacted, REDACTION)
            + if_so(self.stealth, STEALTH)
    }
}

/// The most that a page with these options can cost, but for an enhanced proxy that `auto` may come to need.
pub fn most(options: &ScrapeOptions) -> i64 {
    let stealth = options.proxy == ProxyMode::Enhanced;
    let mut bill = Bill { redacted: options.redact_pii.is_some(), stealth, ..Bill::default() };
    options.formats.iter().for_each(|format| bill.add(format));
    bill.credits()
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
        let redacted = ScrapeOptions { redact_pii: Some(Redaction::default()), ..ScrapeOptions::default() };
        assert_eq!(most(&redacted), 5);
        let of_proxy = |proxy| most(&ScrapeOptions { proxy, ..ScrapeOptions::default() });
        assert_eq!([ProxyMode::Basic, ProxyMode::Auto, ProxyMode::Enhanced].map(of_proxy), [1, 1, 5]);
        assert_eq!(of(vec![question()]), 5);
        assert_eq!(of(vec![Format::Json(JsonFormat::default()), question(), highlights()]), 13);
    }
}
