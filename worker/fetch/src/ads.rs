//! The hosts of ads and trackers, which `blockAds` keeps browsers from: a list of our own, or lists of the operator's
//! (`WEIR_AD_LISTS`).
//!
//! A browser's way out sees the host of a request and, through TLS, nothing else of it. It refuses what is listed as a
//! whole host, which costs a page nothing. Rules that look at more are for the browser to ask about each request, and it
//! does where the operator's lists have such ([`rules`]):
//!
//! ```text
//! 0.0.0.0 ads.test tracker.test    as in a hosts file: these hosts alone
//! ads.test                         a name: the host and its subdomains
//! ||ads.test^                      Adblock syntax: likewise; also with $third-party, $all and $important
//! @@||good.ads.test^               an exception: this host and its subdomains are let through after all
//! /banner/*$image,domain=a.test    everything else: by address, kind and page
//! @@||ads.test/ok.js               an exception for a part of a host: all of the host is judged by the browser then
//! ```

mod rules;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use url::{Host, Url};
use weir_shared::config::AdList;

use self::rules::AddressRules;
use super::proxy::HostFilter;

/// The list that is there without any setting.
const BUILTIN: &str = include_str!("ads/builtin.txt");

/// Largest file, bytes. The largest public lists have 30 MiB.
const MAX_FILE: u64 = 64 << 20;
/// Most hosts of all lists together.
const MAX_HOSTS: usize = 2_000_000;
/// Longest line that is read, bytes.
const MAX_LINE: usize = 4_096;
/// Longest host name (RFC 1035).
const MAX_NAME: usize = 253;

/// Names of a hosts file that are not about ads.
const OWN_NAMES: &[&str] =
    &["localhost", "localhost.localdomain", "local", "broadcasthost", "ip6-localhost", "ip6-loopback"];

/// Options of a rule that leave it one about a whole host.
const WHOLE_HOST: &[&str] = &["third-party", "3p", "all", "important"];

/// Why lists cannot be used; names the file.
#[derive(Debug, thiserror::Error)]
pub enum AdListError {
    #[error("WEIR_AD_LISTS: {0}: {1}")]
    Unreadable(PathBuf, std::io::Error),
    #[error("WEIR_AD_LISTS: {0} is larger than 64 MiB")]
    TooLarge(PathBuf),
    #[error(
        "WEIR_AD_LISTS: {0} has no rule: allowed are hosts files, lists of names, and Adblock rules such as ||ads.test^"
    )]
    Empty(PathBuf),
    #[error("WEIR_AD_LISTS: the lists have more than {0} hosts together")]
    TooMany(usize),
}

/// What is said of a name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Rule {
    blocks: bool,
    blocks_subdomains: bool,
    /// With its subdomains; wins over what is blocked.
    allows: bool,
    /// Part of it, or some requests to it, are let through: it is not refused as a whole, with its subdomains.
    is_split: bool,
}

/// Whether a host is one of ads and trackers.
#[derive(Debug)]
pub struct AdHosts {
    /// By lower-case name. A look at a host asks once for each of its labels.
    names: HashMap<Box<str>, Rule>,
    /// What of the lists looks at more than hosts; `None`: nothing.
    rules: Option<AddressRules>,
}

/// Lists as they are read: what becomes of a text's lines.
#[derive(Default)]
struct Reading {
    names: HashMap<Box<str>, Rule>,
    /// Rules in filter syntax, one a line, and how many of them are about more than whole hosts.
    rules: String,
    by_address: usize,
}

impl AdHosts {
    /// The list that is there without any setting.
    pub fn builtin() -> Self {
        let mut reading = Reading::default();
        reading.add(BUILTIN, MAX_HOSTS);
        reading.finish()
    }

    /// Reads the lists. Blocks.
    ///
    /// # Errors
    /// When a file cannot be read, is too large or has nothing that is understood.
    pub fn read(lists: &[AdList]) -> Result<Self, AdListError> {
        Self::read_at_most(lists, MAX_HOSTS)
    }

    fn read_at_most(lists: &[AdList], most: usize) -> Result<Self, AdListError> {
        let mut reading = Reading::default();
        for list in lists {
            match list {
                AdList::Builtin => _ = reading.add(BUILTIN, most),
                AdList::File(path) => reading.add_file(path, most)?,
            }
            if reading.len() > most {
                return Err(AdListError::TooMany(most));
            }
        }
        Ok(reading.finish())
    }

    /// Whether requests are to be asked about one by one: see [`AdHosts::refuse`].
    pub fn have_rules(&self) -> bool {
        self.rules.is_some()
    }

