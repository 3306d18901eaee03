//! Parts of a page that its server sent after the rest: React writes each into a hidden element at the end, and a script puts
//! it where a `template` holds its place. Every reader sees it there, so it is read there, without the words that stood in
//! for it.
//!
//! ```text
//! <template id="B:0"></template>Loading…<!--/$-->   the place, what stands in, and its end
//! <template id="P:1"></template>                    the place of a part within another
//! <div hidden id="S:0">…</div>                      the part
//! ```

use std::collections::HashMap;

use html5ever::local_name;

use super::{Data, NONE, Raw, Sink};

/// What is in the markup of such a page and of hardly another.
pub const SIGN: &[u8] = b" hidden id=\"S:";
/// The comment at the end of what stands in for a part.
pub const END: &str = "<!--/$-->";
/// What becomes of it before the page is parsed, as comments are not: an element that may stand anywhere.
pub const END_KEPT: &str = "<template id=/$></template>";
/// Parts of a page at most, and how deep they may stand in each other: depth comes from the page.
const MOST_PARTS: usize = 4096;
const MOST_DEEP: usize = 4;
/// Siblings that are looked through for the end of what stands in for a part.
const MOST_STANDING_IN: usize = 64;

/// Puts each part into the template that holds its place.
pub(super) fn place(nodes: &mut [Raw]) {
    let mut parts: HashMap<String, u32> = HashMap::new();
    let mut places = Vec::new();
    for (i, node) in nodes.iter().enumerate() {
        let Data::Element(element) = &node.data else { continue };
        let Some(id) = element.attrs.iter().find(|a| a.name.local == local_name!("id")).map(|a| &*a.value) else {
            continue;
        };
        if node.contents != NONE {
            if let Some(name) = id.strip_prefix("B:").or_else(|| id.strip_prefix("P:"))
                && places.len() < MOST_PARTS
            {
                places.push((name.to_owned(), i as u32, id.starts_with('B')));
            }
        } else if let Some(name) = id.strip_prefix("S:")
            && parts.len() < MOST_PARTS
            && element.attrs.iter().any(|a| &*a.name.local == "hidden")
        {
            parts.entry(name.to_owned()).or_insert(i as u32);
        }
    }
    // In which part each place stands, before anything moves.
    let inside: HashMap<u32, &str> = parts.iter().map(|(name, &part)| (part, name.as_str())).collect();
    let mut around: HashMap<&str, Option<&str>> = HashMap::new();
    for (name, place, _) in &places {
        let mut up = nodes[*place as usize].parent;
        while up != NONE && !inside.contains_key(&up) {
            up = nodes[up as usize].parent;
        }
        around.entry(name).or_insert_with(|| inside.get(&up).copied());
    }
    let ends_in_page = |name: &str| {
        let mut at = Some(name);
        for _ in 0..=MOST_DEEP {
            let Some(part) = at else { return true };
            at = around.get(part).copied().unwrap_or(None);
        }
        false
    };
    let whole: Vec<bool> = places.iter().map(|(name, ..)| ends_in_page(name)).collect();
    for ((name, place, stands_in), whole) in places.iter().zip(whole) {
        let Some(part) = parts.get(name).copied().filter(|_| whole) else { continue };
        if nodes[part as usize].parent == NONE {
            continue;
        }
        Sink::detach(nodes, part);
        nodes[*place as usize].contents = part;
        nodes[*place as usize].is_shown = true;
        if *stands_in {
            remove_until_end(nodes, *place);
        }
    }
}

/// Takes out what stands in for a part, where its end is found.
fn remove_until_end(nodes: &mut [Raw], place: u32) {
    let mut gone = Vec::new();
    let mut at = nodes[place as usize].next;
    while at != NONE && gone.len() < MOST_STANDING_IN {
        if is_end(&nodes[at as usize]) {
            gone.into_iter().for_each(|node| Sink::detach(nodes, node));
            return;
        }
        gone.push(at);
        at = nodes[at as usize].next;
    }
}

fn is_end(node: &Raw) -> bool {
    let Data::Element(element) = &node.data else { return false };
    node.contents != NONE && element.attrs.iter().any(|a| a.name.local == local_name!("id") && &*a.value == "/$")
}

#[cfg(test)]
mod tests {
    use crate::guard;

    fn text(html: &str) -> String {
        let dom = guard::parse(html).dom;
        let shown = |i: &usize| dom.ancestors(*i).chain([*i]).all(|up| dom.attr_named(up, "hidden").is_none());
        (0..dom.len()).filter(shown).map(|i| dom.text(i)).collect()
    }

    #[test]
    fn parts_that_came_later_are_read_in_their_place() {
        let page = "<main><h1>A</h1><!--$?--><template id=\"B:0\"></template><p>Loading…</p><!--/$--><p>D</p></main>\
             <div hidden id=\"S:0\"><p>B</p><template id=\"P:1\"></template></div>\
             <div hidden id=\"S:1\"><p>C</p></div>";
        assert_eq!(text(page), "ABCD");
    }

    #[test]
    fn what_has_no_place_or_no_part_stays_as_it_is() {
        let page =
            "<p>A</p><template id=\"B:0\"></template><p>Loading…</p><!--/$--><div hidden id=\"S:1\"><p>B</p></div>";
        assert_eq!(text(page), "ALoading…");
        assert_eq!(text("<p>A</p><template id=\"B:1\"></template><i>C</i><div hidden id=\"S:1\">B</div>"), "ABC");
        assert_eq!(text("<p>A</p><div hidden id=\"S:0\"><template id=\"B:0\"></template>B</div>"), "A", "in itself");
    }

    #[test]
    fn parts_within_parts_end() {
        let nested: String = (0..2000)
            .map(|n| format!("<div hidden id=\"S:{n}\">x<template id=\"P:{}\"></template></div>", n + 1))
            .collect();
        let dom = guard::parse(&format!("<template id=\"B:0\"></template>{nested}")).dom;
        let depth = (0..dom.len()).map(|i| dom.ancestors(i).count()).max();
        assert!(depth.is_some_and(|depth| depth < 24), "{depth:?}");
    }
}
