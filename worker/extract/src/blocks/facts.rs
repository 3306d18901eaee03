//! Facts of each block, as numbers: of its text, of what it stands in, of its place, of its neighbours, of its page.

use std::collections::{HashMap, HashSet};

use super::super::filter;
use super::super::measure::Measures;
use super::super::tree::{Dom, Tag};
use super::context::{self, AROUND, BOXES, Context, HINTS};
use super::page::{self, Page};
use super::said::{self, Own, Said};
use super::words::{NAME_KINDS, TEXT_KINDS};
use super::{Block, flag, log, text_of};

/// Where a row has the logarithm of the block's words.
pub const WORDS: usize = 2;
/// The step of the rules that leaves out marks within a text.
pub const MARKS: u8 = 3;
/// Blocks on each side whose facts count as the neighbourhood.
const NEAR: usize = 4;
/// Kinds of words that are counted over a box: calls, law, accounts, posts, trade.
const BOX_KINDS: [usize; 5] = [1, 2, 3, 5, 7];

/// Sums over a subtree.
#[derive(Clone, Copy, Default)]
struct Sum {
    blocks: f32,
    words: f32,
    function: f32,
    long: f32,
    kept: f32,
    kinds: [f32; BOX_KINDS.len()],
}

impl Sum {
    fn add(&mut self, other: &Sum) {
        self.blocks += other.blocks;
        self.words += other.words;
        self.function += other.function;
        self.long += other.long;
        self.kept += other.kept;
        for (mine, others) in self.kinds.iter_mut().zip(&other.kinds) {
            *mine += others;
        }
    }
}

/// All facts of all blocks, a row each.
pub struct Table {
    pub width: usize,
    pub values: Vec<f32>,
}

/// Names of the facts, in their order.
pub fn names() -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut add = |names: &str| out.extend(names.split_ascii_whitespace().map(str::to_owned));
    let numbered = |name: &str, from: usize, to: usize| (from..to).map(|k| format!("{name}{k} ")).collect::<String>();
    add("chars density words word_length ends commas upper digits symbols links one_link outward price");
    add(&numbered("t", 0, TEXT_KINDS));
    add("is_p is_li is_cell is_div is_head is_pre is_dl is_caption");
    add(&numbered("h", 0, HINTS));
    add(&numbered("n", 0, NAME_KINDS));
    add(&AROUND.map(|(name, _)| format!("in_{name} ")).concat());
    add("depth stage group_count group_share group_place group_text inner_count inner_share inner_place itemprop");
    for b in 0..BOXES.len() {
        add(&["share", "density", "function", "length", "long", "kept", "first"]
            .map(|n| format!("box{b}_{n} "))
            .concat());
        add(&BOX_KINDS.map(|k| format!("box{b}_t{k} ")).concat());
    }
    add("place place_kept from_h1 from_first from_last inside repeats is_repeat in_title in_described");
    add("head_near head_level head_aside head_own");
    add(&numbered("head_t", 1, TEXT_KINDS));
    for side in ["before0", "before1", "after0", "after1"] {
        add(&["chars", "density", "function", "heading"].map(|f| format!("{side}_{f} ")).concat());
    }
    add("near_density near_chars near_function near_kept");
    add(&page::NAMES.join(" "));
    out
}

/// The facts of `blocks`. `stage`: which step of the rules left a node out, 0 for none.
pub fn of_blocks(dom: &Dom, m: &Measures, blocks: &[Block], stage: &[u8], page: &Page) -> Table {
    let look = Look::of(dom, m, blocks, stage, page);
    let mut values = Vec::with_capacity(blocks.len() * 256);
    let mut seen = Seen::default();
    for n in 0..blocks.len() {
        look.own(n, &mut values);
        look.around(n, &mut values);
        look.place(n, &mut seen, &mut values);
        look.neighbours(n, &mut values);
        values.extend(&look.page);
    }
    let width = values.len().checked_div(blocks.len()).unwrap_or_default();
    Table { width, values }
}

