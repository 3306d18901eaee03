//! The links of one map: each once, with what is known about it and where it came from first.

use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::BuildHasher as _;

use url::Url;
pub use weir_shared::domain::map::Link;
use weir_shared::domain::map::{MapScope, link_key};

/// Links kept beyond those that are enough: sitemaps arrive several at once.
const SPARE: usize = 50_000;
/// Links kept that the path filter would leave out, for the case that it leaves out everything.
const OTHERS: usize = 10_000;
/// Longest address in an answer, bytes.
const MAX_ADDRESS: usize = 8 * 1024;

/// Where a link came from; also its place in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The page itself.
    Start,
    /// Links of the page.
    Page,
    /// A sitemap, by its number.
    Sitemap(usize),
    /// Further pages and their links.
    Further,
    /// What the team knew.
    Known,
}

struct Kept {
    link: Link,
    origin: Origin,
    /// Whether the path filter lets it through.
    wanted: bool,
}

/// A set of links under construction.
pub struct LinkSet {
    scopes: Vec<MapScope>,
    filter: Option<bool>,
    enough: usize,
    /// By two hashes of the key: an address of its own would double the memory.
    index: HashMap<u128, usize>,
    hashers: [RandomState; 2],
    kept: Vec<Kept>,
    wanted: usize,
}

impl LinkSet {
    /// An empty set. `filter`: only what is below the scope's path; `None`: unless that leaves nothing. `enough`: links
    /// after which no more are needed.
    pub fn new(scope: MapScope, filter: Option<bool>, enough: usize) -> Self {
        Self {
            scopes: vec![scope],
            filter,
            enough,
            index: HashMap::new(),
            hashers: [RandomState::new(), RandomState::new()],
            kept: Vec::new(),
            wanted: 0,
        }
    }

    /// Lets in what belongs to another scope too.
    pub fn widen(&mut self, scope: MapScope) {
        self.scopes.push(scope);
    }

    /// Links after which no more are needed.
    pub fn enough(&self) -> usize {
        self.enough
    }

    /// Links that the answer would hold, its limit aside.
    pub fn wanted(&self) -> usize {
        self.wanted
    }

    /// Whether there is no link at all.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Whether nothing more is taken.
    pub fn is_full(&self) -> bool {
        self.wanted >= self.enough.saturating_add(SPARE)
    }

    /// Adds an address. One that is known already gets the better place and what it lacks. `true`: it is new, and the
    /// answer would hold it.
    pub fn add(&mut self, url: Url, title: Option<Box<str>>, description: Option<Box<str>>, origin: Origin) -> bool {
        if url.as_str().len() > MAX_ADDRESS {
            return false;
        }
        let Some(scope) = self.scopes.iter().find(|scope| scope.covers(&url)) else { return false };
        let url = scope.normal(url);
        let wanted = self.filter == Some(false) || scope.is_below(&url);
        if !wanted && self.filter == Some(true) {
            return false;
        }
        let key = link_key(&url);
        let [high, low] = [0, 1].map(|n| u128::from(self.hashers[n].hash_one(&key)));
        let is_full = self.is_full() || !wanted && self.kept.len() - self.wanted >= OTHERS.min(self.enough);
        match self.index.entry(high << 64 | low) {
            Entry::Occupied(at) => {
                let known = &mut self.kept[*at.get()];
                known.origin = known.origin.min(origin);
                if known.link.title.is_none() {
                    known.link.title = title;
                }
                if known.link.description.is_none() {
                    known.link.description = description;
                }
                // Of two that differ in the scheme only, the secure one is answered.
                if known.link.url.starts_with("http:") && url.scheme() == "https" {
                    known.link.url = String::from(url).into_boxed_str();
                }
                false
            }
            Entry::Vacant(_) if is_full => false,
            Entry::Vacant(place) => {
                place.insert(self.kept.len());
                let link = Link { url: String::from(url).into_boxed_str(), title, description };
                self.kept.push(Kept { link, origin, wanted });
                self.wanted += usize::from(wanted);
                wanted
            }
        }
    }

