//! What a page is built like, whatever it says: the names of its elements, as numbers.
//!
//! Pages of one template are built alike. What stands around the content (navigation, footer) is the same on all pages of a
//! site, so it does not count.

use html5ever::local_name;

use super::Page;
use super::tree::{Dom, Tag};

/// Numbers of a sketch: the lowest ones of a page, so that sketches tell how much two pages share.
const SKETCH: usize = 96;
/// Most names of a page.
const MAX_NAMES: usize = 1_000;

/// What a page is built like.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sketch(Vec<u32>);

impl Sketch {
    /// How much two pages share of what they are built of, 0 to 1.
    pub fn likeness(&self, other: &Self) -> f32 {
        let mut union: Vec<u32> = self.0.iter().chain(&other.0).copied().collect();
        union.sort_unstable();
        union.dedup();
        union.truncate(SKETCH);
        let shared = union.iter().filter(|&n| self.0.binary_search(n).is_ok() && other.0.binary_search(n).is_ok());
        if union.is_empty() { 1.0 } else { shared.count() as f32 / union.len() as f32 }
    }
}

impl std::fmt::Display for Sketch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|n| write!(f, "{n:08x}"))
    }
}

impl std::str::FromStr for Sketch {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let part = |part: &[u8]| u32::from_str_radix(std::str::from_utf8(part).unwrap_or_default(), 16);
        text.as_bytes().chunks(8).map(part).collect::<Result<Vec<_>, _>>().map(Self)
    }
}

impl Page {
    /// What the page is built like: elements with the one around each.
    pub fn sketch(&self) -> Sketch {
        let mut found = self.content_names(|dom, i| joined(name(dom, i), name(dom, dom.parent(i))));
        found.truncate(SKETCH);
        Sketch(found)
    }

    /// The names of its elements, as numbers in their order. A page that has one which others have not holds something
    /// that those do not.
    pub fn names(&self) -> Vec<u32> {
        let mut found = self.content_names(name);
        found.truncate(MAX_NAMES);
        found
    }

    fn content_names(&self, of: impl Fn(&Dom, usize) -> u32) -> Vec<u32> {
        let dom = &self.dom;
        let mut found = Vec::new();
        let mut i = 0;
        while i < dom.len() {
            let is_around = match dom.tag(i) {
                Tag::Head | Tag::Nav | Tag::Footer | Tag::Aside | Tag::Script | Tag::Style | Tag::Svg => true,
                Tag::Header => dom.tag(dom.parent(i)) == Tag::Body,
                _ => false,
            };
            if is_around {
                i = dom.end(i);
                continue;
            }
            if dom.tag(i).is_element() {
                found.push(of(dom, i));
            }
            i += 1;
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// A number for an element's name and classes. Digits do not count: what counts items names them alike.
pub(crate) fn name(dom: &Dom, i: usize) -> u32 {
    let Some(element) = dom.element(i) else { return 0 };
    let mut classes: Vec<&str> = dom.attr(i, &local_name!("class")).unwrap_or("").split_ascii_whitespace().collect();
    classes.sort_unstable();
    let mut number = hashed(0x811c_9dc5, element.name.local.bytes());
    for class in classes {
        number = hashed(number ^ 0x5f, class.bytes().filter(|byte| !byte.is_ascii_digit()));
    }
    spread(number)
}

/// One number of two.
pub(crate) fn joined(one: u32, other: u32) -> u32 {
    spread(one.rotate_left(7) ^ other)
}

/// FNV-1a.
fn hashed(begin: u32, bytes: impl Iterator<Item = u8>) -> u32 {
    bytes.fold(begin, |number, byte| (number ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The lowest numbers are to be any of them.
fn spread(number: u32) -> u32 {
    let number = (number ^ (number >> 16)).wrapping_mul(0x7feb_352d);
    let number = (number ^ (number >> 15)).wrapping_mul(0x846c_a68b);
    number ^ (number >> 16)
}

#[cfg(test)]
mod tests {
    use super::super::{PageInput, parse};
    use super::*;

    fn sketch(html: &str) -> Sketch {
        let url = url::Url::parse("https://x.test/").expect("a URL");
        parse(&PageInput { url: &url, html, rendered: false }).sketch()
    }

    #[test]
    fn pages_of_a_template_are_alike_and_others_are_not() {
        let chrome = "<nav><ul><li><a>a</a></li></ul></nav>";
        let one = sketch(&format!(
            "{chrome}<main><h1 class=t>A</h1><p class='price p1'>3</p><ul class=s><li>x</li></ul></main>"
        ));
        let two = sketch(&format!(
            "{chrome}<main><h1 class=t>B</h1><p class='price p2'>4</p><ul class=s><li>x<li>y</ul></main>"
        ));
        let other = sketch(&format!("{chrome}<article><h2>C</h2><table class=q><tr><td>1</td></tr></table></article>"));
        assert_eq!(one.likeness(&two), 1.0);
        assert!(one.likeness(&other) < 0.5, "{}", one.likeness(&other));
        assert_eq!(one.to_string().parse(), Ok(one));
    }
}
