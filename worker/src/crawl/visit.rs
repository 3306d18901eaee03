//! What a page of a crawl leads to, and whether it is delivered: judged when it is known where it ended.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use url::Url;
use weir_shared::domain::crawl::SitemapMode;
use weir_shared::domain::crawl::scope::{CrawlScope, is_same_site};
use weir_shared::domain::site_rules::SiteRules;
use weir_shared::store::work::page::end::{Discovery, Found};

use super::rules::{LinkJudge, forbids};
use crate::page::product::Harvest;
use crate::site::RobotsRules;

/// A page that was fetched, before it is known where it leads.
pub struct Visit {
    pub scope: Arc<CrawlScope>,
    /// What robots.txt says where the page was asked for, and where it ended.
    pub rules: Option<RobotsRules>,
    pub end_rules: Option<RobotsRules>,
    /// Sites that links do not lead to.
    pub sites: SiteRules,
    /// As asked for, without a name and a password.
    pub url: Url,
    /// The site answered with an error.
    pub is_error: bool,
    pub is_start: bool,
    /// How many links away from the start page it was found.
    pub depth: i64,
}

impl Visit {
    /// Whether the page is delivered, and what it leads to.
    pub fn conclude(self, harvest: Harvest) -> (bool, Discovery) {
        let mut discovery = Discovery::default();
        let mut scope = Arc::clone(&self.scope);
        if harvest.url != self.url && forbids(self.end_rules.as_ref(), &harvest.url) {
            return (false, self.blocked_at(&harvest.url));
        }
        if self.is_start {
            scope = self.settle(&harvest.url, &mut discovery);
        }
        let is_wanted = self.is_wanted(&scope, &harvest.url, &mut discovery);
        let own = scope.key(&self.url);
        let mut keys = HashSet::from([own]);
        if is_wanted {
            discovery.is_error = self.is_error;
            discovery.landing = Some(scope.key(&harvest.url)).filter(|key| keys.insert(key.clone()));
            let canonical = harvest.canonical.as_ref().filter(|url| self.is_trusted(&harvest.url, url));
            discovery.canonical = canonical.map(|url| scope.key(url)).filter(|key| keys.insert(key.clone()));
        }
        let options = scope.options();
        let is_deep = options.max_discovery_depth.is_some_and(|most| self.depth >= most);
        if !is_deep && options.sitemap != SitemapMode::Only {
            self.follow(&scope, &harvest, keys, &mut discovery);
        }
        (is_wanted, discovery)
    }

    /// A redirect led where robots.txt forbids it: nothing of that page is used, and the crawl names it.
    fn blocked_at(&self, end: &Url) -> Discovery {
        let mut discovery = Discovery::default();
        discovery.blocked.push(Found { key: self.scope.key(end), url: end.to_string() });
        if self.is_start {
            let text = "robots.txt forbids the page that the start page redirects to, so it was not read.";
            discovery.warning = Some(text.to_owned());
        }
        discovery
    }

    /// A start page that redirects moves the site, as long as it is the same one.
    fn settle(&self, end: &Url, discovery: &mut Discovery) -> Arc<CrawlScope> {
        if *end == self.url {
            return Arc::clone(&self.scope);
        }
        if is_same_site(&self.url, end) || is_same_site(end, &self.url) || self.scope.options().allow_external_links {
            discovery.base = Some(end.to_string());
            return Arc::new(self.scope.at(end.clone()));
        }
        discovery.warning = Some(format!("The start page redirects to another site, {end}, which is not followed."));
        Arc::clone(&self.scope)
    }

    fn is_wanted(&self, scope: &CrawlScope, end: &Url, discovery: &mut Discovery) -> bool {
        if self.is_start {
            let is_wanted = scope.matches_patterns(&self.url);
            if !is_wanted {
                let text =
                    "The start page does not match includePaths and excludePaths: it was read for its links only.";
                warn(discovery, text);
            }
            return is_wanted;
        }
        if *end == self.url {
            return true;
        }
        scope.is_in_reach(end) && scope.matches_patterns(end)
    }

    /// Whether to believe what a page calls itself: only inside its site, where variants count as one page, and not what
    /// stands on a page about an error.
    fn is_trusted(&self, end: &Url, canonical: &Url) -> bool {
        !self.is_error && self.scope.options().deduplicate_similar_urls && is_same_site(end, canonical)
    }

    /// Sorts the page's links into those to follow and those that robots.txt forbids. Links to other hosts are judged
    /// when they are asked for. Of several addresses of one page the shortest is asked for: `/` and not `/index.html`.
    fn follow(&self, scope: &CrawlScope, harvest: &Harvest, keys: HashSet<String>, discovery: &mut Discovery) {
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut judge = LinkJudge::new(self.rules.as_ref(), &self.url);
        for link in &harvest.links {
            let Some(url) = usable(link) else { continue };
            if !scope.follows(&url) || !self.sites.allows(&url) {
                continue;
            }
            let key = scope.key(&url);
            if keys.contains(&key) {
                continue;
            }
            if let Some(place) = places.get(&key) {
                let known = discovery.found.get_mut(*place).filter(|known| known.key == key);
                if let Some(known) = known.filter(|known| url.as_str().len() < known.url.len()) {
                    known.url = url.into();
                }
                continue;
            }
            places.insert(key.clone(), discovery.found.len());
            let list = if judge.forbids(&url) { &mut discovery.blocked } else { &mut discovery.found };
            list.push(Found { key, url: url.into() });
        }
    }
}

fn warn(discovery: &mut Discovery, sentence: &str) {
    discovery.warning = Some(match discovery.warning.take() {
        Some(text) => format!("{text} {sentence}"),
        None => sentence.to_owned(),
    });
}