    /// The first addresses in their order: candidates for a look.
    pub fn ordered(&self) -> Vec<Url> {
        let mut order: Vec<&Kept> = self.kept.iter().filter(|kept| kept.origin != Origin::Known).collect();
        order.sort_by_key(|kept| (!kept.wanted, kept.origin));
        order.iter().take(500).filter_map(|kept| Url::parse(&kept.link.url).ok()).collect()
    }

    /// The links in their order. `true`: the path filter would have left nothing but the page and was not used.
    pub fn finish(self) -> (Vec<Link>, bool) {
        let mut kept = self.kept;
        let others = kept.len() - self.wanted;
        let unfiltered = self.filter.is_none() && self.wanted <= 1 && others > 0;
        if !unfiltered {
            kept.retain(|kept| kept.wanted);
        }
        // Stable, so that links of one origin keep their order.
        kept.sort_by_key(|kept| kept.origin);
        (kept.into_iter().map(|kept| kept.link).collect(), unfiltered)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use weir_shared::domain::scrape_request::parse_map;
    use weir_shared::domain::target::RequestContext;

    use super::*;

    fn set(url: &str, filter: Option<bool>) -> LinkSet {
        let body = json!({"url": url});
        let map = parse_map(&body, RequestContext { knows_host: &|_| false }).expect("a body");
        LinkSet::new(MapScope::new(Url::parse(url).expect("a URL"), &map.options), filter, 10)
    }

    fn add(links: &mut LinkSet, url: &str, title: Option<&str>, origin: Origin) -> bool {
        links.add(Url::parse(url).expect("a URL"), title.map(Into::into), None, origin)
    }

    #[test]
    fn a_link_is_kept_once_in_its_best_place() {
        let mut links = set("http://example.com/", None);
        assert!(add(&mut links, "http://example.com/b", None, Origin::Sitemap(1)));
        assert!(add(&mut links, "http://example.com/c?x=1", None, Origin::Sitemap(0)));
        assert!(!add(&mut links, "https://www.example.com/b#y", Some("B"), Origin::Page));
        assert!(!add(&mut links, "http://other.org/", None, Origin::Page));
        assert!(add(&mut links, "http://example.com/", None, Origin::Start));
        let (links, unfiltered) = links.finish();
        let urls: Vec<&str> = links.iter().map(|link| &*link.url).collect();
        assert_eq!(urls, ["http://example.com/", "https://www.example.com/b", "http://example.com/c"]);
        assert_eq!(links[1].title.as_deref(), Some("B"));
        assert!(!unfiltered);
    }

    #[test]
    fn the_path_filters_unless_it_leaves_nothing() {
        for (filter, more, expected, unfiltered) in [
            (None, "http://example.com/docs/x", 2, false),
            (None, "http://example.com/blog/x", 3, true),
            (Some(true), "http://example.com/blog/x", 1, false),
            (Some(false), "http://example.com/docs/x", 3, false),
        ] {
            let mut links = set("http://example.com/docs", filter);
            for url in ["http://example.com/docs", "http://example.com/about", more] {
                add(&mut links, url, None, Origin::Page);
            }
            let (links, was_unfiltered) = links.finish();
            assert_eq!((links.len(), was_unfiltered), (expected, unfiltered), "{filter:?} {more}");
        }
    }

    #[test]
    fn a_set_is_bounded() {
        let mut links = set("http://example.com/", None);
        for n in 0..SPARE + 100 {
            add(&mut links, &format!("http://example.com/{n}"), None, Origin::Known);
        }
        assert!(links.is_full());
        assert_eq!(links.finish().0.len(), SPARE + 10);
        // What the filter leaves out does not take the room of what it lets through.
        let mut links = set("http://example.com/docs", None);
        for n in 0..SPARE + 100 {
            add(&mut links, &format!("http://example.com/{n}"), None, Origin::Known);
        }
        assert!(!links.is_full() && add(&mut links, "http://example.com/docs/1", None, Origin::Known));
        assert!(add(&mut links, "http://example.com/docs/2", None, Origin::Known));
        assert_eq!(links.finish().0.len(), 2);
    }
}