    /// Whether a request of `page` to `url` is one for ads by more than its host. `kind`: what is asked for, in the words
    /// of filter lists (`script`, `image`, `subdocument` …).
    pub fn refuse(&self, url: &Url, page: &Url, kind: &str) -> bool {
        self.rules.as_ref().is_some_and(|rules| rules.refuse(url, page, kind))
    }

    /// Whether a browser that is to meet no ads is kept from `host`.
    pub fn has(&self, host: &str) -> bool {
        let mut name = host.trim_end_matches('.').to_ascii_lowercase();
        if name.len() > MAX_NAME {
            return false;
        }
        let mut is_blocked = false;
        let mut is_itself = true;
        loop {
            if let Some(rule) = self.names.get(name.as_str()) {
                if rule.allows || rule.is_split {
                    return false;
                }
                is_blocked |= rule.blocks_subdomains || is_itself && rule.blocks;
            }
            is_itself = false;
            match name.find('.') {
                Some(dot) => _ = name.drain(..=dot),
                None => return is_blocked,
            }
        }
    }

    /// Whether ads are refused to a page of this address whose caller wants none: one that lies on such a host itself
    /// would be gone.
    pub fn are_refused_to(&self, page: &Url) -> bool {
        !page.host_str().is_some_and(|host| self.has(host))
    }
}

impl Reading {
    /// Hosts and rules.
    fn len(&self) -> usize {
        self.names.len() + self.by_address
    }

    fn add_file(&mut self, path: &Path, most: usize) -> Result<(), AdListError> {
        use std::io::Read as _;
        let unreadable = |error| AdListError::Unreadable(path.to_owned(), error);
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let mut bytes = Vec::new();
        // Bounded while it is read: a pipe or a growing file has no size that can be asked for.
        file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(AdListError::TooLarge(path.to_owned()));
        }
        let (taken, passed_over) = self.add(&String::from_utf8_lossy(&bytes), most);
        if taken == 0 {
            return Err(AdListError::Empty(path.to_owned()));
        }
        tracing::info!(list = %path.display(), taken, passed_over, "a list of ads is read");
        Ok(())
    }

    /// How many hosts and rules a list has, and how many of its lines say nothing of requests. What is more than `most`
    /// and one is not taken in.
    fn add(&mut self, text: &str, most: usize) -> (usize, usize) {
        let (mut taken, mut passed_over) = (0, 0);
        for line in text.lines() {
            let line = line.trim().trim_start_matches('\u{feff}');
            if is_comment(line) {
                continue;
            }
            let before = taken;
            if line.len() <= MAX_LINE && self.len() <= most {
                taken += self.add_line(line);
            }
            passed_over += usize::from(taken == before);
        }
        (taken, passed_over)
    }

    /// How many hosts or rules a line has.
    fn add_line(&mut self, line: &str) -> usize {
        let hosts = read_line(line);
        let count = hosts.len();
        for (name, rule) in hosts {
            let known = self.names.entry(name.into_boxed_str()).or_default();
            known.blocks |= rule.blocks;
            known.blocks_subdomains |= rule.blocks_subdomains;
            known.allows |= rule.allows;
        }
        // Names that stand alone are refused as hosts whatever a rule says.
        let is_filter = line.starts_with("||") || line.starts_with("@@||");
        if count > 0 && !is_filter || count == 0 && !rules::is_rule(line) {
            return count;
        }
        if count == 0 {
            self.by_address += 1;
            if let Some(name) = line.strip_prefix("@@||").and_then(|rule| host_name(host_of(rule))) {
                self.names.entry(name.into_boxed_str()).or_default().is_split = true;
            }
        }
        self.rules.push_str(line);
        self.rules.push('\n');
        count.max(1)
    }

    /// Without rules about more than hosts, no request has to be asked about.
    fn finish(self) -> AdHosts {
        let rules = (self.by_address > 0).then(|| AddressRules::new(self.rules));
        AdHosts { names: self.names, rules }
    }
}

impl HostFilter for AdHosts {
    fn blocks(&self, host: &str) -> bool {
        self.has(host)
    }
}

fn is_comment(line: &str) -> bool {
    line.is_empty() || line.starts_with(['!', '#', '['])
}

