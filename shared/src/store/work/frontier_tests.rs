//! How crawls grow and end in the store, on both databases.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::HashMap;

use url::Url;

use super::*;
use crate::domain::crawl::CrawlOptions;
use crate::domain::crawl::address::{KeyRules, key};
use crate::domain::job::{JobKind, PageState, WebhookEvent};
use crate::domain::scrape::ScrapeOptions;
use crate::error_code::ErrorCode;
use crate::ids::WorkerId;
use crate::store::accounts::team_lock;
use crate::store::accounts::turns::{self, Pace, Turn};
use crate::store::contents::version::Body;
use crate::store::db::slices::Slices;
use crate::store::testing::{self, databases, team};
use crate::store::upkeep::sweep;
use crate::store::work::crawls::NewCrawl;
use crate::store::work::jobs::{JobRow, NewJob};
use crate::store::work::page::claim;
use crate::store::work::page::end::{Discovery, Encoded};
use crate::store::work::page::finish::finish_many;
use crate::store::work::webhooks::{self, Attempt};
use crate::store::work::{cancel, pages};
use crate::{on_db, on_pool};

const SITE: &str = "http://site.test/";

fn found(path: &str) -> Found {
    let url = Url::parse(SITE).unwrap().join(path).unwrap();
    Found { key: key(&url, KeyRules { ignore_query: false, similar: true }), url: url.into() }
}

fn list(paths: &[&str]) -> Vec<Found> {
    paths.iter().map(|path| found(path)).collect()
}

/// One crawl under test, with the worker that works on it.
struct Crawl {
    db: Db,
    id: JobId,
    team: TeamId,
    worker: WorkerId,
}

impl Crawl {
    async fn start(db: Db, options: CrawlOptions) -> Self {
        let team = team(&db, "crawler").await;
        let (id, now) = (JobId::new(), db.now());
        let mut tx = db.begin().await.unwrap();
        let job = NewJob {
            id,
            team,
            key: None,
            kind: JobKind::Crawl,
            options: &ScrapeOptions::default(),
            target: SITE,
            origin: None,
            max_concurrency: None,
            webhook: None,
            total: crawls::first_pages(&options),
            created_at: now,
            expires_at: now.plus_ms(86_400_000),
        };
        jobs::insert(&mut tx, &job).await.unwrap();
        let crawl = NewCrawl { job: id, team, url: SITE, options: &options, limit: options.limit };
        crawls::insert(&mut tx, &crawl, now).await.unwrap();
        tx.commit().await.unwrap();
        Self { db, id, team, worker: WorkerId::new() }
    }

    async fn claim(&self) -> Vec<Claimed> {
        let mut tx = self.db.begin().await.unwrap();
        let claim = claim::claim(&mut tx, self.team, self.worker, 100, 1_000, self.db.now()).await.unwrap();
        tx.commit().await.unwrap();
        claim.pages
    }

    async fn finish(&self, ends: Vec<(&Claimed, Outcome)>) {
        let ends = ends.into_iter().map(|(page, outcome)| Finished {
            page: page.clone(),
            kind: Some(JobKind::Crawl),
            key: None,
            outcome,
        });
        let ends: Vec<Finished> = ends.collect();
        let mut tx = self.db.begin().await.unwrap();
        finish_many(&mut tx, &ends, self.db.now()).await.unwrap();
        tx.commit().await.unwrap();
        self.recount().await;
    }

    async fn job(&self) -> JobRow {
        jobs::load(&self.db, self.id).await.unwrap().unwrap()
    }

