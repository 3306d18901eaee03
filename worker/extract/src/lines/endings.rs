//! What stands after the end of an article: its author, its tags, other articles of the site, and whatever follows those.
//!
//! It is told by the heading, or the short line, that it begins with, near the end of a page that is mostly paragraphs. Elements
//! that such a heading stands over have gone before if they are lists of links; here are those with texts of their own,
//! and those that the page does not put into an element.

use super::{Line, Lines, Place};
use crate::measure::Measures;
use crate::tree::{Dom, Tag};

/// What stands after the end is at most this part of the page, one in so many.
const PART: u32 = 5;
/// Characters of a paragraph of an article, and the part of a page, one in so many, that they are.
const PARAGRAPH: u32 = 80;
const PARAGRAPHS: u32 = 2;
/// Characters of a heading, and of a line that says the same without being one.
const HEADING: u32 = 80;
const LABEL: u32 = 40;

/// What headings begin with that stand over something else than the article. Lower case.
const HEADINGS: &[&str] = &[
    "about the author",
    "add a comment",
    "continue reading",
    "explore more",
    "explore other",
    "explore the latest",
    "follow us",
    "get started today",
    "join our",
    "keep reading",
    "latest article",
    "latest news",
    "latest post",
    "learn more in our",
    "leave a comment",
    "leave a reply",
    "more articles",
    "more from",
    "more news",
    "more posts",
    "more stories",
    "next article",
    "other articles",
    "other posts",
    "popular article",
    "popular post",
    "post a comment",
    "read next",
    "recent article",
    "recent post",
    "recommended article",
    "recommended for you",
    "recommended post",
    "recommended reading",
    "related article",
    "related blog",
    "related content",
    "related guide",
    "related link",
    "related news",
    "related post",
    "related reading",
    "related resource",
    "related stor",
    "related topic",
    "share this",
    "sign up for",
    "similar article",
    "similar post",
    "still have questions",
    "subscribe to",
    "thanks for reading",
    "what to read next",
    "written by",
    "you may also",
    "you might also",
    "ähnliche artikel",
    "ähnliche beiträge",
    "das könnte",
    "mehr zum thema",
    "über den autor",
    "verwandte artikel",
    "verwandte beiträge",
    "weitere artikel",
    "weitere beiträge",
    "à lire aussi",
    "articles liés",
    "articles similaires",
    "sur le même sujet",
    "vous aimerez",
    "artículos relacionados",
    "entradas relacionadas",
    "también te puede",
    "te puede interesar",
    "articoli correlati",
    "leggi anche",
    "potrebbe interessarti",
    "artigos relacionados",
    "leia também",
    "posts relacionados",
    "gerelateerde",
    "lees ook",
    "czytaj także",
    "podobne artykuły",
    "zobacz też",
    "похожие статьи",
    "читайте также",
    "関連記事",
    "相关文章",
    "相关阅读",
    "推荐阅读",
];

/// What short lines begin with that are no headings. Fewer, as such lines stand within articles, too.
const LABELS: &[&str] = &[
    "about the author",
    "filed under",
    "posted in",
    "recent posts",
    "related articles",
    "related posts",
    "tagged",
    "tags:",
    "schlagwörter:",
    "étiquettes:",
    "etiquetas:",
    "関連記事",
    "相关文章",
];

/// Marks the lines after the end of an article, and adds to `dropped` the pictures among them.
pub fn find(dom: &Dom, m: &Measures, lines: &Lines, gone: &mut [bool], dropped: &mut [bool]) {
    let total: u32 = lines.list.iter().map(|line| line.chars).sum();
    let is_paragraph = |line: &&Line| line.chars > PARAGRAPH && dom.tag(line.block as usize) == Tag::P;
    let paragraphs: u32 = lines.list.iter().filter(is_paragraph).map(|line| line.chars).sum();
    if paragraphs * PARAGRAPHS < total {
        return;
    }
    let (mut end, mut chars, mut highest) = (None, 0, u8::MAX);
    let mut text = String::new();
    for (at, line) in lines.list.iter().enumerate().rev() {
        chars += line.chars;
        if chars > total / PART {
            break;
        }
        let level = match line.place {
            Place::Heading(level) => level,
            Place::Text => u8::MAX,
            _ => continue,
        };
        if begins_ending(dom, lines, line, &mut text) {
            // A heading above it that follows is one of the article's: this stands within it.
            if level <= highest {
                end = Some(at);
            }
            highest = u8::MAX;
        } else {
            highest = highest.min(level);
        }
    }
    let Some(end) = end else { return };
    gone[end..].fill(true);
    let first = lines.nodes[lines.list[end].nodes.0 as usize] as usize;
    for (i, dropped) in dropped.iter_mut().enumerate().take(dom.end(m.body)).skip(first) {
        *dropped |= matches!(dom.tag(i), Tag::Img | Tag::Picture);
    }
}

fn begins_ending(dom: &Dom, lines: &Lines, line: &Line, text: &mut String) -> bool {
    let (most, words) = match line.place {
        Place::Heading(_) => (HEADING, HEADINGS),
        _ => (LABEL, LABELS),
    };
    if line.chars > most {
        return false;
    }
    text.clear();
    for &node in lines.nodes(line) {
        text.extend(dom.text(node as usize).chars().flat_map(char::to_lowercase));
    }
    let said = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    words.iter().any(|word| said.starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{left, left_of_discussion};

    fn article(end: &str) -> String {
        let text = "<p>The kettle boils a litre in four minutes and keeps it warm for an hour on its own plate, which is \
            more than others do.</p>";
        format!("<h1>Kettles</h1>{}<h2>To end</h2>{text}{end}", text.repeat(8))
    }

    #[test]
    fn what_follows_the_end_of_an_article_goes() {
        for end in [
            "<h3>Related posts</h3><h4>Pots</h4><p>GONE Pots hold what kettles boil.</p>",
            "<div><h3>» More from Ada</h3><div><p>GONE</p></div></div><p>GONE too</p>",
            "<p>Tags: tea, GONE</p>",
            "<h2>関連記事</h2><p>GONE</p>",
            "<h2>About the author</h2><p>GONE</p><h2>Related articles</h2><p>GONE</p>",
        ] {
            let out = left(&article(end));
            assert!(!out.contains("GONE") && out.ends_with("do."), "{out}");
        }
    }

    #[test]
    fn what_is_the_articles_own_stays() {
        for end in [
            "<h3>Related posts</h3><p>KEPT</p><h2>Sources</h2><p>KEPT</p>",
            "<h3>Related to steam</h3><p>KEPT</p>",
            "<p>Related articles of law say the same of what is KEPT for long.</p>",
            "<p>Also read: Pots</p><p>KEPT</p>",
        ] {
            assert!(left(&article(end)).contains("KEPT"), "{end}");
        }
        let long = format!("<h3>Related posts</h3>{}", "<p>KEPT. Pots hold what kettles boil, and more.</p>".repeat(9));
        assert!(left(&article(&long)).contains("KEPT"), "too much of the page");
        let end = "<h3>Related posts</h3><p>KEPT</p>";
        assert!(left(&format!("<ul>{}</ul>{end}", "<li>A pot of iron</li>".repeat(20))).contains("KEPT"), "no article");
        assert!(left_of_discussion(&article(end)).contains("KEPT"), "no article but a discussion");
    }
}
