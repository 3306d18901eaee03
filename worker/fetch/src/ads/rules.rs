//! Rules of filter lists that look at more of a request than its host: address, kind, and the page that it is of. They are
//! read and matched by Brave's engine.

use std::sync::Once;

use adblock::Engine;
use adblock::lists::{FilterSet, ParseOptions, ParsedLine, RuleTypes, parse_filter};
use adblock::request::Request;
use adblock::url_parser::{ResolvesDomain, set_domain_resolver};
use url::Url;

const NETWORK: fn() -> ParseOptions = || ParseOptions { rule_types: RuleTypes::NetworkOnly, ..ParseOptions::default() };

/// What begins no rule about requests: markup, JSON, comments.
fn may_begin_rule(c: char) -> bool {
    c.is_ascii_alphanumeric() || "|@/-._&?*:=,;+~%^".contains(c)
}

/// Whether the engine understands a line as a rule about requests.
pub(super) fn is_rule(line: &str) -> bool {
    line.starts_with(may_begin_rule)
        && !line.contains(char::is_whitespace)
        && matches!(parse_filter(line, false, NETWORK()), Ok(ParsedLine::Network(_)))
}

/// The rules of all lists, ready to be asked.
pub(super) struct AddressRules(Engine);

impl AddressRules {
    /// Takes the rules in `text`, one a line.
    pub fn new(text: String) -> Self {
        static RESOLVER: Once = Once::new();
        // It may be set once a process.
        RESOLVER.call_once(|| _ = set_domain_resolver(Box::new(PublicSuffixes)));
        let mut set = FilterSet::new(false);
        set.add_filter_list(text, NETWORK());
        Self(Engine::new_with_filter_set(set))
    }

    /// Whether a request of this kind, in the words of filter lists, is refused to a page.
    pub fn refuse(&self, url: &Url, page: &Url, kind: &str) -> bool {
        Request::new(url.as_str(), page.as_str(), kind, "GET")
            .is_ok_and(|request| self.0.check_network_request(&request).should_block())
    }
}

impl std::fmt::Debug for AddressRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AddressRules")
    }
}

/// What is one site, by the same list as everywhere else here.
struct PublicSuffixes;

impl ResolvesDomain for PublicSuffixes {
    fn get_host_domain(&self, host: &str) -> (usize, usize) {
        let domain = weir_suffixes::registered_domain(host).map_or(host.len(), str::len);
        (host.len() - domain, host.len())
    }
}
