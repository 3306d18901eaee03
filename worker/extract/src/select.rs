//! CSS selectors of `includeTags`, `excludeTags` and the attributes format.
//!
//! Selectors are rare, so the tree of the selector engine is made only when a request has some: element by element from
//! the page's own tree, which therefore is still parsed once.

use ego_tree::NodeId;
use scraper::{ElementRef, Html, Selector};

use super::AttributeSelector;
use super::tree::Dom;

/// Most elements copied for matching.
const MAX_ELEMENTS: usize = 400_000;

/// Most values of the attributes format, and most bytes of them.
const MAX_VALUES: usize = 100_000;
const MAX_VALUE_BYTES: usize = 16 << 20;

/// For each list of selectors, the matched nodes in document order. Selectors that do not parse match nothing.
pub fn matches<const N: usize>(dom: &Dom, lists: [&[String]; N]) -> [Vec<usize>; N] {
    let parse = |list: &[String]| list.iter().filter_map(|s| Selector::parse(s).ok()).collect::<Vec<_>>();
    let mut found = matched(dom, &lists.map(parse)).into_iter();
    lists.map(|_| found.next().unwrap_or_default())
}

/// Says which of these are no selectors. `None`: all are.
pub fn complaint<'a>(selectors: impl Iterator<Item = &'a String>) -> Option<String> {
    let wrong: Vec<&str> = selectors.filter(|s| Selector::parse(s).is_err()).map(String::as_str).collect();
    (!wrong.is_empty()).then(|| format!("These are no CSS selectors: {}.", wrong.join(", ")))
}

/// For each wanted attribute its values in document order, and a warning about selectors that do not parse.
pub fn attributes(dom: &Dom, wanted: &[AttributeSelector]) -> (Vec<Vec<String>>, Option<String>) {
    let parsed: Vec<Vec<Selector>> =
        wanted.iter().map(|w| Selector::parse(&w.selector).into_iter().collect()).collect();
    let (mut values, mut bytes) = (0, 0);
    let mut is_cut = false;
    let mut out = Vec::with_capacity(wanted.len());
    for (wanted, nodes) in wanted.iter().zip(matched(dom, &parsed)) {
        let name = wanted.attribute.to_ascii_lowercase();
        let mut found = Vec::new();
        for value in nodes.into_iter().filter_map(|i| dom.attr_named(i, &name)) {
            (values, bytes) = (values + 1, bytes + value.len());
            if values > MAX_VALUES || bytes > MAX_VALUE_BYTES {
                is_cut = true;
                break;
            }
            found.push(value.to_owned());
        }
        out.push(found);
    }
    let mut warning = complaint(wanted.iter().map(|wanted| &wanted.selector));
    if is_cut {
        warning.get_or_insert_default().push_str(" The attributes were cut at their size limit.");
    }
    (out, warning.map(|text| text.trim().to_owned()))
}

/// For each list of selectors, the nodes that match one of them.
fn matched(dom: &Dom, parsed: &[Vec<Selector>]) -> Vec<Vec<usize>> {
    let mut out = vec![Vec::new(); parsed.len()];
    if parsed.iter().all(Vec::is_empty) {
        return out;
    }
    let tree = Tree::of(dom);
    for i in 0..dom.len() {
        let Some(element) = tree.element(i) else { continue };
        for (selectors, found) in parsed.iter().zip(&mut out) {
            if selectors.iter().any(|s| s.matches(&element)) {
                found.push(i);
            }
        }
    }
    out
}

/// The elements of a page as the selector engine has them.
pub struct Tree {
    html: Html,
    /// By the page's own numbers.
    ids: Vec<Option<NodeId>>,
}

impl Tree {
    /// Copies the elements of a page.
    pub fn of(dom: &Dom) -> Self {
        let mut html = Html::new_document();
        let root = html.tree.root().id();
        let mut ids = vec![None; dom.len()];
        let mut count = 0;
        for i in 0..dom.len() {
            let Some(element) = dom.element(i) else {
                // Text matters to `:empty` alone.
                if !dom.text(i).is_empty()
                    && let Some(Some(parent)) = ids.get(dom.parent(i))
                    && let Some(mut parent) = html.tree.get_mut(*parent)
                    && !parent.has_children()
                {
                    let text = scraper::node::Text { text: dom.text(i)[..dom.text(i).floor_char_boundary(16)].into() };
                    parent.append(scraper::Node::Text(text));
                }
                continue;
            };
            if count >= MAX_ELEMENTS {
                break;
            }
            let parent = ids[dom.parent(i)].unwrap_or(root);
            let copy = scraper::node::Element::new(element.name.clone(), element.attrs.clone());
            if let Some(mut parent) = html.tree.get_mut(parent) {
                ids[i] = Some(parent.append(scraper::Node::Element(copy)).id());
                count += 1;
            }
        }
        Self { html, ids }
    }

    /// Node `i` of the page, if it is an element that was copied.
    pub fn element(&self, i: usize) -> Option<ElementRef<'_>> {
        self.html.tree.get((*self.ids.get(i)?)?).and_then(ElementRef::wrap)
    }
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
        assert_eq!(complaint(list("p").iter()), None);
        let told = complaint([list("p["), list("p"), list("###")].concat().iter());
        assert_eq!(told.as_deref(), Some("These are no CSS selectors: p[, ###."));
    }

    #[test]
    fn attributes_are_read_as_written_and_wrong_selectors_told() {
        let dom = guard::parse("<a href='/x' DATA-Id=1>1</a><a href=''>2</a><a>3</a><img data-id='2 '>").dom;
        let wanted: Vec<AttributeSelector> = [("a", "href"), ("[data-id]", "Data-ID"), ("p[", "x"), ("b", "c")]
            .map(|(selector, attribute)| AttributeSelector { selector: selector.into(), attribute: attribute.into() })
            .into();
        let (found, warning) = attributes(&dom, &wanted);
        assert_eq!(found, [&["/x".to_owned(), String::new()][..], &["1".to_owned(), "2 ".to_owned()], &[], &[]]);
        assert_eq!(warning.as_deref(), Some("These are no CSS selectors: p[."));
    }
}
