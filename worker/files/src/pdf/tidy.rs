//! What the pages of a PDF need to read as one text: no running headers, headings in the same rank everywhere, paragraphs
//! that end where they end and not where a column does, words in one piece.

use std::collections::{HashMap, HashSet};

use unpdf::{Block, InlineContent, Page, Paragraph, TextRun};

use super::blocks::Beside;
use super::layout::Layout;

/// Lines at the top and at the bottom of a page that may be a running header or footer.
const EDGE: usize = 3;
/// Blocks at the beginning and the end of a page among which they are.
const EDGE_BLOCKS: usize = 4;
/// Longest running header, characters without whitespace.
const MAX_HEADER: usize = 200;
/// Sizes that differ by less are one rank of headings, points.
const SAME_SIZE: f32 = 0.75;
/// Most words of a document that are remembered.
const MAX_WORDS: usize = 500_000;
/// Shortest paragraph that can break off, characters.
const MIN_BROKEN: usize = 20;

/// Does all of it. One layout for each page. What goes is told to `beside`.
pub(super) fn pages(pages: &mut [Page], layouts: &[Layout], beside: &mut Beside) {
    for paragraph in pages.iter_mut().flat_map(paragraphs_mut) {
        unify(paragraph);
    }
    rank_headings(pages, layouts);
    drop_running(pages, layouts, beside);
    stitch(pages, beside);
    let words = Words::of(pages);
    for paragraph in pages.iter_mut().flat_map(paragraphs_mut) {
        for item in &mut paragraph.content {
            if let InlineContent::Text(TextRun { text, .. }) | InlineContent::Link { text, .. } = item
                && let Some(joined) = words.join(text)
            {
                *text = joined;
            }
        }
    }
}

/// Text that was recognised from a picture, line by line, as markdown.
pub(super) fn recognised(text: &str) -> String {
    recognised_paragraphs(text).into_iter().map(|(_, markdown)| markdown + "\n").collect::<Vec<_>>().join("\n")
}

/// The paragraphs of such a text: without whitespace as they were recognised, and as markdown.
pub(super) fn recognised_paragraphs(text: &str) -> Vec<(String, String)> {
    let mut words = Words::default();
    words.add(text);
    let text = text.replace('\u{c}', "\n\n");
    let lines = text.split("\n\n").map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
    let paragraph = |line: String| {
        let mut out = String::new();
        escape(words.join(&line).as_deref().unwrap_or(&line), &mut out);
        (dense(&line), out)
    };
    lines.filter(|line| !line.is_empty()).map(paragraph).collect()
}

/// Writes plain text so that markdown reads it as that.
fn escape(text: &str, out: &mut String) {
    let starts_block = text.starts_with(['#', '>', '+', '-', '=']);
    if starts_block {
        out.push('\\');
    }
    for c in text.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '|' | '~') {
            out.push('\\');
        }
        out.push(c);
    }
}

fn paragraphs_mut(page: &mut Page) -> Vec<&mut Paragraph> {
    let mut found = Vec::new();
    for block in &mut page.elements {
        match block {
            Block::Paragraph(paragraph) => found.push(paragraph),
            Block::Table(table) => {
                found.extend(table.rows.iter_mut().flat_map(|row| &mut row.cells).flat_map(|cell| &mut cell.content));
            }
            _ => {}
        }
    }
    found
}

/// Pieces of one look become one piece, line breaks and runs of spaces one space.
fn unify(paragraph: &mut Paragraph) {
    let mut content: Vec<InlineContent> = Vec::with_capacity(paragraph.content.len());
    for item in paragraph.content.drain(..) {
        match (item, content.last_mut()) {
            (InlineContent::LineBreak, Some(InlineContent::Text(last))) => last.text.push(' '),
            (InlineContent::LineBreak, _) => content.push(InlineContent::Text(TextRun::new(" "))),
            (InlineContent::Text(run), Some(InlineContent::Text(last))) if last.style == run.style => {
                last.text.push_str(&run.text);
            }
            (item, _) => content.push(item),
        }
    }
    for item in &mut content {
        if let InlineContent::Text(TextRun { text, .. }) = item
            && text.contains("  ")
        {
            let mut was_space = false;
            text.retain(|c| {
                let keep = !(was_space && c == ' ');
                was_space = c == ' ';
                keep
            });
        }
    }
    paragraph.content = content;
}

