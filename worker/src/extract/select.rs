//! CSS selectors of `includeTags` and `excludeTags`.
//!
//! Selectors are rare, so the tree of the selector engine is made only when a request has some: element by element from
//! the page's own tree, which therefore is still parsed once.

use scraper::{ElementRef, Html, Selector};

use super::tree::Dom;

/// Most elements copied for matching.
const MAX_ELEMENTS: usize = 400_000;

/// Whether `sel` is a selector this engine can run.
pub fn is_valid(sel: &str) -> bool {
    Selector::parse(sel).is_ok()
}

/// For each list of selectors, the matched nodes in document order. Selectors that do not parse match nothing.
pub fn matches<const N: usize>(dom: &Dom, lists: [&[String]; N]) -> [Vec<usize>; N] {
    let mut out = lists.map(|_| Vec::new());
    if lists.iter().all(|l| l.is_empty()) {
        return out;
    }
    let parsed = lists.map(|l| l.iter().filter_map(|s| Selector::parse(s).ok()).collect::<Vec<_>>());
    let mut html = Html::new_document();
    let root = html.tree.root().id();
    let mut nodes = vec![None; dom.len()];
    let mut order = Vec::new();
    for i in 0..dom.len() {
        let Some(element) = dom.element(i) else {
            // Text matters to `:empty` alone.
            if !dom.text(i).is_empty()
                && let Some(Some(parent)) = nodes.get(dom.parent(i))
                && let Some(mut parent) = html.tree.get_mut(*parent)
                && !parent.has_children()
            {
                let text = scraper::node::Text { text: dom.text(i)[..dom.text(i).floor_char_boundary(16)].into() };
                parent.append(scraper::Node::Text(text));
            }
            continue;
        };
        if order.len() >= MAX_ELEMENTS {
            break;
        }
        let parent = nodes[dom.parent(i)].unwrap_or(root);
        let copy = scraper::node::Element::new(element.name.clone(), element.attrs.clone());
        if let Some(mut parent) = html.tree.get_mut(parent) {
            let id = parent.append(scraper::Node::Element(copy)).id();
            nodes[i] = Some(id);
            order.push((i, id));
        }
    }
    for (i, id) in order {
        let Some(element) = html.tree.get(id).and_then(ElementRef::wrap) else { continue };
        for (selectors, found) in parsed.iter().zip(&mut out) {
            if selectors.iter().any(|s| s.matches(&element)) {
                found.push(i);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::guard;
    use super::*;

    #[test]
    fn selectors_match_the_pages_own_nodes() {
        let dom = guard::parse("<div class='a b'><p id=x>1</p><p>2</p></div><p></p>").dom;
        let list = |s: &str| vec![s.to_owned()];
        let [first, second] = matches(&dom, [&list(".a > p:first-child"), &list("p:empty, [id=x]")]);
        assert_eq!(first.iter().map(|&i| dom.text_of(i)).collect::<String>(), "1");
        assert_eq!(second.len(), 2);
        assert_eq!(matches(&dom, [&list("p[")])[0].len(), 0);
    }

    #[test]
    fn bad_selectors_are_told_apart() {
        assert!(is_valid("main > .x:not(.y), #z") && is_valid("h1"));
        assert!(!is_valid("p[") && !is_valid("") && !is_valid("<p>"));
    }
}
