//! One page of a crawl: may it be asked for, is it its turn, and where does it lead.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use url::Url;
use weir_shared::domain::crawl::scope::{CrawlScope, is_same_site};
use weir_shared::domain::crawl::{CrawlOptions, SitemapMode};
use weir_shared::domain::target::fetch_url;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::JobId;
use weir_shared::store::crawls::{self, Pace, SITEMAP_IDX, Turn};
use weir_shared::store::finish::Outcome;
use weir_shared::store::frontier::{Discovery, Found};
use weir_shared::store::jobs::JobSpec;
use weir_shared::store::pages::Claimed;
use weir_shared::store::{Db, StoreResult};
use weir_shared::time::Timestamp;

use super::read_sitemaps;
use super::scrape_page::{self, Harvest};
use super::ways;
use crate::context::WorkerContext;
use crate::site::{ROBOTS_AGENT, Robots, RobotsRules, Way};

/// Longest pause of a robots.txt that is kept, milliseconds: the same as for a caller's `delay`.
const MAX_PAUSE_MS: i64 = 60_000;
/// A turn that comes this soon is waited for, milliseconds; for a later one the page goes back to the queue.
const SOON_MS: i64 = 250;
/// Added to every pause, milliseconds: one request may be under way to the site for longer than the next.
const MARGIN_MS: i64 = 20;

/// Works on a claimed page, or on the step that reads the sitemaps.
pub(super) async fn work(
    context: &Arc<WorkerContext>,
    page: &Claimed,
    spec: &Arc<JobSpec>,
    scope: &Arc<CrawlScope>,
) -> Outcome {
    let Ok(url) = fetch_url(&page.url) else {
        return failed(ErrorCode::Site, "The URL is not valid.");
    };
    let way = Way { proxy: ways::basic(context, &spec.options), ..Way::default() };
    if page.idx == SITEMAP_IDX {
        // What it has put in stays, so the next worker may begin again.
        return tokio::select! {
            outcome = read_sitemaps::run(context, page, scope, way) => outcome,
            () = context.draining.cancelled() => Outcome::GivenBack,
        };
    }
    let robots = match scope.options().ignore_robots_txt {
        true => None,
        false => Some(context.process.robots.get(&url, &way).await),
    };
    let rules = robots.as_ref().map(|robots| rules_of(robots, scope.options()));
    // A site that cannot be reached says so better by itself.
    let is_unknown = robots.as_ref().is_some_and(|robots| robots.is_unreachable());
    let forbids = rules.as_ref().is_some_and(|rules| !rules.allows(path_and_query(&url)));
    if forbids && !is_unknown {
        return Outcome::Blocked { key: scope.key(&url) };
    }
    match wait_for_turn(&context.process.db, page, scope.options(), rules.as_ref(), &url).await {
        Ok(None) => {}
        Ok(Some(run_at)) => return Outcome::Postponed { run_at },
        Err(error) => {
            tracing::warn!(%error, page.id = %page.id, "a page's turn cannot be asked for; the page goes back");
            return Outcome::GivenBack;
        }
    }
    let mut result = scrape_page::attempt(context, page, spec).await;
    let harvest = result.as_mut().ok().and_then(|(product, _)| product.harvest.take());
    let outcome = scrape_page::judge(context, page, spec, result);
    match (outcome, harvest) {
        (Outcome::Done { .. }, _) if forbids => Outcome::Blocked { key: scope.key(&url) },
        (Outcome::Done { document, credits }, Some(harvest)) => {
            let visit = Visit { scope: Arc::clone(scope), rules, url, is_start: page.idx == 0, depth: page.depth };
            let found = scrape_page::blocking(move || Ok(visit.conclude(harvest))).await;
            match found {
                Ok((is_wanted, mut discovery)) => {
                    context.process.frontiers.forget_known(page.job_id, &mut discovery);
                    Outcome::Crawled {
                        document: is_wanted.then_some(document),
                        credits: if is_wanted { credits } else { 0 },
                        discovery: Box::new(discovery),
                    }
                }
                Err(error) => scrape_page::judge(context, page, spec, Err(error)),
            }
        }
        (outcome, _) => outcome,
    }
}