    /// Every count is that of its rows.
    async fn recount(&self) {
        let rows = pages::list(&self.db, self.id, None, 100_000).await.unwrap();
        let count = |state: PageState| rows.iter().filter(|p| p.state == state).count() as i64;
        let job = self.job().await;
        let open = count(PageState::Queued) + count(PageState::Running);
        assert_eq!(
            (job.queued, job.completed, job.failed, job.total),
            (
                count(PageState::Queued),
                count(PageState::Done),
                count(PageState::Failed),
                open + job.completed + job.failed
            )
        );
        let hidden = rows.iter().filter(|p| p.idx < 0 && matches!(p.state, PageState::Queued | PageState::Running));
        assert_eq!(job.hidden, hidden.count() as i64);
        let urls = addresses_by_state(&self.db, self.id).await.unwrap();
        let of = |state: &str| urls.get(state).copied().unwrap_or(0);
        let counts = crawls::counts(&self.db, self.id).await.unwrap().unwrap();
        assert_eq!((counts.discovered, counts.blocked), (of("taken") + of("waiting"), of("blocked")));
    }
}

/// How many addresses of a crawl's frontier are in each state.
async fn addresses_by_state(db: &Db, job: JobId) -> StoreResult<HashMap<String, i64>> {
    const SQL: &str = "SELECT state, COUNT(*) FROM crawl_url WHERE job_id = $1 GROUP BY state";
    let rows: Vec<(String, i64)> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(job).fetch_all(pool).await?);
    Ok(rows.into_iter().collect())
}

fn crawled(discovery: Discovery) -> Outcome {
    let body = Body::Inline(zstd::bulk::compress(b"{}", 1).unwrap());
    Outcome::Crawled {
        document: Some(Encoded { size: 2, packed: 2, body, version: None, snapshot: None, derived: None, steps: None }),
        credits: 1,
        discovery: Box::new(discovery),
    }
}

fn leads_to(paths: &[&str]) -> Outcome {
    crawled(Discovery { found: list(paths), ..Discovery::default() })
}

fn skip(limit: i64) -> CrawlOptions {
    CrawlOptions { limit, sitemap: crate::domain::crawl::SitemapMode::Skip, ..CrawlOptions::default() }
}

fn urls(pages: &[Claimed]) -> Vec<&str> {
    pages.iter().map(|page| page.url.trim_start_matches("http://site.test")).collect()
}

#[tokio::test]
async fn a_crawl_takes_in_each_address_once_up_to_its_limit() {
    for db in databases().await {
        let crawl = Crawl::start(db, skip(4)).await;
        let start = crawl.claim().await;
        assert_eq!((urls(&start), start[0].depth), (vec!["/"], 0));
        crawl.finish(vec![(&start[0], leads_to(&["/", "/a", "/b", "/a"]))]).await;
        let two = crawl.claim().await;
        assert_eq!((urls(&two), two[1].depth), (vec!["/a", "/b"], 1));
        // Both ends in one group, with the same finds: one has room, the next ones wait.
        let (one, other) = (leads_to(&["/b", "/c", "/d", "/e"]), leads_to(&["/e", "/c", "/f", "/g", "/h"]));
        crawl.finish(vec![(&two[0], one), (&two[1], other)]).await;
        assert_eq!(crawls::counts(&crawl.db, crawl.id).await.unwrap().unwrap().discovered, 9);
        let last = crawl.claim().await;
        assert_eq!((urls(&last), last[0].depth), (vec!["/c"], 2));
        crawl.finish(vec![(&last[0], leads_to(&["/x"]))]).await;
        let job = crawl.job().await;
        assert_eq!((job.status, job.completed, job.total_shown()), (JobStatus::Completed, 4, 4));
        assert_eq!(job.credits_used, 4);
        // An attempt that was overtaken brings nothing.
        crawl.finish(vec![(&last[0], leads_to(&["/y"]))]).await;
        assert_eq!(crawl.job().await.completed, 4);
    }
}

