//! What a search found: each page once, within the query's bounds.

use std::collections::HashSet;

use chrono::{DateTime, NaiveDate, NaiveDateTime};
use url::Url;

use crate::domain::crawl::address::{KeyRules, key};
use crate::domain::search::{Age, Category, Query, Source};
use crate::time::Timestamp;

/// Longest texts of a hit, characters.
const MAX_TITLE: usize = 500;
const MAX_TEXT: usize = 2_000;
/// Longest address, bytes.
const MAX_URL: usize = 16_384;
const DAY_MS: i64 = 86_400_000;

/// A page, an article or a picture.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hit {
    /// Of the page, as the backend has it.
    pub url: String,
    pub title: String,
    /// Plain text.
    pub text: String,
    /// As the backend tells it to people.
    pub date: Option<String>,
    /// Of a picture, or of an article's one.
    pub image: Option<String>,
    /// Of a picture, pixels.
    pub size: Option<(u32, u32)>,
    pub category: Option<Category>,
    /// When it was published, milliseconds since 1970, where that is known.
    published: Option<i64>,
}

impl Hit {
    pub(super) fn new(url: &str, title: &str, text: &str) -> Self {
        Self { url: url.to_owned(), title: plain(title, MAX_TITLE), text: plain(text, MAX_TEXT), ..Self::default() }
    }

    /// The date as shown, and when that is if it can be told.
    pub(super) fn dated(mut self, shown: Option<&str>) -> Self {
        self.date = shown.map(|text| plain(text, 64)).filter(|text| !text.is_empty());
        self.published = shown.and_then(moment);
        self
    }

    /// A picture's address; others than those of the web are none.
    pub(super) fn with_image(mut self, image: Option<&str>) -> Self {
        let whole = |text: &str| if text.starts_with("//") { format!("https:{text}") } else { text.to_owned() };
        self.image = image.map(whole).filter(|text| parse(text).is_some());
        self
    }
}

/// Hits on their way: what was seen, and what is taken of it.
pub(super) struct Collected<'q> {
    query: &'q Query,
    pub source: Source,
    limit: usize,
    now: Timestamp,
    seen: HashSet<String>,
    hits: Vec<Hit>,
    warnings: Vec<String>,
    /// Engines behind the backend that did not answer.
    silent: Vec<String>,
}

impl<'q> Collected<'q> {
    pub fn new(query: &'q Query, source: Source, limit: usize, now: Timestamp) -> Self {
        let (seen, hits, warnings, silent) = (HashSet::new(), Vec::new(), Vec::new(), Vec::new());
        Self { query, source, limit, now, seen, hits, warnings, silent }
    }

    pub fn is_empty(&self) -> bool {
        self.hits.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.hits.len() >= self.limit
    }

    /// How many are wanted.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Nothing was found, and engines did not answer.
    pub fn is_silent(&self) -> bool {
        self.hits.is_empty() && !self.silent.is_empty()
    }

    pub fn warn(&mut self, warnings: Vec<String>) {
        self.warnings.extend(warnings);
    }

    pub fn note_silent(&mut self, engines: Vec<String>) {
        self.silent = engines;
    }

    /// Takes hits that are new and within the query's bounds. Returns whether any had not been seen before.
    pub fn take(&mut self, hits: impl IntoIterator<Item = Hit>) -> bool {
        let mut any = false;
        for mut hit in hits {
            let Some(url) = parse(&hit.url) else { continue };
            let known_by = if self.source == Source::Images { hit.image.as_deref().and_then(parse) } else { None };
            if self.source == Source::Images && known_by.is_none() {
                continue;
            }
            let rules = KeyRules { ignore_query: false, similar: true };
            if !self.seen.insert(key(known_by.as_ref().unwrap_or(&url), rules)) {
                continue;
            }
            any = true;
            if !self.query.admits(&url) || !self.is_of_age(&hit) || self.is_full() {
                continue;
            }
            hit.category = self.query.category_of(&url);
            self.hits.push(hit);
        }
        any
    }

    /// Whether nothing is known that would make it too old or too young.
    fn is_of_age(&self, hit: &Hit) -> bool {
        let Some(at) = hit.published else { return true };
        match self.query.age {
            Age::Hour => at >= self.now.0 - 3_600_000,
            Age::Between(least, most) => {
                let day = at.div_euclid(DAY_MS);
                least.is_none_or(|least| day >= least) && most.is_none_or(|most| day <= most)
            }
            _ => true,
        }
    }

    /// The hits, and what is to be said of them.
    pub fn finish(mut self) -> (Vec<Hit>, Vec<String>) {
        if self.query.by_date {
            self.hits.sort_by_key(|hit| std::cmp::Reverse(hit.published));
        }
        if self.hits.is_empty() && !self.silent.is_empty() {
            let engines = self.silent.join(", ");
            self.warnings.push(format!("The search backend's engines did not answer: {engines}."));
        }
        (self.hits, self.warnings)
    }
}

/// An address of the web that is not too long and that every database keeps as it stands.
fn parse(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok().filter(|_| text.len() <= MAX_URL && !text.contains('\0'))?;
    (matches!(url.scheme(), "http" | "https") && url.host().is_some()).then_some(url)
}

/// A text without tags, entities and control characters, at most so many characters.
fn plain(text: &str, most: usize) -> String {
    let mut out = String::with_capacity(text.len().min(most * 4));
    let (mut is_tag, mut is_space) = (false, true);
    // Far more than is kept, and no more: a backend's text may be of any length.
    let head = &text[..text.floor_char_boundary(most * 16)];
    let mut rest = head.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '<' if rest.peek().is_some_and(|next| next.is_ascii_alphabetic() || *next == '/') => is_tag = true,
            '>' if is_tag => is_tag = false,
            _ if is_tag => {}
            c if c.is_whitespace() || c.is_control() => {
                if !is_space {
                    out.push(' ');
                }
                is_space = true;
            }
            c => {
                out.push(c);
                is_space = false;
            }
        }
    }
    for (entity, character) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#x27;", "'"),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("&amp;", "&"),
    ] {
        if out.contains(entity) {
            out = out.replace(entity, character);
        }
    }
    let end = out.char_indices().nth(most).map_or(out.len(), |(at, _)| at);
    out[..end].trim().to_owned()
}

/// Milliseconds since 1970 of a date in one of the forms that backends have.
fn moment(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Some(at.timestamp_millis());
    }
    for form in ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f"] {
        if let Ok(at) = NaiveDateTime::parse_from_str(text, form) {
            return Some(at.and_utc().timestamp_millis());
        }
    }
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
    Some(day.and_hms_opt(0, 0, 0)?.and_utc().timestamp_millis())
}
