//! The lines that are left of a page, and the rules that judge a line by what all of it says.
//!
//! A line is text without the boundary of a block in it: a paragraph, a list item, what stands beside a list in an item.
//! They are gathered once, in one walk, and each rule goes through the list of them.
//!
//! ```text
//! twice     lines that stand on the page before, at another depth
//! endings   lines after the end of an article
//! headings  headings said twice in a row, the site's name above the title
//! labels    lines that are the label of a control
//! posts     in discussions, what a forum writes at each post
//! quotes    in discussions, lines of quotes of what stands above
//! ```

mod endings;
mod headings;
mod labels;
mod posts;
mod quotes;
mod twice;

use super::digest;
use super::measure::Measures;
use super::tree::{Dom, Tag};

/// Nodes of a line that are read for what it says.
const MOST_NODES: usize = 64;

/// One line.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Its text nodes, as a range of [`Lines::nodes`].
    nodes: (u32, u32),
    /// The innermost block that it stands in.
    block: u32,
    /// Characters.
    chars: u32,
    /// What it stands in.
    place: Place,
}

/// What a line stands in, as far as rules ask for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Nothing of the below.
    Text,
    /// A heading, of a level from 1 on.
    Heading(u8),
    /// A cell or a term: labels and values, which recur by right.
    Cell,
    /// A quotation.
    Quote,
    /// Code.
    Code,
}

/// The lines that are left of a page, in order.
struct Lines {
    list: Vec<Line>,
    /// Text nodes of all lines.
    nodes: Vec<u32>,
}

/// Adds to `dropped` the lines that are not content.
pub fn leave_out(dom: &Dom, m: &Measures, discussion: bool, dropped: &mut [bool]) {
    let lines = Lines::of(dom, m, dropped);
    let mut gone = vec![false; lines.list.len()];
    labels::find(dom, discussion, &lines, &mut gone);
    if discussion {
        posts::find(dom, &lines, &mut gone);
        quotes::find(dom, m, &lines, &mut gone);
    } else {
        endings::find(dom, m, &lines, &mut gone, dropped);
    }
    headings::find(dom, &lines, &mut gone);
    twice::find(dom, m, discussion, &lines, &mut gone);
    if gone.contains(&true) {
        lines.drop(dom, m, &gone, dropped);
    }
}

impl Lines {
    fn of(dom: &Dom, m: &Measures, dropped: &[bool]) -> Self {
        let mut lines = Lines { list: Vec::new(), nodes: Vec::new() };
        // The ends of the blocks that are open, with each the block.
        let mut open: Vec<(u32, u32)> = vec![(dom.end(m.body) as u32, m.body as u32)];
        // The ends of the innermost elements that give a line its place.
        let (mut heading, mut cell, mut quote, mut code) = (0, 0, 0, 0);
        let mut level = 0;
        let mut is_open = false;
        let mut i = m.body + 1;
        while i < dom.end(m.body) {
            while open.len() > 1 && open.last().is_some_and(|&(end, _)| i >= end as usize) {
                open.pop();
                is_open = false;
            }
            if dropped[i] {
                i = dom.end(i);
                continue;
            }
            match dom.tag(i) {
                Tag::Text if m.text[i] > 0 => {
                    let at = lines.nodes.len() as u32;
                    lines.nodes.push(i as u32);
                    if let Some(line) = lines.list.last_mut().filter(|_| is_open) {
                        line.nodes.1 = at + 1;
                        line.chars += m.text[i];
                    } else {
                        let place = match i {
                            i if i < code => Place::Code,
                            i if i < quote => Place::Quote,
                            i if i < cell => Place::Cell,
                            i if i < heading => Place::Heading(level),
                            _ => Place::Text,
                        };
                        let block = open.last().map_or(m.body as u32, |&(_, block)| block);
                        lines.list.push(Line { nodes: (at, at + 1), block, chars: m.text[i], place });
                        is_open = true;
                    }
                }
                tag if tag.is_block() || tag == Tag::Textarea => {
                    is_open = false;
                    let end = dom.end(i);
                    open.push((end as u32, i as u32));
                    let place = match tag {
                        Tag::Pre | Tag::Textarea => &mut code,
                        Tag::Blockquote => &mut quote,
                        Tag::Td | Tag::Th | Tag::Dt => &mut cell,
                        _ => match tag.heading_level() {
                            Some(found) => {
                                level = found;
                                &mut heading
                            }
                            None => {
                                i += 1;
                                continue;
                            }
                        },
                    };
                    *place = end.max(*place);
                }
                Tag::Code => code = code.max(dom.end(i)),
                _ => {}
            }
            i += 1;
        }
        lines
    }

