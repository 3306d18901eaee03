//! Where on the page the content is: what stands beside the element that holds it goes, when that is safe.
//!
//! The way from the body down to the element with most of the prose is followed; off that way only what reads like
//! content itself stays. Nothing inside the element is judged here.

use html5ever::local_name;

use super::measure::{Measures, count, is_title};
use super::tree::{Dom, Tag};

/// Share of the page's prose that `main` or `article` must hold to be the content.
const SEMANTIC_SHARE: f32 = 0.5;
/// Share of the page's prose that another element must hold to be the content.
const PLAIN_SHARE: f32 = 0.7;
/// Nothing is the content that holds less than this share of all text that is left, links in full: of a list of links
/// the words above it are most of the prose.
const LEAST_TEXT: f32 = 0.5;
/// Articles that are alike are a list if another has at least this part of the longest one's prose, one in so many.
const FELLOW: u32 = 4;
/// Text beside the content stays if at most this share of it is links, it has this many characters, and this share of
/// the page's prose.
const BESIDE: (f32, u32, f32) = (0.3, 250, 0.04);
/// What DocBook calls the element with the title of a part, beside which the part's text stands.
const TITLES: &[&str] = &["titlepage", "refnamediv"];
/// Parts of a page, and nodes of a part before its first text, that are looked at.
const MOST_PARTS: usize = 64;
const FIRST_TEXT: usize = 32;

/// Whether anything of the text below `roots` is not dropped.
pub fn holds_text(dom: &Dom, dropped: &[bool], roots: &[usize]) -> bool {
    roots.iter().any(|&root| {
        let mut i = root;
        while i < dom.end(root) {
            if dropped[i] {
                i = dom.end(i);
                continue;
            }
            if count(dom.text(i)) > 0 {
                return true;
            }
            i += 1;
        }
        false
    })
}

/// What is left of the page after the filter, per subtree.
struct Kept {
    text: Vec<u32>,
    /// Text with links at a quarter of their length, as links alone are rarely what a page is about.
    prose: Vec<u32>,
    has_h1: Vec<bool>,
    mains: Vec<usize>,
    articles: Vec<usize>,
}

impl Kept {
    fn of(dom: &Dom, m: &Measures, dropped: &[bool]) -> Self {
        let n = dom.len();
        let mut kept = Kept {
            text: vec![0; n],
            prose: vec![0; n],
            has_h1: vec![false; n],
            mains: Vec::new(),
            articles: Vec::new(),
        };
        let mut i = m.body;
        let mut link_end = 0;
        while i < dom.end(m.body) {
            if dropped[i] {
                i = dom.end(i);
                continue;
            }
            match dom.tag(i) {
                Tag::Text => {
                    let c = m.text[i];
                    kept.text[i] = c;
                    kept.prose[i] = if i < link_end { c / 4 } else { c };
                }
                Tag::A => link_end = link_end.max(dom.end(i)),
                Tag::H1 | Tag::H2 | Tag::Div if is_title(dom, i) => kept.has_h1[i] = true,
                Tag::Main => kept.mains.push(i),
                Tag::Article => kept.articles.push(i),
                tag if tag.is_element() && dom.attr(i, &local_name!("role")) == Some("main") => kept.mains.push(i),
                _ => {}
            }
            i += 1;
        }
        for i in (m.body + 1..dom.end(m.body)).rev() {
            let p = dom.parent(i);
            kept.text[p] += kept.text[i];
            kept.prose[p] += kept.prose[i];
            kept.has_h1[p] |= kept.has_h1[i];
        }
        kept
    }