fn failed(code: ErrorCode, error: &str) -> Outcome {
    Outcome::Failed { code, error: error.to_owned(), credits: 0 }
}

/// What this crawl may ask for.
pub(super) fn rules_of(robots: &Robots, options: &CrawlOptions) -> RobotsRules {
    robots.rules(options.robots_user_agent.as_deref().unwrap_or(ROBOTS_AGENT))
}

/// What the rules of robots.txt are matched against.
pub(super) fn path_and_query(url: &Url) -> &str {
    &url[url::Position::BeforePath..url::Position::AfterQuery]
}

/// Waits until the page may be asked for. A time: the page is to come back then.
async fn wait_for_turn(
    db: &Db,
    page: &Claimed,
    options: &CrawlOptions,
    rules: Option<&RobotsRules>,
    url: &Url,
) -> StoreResult<Option<Timestamp>> {
    let paces = paces(page.job_id, options, rules, url);
    if paces.is_empty() {
        return Ok(None);
    }
    loop {
        let now = Timestamp::now();
        let mut tx = db.begin_relaxed().await?;
        let (wait, booked) = match crawls::take_turns(&mut tx, &paces, now).await? {
            Turn::Now => (0, None),
            Turn::NotBefore(at, pace) if at.ms_since(now) > SOON_MS => {
                (0, Some(crawls::book_turn(&mut tx, pace, page.job_id).await?))
            }
            Turn::NotBefore(at, _) => (at.ms_since(now).max(1), None),
        };
        tx.commit().await?;
        if wait == 0 {
            return Ok(booked);
        }
        tokio::time::sleep(Duration::from_millis(wait.unsigned_abs())).await;
    }
}

/// What a page has to wait for: the caller's `delay` counts for the crawl alone, a site's crawl delay for its host and
/// everybody.
fn paces(job: JobId, options: &CrawlOptions, rules: Option<&RobotsRules>, url: &Url) -> Vec<Pace> {
    let own = (options.delay.unwrap_or(0.0) * 1_000.0).ceil() as i64;
    let sites = rules.and_then(|rules| rules.crawl_delay).unwrap_or_default().as_millis();
    let sites = i64::try_from(sites).unwrap_or(MAX_PAUSE_MS).min(MAX_PAUSE_MS);
    let crawl = || format!("crawl:{job}");
    // By a digest: the row outlives what may not be kept.
    let host = || format!("host:{}", hex::encode(Sha256::digest(url.origin().ascii_serialization())));
    let mut paces = Vec::new();
    if own > 0 {
        paces.push(Pace { name: crawl(), pause_ms: own + MARGIN_MS });
    }
    if sites > 0 {
        paces.push(Pace { name: host(), pause_ms: sites + MARGIN_MS });
    }
    paces
}

/// A page that was fetched, before it is known where it leads.
struct Visit {
    scope: Arc<CrawlScope>,
    rules: Option<RobotsRules>,
    /// As asked for.
    url: Url,
    is_start: bool,
    depth: i64,
}

