//! Text that a page hides until its reader asks for it: behind "show more", in the part of an accordion or the panel of a
//! tab. One click that costs nothing shows it, so it is read. What is hidden otherwise stays hidden.

use html5ever::local_name;

use super::measure::count;
use super::tree::{Dom, Tag};

/// Longest words of a control, bytes, and most nodes that it is made of.
const CONTROL_BYTES: usize = 48;
const CONTROL_NODES: usize = 16;
/// Nodes at the beginning and at the end of an element that may be the control.
const NEAR: usize = 32;
/// Elements that hidden text may be the end of, for a control to stand after it.
const UP: usize = 3;
/// What a control begins with that shows the rest. Lower case. Not "load more", which fetches.
const MORE: &[&str] = &[
    "show more",
    "read more",
    "see more",
    "view more",
    "more",
    "expand",
    "show all",
    "read all",
    "show full",
    "read full",
    "view full",
    "read the full",
    "continue reading",
    "mehr",
    "weiterlesen",
    "lire la suite",
    "lire plus",
    "voir plus",
    "afficher plus",
    "ver más",
    "leer más",
    "mostrar más",
    "ver mais",
    "leia mais",
    "mostrar mais",
    "leggi tutto",
    "leggi di più",
    "mostra altro",
    "lees meer",
    "meer lezen",
    "toon meer",
    "czytaj więcej",
    "pokaż więcej",
    "читать далее",
    "показать",
    "もっと見る",
    "続きを読む",
    "阅读全文",
    "显示更多",
    "展开",
];

/// Whether a control beside the hidden element `i` says that it opens it.
pub fn opens(dom: &Dom, i: usize) -> bool {
    if dom.attr(i, &local_name!("role")) == Some("tabpanel") {
        return true;
    }
    let id = dom.attr(i, &local_name!("id")).filter(|id| !id.is_empty());
    if previous_element(dom, i).is_some_and(|c| controls(dom, c, id)) {
        return true;
    }
    let mut last = i;
    for _ in 0..UP {
        let parent = dom.parent(last);
        let after = next_element(dom, last, parent);
        match after {
            Some(c) => return controls(dom, c, id),
            None if parent == 0 || dom.tag(parent) == Tag::Body => return false,
            None => last = parent,
        }
    }
    false
}

/// The sibling before `i`, if it is an element.
fn previous_element(dom: &Dom, i: usize) -> Option<usize> {
    let parent = dom.parent(i);
    let mut at = i.checked_sub(1).filter(|&at| at > parent)?;
    loop {
        while dom.parent(at) != parent {
            at = dom.parent(at);
        }
        if dom.tag(at).is_element() {
            return Some(at);
        }
        if count(dom.text(at)) > 0 || at - 1 == parent {
            return None;
        }
        at -= 1;
    }
}

/// The element after `i` in `parent`, if there is no text between them.
fn next_element(dom: &Dom, i: usize, parent: usize) -> Option<usize> {
    let mut c = dom.end(i);
    while c < dom.end(parent) {
        if dom.tag(c).is_element() {
            return Some(c);
        }
        if count(dom.text(c)) > 0 {
            return None;
        }
        c = dom.end(c);
    }
    None
}

/// Whether an element is, or ends or begins with, a control that opens the one called `id`.
fn controls(dom: &Dom, i: usize, id: Option<&str>) -> bool {
    let end = dom.end(i);
    let near = (i..end.min(i + NEAR)).chain(end.saturating_sub(NEAR).max(i + NEAR)..end);
    near.filter(|&j| dom.tag(j).is_element()).any(|j| {
        if id.is_some()
            && dom.attr(j, &local_name!("aria-controls")) == id
            && dom.attr(j, &local_name!("aria-expanded")).is_some()
        {
            return true;
        }
        let is_control = match dom.tag(j) {
            Tag::Button | Tag::Summary => true,
            // A link to another page does not open anything here.
            Tag::A => dom
                .attr(j, &local_name!("href"))
                .is_none_or(|href| href.is_empty() || href.starts_with('#') || href.starts_with("javascript:")),
            _ => dom.attr(j, &local_name!("role")) == Some("button"),
        };
        is_control && dom.end(j) - j <= CONTROL_NODES && says_more(dom, j)
    })
}

fn says_more(dom: &Dom, i: usize) -> bool {
    let bytes: usize = (i..dom.end(i)).map(|j| dom.text(j).trim().len()).sum();
    if bytes > CONTROL_BYTES {
        return false;
    }
    let low = dom.text_of(i).to_lowercase();
    let low = low.trim_start_matches(|c: char| !c.is_alphanumeric());
    MORE.iter().any(|more| low.starts_with(more))
}

#[cfg(test)]
mod tests {
    use super::super::guard;
    use super::super::measure::Measures;

    fn shows(html: &str) -> bool {
        let rest = "The rest of the text, which is long enough to be worth a click of its reader.";
        let seen = "What everybody sees of this page without any click at all, word for word. ".repeat(4);
        let page = format!("<p>{seen}</p>{}", html.replace("REST", rest));
        let m = Measures::of(&guard::parse(&page).dom, false);
        m.total() > super::count(&seen) + 60
    }

    #[test]
    fn what_a_control_beside_it_opens_is_read() {
        for html in [
            "<div><span style='display:none'>REST</span></div><button>Read more</button>",
            "<p>Begin<span> …</span><span style='display: none'>REST</span></p><a onclick=show()>Show more ▾</a>",
            "<button>Mehr anzeigen</button><div hidden>REST</div>",
            "<p>Begin <a href='#'>… more</a></p><p style='display:none'>REST</p>",
            "<h3><button aria-expanded=false aria-controls=a1>When?</button></h3><div id=a1 hidden>REST</div>",
            "<div role=tablist><a href='#p'>Details</a></div><div id=p role=tabpanel style='display:none'>REST</div>",
        ] {
            assert!(shows(html), "{html}");
        }
    }

    #[test]
    fn what_is_hidden_otherwise_stays_hidden() {
        for html in [
            "<div style='display:none'>REST</div>",
            "<div style='display:none'>REST</div><button>Close</button>",
            "<div hidden>REST</div><a href=/next>Read more</a>",
            "<div hidden>REST</div> and text <button>Read more</button>",
            "<button aria-expanded=false aria-controls=other>Menu</button><div id=a1 hidden>REST</div>",
            "<button>More</button><ul hidden><li><a href=/a>REST</a></ul>",
            "<button>Read more of what we have written about the harbour in other years</button><div hidden>REST</div>",
        ] {
            assert!(!shows(html), "{html}");
        }
    }
}
