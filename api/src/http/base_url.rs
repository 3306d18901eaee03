//! The address clients reach us by, for the absolute URLs in answers (wire 1.7).
//!
//! The JavaScript client follows `next` exactly as given, and a wrong scheme or host means lost documents without any
//! error: so it comes from the request, unless an operator fixed it.

use actix_web::HttpRequest;
use actix_web::http::header::HOST;

use crate::app::App;

impl App {
    /// `https://host[:port]`, without a slash at the end.
    pub fn base_url(&self, request: &HttpRequest) -> String {
        if let Some(fixed) = &self.settings.api.public_url {
            return fixed.as_str().trim_end_matches('/').to_owned();
        }
        let text = |name: &str| request.headers().get(name).and_then(|v| v.to_str().ok());
        let forwarded = text("x-forwarded-proto").and_then(|v| v.split(',').next()).map(str::trim);
        let host = text(HOST.as_str()).filter(|h| is_host(h));
        let host = host.map_or_else(|| self.settings.api.bind.to_string(), str::to_owned);
        format!("{}://{host}", scheme(forwarded))
    }
}

fn scheme(forwarded: Option<&str>) -> &'static str {
    match forwarded {
        Some(proto) if proto.eq_ignore_ascii_case("https") || proto.eq_ignore_ascii_case("wss") => "https",
        _ => "http",
    }
}

/// A host with an optional port, and nothing that could break out of a URL.
fn is_host(text: &str) -> bool {
    !text.is_empty() && text.len() <= 300 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_header_cannot_carry_a_path() {
        assert!(is_host("example.com:8443") && is_host("[::1]:3002"));
        assert!(!is_host("example.com/evil") && !is_host("a@b") && !is_host(""));
    }

    #[test]
    fn the_scheme_is_http_unless_a_proxy_says_otherwise() {
        assert_eq!((scheme(None), scheme(Some("HTTPS")), scheme(Some("ftp"))), ("http", "https", "http"));
    }
}
