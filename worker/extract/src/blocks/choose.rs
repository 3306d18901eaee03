//! Which blocks of a page are kept, from how likely each is content.
//!
//! The choice is made for the page as a whole: the blocks are kept, likeliest first, that promise the best F measure of
//! the page's words. On a page whose blocks are hard to tell that keeps more of them, on a clear one fewer: a fixed bound
//! is wrong for one of both. Recall counts more than precision ([`RECALL`]), and what the rules have decided is only
//! overruled by a block that is surely one or the other.

use super::super::measure::{Measures, count};
use super::super::tree::{Dom, Tag};
use super::page::Page;
use super::{Block, context, cut, facts, trees};

/// Text below which a page is left to the rules, characters: there a block more or less is the page itself.
const LITTLE_TEXT: u32 = 1500;
/// Blocks below which it is left to them too.
const FEW_BLOCKS: usize = 24;
/// How much more recall counts than precision: the beta of the F measure.
const RECALL: f32 = 1.3;
/// What the rules keep goes only if its probability is below this.
const SURELY_NOT: f32 = 0.5;
/// What the rules leave out comes back only if its probability is above this.
const LIKELY: f32 = 0.25;

/// Adjusts `dropped` to the blocks that are chosen. `stage`: which step of the rules left a node out, 0 for none.
pub fn apply(dom: &Dom, m: &Measures, url: &url::Url, stage: &[u8], dropped: &mut [bool]) {
    if m.total() < LITTLE_TEXT {
        return;
    }
    let Some(blocks) = cut(dom, m).filter(|blocks| blocks.len() >= FEW_BLOCKS) else { return };
    let page = Page::of(dom, m, url);
    let table = facts::of_blocks(dom, m, &blocks, stage, &page);
    let trees = trees::trees();
    if trees.is_empty() {
        return;
    }
    let likely: Vec<f32> = table.values.chunks(table.width).map(|row| trees.probability(row)).collect();
    let words: Vec<f32> = table.values.chunks(table.width).map(|row| row[facts::WORDS].exp() - 1.0).collect();
    let bound = bound(&likely, &words);
    let (most, least) = (bound.min(SURELY_NOT), bound.max(LIKELY));
    let title = title_block(dom, &blocks);
    let mut is_kept = Vec::with_capacity(blocks.len());
    for (n, (block, p)) in blocks.iter().zip(&likely).enumerate() {
        let by_rules = context::stage_of(dom, block, stage) == 0;
        is_kept.push(if by_rules { *p >= most || Some(n) == title } else { *p >= least });
    }
    if is_kept.contains(&true) {
        mark(dom, m, &blocks, &is_kept, stage, dropped);
    }
}

/// The probability down to which blocks are kept.
fn bound(likely: &[f32], words: &[f32]) -> f32 {
    let mut order: Vec<usize> = (0..likely.len()).collect();
    order.sort_by(|a, b| likely[*b].total_cmp(&likely[*a]));
    let square = RECALL * RECALL;
    let all: f32 = likely.iter().zip(words).map(|(p, n)| p * n).sum();
    let (mut found, mut kept, mut best, mut bound) = (0.0, 0.0, 0.0, 1.0);
    for i in order {
        found += likely[i] * words[i];
        kept += words[i];
        let measure = (1.0 + square) * found / (kept + square * all + f32::EPSILON);
        if measure > best {
            best = measure;
            bound = likely[i];
        }
    }
    bound
}

/// The block that is the page's heading, which readers want whatever else is kept.
fn title_block(dom: &Dom, blocks: &[Block]) -> Option<usize> {
    blocks.iter().position(|b| dom.tag(b.holder) == Tag::H1)
}

/// Leaves out what has no kept block below it.
fn mark(dom: &Dom, m: &Measures, blocks: &[Block], is_kept: &[bool], stage: &[u8], dropped: &mut [bool]) {
    let mut kept = vec![false; dom.len()];
    for (block, is_kept) in blocks.iter().zip(is_kept) {
        if !is_kept {
            continue;
        }
        let by_rules = context::stage_of(dom, block, stage) == 0;
        for i in block.first..=block.last {
            // Marks within a kept block stay out.
            if dom.tag(i) == Tag::Text && !m.invisible[i] && (stage[i] == 0 || !by_rules && stage[i] != facts::MARKS) {
                kept[i] = count(dom.text(i)) > 0;
            }
        }
    }
    for i in (m.body + 1..dom.end(m.body)).rev() {
        if kept[i] {
            kept[dom.parent(i)] = true;
        }
    }
    for i in m.body + 1..dom.end(m.body) {
        if m.invisible[i] {
            continue;
        }
        dropped[i] = if m.text[i] > 0 { !kept[i] } else { stage[i] != 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_where_the_page_as_a_whole_is_best() {
        // Clear: the unlikely ones go.
        assert!((bound(&[0.9, 0.95, 0.1, 0.05], &[50.0, 50.0, 50.0, 50.0]) - 0.9).abs() < 1e-6);
        // Hard to tell: all stay rather than half of them.
        assert!((bound(&[0.45, 0.4, 0.35, 0.3], &[50.0, 50.0, 50.0, 50.0]) - 0.3).abs() < 1e-6);
        // Words count, not blocks.
        assert!((bound(&[0.9, 0.4], &[10.0, 500.0]) - 0.4).abs() < 1e-6);
    }
}
