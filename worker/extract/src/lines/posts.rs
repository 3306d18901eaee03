//! What a forum writes at each post besides who wrote it and when: its number in the thread, a letter where the writer has
//! no picture, and once more what the thread is called.

use super::Lines;
use crate::tree::{Dom, Tag};

/// Characters of a number and its sign, and of a letter that stands for a picture.
const NUMBER: u32 = 20;
const LETTER: u32 = 2;
/// Characters of a title.
const TITLE: u32 = 160;
/// Elements around a line that are asked what they are, and bytes of their names, and of the page's, that are read.
const AROUND: usize = 3;
const MOST_NAMES: usize = 256;

/// Marks such lines.
pub fn find(dom: &Dom, lines: &Lines, gone: &mut [bool]) {
    let mut title: Option<String> = None;
    for (line, gone) in lines.list.iter().zip(gone) {
        let &[node] = lines.nodes(line) else { continue };
        let text = dom.text(node as usize).trim();
        *gone |= line.chars <= NUMBER && is_number(dom, node as usize, text)
            || line.chars <= LETTER && is_letter(dom, node as usize)
            || line.chars <= TITLE && is_title(dom, text, &mut title);
    }
}

/// Whether a line is `#12` as a link, or `Post #12 of 40`: the post's address.
fn is_number(dom: &Dom, node: usize, text: &str) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (number, all) = text.strip_prefix("Post ").unwrap_or(text).split_once(" of ").unwrap_or((text, "1"));
    number.strip_prefix('#').is_some_and(is_digits)
        && is_digits(all)
        && dom.ancestors(node).take(AROUND).any(|up| dom.tag(up) == Tag::A)
}

fn is_letter<'d>(dom: &'d Dom, node: usize) -> bool {
    let begin = |text: &'d str| &text[..text.floor_char_boundary(MOST_NAMES)];
    dom.ancestors(node).take(AROUND).any(|up| begin(dom.class(up)).contains("avatar"))
}

/// Whether a line says "Re:" and what the page is called.
fn is_title(dom: &Dom, text: &str, title: &mut Option<String>) -> bool {
    let Some(name) = text.get(..3).filter(|begin| begin.eq_ignore_ascii_case("re:")).map(|_| text[3..].trim()) else {
        return false;
    };
    let title = title.get_or_insert_with(|| {
        let found = (0..dom.len()).find(|&i| dom.tag(i) == Tag::Title);
        let mut title = found.map(|i| dom.text_of(i)).unwrap_or_default();
        title.truncate(title.floor_char_boundary(MOST_NAMES));
        title
    });
    !name.is_empty() && title.contains(name)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{left, left_of_discussion};

    #[test]
    fn what_a_forum_writes_at_each_post_goes() {
        let page = |line: &str| {
            format!("<head><title>Boats of wood - Harbour</title></head><body>{line}<p>They land at noon.</p></body>")
        };
        for line in [
            "<ul><li><a href='#p2'>#2</a></li></ul>",
            "<div><a href='#p2'>Post #2 of 7</a></div>",
            "<div><a class='avatar avatar--s' href=/ada><span>A</span></a></div>",
            "<h3>Re: Boats of wood</h3>",
            "<h3><a href='#p2'>Re: Boats of wood</a></h3>",
        ] {
            assert_eq!(left_of_discussion(&page(line)), "They land at noon.", "{line}");
            assert_ne!(left(&page(line)), "They land at noon.", "elsewhere it stays: {line}");
        }
    }

    #[test]
    fn what_posts_say_stays() {
        for line in [
            "<p>#2</p>",
            "<p><a href='/tags/tea'>#tea</a></p>",
            "<p>B</p>",
            "<div class=avatar>Ada</div>",
            "<p>Re: boats of iron</p>",
            "<p>Re:</p>",
        ] {
            let page = format!("<head><title>Boats of wood</title></head><body>{line}<p>They land.</p></body>");
            let out = left_of_discussion(&page);
            assert_ne!(out, "They land.", "{line}");
        }
    }
}
