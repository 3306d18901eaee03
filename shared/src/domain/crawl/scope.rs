//! Which addresses a crawl goes to: the site, the path, the patterns, the kind of file. Robots.txt is not its business.

use percent_encoding::percent_decode_str;
use regex::{RegexSet, RegexSetBuilder};
use url::{Host, Url};
use weir_suffixes::registered_domain;

use super::CrawlOptions;
use super::address::{KeyRules, bare_host, key};

/// Most memory of one compiled list of patterns, bytes; about the same again while it matches.
const MAX_COMPILED: usize = 2 << 20;
/// The same for one pattern alone.
const MAX_PATTERN: usize = 512 << 10;
/// Deepest nesting inside a pattern.
const MAX_NESTING: u32 = 50;
/// Longest address that a crawl follows, bytes.
const MAX_ADDRESS: usize = 4_096;

/// Endings of files that are not documents.
#[rustfmt::skip]
const OTHER_FILES: &[&str] = &[
    "png", "jpg", "jpeg", "gif", "webp", "avif", "bmp", "ico", "svg", "tif", "tiff", "css", "js", "mjs", "map", "woff",
    "woff2", "ttf", "otf", "eot", "mp3", "mp4", "m4a", "m4v", "wav", "ogg", "ogv", "webm", "avi", "mov", "mkv", "flv",
    "wmv", "zip", "gz", "tgz", "bz2", "xz", "7z", "rar", "tar", "exe", "msi", "dmg", "iso", "apk", "deb", "rpm", "bin",
    "jar", "wasm", "swf",
];

/// Compiles a list of patterns: an address matches when one of them is found in it.
///
/// # Errors
/// A sentence about the first thing that is wrong, or that they are too large.
pub fn compile(patterns: &[String]) -> Result<RegexSet, String> {
    build(patterns, MAX_COMPILED)
}

/// Judges one pattern.
///
/// # Errors
/// As [`compile`].
pub(super) fn check(pattern: &str) -> Result<(), String> {
    build(&[pattern.to_owned()], MAX_PATTERN).map(|_| ())
}

fn build(patterns: &[String], most: usize) -> Result<RegexSet, String> {
    let built =
        RegexSetBuilder::new(patterns).size_limit(most).dfa_size_limit(MAX_COMPILED).nest_limit(MAX_NESTING).build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "it is too large when compiled".to_owned(),
        // The last line of a drawn message says what is wrong.
        other => other.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned(),
    })
}

/// Where a crawl may go. Made once for a job.
#[derive(Debug)]
pub struct CrawlScope {
    /// Where the site is: the start page, after its redirects once they are known.
    base: Url,
    include: RegexSet,
    exclude: RegexSet,
    options: CrawlOptions,
}

impl CrawlScope {
    /// The scope of a crawl that starts at `base`.
    ///
    /// # Errors
    /// Patterns that do not compile: never after validation.
    pub fn new(base: Url, options: &CrawlOptions) -> Result<Self, String> {
        let include = compile(&options.include_paths)?;
        let exclude = compile(&options.exclude_paths)?;
        Ok(Self { base, include, exclude, options: options.clone() })
    }

    /// The options that it was made from.
    pub fn options(&self) -> &CrawlOptions {
        &self.options
    }

    /// Where the site is.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// The same crawl, with its site at another address: a start page that redirects.
    pub fn at(&self, base: Url) -> Self {
        let Self { include, exclude, options, .. } = self;
        Self { base, include: include.clone(), exclude: exclude.clone(), options: options.clone() }
    }

    /// What makes two addresses one page in this crawl.
    pub fn key(&self, url: &Url) -> String {
        let rules = KeyRules {
            ignore_query: self.options.ignore_query_parameters,
            similar: self.options.deduplicate_similar_urls,
        };
        key(url, rules)
    }

    /// Whether a link to `url` is followed.
    pub fn follows(&self, url: &Url) -> bool {
        matches!(url.scheme(), "http" | "https")
            && url.as_str().len() <= MAX_ADDRESS
            && self.is_in_reach(url)
            && self.is_within_depth(url)
            && !is_other_file(url)
            && self.matches_patterns(url)
    }

    /// Whether a page that was asked for at an address of this crawl may have ended at `url`.
    pub fn is_in_reach(&self, url: &Url) -> bool {
        if is_same_host(&self.base, url) {
            return self.options.crawl_entire_domain || is_below(self.base.path(), url.path());
        }
        self.options.allow_external_links || self.options.allow_subdomains && is_same_site(&self.base, url)
    }

