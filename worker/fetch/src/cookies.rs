//! The cookies of one fetch: set on a redirect hop, sent to the hops after it (RFC 6265). A jar lives
//! as long as its redirect chain; nothing is kept from one page to the next.
//!
//! The jar is our own because `cookie_store`, which HTTP clients use, would need as much around it: it bounds neither
//! the number of cookies nor their size, knows no name prefixes (`__Host-`), reads dates in four fixed forms, takes the
//! list of public suffixes from a file that would have to be shipped, and reads the clock itself.

use std::net::IpAddr;

use chrono::NaiveDate;
use reqwest::header::HeaderValue;
use url::Url;
use weir_suffixes::is_public_suffix;

/// Most cookies one chain may collect; further ones are ignored.
const MAX_COOKIES: usize = 200;

/// Longest name and value together, bytes, as browsers have it.
const MAX_COOKIE_BYTES: usize = 4096;

/// A cookie as the jar holds it.
#[derive(Debug)]
struct Cookie {
    name: String,
    value: String,
    /// Lower case, without a leading dot.
    domain: String,
    /// Whether only exactly `domain` gets it, and no host below.
    host_only: bool,
    /// Starts with `/`.
    path: String,
    secure: bool,
    /// Unix time in seconds; absent for a session cookie.
    expires: Option<i64>,
}

/// Cookies collected along one redirect chain.
#[derive(Debug, Default)]
pub(super) struct Jar {
    cookies: Vec<Cookie>,
}

impl Jar {
    /// Takes the `Set-Cookie` headers of an answer from `url`. Malformed ones, and ones that the URL
    /// may not set, are ignored. `now` is Unix time in seconds.
    pub fn store<'h>(&mut self, url: &Url, headers: impl Iterator<Item = &'h HeaderValue>, now: i64) {
        for header in headers {
            let Some(cookie) = parse(url, &String::from_utf8_lossy(header.as_bytes()), now) else { continue };
            self.cookies
                .retain(|old| !(old.name == cookie.name && old.domain == cookie.domain && old.path == cookie.path));
            let expired = cookie.expires.is_some_and(|at| at <= now);
            if !expired && self.cookies.len() < MAX_COOKIES {
                self.cookies.push(cookie);
            }
        }
    }

    /// Value of the `Cookie` header for `url`, longest paths first; `None` when no cookie matches.
    pub fn header(&self, url: &Url) -> Option<String> {
        if self.cookies.is_empty() {
            return None;
        }
        let host = host_of(url)?;
        let mut matching: Vec<&Cookie> = self
            .cookies
            .iter()
            .filter(|c| if c.host_only { c.domain == host } else { domain_matches(&host, &c.domain) })
            .filter(|c| path_matches(url.path(), &c.path))
            .filter(|c| !c.secure || url.scheme() == "https")
            .collect();
        matching.sort_by_key(|c| std::cmp::Reverse(c.path.len()));
        let pairs: Vec<String> = matching.iter().map(|c| format!("{}={}", c.name, c.value)).collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }
}

fn parse(url: &Url, header: &str, now: i64) -> Option<Cookie> {
    let mut parts = header.split(';');
    let (name, value) = parts.next()?.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let has_control = |text: &str| text.bytes().any(|b| b < 0x20 || b == 0x7f);
    if name.is_empty() || name.len() + value.len() > MAX_COOKIE_BYTES || has_control(name) || has_control(value) {
        return None;
    }
    let host = host_of(url)?;
    let mut cookie = Cookie {
        name: name.to_owned(),
        value: value.to_owned(),
        domain: host.clone(),
        host_only: true,
        path: default_path(url.path()).to_owned(),
        secure: false,
        expires: None,
    };
    let mut max_age = None;
    for part in parts {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let (key, value) = (key.trim(), value.trim());
        if key.eq_ignore_ascii_case("domain") {
            let domain = value.strip_prefix('.').unwrap_or(value).to_ascii_lowercase();
            if domain.is_empty() || domain == host {
                cookie.host_only = domain.is_empty() || is_public_suffix(&domain);
            } else if !is_public_suffix(&domain) && domain_matches(&host, &domain) {
                cookie.host_only = false;
                cookie.domain = domain;
            } else {
                return None;
            }
        } else if key.eq_ignore_ascii_case("path") {
            if value.starts_with('/') {
                cookie.path = value.to_owned();
            }
        } else if key.eq_ignore_ascii_case("secure") {
            cookie.secure = true;
        } else if key.eq_ignore_ascii_case("max-age") {
            max_age = value.parse::<i64>().ok().or(max_age);
        } else if key.eq_ignore_ascii_case("expires") {
            cookie.expires = parse_date(value).or(cookie.expires);
        }
    }
    if let Some(seconds) = max_age {
        cookie.expires = Some(if seconds <= 0 { 0 } else { now.saturating_add(seconds) });
    }
    let may_be_secure = url.scheme() == "https" || !cookie.secure;
    let prefix_kept = if cookie.name.starts_with("__Host-") {
        cookie.secure && cookie.host_only && cookie.path == "/"
    } else {
        cookie.secure || !cookie.name.starts_with("__Secure-")
    };
    (may_be_secure && prefix_kept).then_some(cookie)
}

