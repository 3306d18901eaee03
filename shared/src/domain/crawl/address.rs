//! When two addresses are one page: each is written in one normal form, whose digest is its key.

use std::borrow::Cow;

use sha2::{Digest, Sha256};
use url::Url;

/// Query parameters that only say where a visitor came from.
const TRACKING: &[&str] = &["gclid", "fbclid", "msclkid", "dclid", "yclid", "mc_cid", "mc_eid", "_ga", "igshid"];
/// File names that stand for their folder.
const INDEX_FILES: &[&str] =
    &["index.html", "index.htm", "index.php", "index.asp", "index.aspx", "index.jsp", "default.html", "default.aspx"];

/// What is left out of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyRules {
    /// The query (`ignoreQueryParameters`).
    pub ignore_query: bool,
    /// What nearly never makes a difference (`deduplicateSimilarURLs`): http or https, `www.`, a slash at the end, the
    /// name of an index file, tracking parameters and session ids, the order of parameters.
    pub similar: bool,
}

/// Key of the page at `url`: 32 hexadecimal digits. Fragments never count.
pub fn key(url: &Url, rules: KeyRules) -> String {
    let digest = Sha256::digest(normal_form(url, rules).as_bytes());
    hex::encode(&digest[..16])
}

fn normal_form(url: &Url, rules: KeyRules) -> String {
    let mut form = String::with_capacity(url.as_str().len());
    if !rules.similar {
        form.push_str(url.scheme());
    }
    form.push_str("//");
    let host = url.host_str().unwrap_or_default();
    let host = host.strip_suffix('.').unwrap_or(host);
    form.push_str(if rules.similar { bare_host(host) } else { host });
    if let Some(port) = url.port() {
        form.push_str(&format!(":{port}"));
    }
    let path = plain(url.path());
    form.push_str(if rules.similar { bare_path(&path) } else { &path });
    if let Some(query) = url.query().filter(|_| !rules.ignore_query) {
        let query = plain(query);
        if rules.similar {
            let mut pairs: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty() && !is_tracking(pair)).collect();
            pairs.sort_unstable();
            if !pairs.is_empty() {
                form.push('?');
                form.push_str(&pairs.join("&"));
            }
        } else {
            form.push('?');
            form.push_str(&query);
        }
    }
    form
}

/// The host without `www.`.
pub fn bare_host(host: &str) -> &str {
    host.strip_prefix("www.").filter(|rest| rest.contains('.')).unwrap_or(host)
}

/// Without a session id, an index file's name and slashes at the end.
fn bare_path(path: &str) -> &str {
    let path = match path.find(";jsessionid=") {
        Some(at) => &path[..at],
        None => path,
    };
    let path = match path.rsplit_once('/') {
        Some((folder, file)) if INDEX_FILES.contains(&file.to_ascii_lowercase().as_str()) => folder,
        _ => path,
    };
    path.trim_end_matches('/')
}

fn is_tracking(pair: &str) -> bool {
    let name = pair.split('=').next().unwrap_or_default();
    name.starts_with("utm_") || TRACKING.contains(&name)
}

/// Percent-encoding in one form (RFC 3986 6.2.2): what needs none has none, digits are capitals.
pub(in crate::domain) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let code = rest.get(at + 1..at + 3).filter(|code| code.bytes().all(|b| b.is_ascii_hexdigit()));
        let Some(code) = code else {
            out.push('%');
            rest = &rest[at + 1..];
            continue;
        };
        match u8::from_str_radix(code, 16) {
            Ok(byte) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => out.push(char::from(byte)),
            _ => {
                out.push('%');
                out.push_str(&code.to_ascii_uppercase());
            }
        }
        rest = &rest[at + 3..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn same(a: &str, b: &str, rules: KeyRules) -> bool {
        key(&Url::parse(a).unwrap(), rules) == key(&Url::parse(b).unwrap(), rules)
    }

    #[test]
    fn variants_of_an_address_are_one_page() {
        let exact = KeyRules { ignore_query: false, similar: false };
        let similar = KeyRules { similar: true, ..exact };
        let bare = KeyRules { ignore_query: true, ..exact };
        // Both addresses, then whether they are one page: exactly, when similar ones are, when queries are ignored.
        for (a, b, expected) in [
            ("http://x.test/a", "http://x.test/a#part", [true, true, true]),
            ("http://x.test/%7Ea/%c3%a9", "http://X.test/~a/\u{e9}", [true, true, true]),
            ("http://x.test./a", "http://x.test:80/a", [true, true, true]),
            ("http://x.test/a", "https://x.test/a", [false, true, false]),
            ("http://x.test/a", "http://www.x.test/a/", [false, true, false]),
            ("http://x.test/a/", "http://x.test/a/index.html", [false, true, false]),
            ("http://x.test", "http://x.test/Index.PHP", [false, true, false]),
            ("http://x.test/a?x=1&y=2", "http://x.test/a?y=2&x=1", [false, true, true]),
            ("http://x.test/a", "http://x.test/a?utm_source=q&gclid=7", [false, true, true]),
            ("http://x.test/a", "http://x.test/a;jsessionid=5", [false, true, false]),
            ("http://x.test/a", "http://x.test/a?", [false, true, true]),
            ("http://x.test/a?x=1", "http://x.test/a?x=2", [false, false, true]),
            ("http://x.test/a%2Fb", "http://x.test/a/b", [false, false, false]),
            ("http://x.test/a", "http://x.test/A", [false, false, false]),
            ("http://x.test/a", "http://x.test:8080/a", [false, false, false]),
            ("http://x.test/a", "http://y.test/a", [false, false, false]),
            ("http://www.test/a", "http://test/a", [false, false, false]),
            ("http://x.test/%zz%", "http://x.test/%zz%25", [false, false, false]),
        ] {
            let got = [exact, similar, bare].map(|rules| same(a, b, rules));
            assert_eq!(got, expected, "{a} {b}");
        }
        assert_eq!(key(&Url::parse("http://x.test/").unwrap(), exact).len(), 32);
    }
}
