//! The runs of text that are left of a page, each with a number that tells it from others.
//!
//! A run is text without the boundary of a block in it, or a picture. Its number is of how its texts begin and of how long
//! they are, without the whitespace around them.

use html5ever::local_name;
use url::Url;

use crate::measure::Measures;
use crate::tree::{Dom, Tag};

/// Bytes of a run that its number is made of, besides its length.
const HASHED: usize = 96;
/// Characters of an item of a list or a cell that is a label or a value, and not a text of its own.
const ITEM: u32 = 120;
/// Most numbers of one page: those of its begin and its end, where templates are.
const MOST: usize = 256;

/// What a run is to a page, if others have it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Its heading, which stays whatever others have.
    Own,
    /// A heading, a label, a value, code: repeated by right beside something of the page's own.
    Label,
    /// Text, or a picture.
    Text,
}

#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub number: u64,
    pub role: Role,
}

/// What is left of a page, run by run.
#[derive(Debug, Default)]
pub struct Runs {
    pub list: Vec<Run>,
    /// Nodes that make them up, in document order: node, run, characters.
    pub nodes: Vec<(u32, u32, u32)>,
}

/// A page as far as others are compared with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// What the page calls itself: a page at two addresses is one, and so are the pages of one thread.
    pub(super) name: u64,
    /// All of its text.
    pub(super) whole: u64,
    /// The part of the site that it is in; 0: none.
    pub(super) section: u32,
    /// Numbers of its runs.
    pub(super) numbers: Vec<u64>,
}

impl Runs {
    /// The runs of what is not dropped.
    pub fn of(dom: &Dom, m: &Measures, dropped: &[bool]) -> Self {
        let mut walk = Walk { dom, m, runs: Self::default(), open: Vec::new(), run: None, number: Number::default() };
        // Ends of the innermost elements that give their text a role.
        let (mut own_end, mut label_end) = (0, 0);
        let mut i = m.body;
        while i < dom.end(m.body) {
            while walk.open.last().is_some_and(|&end| i >= end) {
                walk.open.pop();
                walk.close();
            }
            if dropped[i] {
                i = dom.end(i);
                continue;
            }
            match dom.tag(i) {
                Tag::Text if m.text[i] > 0 => {
                    let role = match i {
                        i if i < own_end => Role::Own,
                        i if i < label_end => Role::Label,
                        _ => Role::Text,
                    };
                    walk.text(i, role);
                }
                Tag::Img => walk.picture(i),
                tag if tag.is_block() => {
                    walk.close();
                    walk.open.push(dom.end(i));
                    match tag {
                        Tag::H1 => own_end = own_end.max(dom.end(i)),
                        Tag::H2 | Tag::H3 | Tag::H4 | Tag::H5 | Tag::H6 | Tag::Pre => {
                            label_end = label_end.max(dom.end(i));
                        }
                        Tag::Li | Tag::Td | Tag::Th | Tag::Dt | Tag::Dd | Tag::Caption | Tag::Summary | Tag::Legend
                            if m.text[i] <= ITEM =>
                        {
                            label_end = label_end.max(dom.end(i));
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
            i += 1;
        }
        walk.close();
        walk.runs
    }

    /// The page as others are compared with it. `None`: it has nothing to compare.
    pub fn blocks(&self, dom: &Dom, m: &Measures, url: &Url) -> Option<Blocks> {
        let mut whole = Number::default();
        self.list.iter().for_each(|run| whole.word(run.number));
        let mut numbers: Vec<u64> =
            self.list.iter().filter(|run| run.role != Role::Own).map(|run| run.number).collect();
        if numbers.len() > MOST {
            numbers.drain(MOST / 2..numbers.len() - MOST / 2);
        }
        let blocks = Blocks { name: name(dom, m), whole: whole.end(), section: section(url), numbers };
        (!blocks.numbers.is_empty()).then_some(blocks)
    }
}

struct Walk<'d> {
    dom: &'d Dom,
    m: &'d Measures,
    runs: Runs,
    /// Ends of the blocks that are open.
    open: Vec<usize>,
    /// The run that is open, and its characters so far.
    run: Option<(usize, u32)>,
    number: Number,
}

impl Walk<'_> {
    fn text(&mut self, i: usize, role: Role) {
        let chars = self.m.text[i];
        let (run, before) = self.run.unwrap_or_else(|| {
            self.number = Number::default();
            self.runs.list.push(Run { number: 0, role });
            (self.runs.list.len() - 1, 0)
        });
        self.number.text(self.dom.text(i));
        self.runs.nodes.push((i as u32, run as u32, chars));
        self.run = Some((run, before + chars));
    }

    /// Ends the open run, if there is one.
    fn close(&mut self) {
        let Some((run, chars)) = self.run.take() else { return };
        let run = &mut self.runs.list[run];
        // What announces something of the page's own.
        if self.number.last == b':' && run.role == Role::Text {
            run.role = Role::Label;
        }
        self.number.word(u64::from(chars));
        run.number = self.number.end();
    }

    /// A picture is known by all that is said of it: where it comes late, its address is a placeholder. It does not end the
    /// text that it stands in.
    fn picture(&mut self, i: usize) {
        let Some(element) = self.dom.element(i) else { return };
        let mut number = Number::default();
        for attribute in &element.attrs {
            if !matches!(attribute.name.local, local_name!("class") | local_name!("style") | local_name!("id")) {
                number.text(&attribute.value);
            }
        }
        self.runs.nodes.push((i as u32, self.runs.list.len() as u32, 1));
        self.runs.list.push(Run { number: number.end(), role: Role::Text });
    }
}

/// A number of texts, made eight bytes at a time.
#[derive(Clone, Copy, Default)]
struct Number {
    state: u64,
    taken: usize,
    /// The last byte of the last text.
    last: u8,
}

impl Number {
    fn text(&mut self, text: &str) {
        let bytes = text.as_bytes().trim_ascii();
        self.last = bytes.last().copied().unwrap_or(self.last);
        let bytes = &bytes[..bytes.len().min(HASHED - self.taken)];
        self.taken += bytes.len();
        let (words, rest) = bytes.as_chunks();
        words.iter().for_each(|word| self.word(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            self.word(rest.iter().fold(1, |word, &byte| word << 8 | u64::from(byte)));
        }
    }

    fn word(&mut self, word: u64) {
        self.state = (self.state.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn end(self) -> u64 {
        let state = (self.state ^ self.state >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        state ^ state >> 32
    }
}

/// What a page calls itself: its first heading, and the words of its title that hold no digit, as those count pages.
fn name(dom: &Dom, m: &Measures) -> u64 {
    let mut number = Number::default();
    if let Some(title) = (0..dom.len()).find(|&i| dom.tag(i) == Tag::Title) {
        let title = dom.text_of(title);
        let is_word = |word: &&str| !word.bytes().any(|byte| byte.is_ascii_digit());
        title.split_whitespace().take(40).filter(is_word).for_each(|word| number.text(word));
    }
    number.word(1);
    if let Some(heading) = (m.body..dom.end(m.body)).find(|&i| dom.tag(i) == Tag::H1 && m.text[i] > 0) {
        number.text(&dom.text_of(heading));
    }
    number.end()
}

/// The first step of a longer path: parts of a site have templates of their own. 0: the page is in no part.
fn section(url: &Url) -> u32 {
    let mut steps = url.path_segments().into_iter().flatten().filter(|step| !step.is_empty());
    match (steps.next(), steps.next()) {
        (Some(first), Some(_)) => {
            let mut number = Number::default();
            number.text(first);
            (number.end() as u32).max(1)
        }
        _ => 0,
    }
}