/// The hosts that a line of a list names.
fn read_line(line: &str) -> Vec<(String, Rule)> {
    let subdomains = Rule { blocks: true, blocks_subdomains: true, ..Rule::default() };
    if let Some(rule) = line.strip_prefix("@@||") {
        let allowed = Rule { allows: true, ..Rule::default() };
        return adblock_host(rule).map(|name| (name, allowed)).into_iter().collect();
    }
    if let Some(rule) = line.strip_prefix("||") {
        return adblock_host(rule).map(|name| (name, subdomains)).into_iter().collect();
    }
    // A comment behind a host; `shop.test##.ad` is a rule about parts of pages.
    let mut words = line.split_ascii_whitespace().take_while(|word| !word.starts_with('#'));
    let Some(first) = words.next() else { return Vec::new() };
    let Ok(address) = first.parse::<std::net::IpAddr>() else {
        // A name, alone in its line.
        let name = words.next().is_none().then(|| host_name(first)).flatten();
        return name.map(|name| (name, subdomains)).into_iter().collect();
    };
    // Other addresses say where a host really is.
    if !address.is_unspecified() && !address.is_loopback() {
        return Vec::new();
    }
    let itself = Rule { blocks: true, ..Rule::default() };
    words.filter_map(host_name).map(|name| (name, itself)).collect()
}

/// The host that an address of a rule begins with.
fn host_of(rule: &str) -> &str {
    rule.split(['^', '/', '*', '$', ':', '?', '|']).next().unwrap_or_default()
}

/// The host of `ads.test^` or `ads.test^$third-party`; `None`: the rule is not about a whole host.
fn adblock_host(rule: &str) -> Option<String> {
    let (host, rest) = rule.split_once('^')?;
    let is_whole = match rest.strip_prefix('$') {
        Some(options) => options.split(',').all(|option| WHOLE_HOST.contains(&option)),
        None => rest.is_empty() || rest == "|",
    };
    is_whole.then(|| host_name(host)).flatten()
}