    /// The element that holds the content, or the body.
    fn root(&self, dom: &Dom, body: usize, dropped: &[bool]) -> usize {
        let total = self.prose[body] as f32;
        let largest = |list: &[usize]| {
            list.iter()
                .copied()
                .max_by_key(|&i| self.prose[i])
                .filter(|&i| self.prose[i] as f32 >= SEMANTIC_SHARE * total)
        };
        let mut root = largest(&self.mains).unwrap_or(body);
        // One of several that are alike is one of a list, however much longer.
        let is_one_of_several = |i: usize| {
            let is_like = |&j: &usize| j != i && self.prose[j] * FELLOW >= self.prose[i] && is_alike(dom, i, j);
            self.articles.iter().any(is_like)
        };
        if let Some(i) = largest(&self.articles)
            && i > root
            && i < dom.end(root)
            && !is_one_of_several(i)
        {
            root = i;
        }
        loop {
            let next =
                dom.children(root).filter(|&c| !dropped[c] && dom.tag(c).is_element()).max_by_key(|&c| self.prose[c]);
            match next {
                Some(c)
                    if self.prose[c] as f32 >= PLAIN_SHARE * total
                        && self.text[c] as f32 >= LEAST_TEXT * self.text[body] as f32
                        && can_hold_content(dom.tag(c))
                        && !self.is_part_of_manual(dom, root, c, dropped) =>
                {
                    root = c;
                }
                _ => return root,
            }
        }
    }
}

impl Kept {
    /// Whether `c` is a part of the page of a manual that `root` holds, however much longer it is than the other parts: one
    /// of several sections with headings, or below the title that a generator writes as an element of its own.
    fn is_part_of_manual(&self, dom: &Dom, root: usize, c: usize, dropped: &[bool]) -> bool {
        let is_kept = |s: usize| s != c && !dropped[s] && self.text[s] > 0;
        let siblings = || dom.children(root).take(MOST_PARTS).filter(|&s| is_kept(s));
        let is_title = |s: usize| dom.class(s).split_ascii_whitespace().any(|w| TITLES.contains(&w));
        if siblings().any(is_title) {
            return true;
        }
        let is_named = |s: usize| match dom.tag(s) {
            Tag::Section => dom.attr(s, &local_name!("id")).is_some(),
            _ => !dom.class(s).is_empty(),
        };
        let is_like = |s: usize| dom.tag(s) == dom.tag(c) && dom.class(s) == dom.class(c) && is_named(s);
        is_named(c) && begins_with_heading(dom, c) && siblings().any(|s| is_like(s) && begins_with_heading(dom, s))
    }
}

/// Whether the first text of an element is a heading's.
fn begins_with_heading(dom: &Dom, i: usize) -> bool {
    let first = (i..dom.end(i).min(i + FIRST_TEXT)).find(|&j| count(dom.text(j)) > 0);
    let mut up = first.into_iter().flat_map(|j| dom.ancestors(j)).take_while(|&a| a > i);
    up.any(|a| dom.tag(a).heading_level().is_some())
}

/// Whether two elements are posts of one thread: the same tag, and the same first class.
fn is_alike(dom: &Dom, a: usize, b: usize) -> bool {
    let first = |i: usize| dom.class(i).split_ascii_whitespace().next();
    dom.tag(a) == dom.tag(b) && first(a).is_some() && first(a) == first(b)
}

/// Elements that may be gone into; parts of tables and lists stay with their siblings.
fn can_hold_content(tag: Tag) -> bool {
    matches!(
        tag,
        Tag::Div | Tag::Main | Tag::Section | Tag::Article | Tag::Form | Tag::Center | Tag::Other | Tag::Noscript
    )
}

