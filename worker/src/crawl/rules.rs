//! What robots.txt says about the pages of a crawl.

use url::Url;
use weir_shared::domain::crawl::CrawlOptions;

use crate::site::{ROBOTS_AGENT, Robots, RobotsRules};

/// What this crawl may ask for.
pub fn rules_of(robots: &Robots, options: &CrawlOptions) -> RobotsRules {
    robots.rules(options.robots_user_agent.as_deref().unwrap_or(ROBOTS_AGENT))
}

/// What the rules of robots.txt are matched against.
pub fn path_and_query(url: &Url) -> &str {
    &url[url::Position::BeforePath..url::Position::AfterQuery]
}