    /// Whether the path is not longer than `maxDepth` allows, counted from the start page's.
    fn is_within_depth(&self, url: &Url) -> bool {
        let bound = self.options.max_depth.map(|depth| depth.saturating_add(segments(&self.base)));
        bound.is_none_or(|bound| segments(url) <= bound)
    }

    /// Whether `includePaths` and `excludePaths` want this page.
    pub fn matches_patterns(&self, url: &Url) -> bool {
        let full;
        let text = if self.options.regex_on_full_url {
            full = url.as_str().split('#').next().unwrap_or_default();
            full
        } else {
            url.path()
        };
        // People write `über`, addresses have `%C3%BCber`: both forms count.
        let decoded = percent_decode_str(text).decode_utf8().ok().filter(|decoded| decoded != text);
        let matches = |patterns: &RegexSet| {
            patterns.is_match(text) || decoded.as_ref().is_some_and(|decoded| patterns.is_match(decoded))
        };
        (self.include.is_empty() || matches(&self.include)) && !matches(&self.exclude)
    }
}

/// Segments of the path. A folder's index file is the folder.
fn segments(url: &Url) -> i64 {
    let is_own = |part: &&str| !matches!(*part, "" | "index.html" | "index.php");
    url.path_segments().map_or(0, |parts| parts.filter(is_own).count()) as i64
}

/// The same host and port; `www.` and the step from http to https make no difference.
pub fn is_same_host(a: &Url, b: &Url) -> bool {
    fn bare(url: &Url) -> &str {
        bare_host(url.host_str().unwrap_or_default().trim_end_matches('.'))
    }
    a.port() == b.port() && bare(a) == bare(b)
}

/// The same host, one below the other, or two of one registered domain (by the public suffix list).
pub fn is_same_site(a: &Url, b: &Url) -> bool {
    if is_same_host(a, b) {
        return true;
    }
    let (Some(Host::Domain(a)), Some(Host::Domain(b))) = (a.host(), b.host()) else { return false };
    let (a, b) = (bare_host(a.trim_end_matches('.')), bare_host(b.trim_end_matches('.')));
    // What is below a public suffix (github.io) belongs to others.
    let is_suffix = weir_suffixes::listed_suffix(a) == Some(a);
    let is_below = b.strip_suffix(a).is_some_and(|rest| rest.ends_with('.'));
    !is_suffix
        && (is_below
            || a.contains('.') && registered_domain(a).is_some() && registered_domain(a) == registered_domain(b))
}

