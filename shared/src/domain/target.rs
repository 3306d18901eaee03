//! Which URLs can be asked for (wire 2.4).

use serde_json::Value;
use url::{Host, Origin, Url};

use super::validation::{Fields, Issues, Path};

/// Longest URL, bytes.
const MAX_URL_LENGTH: usize = 16_384;

/// What parsing must be told about this installation.
#[derive(Clone, Copy)]
pub struct RequestContext<'a> {
    /// Whether a host without a top-level domain is known here (`WEIR_ALLOW_HOSTS`). `localhost` always is: whether
    /// it may be reached is for the address guard to say.
    pub knows_host: &'a dyn Fn(&str) -> bool,
}

impl RequestContext<'static> {
    /// Of no installation in particular.
    pub const ANYWHERE: Self = Self { knows_host: &|_| false };
}

/// Why a URL is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlProblem {
    #[error("Invalid URL")]
    Malformed,
    #[error("URL must be at most {MAX_URL_LENGTH} bytes long")]
    TooLong,
    #[error("URL uses unsupported protocol")]
    Protocol,
    #[error("URL must have a valid top-level domain or be an IP address")]
    TopLevelDomain,
}

/// The address to fetch for a URL as requested: `http://` is put before one without a scheme.
///
/// # Errors
/// The rule of wire 2.4 that it breaks, the top-level domain aside.
pub fn fetch_url(requested: &str) -> Result<Url, UrlProblem> {
    let text = requested.trim();
    if text.len() > MAX_URL_LENGTH {
        return Err(UrlProblem::TooLong);
    }
    if text.is_empty() {
        return Err(UrlProblem::Malformed);
    }
    let url = if has_scheme(text) { Url::parse(text) } else { Url::parse(&format!("http://{text}")) };
    let url = url.map_err(|_| UrlProblem::Malformed)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(UrlProblem::Protocol);
    }
    if url.host().is_none() {
        return Err(UrlProblem::Malformed);
    }
    Ok(url)
}

/// The origins that a URL as requested names: its own. One without a scheme and a port names a host, whose site is the
/// same over HTTP and over HTTPS. None, when it cannot be fetched.
pub fn named_origins(requested: &str) -> Vec<Origin> {
    let Ok(url) = fetch_url(requested) else { return Vec::new() };
    let mut origins = vec![url.origin()];
    if !has_scheme(requested.trim()) && url.port().is_none() {
        let mut secure = url;
        // A URL of the web can be given another scheme of the web.
        if secure.set_scheme("https").is_ok() {
            origins.push(secure.origin());
        }
    }
    origins
}

/// Whether an address has a name or a password in it.
pub fn has_user(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// Takes a name and a password out of an address.
pub fn strip_user(url: &mut Url) {
    // Neither is refused for an address with a host.
    let _ = (url.set_username(""), url.set_password(None));
}

/// An address as it is answered, told and shown: without a name and a password in it, which are for its origin alone. Other
/// texts stay as they are, also names of files such as `report@2.pdf`.
pub fn without_user(text: &str) -> String {
    if !text.contains('@') || text.contains(char::is_whitespace) {
        return text.to_owned();
    }
    let is_address = |url: &Url| has_user(url) && (url.password().is_some() || has_scheme(text));
    let Some(mut url) = fetch_url(text).ok().filter(is_address) else { return text.to_owned() };
    strip_user(&mut url);
    url.into()
}

/// The name and the password in an address that a caller gave, and the origins that it names: they go there alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    named: Vec<Origin>,
    /// With both in it.
    url: Url,
}

impl Login {
    /// Of an address as requested. `None`: it has neither.
    pub fn of(requested: &str) -> Option<Self> {
        // Every page of every job is asked for, and few of them with a password.
        let url = if requested.contains('@') { fetch_url(requested).ok()? } else { return None };
        has_user(&url).then(|| Self { named: named_origins(requested), url })
    }

    /// Whether an address is asked for with them: it is of a named origin and has none of its own.
    pub fn is_for(&self, url: &Url) -> bool {
        !has_user(url) && self.named.contains(&url.origin())
    }

    /// The address with them, where it is asked for so.
    pub fn put(&self, mut url: Url) -> Url {
        if self.is_for(&url) {
            // Neither is refused for an address with a host.
            let _ = (url.set_username(self.url.username()), url.set_password(self.url.password()));
        }
        url
    }

