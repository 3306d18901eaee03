//! The pictures of a page: the best source of one `img`, and the `images` format's list.

use std::collections::HashSet;

use html5ever::local_name;

use super::address::Addresses;
use super::tree::{Dom, Tag};

/// Most images listed.
const MAX_IMAGES: usize = 100_000;
/// Most bytes of image URLs listed.
const MAX_BYTES: usize = 32 << 20;

/// Attributes lazy loaders keep the real source in, best first.
const LAZY: [&str; 9] = [
    "data-src",
    "data-original",
    "data-lazy-src",
    "data-lazy",
    "data-original-src",
    "data-hi-res-src",
    "data-full-src",
    "data-img-src",
    "data-url",
];
const LAZY_SETS: [&str; 2] = ["data-srcset", "data-lazy-srcset"];

fn is_data(url: &str) -> bool {
    url.trim_start().get(..5).is_some_and(|s| s.eq_ignore_ascii_case("data:"))
}

/// Whether a source is the stand-in a lazy loader shows first.
fn is_placeholder(url: &str) -> bool {
    let low = url.to_ascii_lowercase();
    is_data(url)
        || low == "about:blank"
        || low == "#"
        || [
            "/blank.gif",
            "/spacer.gif",
            "/1x1.",
            "/pixel.gif",
            "/transparent.",
            "/placeholder.",
            "/lazy.",
            "/grey.gif",
            "/loading.gif",
        ]
        .iter()
        .any(|p| low.contains(p))
}

/// Whether a string could be an address at all (lazy loaders also keep JSON and class names in such attributes).
fn is_address(value: &str) -> bool {
    let value = value.trim();
    !value.is_empty() && !value.starts_with(['{', '[']) && !value.contains(['\n', '<', '>'])
}

/// Candidates of a `srcset` with their width or density.
pub fn candidates(srcset: &str) -> Vec<(&str, f32)> {
    let mut out = Vec::new();
    let mut rest = srcset;
    while out.len() < 64 {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        if rest.is_empty() {
            break;
        }
        let end = rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len());
        let (mut url, after) = rest.split_at(end);
        let mut size = 1.0;
        if let Some(stripped) = url.strip_suffix(',') {
            url = stripped.trim_end_matches(',');
            rest = after;
        } else {
            let comma = after.find(',').unwrap_or(after.len());
            let descriptor = after[..comma].trim();
            if let Some(number) =
                descriptor.split_ascii_whitespace().next().and_then(|d| d.get(..d.len().saturating_sub(1)))
            {
                size = number.parse().unwrap_or(1.0);
            }
            rest = &after[comma..];
        }
        if !url.is_empty() {
            out.push((url, size));
        }
    }
    out
}

fn largest(srcset: &str) -> Option<&str> {
    let mut best: Option<(&str, f32)> = None;
    for (url, size) in candidates(srcset) {
        if !is_data(url) && best.is_none_or(|(_, s)| size > s) {
            best = Some((url, size));
        }
    }
    best.map(|b| b.0)
}

/// The source to show for an `img`: the largest `srcset` candidate, else what a lazy loader would load, else `src`.
pub fn best_source(dom: &Dom, img: usize) -> Option<&str> {
    if let Some(found) = dom.attr(img, &local_name!("srcset")).and_then(largest).filter(|u| !is_placeholder(u)) {
        return Some(found);
    }
    let src = dom.attr(img, &local_name!("src")).map(str::trim).filter(|s| !s.is_empty());
    if let Some(src) = src
        && !is_placeholder(src)
    {
        return Some(src);
    }
    let lazy = LAZY_SETS.iter().find_map(|name| largest(dom.attr_named(img, name)?)).or_else(|| {
        LAZY.iter()
            .find_map(|name| dom.attr_named(img, name).map(str::trim).filter(|v| is_address(v) && !is_placeholder(v)))
    });
    if lazy.is_some() {
        return lazy;
    }
    let parent = dom.parent(img);
    if dom.tag(parent) == Tag::Picture {
        for source in dom.children(parent).filter(|&s| dom.tag(s) == Tag::Source) {
            let set = dom.attr(source, &local_name!("srcset")).or_else(|| dom.attr_named(source, "data-srcset"));
            if let Some(found) = set.and_then(largest) {
                return Some(found);
            }
        }
    }
    src
}

