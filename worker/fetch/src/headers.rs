//! Request headers of a fetch: what a browser would send, with what of the caller's own may go there on top.

use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use weir_shared::domain::header_rules::may_carry;

use super::error::FetchError;

const ACCEPT: HeaderValue = HeaderValue::from_static(
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8",
);
const ACCEPT_LANGUAGE: HeaderValue = HeaderValue::from_static("en-US,en;q=0.9");
const ACCEPT_ENCODING: HeaderValue = HeaderValue::from_static("gzip, deflate, br, zstd");

/// What a browser says about a navigation that a user typed in.
const NAVIGATION: [(HeaderName, HeaderValue); 5] = [
    (header::UPGRADE_INSECURE_REQUESTS, HeaderValue::from_static("1")),
    (HeaderName::from_static("sec-fetch-site"), HeaderValue::from_static("none")),
    (HeaderName::from_static("sec-fetch-mode"), HeaderValue::from_static("navigate")),
    (HeaderName::from_static("sec-fetch-user"), HeaderValue::from_static("?1")),
    (HeaderName::from_static("sec-fetch-dest"), HeaderValue::from_static("document")),
];

/// Headers for one origin, `given` being what of the caller's goes there. Fails on a name or value that HTTP cannot carry.
pub(super) fn build<'h>(
    user_agent: HeaderValue,
    accept_language: Option<&str>,
    given: impl Iterator<Item = (&'h String, &'h String)>,
) -> Result<HeaderMap, FetchError> {
    let mut headers = HeaderMap::with_capacity(16);
    headers.insert(header::USER_AGENT, user_agent);
    headers.insert(header::ACCEPT, ACCEPT);
    // A language list that is not a header value is a mistake of ours, not worth failing the page.
    let language = accept_language.and_then(|list| HeaderValue::from_str(list).ok()).unwrap_or(ACCEPT_LANGUAGE);
    headers.insert(header::ACCEPT_LANGUAGE, language);
    headers.insert(header::ACCEPT_ENCODING, ACCEPT_ENCODING);
    headers.extend(NAVIGATION);
    for (name, value) in given {
        let invalid = |what| FetchError::InvalidHeader { name: printable(name), what };
        let parsed = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| invalid("name"))?;
        let value = HeaderValue::from_bytes(value.trim().as_bytes()).map_err(|_| invalid("value"))?;
        if !may_carry(parsed.as_str()) || (parsed == header::ACCEPT_ENCODING && !is_decodable(&value)) {
            continue;
        }
        headers.insert(parsed, value);
    }
    Ok(headers)
}

/// Whether a caller's `Accept-Encoding` asks only for codings that are undone here.
fn is_decodable(value: &HeaderValue) -> bool {
    const KNOWN: [&str; 6] = ["gzip", "x-gzip", "deflate", "br", "zstd", "identity"];
    value.to_str().is_ok_and(|list| {
        list.split(',').filter_map(|word| word.split(';').next()).all(|word| {
            let word = word.trim();
            word.is_empty() || KNOWN.iter().any(|known| word.eq_ignore_ascii_case(known))
        })
    })
}

/// A caller's text for an error message: short and without control characters.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(given: &[(&str, &str)]) -> Result<HeaderMap, FetchError> {
        let given: Vec<(String, String)> = given.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        build(HeaderValue::from_static("UA"), None, given.iter().map(|(k, v)| (k, v)))
    }

    #[test]
    fn the_callers_headers_override_ours() {
        let headers = built(&[("User-Agent", "mine"), ("ACCEPT-LANGUAGE", "de"), ("X-Own", "ü")]).unwrap();
        assert_eq!(headers["user-agent"], "mine");
        assert_eq!(headers["accept-language"], "de");
        assert_eq!(headers["x-own"].as_bytes(), "ü".as_bytes());
        assert_eq!(headers.get_all("user-agent").iter().count(), 1);
    }

    #[test]
    fn headers_of_the_connection_are_left_out() {
        let given = [
            ("Host", "evil"),
            ("content-length", "5"),
            ("Transfer-Encoding", "chunked"),
            ("Connection", "upgrade"),
            ("Upgrade", "h2c"),
            ("Proxy-Authorization", "Basic eA=="),
            ("Accept-Encoding", "compress"),
        ];
        assert_eq!(built(&given).unwrap(), built(&[]).unwrap());
        assert_eq!(
            built(&[("Accept-Encoding", "gzip;q=1, identity")]).unwrap()["accept-encoding"],
            "gzip;q=1, identity"
        );
    }

    #[test]
    fn what_http_cannot_carry_is_an_error_that_names_the_header() {
        for (name, value) in [("bad name", "x"), ("", "x"), ("a:b", "x"), ("X-A", "a\r\nX-B: c"), ("X-A", "nul\0")] {
            assert!(matches!(built(&[(name, value)]), Err(FetchError::InvalidHeader { .. })), "{name:?}: {value:?}");
        }
        let error = built(&[("a\r\nb", "x")]).unwrap_err();
        assert!(!error.message().contains('\n'));
    }
}
