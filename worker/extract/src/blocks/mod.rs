//! Which blocks of text are the content: the last look at a page, after the rules.
//!
//! A block is a run of text without a block boundary inside: a paragraph, an item, a cell, a line of links. `facts` says
//! of each what can be measured, `words` what its words and names hint at, `trees` makes a probability of that, and
//! `choose` decides for the page as a whole. `docs/extraction.md` says how the trees are grown and what they earn.

pub mod choose;
mod context;
pub mod facts;
pub mod page;
mod said;
mod trees;
mod words;

use super::measure::Measures;
use super::tree::{Dom, Tag};

/// Blocks that are judged, of one page; longer pages keep what the rules keep.
pub const MOST_BLOCKS: usize = 20_000;

/// A run of text.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// The innermost block element around it.
    pub holder: usize,
    /// Its first and last text nodes.
    pub first: usize,
    pub last: usize,
    /// Characters without whitespace, and of these inside links.
    pub text: u32,
    pub links: u32,
}

/// Cuts what can be seen of the page into blocks, in document order; `None` for a page with too many.
pub fn cut(dom: &Dom, m: &Measures) -> Option<Vec<Block>> {
    let mut blocks: Vec<Block> = Vec::new();
    // Open block elements, innermost last.
    let mut open: Vec<(usize, usize)> = vec![(m.body, dom.end(m.body))];
    let mut link_end = 0;
    let mut i = m.body + 1;
    let end = dom.end(m.body);
    while i < end {
        if m.invisible[i] {
            i = dom.end(i);
            continue;
        }
        while open.len() > 1 && open.last().is_some_and(|o| o.1 <= i) {
            open.pop();
        }
        let tag = dom.tag(i);
        match tag {
            Tag::Text if m.text[i] > 0 => {
                let holder = open.last().map_or(m.body, |o| o.0);
                let links = if i < link_end { m.text[i] } else { 0 };
                match blocks.last_mut() {
                    Some(block) if block.holder == holder => {
                        block.last = i;
                        block.text += m.text[i];
                        block.links += links;
                    }
                    _ => {
                        if blocks.len() == MOST_BLOCKS {
                            return None;
                        }
                        blocks.push(Block { holder, first: i, last: i, text: m.text[i], links });
                    }
                }
            }
            Tag::A => link_end = link_end.max(dom.end(i)),
            tag if is_boundary(tag) => open.push((i, dom.end(i))),
            _ => {}
        }
        i += 1;
    }
    Some(blocks)
}

/// Whether an element's text is a block of its own.
fn is_boundary(tag: Tag) -> bool {
    tag.is_block() || matches!(tag, Tag::Button | Tag::Label)
}

/// The text of a block, as written.
pub fn text_of(dom: &Dom, m: &Measures, block: &Block) -> String {
    let mut out = String::new();
    let mut i = block.first;
    while i <= block.last {
        if m.invisible[i] {
            i = dom.end(i);
            continue;
        }
        let text = dom.text(i);
        if text.is_empty() && dom.tag(i) == Tag::Br {
            out.push(' ');
        }
        out.push_str(text);
        i += 1;
    }
    out
}

/// How much, where twice as much matters alike at every size.
fn log(value: f32) -> f32 {
    (value + 1.0).ln()
}

/// Whether, as a number.
fn flag(is: bool) -> f32 {
    f32::from(u8::from(is))
}