impl Visit {
    /// Whether the page is delivered, and what it leads to.
    fn conclude(self, harvest: Harvest) -> (bool, Discovery) {
        let mut discovery = Discovery::default();
        let mut scope = Arc::clone(&self.scope);
        if self.is_start {
            scope = self.settle(&harvest.url, &mut discovery);
        }
        let is_wanted = self.is_wanted(&scope, &harvest.url, &mut discovery);
        let own = scope.key(&self.url);
        let mut keys = HashSet::from([own]);
        for alias in [Some(&harvest.url), harvest.canonical.as_ref().filter(|url| self.is_trusted(&harvest.url, url))] {
            let Some(key) = alias.map(|url| scope.key(url)) else { continue };
            if is_wanted && keys.insert(key.clone()) {
                discovery.aliases.push(key);
            }
        }
        let options = scope.options();
        let is_deep = options.max_discovery_depth.is_some_and(|most| self.depth >= most);
        if !is_deep && options.sitemap != SitemapMode::Only {
            self.follow(&scope, &harvest, keys, &mut discovery);
        }
        (is_wanted, discovery)
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
                discovery.warning = Some(text.to_owned());
            }
            return is_wanted;
        }
        if *end == self.url {
            return true;
        }
        let is_allowed = self.url.origin() != end.origin()
            || self.rules.as_ref().is_none_or(|rules| rules.allows(path_and_query(end)));
        is_allowed && scope.is_in_reach(end) && scope.matches_patterns(end)
    }

    /// Whether to believe what a page calls itself: only inside its site, and where variants count as one page.
    fn is_trusted(&self, end: &Url, canonical: &Url) -> bool {
        self.scope.options().deduplicate_similar_urls && is_same_site(end, canonical)
    }

    /// Sorts the page's links into those to follow and those that robots.txt forbids. Links to other hosts are judged
    /// when they are asked for. Of several addresses of one page the shortest is asked for: `/` and not `/index.html`.
    fn follow(&self, scope: &CrawlScope, harvest: &Harvest, keys: HashSet<String>, discovery: &mut Discovery) {
        let mut places: HashMap<String, usize> = HashMap::new();
        for link in &harvest.links {
            let Some(url) = usable(link) else { continue };
            if !scope.follows(&url) {
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
            let forbids =
                |rules: &RobotsRules| url.origin() == self.url.origin() && !rules.allows(path_and_query(&url));
            let is_blocked = self.rules.as_ref().is_some_and(forbids);
            let list = if is_blocked { &mut discovery.blocked } else { &mut discovery.found };
            list.push(Found { key, url: url.into() });
        }
    }
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
    use super::*;

    fn visit(at: &str, is_start: bool, options: CrawlOptions) -> Visit {
        let robots = Robots::parse(b"User-agent: *\nDisallow: /private/");
        Visit {
            scope: Arc::new(CrawlScope::new(Url::parse("http://x.test/").unwrap(), &options).unwrap()),
            rules: Some(rules_of(&robots, &options)),
            url: Url::parse(at).unwrap(),
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
        assert!(wanted && found.aliases.is_empty());
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
            (wanted, found.aliases.len())
        };
        assert_eq!(to("http://x.test/b"), (true, 1));
        assert_eq!(to("https://www.x.test/a/"), (true, 0));
        assert_eq!(to("http://y.test/b"), (false, 0));
        assert_eq!(to("http://x.test/private/b"), (false, 0));
    }

    #[test]
    fn a_canonical_address_counts_inside_the_site() {
        let names = |canonical: &str, options: CrawlOptions| {
            let page = harvest("http://x.test/a?x=1", Some(canonical), &[]);
            visit("http://x.test/a?x=1", false, options).conclude(page).1.aliases.len()
        };
        assert_eq!(names("http://x.test/a", CrawlOptions::default()), 1);
        assert_eq!(names("http://y.test/a", CrawlOptions::default()), 0);
        let exact = CrawlOptions { deduplicate_similar_urls: false, ..CrawlOptions::default() };
        assert_eq!(names("http://x.test/a", exact), 0);
    }

    #[test]
    fn the_callers_delay_is_the_crawls_and_the_sites_is_everybodys() {
        let robots = Robots::parse(b"User-agent: *\nCrawl-delay: 2");
        let url = Url::parse("http://x.test/a").unwrap();
        let names = |delay: Option<f64>, robots: Option<&Robots>| {
            let options = CrawlOptions { delay, ..CrawlOptions::default() };
            let rules = robots.map(|robots| rules_of(robots, &options));
            let paces = paces(JobId::new(), &options, rules.as_ref(), &url);
            let kind = |pace: Pace| (pace.name.split(':').next().unwrap().to_owned(), pace.pause_ms - MARGIN_MS);
            paces.into_iter().map(kind).collect::<Vec<_>>()
        };
        let (own, sites) = (("crawl".to_owned(), 5_000), ("host".to_owned(), 2_000));
        assert_eq!(names(None, None), []);
        assert_eq!(names(Some(5.0), None), std::slice::from_ref(&own));
        assert_eq!(names(None, Some(&robots)), std::slice::from_ref(&sites));
        assert_eq!(names(Some(5.0), Some(&robots)), [own, sites]);
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
