//! `Retry-After`: when a server that refuses wants to be asked again (RFC 9110, 10.2.3). What it says is anybody's word, so
//! it is bounded here, and once more by whoever waits.

use std::time::{Duration, UNIX_EPOCH};

use reqwest::header::{HeaderMap, RETRY_AFTER};

use crate::clock;
use crate::time::Timestamp;

/// The longest pause that is told; a longer one is this long.
pub const MOST: Duration = Duration::from_secs(86_400);

/// The pause that an answer asks for, by this machine's clock. `None`: none that can be understood.
pub fn asked(headers: &HeaderMap) -> Option<Duration> {
    parse(headers.get(RETRY_AFTER)?.to_str().ok()?, clock::of_machine())
}

/// The pause that a value of `Retry-After` asks for: whole seconds, or a date of HTTP in one of its three forms. A date
/// that has passed asks for none.
pub fn parse(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a number has are a long time all the same.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)).min(MOST));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    let ms = date.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
    Some(Duration::from_millis(Timestamp(ms).ms_since(now).unsigned_abs()).min(MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_understood_and_nothing_else_is() {
        // 1994-11-06T08:49:00Z
        let now = Timestamp(784_111_740_000);
        let seconds = |n| Some(Duration::from_secs(n));
        for (value, pause) in [
            ("0", seconds(0)),
            ("120", seconds(120)),
            (" 7 ", seconds(7)),
            ("007", seconds(7)),
            ("86401", Some(MOST)),
            ("99999999999999999999999999", Some(MOST)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", seconds(37)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", seconds(37)),
            ("Sun Nov  6 08:49:37 1994", seconds(37)),
            ("Sun, 06 Nov 1994 08:48:37 GMT", seconds(0)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(MOST)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", seconds(0)),
            ("", None),
            ("soon", None),
            ("-5", None),
            ("+5", None),
            ("1.5", None),
            ("1e30", None),
            ("0x10", None),
            ("5, 6", None),
            ("\u{663}", None),
            ("Sun, 06 Nov 1994", None),
            ("Sun, 99 Nov 1994 08:49:37 GMT", None),
            ("1994-11-06T08:49:37Z", None),
        ] {
            assert_eq!(parse(value, now), pause, "{value:?}");
        }
        assert_eq!(parse(&"9".repeat(100_000), now), Some(MOST));
    }

    #[test]
    fn it_is_read_from_an_answers_head() {
        let mut headers = HeaderMap::new();
        assert_eq!(asked(&headers), None);
        headers.insert(RETRY_AFTER, "5".parse().expect("a value"));
        assert_eq!(asked(&headers), Some(Duration::from_secs(5)));
        headers.insert(RETRY_AFTER, reqwest::header::HeaderValue::from_bytes(b"\xff").expect("a value"));
        assert_eq!(asked(&headers), None);
    }
}
