//! Where a task may go and what it may type: the one place of the rule (docs/security.md).
//!
//! A task's own words are its prompt, its schema and the addresses it was given. Whatever pages say is data. So
//!
//! - an address is opened if the task's own words name it; or if it stood as a link on a page that was opened, in a map or
//!   among the hits of a search, and its site is one of the task's. It is never put together: what the model names is
//!   compared with what was seen;
//! - the sites of the task are those that its own words name, and those of the hits of its searches;
//! - with `strictConstrainToURLs` only the given addresses are opened, and their redirects stay on their hosts;
//! - text is typed only on the sites that the task's own words name, and only words that stand in them.

use std::collections::{BTreeSet, HashSet};

use url::{Host, Url};

use super::target::fetch_url;

/// What one task may do.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    /// Given or named addresses, in the form in which addresses are compared.
    named: HashSet<String>,
    /// Sites that the task's own words name.
    own_sites: BTreeSet<String>,
    /// Sites of hits.
    hit_sites: BTreeSet<String>,
    /// Links that were seen.
    found: HashSet<String>,
    /// Words of the task, in small letters.
    words: HashSet<String>,
    /// Only the given addresses are opened.
    strict: bool,
}

impl Reach {
    /// Of a task with these addresses and these words.
    pub fn new(urls: &[String], words: &str, strict: bool) -> Self {
        let mut reach = Self { strict, ..Self::default() };
        let given = urls.iter().filter_map(|url| fetch_url(url.trim_end_matches("/*")).ok());
        let in_words = if strict { Vec::new() } else { addresses_in(words) };
        for url in given.chain(in_words) {
            reach.own_sites.extend(site_of(&url));
            reach.named.insert(compared(&url));
        }
        let all = urls.iter().map(String::as_str).chain([words]);
        reach.words = all.flat_map(words_of).collect();
        reach
    }

    /// Notes links of a page that was opened, or of a map.
    pub fn saw<'a>(&mut self, links: impl IntoIterator<Item = &'a str>) {
        self.found.extend(links.into_iter().filter_map(|link| Url::parse(link).ok()).map(|url| compared(&url)));
    }

    /// Notes the hits of a search.
    pub fn hit<'a>(&mut self, hits: impl IntoIterator<Item = &'a str>) {
        for url in hits.into_iter().filter_map(|hit| Url::parse(hit).ok()) {
            self.hit_sites.extend(site_of(&url));
            self.found.insert(compared(&url));
        }
    }

    /// Whether an address may be opened.
    pub fn may_open(&self, url: &Url) -> bool {
        let address = compared(url);
        if self.named.contains(&address) {
            return true;
        }
        !self.strict && self.found.contains(&address) && self.has_site(url)
    }

    /// Whether an address is on a site of the task.
    pub fn has_site(&self, url: &Url) -> bool {
        site_of(url).is_some_and(|site| self.own_sites.contains(&site) || self.hit_sites.contains(&site))
    }

    /// Whether the task is held to its addresses.
    pub fn is_strict(&self) -> bool {
        self.strict
    }

    /// The sites on which text may be typed.
    pub fn own_sites(&self) -> &BTreeSet<String> {
        &self.own_sites
    }

    /// The addresses that are named, as they are compared.
    pub fn named(&self) -> &HashSet<String> {
        &self.named
    }

    /// Whether every word of a text stands in the task's own words.
    pub fn may_type(&self, text: &str) -> bool {
        words_of(text).all(|word| self.words.contains(&word))
    }

    /// The words that may be typed.
    pub fn words(&self) -> &HashSet<String> {
        &self.words
    }
}

/// The words of a text as they are compared: runs without white space, without the punctuation around them, in small
/// letters.
pub fn words_of(text: &str) -> impl Iterator<Item = String> {
    let is_edge = |c: char| !c.is_alphanumeric();
    let parts = text.split(|c: char| c.is_whitespace() || "\"'`<>()[]{},;|".contains(c));
    parts.map(move |word| word.trim_matches(is_edge).to_lowercase()).filter(|word| !word.is_empty())
}

/// An address in the form in which addresses are compared: without its fragment.
pub fn compared(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    url.into()
}

/// The hosts, with their ports, that redirects of these addresses may lead to where they are all that may be opened.
pub fn hosts_of(urls: &[String]) -> Vec<String> {
    let hosts: BTreeSet<String> = urls.iter().filter_map(|url| host_of(&fetch_url(url).ok()?)).collect();
    hosts.into_iter().collect()
}

