//! What each block stands in: the boxes around it, what their names hint at, how much of the page they hold.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use html5ever::local_name;

use super::super::measure::Measures;
use super::super::tokens::{Cache, Hints};
use super::super::tree::{Dom, Tag};
use super::words::{NAME_KINDS, Names};
use super::{Block, log};

/// Hints of names that the filter knows.
pub const HINTS: usize = 21;

/// What stands for "nowhere around".
const NONE: f32 = 2.0;

/// Elements that a block may stand in.
pub const AROUND: [(&str, &[Tag]); 16] = [
    ("nav", &[Tag::Nav, Tag::Search, Tag::Menu]),
    ("header", &[Tag::Header]),
    ("footer", &[Tag::Footer]),
    ("aside", &[Tag::Aside]),
    ("main", &[Tag::Main]),
    ("article", &[Tag::Article]),
    ("section", &[Tag::Section]),
    ("form", &[Tag::Form, Tag::Fieldset]),
    ("table", &[Tag::Table]),
    ("list", &[Tag::Ul, Tag::Ol, Tag::Dl]),
    ("button", &[Tag::Button, Tag::Label]),
    ("figure", &[Tag::Figure]),
    ("details", &[Tag::Details, Tag::Dialog]),
    ("quote", &[Tag::Blockquote]),
    ("link", &[Tag::A]),
    ("noscript", &[Tag::Noscript]),
];

/// Boxes around a block, by the largest part of the page's text that they hold.
pub const BOXES: [f32; 3] = [0.4, 0.12, 0.03];

/// What is known of everything inside an element.
#[derive(Clone)]
pub struct Context {
    pub end: usize,
    pub hints: [f32; HINTS],
    pub names: [f32; NAME_KINDS],
    pub around: [f32; AROUND.len()],
    pub depth: f32,
    pub heading: f32,
    pub stage: u8,
    pub boxes: [usize; BOXES.len()],
    /// The largest group of like siblings that an element around belongs to: their number, text, place among them.
    pub group: [f32; 4],
    /// The innermost one.
    pub inner: [f32; 3],
    pub described: u8,
}

impl Context {
    fn of_body(dom: &Dom, m: &Measures, stage: &[u8]) -> Self {
        Self {
            end: dom.end(m.body),
            hints: [NONE; HINTS],
            names: [NONE; NAME_KINDS],
            around: [NONE; AROUND.len()],
            depth: 0.0,
            heading: 0.0,
            stage: stage[m.body],
            boxes: [m.body; BOXES.len()],
            group: [0.0; 4],
            inner: [0.0; 3],
            described: 0,
        }
    }
}

/// Which step of the rules left a block out; 0 if some of it is kept.
pub fn stage_of(dom: &Dom, block: &Block, stage: &[u8]) -> u8 {
    (block.first..=block.last)
        .filter(|&i| dom.tag(i) == Tag::Text && !dom.text(i).trim().is_empty())
        .map(|i| stage[i])
        .min()
        .unwrap_or(0)
}

/// Like siblings: elements of one parent with the same tag and first class.
struct Groups {
    /// Their number and text, by parent and likeness.
    sums: HashMap<(usize, u64), (f32, f32)>,
    /// The likeness of an element and its place among those alike.
    places: HashMap<usize, (u64, f32)>,
}

impl Groups {
    fn of(dom: &Dom, m: &Measures) -> Self {
        let mut groups = Self { sums: HashMap::new(), places: HashMap::new() };
        for i in m.body + 1..dom.end(m.body) {
            if m.text[i] == 0 || !dom.tag(i).is_element() {
                continue;
            }
            let mut hasher = DefaultHasher::new();
            (dom.tag(i) as u8).hash(&mut hasher);
            dom.class(i).split_ascii_whitespace().next().unwrap_or("").hash(&mut hasher);
            let likeness = hasher.finish();
            let sum = groups.sums.entry((dom.parent(i), likeness)).or_default();
            sum.0 += 1.0;
            sum.1 += m.text[i] as f32;
            groups.places.insert(i, (likeness, sum.0));
        }
        groups
    }

    /// Number and text of the group of `i`, and its place there.
    fn find(&self, dom: &Dom, i: usize) -> Option<(f32, f32, f32)> {
        let (likeness, place) = self.places.get(&i)?;
        let (count, text) = self.sums.get(&(dom.parent(i), *likeness))?;
        Some((*count, *text, *place))
    }
}