/// All images of the page in order, absolute, without repeats and without `data:` URLs.
pub fn list(dom: &Dom, addresses: &Addresses) -> Vec<String> {
    let mut found = Found { addresses, seen: HashSet::new(), out: Vec::new(), bytes: 0 };
    for i in 0..dom.len() {
        let tag = dom.tag(i);
        if !tag.is_element() {
            continue;
        }
        match tag {
            Tag::Img | Tag::Source => {
                if let Some(src) = dom.attr(i, &local_name!("src")).filter(|_| tag == Tag::Img) {
                    found.add(src);
                }
                if tag == Tag::Img || dom.tag(dom.parent(i)) == Tag::Picture {
                    for set in
                        [dom.attr(i, &local_name!("srcset")), dom.attr_named(i, "data-srcset")].into_iter().flatten()
                    {
                        for (url, _) in candidates(set) {
                            found.add(url);
                        }
                    }
                    for name in LAZY {
                        if let Some(src) = dom.attr_named(i, name).filter(|v| is_address(v)) {
                            found.add(src);
                        }
                    }
                }
            }
            Tag::Video => {
                if let Some(poster) = dom.attr_named(i, "poster") {
                    found.add(poster);
                }
            }
            Tag::Input if dom.attr(i, &local_name!("type")) == Some("image") => {
                if let Some(src) = dom.attr(i, &local_name!("src")) {
                    found.add(src);
                }
            }
            Tag::Meta => {
                let key = dom.attr_named(i, "property").or_else(|| dom.attr_named(i, "name")).unwrap_or("");
                if matches!(
                    key,
                    "og:image" | "og:image:url" | "og:image:secure_url" | "twitter:image" | "twitter:image:src"
                ) && let Some(src) = dom.attr_named(i, "content")
                {
                    found.add(src);
                }
            }
            Tag::Link => {
                let rel = dom.attr_named(i, "rel").unwrap_or("").to_ascii_lowercase();
                if rel.split_ascii_whitespace().any(|r| matches!(r, "image_src" | "icon" | "apple-touch-icon"))
                    && let Some(src) = dom.attr(i, &local_name!("href"))
                {
                    found.add(src);
                }
            }
            _ => {}
        }
        if let Some(style) = dom.attr(i, &local_name!("style")) {
            found.style(style);
        }
    }
    found.out
}

struct Found<'a> {
    addresses: &'a Addresses,
    seen: HashSet<String>,
    out: Vec<String>,
    bytes: usize,
}

impl Found<'_> {
    fn add(&mut self, source: &str) {
        if source.trim().is_empty() || is_data(source) || self.out.len() >= MAX_IMAGES || self.bytes > MAX_BYTES {
            return;
        }
        if let Some(url) = self.addresses.resolve(source)
            && url.starts_with("http")
            && self.seen.insert(url.clone())
        {
            self.bytes += url.len();
            self.out.push(url);
        }
    }

    /// `background: url(…)` and the like.
    fn style(&mut self, style: &str) {
        let mut rest = style;
        while let Some(at) = rest.find("url(") {
            rest = &rest[at + 4..];
            let end = rest.find(')').unwrap_or(rest.len());
            let url = rest[..end].trim().trim_matches(['"', '\'']);
            self.add(url);
            rest = &rest[end..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::guard;
    use super::*;
    use url::Url;

    #[test]
    fn the_largest_candidate_of_a_set_wins() {
        assert_eq!(largest("/s.jpg 320w, /l.jpg 1280w, /m.jpg 640w"), Some("/l.jpg"));
        assert_eq!(largest("/a,b.jpg 1x, /c.jpg 2x"), Some("/c.jpg"));
        assert_eq!(largest("/only.jpg"), Some("/only.jpg"));
        assert_eq!(largest("data:image/gif;base64,AAAA 1w"), None);
    }

    #[test]
    fn all_forms_are_listed_once() {
        let page = "<meta property=og:image content=/og.png><img src=/a.png><img src=/a.png srcset='/b.png 2x'>\
            <picture><source srcset='/c.webp 1x'><img data-src=/d.png src='data:image/gif;base64,AA'></picture>\
            <div style=\"background: url('/e.png')\"></div>";
        let dom = guard::parse(page).dom;
        let addresses = Addresses::of_page(&dom, &Url::parse("https://x.test/p/").expect("a URL"));
        let names: Vec<String> =
            list(&dom, &addresses).iter().map(|u| u["https://x.test/".len()..].to_owned()).collect();
        assert_eq!(names, ["og.png", "a.png", "b.png", "c.webp", "d.png", "e.png"]);
    }

    #[test]
    fn a_lazy_source_beats_a_placeholder() {
        let dom = guard::parse("<img src='data:image/gif;base64,AA' data-src=/real.jpg>").dom;
        let img = (0..dom.len()).find(|&i| dom.tag(i) == Tag::Img).expect("an image");
        assert_eq!(best_source(&dom, img), Some("/real.jpg"));
    }
}
