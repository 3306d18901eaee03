//! Quotes of what stands above: who answers in a forum quotes the post that is answered, often the whole of it, and each
//! answer to that quotes both. A reader of the page has read it, so it goes.
//!
//! It goes only as a whole, where nearly all of its words stand above in the same order, and where it is long. A short quote
//! says which of many words are answered. A quote of something else stays.

use std::collections::hash_map::Entry;

use foldhash::{HashMap, HashMapExt as _};

use super::Lines;
use crate::digest;
use crate::measure::Measures;
use crate::tree::{Dom, Tag};

/// Words that are compared at a time.
const RUN: usize = 4;
/// Words of a quote.
const LEAST: usize = 30;
/// The part of its runs of words that must stand above.
const KNOWN: f32 = 0.9;
/// Words of a page that are read.
const MOST_WORDS: usize = 200_000;
/// The part of a page that a quote holds at most: names such as "quotes" may be those of all of it.
const MOST_SHARE: f32 = 0.5;

/// Marks the lines of quotes of what stands above them.
pub fn find(dom: &Dom, m: &Measures, lines: &Lines, gone: &mut [bool]) {
    let quotes = quotes(dom, m, lines);
    if quotes.is_empty() {
        return;
    }
    let words = Words::of(dom, lines);
    let first = words.first_places();
    for (from, to) in quotes {
        let range = words.starts[from]..words.starts[to];
        if range.len() < LEAST {
            continue;
        }
        let runs = words.runs(range.clone());
        let (mut all, mut known) = (0, 0);
        for run in runs {
            all += 1;
            known += u32::from(first.get(&run).is_some_and(|&at| at + RUN <= range.start));
        }
        if known as f32 >= KNOWN * all as f32 {
            gone[from..to].fill(true);
        }
    }
}

/// The outermost quotes, each as a range of lines.
fn quotes(dom: &Dom, m: &Measures, lines: &Lines) -> Vec<(usize, usize)> {
    let node = |at: usize| lines.nodes[lines.list[at].nodes.0 as usize] as usize;
    let mut out = Vec::new();
    let (mut from, mut end) = (0, 0);
    // The elements that lines stand in are gone through once, by looking at each line's way up to that of the line before.
    let mut before = m.body;
    for at in 0..lines.list.len() {
        let text = node(at);
        if text < end {
            continue;
        }
        if end > 0 {
            out.push((from, at));
            end = 0;
        }
        let is_new = |&up: &usize| up > before;
        let quote = dom.ancestors(text).take_while(is_new).filter(|&up| is_quote(dom, m, up)).last();
        if let Some(quote) = quote {
            (from, end) = (at, dom.end(quote));
        }
        before = text;
    }
    if end > 0 {
        out.push((from, lines.list.len()));
    }
    out
}

fn is_quote(dom: &Dom, m: &Measures, i: usize) -> bool {
    let tag = dom.tag(i);
    let is_named = || {
        let class = dom.class(i);
        class.contains("quote") || class.contains("Quote")
    };
    (tag == Tag::Blockquote || tag.is_block() && is_named()) && m.text[i] as f32 <= MOST_SHARE * m.total() as f32
}

/// The words of the lines of a page, as numbers.
struct Words {
    list: Vec<u64>,
    /// Per line, and after the last, the place of its first word.
    starts: Vec<usize>,
}

impl Words {
    fn of(dom: &Dom, lines: &Lines) -> Self {
        let mut words = Words { list: Vec::new(), starts: Vec::with_capacity(lines.list.len() + 1) };
        for line in &lines.list {
            words.starts.push(words.list.len());
            if words.list.len() < MOST_WORDS {
                lines.nodes(line).iter().for_each(|&node| words.read(dom.text(node as usize)));
            }
        }
        words.starts.push(words.list.len());
        words
    }

    fn read(&mut self, text: &str) {
        let mut word = digest::EMPTY;
        for c in text.chars() {
            if self.list.len() >= MOST_WORDS {
                return;
            }
            // Of the scripts without spaces each character is a word.
            let is_word = c >= '\u{2e80}';
            if c.is_alphanumeric() && !is_word {
                word = digest::add(word, c.to_ascii_lowercase());
                continue;
            }
            if word != digest::EMPTY {
                self.list.push(std::mem::replace(&mut word, digest::EMPTY));
            }
            if is_word {
                self.list.push(digest::add(digest::EMPTY, c));
            }
        }
        if word != digest::EMPTY {
            self.list.push(word);
        }
    }

