//! Where the agent may type and which addresses it may name: the task's own site, and the sites that the task's words
//! name. Decided here and not by the model, because what a page says may have talked the model into anything.
//!
//! What the address guard refuses is out of reach anyway: the browser has no way to it.

use std::collections::BTreeSet;

use url::{Host, Url};

/// The sites of one task.
#[derive(Debug, Clone)]
pub(super) struct Home(BTreeSet<String>);

impl Home {
    /// The site of the scraped page, and those that the prompt names.
    pub fn new(scraped: &Url, prompt: &str) -> Self {
        let mut sites: BTreeSet<String> = site_of(scraped).into_iter().collect();
        let is_edge = |c: char| !c.is_alphanumeric() && c != '/';
        let words = prompt.split(|c: char| c.is_whitespace() || "\"'`<>()[]{},;|".contains(c));
        for word in words.map(|word| word.trim_matches(is_edge)).filter(|word| word.contains(['.', ':'])) {
            let url = if word.contains("://") { Url::parse(word) } else { Url::parse(&format!("http://{word}")) };
            let Some(url) = url.ok().filter(|url| matches!(url.scheme(), "http" | "https")) else { continue };
            // `file.txt` and `3.5` do not name a site; an address with its scheme always does.
            let is_name = match url.host() {
                Some(Host::Domain(name)) => psl::suffix(name.as_bytes()).is_some_and(|suffix| suffix.is_known()),
                _ => false,
            };
            if is_name || word.contains("://") {
                sites.extend(site_of(&url));
            }
        }
        Self(sites)
    }

    /// Whether an address belongs to the task.
    pub fn holds(&self, url: &Url) -> bool {
        site_of(url).is_some_and(|site| self.0.contains(&site))
    }

    /// The same for a text; one that is not an address belongs nowhere.
    pub fn holds_text(&self, url: &str) -> bool {
        Url::parse(url).is_ok_and(|url| self.holds(&url))
    }

    /// The names of the sites, for the text that the model gets.
    pub fn names(&self) -> String {
        self.0.iter().cloned().collect::<Vec<_>>().join(", ")
    }
}

/// The registered domain; of an address without a name the address with its port.
fn site_of(url: &Url) -> Option<String> {
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    match url.host()? {
        Host::Domain(name) => {
            let name = name.trim_end_matches('.');
            Some(psl::domain_str(name).unwrap_or(name).to_owned())
        }
        host => Some(format!("{host}:{}", url.port_or_known_default()?)),
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
