//! Relative references to absolute URLs.
//!
//! Pages hold many links, so the common shapes are joined by hand; everything else goes through the `url` crate. The
//! result is the same either way.

use html5ever::local_name;
use url::Url;

use super::tree::{Dom, Tag};

/// Longest reference taken from a page, bytes; longer ones are ignored (`data:` URLs excepted).
const MAX_REFERENCE: usize = 8192;
/// Longest `<base href>` honoured, bytes.
const MAX_BASE: usize = 2048;

/// The base of a page's references.
#[derive(Debug)]
pub struct Addresses {
    base: Url,
    /// The page itself, without fragment.
    page: Url,
    /// `https://host:port` of the base when it is a web address.
    origin: Option<String>,
}

impl Addresses {
    /// The base for a page fetched from `url`, honouring its first `<base href>`.
    pub fn of_page(dom: &Dom, url: &Url) -> Self {
        let base = (0..dom.len())
            .filter(|&i| dom.tag(i) == Tag::Base)
            .find_map(|i| dom.attr(i, &local_name!("href")))
            .filter(|href| href.len() <= MAX_BASE)
            .and_then(|href| url.join(href.trim()).ok())
            .filter(|base| matches!(base.scheme(), "http" | "https"))
            .unwrap_or_else(|| url.clone());
        let origin = match base.scheme() {
            "http" | "https" if base.username().is_empty() && base.password().is_none() => {
                Some(base[..url::Position::BeforePath].to_owned())
            }
            _ => None,
        };
        let mut page = url.clone();
        page.set_fragment(None);
        Addresses { base, page, origin }
    }

    /// The fragment, where the reference leads to a place on the page itself.
    pub fn own_fragment<'r>(&self, reference: &'r str) -> Option<&'r str> {
        let (before, fragment) = reference.trim().split_once('#')?;
        let is_own = before.is_empty()
            || before == self.page.as_str()
            || before == self.page.path()
            || self.page.path().rsplit('/').next().is_some_and(|file| !file.is_empty() && file == before);
        is_own.then_some(fragment)
    }

    /// Last segment of the page's path; empty for a directory.
    pub fn page_file(&self) -> &str {
        self.page.path().rsplit('/').next().unwrap_or_default()
    }

    /// Resolves a reference; `None` if that gives no address that can be used.
    pub fn resolve(&self, reference: &str) -> Option<String> {
        let reference = reference.trim_matches(|c: char| c.is_ascii_whitespace() || c.is_control());
        if reference.len() > MAX_REFERENCE {
            return None;
        }
        let bytes = reference.as_bytes();
        if let Some(origin) = &self.origin
            && bytes.first() == Some(&b'/')
            && bytes.get(1) != Some(&b'/')
            && is_plain_path(bytes)
        {
            let mut out = String::with_capacity(origin.len() + bytes.len());
            out.push_str(origin);
            out.push_str(reference);
            return Some(out);
        }
        if let Some(rest) = reference.strip_prefix("https://").or_else(|| reference.strip_prefix("http://"))
            && let Some(slash) = memchr::memchr(b'/', rest.as_bytes())
            && is_plain_host(&rest.as_bytes()[..slash])
            && is_plain_path(&rest.as_bytes()[slash..])
        {
            return Some(reference.to_owned());
        }
        self.base.join(reference).ok().map(String::from)
    }

    /// Resolves a link a reader could follow; `javascript:` and the like give `None`.
    pub fn resolve_link(&self, reference: &str) -> Option<String> {
        let resolved = self.resolve(reference)?;
        is_followable(&resolved).then_some(resolved)
    }
}

/// Whether a reference leads to the first page of a site, or of a manual: `/`, `https://other.test`, `../index.html`.
pub fn is_first_page(reference: &str) -> bool {
    let reference = reference.trim();
    let rest = reference.strip_prefix("https://").or_else(|| reference.strip_prefix("http://"));
    let path = rest.map_or(reference, |rest| rest.find('/').map_or("/", |slash| &rest[slash..]));
    path == "/" || path.rsplit('/').next().is_some_and(|file| matches!(file, "index.html" | "index.htm"))
}

/// Whether the scheme of an absolute URL is one a link may have.
pub fn is_followable(url: &str) -> bool {
    ["https:", "http:", "mailto:", "tel:", "ftp:"].iter().any(|s| url.starts_with(s))
}

/// A path, query and fragment that the URL parser would leave alone.
fn is_plain_path(bytes: &[u8]) -> bool {
    let mut previous = 0u8;
    for &b in bytes {
        let plain = b.is_ascii_alphanumeric()
            || matches!(
                b,
                b'/' | b'_'
                    | b'-'
                    | b'.'
                    | b'?'
                    | b'='
                    | b'&'
                    | b'%'
                    | b'+'
                    | b','
                    | b':'
                    | b'@'
                    | b'~'
                    | b';'
                    | b'#'
                    | b'!'
                    | b'*'
            );
        // A segment that begins with a dot could be `..`; `%` could spell one.
        if !plain || (b == b'.' && previous == b'/') || (b == b'%' && previous == b'/') {
            return false;
        }
        previous = b;
    }
    true
}

fn is_plain_host(bytes: &[u8]) -> bool {
    bytes.last().is_some_and(|b| b.is_ascii_lowercase())
        && bytes.first().is_some_and(u8::is_ascii_lowercase)
        && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'-'))
        && !memchr::memmem::find(bytes, b"xn--").is_some_and(|_| true)
}

#[cfg(test)]
mod tests {
    use super::super::guard;
    use super::*;

    fn addresses(html: &str) -> Addresses {
        Addresses::of_page(&guard::parse(html).dom, &Url::parse("https://ex.test:8443/a/b?q=1").expect("a URL"))
    }

    #[test]
    fn the_short_way_gives_what_the_url_parser_gives() {
        let a = addresses("");
        for r in [
            "/",
            "/x/y.html?a=1&b=%20#f",
            "/../x",
            "/a/./b",
            "/.hidden",
            "//cdn.test/x",
            "https://cdn.test/x?y",
            "https://cdn.test",
            "https://CDN.test/x",
            "https://cdn.test:443/x",
            "../up",
            "?z",
            "",
            "rel",
            "/a b",
            "/ä",
            "https://xn--a.test/",
            "/%2e%2e/x",
            "https://1.2.3/x",
            "mailto:a@b.test",
            "/a\"b",
            "/a'b?c'd",
            "/a|b^c",
            "http:/x",
        ] {
            assert_eq!(a.resolve(r), a.base.join(r).ok().map(String::from), "{r}");
        }
    }

    #[test]
    fn the_first_base_element_counts() {
        let a = addresses("<base target=_blank><base href='/d/'><base href='/e/'>");
        assert_eq!(a.resolve("x").as_deref(), Some("https://ex.test:8443/d/x"));
    }

    #[test]
    fn script_links_are_no_links() {
        assert_eq!(addresses("").resolve_link(" javascript:void(0)"), None);
        assert_eq!(addresses("").resolve_link("tel:+1").as_deref(), Some("tel:+1"));
    }
}