    /// Numbers of the runs of words in a range of them.
    fn runs(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = u64> {
        self.list[range].windows(RUN).map(|run| {
            run.iter().fold(0u64, |all, word| (all.rotate_left(9) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        })
    }

    /// Where each run of words stands first.
    fn first_places(&self) -> HashMap<u64, usize> {
        let mut first = HashMap::with_capacity(self.list.len());
        for (at, run) in self.runs(0..self.list.len()).enumerate() {
            if let Entry::Vacant(entry) = first.entry(run) {
                entry.insert(at);
            }
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::guard;
    use super::super::tests::{left, left_of_discussion};
    use super::*;

    const POST: &str = "The kettle boils a litre in four minutes and keeps it warm for an hour on its own plate, but the \
        handle of oak gets loose after a year, and nobody sells the screw that it wants, which is a pity.";

    fn page(quote: &str) -> String {
        let rest = "<p>Mine came with two of them, and with a card on how to change the first.</p>".repeat(8);
        format!("<div class=post><p>{POST}</p></div><div class=post>{quote}<p>I have that screw.</p></div>{rest}")
    }

    #[test]
    fn a_quote_of_what_stands_above_goes() {
        for quote in [
            format!("<blockquote><p>{POST}</p></blockquote>"),
            format!("<div class='bbQuote x'><div>Ada said:</div><div><b>{}</b></div></div>", POST.to_uppercase()),
            format!("<blockquote>{}<blockquote>{POST}</blockquote></blockquote>", POST.split_at(100).0),
        ] {
            let out = left_of_discussion(&page(&quote));
            assert_eq!(out.to_lowercase().matches("boils a litre").count(), 1, "{out}");
            assert!(out.contains("I have that screw") && !out.contains("Ada said"), "{out}");
        }
    }

    #[test]
    fn other_quotes_stay() {
        let quote = format!("<blockquote>{POST}</blockquote>");
        assert_eq!(left(&page(&quote)).matches("boils a litre").count(), 2, "no discussion");
        let short = "<blockquote>the handle of oak gets loose after a year</blockquote>";
        assert_eq!(left_of_discussion(&page(short)).matches("gets loose after").count(), 2, "short");
        let other =
            POST.replace("kettle", "can").replace("oak", "beech").replace("litre", "pint").replace("year", "day");
        let other = format!("<blockquote>{other}</blockquote>");
        assert!(left_of_discussion(&page(&other)).contains("beech"), "of something else");
        let below = format!("<div class=post>{quote}</div>{}", page(""));
        assert_eq!(left_of_discussion(&below).matches("boils a litre").count(), 2, "it stands below");
    }

    #[test]
    fn signs_of_scripts_without_spaces_are_words() {
        let post = "水を一リットル四分で沸かし一時間温かく保つが取っ手は一年で緩み合う螺子は誰も売っていない";
        let html = page(&format!("<p>{post}</p><blockquote>{post}</blockquote>"));
        assert_eq!(left_of_discussion(&html).matches("リットル").count(), 1);
    }

    #[test]
    fn a_bounded_number_of_words_is_read_and_quotes_in_quotes_once() {
        let of = |html: &str| {
            let dom = guard::parse(html).dom;
            let m = Measures::of(&dom, false);
            let lines = Lines::of(&dom, &m, &m.invisible);
            (Words::of(&dom, &lines).list.len(), quotes(&dom, &m, &lines))
        };
        assert_eq!(of(&"<p>it boils</p>".repeat(MOST_WORDS)).0, MOST_WORDS);
        assert_eq!(of(&format!("<p>{}</p>", "it ".repeat(MOST_WORDS + 5))).0, MOST_WORDS);
        let nested = format!("<p>{}</p>{}", "word ".repeat(900), "<blockquote>word ".repeat(200));
        assert_eq!(of(&nested).1, [(1, 201)]);
    }
}
