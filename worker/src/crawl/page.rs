//! One page of a crawl: may it be asked for, is it its turn, and where does it lead.

use std::sync::Arc;

use url::Url;
use weir_shared::domain::crawl::scope::CrawlScope;
use weir_shared::domain::target::{fetch_url, strip_user};
use weir_shared::error_code::ErrorCode;
use weir_shared::store::work::page::end::{Encoded, Outcome};
use weir_shared::store::work::page::rows::SITEMAP_IDX;

use super::ahead;
use super::rules::{forbids, rules_of};
use super::sitemaps;
use super::turn::wait_for_turn;
use super::visit::Visit;
use crate::page::attempt::{Tried, attempt, attempt_stored, judge};
use crate::page::cpu::blocking;
use crate::page::product::Harvest;
use crate::page::rest;
use crate::page::task::PageTask;
use crate::site::{Robots, SiteRoute};

/// Works on a claimed page, or on the step that reads the sitemaps.
pub async fn work(task: &PageTask, scope: &Arc<CrawlScope>) -> Outcome {
    let PageTask { context, page, .. } = task;
    let Ok(mut url) = fetch_url(&page.url) else {
        return Outcome::Failed { code: ErrorCode::Site, error: "The URL is not valid.".to_owned(), credits: 0 };
    };
    // A page is known by its address alone. What robots.txt is asked for with is the caller's, and not a link's.
    strip_user(&mut url);
    let signed = task.spec.crawl.as_ref().map_or_else(|| url.clone(), |crawl| crawl.signed(url.clone()));
    let sites = &task.options().sites;
    let refused =
        format!("The site {} is blocked by the lists of threatProtection.", url.host_str().unwrap_or_default());
    if !sites.allows(&url) {
        return Outcome::Failed { code: ErrorCode::AddressBlocked, error: refused, credits: 0 };
    }
    let route = SiteRoute {
        accept_language: None,
        proxies: Some(Arc::clone(&context.process.proxies)),
        country: task.options().location.as_ref().map(|location| location.country.clone()),
        sites: sites.clone(),
    };
    if page.idx == SITEMAP_IDX {
        if let Some(outcome) = rest::resting(task).await {
            return outcome;
        }
        // Addresses that it has entered stay, so the next worker may read the sitemaps from the beginning.
        return tokio::select! {
            outcome = sitemaps::run(task, scope, route) => outcome,
            () = context.draining.cancelled() => Outcome::GivenBack,
        };
    }
    // For what is kept of the page nothing is asked of the site, robots.txt neither: what is known of it counts.
    if let Some(stored) = attempt_stored(task).await {
        let robots = context.process.robots.known(&signed, &route).filter(|_| !scope.options().ignore_robots_txt);
        let at_end = RobotsAtEnd { route: &route, is_stored: true };
        return end(task, scope, url, robots, at_end, stored).await;
    }
    if let Some(outcome) = rest::resting(task).await {
        return outcome;
    }
    let robots = match scope.options().ignore_robots_txt {
        true => None,
        false => Some(context.process.robots.get(&signed, &route).await),
    };
    let rules = robots.as_ref().map(|robots| rules_of(robots, scope.options()));
    if forbids(rules.as_ref(), &url) {
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
    let tried = attempt(task).await;
    end(task, scope, url, robots, RobotsAtEnd { route: &route, is_stored: false }, tried).await
}

/// How robots.txt of the site where a page ended is had.
struct RobotsAtEnd<'a> {
    route: &'a SiteRoute,
    /// No site was asked for the page, and none is for the file.
    is_stored: bool,
}

impl RobotsAtEnd<'_> {
    /// The file that counts for `end`, of a page that was asked for at `url` and whose own file is `robots`.
    async fn get(&self, task: &PageTask, robots: &Arc<Robots>, url: &Url, end: &Url) -> Option<Arc<Robots>> {
        let store = &task.context.process.robots;
        if end.origin() == url.origin() {
            return Some(Arc::clone(robots));
        }
        if self.is_stored { store.known(end, self.route) } else { Some(store.get(end, self.route).await) }
    }
}

/// The end of a page, as far as robots.txt lets it have one.
async fn end(
    task: &PageTask,
    scope: &Arc<CrawlScope>,
    url: Url,
    robots: Option<Arc<Robots>>,
    at_end: RobotsAtEnd<'_>,
    mut result: Tried,
) -> Outcome {
    let rules = robots.as_ref().map(|robots| rules_of(robots, scope.options()));
    let is_forbidden = forbids(rules.as_ref(), &url);
    let is_error = result.as_ref().is_ok_and(|(product, _)| product.status >= 400);
    let harvest = result.as_mut().ok().and_then(|(product, _)| product.harvest.take());
    match (judge(task, result), harvest) {
        (Outcome::Done { .. }, _) if is_forbidden => Outcome::Blocked { key: scope.key(&url) },
        (Outcome::Done { document, credits }, Some(harvest)) => {
            let (sites, page) = (task.options().sites.clone(), &task.page);
            // A page that is not delivered wherever it ended needs no other site's file.
            let is_open = page.idx == 0 || scope.is_in_reach(&harvest.url);
            let end_robots = match robots.filter(|_| is_open && harvest.url != url) {
                Some(robots) => at_end.get(task, &robots, &url, &harvest.url).await,
                None => None,
            };
            let end_rules = end_robots.map(|robots| rules_of(&robots, scope.options()));
            // The same page by another way, as over https: it is blocked under its own address.
            let key = scope.key(&url);
            if key == scope.key(&harvest.url) && forbids(end_rules.as_ref(), &harvest.url) {
                return Outcome::Blocked { key };
            }
            let visit = Visit {
                scope: Arc::clone(scope),
                rules,
                end_rules,
                sites,
                url,
                is_error,
                is_start: page.idx == 0,
                depth: page.depth,
            };
            conclude(task, visit, harvest, document, credits).await
        }
        (outcome, _) => outcome,
    }
}

/// The end of a page that has its document: what it leads to, and whether it belongs to the crawl and is delivered.
async fn conclude(task: &PageTask, visit: Visit, harvest: Harvest, document: Encoded, credits: i64) -> Outcome {
    match blocking(task.holder(), move || Ok(visit.conclude(harvest))).await {
        Ok((is_wanted, mut discovery)) => {
            task.context.process.frontiers.forget_known(task.page.job_id, &mut discovery);
            ahead::enter(task, &mut discovery).await;
            Outcome::Crawled {
                document: is_wanted.then_some(document),
                credits: if is_wanted { credits } else { 0 },
                discovery: Box::new(discovery),
            }
        }
        Err(error) => judge(task, Err(error)),
    }
}
