//! What robots.txt says about the pages of a crawl.

use url::{Origin, Url};
use weir_shared::domain::crawl::CrawlOptions;

use crate::site::{ROBOTS_AGENT, Robots, RobotsRules};

/// What this crawl may ask for.
pub fn rules_of(robots: &Robots, options: &CrawlOptions) -> RobotsRules {
    robots.rules(options.robots_user_agent.as_deref().unwrap_or(ROBOTS_AGENT))
}

/// Whether robots.txt forbids an address; without its rules nothing is forbidden.
pub fn forbids(rules: Option<&RobotsRules>, url: &Url) -> bool {
    rules.is_some_and(|rules| !rules.allows(path_and_query(url)))
}

/// What the rules of robots.txt are matched against.
fn path_and_query(url: &Url) -> &str {
    &url[url::Position::BeforePath..url::Position::AfterQuery]
}

/// Work that the links of one page, or of one part of a sitemap, are judged with ([`RobotsRules::judge`]): about a second
/// where a site has thousands of rules with stars and as many links.
const MAX_WORK: usize = 50_000_000;

/// Judges the addresses that a page or a sitemap leads to, before they are asked for. Those of other origins, and those
/// that there is no time for, are judged when they are asked for.
pub struct LinkJudge<'a> {
    rules: Option<&'a RobotsRules>,
    origin: Origin,
    left: usize,
}

impl<'a> LinkJudge<'a> {
    /// Judges by the rules of the origin of `site`; `None`: there are none.
    pub fn new(rules: Option<&'a RobotsRules>, site: &Url) -> Self {
        Self { rules, origin: site.origin(), left: MAX_WORK }
    }

    /// Whether the address is known to be forbidden.
    pub fn forbids(&mut self, url: &Url) -> bool {
        let Some(rules) = self.rules.filter(|_| self.left > 0 && url.origin() == self.origin) else { return false };
        let (is_allowed, work) = rules.judge(path_and_query(url));
        self.left = self.left.saturating_sub(work);
        !is_allowed
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn many_rules_and_many_links_take_a_bounded_time() {
        let mut file = "User-agent: *\nDisallow: /shut\n".to_owned();
        for n in 0..19_000 {
            writeln!(file, "Disallow: /*q{n}z").unwrap();
        }
        let rules = Robots::parse(file.as_bytes()).rules("x");
        let site = Url::parse("http://x.test/").unwrap();
        let mut judge = LinkJudge::new(Some(&rules), &site);
        assert!(judge.forbids(&site.join("/shut/1").unwrap()));
        assert!(!judge.forbids(&Url::parse("http://y.test/shut/1").unwrap()), "another origin's");
        let judged = (0..15_000).take_while(|n| {
            judge.forbids(&site.join(&format!("/page/{n}/of/the/site")).unwrap());
            judge.left > 0
        });
        assert!((20..1_000).contains(&judged.count()), "enough for what is usual");
        assert!(!judge.forbids(&site.join("/shut/1").unwrap()), "it is judged when it is asked for");
    }
}