#[tokio::test]
async fn duplicates_and_forbidden_pages_free_their_room() {
    for db in databases().await {
        let crawl = Crawl::start(db, skip(3)).await;
        let start = crawl.claim().await;
        let links = ["/a", "/b", "/c", "/d", "/e"];
        let discovery = Discovery {
            found: list(&links),
            blocked: list(&["/no"]),
            base: Some(SITE.to_owned()),
            ..Discovery::default()
        };
        crawl.finish(vec![(&start[0], crawled(discovery))]).await;
        let pages = crawl.claim().await;
        assert_eq!(urls(&pages), ["/a", "/b"]);
        // /a ended at /b, which is being fetched: it is dropped. /b says it is /z, which nobody knows.
        let ends_at = |path: &str| crawled(Discovery { landing: Some(found(path).key), ..Discovery::default() });
        crawl.finish(vec![(&pages[0], ends_at("/b")), (&pages[1], ends_at("/z"))]).await;
        let pages = crawl.claim().await;
        assert_eq!(urls(&pages), ["/c"]);
        crawl.finish(vec![(&pages[0], Outcome::Blocked { key: found("/c").key })]).await;
        let pages = crawl.claim().await;
        assert_eq!(urls(&pages), ["/d"]);
        // It ended at /a, whose page was dropped, and at /e, which was waiting: both are its own now.
        let (landing, canonical) = (Some(found("/a").key), Some(found("/e").key));
        crawl.finish(vec![(&pages[0], crawled(Discovery { landing, canonical, ..Discovery::default() }))]).await;
        let job = crawl.job().await;
        assert_eq!((job.status, job.completed, job.total_shown()), (JobStatus::Completed, 3, 3));
        assert_eq!(job.credits_used, 3);
        let blocked = crawls::blocked(&crawl.db, crawl.id, 10).await.unwrap();
        assert_eq!(blocked, ["http://site.test/c", "http://site.test/no"].map(str::to_owned));
        let bytes = crawls::bytes_of_blocked(&crawl.db, crawl.id, 10).await.unwrap();
        assert_eq!(bytes, (2, blocked.iter().map(String::len).sum::<usize>() as i64));
        let counts = crawls::counts(&crawl.db, crawl.id).await.unwrap().unwrap();
        assert_eq!((counts.dropped, counts.warning), (1, None));
        assert!(jobs::spec(&crawl.db, crawl.id).await.unwrap().unwrap().is_settled());
    }
}

#[tokio::test]
async fn a_crawl_of_nothing_but_duplicates_comes_to_an_end() {
    for db in databases().await {
        let crawl = Crawl::start(db, skip(2)).await;
        let start = crawl.claim().await;
        crawl.finish(vec![(&start[0], leads_to(&["/0"]))]).await;
        let mut fetched = 0;
        loop {
            let pages = crawl.claim().await;
            let Some(page) = pages.first() else { break };
            fetched += 1;
            let landing = Some(found("/").key);
            let next = list(&[&format!("/{fetched}")]);
            crawl.finish(vec![(page, crawled(Discovery { landing, found: next, ..Discovery::default() }))]).await;
        }
        assert_eq!(fetched, 103, "the limit and a hundred more");
        assert_eq!((crawl.job().await.status, crawl.job().await.completed), (JobStatus::Completed, 1));
        let warning = crawls::counts(&crawl.db, crawl.id).await.unwrap().unwrap().warning;
        assert!(warning.is_some_and(|text| text.contains("fewer pages than its limit allows")));
    }
}