/// A link as an address to ask for: without its fragment.
fn usable(link: &str) -> Option<Url> {
    let mut url = Url::parse(link).ok()?;
    url.set_fragment(None);
    url.host().is_some().then_some(url)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use weir_shared::domain::crawl::CrawlOptions;

    use super::*;
    use crate::crawl::rules::rules_of;
    use crate::site::Robots;

    fn visit(at: &str, is_start: bool, options: CrawlOptions) -> Visit {
        let robots = Robots::parse(b"User-agent: *\nDisallow: /private/");
        Visit {
            sites: SiteRules::default(),
            scope: Arc::new(CrawlScope::new(Url::parse("http://x.test/").unwrap(), &options).unwrap()),
            rules: Some(rules_of(&robots, &options)),
            end_rules: Some(rules_of(&robots, &options)),
            url: Url::parse(at).unwrap(),
            is_error: false,
            is_start,
            depth: 1,
        }
    }

    fn harvest(url: &str, canonical: Option<&str>, links: &[&str]) -> Harvest {
        Harvest {
            url: Url::parse(url).unwrap(),
            canonical: canonical.map(|c| Url::parse(c).unwrap()),
            links: links.iter().map(|l| (*l).to_owned()).collect(),
        }
    }

    fn urls(list: &[Found]) -> Vec<&str> {
        list.iter().map(|f| f.url.as_str()).collect()
    }

    #[test]
    fn links_are_sorted_by_scope_and_robots_once_each() {
        let links = [
            "http://x.test/a#top",
            "http://www.x.test/a/",
            "http://x.test/b/index.html",
            "http://x.test/b/",
            "http://x.test/private/b",
            "http://y.test/c",
            "mailto:a@x.test",
            "http://x.test/me",
            "http://x.test/d?q",
        ];
        let (wanted, found) = visit("http://x.test/me", false, CrawlOptions::default()).conclude(harvest(
            "http://x.test/me",
            None,
            &links,
        ));
        assert!(wanted && found.landing.is_none() && found.canonical.is_none());
        assert_eq!(urls(&found.found), ["http://x.test/a", "http://x.test/b/", "http://x.test/d?q"]);
        assert_eq!(urls(&found.blocked), ["http://x.test/private/b"]);
        let shallow = CrawlOptions { max_discovery_depth: Some(1), ..CrawlOptions::default() };
        let (_, found) = visit("http://x.test/me", false, shallow).conclude(harvest("http://x.test/me", None, &links));
        assert!(found.found.is_empty() && found.blocked.is_empty());
    }

    #[test]
    fn a_redirect_must_end_in_the_crawl_and_gives_the_page_another_key() {
        let to = |end: &str| {
            let (wanted, found) =
                visit("http://x.test/a", false, CrawlOptions::default()).conclude(harvest(end, None, &[]));
            (wanted, usize::from(found.landing.is_some()))
        };
        assert_eq!(to("http://x.test/b"), (true, 1));
        assert_eq!(to("https://www.x.test/a/"), (true, 0));
        assert_eq!(to("http://y.test/b"), (false, 0));
        assert_eq!(to("http://x.test/private/b"), (false, 0));
        let shut = harvest("http://x.test/private/b", None, &["http://x.test/c"]);
        let (wanted, found) = visit("http://x.test/a", true, CrawlOptions::default()).conclude(shut);
        assert_eq!((wanted, urls(&found.blocked)), (false, vec!["http://x.test/private/b"]), "it is named");
        assert!(found.found.is_empty() && found.warning.is_some_and(|text| text.contains("robots.txt")));
    }

    #[test]
    fn a_canonical_address_counts_inside_the_site() {
        let names = |canonical: &str, options: CrawlOptions| {
            let page = harvest("http://x.test/a?x=1", Some(canonical), &[]);
            usize::from(visit("http://x.test/a?x=1", false, options).conclude(page).1.canonical.is_some())
        };
        assert_eq!(names("http://x.test/a", CrawlOptions::default()), 1);
        assert_eq!(names("http://y.test/a", CrawlOptions::default()), 0);
        let exact = CrawlOptions { deduplicate_similar_urls: false, ..CrawlOptions::default() };
        assert_eq!(names("http://x.test/a", exact), 0);
        let page = harvest("http://x.test/a?x=1", Some("http://x.test/a"), &[]);
        let broken = Visit { is_error: true, ..visit("http://x.test/a?x=1", false, CrawlOptions::default()) };
        assert!(broken.conclude(page).1.canonical.is_none(), "an error says nothing of its address");
    }

    #[test]
    fn a_start_page_moves_the_site_but_not_to_another_one() {
        let start = |end: &str| {
            let page = harvest(end, None, &["http://x.test/1", "http://docs.x.test/2"]);
            visit("http://x.test/", true, CrawlOptions::default()).conclude(page).1
        };
        let moved = start("http://docs.x.test/");
        assert_eq!(moved.base.as_deref(), Some("http://docs.x.test/"));
        assert_eq!(urls(&moved.found), ["http://docs.x.test/2"]);
        let gone = start("http://y.test/");
        assert!(gone.base.is_none() && gone.warning.is_some());
        assert_eq!(urls(&gone.found), ["http://x.test/1"]);
        let options = CrawlOptions { include_paths: vec!["^/blog".to_owned()], ..CrawlOptions::default() };
        let page = harvest("http://x.test/", None, &["http://x.test/blog/1", "http://x.test/about"]);
        let (wanted, found) = visit("http://x.test/", true, options).conclude(page);
        assert!(!wanted && found.warning.is_some());
        assert_eq!(urls(&found.found), ["http://x.test/blog/1"]);
    }
}
