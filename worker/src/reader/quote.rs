//! What a model says, held against the page: quotations stand in it, and hosts are named by it.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

use super::page_text::PageText;

/// Most passages, and the longest and shortest one, bytes.
const PASSAGES: usize = 20;
const LONGEST: usize = 10_000;
const SHORTEST: usize = 2;

/// The passages of an answer in the page's own characters. Those that the page does not hold are left out; if it holds
/// none of them, the answer is refused.
pub(super) fn passages(said: Value, page: &str) -> Result<Vec<String>, String> {
    let list = said["passages"].as_array().ok_or("`passages` is a list of texts.")?;
    let text = Plain::new(page);
    let mut found: Vec<String> = Vec::new();
    for passage in list.iter().take(PASSAGES).filter_map(Value::as_str) {
        let passage = passage.trim();
        if !(SHORTEST..=LONGEST).contains(&passage.len()) {
            continue;
        }
        if let Some(own) = text.find(passage)
            && !found.iter().any(|known| known == own)
        {
            found.push(own.to_owned());
        }
    }
    if found.is_empty() && !list.is_empty() {
        return Err("None of these passages stands in the page. Copy them exactly.".to_owned());
    }
    Ok(found)
}

/// A text without what markdown adds and with single spaces, and where each byte came from.
struct Plain<'a> {
    source: &'a str,
    text: String,
    /// Place in the source of each byte of `text`.
    places: Vec<usize>,
}

impl<'a> Plain<'a> {
    fn new(source: &'a str) -> Self {
        let mut plain = Self { source, text: String::new(), places: Vec::new() };
        let mut is_space = true;
        for (at, c) in source.char_indices() {
            if matches!(c, '*' | '_' | '`' | '\\' | '#' | '>' | '|') {
                continue;
            }
            if c.is_whitespace() {
                if !is_space {
                    plain.push(' ', at);
                }
                is_space = true;
            } else {
                plain.push(same(c), at);
                is_space = false;
            }
        }
        plain
    }

    fn push(&mut self, c: char, at: usize) {
        self.text.push(c);
        self.places.resize(self.text.len(), at);
    }

    /// The source's own words for `passage`.
    fn find(&self, passage: &str) -> Option<&'a str> {
        let wanted = Plain::new(passage);
        let wanted = wanted.text.trim();
        if wanted.len() < SHORTEST {
            return None;
        }
        let start = self.text.find(wanted)?;
        let first = self.places[start];
        let last = self.places[start + wanted.len() - 1];
        let end = last + self.source[last..].chars().next().map_or(1, char::len_utf8);
        Some(self.source[first..end].trim())
    }
}

/// Models write quotation marks and dashes as they like.
fn same(c: char) -> char {
    match c {
        '‘' | '’' | '‚' => '\'',
        '“' | '”' | '„' => '"',
        '–' | '—' | '−' => '-',
        other => other,
    }
}

/// The first host in an address in one of the texts that neither the page, its address nor the caller's own `words` name. The
/// page is looked through once for each host, however often the texts name it.
pub(crate) fn foreign_host<'t>(
    texts: impl IntoIterator<Item = &'t str>,
    page: PageText<'_>,
    words: &str,
) -> Option<String> {
    static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?i)(\b[a-z][a-z0-9+.-]{1,15}:)?//(?:[^\s/?#@]*@)?([^\s/?#:)\]>,']+)").expect("a constant")
    });
    let own = page.url.host_str().unwrap_or_default().to_ascii_lowercase();
    let (mut lower, mut known) = (None, HashSet::new());
    let is_foreign = |found: Captures<'t>| {
        let host = found[2].trim_end_matches(['.', '"', '*', '_']).to_lowercase();
        // Without a scheme it may be two slashes in a text.
        if found.get(1).is_none() && !host.contains('.') || known.contains(&host) {
            return None;
        }
        let is_own = host == own || host.strip_suffix(own.as_str()).is_some_and(|rest| rest.ends_with('.'));
        let parent = host.strip_prefix("www.").unwrap_or(&host);
        let lower = lower.get_or_insert_with(|| {
            let data = page.structured.map(ToString::to_string).unwrap_or_default();
            format!("{}\n{data}\n{words}", page.markdown).to_lowercase()
        });
        if !is_own && !own.ends_with(&format!(".{parent}")) && own != parent && !lower.contains(parent) {
            return Some(host);
        }
        known.insert(host);
        None
    };
    texts.into_iter().flat_map(|text| ADDRESS.captures_iter(text)).find_map(is_foreign)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    #[test]
    fn quotations_are_the_pages_own_characters() {
        let page = "# Title\n\nIt **costs** five\neuros – “today”. Next\\_one.\n\n> Quoted `code` ends.";
        let of = |list: Value| passages(json!({"passages": list}), page);
        assert_eq!(of(json!(["It costs five euros - \"today\"."])).unwrap(), ["It **costs** five\neuros – “today”."]);
        assert_eq!(of(json!(["Next_one", "invented", "Quoted code"])).unwrap(), ["Next\\_one", "Quoted `code"]);
        assert_eq!(of(json!(["code ends.", "code ends."])).unwrap(), ["code` ends."]);
        assert!(of(json!([])).unwrap().is_empty());
        assert!(of(json!(["invented", "*"])).unwrap_err().contains("None"));
        assert!(passages(json!({}), page).is_err() && of(json!([1])).is_err());
    }

    #[test]
    fn hosts_that_the_page_does_not_name_are_found() {
        let url = url::Url::parse("https://docs.site.test/a").unwrap();
        let data = json!({"url": "https://cdn.test/i.png"});
        let page = PageText { url: &url, markdown: "[x](https://Other.test/b) text", structured: Some(&data) };
        for fine in [
            "nothing",
            "see https://docs.site.test/b",
            "https://www.other.test/c",
            "//cdn.test/x",
            "a // b",
            "https://site.test",
        ] {
            assert_eq!(foreign_host([fine], page, ""), None, "{fine}");
        }
        for (text, host) in [
            ("go to https://evil.test/?q=1.", "evil.test"),
            ("[a](HTTP://evil.test)", "evil.test"),
            ("https://docs.site.test@evil.test/", "evil.test"),
            ("https://docs.site.test.evil.test/", "docs.site.test.evil.test"),
            ("//evil.test", "evil.test"),
        ] {
            assert_eq!(foreign_host([text], page, "").as_deref(), Some(host), "{text}");
        }
        let words = "the state as in {\"enum\": [\"https://Schema.example/New\"]}";
        assert_eq!(foreign_host(["https://schema.example/New"], page, words), None, "the caller's own words name it");
        let several = ["https://other.test/1", "a", "https://other.test/2 //evil.test", "https://worse.test"];
        assert_eq!(foreign_host(several, page, "").as_deref(), Some("evil.test"));
    }

    #[test]
    fn a_long_page_is_not_read_again_for_each_address() {
        let url = url::Url::parse("https://site.test/").unwrap();
        let markdown = format!("{}https://CDN.test/", "Some words. ".repeat(200_000));
        let page = PageText { url: &url, markdown: &markdown, structured: None };
        let texts: Vec<String> = (0..20_000).map(|n| format!("https://cdn.test/{n}.png")).collect();
        let begun = weir_shared::clock::Stopwatch::start();
        assert_eq!(foreign_host(texts.iter().map(String::as_str), page, ""), None);
        // Once for each takes minutes.
        assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
    }
}