pub(super) fn plain(paragraph: &Paragraph) -> String {
    paragraph.content.iter().fold(String::new(), |mut all, item| {
        if let InlineContent::Text(TextRun { text, .. }) | InlineContent::Link { text, .. } = item {
            all.push_str(text);
        }
        all
    })
}

pub(super) fn dense(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The reader ranks the headings of each page by themselves; their sizes tell their rank in the document.
fn rank_headings(pages: &mut [Page], layouts: &[Layout]) {
    let mut sizes: HashMap<(usize, usize), f32> = HashMap::new();
    for (p, (page, layout)) in pages.iter().zip(layouts).enumerate() {
        for (b, block) in page.elements.iter().enumerate() {
            if let Block::Paragraph(paragraph) = block
                && paragraph.style.heading_level.is_some()
                && let Some(size) = layout.size_of(&dense(&plain(paragraph)))
            {
                sizes.insert((p, b), size);
            }
        }
    }
    let mut tiers: Vec<f32> = sizes.values().copied().collect();
    tiers.sort_by(|a, b| b.total_cmp(a));
    tiers.dedup_by(|smaller, larger| *larger - *smaller < SAME_SIZE);
    for ((p, b), size) in sizes {
        let tier = tiers.iter().take_while(|tier| **tier - size >= SAME_SIZE).count();
        if let Block::Paragraph(paragraph) = &mut pages[p].elements[b] {
            paragraph.style.heading_level = Some(u8::try_from(tier + 1).unwrap_or(6).min(6));
        }
    }
}

/// Digits as one mark: page numbers change.
fn numberless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if !c.is_numeric() {
            out.push(c);
        } else if !out.ends_with('#') {
            out.push('#');
        }
    }
    out
}

/// Drops what stands at the same height of several pages with the same words.
fn drop_running(pages: &mut [Page], layouts: &[Layout], beside: &mut Beside) {
    let enough = pages.len().div_ceil(2).clamp(2, 3);
    let mut seen: HashMap<(String, i64), HashSet<usize>> = HashMap::new();
    for (p, layout) in layouts.iter().enumerate() {
        for (y, line) in layout.edges(EDGE).filter(|(_, line)| line.chars().count() <= MAX_HEADER) {
            // Half of what two neighbours differ by in height falls on the other side of a step.
            for step in [y.round() as i64 / 2, (y.round() as i64 + 1) / 2] {
                seen.entry((numberless(line), step)).or_default().insert(p);
            }
        }
    }
    let running: HashSet<String> =
        seen.into_iter().filter(|(_, on)| on.len() >= enough).map(|((line, _), _)| line).collect();
    if running.is_empty() {
        return;
    }
    let mut kept: HashSet<String> = HashSet::new();
    for (p, page) in pages.iter_mut().enumerate() {
        let last = page.elements.len();
        let mut at = 0;
        let mut gone = Vec::new();
        page.elements.retain(|block| {
            let is_edge = at < EDGE_BLOCKS || at + EDGE_BLOCKS >= last;
            at += 1;
            let Block::Paragraph(paragraph) = block else { return true };
            if !is_edge || paragraph.style.list_info.is_some() {
                return true;
            }
            let text = dense(&plain(paragraph));
            if !running.contains(&numberless(&text)) {
                return true;
            }
            // A heading is a header only word for word, and once it may stay.
            let stays = paragraph.style.heading_level.is_some() && kept.insert(text);
            if !stays {
                gone.push((at - 1, plain(paragraph)));
            }
            stays
        });
        beside.drop(p, last, gone);
    }
}

/// Joins paragraphs that a column's or page's end has broken.
fn stitch(pages: &mut [Page], beside: &mut Beside) {
    // Page and block of a paragraph that breaks off.
    let mut open: Option<(usize, usize)> = None;
    for p in 0..pages.len() {
        let mut b = 0;
        while b < pages[p].elements.len() {
            let block = &pages[p].elements[b];
            match block {
                Block::Paragraph(next) if is_prose(next) => {
                    if let Some((page, at)) = open
                        && goes_on(next)
                    {
                        let Block::Paragraph(mut next) = pages[p].elements.remove(b) else { continue };
                        beside.join((page, at), (p, b));
                        if let Block::Paragraph(first) = &mut pages[page].elements[at] {
                            first.content.push(InlineContent::Text(TextRun::new(" ")));
                            first.content.append(&mut next.content);
                            unify(first);
                            open = breaks_off(first).then_some((page, at));
                        }
                        continue;
                    }
                    open = breaks_off(next).then_some((p, b));
                }
                Block::Image { .. } | Block::HorizontalRule | Block::PageBreak | Block::SectionBreak => {}
                _ => open = None,
            }
            b += 1;
        }
    }
}