    /// The text nodes of a line.
    fn nodes(&self, line: &Line) -> &[u32] {
        &self.nodes[line.nodes.0 as usize..line.nodes.1 as usize]
    }

    /// Of the text of a line, without its spaces.
    fn digest(&self, dom: &Dom, line: &Line) -> u64 {
        let nodes = self.nodes(line).iter();
        nodes.fold(digest::EMPTY, |digest, &node| digest::add_words(digest, dom.text(node as usize)))
    }

    /// Adds to `dropped` the text of lines, and the elements that they leave empty.
    fn drop(&self, dom: &Dom, m: &Measures, gone: &[bool], dropped: &mut [bool]) {
        let mut left = vec![false; dom.len()];
        for (line, _) in self.list.iter().zip(gone).filter(|(_, gone)| !**gone) {
            self.nodes(line).iter().for_each(|&node| left[node as usize] = true);
        }
        for i in (m.body + 1..dom.end(m.body)).rev() {
            let shows = left[i] || !dropped[i] && matches!(dom.tag(i), Tag::Img | Tag::Picture | Tag::Math);
            if shows {
                left[i] = true;
                left[dom.parent(i)] = true;
            }
        }
        for (line, _) in self.list.iter().zip(gone).filter(|(_, gone)| **gone) {
            for &node in self.nodes(line) {
                dropped[node as usize] = true;
                for up in dom.ancestors(node as usize) {
                    if left[up] || dropped[up] || up <= m.body {
                        break;
                    }
                    dropped[up] = true;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::guard;
    use super::*;

    /// The text that is left of a page, trimmed.
    pub fn left(html: &str) -> String {
        left_of(html, false)
    }

    pub fn left_of_discussion(html: &str) -> String {
        left_of(html, true)
    }

    fn left_of(html: &str, discussion: bool) -> String {
        let dom = guard::parse(html).dom;
        let m = Measures::of(&dom, false);
        let mut dropped = m.invisible.clone();
        leave_out(&dom, &m, discussion, &mut dropped);
        m.text_left(&dom, &dropped).trim().to_owned()
    }

    fn lines(html: &str) -> Vec<(String, Place)> {
        let dom = guard::parse(html).dom;
        let m = Measures::of(&dom, false);
        let lines = Lines::of(&dom, &m, &m.invisible);
        let text = |line: &Line| lines.nodes(line).iter().map(|&node| dom.text(node as usize)).collect();
        lines.list.iter().map(|line| (text(line), line.place)).collect()
    }

    #[test]
    fn blocks_end_lines_and_what_runs_in_them_does_not() {
        let html = "<h1>A</h1><div>b <i>c</i><ul><li>d<li>e</ul>f</div><pre>g</pre><table><tr><td><p>h</table>";
        let found = lines(html);
        let texts: Vec<&str> = found.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(texts, ["A", "b c", "d", "e", "f", "g", "h"]);
        assert_eq!(found[0].1, Place::Heading(1));
        assert_eq!((found[1].1, found[5].1, found[6].1), (Place::Text, Place::Code, Place::Cell));
    }

    #[test]
    fn elements_that_are_left_empty_go_and_pictures_stay() {
        let dom = guard::parse("<ul><li><a>Read more</a></li><li><img src=a><b>Read more</b></li></ul>").dom;
        let m = Measures::of(&dom, false);
        let mut dropped = m.invisible.clone();
        leave_out(&dom, &m, false, &mut dropped);
        let kept = |tag: Tag| (0..dom.len()).filter(|&i| dom.tag(i) == tag && !dropped[i]).count();
        assert_eq!((kept(Tag::Li), kept(Tag::Img), kept(Tag::A), kept(Tag::B)), (1, 1, 0, 0));
    }
}