/// All that rows are made of.
struct Look<'a> {
    dom: &'a Dom,
    m: &'a Measures,
    blocks: &'a [Block],
    total: f32,
    saids: Vec<Said>,
    contexts: Vec<Context>,
    owns: Vec<Own>,
    /// By node.
    sums: Vec<Sum>,
    /// How often a text stands on the page.
    repeats: HashMap<u64, f32>,
    places: Places,
    page: Vec<f32>,
}

/// What was seen of the page up to a block.
#[derive(Default)]
struct Seen {
    texts: HashSet<u64>,
    /// Characters, and of these those that the rules keep.
    text: f32,
    kept: f32,
    head: Head,
}

impl<'a> Look<'a> {
    fn of(dom: &'a Dom, m: &'a Measures, blocks: &'a [Block], stage: &[u8], page: &Page) -> Self {
        let saids: Vec<Said> = blocks.iter().map(|b| said::read(dom, b, &text_of(dom, m, b), page)).collect();
        let contexts = context::of_blocks(dom, m, blocks, stage);
        let mut owns: Vec<Own> = saids.iter().map(|s| s.own).collect();
        for (own, context) in owns.iter_mut().zip(&contexts) {
            own.heading = context.heading;
        }
        let mut repeats: HashMap<u64, f32> = HashMap::new();
        for said in &saids {
            *repeats.entry(said.hash).or_insert(0.0) += 1.0;
        }
        let mut facts = Vec::new();
        page.facts.push_to(&mut facts);
        let places = Places::of(&owns, &contexts);
        let sums = sums(dom, m, blocks, &saids, &owns, &contexts);
        let total = m.total().max(1) as f32;
        Self { dom, m, blocks, total, saids, contexts, owns, sums, repeats, places, page: facts }
    }

    /// What the block itself is.
    fn own(&self, n: usize, values: &mut Vec<f32>) {
        let (said, context) = (&self.saids[n], &self.contexts[n]);
        values.extend(said.values);
        values.extend(said.kinds);
        let tag = self.dom.tag(self.blocks[n].holder);
        values.extend([
            flag(tag == Tag::P),
            flag(tag == Tag::Li),
            flag(matches!(tag, Tag::Td | Tag::Th)),
            flag(tag == Tag::Div),
            context.heading,
            flag(tag == Tag::Pre),
            flag(matches!(tag, Tag::Dt | Tag::Dd)),
            flag(matches!(tag, Tag::Figcaption | Tag::Caption)),
        ]);
    }

    /// What it stands in.
    fn around(&self, n: usize, values: &mut Vec<f32>) {
        let context = &self.contexts[n];
        values.extend(context.hints);
        values.extend(context.names);
        values.extend(context.around);
        values.extend([context.depth, f32::from(context.stage)]);
        values.extend(context.group);
        values.extend(context.inner);
        values.push(f32::from(context.described));
        for b in context.boxes {
            let sum = self.sums[b];
            let text = self.m.text[b].max(1) as f32;
            values.extend([
                text / self.total,
                self.m.link_density(b),
                sum.function / sum.words.max(1.0),
                log(text / sum.blocks.max(1.0)),
                sum.long / text,
                sum.kept / text,
                flag(self.blocks[n].first < b + 12),
            ]);
            values.extend(sum.kinds.map(|kind| kind / sum.words.max(1.0)));
        }
    }