/// Host in lower case, an IPv6 literal in brackets.
fn host_of(url: &Url) -> Option<String> {
    url.host_str().map(str::to_ascii_lowercase)
}

fn domain_matches(host: &str, domain: &str) -> bool {
    if host == domain {
        return true;
    }
    let is_address = host.starts_with('[') || host.parse::<IpAddr>().is_ok();
    !is_address && host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
}

fn path_matches(request: &str, cookie: &str) -> bool {
    match request.strip_prefix(cookie) {
        Some(rest) => rest.is_empty() || cookie.ends_with('/') || rest.starts_with('/'),
        None => false,
    }
}

fn default_path(request: &str) -> &str {
    match request.rfind('/') {
        Some(0) | None => "/",
        Some(at) => &request[..at],
    }
}

/// The forgiving cookie date of RFC 6265, 5.1.1: any order, any separators. Unix seconds.
fn parse_date(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    let is_delimiter = |c: char| !c.is_ascii_alphanumeric() && c != ':' && c.is_ascii();
    for token in text.split(is_delimiter).filter(|t| !t.is_empty()) {
        let lower = token.to_ascii_lowercase();
        let number = token.parse::<u32>().ok();
        if time.is_none() && token.contains(':') {
            let mut hms = token.splitn(3, ':').map(|part| part.parse::<u32>().ok());
            time = Some((hms.next()??, hms.next()??, hms.next()??));
        } else if day.is_none() && token.len() <= 2 && number.is_some() {
            day = number;
        } else if month.is_none() && MONTHS.iter().any(|m| lower.starts_with(m)) {
            month = MONTHS.iter().position(|m| lower.starts_with(m)).and_then(|at| u32::try_from(at + 1).ok());
        } else if year.is_none() && (token.len() == 2 || token.len() == 4) && number.is_some() {
            year = number.map(|n| match n {
                70..=99 => n + 1900,
                0..=69 => n + 2000,
                _ => n,
            });
        }
    }
    let (hour, minute, second) = time?;
    let date = NaiveDate::from_ymd_opt(i32::try_from(year?).ok()?, month?, day?)?;
    (date.and_hms_opt(hour, minute, second)?).and_utc().timestamp().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn jar(from: &str, headers: &[&str]) -> Jar {
        let mut jar = Jar::default();
        let values: Vec<HeaderValue> = headers.iter().map(|h| HeaderValue::from_str(h).unwrap()).collect();
        jar.store(&url(from), values.iter(), NOW);
        jar
    }

    #[test]
    fn a_cookie_goes_to_the_urls_its_attributes_name() {
        let table = [
            // set by, header, asked by, sent
            ("http://a.test/", "k=v", "http://a.test/x", Some("k=v")),
            ("http://a.test/", "k=v", "http://b.a.test/", None),
            ("http://a.test/", "k=v", "http://other.test/", None),
            ("http://b.a.test/", "k=v; Domain=a.test", "http://c.a.test/", Some("k=v")),
            ("http://b.a.test/", "k=v; Domain=.A.test", "http://a.test/", Some("k=v")),
            ("http://a.test/", "k=v; Domain=b.test", "http://b.test/", None),
            ("http://a.test/", "k=v; Domain=test", "http://b.test/", None),
            ("http://a.co.uk/", "k=v; Domain=co.uk", "http://b.co.uk/", None),
            ("http://b.a.co.uk/", "k=v; Domain=a.co.uk", "http://a.co.uk/", Some("k=v")),
            ("http://github.io/", "k=v; Domain=github.io", "http://github.io/", Some("k=v")),
            ("http://github.io/", "k=v; Domain=github.io", "http://a.github.io/", None),
            ("http://nota.test/", "k=v; Domain=a.test", "http://a.test/", None),
            ("http://127.0.0.1/", "k=v", "http://127.0.0.1:81/", Some("k=v")),
            ("http://127.0.0.1/", "k=v; Domain=0.0.1", "http://127.0.0.1/", None),
            ("http://a.test/x/y", "k=v", "http://a.test/x/z", Some("k=v")),
            ("http://a.test/x/y", "k=v", "http://a.test/z", None),
            ("http://a.test/", "k=v; Path=/x", "http://a.test/xy", None),
            ("http://a.test/", "k=v; Path=/x", "http://a.test/x/y", Some("k=v")),
            ("http://a.test/", "k=v; Path=nonsense", "http://a.test/y", Some("k=v")),
            ("https://a.test/", "k=v; Secure", "http://a.test/", None),
            ("https://a.test/", "k=v; Secure", "https://a.test/", Some("k=v")),
            ("http://a.test/", "k=v; Secure", "https://a.test/", None),
            ("https://a.test/", "__Host-k=v; Secure; Path=/", "https://a.test/", Some("__Host-k=v")),
            ("https://a.test/", "__Host-k=v; Secure; Path=/; Domain=a.test", "https://a.test/", None),
            ("https://a.test/", "__Secure-k=v", "https://a.test/", None),
            ("http://a.test/", "k=a=b; HttpOnly", "http://a.test/", Some("k=a=b")),
            ("http://a.test/", "novalue", "http://a.test/", None),
            ("http://a.test/", "=v", "http://a.test/", None),
            ("http://a.test/", "k=v; Max-Age=0", "http://a.test/", None),
            ("http://a.test/", "k=v; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "http://a.test/", Some("k=v")),
            ("http://a.test/", "k=v; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "http://a.test/", None),
            ("http://a.test/", "k=v; Expires=garbage", "http://a.test/", Some("k=v")),
        ];
        for (from, header, to, sent) in table {
            assert_eq!(jar(from, &[header]).header(&url(to)).as_deref(), sent, "{from} {header} -> {to}");
        }
    }

    #[test]
    fn a_later_cookie_replaces_and_an_expired_one_deletes() {
        let from = "http://a.test/";
        assert_eq!(jar(from, &["k=1", "k=2"]).header(&url(from)).as_deref(), Some("k=2"));
        assert_eq!(jar(from, &["k=1", "k=; Max-Age=-1"]).header(&url(from)), None);
        assert_eq!(jar(from, &["k=1", "j=2; Path=/x"]).header(&url("http://a.test/x")).as_deref(), Some("j=2; k=1"));
    }

    #[test]
    fn dates_are_read_in_every_form_sites_write() {
        for text in [
            "Wed, 21 Oct 2015 07:28:00 GMT",
            "Wed, 21-Oct-2015 07:28:00 GMT",
            "Wed, 21-Oct-15 07:28:00 GMT",
            "Wednesday, 21-Oct-15 07:28:00 GMT",
            "Wed Oct 21 07:28:00 2015",
        ] {
            assert_eq!(parse_date(text), Some(1_445_412_480), "{text}");
        }
        for text in ["", "tomorrow", "32 Jan 2020 00:00:00", "1 Jan 2020", "1 Jan 2020 25:00:00"] {
            assert_eq!(parse_date(text), None, "{text}");
        }
    }

    #[test]
    fn the_jar_and_each_cookie_are_bounded() {
        let long = format!("k={}", "v".repeat(5000));
        assert!(jar("http://a.test/", &[&long]).cookies.is_empty());
        let many: Vec<String> = (0..300).map(|n| format!("k{n}=v")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(jar("http://a.test/", &many).cookies.len(), MAX_COOKIES);
    }
}
