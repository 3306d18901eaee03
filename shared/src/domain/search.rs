//! A search of the web as a caller asks for it (wire 20), and what it costs.

use super::api_version::ApiVersion;
use super::scrape::ScrapeOptions;
use super::site_rules::SiteRules;

/// Hits for each source when the caller does not say, and at most.
pub const DEFAULT_LIMIT: usize = 5;
pub const MAX_LIMIT: usize = 100;
/// Credits for each [`HITS_A_PRICE`] hits begun, and where nothing is kept.
const PRICE: i64 = 2;
const PRICE_ZERO_RETENTION: i64 = 10;
const HITS_A_PRICE: usize = 10;

/// A search, valid.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchRequest {
    pub query: Query,
    /// Hits for each source, 1 to [`MAX_LIMIT`].
    pub limit: usize,
    /// In the order of [`Source::ALL`], at least one.
    pub sources: Vec<Source>,
    /// Drop hits that may not be scraped.
    pub ignore_invalid_urls: bool,
    /// Descriptions become passages of the page that have to do with the query.
    pub highlights: bool,
    /// How hits are scraped; `None`: they are not.
    pub scrape: Option<ScrapeOptions>,
    /// Sites whose hits are left out.
    pub sites: SiteRules,
    /// Nothing of it is kept: asked for by this request.
    pub zero_retention: bool,
    /// For everything, milliseconds.
    pub timeout: u64,
    pub origin: Option<String>,
    pub integration: Option<String>,
    pub version: ApiVersion,
}

/// What is looked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Query {
    /// The caller's words; operators of the search engine stay in them.
    pub words: String,
    pub categories: Vec<Category>,
    /// Hosts, in lower case; of these two at most one is not empty.
    pub include_domains: Vec<String>,
    pub exclude_domains: Vec<String>,
    pub age: Age,
    /// The newest first.
    pub by_date: bool,
    /// A place in words, such as `Berlin, Germany`.
    pub location: Option<String>,
    /// ISO 3166 alpha-2, upper case.
    pub country: Option<String>,
    /// ISO 639-1, lower case.
    pub language: Option<String>,
    /// Leave out what is not for everybody; `None`: as the backend has it.
    pub safe: Option<bool>,
    /// What of `tbs` was not understood, and other options that no backend has, for the warning.
    pub not_understood: Vec<String>,
}

/// Where hits come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    Web,
    News,
    Images,
}

impl Source {
    pub const ALL: [Self; 3] = [Self::Web, Self::News, Self::Images];

    /// Its word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::News => "news",
            Self::Images => "images",
        }
    }
}

/// How old a hit may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Age {
    #[default]
    Any,
    Hour,
    Day,
    Week,
    Month,
    Year,
    /// Days since 1970 (UTC), both included.
    Between(Option<i64>, Option<i64>),
}

/// A kind of sites or files that hits are narrowed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    Github,
    Research,
    Pdf,
}

impl Category {
    pub const ALL: [Self; 3] = [Self::Github, Self::Research, Self::Pdf];

    /// Its word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Github => "github",
            Self::Research => "research",
            Self::Pdf => "pdf",
        }
    }

    /// The hosts that it stands for, their subdomains included.
    pub const fn hosts(self) -> &'static [&'static str] {
        match self {
            Self::Github => &["github.com"],
            Self::Research => &[
                "arxiv.org",
                "pubmed.ncbi.nlm.nih.gov",
                "nature.com",
                "science.org",
                "ieee.org",
                "acm.org",
                "springer.com",
                "wiley.com",
                "sciencedirect.com",
                "plos.org",
                "biorxiv.org",
                "medrxiv.org",
                "scholar.google.com",
            ],
            Self::Pdf => &[],
        }
    }

    /// Whether a hit is of it.
    fn has(self, url: &url::Url) -> bool {
        match self {
            Self::Pdf => url.path().to_ascii_lowercase().ends_with(".pdf"),
            _ => url.host_str().is_some_and(|host| self.hosts().iter().any(|of| is_below(host, of))),
        }
    }
}

/// Whether a host is another one or a subdomain of it.
fn is_below(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

impl Query {
    /// The words for a search engine, with what narrows them as its operators.
    pub fn with_operators(&self) -> String {
        let sites =
            |hosts: &mut dyn Iterator<Item = &str>| hosts.map(|host| format!("site:{host}")).collect::<Vec<_>>();
        let mut text = self.words.clone();
        let mut kinds = Vec::new();
        for category in &self.categories {
            match category {
                Category::Pdf => kinds.push("filetype:pdf".to_owned()),
                _ => kinds.extend(sites(&mut category.hosts().iter().copied())),
            }
        }
        for group in [kinds, sites(&mut self.include_domains.iter().map(String::as_str))] {
            match group.as_slice() {
                [] => {}
                [one] => text.push_str(&format!(" {one}")),
                many => text.push_str(&format!(" ({})", many.join(" OR "))),
            }
        }
        for host in &self.exclude_domains {
            text.push_str(&format!(" -site:{host}"));
        }
        text
    }

    /// Whether a page belongs to the domains and categories, whatever the search engine made of its operators.
    pub fn admits(&self, url: &url::Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let is_among = |domains: &[String]| domains.iter().any(|domain| is_below(host, domain));
        (self.include_domains.is_empty() || is_among(&self.include_domains))
            && !is_among(&self.exclude_domains)
            && (self.categories.is_empty() || self.category_of(url).is_some())
    }

    /// Which of the categories asked for a page is of.
    pub fn category_of(&self, url: &url::Url) -> Option<Category> {
        self.categories.iter().copied().find(|category| category.has(url))
    }
}

/// The price of so many hits, over all sources, without their pages.
pub fn price(hits: usize, zero_retention: bool) -> i64 {
    let price = if zero_retention { PRICE_ZERO_RETENTION } else { PRICE };
    hits.div_ceil(HITS_A_PRICE) as i64 * price
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn ten_hits_begun_are_paid_for() {
        assert_eq!([0, 1, 10, 11, 30].map(|hits| price(hits, false)), [0, 2, 2, 4, 6]);
        assert_eq!([0, 1, 11].map(|hits| price(hits, true)), [0, 10, 20]);
    }

    #[test]
    fn what_narrows_a_search_is_said_in_operators_and_held_by_us() {
        let mut query = Query { words: "rust \"async\"".into(), ..Query::default() };
        assert_eq!(query.with_operators(), "rust \"async\"");
        query.categories = vec![Category::Github, Category::Pdf];
        query.exclude_domains = vec!["a.test".into(), "b.test".into()];
        assert_eq!(
            query.with_operators(),
            "rust \"async\" (site:github.com OR filetype:pdf) -site:a.test -site:b.test"
        );
        let url = |text: &str| url::Url::parse(text).unwrap();
        assert_eq!(query.category_of(&url("https://gist.github.com/x")), Some(Category::Github));
        assert_eq!(query.category_of(&url("https://x.test/A.PDF")), Some(Category::Pdf));
        assert!(query.admits(&url("https://x.test/a.pdf")) && !query.admits(&url("https://www.a.test/a.pdf")));
        assert!(!query.admits(&url("https://notgithub.com/x")));
        let query = Query { include_domains: vec!["a.test".into()], ..Query::default() };
        assert!(query.admits(&url("https://a.test/")) && query.admits(&url("https://w.a.test/")));
        assert!(!query.admits(&url("https://ba.test/")) && query.with_operators().ends_with(" site:a.test"));
    }
}
