//! What a site says that its answer is. Servers and what stands before them say it one after the other, in one line or in
//! several; the last one that is a type counts, as in browsers (WHATWG MIME Sniffing, "extract a MIME type").

use reqwest::header::{self, HeaderMap};

use super::http::text;

/// All that a head says of its type, as sent; lines after the first one behind a comma.
pub(super) fn of(head: &HeaderMap) -> Option<String> {
    let lines: Vec<String> = head.get_all(header::CONTENT_TYPE).iter().map(text).collect();
    (!lines.is_empty()).then(|| lines.join(", "))
}

/// The media type alone, lower case: `text/html` for `Text/HTML; charset=utf-8`.
pub fn media_type(content_type: &str) -> Option<String> {
    entries(content_type).filter_map(essence).last().map(str::to_ascii_lowercase)
}

/// The charset of that type, as written, without quotes. One that says the same type again and no charset leaves the one that
/// was said before it.
pub(super) fn charset(content_type: &str) -> Option<String> {
    let (mut kind, mut said) = ("", None);
    for entry in entries(content_type) {
        let Some(essence) = essence(entry) else { continue };
        said = charset_of(entry).or_else(|| said.filter(|_| essence.eq_ignore_ascii_case(kind)));
        kind = essence;
    }
    said.map(str::to_owned)
}

/// What stands between commas; one in quotes is part of a value.
fn entries(content_type: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    content_type.split(move |c: char| {
        is_quoted ^= c == '"';
        c == ',' && !is_quoted
    })
}

/// The type and subtype at the start of one entry.
fn essence(entry: &str) -> Option<&str> {
    let essence = entry.split(';').next()?.trim();
    let (kind, subtype) = essence.split_once('/')?;
    let is_token = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
    (is_token(kind) && is_token(subtype) && kind != "*").then_some(essence)
}

/// The `charset` parameter of one entry.
fn charset_of(entry: &str) -> Option<&str> {
    entry.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']).trim();
        (name.trim().eq_ignore_ascii_case("charset") && !value.is_empty()).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_type_counts_with_the_charset_that_is_said_of_it() {
        for (said, media, expected) in [
            ("text/html", Some("text/html"), None),
            ("Text/HTML; charset=utf-8", Some("text/html"), Some("utf-8")),
            ("text/html;Charset=\"Shift_JIS\"; x=y", Some("text/html"), Some("Shift_JIS")),
            ("text/html; a=b; charset = 'latin1'", Some("text/html"), Some("latin1")),
            ("text/html; charset=", Some("text/html"), None),
            ("text/plain, text/html; charset=utf-8", Some("text/html"), Some("utf-8")),
            ("text/html; charset=utf-8, text/html", Some("text/html"), Some("utf-8")),
            ("text/html; charset=latin1, Text/HTML; charset=utf-8, text/html", Some("text/html"), Some("utf-8")),
            ("text/plain; charset=latin1, text/html", Some("text/html"), None),
            ("text/html; charset=latin1, text/plain, text/html", Some("text/html"), None),
            ("text/html; charset=utf-8, */*", Some("text/html"), Some("utf-8")),
            ("text/html; x=\"a, text/plain\"; charset=utf-8", Some("text/html"), Some("utf-8")),
            ("text/html,", Some("text/html"), None),
            ("foo; charset=utf-8", None, None),
            ("text/", None, None),
            ("", None, None),
        ] {
            assert_eq!((media_type(said).as_deref(), charset(said).as_deref()), (media, expected), "{said}");
        }
    }
}
