//! The pictures of a page: the best source of one `img`, and the `images` format's list.

use foldhash::{HashSet, HashSetExt as _};
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
                // `nan` and `inf` are numbers to the parser, and no sizes.
                size = number.parse().ok().filter(|size: &f32| size.is_finite() && *size > 0.0).unwrap_or(1.0);
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

/// All images of the page in order, absolute, without repeats and without `data:` URLs: `img` and its sets, `picture`,
/// what lazy loaders keep aside, posters, vector images, backgrounds in `style` and older attributes, icons and the
/// pictures that the page gives to those who link to it.
pub fn list(dom: &Dom, addresses: &Addresses) -> Vec<String> {
    let mut found = Found { addresses, seen: HashSet::new(), out: Vec::new(), bytes: 0 };
    for i in 0..dom.len() {
        let tag = dom.tag(i);
        if !tag.is_element() {
            continue;
        }
        let named = |name: &str| dom.attr_named(i, name);
        match tag {
            Tag::Img | Tag::Source => {
                let is_picture = tag == Tag::Img || dom.tag(dom.parent(i)) == Tag::Picture;
                if let Some(src) = dom.attr(i, &local_name!("src")).filter(|_| tag == Tag::Img) {
                    found.add(src);
                }
                if is_picture {
                    found.set(dom.attr(i, &local_name!("srcset")));
                    LAZY_SETS.iter().for_each(|name| found.set(named(name)));
                    LAZY.iter().filter_map(|name| named(name)).filter(|v| is_address(v)).for_each(|v| found.add(v));
                }
            }
            Tag::Video => found.maybe(named("poster").or_else(|| named("data-poster"))),
            Tag::Input if dom.attr(i, &local_name!("type")) == Some("image") => {
                found.maybe(dom.attr(i, &local_name!("src")));
            }
            Tag::Object | Tag::Embed if named("type").is_some_and(|kind| kind.starts_with("image/")) => {
                found.maybe(named("data").or_else(|| named("src")));
            }
            Tag::Body | Tag::Table | Tag::Td | Tag::Th | Tag::Tr => found.maybe(named("background")),
            Tag::Foreign if dom.element(i).is_some_and(|e| matches!(&*e.name.local, "image" | "feImage")) => {
                found.maybe(named("href").or_else(|| named("xlink:href")));
            }
            Tag::Meta => {
                let key = named("property").or_else(|| named("name")).or_else(|| named("itemprop")).unwrap_or("");
                if META.contains(&key.to_ascii_lowercase().as_str()) {
                    found.maybe(named("content"));
                }
            }
            Tag::Link => {
                let rel = named("rel").unwrap_or("").to_ascii_lowercase();
                let preloads = rel.split_ascii_whitespace().any(|r| r == "preload") && named("as") == Some("image");
                if preloads
                    || rel.split_ascii_whitespace().any(|r| ICONS.contains(&r))
                    || named("itemprop") == Some("image")
                {
                    found.maybe(dom.attr(i, &local_name!("href")));
                    found.set(named("imagesrcset"));
                }
            }
            _ => {}
        }
        for name in LAZY_BACKGROUNDS {
            match named(name) {
                Some(value) if value.contains("url(") => found.style(value),
                Some(value) if is_address(value) && !value.contains(char::is_whitespace) => found.add(value),
                _ => {}
            }
        }
        if let Some(style) = dom.attr(i, &local_name!("style")) {
            found.style(style);
        }
    }
    found.out
}

/// Attributes lazy loaders keep a background in.
const LAZY_BACKGROUNDS: [&str; 5] =
    ["data-bg", "data-background", "data-background-image", "data-bg-src", "data-lazy-background"];
/// `meta` keys that name a picture.
const META: [&str; 8] = [
    "og:image",
    "og:image:url",
    "og:image:secure_url",
    "twitter:image",
    "twitter:image:src",
    "msapplication-tileimage",
    "thumbnail",
    "image",
];
/// Relations of a `link` to a picture.
const ICONS: [&str; 6] =
    ["image_src", "icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon", "fluid-icon"];

struct Found<'a> {
    addresses: &'a Addresses,
    seen: HashSet<String>,
    out: Vec<String>,
    bytes: usize,
}

impl Found<'_> {
    fn maybe(&mut self, source: Option<&str>) {
        if let Some(source) = source {
            self.add(source);
        }
    }

    /// Every candidate of a `srcset`.
    fn set(&mut self, srcset: Option<&str>) {
        for (url, _) in candidates(srcset.unwrap_or("")) {
            self.add(url);
        }
    }

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
            rest = rest[at + 4..].trim_start();
            // A quoted address may hold parentheses.
            let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
            let (url, end) = match quote {
                Some(quote) => {
                    let end = rest[1..].find(quote).map_or(rest.len(), |end| end + 1);
                    (&rest[1..end], end)
                }
                None => {
                    let end = rest.find(')').unwrap_or(rest.len());
                    (rest[..end].trim(), end)
                }
            };
            if !url.starts_with('#') {
                self.add(url);
            }
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
        for none in ["nan", "inf", "-9"] {
            assert_eq!(largest(&format!("/none.jpg {none}x, /l.jpg 2x")), Some("/l.jpg"), "{none}");
        }
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
    fn pictures_are_found_wherever_a_page_keeps_them() {
        let page = "<link rel='preload' as=image href=/1 imagesrcset='/2 1x, /3 2x'><link rel=preload as=font href=/no>\
            <link rel=apple-touch-icon-precomposed href=/4><meta name=msapplication-TileImage content=/5>\
            <meta itemprop=image content=/6><body background=/7><img data-lazy-srcset='/8 1x'><div data-bg=/9></div>\
            <div data-background-image='url(/10)'></div><p style='background:url(\"/11(1).png\"), url( /12 ), url(#no)'></p>\
            <svg><image href=/13></image></svg><object type=image/png data=/14></object><video poster=/15></video>\
            <div data-bg='dark theme'></div><img src='data:image/png;base64,AA'><img src='blob:x'><img src=''>";
        let dom = guard::parse(page).dom;
        let addresses = Addresses::of_page(&dom, &Url::parse("https://x.test/p/").expect("a URL"));
        let names: Vec<String> =
            list(&dom, &addresses).iter().map(|u| u["https://x.test/".len()..].to_owned()).collect();
        let wanted = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11(1).png", "12", "14", "15"];
        let without_svg: Vec<&String> = names.iter().filter(|name| *name != "13").collect();
        assert_eq!(without_svg, wanted.iter().collect::<Vec<_>>());
    }

    #[test]
    fn a_lazy_source_beats_a_placeholder() {
        let dom = guard::parse("<img src='data:image/gif;base64,AA' data-src=/real.jpg>").dom;
        let img = (0..dom.len()).find(|&i| dom.tag(i) == Tag::Img).expect("an image");
        assert_eq!(best_source(&dom, img), Some("/real.jpg"));
    }
}
