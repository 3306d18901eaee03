//! The hosts of ads and trackers, which `blockAds` keeps browsers from: a list of our own, or lists of the operator's
//! (`WEIR_AD_LISTS`).
//!
//! A browser's way out sees the host of a request and, through TLS, nothing else of it. So of a list those rules are
//! taken that stand for whole hosts, and the others are passed over:
//!
//! ```text
//! 0.0.0.0 ads.test tracker.test    as in a hosts file: these hosts alone
//! ads.test                         a name: the host and its subdomains
//! ||ads.test^                      Adblock syntax: likewise; also with $third-party, $all and $important
//! @@||good.ads.test^               an exception: this host and its subdomains are let through after all
//! ```

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use url::{Host, Url};
use weir_shared::config::AdList;

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
        "WEIR_AD_LISTS: {0} names no host: allowed are hosts files, lists of names, and Adblock rules such as ||ads.test^"
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
}

/// Whether a host is one of ads and trackers.
#[derive(Debug)]
pub struct AdHosts {
    /// By lower-case name. A look at a host asks once for each of its labels.
    names: HashMap<Box<str>, Rule>,
}

impl AdHosts {
    /// The list that is there without any setting.
    pub fn builtin() -> Self {
        let mut hosts = Self { names: HashMap::new() };
        hosts.add(BUILTIN, MAX_HOSTS);
        hosts
    }

    /// Reads the lists. Blocks.
    ///
    /// # Errors
    /// When a file cannot be read, is too large or has nothing that is understood.
    pub fn read(lists: &[AdList]) -> Result<Self, AdListError> {
        Self::read_at_most(lists, MAX_HOSTS)
    }

    fn read_at_most(lists: &[AdList], most: usize) -> Result<Self, AdListError> {
        let mut hosts = Self { names: HashMap::new() };
        for list in lists {
            match list {
                AdList::Builtin => _ = hosts.add(BUILTIN, most),
                AdList::File(path) => hosts.add_file(path, most)?,
            }
            if hosts.names.len() > most {
                return Err(AdListError::TooMany(most));
            }
        }
        Ok(hosts)
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
        tracing::info!(list = %path.display(), taken, passed_over, "a list of ad hosts is read");
        Ok(())
    }

    /// How many hosts a list names, and how many of its rules are not about whole hosts. What is more than `most` and one
    /// is not taken in.
    fn add(&mut self, text: &str, most: usize) -> (usize, usize) {
        let (mut taken, mut passed_over) = (0, 0);
        for line in text.lines() {
            let before = taken;
            if line.len() <= MAX_LINE && self.names.len() <= most {
                for (name, rule) in read_line(line) {
                    let known = self.names.entry(name.into_boxed_str()).or_default();
                    known.blocks |= rule.blocks;
                    known.blocks_subdomains |= rule.blocks_subdomains;
                    known.allows |= rule.allows;
                    taken += 1;
                }
            }
            passed_over += usize::from(taken == before && !is_comment(line.trim()));
        }
        (taken, passed_over)
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
                if rule.allows {
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
    let line = line.trim().trim_start_matches('\u{feff}');
    if is_comment(line) {
        return Vec::new();
    }
    let subdomains = Rule { blocks: true, blocks_subdomains: true, allows: false };
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
        let mut hosts = AdHosts { names: HashMap::new() };
        hosts.add(list, MAX_HOSTS);
        hosts
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
        let names: Vec<&str> = BUILTIN.lines().filter(|line| !is_comment(line)).collect();
        let hosts = AdHosts::builtin();
        assert!(names.len() > 100 && hosts.names.len() == names.len());
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
        for (list, words) in [(page, "page.html names no host"), (missing, "missing.txt: No such file")] {
            let error = AdHosts::read(&[list]).unwrap_err().to_string();
            assert!(error.starts_with("WEIR_AD_LISTS: ") && error.contains(words), "{error}");
        }
        let large = folder.join("large.txt");
        std::fs::File::create(&large).unwrap().set_len(MAX_FILE + 1).unwrap();
        assert!(matches!(AdHosts::read(&[AdList::File(large)]), Err(AdListError::TooLarge(_))));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
