//! Where the agent may type and which addresses it may name: the task's own site, and the sites that the task's words
//! name. Decided here and not by the model, because what a page says may have talked the model into anything.
//!
//! What the address guard refuses is out of reach anyway: the browser has no way to it.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use url::Url;
use weir_shared::domain::reach::{Reach, addresses_in, compared, host_of, site_of, words_of};

/// The sites of one task.
#[derive(Debug, Clone)]
pub struct Home {
    sites: BTreeSet<String>,
    /// Of a task of its own, which no person watches: more is held.
    confined: Option<Arc<Confined>>,
}

/// What a task of its own is held to besides.
#[derive(Debug)]
struct Confined {
    /// The words that may be typed.
    words: HashSet<String>,
    /// Addresses that alone may be opened, and the hosts that their redirects may lead to.
    only: Option<(HashSet<String>, HashSet<String>)>,
}

impl Home {
    /// The site of the scraped page, and those that the prompt names.
    pub fn new(scraped: &Url, prompt: &str) -> Self {
        let sites = site_of(scraped).into_iter().chain(addresses_in(prompt).iter().filter_map(site_of)).collect();
        Self { sites, confined: None }
    }

    /// The sites of a task that works by itself: its browser never leaves them, and only the task's own words are typed.
    pub fn of_task(reach: &Reach) -> Self {
        let only = reach.is_strict().then(|| {
            let hosts = reach.named().iter().filter_map(|address| host_of(&Url::parse(address).ok()?)).collect();
            (reach.named().clone(), hosts)
        });
        let confined = Confined { words: reach.words().clone(), only };
        Self { sites: reach.own_sites().clone(), confined: Some(Arc::new(confined)) }
    }

    /// Whether an address belongs to the task.
    pub fn holds(&self, url: &Url) -> bool {
        site_of(url).is_some_and(|site| self.sites.contains(&site))
    }

    /// The same for a text; one that is not an address belongs nowhere.
    pub fn holds_text(&self, url: &str) -> bool {
        Url::parse(url).is_ok_and(|url| self.holds(&url))
    }

    /// Whether the browser may never leave the task's sites, however it comes to a link.
    pub fn is_confined(&self) -> bool {
        self.confined.is_some()
    }

    /// Whether a document may be fetched from there; `is_redirect`: another one has led there.
    pub fn lets_in(&self, url: &str, is_redirect: bool) -> bool {
        let Ok(url) = Url::parse(url) else { return false };
        let only = self.confined.as_ref().and_then(|confined| confined.only.as_ref());
        match only {
            None => self.holds(&url),
            Some((addresses, hosts)) => {
                addresses.contains(&compared(&url))
                    || is_redirect && host_of(&url).is_some_and(|host| hosts.contains(&host))
            }
        }
    }

    /// Whether a text may be typed at all.
    pub fn may_type(&self, text: &str) -> bool {
        self.confined.as_ref().is_none_or(|confined| words_of(text).all(|word| confined.words.contains(&word)))
    }

    /// The names of the sites, for the text that the model gets.
    pub fn names(&self) -> String {
        self.sites.iter().cloned().collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_task_s_sites_are_its_page_s_and_those_it_names() {
        let scraped = Url::parse("https://shop.example.co.uk/a").expect("url");
        let prompt = "Log in, then compare with www.other.org/x and (http://10.0.0.1:8080/). Save 3.5 as file.txt.";
        let home = Home::new(&scraped, prompt);
        for url in
            ["https://example.co.uk/", "http://a.b.example.co.uk/x", "https://other.org", "http://10.0.0.1:8080/y"]
        {
            assert!(home.holds_text(url), "{url}");
        }
        for url in [
            "https://evil.co.uk/",
            "https://example.co.uk.evil.net/",
            "http://10.0.0.1/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "data:text/html,x",
            "http://3.5/",
            "",
        ] {
            assert!(!home.holds_text(url), "{url}");
        }
    }
}
