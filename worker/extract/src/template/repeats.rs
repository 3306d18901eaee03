//! Leaves out what most pages of the site have in common.
//!
//! Whole elements go, and neighbours together, so that nothing of a sentence, a row or a list is taken out of it. What is
//! repeated by right stays beside something of the page's own: headings, labels, values, code. A page that is nearly all
//! template keeps everything: it is a variant of others, or what the template says is what it is for.

use super::blocks::{Blocks, Role, Runs};
use super::site::Site;
use crate::measure::Measures;
use crate::tree::{Dom, Tag};

/// Characters that go together at least: less is a label.
const LEAST: u32 = 30;
/// The same of links alone.
const LEAST_LINKS: u32 = 8;
/// Of the text, one part in so many must be left, and so many characters.
const LEFT: (u32, u32) = (5, 140);

/// Characters of a node's subtree.
#[derive(Clone, Copy, Default)]
struct Sums {
    /// The page's own.
    own: u32,
    /// Text that most pages have.
    template: u32,
    /// Labels and the like that most pages have.
    labels: u32,
    /// Of the text that most pages have, what is links.
    links: u32,
}

impl Sums {
    fn all(self) -> u32 {
        self.own + self.template + self.labels
    }

    /// Nothing in it is the page's own, and something is to be read.
    fn is_known(self) -> bool {
        self.own == 0 && self.template + self.labels > 0
    }
}

/// Adds to `dropped` what most pages of the site have. Returns how many characters that is.
pub fn leave_out(dom: &Dom, m: &Measures, page: (&Runs, &Blocks), site: &Site, dropped: &mut [bool]) -> u32 {
    let (runs, blocks) = page;
    let Some(template) = site.template(blocks.section) else { return 0 };
    let known: Vec<bool> = runs.list.iter().map(|run| run.role != Role::Own && template.has(run.number)).collect();
    if !known.contains(&true) {
        return 0;
    }
    let sums = sums(dom, m, runs, &known);
    let mut gone = Vec::new();
    let mut i = m.body;
    while i < dom.end(m.body) {
        if dropped[i] || sums[i].own == 0 || sums[i].template == 0 {
            i = dom.end(i);
            continue;
        }
        Group::of_children(dom, i, &sums, dropped, &mut gone);
        i += 1;
    }
    let all = sums[m.body].all();
    let gone_chars: u32 = gone.iter().map(|&i| sums[i].all()).sum();
    let left = all - gone_chars;
    if left < LEFT.1 || left < all / LEFT.0 {
        return 0;
    }
    gone.into_iter().for_each(|i| dropped[i] = true);
    gone_chars
}

fn sums(dom: &Dom, m: &Measures, runs: &Runs, known: &[bool]) -> Vec<Sums> {
    let mut sums = vec![Sums::default(); dom.len()];
    for &(node, run, chars) in &runs.nodes {
        let sum = &mut sums[node as usize];
        match (known[run as usize], runs.list[run as usize].role) {
            (false, _) => sum.own = chars,
            (true, Role::Text) => (sum.template, sum.links) = (chars, m.links[node as usize]),
            (true, _) => sum.labels = chars,
        }
    }
    for i in (m.body + 1..dom.end(m.body)).rev() {
        // A list of which nothing is the page's own.
        if matches!(dom.tag(i), Tag::Ul | Tag::Ol | Tag::Dl | Tag::Menu) && sums[i].is_known() {
            sums[i].template += std::mem::take(&mut sums[i].labels);
        }
        let (sum, parent) = (sums[i], &mut sums[dom.parent(i)]);
        parent.own += sum.own;
        parent.template += sum.template;
        parent.labels += sum.labels;
        parent.links += sum.links;
    }
    sums
}

/// Children in a row of which nothing is the page's own.
#[derive(Default)]
struct Group {
    members: Vec<usize>,
    /// Members up to the last that holds text of the template.
    with_text: usize,
    /// The last member that is a heading alone.
    heading: Option<usize>,
    template: u32,
    links: u32,
    chars: u32,
}

impl Group {
    /// Adds to `gone` those children of an element that go.
    fn of_children(dom: &Dom, parent: usize, sums: &[Sums], dropped: &[bool], gone: &mut Vec<usize>) {
        let mut group = Self::default();
        for child in dom.children(parent).filter(|&child| !dropped[child]) {
            let sum = sums[child];
            if sum.own > 0 {
                // A heading before something of the page's own is that one's.
                std::mem::take(&mut group).end(sums, gone, dom.tag(child).heading_level().is_none());
            } else if sum.is_known() {
                group.add(dom, child, sum);
            }
        }
        group.end(sums, gone, false);
    }

    fn add(&mut self, dom: &Dom, child: usize, sum: Sums) {
        if sum.template == 0 && (child..dom.end(child)).any(|i| dom.tag(i).heading_level().is_some()) {
            self.heading = Some(self.members.len());
        }
        self.members.push(child);
        self.template += sum.template;
        self.links += sum.links;
        self.chars += sum.all();
        if sum.template > 0 {
            self.with_text = self.members.len();
        }
    }

    fn end(self, sums: &[Sums], gone: &mut Vec<usize>, before_own: bool) {
        let is_links = self.links == self.chars && self.chars >= LEAST_LINKS;
        if self.template == 0 || self.chars < LEAST && !is_links {
            return;
        }
        let stays = self.heading.filter(|_| before_own);
        for (place, &member) in self.members.iter().enumerate() {
            if place < self.with_text && Some(place) != stays && sums[member].all() > 0 {
                gone.push(member);
            }
        }
    }
}