    /// The same for an address as text. `None`: it is asked for as it stands.
    pub fn put_into(&self, url: &str) -> Option<String> {
        let url = fetch_url(url).ok().filter(|url| self.is_for(url))?;
        Some(self.put(url).into())
    }
}

/// The one of these addresses that names the origin of `url`.
pub fn naming<'a>(given: &'a [String], url: &str) -> Option<&'a str> {
    let origin = fetch_url(url).ok()?.origin();
    given.iter().map(String::as_str).find(|given| named_origins(given).contains(&origin))
}

/// An address with the name and the password of the first of these that gives some to its origin. `None`: none does.
pub fn with_user_of(given: &[String], url: &str) -> Option<String> {
    given.iter().find_map(|given| Login::of(given)?.put_into(url))
}

/// `name:` at the start is a scheme unless digits follow: then it is a host with its port.
fn has_scheme(text: &str) -> bool {
    let Some((head, rest)) = text.split_once(':') else { return false };
    let is_name = head.starts_with(|c: char| c.is_ascii_alphabetic())
        && head.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    let is_port = rest.starts_with(|c: char| c.is_ascii_digit());
    is_name && !is_port
}

/// Judges a URL by every rule of wire 2.4 that needs no network.
pub(super) fn check(requested: &str, context: RequestContext<'_>) -> Result<(), UrlProblem> {
    let url = fetch_url(requested)?;
    match url.host() {
        Some(Host::Domain(name)) if !is_known_name(name, context) => Err(UrlProblem::TopLevelDomain),
        _ => Ok(()),
    }
}

fn is_known_name(name: &str, context: RequestContext<'_>) -> bool {
    let bare = name.strip_suffix('.').unwrap_or(name);
    let local = bare == "localhost" || bare.ends_with(".localhost");
    local || (context.knows_host)(bare) || has_top_level_domain(bare)
}

/// At least two labels, the last of two or more characters and not of digits alone.
fn has_top_level_domain(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(rest, last)| {
        !rest.is_empty()
            && last.len() >= 2
            && !last.bytes().all(|b| b.is_ascii_digit())
            && last.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    })
}

/// A URL that was judged well as it is kept: as it was given. One with a name in it has its scheme, by which it is told from
/// other texts wherever it is shown ([`without_user`]).
pub(super) fn kept(text: &str) -> String {
    let is_bare = text.contains('@') && !has_scheme(text.trim()) && fetch_url(text).is_ok_and(|url| has_user(&url));
    if is_bare { format!("http://{}", text.trim()) } else { text.to_owned() }
}

/// Reads a required URL; `None`, with an issue, when it is missing or wrong.
pub(super) fn read(fields: &mut Fields<'_, '_>, name: &'static str, context: RequestContext<'_>) -> Option<String> {
    let value = fields.required(name)?;
    let path = fields.path_of(name);
    read_value(value, path, context, fields.issues)
}

