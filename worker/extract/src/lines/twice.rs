//! A line that stands on the page before, at another depth: the name of a card on its picture and below it, the list beside
//! the text and in it, the answer above all answers and among them. Where rows and cards are built alike, what they have in
//! common stands at one depth, and stays.

use std::collections::hash_map::Entry;

use foldhash::{HashMap, HashMapExt as _};

use super::{Lines, Place};
use crate::measure::Measures;
use crate::tree::Dom;

/// Letters of a line, and words.
const LEAST_LETTERS: usize = 8;
const LEAST_WORDS: usize = 2;
/// Characters of a line. Longer ones are blocks, which are compared more closely.
const MOST: u32 = 240;
/// Lines that are found to be repeated whose depths are asked for.
const MOST_PAIRS: usize = 4000;

/// Marks lines that stand on the page before. Headings stay, what announces something, and what says what the page is
/// called. In a discussion links stay, too: they say who writes, and answers to answers stand deeper.
pub fn find(dom: &Dom, m: &Measures, discussion: bool, lines: &Lines, gone: &mut [bool]) {
    let mut seen: HashMap<u64, usize> = HashMap::new();
    let mut pairs = 0;
    for (at, line) in lines.list.iter().enumerate() {
        if gone[at] || line.chars > MOST || line.chars < LEAST_LETTERS as u32 {
            continue;
        }
        if matches!(line.place, Place::Cell | Place::Code | Place::Quote) {
            continue;
        }
        match seen.entry(lines.digest(dom, line)) {
            Entry::Vacant(entry) => {
                entry.insert(at);
            }
            Entry::Occupied(entry) => {
                let first = &lines.list[*entry.get()];
                pairs += 1;
                if pairs <= MOST_PAIRS
                    && line.place == Place::Text
                    && first.place != Place::Heading(1)
                    && first.chars == line.chars
                    && depth(dom, first.block) != depth(dom, line.block)
                    && says_something(lines, dom, at)
                    && !(discussion && lines.nodes(line).iter().all(|&node| m.links[node as usize] > 0))
                {
                    gone[at] = true;
                }
            }
        }
    }
}

fn depth(dom: &Dom, block: u32) -> usize {
    dom.ancestors(block as usize).count()
}

/// Whether a line is more than a label, a price or a number, and does not announce something.
fn says_something(lines: &Lines, dom: &Dom, at: usize) -> bool {
    let (mut letters, mut words, mut is_spaced, mut last) = (0, 0, true, ' ');
    for &node in lines.nodes(&lines.list[at]) {
        let text = dom.text(node as usize);
        letters += text.chars().filter(|c| c.is_alphabetic()).count();
        words += text.split_whitespace().count();
        last = text.trim_end().chars().last().unwrap_or(last);
        // From the characters of Chinese and Japanese on, words have no spaces between them.
        is_spaced &= !text.chars().any(|c| ('\u{2e80}'..'\u{ffff}').contains(&c));
    }
    letters >= LEAST_LETTERS && !matches!(last, ':' | '：') && (words >= LEAST_WORDS || !is_spaced)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{left, left_of_discussion};
    use super::*;

    const CARD: &str = "Cup of blue stoneware";

    fn times(html: &str) -> usize {
        left(html).matches(CARD).count()
    }

    #[test]
    fn a_line_that_stands_before_at_another_depth_goes() {
        assert_eq!(times(&format!("<div><p>{CARD}</p><div><div><p>{CARD}</p></div></div></div>")), 1);
        assert_eq!(times(&format!("<h2>{CARD}</h2><div><p><a href=/c>{CARD}</a></p></div>")), 1);
        let words = "青い石の茶碗と皿三枚";
        assert_eq!(left(&format!("<p>{words}</p><div><p>{words}</p></div>")), words);
    }

    #[test]
    fn who_writes_is_said_at_each_post() {
        let post = |words: &str| format!("<p><a href=/u/ada>Ada of the hill</a></p><p>{words}</p>");
        let html = format!("<div>{}<div><div>{}</div></div></div>", post("It boils."), post("It does."));
        assert_eq!(left_of_discussion(&html).matches("Ada").count(), 2);
        assert_eq!(left(&html).matches("Ada").count(), 1);
    }

    #[test]
    fn a_bounded_number_of_lines_is_looked_at_closely() {
        let again = format!("<div><p>{CARD}</p></div>").repeat(MOST_PAIRS + 7);
        assert_eq!(times(&format!("<p>{CARD}</p>{again}")), 8);
    }

    #[test]
    fn what_is_repeated_by_right_stays() {
        for html in [
            format!("<ul><li><p>{CARD}</p></li><li><p>{CARD}</p></li></ul>"),
            format!("<h1>{CARD}</h1><div><p>{CARD}</p></div>"),
            format!("<p>{CARD}</p><div><h2>{CARD}</h2></div>"),
            format!("<p>{CARD}</p><blockquote><p>{CARD}</p></blockquote>"),
            format!("<p>{CARD}</p><div><table><tr><td>{CARD}</td></tr></table></div>"),
            format!("<p>{CARD}</p><div><pre>{CARD}</pre></div>"),
            format!("<p>{CARD}:</p><div><p>{CARD}:</p></div>"),
        ] {
            assert_eq!(times(&html), 2, "{html}");
        }
        for short in ["Blue", "€ 1,299.00", "12 34 56 78", "a b c d"] {
            assert_eq!(left(&format!("<p>{short}</p><div><p>{short}</p></div>")).matches(short).count(), 2);
        }
    }
}
