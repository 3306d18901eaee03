//! Which sites a request may have to do with: the lists of `threatProtection` (wire 25). The one place that judges them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use url::Url;

use super::reach::host_of;

/// Which hosts a way out refuses, on which port: names in small letters.
pub type RefusedHosts = Arc<dyn Fn(&str, u16) -> bool + Send + Sync>;

/// Lists of a caller. Hosts are compared in small letters, names of other scripts in their ASCII form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SiteRules {
    /// Always allowed, whatever the others say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    /// Never allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<String>,
    /// Top-level domains that are never allowed, without a dot.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_tlds: Vec<String>,
    /// Hosts, with their ports, that documents may come from, redirects included; empty: any. What a page loads besides is
    /// not bound by it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<String>,
}

impl SiteRules {
    /// For what belongs to no request of a caller.
    pub fn none() -> &'static Self {
        static NONE: SiteRules =
            SiteRules { allowed: Vec::new(), blocked: Vec::new(), blocked_tlds: Vec::new(), documents: Vec::new() };
        &NONE
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.blocks_nothing() && self.documents.is_empty()
    }

    fn blocks_nothing(&self) -> bool {
        self.blocked.is_empty() && self.blocked_tlds.is_empty()
    }

    /// Whether a document may be fetched from there: what [`SiteRules::allows`], from a host that documents may come from.
    pub fn allows_document(&self, url: &Url) -> bool {
        let is_named = || host_of(url).is_some_and(|host| self.documents.contains(&host));
        self.allows(url) && (self.documents.is_empty() || is_named())
    }

    /// Whether the site of an address may be asked, and answered.
    pub fn allows(&self, url: &Url) -> bool {
        self.allows_host(url.host_str().unwrap_or_default())
    }

    /// The same by the host alone, an IPv6 address in brackets.
    pub fn allows_host(&self, host: &str) -> bool {
        if self.blocks_nothing() {
            return true;
        }
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let is_in = |list: &[String]| list.iter().any(|pattern| matches(pattern, &host));
        if is_in(&self.allowed) {
            return true;
        }
        let tld = host.rsplit('.').next().unwrap_or_default();
        !is_in(&self.blocked) && !self.blocked_tlds.iter().any(|blocked| blocked == tld)
    }

    /// The hosts that a way out for one page refuses; `None`: it needs no rules of its own.
    pub fn refused(&self) -> Option<RefusedHosts> {
        let rules = (!self.blocks_nothing()).then(|| self.clone())?;
        Some(Arc::new(move |host, _| !rules.allows_host(host)))
    }

    /// These rules and others, of which each blocks.
    pub fn and(mut self, more: Self) -> Self {
        // What one allows, the other may still block: only what both lists name goes before both.
        self.allowed = match (self.blocks_nothing(), more.blocks_nothing()) {
            (true, _) => more.allowed,
            (false, true) => self.allowed,
            (false, false) => self.allowed.into_iter().filter(|pattern| more.allowed.contains(pattern)).collect(),
        };
        self.blocked.extend(more.blocked);
        self.blocked_tlds.extend(more.blocked_tlds);
        self.documents.extend(more.documents);
        self
    }
}

/// A domain or a glob in the form in which hosts are compared; `None` when it is neither.
pub fn pattern(text: &str) -> Option<String> {
    let text = text.trim().to_lowercase();
    let is_plain = !text.ends_with("*.") && !text.contains(['/', ':', '@', '?', '#', ' ', '\\']);
    let text = text.trim_end_matches('.');
    if text.is_empty() || !is_plain {
        return None;
    }
    let (stars, name) = match text.strip_prefix("*.") {
        Some(name) => ("*.", name),
        None => ("", text),
    };
    if name.contains('*') {
        return Some(text.to_owned());
    }
    url::Host::parse(name).ok().map(|host| format!("{stars}{host}"))
}

/// Whether a host fits a pattern, in which `*` stands for any characters. Takes time by the product of both lengths at
/// most, which are those of names.
fn matches(pattern: &str, host: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| host.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_hold_for_hosts_and_the_allowed_go_first() {
        let list = |patterns: &[&str]| patterns.iter().filter_map(|text| pattern(text)).collect::<Vec<_>>();
        let rules = SiteRules {
            allowed: list(&["good.bad.test", "*.fine.zip"]),
            blocked: list(&["bad.test", "*.bad.test", "ads*.test", "Bücher.example", "127.0.0.2"]),
            blocked_tlds: vec!["zip".to_owned()],
            documents: Vec::new(),
        };
        for (url, allowed) in [
            ("https://bad.test/x", false),
            ("https://BAD.test./", false),
            ("https://a.b.bad.test/", false),
            ("https://good.bad.test/", true),
            ("https://notbad.test/", true),
            ("https://ads7.test/", false),
            ("https://ads7.test.org/", true),
            ("https://xn--bcher-kva.example/", false),
            ("http://127.0.0.2:81/", false),
            ("http://127.0.0.1/", true),
            ("https://file.zip/", false),
            ("https://a.fine.zip/", true),
            ("https://fine.zip/", false),
        ] {
            assert_eq!(rules.allows(&Url::parse(url).expect("a URL")), allowed, "{url}");
        }
        assert!(SiteRules::none().allows(&Url::parse("https://bad.test/").expect("a URL")));
    }

    #[test]
    fn documents_come_from_the_named_hosts_alone() {
        let rules = SiteRules { documents: vec!["a.test".into(), "127.0.0.1:81".into()], ..SiteRules::default() };
        let url = |text: &str| Url::parse(text).expect("a URL");
        for (address, may) in [
            ("https://A.test/x", true),
            ("http://127.0.0.1:81/", true),
            ("https://b.test/", false),
            ("https://a.test:81/", false),
            ("http://127.0.0.1/", false),
        ] {
            assert_eq!(rules.allows_document(&url(address)), may, "{address}");
            assert!(rules.allows(&url(address)), "what a page loads besides comes from anywhere");
        }
        assert!(!rules.is_empty() && rules.refused().is_none());
    }

    #[test]
    fn of_two_lists_each_blocks() {
        let rules = |allowed: &str, blocked: &str| SiteRules {
            allowed: vec![allowed.to_owned()],
            blocked: vec![blocked.to_owned()],
            ..SiteRules::default()
        };
        let both = rules("x.test", "*.test").and(rules("y.test", "*.org"));
        assert_eq!((both.allowed.len(), both.blocked.len()), (0, 2));
        assert_eq!(rules("x.test", "*.test").and(rules("x.test", "*.org")).allowed, ["x.test"]);
        assert_eq!(SiteRules::default().and(rules("x.test", "*.test")), rules("x.test", "*.test"));
    }

    #[test]
    fn what_is_no_domain_is_no_pattern() {
        for text in ["", "https://x.test", "x.test/path", "a b", "user@x.test", "*."] {
            assert_eq!(pattern(text), None, "{text}");
        }
    }
}