/// A host with its port, as [`hosts_of`] has it.
pub fn host_of(url: &Url) -> Option<String> {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    Some(format!("{}{port}", url.host_str()?.trim_end_matches('.').to_ascii_lowercase()))
}

/// The addresses that a text names: those with a scheme, and names of sites.
pub fn addresses_in(text: &str) -> Vec<Url> {
    let is_edge = |c: char| !c.is_alphanumeric() && c != '/';
    let words = text.split(|c: char| c.is_whitespace() || "\"'`<>()[]{},;|".contains(c));
    let mut found = Vec::new();
    for word in words.map(|word| word.trim_matches(is_edge)).filter(|word| word.contains(['.', ':'])) {
        let url = if word.contains("://") { Url::parse(word) } else { Url::parse(&format!("http://{word}")) };
        let Some(url) = url.ok().filter(|url| matches!(url.scheme(), "http" | "https")) else { continue };
        // `file.txt` and `3.5` do not name a site; an address with its scheme always does.
        let is_name = match url.host() {
            Some(Host::Domain(name)) => weir_suffixes::listed_suffix(name).is_some(),
            _ => false,
        };
        if is_name || word.contains("://") {
            found.push(url);
        }
    }
    found
}

/// What is one site: the registered domain; of an address without a name the address with its port.
pub fn site_of(url: &Url) -> Option<String> {
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    match url.host()? {
        Host::Domain(name) => {
            let name = name.trim_end_matches('.');
            Some(weir_suffixes::registered_domain(name).unwrap_or(name).to_owned())
        }
        host => Some(format!("{host}:{}", url.port_or_known_default()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).expect("a URL")
    }

    #[test]
    fn an_address_is_named_or_a_link_that_was_seen_on_a_site_of_the_task() {
        let given = ["https://shop.example.co.uk/a?x=1".to_owned()];
        let mut reach = Reach::new(&given, "Compare with https://other.org/list and www.third.net.", false);
        for (address, may) in [
            ("https://shop.example.co.uk/a?x=1#top", true),
            ("https://other.org/list", true),
            ("http://www.third.net/", true),
            ("https://shop.example.co.uk/b", false),
            ("https://shop.example.co.uk/a?x=SECRET", false),
        ] {
            assert_eq!(reach.may_open(&url(address)), may, "{address}");
        }
        reach.saw(["https://example.co.uk/b", "https://evil.test/collect", "javascript:alert(1)", "not one"]);
        for (address, may) in [
            ("https://example.co.uk/b#x", true),
            ("https://example.co.uk/b?leak=1", false),
            ("https://evil.test/collect", false),
            ("file:///etc/passwd", false),
        ] {
            assert_eq!(reach.may_open(&url(address)), may, "{address}");
        }
        reach.hit(["https://found.test/page"]);
        reach.saw(["https://found.test/next"]);
        assert!(reach.may_open(&url("https://found.test/page")) && reach.may_open(&url("https://found.test/next")));
        assert!(!reach.own_sites().contains("found.test"), "nothing is typed where a search has led");
    }

    #[test]
    fn a_strict_task_opens_what_it_was_given_and_nothing_else() {
        let given = ["http://a.test:81/x".to_owned()];
        let mut reach = Reach::new(&given, "See https://b.test/", true);
        reach.saw(["http://a.test:81/y"]);
        reach.hit(["http://c.test/"]);
        assert!(reach.may_open(&url("http://a.test:81/x")));
        for address in ["http://a.test:81/y", "https://b.test/", "http://c.test/", "http://a.test/x"] {
            assert!(!reach.may_open(&url(address)), "{address}");
        }
        assert_eq!(hosts_of(&given), ["a.test:81"]);
    }

    #[test]
    fn only_the_tasks_own_words_are_typed() {
        let reach = Reach::new(&[], "Log in as \"anna\" with Pass-Word1! and search for red shoes.", false);
        for (text, may) in [
            ("anna", true),
            ("Pass-Word1!", true),
            ("Red shoes", true),
            ("", true),
            ("blue shoes", false),
            ("a@b.c", false),
        ] {
            assert_eq!(reach.may_type(text), may, "{text}");
        }
    }
}