#[tokio::test]
async fn sitemaps_are_read_in_a_hidden_step_that_is_fenced_like_a_page() {
    for db in databases().await {
        let crawl = Crawl::start(db, CrawlOptions { limit: 3, ..CrawlOptions::default() }).await;
        let job = crawl.job().await;
        assert_eq!((job.total, job.total_shown(), job.waiting().queued), (2, 1, 1));
        let pages = crawl.claim().await;
        let step = pages.iter().find(|p| p.idx == SITEMAP_IDX).unwrap();
        let start = pages.iter().find(|p| p.idx == 0).unwrap();
        let now = crawl.db.now();
        let lists = async |found: &[&str], blocked: &[&str]| {
            let (found, blocked) = (list(found), list(blocked));
            let ahead = Ahead { found: &found, blocked: &blocked, depth: 0, base: None };
            enter_ahead(&crawl.db, step, ahead, now).await.unwrap()
        };
        let (all, none) = (Wanted { found: true, blocked: true }, Wanted { found: false, blocked: false });
        assert_eq!(lists(&["/", "/a"], &["/no"]).await, all);
        assert_eq!(lists(&["/a", "/b", "/c", "/d", "/e", "/f"], &[]).await, all, "some wait for room");
        crawl.recount().await;
        // A worker that counts as dead adds nothing; another takes the step over.
        crawl.finish(vec![(step, Outcome::Lost { reason: "the worker died" })]).await;
        assert_eq!(lists(&["/g"], &[]).await, none);
        let pages = crawl.claim().await;
        assert_eq!(pages.len(), 3);
        let again = pages.iter().find(|p| p.idx == SITEMAP_IDX).unwrap();
        crawl.finish(vec![(again, Outcome::SitemapsRead { warning: Some("Note.".to_owned()) })]).await;
        assert_eq!(crawl.job().await.hidden, 0);
        crawl.finish(vec![(start, leads_to(&["/z"]))]).await;
        assert!(!is_full(&crawl.db, crawl.id).await.unwrap(), "a page may still be another one again");
        let ends = pages.iter().filter(|p| p.idx > 0).map(|p| (p, leads_to(&[]))).collect();
        crawl.finish(ends).await;
        assert!(is_full(&crawl.db, crawl.id).await.unwrap());
        let job = crawl.job().await;
        assert_eq!((job.status, job.completed, job.total), (JobStatus::Completed, 3, 3));
        let warning = crawls::counts(&crawl.db, crawl.id).await.unwrap().unwrap().warning;
        assert_eq!(warning.as_deref(), Some("Note."));

        // Past its expiry nothing of it is left.
        let later = crawl.db.now().plus_ms(90_000_000);
        sweep::expire(&crawl.db, &mut Slices::default(), later).await.unwrap();
        assert!(crawls::counts(&crawl.db, crawl.id).await.unwrap().is_none());
        assert!(addresses_by_state(&crawl.db, crawl.id).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_crawl_with_all_its_pages_waits_for_no_sitemap() {
    for db in databases().await {
        let crawl = Crawl::start(db, CrawlOptions { limit: 1, ..CrawlOptions::default() }).await;
        let pages = crawl.claim().await;
        let start = pages.iter().find(|p| p.idx == 0).unwrap();
        assert!(!is_full(&crawl.db, crawl.id).await.unwrap());
        crawl.finish(vec![(start, leads_to(&["/a"]))]).await;
        assert_eq!(crawl.job().await.status, JobStatus::Scraping, "the step is under way");
        assert!(is_full(&crawl.db, crawl.id).await.unwrap());
    }
}

#[tokio::test]
async fn what_is_entered_before_the_end_of_its_page_is_there_once_whoever_dies() {
    for db in databases().await {
        let crawl = Crawl::start(db, skip(5)).await;
        let start = crawl.claim().await.remove(0);
        let paths: Vec<String> = (0..1_200).map(|n| format!("/{n}")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let (found, blocked) = (list(&paths), list(&["/no"]));
        let base = "http://www.site.test/";
        let enter = async |page: &Claimed, found: &[Found]| {
            let ahead = Ahead { found, blocked: &blocked, depth: 1, base: Some(base) };
            enter_ahead(&crawl.db, page, ahead, crawl.db.now()).await.unwrap()
        };
        let entered = async || {
            crawl.recount().await;
            let counts = crawls::counts(&crawl.db, crawl.id).await.unwrap().unwrap();
            (crawl.job().await.total, counts.discovered, counts.blocked)
        };
        assert!(enter(&start, &found[..3]).await.found);
        assert_eq!(entered().await, (4, 4, 1));
        assert!(jobs::spec(&crawl.db, crawl.id).await.unwrap().unwrap().is_settled(), "they know where the site is");
        // Its worker dies; the next one goes through all of them.
        crawl.finish(vec![(&start, Outcome::Lost { reason: "the worker died" })]).await;
        assert_eq!(enter(&start, &found).await, Wanted { found: false, blocked: false });
        assert_eq!(entered().await, (4, 4, 1));
        let pages = crawl.claim().await;
        let start = pages.iter().find(|page| page.idx == 0).unwrap();
        assert!(enter(start, &found[..600]).await.found);
        assert!(!enter(start, &found[600..]).await.found, "as many wait as may");
        assert_eq!(entered().await, (5, 1_005, 1));
        crawl.finish(pages.iter().map(|page| (page, leads_to(&[]))).collect()).await;
        let rest = crawl.claim().await;
        crawl.finish(rest.iter().map(|page| (page, leads_to(&[]))).collect()).await;
        let job = crawl.job().await;
        assert_eq!((job.status, job.completed, job.total), (JobStatus::Completed, 5, 5));
    }
}

#[tokio::test]
async fn a_page_that_calls_itself_another_one_is_lost_with_none() {
    for db in databases().await {
        let crawl = Crawl::start(db, skip(10)).await;
        let start = crawl.claim().await;
        crawl.finish(vec![(&start[0], leads_to(&["/a", "/b", "/c", "/d", "/down", "/gone", "/well"]))]).await;
        let claimed = crawl.claim().await;
        let page = |path: &str| claimed.iter().find(|page| page.url.ends_with(path)).unwrap();
        let is = |path: &str| crawled(Discovery { canonical: Some(found(path).key), ..Discovery::default() });
        let error = || crawled(Discovery { is_error: true, ..Discovery::default() });
        let fail = Outcome::Failed { code: ErrorCode::Site, error: "gone".to_owned(), credits: 0 };
        // Three call themselves pages that are under way; of these one is well.
        crawl.finish(vec![(page("/a"), is("/down")), (page("/b"), is("/gone")), (page("/c"), is("/well"))]).await;
        assert_eq!(crawl.job().await.completed, 1);
        crawl.finish(vec![(page("/down"), fail), (page("/gone"), error()), (page("/well"), leads_to(&[]))]).await;
        // What a crawl notes of a delivered page is shown to nobody as its failure.
        let shown = async |path: &str| {
            let row = pages::load(&crawl.db, page(path).id).await.unwrap().unwrap();
            (row.state, row.error)
        };
        assert_eq!(shown("/gone").await, (PageState::Done, None));
        assert_eq!(shown("/down").await, (PageState::Failed, Some("gone".to_owned())));
        assert_eq!(
            shown("/c").await.1,
            Some(format!("it is the same as page {}, as it says itself", page("/well").id))
        );
        // What is known to be an error takes nothing along.
        crawl.finish(vec![(page("/d"), is("/gone"))]).await;
        let again = crawl.claim().await;
        assert_eq!(urls(&again), ["/a", "/b"]);
        crawl.finish(vec![(&again[0], is("/down")), (&again[1], is("/gone"))]).await;
        let job = crawl.job().await;
        assert_eq!((job.status, job.completed, job.failed), (JobStatus::Completed, 6, 1));
        assert_eq!(crawls::counts(&crawl.db, crawl.id).await.unwrap().unwrap().dropped, 1, "/c, which is /well");
    }
}

#[tokio::test]
async fn a_crawl_fails_when_nothing_but_failures_came_of_it() {
    for db in databases().await {
        let crawl = Crawl::start(db, CrawlOptions::default()).await;
        let pages = crawl.claim().await;
        let fail = || Outcome::Failed { code: ErrorCode::Site, error: "gone".to_owned(), credits: 0 };
        for page in &pages {
            crawl.finish(vec![(page, fail())]).await;
        }
        let job = crawl.job().await;
        assert_eq!((job.status, job.failed, job.total, job.total_shown()), (JobStatus::Failed, 1, 1, 0));
        assert_eq!(pages::first_failure(&crawl.db, crawl.id).await.unwrap().as_deref(), Some("gone"));
        let bytes = pages::bytes_of_failed(&crawl.db, crawl.id, 10).await.unwrap();
        assert_eq!(bytes, (SITE.len() + "gone".len()) as i64);
    }
}

#[tokio::test]
async fn a_cancelled_crawl_grows_no_more() {
    for db in databases().await {
        let crawl = Crawl::start(db, CrawlOptions::default()).await;
        let active = crawls::active(&crawl.db, crawl.team, 10).await.unwrap();
        assert_eq!((active.len(), active[0].url.as_str()), (1, SITE));
        let bytes = SITE.len() + active[0].options.len() + active[0].scrape_options.len();
        let counted = crawls::bytes_of_active(&crawl.db, crawl.team, 10).await.unwrap();
        assert_eq!(counted, (1, bytes as i64));
        let mut tx = crawl.db.begin().await.unwrap();
        let page = claim::claim(&mut tx, crawl.team, crawl.worker, 1, 1_000, crawl.db.now()).await.unwrap().pages;
        tx.commit().await.unwrap();
        let mut tx = crawl.db.begin().await.unwrap();
        assert!(cancel::job(&mut tx, crawl.id, crawl.db.now()).await.unwrap());
        tx.commit().await.unwrap();
        crawl.recount().await;
        assert!(crawls::active(&crawl.db, crawl.team, 10).await.unwrap().is_empty());
        let end = match page[0].idx {
            0 => leads_to(&["/a"]),
            _ => Outcome::SitemapsRead { warning: None },
        };
        crawl.finish(vec![(&page[0], end)]).await;
        assert!(crawl.claim().await.is_empty());
        assert_eq!(crawl.job().await.status, JobStatus::Cancelled);
    }
}

#[tokio::test]
async fn the_end_of_a_cancelled_job_is_told_when_its_last_page_has_ended() {
    const WEBHOOK: &str = "UPDATE job SET webhook = '{\"url\": \"http://hook.test/\"}' WHERE id = $1";
    for db in databases().await {
        let crawl = Crawl::start(db, skip(10)).await;
        let start = crawl.claim().await;
        crawl.finish(vec![(&start[0], leads_to(&["/a", "/b", "/c"]))]).await;
        let mut tx = crawl.db.begin().await.unwrap();
        on_db!(&mut tx, |conn| sqlx::query(WEBHOOK).bind(crawl.id).execute(conn).await.unwrap().rows_affected());
        let pages = claim::claim(&mut tx, crawl.team, crawl.worker, 2, 1_000, crawl.db.now()).await.unwrap().pages;
        assert!(cancel::job(&mut tx, crawl.id, crawl.db.now()).await.unwrap());
        tx.commit().await.unwrap();
        let told = async || {
            let mut tx = crawl.db.begin().await.unwrap();
            let now = crawl.db.now();
            let mut events = Vec::new();
            loop {
                let due = webhooks::claim(&mut tx, crawl.id, now, now.plus_ms(20_000), 10).await.unwrap();
                if due.is_empty() {
                    break;
                }
                for delivery in due {
                    let done = Attempt { at: now, duration_ms: 1, status: Some(200), error: None, next_at: None };
                    webhooks::record(&mut tx, &delivery, &done, now).await.unwrap();
                    events.push(delivery.event);
                }
            }
            tx.commit().await.unwrap();
            events
        };
        assert!(told().await.is_empty(), "two pages are under way");
        crawl.finish(vec![(&pages[0], leads_to(&[]))]).await;
        assert_eq!(told().await, [WebhookEvent::Page]);
        crawl.finish(vec![(&pages[1], Outcome::Lost { reason: "the worker died" })]).await;
        assert_eq!(told().await, [WebhookEvent::Cancelled]);
        assert!(told().await.is_empty(), "once");
    }
}

fn pace(name: &str, pause_ms: i64) -> Pace {
    Pace { name: name.to_owned(), pause_ms }
}

#[tokio::test]
async fn turns_are_apart_and_those_who_wait_come_one_after_another() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let (job, _) = testing::job(&db, team, JobKind::Crawl, 9, None).await;
        let mut tx = db.begin().await.unwrap();
        let now = Timestamp(1_000_000);
        let at = |ms: i64| now.plus_ms(ms);
        let (host, other) = (pace("host", 2_000), pace("other", 2_000));
        let ask = async |tx: &mut Tx, pace: &Pace, ms| match turns::take_turns(tx, std::slice::from_ref(pace), at(ms))
            .await
            .unwrap()
        {
            Turn::Now => None,
            Turn::NotBefore(until, _) => Some(until),
        };
        assert_eq!(ask(&mut tx, &host, 0).await, None);
        assert_eq!(ask(&mut tx, &other, 0).await, None);
        assert_eq!(ask(&mut tx, &host, 10).await, Some(at(2_000)));
        assert_eq!(turns::book_turn(&mut tx, &host, job).await.unwrap(), at(2_000));
        assert_eq!(turns::book_turn(&mut tx, &host, job).await.unwrap(), at(4_000));
        assert_eq!(ask(&mut tx, &host, 2_050).await, None);
        assert_eq!(ask(&mut tx, &host, 4_000).await, Some(at(4_050)));
        assert_eq!(turns::book_turn(&mut tx, &host, job).await.unwrap(), at(6_000));
        turns::prune_turns(&mut tx, at(3_000)).await.unwrap();
        assert_eq!(ask(&mut tx, &other, 0).await, None, "it was forgotten");
        assert_eq!(ask(&mut tx, &host, 4_000).await, Some(at(4_050)));
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn a_crawl_takes_its_line_with_it_and_keeps_nobody_else_waiting() {
    const PAGES: i64 = 100;
    for db in databases().await {
        let (one, two) = (team(&db, "a").await, team(&db, "b").await);
        let (large, _) = testing::job(&db, one, JobKind::Crawl, PAGES as usize, None).await;
        let (small, _) = testing::job(&db, two, JobKind::Crawl, 3, None).await;
        let mut tx = db.begin().await.unwrap();
        let now = Timestamp(1_000_000);
        let host = pace("host", 2_000);
        let paces = std::slice::from_ref(&host);
        assert_eq!(turns::take_turns(&mut tx, paces, now).await.unwrap(), Turn::Now);
        for place in 1..=PAGES {
            assert_eq!(turns::book_turn(&mut tx, &host, large).await.unwrap(), now.plus_ms(2_000 * place));
        }
        // Both have the next turn to hope for, whichever is there first.
        assert_eq!(turns::book_turn(&mut tx, &host, small).await.unwrap(), now.plus_ms(2_000));
        assert_eq!(turns::book_turn(&mut tx, &host, small).await.unwrap(), now.plus_ms(4_000));
        // However often it is asked, the line is no longer than the pages of the crawl that have not ended.
        for _ in 0..PAGES {
            let at = turns::book_turn(&mut tx, &host, small).await.unwrap();
            assert!(at <= now.plus_ms(2_000 * 4), "three pages wait");
        }
        assert_eq!(lines(&mut tx).await, 2);
        tx.commit().await.unwrap();

        let mut tx = db.begin().await.unwrap();
        assert!(cancel::job(&mut tx, large, now).await.unwrap());
        tx.commit().await.unwrap();
        let mut tx = db.begin().await.unwrap();
        turns::prune_turns(&mut tx, now).await.unwrap();
        assert_eq!(lines(&mut tx).await, 1, "that of the crawl that goes on");
        assert_eq!(turns::take_turns(&mut tx, paces, now.plus_ms(2_000)).await.unwrap(), Turn::Now);
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn a_host_rests_for_one_team_and_its_pages_come_back_one_after_another() {
    for db in databases().await {
        let (one, two) = (team(&db, "a").await, team(&db, "b").await);
        let (job, _) = testing::job(&db, one, JobKind::Batch, 3, None).await;
        let (theirs, _) = testing::job(&db, two, JobKind::Batch, 3, None).await;
        let now = db.now();
        let at = |ms: i64| now.plus_ms(ms);
        let (url, other) = ("http://x.test/a?b".parse().unwrap(), "http://x.test:81/a".parse().unwrap());
        let never = Timestamp(i64::MAX);
        let mut tx = db.begin().await.unwrap();
        assert_eq!(team_lock::lock(&mut tx, one).await.unwrap().unwrap().rests_until, None);
        turns::begin_rest(&mut tx, one, &url, at(5_000)).await.unwrap();
        turns::begin_rest(&mut tx, one, &url, at(2_000)).await.unwrap();
        turns::begin_rest(&mut tx, one, &other, at(9_000)).await.unwrap();
        assert_eq!(team_lock::lock(&mut tx, one).await.unwrap().unwrap().rests_until, Some(at(9_000)));
        assert_eq!(team_lock::lock(&mut tx, two).await.unwrap().unwrap().rests_until, None);
        let mut ask =
            async |team, url, job, latest, ms| turns::rest_of(&mut tx, team, url, job, latest, at(ms)).await.unwrap();
        assert_eq!(ask(one, &url, job, never, 0).await, Some(at(5_000)), "the longer one counts");
        assert_eq!(ask(one, &url, job, never, 10).await, Some(at(5_100)));
        assert_eq!(ask(one, &other, job, never, 10).await, Some(at(9_000)), "another port is another host");
        assert_eq!(ask(two, &url, theirs, never, 10).await, None, "another team's is no matter of theirs");
        assert_eq!(ask(one, &url, job, at(4_999), 10).await, None, "the page could not come back");
        assert_eq!(ask(one, &url, job, never, 5_000).await, None, "it is over");
        tx.commit().await.unwrap();
        let mut tx = db.begin().await.unwrap();
        const ENDS: &str = "UPDATE job SET expires_at = $1 WHERE id = $2";
        on_db!(&mut tx, |conn| sqlx::query(ENDS)
            .bind(at(5_000))
            .bind(job)
            .execute(conn)
            .await
            .unwrap()
            .rows_affected());
        assert_eq!(turns::rest_of(&mut tx, one, &url, job, never, at(20)).await.unwrap(), None, "the job ends before");
        tx.commit().await.unwrap();
    }
}

async fn lines(tx: &mut Tx) -> i64 {
    let count: (i64,) =
        on_db!(tx, |conn| sqlx::query_as("SELECT COUNT(*) FROM turn_line").fetch_one(conn).await.unwrap());
    count.0
}

#[tokio::test]
async fn a_callers_own_delay_is_no_matter_of_the_host() {
    for db in databases().await {
        let mut tx = db.begin().await.unwrap();
        let now = Timestamp(1_000_000);
        let slow = [pace("crawl:a", 60_000), pace("host", 2_000)];
        let other = [pace("crawl:b", 10), pace("host", 2_000)];
        assert_eq!(turns::take_turns(&mut tx, &slow, now).await.unwrap(), Turn::Now);
        let host_next = Turn::NotBefore(now.plus_ms(2_000), &other[1]);
        assert_eq!(turns::take_turns(&mut tx, &other, now.plus_ms(5)).await.unwrap(), host_next);
        assert_eq!(turns::take_turns(&mut tx, &other, now.plus_ms(9)).await.unwrap(), host_next, "its own was left");
        assert_eq!(turns::take_turns(&mut tx, &other, now.plus_ms(2_000)).await.unwrap(), Turn::Now);
        let own_next = Turn::NotBefore(now.plus_ms(60_000), &slow[0]);
        assert_eq!(turns::take_turns(&mut tx, &slow, now.plus_ms(30_000)).await.unwrap(), own_next);
        assert_eq!(turns::take_turns(&mut tx, &slow, now.plus_ms(60_000)).await.unwrap(), Turn::Now);
        tx.commit().await.unwrap();
    }
}
