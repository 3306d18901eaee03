//! The step of a crawl that reads the site's sitemaps and puts what they list into the frontier, batch by batch.
//!
//! It is a page row like any other, so that a worker that dies over it is replaced; what was put in stays, and is not
//! put in twice.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use weir_shared::clock;
use weir_shared::domain::crawl::SitemapMode;
use weir_shared::domain::crawl::scope::CrawlScope;
use weir_shared::domain::site_rules::SiteRules;
use weir_shared::error_code::ErrorCode;
use weir_shared::guests::Urgency;
use weir_shared::store::StoreResult;
use weir_shared::store::work::frontier::is_full;
use weir_shared::store::work::page::end::{Found, Outcome};
use weir_shared::store::work::page::rows::Claimed;

use super::ahead::Entry;
use super::rules::{LinkJudge, rules_of};
use crate::context::WorkerContext;
use crate::page::cpu::blocking;
use crate::page::next_try::next_try;
use crate::page::task::PageTask;
use crate::site::sitemap::{self, Asking, Batch, Bounds, Source};
use crate::site::sitemap_cache::SitemapCache;
use crate::site::{RobotsRules, SiteRoute};

/// Bound on the whole step.
const PATIENCE: Duration = Duration::from_secs(300);
/// Addresses that are waited for before some are put in.
const GROUP: usize = 1_000;
/// Batches read ahead.
const AHEAD: usize = 4;
/// How often it is looked whether the crawl wants more, while nothing comes.
const LOOK: Duration = Duration::from_secs(1);

/// Reads the sitemaps, as far as the crawl has room for what they list.
pub async fn run(task: &PageTask, scope: &Arc<CrawlScope>, route: SiteRoute) -> Outcome {
    let PageTask { context, page, .. } = task;
    let (options, wanted) = (scope.options(), &task.options().cache);
    let asking = match (wanted.is_only_cache(), wanted.is_asked()) {
        (true, _) => Asking::Nobody,
        (false, true) => Asking::OnceAnHour,
        (false, false) => Asking::Always,
    };
    let crawl = task.spec.crawl.as_ref();
    let base = crawl.map_or_else(|| scope.base().clone(), |crawl| crawl.signed(scope.base().clone()));
    let robots = match asking {
        Asking::Nobody => context.process.robots.known(&base, &route).unwrap_or_default(),
        _ => context.process.robots.get(&base, &route).await,
    };
    let rules = (!options.ignore_robots_txt).then(|| Arc::new(rules_of(&robots, options)));
    let mut bounds = Bounds::until(clock::deadline(PATIENCE));
    let pause = rules.as_ref().and_then(|rules| rules.crawl_delay);
    if options.delay.is_some() || pause.is_some() {
        bounds.at_once = 1;
    }
    let cache = SitemapCache::new(context.process.db.clone(), page.team_id, String::new(), true);
    let sites = route.sites.clone();
    let source = Source {
        team: page.team_id,
        fetcher: context.process.fetcher.clone(),
        route,
        headers: Arc::default(),
        login: crawl.and_then(|crawl| crawl.login.clone()),
        cache: Some(cache.clone()),
        asking,
    };
    let (sender, batches) = mpsc::channel(AHEAD);
    let starts = sitemap::starts(&robots, &base);
    let walk = sitemap::collect(&source, starts, bounds, sender);
    let (walk, added) = tokio::join!(walk, take_in(context, page, scope, (rules, sites), batches));
    cache.put(walk.fresh).await;
    cache.put_absent(walk.absent).await;
    match added {
        Ok(count) => {
            let warning = if count == 0 && options.sitemap == SitemapMode::Only {
                Some("No sitemap of the site lists a page of this crawl.")
            } else if walk.incomplete > 0 || walk.cut {
                Some("Some sitemaps could not be read to their end.")
            } else {
                None
            };
            Outcome::SitemapsRead { warning: warning.map(str::to_owned) }
        }
        Err(error) => {
            let message = format!("What the sitemaps list could not be stored: {error}");
            tracing::warn!(%error, job.id = %page.job_id, "what sitemaps list could not be stored");
            match next_try(page, false, context.process.db.now()) {
                Some(run_at) => Outcome::Retry { code: ErrorCode::Unknown, error: message, run_at },
                None => Outcome::Failed { code: ErrorCode::Unknown, error: message, credits: 0 },
            }
        }
    }
}

/// Puts what is listed into the frontier until there is no more, or no more is wanted. Returns how many addresses were
/// of the crawl.
async fn take_in(
    context: &WorkerContext,
    page: &Claimed,
    scope: &Arc<CrawlScope>,
    (rules, sites): (Option<Arc<RobotsRules>>, SiteRules),
    mut batches: mpsc::Receiver<Batch>,
) -> StoreResult<usize> {
    let mut entry = Entry::new(context, page, 0, None);
    let mut count = 0;
    let mut keys: HashSet<String> = HashSet::new();
    let (mut found, mut blocked) = (Vec::new(), Vec::new());
    loop {
        let (batch, is_idle) = match tokio::time::timeout(LOOK, batches.recv()).await {
            Ok(batch) => (batch, false),
            Err(_) => (None, true),
        };
        let is_last = batch.is_none() && !is_idle;
        if let Some(mut batch) = batch {
            batch.entries.retain(|entry| sites.allows(&entry.url));
            let (scope, rules) = (Arc::clone(scope), rules.clone());
            let sorted =
                blocking((page.team_id, Urgency::Background), move || Ok(sort(&scope, rules.as_deref(), batch))).await;
            let Ok((more_found, more_blocked)) = sorted else { continue };
            // Lists repeat themselves; a small memory saves most of the writes for that.
            if keys.len() > 100 * GROUP {
                keys.clear();
            }
            found.extend(more_found.into_iter().filter(|f: &Found| keys.insert(f.key.clone())));
            blocked.extend(more_blocked.into_iter().filter(|f: &Found| keys.insert(f.key.clone())));
        }
        if found.len() + blocked.len() >= GROUP || (is_last || is_idle) && !(found.is_empty() && blocked.is_empty()) {
            count += found.len();
            let wanted = entry.enter(&mut found.as_slice(), &mut blocked.as_slice()).await?;
            found.clear();
            blocked.clear();
            if !wanted.found {
                return Ok(count);
            }
        }
        // A file that does not come is not waited for where nobody wants what it lists.
        if is_last || is_idle && is_full(&context.process.db, page.job_id).await? {
            return Ok(count);
        }
    }
}

/// What of a batch the crawl follows, and what of that robots.txt forbids.
fn sort(scope: &CrawlScope, rules: Option<&RobotsRules>, batch: Batch) -> (Vec<Found>, Vec<Found>) {
    let (mut found, mut blocked) = (Vec::new(), Vec::new());
    let mut judge = LinkJudge::new(rules, scope.base());
    for entry in batch.entries {
        let url = entry.url;
        if !scope.follows(&url) {
            continue;
        }
        let list = if judge.forbids(&url) { &mut blocked } else { &mut found };
        list.push(Found { key: scope.key(&url), url: url.into() });
    }
    (found, blocked)
}