/// Whether `path` is the start page's path or below it. A start page that is a file stands for its folder.
pub fn is_below(start: &str, path: &str) -> bool {
    let folder = match start.rsplit_once('/') {
        Some((folder, file)) if file.contains('.') => folder,
        _ => start.trim_end_matches('/'),
    };
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether the address ends like a file that is not a document.
pub fn is_other_file(url: &Url) -> bool {
    let file = url.path().rsplit('/').next().unwrap_or_default();
    file.rsplit_once('.').is_some_and(|(_, extension)| OTHER_FILES.contains(&extension.to_ascii_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn scope(base: &str, options: CrawlOptions) -> CrawlScope {
        CrawlScope::new(Url::parse(base).unwrap(), &options).unwrap()
    }

    fn follows(scope: &CrawlScope, url: &str) -> bool {
        scope.follows(&Url::parse(url).unwrap())
    }

    #[test]
    fn a_crawl_stays_below_its_start_page() {
        let below = scope("https://x.test/docs/", CrawlOptions::default());
        let entire =
            scope("https://x.test/docs/", CrawlOptions { crawl_entire_domain: true, ..CrawlOptions::default() });
        for (url, is_below, is_site) in [
            ("https://x.test/docs", true, true),
            ("http://www.x.test/docs/a?b#c", true, true),
            ("https://x.test/docs.html", false, true),
            ("https://x.test/", false, true),
            ("https://x.test/docsearch", false, true),
            ("https://y.test/docs/", false, false),
            ("https://blog.x.test/docs/", false, false),
            ("https://x.test:8443/docs/", false, false),
            ("https://x.test/docs/photo.JPG", false, false),
            ("https://x.test/docs/a.pdf", true, true),
            ("ftp://x.test/docs/a", false, false),
            ("mailto:a@x.test", false, false),
        ] {
            assert_eq!((follows(&below, url), follows(&entire, url)), (is_below, is_site), "{url}");
        }
        assert!(!follows(&entire, &format!("https://x.test/{}", "x".repeat(5_000))));
        let file = scope("https://x.test/docs/index.html", CrawlOptions::default());
        assert!(follows(&file, "https://x.test/docs/a") && !follows(&file, "https://x.test/blog/"));
        let root = scope("https://x.test", CrawlOptions::default());
        assert!(follows(&root, "https://x.test/any/where"));
    }

    #[test]
    fn subdomains_are_those_of_the_registered_domain() {
        let wide = |base: &str| scope(base, CrawlOptions { allow_subdomains: true, ..CrawlOptions::default() });
        for (base, url, expected) in [
            ("https://example.com/", "https://blog.example.com/a", true),
            ("https://blog.example.com/a/", "https://example.com/b", true),
            ("https://a.example.co.uk/", "https://b.example.co.uk/", true),
            ("https://example.co.uk/", "https://other.co.uk/", false),
            ("https://me.github.io/", "https://you.github.io/", false),
            ("https://github.io/", "https://you.github.io/", false),
            ("http://localhost:99/", "http://blog.localhost:99/x", true),
            ("https://example.com/", "https://badexample.com/", false),
            ("http://127.0.0.1:99/", "http://blog.127.0.0.1.nip.io:99/", false),
            ("https://example.com/docs/", "https://example.com/blog/", false),
        ] {
            assert_eq!(follows(&wide(base), url), expected, "{base} {url}");
        }
        let external = scope("https://x.test/", CrawlOptions { allow_external_links: true, ..CrawlOptions::default() });
        assert!(follows(&external, "https://elsewhere.test/y"));
    }

    #[test]
    fn patterns_choose_pages_and_exclusion_wins() {
        let options = CrawlOptions {
            include_paths: vec!["^/blog/".to_owned(), "about".to_owned()],
            exclude_paths: vec!["draft|\\.pdf$".to_owned()],
            ..CrawlOptions::default()
        };
        let by_path = scope("https://x.test/", options.clone());
        for (url, expected) in [
            ("https://x.test/blog/1", true),
            ("https://x.test/team/about", true),
            ("https://x.test/blog/draft-2", false),
            ("https://x.test/blog/a.pdf", false),
            ("https://x.test/?q=about", false),
        ] {
            assert_eq!(follows(&by_path, url), expected, "{url}");
        }
        let foreign = CrawlOptions {
            include_paths: vec!["^/blog/über".to_owned(), "^/a%20b".to_owned()],
            exclude_paths: vec!["größe".to_owned()],
            ..CrawlOptions::default()
        };
        let foreign = scope("https://x.test/", foreign);
        for (url, expected) in [
            ("https://x.test/blog/über/1", true),
            ("https://x.test/blog/%c3%bcber/1", true),
            ("https://x.test/blog/über/größe", false),
            ("https://x.test/a b", true),
            ("https://x.test/blog/uber", false),
        ] {
            assert_eq!(follows(&foreign, url), expected, "{url}");
        }
        assert!(!by_path.matches_patterns(by_path.base()), "the start page is held to them too");
        let full = scope("https://x.test/", CrawlOptions { regex_on_full_url: true, ..options });
        assert!(follows(&full, "https://x.test/?q=about") && !follows(&full, "https://x.test/blog/1"));
    }

    #[test]
    fn depth_is_counted_in_segments_below_the_start_page() {
        let options = |depth| CrawlOptions { crawl_entire_domain: true, max_depth: Some(depth), ..Default::default() };
        for (base, depth, url, expected) in [
            ("https://x.test/", 0, "https://x.test/", true),
            ("https://x.test/", 0, "https://x.test/index.html?a=b", true),
            ("https://x.test/", 0, "https://x.test/a", false),
            ("https://x.test/", 1, "https://x.test/a/", true),
            ("https://x.test/", 1, "https://x.test/a/b", false),
            ("https://x.test/docs/", 1, "https://x.test/docs/a", true),
            ("https://x.test/docs/", 1, "https://x.test/docs/a/b", false),
            ("https://x.test/docs/", i64::MAX, "https://x.test/a/b/c/d/e", true),
        ] {
            assert_eq!(follows(&scope(base, options(depth)), url), expected, "{base} {depth} {url}");
        }
    }
}