/// Adds to `dropped` what stands beside the content. In a discussion the posts beside the longest one are content,
/// however short.
pub fn narrow(dom: &Dom, m: &Measures, discussion: bool, dropped: &mut [bool]) {
    let kept = Kept::of(dom, m, dropped);
    let total = kept.prose[m.body] as f32;
    let root = kept.root(dom, m.body, dropped);
    if root == m.body || total == 0.0 {
        return;
    }
    let (most_links, least_text, least_share) = BESIDE;
    let mut below = root;
    for up in dom.ancestors(root) {
        for c in dom.children(up) {
            if c == below || dropped[c] || kept.text[c] == 0 || kept.has_h1[c] {
                continue;
            }
            let (text, prose) = (kept.text[c] as f32, kept.prose[c] as f32);
            let links = (text - prose) / text / 0.75;
            let content = links < most_links
                && (kept.prose[c] >= least_text && prose >= least_share * total
                    || discussion && is_alike(dom, c, below));
            if !content {
                dropped[c] = true;
            }
        }
        below = up;
        if up == m.body {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::guard;
    use super::*;

    fn kept(html: &str) -> String {
        let dom = guard::parse(html).dom;
        let m = Measures::of(&dom, false);
        let mut dropped = m.invisible.clone();
        narrow(&dom, &m, false, &mut dropped);
        m.text_left(&dom, &dropped)
    }

    #[test]
    fn small_text_beside_the_content_goes_and_the_heading_stays() {
        let prose = "Long words about the matter at hand. ".repeat(30);
        let page = format!(
            "<div>strip</div><div><h1>Head</h1></div><div><div>ad</div><main><p>{prose}</p><p>end</p></main></div>"
        );
        let out = kept(&page);
        assert!(out.contains("Head") && out.contains("end") && !out.contains("strip") && !out.contains("ad<"), "{out}");
    }

    #[test]
    fn short_sections_of_a_manual_stay_beside_a_long_one() {
        let prose = "Long words about the matter at hand. ".repeat(30);
        for page in [
            // AsciiDoc
            format!(
                "<div class=sect1><h2>SYNOPSIS</h2><div><pre>git cherry</pre></div></div><div class=sect1><h2>A</h2><div>{prose}</div></div>"
            ),
            // Sphinx
            format!(
                "<section id=a><h2><a></a>Goals</h2><p>git cherry</p></section><section id=b><h2>A</h2><p>{prose}</p></section>"
            ),
            // DocBook, the second with a table for nearly all of its text
            format!(
                "<div class=refnamediv><h2>Name</h2><p>git cherry</p></div><div class=refsect1><h2>A</h2><p>{prose}</p></div>"
            ),
            format!(
                "<div class=titlepage><h2>git cherry</h2></div><p>x</p><div class=table><table><tr><td>{prose}</table></div>"
            ),
        ] {
            let strip = "<div id=top><div>strip</div></div>";
            let out = kept(&format!("{strip}<div id=content>{page}</div>"));
            assert!(out.contains("git cherry") && out.contains("matter") && !out.contains("strip"), "{out}");
        }
        // What has no heading, or another name, is no part.
        for beside in [
            "<div class=ad>git cherry</div>",
            "<div class=post>git cherry</div>",
            "<div class=ad><h2>git cherry</h2></div>",
        ] {
            let out = kept(&format!("<div><div class=post><h2>A</h2><p>{prose}</p></div>{beside}</div>"));
            assert!(!out.contains("git cherry"), "{out}");
        }
    }

    #[test]
    fn like_parts_of_a_page_all_stay() {
        let part = "A section of the page with its own few words to say about something. ".repeat(4);
        let page = format!("<section>1 {part}</section><section>2 {part}</section><section>3 {part}</section>");
        let out = kept(&page);
        assert!(["1 ", "2 ", "3 "].iter().all(|n| out.contains(n)));
    }

    #[test]
    fn one_of_two_articles_that_are_alike_is_not_all_of_the_page() {
        let words = "Long words about the matter at hand. ".repeat(9);
        let out = kept(&format!(
            "<ul><li><article class=goods>Short one of the two: {}</article></li><li><article class=goods>{words}</article></li></ul>",
            "a word or two. ".repeat(9)
        ));
        assert!(out.contains("Short one") && out.contains("matter"), "{out}");
    }

    #[test]
    fn a_list_of_links_stays_below_the_words_about_it() {
        let list: String = (0..20).map(|n| format!("<li><a href=/{n}>A dinner from the oven {n}</a></li>")).collect();
        let words = "What can be made of an evening in the kitchen. ".repeat(9);
        let out = kept(&format!("<div>strip</div><div><div><p>{words}</p></div><ul>{list}</ul></div>"));
        assert!(out.contains("dinner from the oven 19") && out.contains("kitchen"), "{out}");
    }
}
