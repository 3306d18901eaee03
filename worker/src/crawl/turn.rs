//! When a page of a crawl may be asked for: the caller's `delay` and the site's crawl delay are kept over all workers.

use std::time::Duration;

use url::Url;
use weir_shared::domain::crawl::CrawlOptions;
use weir_shared::ids::JobId;
use weir_shared::store::accounts::turns::{self, Pace, Turn};
use weir_shared::store::work::page::rows::Claimed;
use weir_shared::store::{Db, StoreResult};
use weir_shared::time::Timestamp;

use crate::site::RobotsRules;

/// Longest pause of a robots.txt that is kept, milliseconds: the same as for a caller's `delay`.
const MAX_PAUSE_MS: i64 = 60_000;
/// A turn that comes this soon is waited for, milliseconds; for a later one the page goes back to the queue.
const SOON_MS: i64 = 250;
/// Added to every pause, milliseconds: one request may be under way to the site for longer than the next.
const MARGIN_MS: i64 = 20;

/// Waits until the page may be asked for. A time: the page is to come back then.
pub async fn wait_for_turn(
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
        let now = db.now();
        let mut tx = db.begin_relaxed().await?;
        let (wait, booked) = match turns::take_turns(&mut tx, &paces, now).await? {
            Turn::Now => (0, None),
            Turn::NotBefore(at, pace) if at.ms_since(now) > SOON_MS => {
                (0, Some(turns::book_turn(&mut tx, pace, page.job_id).await?))
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
    let host = || format!("host:{}", turns::host(url));
    let mut paces = Vec::new();
    if own > 0 {
        paces.push(Pace { name: crawl(), pause_ms: own + MARGIN_MS });
    }
    if sites > 0 {
        paces.push(Pace { name: host(), pause_ms: sites + MARGIN_MS });
    }
    paces
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::crawl::rules::rules_of;
    use crate::site::Robots;

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
}