/// What each block stands in.
pub fn of_blocks(dom: &Dom, m: &Measures, blocks: &[Block], stage: &[u8]) -> Vec<Context> {
    let total = m.total().max(1) as f32;
    let groups = Groups::of(dom, m);
    let mut hints = Cache::default();
    let mut names = Names::default();
    let root = Context::of_body(dom, m, stage);
    let mut open = vec![root];
    let mut out = Vec::with_capacity(blocks.len());
    let mut next = 0;
    let mut i = m.body + 1;
    while i < dom.end(m.body) && next < blocks.len() {
        if m.invisible[i] {
            i = dom.end(i);
            continue;
        }
        while open.len() > 1 && open.last().is_some_and(|c| c.end <= i) {
            open.pop();
        }
        let Some(top) = open.last() else { break };
        if i == blocks[next].first {
            let mut context = top.clone();
            context.stage = stage_of(dom, &blocks[next], stage);
            out.push(context);
            next += 1;
        }
        if dom.tag(i).is_element() && m.text[i] > 0 {
            let mut c = top.clone();
            c.end = dom.end(i);
            enter(dom, m, i, total, &mut c, hints_of(dom, i, &mut hints), names_of(dom, i, &mut names));
            if let Some((count, text, place)) = groups.find(dom, i).filter(|group| group.0 >= 3.0) {
                c.inner = [log(count), text / total, place / count];
                if text / total > c.group[1] * 0.7 || c.group[0] == 0.0 {
                    c.group = [log(count), text / total, place / count, log(text / count)];
                }
            }
            open.push(c);
        }
        i += 1;
    }
    // Blocks in elements without text of their own cannot be; still, each has a context.
    while out.len() < blocks.len() {
        out.push(open[0].clone());
    }
    out
}

fn hints_of<'a>(dom: &'a Dom, i: usize, cache: &mut Cache<'a>) -> Hints {
    let mut hints = Hints::default();
    for value in [dom.class(i), dom.attr(i, &local_name!("id")).unwrap_or("")] {
        if !value.is_empty() {
            hints = hints.or(cache.of(value));
        }
    }
    hints
}

fn names_of<'a>(dom: &'a Dom, i: usize, names: &mut Names<'a>) -> u32 {
    let mut kinds = 0;
    for value in [dom.class(i), dom.attr(i, &local_name!("id")).unwrap_or("")] {
        if !value.is_empty() {
            kinds |= names.of(value);
        }
    }
    kinds
}

/// Goes into element `i`.
fn enter(dom: &Dom, m: &Measures, i: usize, total: f32, c: &mut Context, hints: Hints, names: u32) {
    let share = m.text[i] as f32 / total;
    let tag = dom.tag(i);
    if !hints.is_none() {
        for (k, value) in c.hints.iter_mut().enumerate() {
            if hints.has(k) {
                *value = value.min(share);
            }
        }
    }
    if names != 0 {
        for (k, value) in c.names.iter_mut().enumerate() {
            if names & 1 << k != 0 {
                *value = value.min(share);
            }
        }
    }
    for (k, (_, tags)) in AROUND.iter().enumerate() {
        if tags.contains(&tag) {
            c.around[k] = share;
        }
    }
    match dom.attr(i, &local_name!("role")) {
        Some("navigation" | "menu" | "search") => c.around[0] = share,
        Some("banner") => c.around[1] = share,
        Some("contentinfo") => c.around[2] = share,
        Some("complementary") => c.around[3] = share,
        Some("main") => c.around[4] = share,
        Some("dialog" | "alertdialog") => c.around[12] = share,
        _ => {}
    }
    if let Some(level) = tag.heading_level() {
        c.heading = f32::from(level);
    }
    if tag.is_block() {
        c.depth += 1.0;
    }
    for (b, most) in BOXES.iter().enumerate() {
        // The outermost element below the bound; before there is one, the last above it.
        let here = m.text[c.boxes[b]] as f32 / total;
        if here >= *most {
            c.boxes[b] = i;
        }
    }
    if let Some(property) = dom.attr_named(i, "itemprop") {
        c.described = match property {
            "articleBody" | "text" => 1,
            "description" => 2,
            "name" | "headline" => 3,
            "offers" | "price" => 4,
            "review" | "reviews" | "aggregateRating" | "comment" => 5,
            "author" | "datePublished" => 6,
            _ => c.described,
        };
    }
}