/// The same for a value that is there.
pub(super) fn read_value(
    value: &Value,
    path: Path,
    context: RequestContext<'_>,
    issues: &mut Issues,
) -> Option<String> {
    let Some(text) = value.as_str() else {
        issues.wrong_type(path, "string", Some(value));
        return None;
    };
    match check(text, context) {
        Ok(()) => Some(kept(text)),
        Err(UrlProblem::Malformed) => {
            issues.format(path, "url", UrlProblem::Malformed.to_string());
            None
        }
        Err(problem) => {
            issues.rule(path, problem.to_string());
            None
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_name_and_a_password_are_not_shown_with_their_address() {
        for (text, shown) in [
            ("https://alice:pw@a.test/x?y=z@b#c", "https://a.test/x?y=z@b#c"),
            ("http://alice@a.test", "http://a.test/"),
            ("alice:123@a.test/x", "http://a.test/x"),
            ("icon@2x.png", "icon@2x.png"),
            ("http://A.test/a@b", "http://A.test/a@b"),
            ("what is at http://alice:pw@a.test/ now", "what is at http://alice:pw@a.test/ now"),
            ("", ""),
        ] {
            assert_eq!(without_user(text), shown, "{text}");
        }
    }

    #[test]
    fn a_name_and_a_password_go_to_the_origin_of_their_address_alone() {
        let login = Login::of("https://alice:p%40w@a.test/start").unwrap();
        for (url, asked) in [
            ("https://a.test/x?y#z", Some("https://alice:p%40w@a.test/x?y#z")),
            ("https://A.test:443/x", Some("https://alice:p%40w@a.test/x")),
            ("https://bob@a.test/x", None),
            ("http://a.test/x", None),
            ("https://a.test:8443/x", None),
            ("https://b.a.test/x", None),
            ("https://b.test/x", None),
            ("not an address", None),
        ] {
            assert_eq!(login.put_into(url).as_deref(), asked, "{url}");
        }
        assert_eq!(Login::of("https://a.test/x@y"), None);
        assert_eq!(Login::of("https://a.test/"), None);
    }

    #[test]
    fn an_address_with_a_name_is_kept_with_its_scheme() {
        for (given, kept) in
            [("token@a.test/x", "http://token@a.test/x"), ("a.test/x@y", "a.test/x@y"), ("a.test", "a.test")]
        {
            let mut issues = Issues::default();
            let read = read_value(&Value::from(given), Path::new(), RequestContext::ANYWHERE, &mut issues);
            assert_eq!(read.as_deref(), Some(kept), "{given}");
            assert!(!without_user(kept).contains("token"));
        }
    }

    #[test]
    fn urls_are_judged_by_the_rules_of_the_contract() {
        let context = RequestContext { knows_host: &|host| host == "intranet" };
        for (url, expected) in [
            ("https://example.com", Ok(())),
            ("example.com", Ok(())),
            ("example.com:8080/x?b&a", Ok(())),
            ("HTTP://EXAMPLE.COM", Ok(())),
            ("http://user:pw@example.com/", Ok(())),
            ("http://127.0.0.1:8900/a", Ok(())),
            ("127.0.0.1:8900/a", Ok(())),
            ("http://[2606:4700::1111]/", Ok(())),
            ("http://localhost:3000", Ok(())),
            ("localhost:3000/x", Ok(())),
            ("http://app.localhost", Ok(())),
            ("http://intranet/x", Ok(())),
            ("http://b\u{fc}cher.example", Ok(())),
            ("https://\u{4f8b}\u{5b50}.\u{6d4b}\u{8bd5}", Ok(())),
            ("https://example.com.", Ok(())),
            ("ftp://example.com/x", Err(UrlProblem::Protocol)),
            ("javascript:alert(1)", Err(UrlProblem::Protocol)),
            ("mailto:a@example.com", Err(UrlProblem::Protocol)),
            ("data:text/html,x", Err(UrlProblem::Protocol)),
            ("about:blank", Err(UrlProblem::Protocol)),
            ("file:///etc/passwd", Err(UrlProblem::Protocol)),
            ("http://nodots", Err(UrlProblem::TopLevelDomain)),
            ("nodots", Err(UrlProblem::TopLevelDomain)),
            ("http://a.b", Err(UrlProblem::TopLevelDomain)),
            ("http://.com", Err(UrlProblem::TopLevelDomain)),
            ("", Err(UrlProblem::Malformed)),
            ("   ", Err(UrlProblem::Malformed)),
            ("not a url", Err(UrlProblem::Malformed)),
            ("http://", Err(UrlProblem::Malformed)),
            ("https://exa mple.com", Err(UrlProblem::Malformed)),
            ("http://1.2.3.999", Err(UrlProblem::Malformed)),
        ] {
            assert_eq!(check(url, context), expected, "{url}");
        }
        assert_eq!(check(&format!("https://example.com/{}", "x".repeat(20_000)), context), Err(UrlProblem::TooLong));
    }

    #[test]
    fn a_url_names_its_own_origin_and_without_a_scheme_that_of_both() {
        for (requested, expected) in [
            ("https://a.test/x", &["https://a.test"][..]),
            ("http://a.test/x", &["http://a.test"]),
            ("a.test/x", &["http://a.test", "https://a.test"]),
            ("a.test:8080/x", &["http://a.test:8080"]),
            ("http://a.test:443/", &["http://a.test:443"]),
            ("https://a.test:443/", &["https://a.test"]),
            ("", &[]),
        ] {
            let named: Vec<String> = named_origins(requested).iter().map(Origin::ascii_serialization).collect();
            assert_eq!(named, expected, "{requested}");
        }
    }

    #[test]
    fn a_url_without_a_scheme_is_fetched_over_http() {
        assert_eq!(fetch_url("example.com/a?b").unwrap().as_str(), "http://example.com/a?b");
        assert_eq!(fetch_url("localhost:99/x").unwrap().as_str(), "http://localhost:99/x");
    }
}
