//! Text that a page has twice: once for wide screens and once for narrow ones, or a short view of what stands in full
//! elsewhere. A reader sees one of them; the later one goes.
//!
//! Only whole blocks of some length count, and only where the page says that the two are two views of one thing: a name
//! that tells widths or views apart, or another depth in the page. Rows, cards and sections that are built alike say the
//! same by intent, and who quotes means to repeat.

use std::collections::hash_map::Entry;

use foldhash::{HashMap, HashMapExt as _};

use super::digest;
use super::measure::Measures;
use super::tree::{Dom, Tag};

/// Characters that a block must have, about twenty words.
const LEAST: u32 = 90;
/// Part of an element's text that must be known from before for all of it to go.
const MOSTLY: f32 = 0.75;
/// Two views of one thing stand at depths that differ by more than this.
const DEPTHS: usize = 1;
/// Elements of the way up that are compared.
const MOST_UP: usize = 40;
/// Bytes of an element's names that are read, and pairs of blocks that are compared.
const MOST_NAMES: usize = 256;
const MOST_PAIRS: usize = 2000;
/// Words in names that tell one view from another.
const VIEWS: &[&str] = &[
    "mobile",
    "desktop",
    "tablet",
    "hidden",
    "hide",
    "show",
    "visible",
    "d-none",
    "-only",
    "clone",
    "duplicate",
    "collaps",
    "teaser",
    "preview",
    "clamp",
    "display--none",
    "sm:",
    "md:",
    "lg:",
    "xl:",
];

/// Adds to `dropped` blocks that repeat one before them.
pub fn leave_out(dom: &Dom, m: &Measures, dropped: &mut [bool]) {
    let blocks = blocks(dom, m, dropped);
    // What has the length of no other is nobody's copy, and need not be read.
    let mut lengths: HashMap<u32, bool> = HashMap::new();
    for &i in &blocks {
        lengths.entry(m.text[i]).and_modify(|recurs| *recurs = true).or_default();
    }
    let mut seen: HashMap<u64, usize> = HashMap::new();
    let mut copies = Vec::new();
    let mut pairs = 0;
    for i in blocks.into_iter().filter(|&i| lengths[&m.text[i]]) {
        match seen.entry(digest(dom, i, dropped)) {
            Entry::Vacant(entry) => {
                entry.insert(i);
            }
            Entry::Occupied(entry) => {
                pairs += 1;
                if pairs <= MOST_PAIRS && m.text[*entry.get()] == m.text[i] && are_two_views(dom, *entry.get(), i) {
                    copies.push(i);
                }
            }
        }
    }
    for &copy in &copies {
        dropped[copy] = true;
    }
    whole_elements(dom, m, &copies, dropped);
}

/// The innermost blocks with so much text, in order.
fn blocks(dom: &Dom, m: &Measures, dropped: &[bool]) -> Vec<usize> {
    let mut blocks = Vec::new();
    let mut i = m.body + 1;
    while i < dom.end(m.body) {
        if dropped[i] || matches!(dom.tag(i), Tag::Pre | Tag::Code | Tag::Td | Tag::Th) {
            i = dom.end(i);
            continue;
        }
        if !dom.tag(i).is_block() || m.text[i] < LEAST || has_blocks(dom, m, i, dropped) {
            i += 1;
            continue;
        }
        blocks.push(i);
        i = dom.end(i);
    }
    blocks
}

/// Whether a part of a block is a block with text.
fn has_blocks(dom: &Dom, m: &Measures, i: usize, dropped: &[bool]) -> bool {
    (i + 1..dom.end(i)).any(|j| dom.tag(j).is_block() && m.text[j] > 0 && !dropped[j])
}

/// Of the text that is left, without its spaces.
fn digest(dom: &Dom, i: usize, dropped: &[bool]) -> u64 {
    let mut digest = digest::EMPTY;
    let mut j = i;
    while j < dom.end(i) {
        if dropped[j] {
            j = dom.end(j);
            continue;
        }
        digest = digest::add_words(digest, dom.text(j));
        j += 1;
    }
    digest
}