fn is_prose(paragraph: &Paragraph) -> bool {
    paragraph.style.heading_level.is_none() && paragraph.style.list_info.is_none()
}

fn breaks_off(paragraph: &Paragraph) -> bool {
    let text = plain(paragraph);
    let text = text.trim_end();
    text.chars().count() >= MIN_BROKEN
        && text
            .chars()
            .next_back()
            .is_some_and(|c| c.is_alphanumeric() || matches!(c, ',' | '-' | '\u{2010}' | '\u{ad}'))
}

fn goes_on(paragraph: &Paragraph) -> bool {
    plain(paragraph).trim_start().chars().next().is_some_and(char::is_lowercase)
}

/// The words of a document: what a word broken at a line's end is judged by.
#[derive(Debug, Default)]
struct Words {
    whole: HashSet<String>,
    /// Words that are written with a hyphen elsewhere in the document.
    compound: HashSet<String>,
}

/// What may stand for a hyphen at a line's end.
const HYPHENS: [char; 3] = ['-', '\u{2010}', '\u{ad}'];

/// Words before which a hyphen stands for the second half of a compound, as in "pre- and post-war".
const CONJUNCTIONS: &[&str] =
    &["and", "or", "to", "und", "oder", "bis", "sowie", "et", "ou", "y", "o", "e", "i", "en", "of", "och"];

impl Words {
    fn of(pages: &mut [Page]) -> Self {
        let mut words = Self::default();
        for paragraph in pages.iter_mut().flat_map(paragraphs_mut) {
            words.add(&plain(paragraph));
        }
        words
    }

    fn add(&mut self, text: &str) {
        let mut after_break = false;
        for word in text.split_whitespace() {
            let is_broken = word.ends_with(HYPHENS);
            let core = word.trim_matches(|c: char| !c.is_alphanumeric());
            if !is_broken && !after_break && !core.is_empty() && self.whole.len() < MAX_WORDS {
                let core = core.to_lowercase();
                if core.contains(HYPHENS) {
                    self.compound.insert(core.replace(HYPHENS, "-"));
                } else {
                    self.whole.insert(core);
                }
            }
            after_break = is_broken;
        }
    }

    /// The text with its broken words joined; `None` when there are none.
    fn join(&self, text: &str) -> Option<String> {
        if !HYPHENS.iter().any(|hyphen| text.contains(*hyphen)) {
            return None;
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(HYPHENS) {
            let hyphen = rest[at..].chars().next().unwrap_or('-');
            let after = &rest[at + hyphen.len_utf8()..];
            out.push_str(&rest[..at]);
            let start = out
                .rfind(|c: char| !c.is_alphabetic())
                .map_or(0, |i| i + out[i..].chars().next().map_or(1, char::len_utf8));
            let first = out[start..].to_lowercase();
            let second = after
                .strip_prefix(' ')
                .map(|after| &after[..after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len())]);
            match second {
                Some(second) if !first.is_empty() && second.chars().next().is_some_and(char::is_lowercase) => {
                    match self.judge(&first, second, hyphen) {
                        Broken::Word => rest = &after[1..],
                        Broken::Compound => {
                            out.push('-');
                            rest = &after[1..];
                        }
                        Broken::No => {
                            out.push('-');
                            rest = after;
                        }
                    }
                }
                // A soft hyphen inside a line says where the word could be broken, and is not shown.
                _ if hyphen == '\u{ad}' => rest = after,
                _ => {
                    out.push(hyphen);
                    rest = after;
                }
            }
        }
        out.push_str(rest);
        Some(out)
    }

