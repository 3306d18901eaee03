//! Rows of cards on the page of an article: other articles. A card has a link and a picture or a heading; they stand after
//! most of the paragraphs.

use html5ever::local_name;

use super::measure::Measures;
use super::tree::{Dom, Tag};

/// Cards in a row.
const CARDS: std::ops::RangeInclusive<usize> = 3..=24;
/// Characters of one card.
const CARD: std::ops::RangeInclusive<u32> = 8..=600;
/// Nodes of a card that are looked at.
const MOST_NODES: usize = 512;
/// Characters of a paragraph of an article, and the part of them that stands before such a row, 0 to 1.
const PARAGRAPH: u32 = 80;
const BEFORE: f32 = 0.6;
/// All rows are at most this part of the page, and so many characters may stand beside it in its element: its heading.
const MOST: f32 = 0.3;
const HEADING: u32 = 80;

/// Adds to `dropped` rows of cards.
pub fn leave_out(dom: &Dom, m: &Measures, dropped: &mut [bool]) {
    let is_paragraph = |i: usize| dom.tag(i) == Tag::P && m.text[i] > PARAGRAPH && m.links[i] * 2 < m.text[i];
    let all: u32 = each(dom, m, dropped).filter(|&i| is_paragraph(i)).map(|i| m.text[i]).sum();
    let total = m.total() as f32;
    let mut rows = Vec::new();
    let (mut before, mut end) = (0, 0);
    for i in each(dom, m, dropped) {
        if i < end {
            continue;
        }
        if is_paragraph(i) {
            before += m.text[i];
        }
        if before as f32 >= BEFORE * all as f32
            && all > 0
            && dom.tag(i).is_block()
            && m.text[i] as f32 <= MOST * total
            && is_row(dom, m, i, dropped)
        {
            rows.push(i);
            end = dom.end(i);
        }
    }
    if rows.iter().map(|&row| m.text[row]).sum::<u32>() as f32 > MOST * total {
        return;
    }
    let titles: Vec<usize> = (m.body..dom.end(m.body)).filter(|&i| dom.tag(i) == Tag::H1).collect();
    let has_title = |i: usize| titles.get(titles.partition_point(|&title| title < i)).is_some_and(|&t| t < dom.end(i));
    for row in rows {
        let mut whole = row;
        for up in dom.ancestors(row).take_while(|&up| up > m.body) {
            if m.text[up] > m.text[row] + HEADING || has_title(up) {
                break;
            }
            whole = up;
        }
        dropped[whole] = true;
    }
}

/// The nodes of the page that are left, in order.
fn each<'d>(dom: &'d Dom, m: &'d Measures, dropped: &[bool]) -> impl Iterator<Item = usize> {
    let mut left = Vec::new();
    let mut i = m.body + 1;
    while i < dom.end(m.body) {
        if dropped[i] {
            i = dom.end(i);
            continue;
        }
        left.push(i);
        i += 1;
    }
    left.into_iter()
}

fn is_row(dom: &Dom, m: &Measures, i: usize, dropped: &[bool]) -> bool {
    let mut cards = 0;
    let mut name: Option<(Tag, Option<&str>)> = None;
    for child in dom.children(i).filter(|&child| !dropped[child] && m.text[child] > 0) {
        let own = (dom.tag(child), dom.class(child).split_ascii_whitespace().next());
        if *name.get_or_insert(own) != own || !CARD.contains(&m.text[child]) || !is_card(dom, m, child) {
            return false;
        }
        cards += 1;
        if cards > *CARDS.end() {
            return false;
        }
    }
    cards >= *CARDS.start()
}

/// A link to another page, and a picture or a heading.
fn is_card(dom: &Dom, m: &Measures, i: usize) -> bool {
    let (mut link, mut shows) = (false, false);
    for j in (i..dom.end(i)).take(MOST_NODES) {
        match dom.tag(j) {
            Tag::A => {
                link |= dom
                    .attr(j, &local_name!("href"))
                    .is_some_and(|href| !href.starts_with('#') && !href.starts_with("javascript:"));
            }
            Tag::Img => shows = true,
            tag if tag.heading_level().is_some() && m.text[j] > 0 => shows = true,
            _ => {}
        }
    }
    link && shows && m.links[i] > 0
}

#[cfg(test)]
mod tests {
    use super::super::guard;
    use super::*;

    const PARAGRAPH: &str = "<p>The kettle boils a litre in four minutes and keeps it warm for an hour on its own plate, which \
        is more than others do.</p>";

    fn left(html: &str) -> String {
        let dom = guard::parse(html).dom;
        let m = Measures::of(&dom, false);
        let mut dropped = m.invisible.clone();
        leave_out(&dom, &m, &mut dropped);
        m.text_left(&dom, &dropped).trim().to_owned()
    }

    fn row(card: &str) -> String {
        format!("<div><h3>More</h3><div>{}</div></div>", card.repeat(3))
    }

    #[test]
    fn rows_of_other_articles_go_with_their_heading() {
        for card in [
            "<div class=card><a href=/pots><h4>Pots of iron</h4></a><p>GONE</p></div>",
            "<article class='post a'><img src=p.jpg><a href=/pots>GONE and more</a></article>",
        ] {
            let out = left(&format!("<main><h1>Kettles</h1>{}{}</main>", PARAGRAPH.repeat(8), row(card)));
            assert!(out.starts_with("Kettles") && out.ends_with("do."), "{out}");
        }
    }

    #[test]
    fn what_the_article_is_about_stays() {
        let goods = row("<div class=card><a href=/pots><h4>Pots of iron</h4></a><p>KEPT</p></div>");
        for (before, row) in [
            (2, goods.clone()),
            (8, row("<div class=card><h4>Pots of iron</h4><p>KEPT</p></div>")),
            (8, row("<div class=card><a href='#pots'><h4>Pots of iron</h4></a><p>KEPT</p></div>")),
            (8, row("<div class=card><p>KEPT, as is said <a href=/pots>of pots</a>.</p></div>")),
            (8, row("<div class=a><a href=/p><h4>KEPT</h4></a></div><p>and</p>")),
        ] {
            let page = format!("<h1>Kettles</h1>{}{row}{}", PARAGRAPH.repeat(before), PARAGRAPH.repeat(8 - before));
            assert!(left(&page).contains("KEPT"), "{page}");
        }
        assert!(left(&format!("<h1>Kettles</h1>{PARAGRAPH}{}", goods.repeat(3))).contains("KEPT"), "most of the page");
    }
}