    /// Where on the page it stands, and under which heading.
    fn place(&self, n: usize, seen: &mut Seen, values: &mut Vec<f32>) {
        let (said, context, places) = (&self.saids[n], &self.contexts[n], &self.places);
        if context.heading > 0.0 {
            seen.head = Head::of(n, context.heading, said.bits, &text_of(self.dom, self.m, &self.blocks[n]));
        }
        let from = |place: f32| ((seen.text - place) / self.total).clamp(-1.0, 1.0);
        values.extend([
            seen.text / self.total,
            seen.kept / places.kept.max(1.0),
            from(places.h1),
            from(places.first),
            from(places.last),
            flag(seen.text >= places.first && seen.text <= places.last),
            log(self.repeats.get(&said.hash).map_or(0.0, |times| times - 1.0)),
            flag(!seen.texts.insert(said.hash)),
            said.in_title,
            said.in_described,
            log(n.saturating_sub(seen.head.at) as f32),
            seen.head.level,
            seen.head.aside,
            flag(seen.head.at == n && seen.head.level > 0.0),
        ]);
        values.extend((1..TEXT_KINDS).map(|k| flag(seen.head.bits & 1 << k != 0)));
        seen.text += said.own.text;
        seen.kept += if context.stage == 0 { said.own.text } else { 0.0 };
    }

    /// What stands before and after it.
    fn neighbours(&self, n: usize, values: &mut Vec<f32>) {
        for step in [-1isize, -2, 1, 2] {
            let own = n.checked_add_signed(step).and_then(|k| self.owns.get(k)).copied().unwrap_or_default();
            values.extend([log(own.text), own.density, own.function / own.words.max(1.0), own.heading]);
        }
        let near = n.saturating_sub(NEAR)..(n + NEAR + 1).min(self.owns.len());
        let (mut text, mut links, mut function, mut words, mut kept) = (0.0, 0.0, 0.0, 0.0, 0.0);
        let wide = near.len() as f32;
        for k in near {
            let own = self.owns[k];
            text += own.text;
            links += own.text * own.density;
            function += own.function;
            words += own.words;
            kept += if self.contexts[k].stage == 0 { own.text } else { 0.0 };
        }
        let text = f32::max(text, 1.0);
        values.extend([links / text, log(text / wide), function / f32::max(words, 1.0), kept / text]);
    }
}

/// Sums of the blocks below each node.
fn sums(dom: &Dom, m: &Measures, blocks: &[Block], saids: &[Said], owns: &[Own], contexts: &[Context]) -> Vec<Sum> {
    let mut sums = vec![Sum::default(); dom.len()];
    for (n, (block, own)) in blocks.iter().zip(owns).enumerate() {
        sums[block.holder].add(&Sum {
            blocks: 1.0,
            words: own.words,
            function: own.function,
            long: if own.text > 120.0 && own.density < 0.3 { own.text } else { 0.0 },
            kept: if contexts[n].stage == 0 { own.text } else { 0.0 },
            kinds: BOX_KINDS.map(|kind| saids[n].kinds[kind] * own.words),
        });
    }
    for i in (m.body + 1..dom.end(m.body)).rev() {
        let sum = sums[i];
        if sum.blocks > 0.0 {
            sums[dom.parent(i)].add(&sum);
        }
    }
    sums
}

/// The heading in effect.
#[derive(Default)]
struct Head {
    at: usize,
    level: f32,
    aside: f32,
    bits: u32,
}

impl Head {
    fn of(at: usize, level: f32, bits: u32, text: &str) -> Self {
        let low = text.trim().to_lowercase();
        let aside = flag(filter::ASIDE_HEADINGS.iter().any(|w| low.starts_with(w)));
        Head { at, level, aside, bits }
    }
}

/// Places in the page's text, in characters.
struct Places {
    h1: f32,
    first: f32,
    last: f32,
    kept: f32,
}

impl Places {
    fn of(owns: &[Own], contexts: &[Context]) -> Self {
        let mut places = Places { h1: -1.0, first: -1.0, last: 0.0, kept: 0.0 };
        let mut before = 0.0;
        for (own, context) in owns.iter().zip(contexts) {
            if own.heading == 1.0 && places.h1 < 0.0 {
                places.h1 = before;
            }
            if context.stage == 0 {
                places.kept += own.text;
                if own.text > 120.0 && own.density < 0.3 {
                    if places.first < 0.0 {
                        places.first = before;
                    }
                    places.last = before;
                }
            }
            before += own.text;
        }
        places.h1 = places.h1.max(0.0);
        places.first = places.first.max(0.0);
        places
    }
}