    fn judge(&self, first: &str, second: &str, hyphen: char) -> Broken {
        let second = second.to_lowercase();
        if self.whole.contains(&format!("{first}{second}")) || hyphen == '\u{ad}' {
            Broken::Word
        } else if self.compound.contains(&format!("{first}-{second}")) {
            Broken::Compound
        } else if CONJUNCTIONS.contains(&second.as_str()) {
            Broken::No
        } else if self.is_word(first) && self.is_word(&second) {
            Broken::Compound
        } else {
            Broken::Word
        }
    }

    fn is_word(&self, text: &str) -> bool {
        text.chars().count() > 2 && self.whole.contains(text)
    }
}

/// What a hyphen and a space between two words are.
enum Broken {
    /// The break of one word.
    Word,
    /// A hyphen at the end of a line.
    Compound,
    /// Neither: a hyphen and a space that belong to the text.
    No,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_words_are_joined_and_compounds_keep_their_hyphen() {
        let mut words = Words::default();
        words.add("The history of well-known rivers; long ago a term was here and the office is one.");
        for (text, joined) in [
            ("a his\u{2010} tory of", "a history of"),
            ("a His- tory", "a History"),
            ("a his\u{ad}tory", "a history"),
            ("well- known", "well-known"),
            ("long- term plans", "long-term plans"),
            ("pre- and post-war", "pre- and post-war"),
            ("unheard- of", "unheard- of"),
            ("sur\u{2010} prising", "surprising"),
            ("1- 2, - a list", "1- 2, - a list"),
            ("A- B", "A- B"),
            ("gro\u{2010} \u{df}er", "gro\u{df}er"),
        ] {
            assert_eq!(words.join(text).as_deref(), Some(joined), "{text}");
        }
        assert_eq!(words.join("plain"), None);
    }

    fn page(number: u32, texts: &[&str]) -> Page {
        let mut page = Page::a4(number);
        for text in texts {
            match text.strip_prefix("# ") {
                Some(heading) => page.add_paragraph(Paragraph::heading(heading, 1)),
                None => page.add_paragraph(Paragraph::with_text(*text)),
            }
        }
        page
    }

    fn layout(lines: &[(&str, f32, f32)]) -> Layout {
        let spans: Vec<_> = lines
            .iter()
            .map(|(text, y, size)| unpdf::parser::TextSpan::new((*text).to_owned(), 50.0, *y, *size, "F".to_owned()))
            .collect();
        Layout::of(&spans, None)
    }

    fn texts(pages: &[Page]) -> Vec<String> {
        let blocks = pages.iter().flat_map(|page| &page.elements);
        blocks
            .filter_map(|block| match block {
                Block::Paragraph(p) => {
                    Some(format!("{}{}", "#".repeat(p.style.heading_level.unwrap_or(0).into()), plain(p)))
                }
                _ => None,
            })
            .collect()
    }

    #[test]
    fn pages_become_one_text() {
        let mut all = vec![
            page(
                1,
                &[
                    "Report 7",
                    "# The Title",
                    "# Chapter",
                    "A paragraph that the page breaks in the mid\u{2010}",
                    "Page 1 of 3",
                ],
            ),
            page(2, &["Report 7", "dle of a word  and goes on.", "# Next", "Middle it is.", "Page 2 of 3"]),
            page(3, &["Report 7", "# Next", "Another text stands here", "Page 3 of 3"]),
        ];
        let header = |n| [("Report 7", 800.0, 9.0), (["Page 1 of 3", "Page 2 of 3", "Page 3 of 3"][n], 20.0, 9.0)];
        let layouts = vec![
            layout(&[&header(0)[..], &[("The Title", 700.0, 20.0), ("Chapter", 650.0, 14.0)]].concat()),
            layout(&[&header(1)[..], &[("Next", 700.0, 14.0)]].concat()),
            layout(&[&header(2)[..], &[("Next", 600.0, 14.2)]].concat()),
        ];
        pages(&mut all, &layouts, &mut Beside::default());
        assert_eq!(
            texts(&all),
            [
                "#The Title",
                "##Chapter",
                "A paragraph that the page breaks in the middle of a word and goes on.",
                "##Next",
                "Middle it is.",
                "##Next",
                "Another text stands here"
            ]
        );
    }

    #[test]
    fn recognised_text_is_no_markup() {
        assert_eq!(recognised("# One\ntwo *x* <b>\n\n\n1|2\n\u{c}"), "\\# One two \\*x\\* \\<b>\n\n1\\|2\n");
    }
}