/// The name as hosts are compared; `None`: it is none of a site. A name without a dot would take a whole domain away.
fn host_name(text: &str) -> Option<String> {
    let text = text.trim_end_matches('.');
    if text.len() > MAX_NAME || OWN_NAMES.contains(&text) {
        return None;
    }
    let Ok(Host::Domain(name)) = Host::parse(text) else { return None };
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.');
    let is_name = name.contains('.') && !name.starts_with('.') && !name.contains("..") && name.bytes().all(fits);
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn hosts(list: &str) -> AdHosts {
        let mut reading = Reading::default();
        reading.add(list, MAX_HOSTS);
        reading.finish()
    }

    #[test]
    fn a_host_is_refused_with_its_subdomains_and_its_lookalikes_are_not() {
        let hosts = AdHosts::builtin();
        for host in ["doubleclick.net", "ads.g.DoubleClick.net", "doubleclick.net."] {
            assert!(hosts.has(host), "{host}");
        }
        let long = format!("{}doubleclick.net", "a.".repeat(200));
        for host in ["notdoubleclick.net", "doubleclick.net.example.com", "net", "", ".", &long] {
            assert!(!hosts.has(host), "{host}");
        }
        assert!(hosts.are_refused_to(&"https://shop.test/doubleclick.net".parse().unwrap()));
        assert!(!hosts.are_refused_to(&"https://ad.doubleclick.net/click".parse().unwrap()));
    }

    #[test]
    fn the_list_holds_no_name_twice_and_every_line_is_one() {
        let rules: Vec<&str> = BUILTIN.lines().filter(|line| !is_comment(line)).collect();
        let names: Vec<&str> =
            rules.iter().map(|rule| rule.strip_prefix("||").unwrap().strip_suffix('^').unwrap()).collect();
        let hosts = AdHosts::builtin();
        assert!(names.len() > 100 && hosts.names.len() == names.len());
        assert!(!hosts.have_rules(), "no request is held back for it");
        assert!(names.iter().all(|name| hosts.has(name) && hosts.has(&format!("x.{name}"))));
    }

    #[test]
    fn every_kind_of_list_is_read_as_it_means_it() {
        let hosts = hosts(
            "\u{feff}# a hosts file\r\n127.0.0.1 localhost\r\n0.0.0.0 one.test two.test # both\r\n:: six.test\r\n\
             192.168.0.7 nas.test\r\n[Adblock Plus 2.0]\n! a comment\n||three.test^\n||four.test^$third-party,important\n\
             @@||good.three.test^\n||parts.test^$script\n||only.test^$domain=shop.test\n||path.test/ads^\n||wild.*^\n\
             ||xyz^\n/banner/*\nshop.test##.ad\nplain.test\nBÜCHER.test\ntwo words.test\n0.0.0.0 0.0.0.0\n999.1.1.1 a.test",
        );
        for host in [
            "one.test",
            "two.test",
            "six.test",
            "three.test",
            "a.b.three.test",
            "four.test",
            "x.four.test",
            "plain.test",
            "x.plain.test",
            "xn--bcher-kva.test",
        ] {
            assert!(hosts.has(host), "{host}");
        }
        for host in [
            "localhost",
            "x.one.test",
            "nas.test",
            "good.three.test",
            "very.good.three.test",
            "parts.test",
            "only.test",
            "path.test",
            "wild.test",
            "abc.xyz",
            "xyz",
            "shop.test",
            "words.test",
            "0.0.0.0",
            "a.test",
        ] {
            assert!(!hosts.has(host), "{host}");
        }
    }

    #[test]
    fn rules_about_more_than_hosts_are_matched_by_address_kind_and_page() {
        let hosts = hosts(
            "! Title: a list\n||whole.test^\n/banner/*$image\n||mixed.test/ads/\n||only.test^$script,domain=shop.test\n\
             ||third.test/x$third-party\n||partly.test^\n@@||partly.test/player.js$script\nshop.test##.ad\n\
             &ad_box=\n@@/banner/ours.png$domain=shop.test\ntwo words.test/x\n<a href=\"/x\">\n",
        );
        assert!(hosts.have_rules());
        let page: Url = "https://www.shop.test/".parse().unwrap();
        let asked = |url: &str, kind: &str| hosts.refuse(&url.parse().unwrap(), &page, kind);
        for (url, kind, is_refused) in [
            ("https://cdn.test/banner/1.png", "image", true),
            ("https://cdn.test/banner/1.js", "script", false),
            ("https://cdn.test/banner/ours.png", "image", false),
            ("https://mixed.test/ads/1.js", "script", true),
            ("https://mixed.test/film.mp4", "media", false),
            ("https://only.test/a.js", "script", true),
            ("https://only.test/a.png", "image", false),
            ("https://third.test/x", "script", true),
            ("https://cdn.test/?a=1&ad_box=2", "xmlhttprequest", true),
            ("https://partly.test/player.js", "script", false),
            ("https://partly.test/ad.js", "script", true),
            ("https://words.test/x", "script", false),
        ] {
            assert_eq!(asked(url, kind), is_refused, "{kind} {url}");
        }
        let own: Url = "https://third.test/".parse().unwrap();
        assert!(!hosts.refuse(&"https://a.third.test/x".parse().unwrap(), &own, "script"), "of the site itself");
        assert!(hosts.has("whole.test"), "at the way out");
        assert!(!hosts.has("partly.test") && !hosts.has("mixed.test"), "not as a whole");
    }

    #[test]
    fn lists_of_files_stand_beside_or_instead_of_the_own_one_and_unusable_files_are_named() {
        let folder = std::env::temp_dir().join(format!("weir-ads-{}", weir_shared::random::hex::<8>()));
        std::fs::create_dir(&folder).unwrap();
        let file = |name: &str, text: &[u8]| {
            let path = folder.join(name);
            std::fs::write(&path, text).unwrap();
            AdList::File(path)
        };
        let own = file("own.txt", b"||own.test^\n\xff\xfe\n");
        let hosts = AdHosts::read(std::slice::from_ref(&own)).unwrap();
        assert!(hosts.has("own.test") && !hosts.has("doubleclick.net"));
        let hosts = AdHosts::read(&[AdList::Builtin, own]).unwrap();
        assert!(hosts.has("own.test") && hosts.has("doubleclick.net"));
        let many = file("many.txt", b"a.test\nb.test\nc.test\nd.test\n");
        assert!(AdHosts::read_at_most(std::slice::from_ref(&many), 4).is_ok());
        let error = AdHosts::read_at_most(&[many], 3).unwrap_err().to_string();
        assert_eq!(error, "WEIR_AD_LISTS: the lists have more than 3 hosts together");
        let page = file("page.html", b"<html>\n<p>no list</p>\n");
        let missing = AdList::File(folder.join("missing.txt"));
        for (list, words) in [(page, "page.html has no rule"), (missing, "missing.txt: No such file")] {
            let error = AdHosts::read(&[list]).unwrap_err().to_string();
            assert!(error.starts_with("WEIR_AD_LISTS: ") && error.contains(words), "{error}");
        }
        let large = folder.join("large.txt");
        std::fs::File::create(&large).unwrap().set_len(MAX_FILE + 1).unwrap();
        assert!(matches!(AdHosts::read(&[AdList::File(large)]), Err(AdListError::TooLarge(_))));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
