//! What a caller gave to be sent along, and where it may go: to the origins that the caller named, and nowhere else.
//!
//! Every header of a caller passes through here, whichever engine sends it, so that no way of following a page (redirects,
//! refreshes, links, sitemaps, a browser's own requests) has to know which headers are secrets: all of them are, but for
//! the two that say how the caller wants to appear.

use std::collections::BTreeMap;

use url::{Origin, Url};
use weir_shared::domain::target::named_origins;

/// Headers that every site may see. A browser's settings say the same to all.
const APPEARANCE: [&str; 2] = ["user-agent", "accept-language"];

/// A caller's headers and where they may go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallerHeaders {
    named: Vec<Origin>,
    appearance: BTreeMap<String, String>,
    secrets: BTreeMap<String, String>,
}

impl CallerHeaders {
    /// The headers of a caller that named `requested`, as it stood in the request. `None`: it named nothing, so that they go
    /// nowhere.
    pub fn new(requested: Option<&str>, headers: &BTreeMap<String, String>) -> Self {
        if headers.is_empty() {
            return Self::default();
        }
        let is_appearance = |name: &str| APPEARANCE.iter().any(|known| name.trim().eq_ignore_ascii_case(known));
        let (appearance, secrets) = headers
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .partition(|(name, _)| is_appearance(name));
        Self { named: requested.map(named_origins).unwrap_or_default(), appearance, secrets }
    }

    /// Whether there are none at all.
    pub fn is_empty(&self) -> bool {
        self.appearance.is_empty() && self.secrets.is_empty()
    }

    /// Whether the caller named the origin of `url`.
    pub fn names(&self, url: &Url) -> bool {
        self.named.contains(&url.origin())
    }

    /// Whether the caller named an origin of this host on this port, whatever its scheme. An IPv6 address is in brackets.
    pub fn names_port(&self, host: &str, port: u16) -> bool {
        let is_its =
            |origin: &Origin| matches!(origin, Origin::Tuple(_, at, own) if *own == port && at.to_string() == host);
        self.named.iter().any(is_its)
    }

    /// Whether something that only the caller has is sent to `url`.
    pub fn has_secrets_for(&self, url: &Url) -> bool {
        !self.secrets.is_empty() && self.names(url)
    }

    /// The same for its host, whatever the scheme and the port.
    pub fn has_secrets_on_host(&self, url: &Url) -> bool {
        let host = url.host().map(|host| host.to_owned());
        let is_its = |origin: &Origin| matches!(origin, Origin::Tuple(_, named, _) if Some(named) == host.as_ref());
        !self.secrets.is_empty() && self.named.iter().any(is_its)
    }

    /// Whether something that only the caller has is sent to nobody, since nobody is named.
    pub fn are_kept_back(&self) -> bool {
        !self.secrets.is_empty() && self.named.is_empty()
    }

    /// What is sent to `url`.
    pub fn for_url(&self, url: &Url) -> impl Iterator<Item = (&String, &String)> {
        let secrets = self.has_secrets_for(url).then_some(&self.secrets);
        self.appearance.iter().chain(secrets.into_iter().flatten())
    }

    /// How the caller wants to appear, to everybody.
    pub fn appearance(&self) -> &BTreeMap<String, String> {
        &self.appearance
    }

    /// What is for the named origins alone.
    pub fn secrets(&self) -> &BTreeMap<String, String> {
        &self.secrets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(requested: &str, to: &str) -> Vec<String> {
        let given = ["Authorization", "PRIVATE-TOKEN", "user-Agent", "Accept-Language", "Accept"];
        let given = given.map(|name| (name.to_owned(), "x".to_owned())).into();
        let headers = CallerHeaders::new(Some(requested), &given);
        let to = to.parse().expect("a URL");
        assert_eq!(headers.has_secrets_for(&to), headers.for_url(&to).count() > 2);
        headers.for_url(&to).map(|(name, _)| name.to_ascii_lowercase()).collect()
    }

    #[test]
    fn a_host_is_the_callers_on_every_port() {
        let secret = [("X-Own".to_owned(), "1".to_owned())].into();
        let headers = CallerHeaders::new(Some("https://a.test/"), &secret);
        for (url, expected) in [
            ("https://a.test/", true),
            ("https://a.test:8443/", true),
            ("http://a.test/", true),
            ("https://b.test/", false),
        ] {
            assert_eq!(headers.has_secrets_on_host(&url.parse().expect("a URL")), expected, "{url}");
        }
        assert!(!CallerHeaders::default().has_secrets_on_host(&"https://a.test/".parse().expect("a URL")));
    }

    #[test]
    fn a_port_is_the_callers_with_the_host_that_it_named() {
        let secret = [("X-Own".to_owned(), "1".to_owned())].into();
        for (requested, host, port, expected) in [
            ("https://A.test/", "a.test", 443, true),
            ("https://a.test/", "a.test", 80, false),
            ("https://a.test/", "b.test", 443, false),
            ("a.test/x", "a.test", 80, true),
            ("a.test/x", "a.test", 443, true),
            ("http://[::1]:81/", "[::1]", 81, true),
        ] {
            let headers = CallerHeaders::new(Some(requested), &secret);
            assert_eq!(headers.names_port(host, port), expected, "{requested} {host} {port}");
        }
    }

    #[test]
    fn where_nobody_is_named_only_the_callers_appearance_is_sent() {
        let given = [("X-Own".to_owned(), "1".to_owned()), ("User-Agent".to_owned(), "Mine".to_owned())];
        let headers = CallerHeaders::new(None, &given.clone().into());
        let to = "https://a.test/".parse().expect("a URL");
        assert_eq!(headers.for_url(&to).map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["User-Agent"]);
        assert!(headers.are_kept_back() && !headers.has_secrets_for(&to) && !headers.has_secrets_on_host(&to));
        assert!(!CallerHeaders::new(Some("https://b.test/"), &given.into()).are_kept_back());
    }

    #[test]
    fn everything_but_the_callers_appearance_stays_with_the_origin_it_named() {
        for (requested, to, is_home) in [
            ("http://a.test/x", "http://a.test/y?z", true),
            ("http://a.test:80/", "http://a.test/", true),
            ("http://a.test/", "https://a.test/", false),
            ("https://a.test/", "http://a.test/", false),
            ("http://a.test/", "http://a.test:81/", false),
            ("http://a.test/", "http://b.a.test/", false),
            ("http://b.a.test/", "http://a.test/", false),
            ("http://a.test/", "http://A.test./", false),
            // The caller named a host without a scheme.
            ("a.test/x", "http://a.test/", true),
            ("a.test/x", "https://a.test/", true),
            ("a.test/x", "https://a.test:8443/", false),
            ("a.test:8080", "https://a.test/", false),
        ] {
            let expected: &[&str] = match is_home {
                true => &["accept-language", "user-agent", "accept", "authorization", "private-token"],
                false => &["accept-language", "user-agent"],
            };
            assert_eq!(sent(requested, to), expected, "{requested} -> {to}");
        }
    }
}
