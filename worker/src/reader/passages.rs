//! What of a page a model is shown: all of it, or as much as it takes.
//!
//! Of a longer page, the passages that have most to do with what is asked for, in the page's order; without a question,
//! the beginning.

use std::borrow::Cow;

use weir_shared::passages::{rank, split};

use super::page_text::PageText;

/// Bytes that count as a token: few, because not every language is English.
const BYTES_PER_TOKEN: usize = 3;
/// Tokens of rules, schema and wish that are kept free.
const OVERHEAD: usize = 2_000;
/// Least room for a page, bytes.
const LEAST: usize = 4_000;
/// Stands where passages are left out.
const GAP: &str = "\n\n[…]\n\n";

/// Bytes of a page that fit beside an answer of so many tokens.
pub(crate) fn room(context: usize, answer: u32) -> usize {
    (context.saturating_sub(OVERHEAD + answer as usize) * BYTES_PER_TOKEN).max(LEAST)
}

/// A page, or a part of it.
pub(crate) struct Excerpt<'a> {
    pub text: Cow<'a, str>,
    /// The page's own data, if it fits.
    pub structured: Option<String>,
    /// Bytes of text shown, and of the whole, where those differ.
    part: Option<(usize, usize)>,
}

impl<'a> Excerpt<'a> {
    /// Chooses from a page what fits into `room` bytes.
    pub fn new(page: PageText<'a>, room: usize, about: Option<&str>) -> Self {
        let structured = page.structured.map(ToString::to_string).filter(|text| text.len() <= room / 2);
        let room = room - structured.as_ref().map_or(0, String::len);
        let whole = page.markdown;
        if whole.len() <= room {
            return Self { text: whole.into(), structured, part: None };
        }
        let text = choose(whole, room, about.unwrap_or_default());
        Self { part: Some((text.len().min(whole.len()), whole.len())), text: text.into(), structured }
    }

    /// That the page was not read whole.
    pub fn warning(&self) -> Option<String> {
        self.part.map(|(shown, whole)| {
            let percent = (shown * 100 / whole.max(1)).clamp(1, 99);
            format!("The page is longer than the language model takes at once: about {percent} % of its text was read.")
        })
    }
}

fn choose(text: &str, room: usize, about: &str) -> String {
    let passages = split(text);
    let mut order = rank(&passages, about);
    // Passages that match no word of the question follow in the page's order.
    let mut is_ranked = vec![false; passages.len()];
    order.iter().for_each(|n| is_ranked[*n] = true);
    order.extend((0..passages.len()).filter(|n| !is_ranked[*n]));
    let mut left = room;
    let mut taken = Vec::new();
    for n in order {
        let size = passages[n].len() + GAP.len();
        if size > left {
            // With a question a shorter one may still fit; without one the beginning ends here.
            if about.is_empty() { break } else { continue }
        }
        left -= size;
        taken.push(n);
    }
    taken.sort_unstable();
    let mut out = String::with_capacity(room);
    let mut last = None;
    for n in taken {
        if last.is_some_and(|last: usize| last + 1 == n) {
            out.push_str("\n\n");
        } else if last.is_some() || n > 0 {
            out.push_str(GAP);
        }
        out.push_str(passages[n]);
        last = Some(n);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_page_is_shown_whole_and_a_long_one_by_what_is_asked_for() {
        let url = url::Url::parse("http://x.test/").expect("a URL");
        let filler = (0..200).map(|n| format!("Paragraph {n} says nothing much at all.\n\n")).collect::<String>();
        let markdown = format!("# Top\n\n{filler}The warranty lasts seven years.\n\n{filler}");
        let page = PageText { url: &url, markdown: &markdown, structured: None };
        let whole = Excerpt::new(page, 1 << 20, Some("x"));
        assert!(whole.warning().is_none() && whole.text == markdown);
        let asked = Excerpt::new(page, 2_000, Some("How long are warranties?"));
        assert!(asked.text.contains("seven years") && asked.text.len() <= 2_100, "{}", asked.text);
        assert!(asked.warning().is_some_and(|text| text.contains('%')));
        let first = Excerpt::new(page, 2_000, None);
        assert!(first.text.starts_with("# Top\n\nParagraph 0 ") && !first.text.contains("seven years"));
        assert!(!first.text.contains("[…]"));
    }

    #[test]
    fn the_pages_own_data_gives_way_when_it_is_too_long() {
        let url = url::Url::parse("http://x.test/").expect("a URL");
        let data = serde_json::json!({"a": "x".repeat(3_000)});
        let page = PageText { url: &url, markdown: "text", structured: Some(&data) };
        assert!(Excerpt::new(page, 4_000, None).structured.is_none());
        assert!(Excerpt::new(page, 8_000, None).structured.is_some());
    }
}
