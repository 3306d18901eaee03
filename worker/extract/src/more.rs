//! Text that a page hides until its reader asks for it: behind "show more", in the part of an accordion or the panel of a
//! tab. One click that costs nothing shows it, so it is read. What is hidden otherwise stays hidden.
//!
//! Accordions are told by their names, by a heading right above what is hidden, or by being built alike: several elements in a
//! row that are a short text and what it opens.

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

/// Bytes of an element's names that are read.
const MOST_NAMES: usize = 256;
/// What the panels of tabs are called, and the parts of accordions. Lower case.
const PANELS: &[&str] = &["tab-pane", "tabpane", "tabs-pane", "tab__pane", "tab-content", "tab__content"];
const FOLDS: &[&str] = &["accordion", "faq", "answer"];
/// Characters of what stands above a part of an accordion, and its children that are looked at.
const MOST_ABOVE: u32 = 150;
const MOST_PARTS: usize = 16;

/// Whether an element is the panel of a tab.
pub fn is_panel(dom: &Dom, i: usize) -> bool {
    dom.attr(i, &local_name!("role")) == Some("tabpanel") || is_named(dom, i, PANELS)
}

fn is_named(dom: &Dom, i: usize, words: &[&str]) -> bool {
    let class = dom.class(i);
    let low = class[..class.floor_char_boundary(MOST_NAMES)].to_ascii_lowercase();
    words.iter().any(|word| low.contains(word))
}

/// Whether a control beside the hidden element `i` says that it opens it.
pub fn opens(dom: &Dom, i: usize) -> bool {
    if is_panel(dom, i) || is_named(dom, i, FOLDS) {
        return true;
    }
    let id = dom.attr(i, &local_name!("id")).filter(|id| !id.is_empty());
    if previous_element(dom, i).is_some_and(|above| controls(dom, above, id) || is_fold(dom, above, i)) {
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

/// Whether a heading or a term stands right above.
pub fn is_below_heading(dom: &Dom, i: usize) -> bool {
    previous_element(dom, i)
        .is_some_and(|above| dom.tag(above).heading_level().is_some_and(|level| level > 1) || dom.tag(above) == Tag::Dt)
}

/// Whether `above` and the hidden `i` are one of several parts in a row that are built alike.
fn is_fold(dom: &Dom, above: usize, i: usize) -> bool {
    let chars: u32 = (above..dom.end(above)).take(NEAR).map(|j| count(dom.text(j))).sum();
    let part = dom.parent(i);
    if !(1..=MOST_ABOVE).contains(&chars)
        || matches!(dom.tag(part), Tag::Body | Tag::Main | Tag::Document)
        // So each part is looked at once, however much it hides.
        || previous_element(dom, above).is_some()
    {
        return false;
    }
    let is_like = |a: usize, b: usize| dom.tag(a) == dom.tag(b) && dom.class(a) == dom.class(b);
    let others = [previous_element(dom, part), next_element(dom, part, dom.parent(part))];
    others.into_iter().flatten().filter(|&other| is_like(other, part)).any(|other| {
        let parts = || dom.children(other).take(MOST_PARTS).filter(|&c| dom.tag(c).is_element());
        parts().next().is_some_and(|first| is_like(first, above)) && parts().last().is_some_and(|last| is_like(last, i))
    })
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
            "<div class=tab-panes><div class=tab-pane>Seen</div><div class=tab-pane style='display:none'>REST</div></div>",
            "<div role=tabpanel hidden><ul><li><a href=/form>REST</a></ul></div>",
            "<div class=faq__question>When?</div><div class=faq__answer style='display: none'>REST</div>",
            "<h3>When do the boats come back?</h3><div style='display:none'>REST</div>",
            "<dl><dt>When?</dt><dd hidden>REST</dd></dl>",
            "<div class=p><b>When?</b><div class=x hidden>Or later.</div></div><div class=p><b>Why?</b><div class=x hidden>REST</div></div>",
            "<main><div style='display:none'>REST</div><script>show()</script></main>",
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
            "<div class=p><b>Sign in</b><div class=x hidden>REST</div></div>",
            "<div class=p><b>Sign in</b><div class=x hidden>REST</div></div><div class=p><b>Sign up</b><p>Here.</p></div>",
            "<div class=accordion hidden><a href=/a>REST</a></div>",
            "<main><div style='display:none'>REST</div><p>What everybody sees of it without a click.</p></main>",
            "<button>Read more of what we have written about the harbour in other years</button><div hidden>REST</div>",
        ] {
            assert!(!shows(html), "{html}");
        }
    }
}
