//! Headings that say nothing of the page: its title twice in a row, and the name of the site above the page's own title.

use html5ever::local_name;

use super::{Line, Lines, Place};
use crate::address;
use crate::tree::{Dom, Tag};

/// Characters of a heading.
const MOST: u32 = 200;

/// Marks a heading that says what the title right before it says, and a heading of the first level that leads to the site's
/// first page where one follows that leads nowhere.
pub fn find(dom: &Dom, lines: &Lines, gone: &mut [bool]) {
    let mut before: Option<(u64, u8)> = None;
    let mut site = None;
    for (at, line) in lines.list.iter().enumerate() {
        let Place::Heading(level) = line.place else {
            before = None;
            continue;
        };
        if gone[at] || line.chars > MOST {
            before = None;
            continue;
        }
        let digest = lines.digest(dom, line);
        // Groups of goods may begin with one that is called as they are, a level below, and cards be called the same.
        let is_said = |(same, above): (u64, u8)| {
            same == digest && (above == 1 || above == level && link(dom, lines, line).is_none())
        };
        if before.is_some_and(is_said) {
            gone[at] = true;
            continue;
        }
        before = Some((digest, level));
        if level == 1 {
            match link(dom, lines, line) {
                Some(href) if site.is_none() && address::is_first_page(href) => site = Some(at),
                None => {
                    if let Some(site) = site {
                        gone[site] = true;
                    }
                    site = None;
                }
                Some(_) => {}
            }
        }
    }
}

/// Where the link leads that all of a line stands in.
fn link<'d>(dom: &'d Dom, lines: &Lines, line: &Line) -> Option<&'d str> {
    let mut found = None;
    for &node in lines.nodes(line) {
        let up = dom.ancestors(node as usize).take(8).find(|&up| dom.tag(up) == Tag::A)?;
        if found.is_some_and(|found| found != up) {
            return None;
        }
        found = Some(up);
    }
    dom.attr(found?, &local_name!("href"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::left;

    #[test]
    fn a_title_twice_in_a_row_is_one() {
        assert_eq!(
            left("<div><h1>9 Boats</h1></div><div><h1>9  Boats</h1><p>They land.</p></div>"),
            "9 BoatsThey land."
        );
        assert_eq!(left("<h1>Boats</h1><h2>Boats</h2><p>They land.</p>"), "BoatsThey land.");
        let apart = "<h1>Boats</h1><p>Of wood.</p><h2>Boats</h2><p>Of iron.</p>";
        assert_eq!(left(apart), "BoatsOf wood.BoatsOf iron.");
        assert_eq!(
            left("<h2>Boats</h2><h3>Boats</h3><p>€ 90</p>"),
            "BoatsBoats€ 90",
            "a group of goods and one of them"
        );
        assert_eq!(
            left("<h2>Latest</h2><h2>Latest</h2><p>News</p>"),
            "LatestNews",
            "places for a list that is fetched later"
        );
        let cards = "<h2><a href=/8>Cup</a></h2><img src=8.jpg><h2><a href=/9>Cup</a></h2>";
        assert_eq!(left(cards), "CupCup", "cards of two goods");
    }

    #[test]
    fn the_name_of_the_site_above_the_title_goes() {
        // Sphinx, with Django's theme.
        assert_eq!(
            left("<h1><a href='../index.html'>Harbour 3</a></h1><h1>Boats</h1><p>They land.</p>"),
            "BoatsThey land."
        );
        for kept in [
            "<h1><a href='/'>Harbour</a></h1><h2>Boats</h2>",
            "<h1><a href=/boats>Boats</a></h1><h1>Nets</h1>",
            "<h1><a href=/>Boats</a> and more</h1><h1>Nets</h1>",
            "<h1>Nets</h1><h1><a href=/>Harbour</a></h1>",
        ] {
            assert!(left(kept).contains("Harbour") || left(kept).contains("Boats"), "{kept}");
        }
    }
}