/// Whether the page says of two blocks with the same text that a reader sees one of them.
fn are_two_views(dom: &Dom, a: usize, b: usize) -> bool {
    let above = |i: usize, other: usize| {
        let is_own = move |up: usize| !(up <= other && other < dom.end(up));
        std::iter::once(i).chain(dom.ancestors(i)).take_while(move |&up| is_own(up)).take(MOST_UP)
    };
    let names = |i: usize| {
        let class = dom.class(i);
        class[..class.floor_char_boundary(MOST_NAMES)].to_ascii_lowercase()
    };
    let is_quote = |i: usize| dom.tag(i) == Tag::Blockquote || names(i).contains("quote");
    if above(a, b).chain(above(b, a)).any(is_quote) {
        return false;
    }
    let is_view = |i: usize| {
        let class = names(i);
        dom.tag(i) == Tag::Noscript || VIEWS.iter().any(|word| class.contains(word))
    };
    above(a, b).count().abs_diff(above(b, a).count()) > DEPTHS || above(a, b).chain(above(b, a)).any(is_view)
}

/// Where most of an element are copies, what is left of it are their headings and buttons.
fn whole_elements(dom: &Dom, m: &Measures, copies: &[usize], dropped: &mut [bool]) {
    let mut parts: HashMap<usize, u32> = HashMap::new();
    for &copy in copies {
        for up in dom.ancestors(copy).take_while(|&up| up > m.body).take(MOST_UP) {
            *parts.entry(up).or_default() += m.text[copy];
        }
    }
    for (i, copied) in parts {
        if copied as f32 >= MOSTLY * m.text[i] as f32 {
            dropped[i] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::guard;
    use super::*;

    const TEXT: &str = "Each cup is thrown by hand from stoneware, glazed twice, and holds three hundred and fifty \
        millilitres of tea or of coffee without getting hot outside.";

    fn times(html: &str) -> usize {
        let dom = guard::parse(html).dom;
        let m = Measures::of(&dom, false);
        let mut dropped = m.invisible.clone();
        leave_out(&dom, &m, &mut dropped);
        let out = m.text_left(&dom, &dropped);
        assert!(!out.contains("COPY"), "the heading of a copy goes with it: {out}");
        out.matches("thrown by hand").count()
    }

    #[test]
    fn the_second_view_of_a_text_goes() {
        for html in [
            format!(
                "<div class='text hidden-md-down'><p>{TEXT}</p></div><div class='text hidden-md-up'><p>{TEXT}</p></div>"
            ),
            format!("<div class=a><p>{TEXT}</p></div><div class=a><noscript><p>{TEXT} </p></noscript></div>"),
            format!("<p>{TEXT}</p><div><div class=tab><div><h3>COPY</h3><p>{TEXT}</p></div></div></div>"),
        ] {
            assert_eq!(times(&html), 1, "{html}");
        }
    }

    #[test]
    fn what_is_repeated_by_intent_stays() {
        for html in [
            format!("<ul><li class=plan><p>{TEXT}</p></li><li class=plan><p>{TEXT}</p></li></ul>"),
            format!(
                "<div><p>{TEXT}</p></div><div><div><div class=mobile><blockquote><p>{TEXT}</p></blockquote></div></div></div>"
            ),
            format!("<table><tr><td>{TEXT}<td class=hidden>{TEXT}</table>"),
            format!("<pre>{TEXT}</pre><div><div><div><pre>{TEXT}</pre></div></div></div>"),
        ] {
            assert_eq!(times(&html), 2, "{html}");
        }
        let html = "<p>It is thrown by hand.</p><div class=mobile><p>It is thrown by hand.</p></div>";
        assert_eq!(times(html), 2, "short texts recur");
    }
}
