//! The life of pages in the store, on both databases.

#![allow(clippy::unwrap_used, reason = "tests")]

use super::documents::{self, Part};
use super::page::claim::Claim;
use super::page::end::{Encoded, Finished, Outcome};
use super::page::replay::Replay;
use super::page::rows::Claimed;
use super::{jobs, nodes, pages, webhooks};
use crate::blobs::Blobs;
use crate::domain::api_version::ApiVersion;
use crate::domain::document::Document;
use crate::domain::job::{JobKind, JobStatus, PageState};
use crate::domain::node::{Load, NodeState};
use crate::domain::scrape::ScrapeOptions;
use crate::error_code::ErrorCode;
use crate::ids::{JobId, PageId, TeamId, WorkerId};
use crate::queue::{self, Turn};
use crate::random;
use crate::store::accounts::{credits, team_lock};
use crate::store::contents::version::Body;
use crate::store::db::slices::Slices;
use crate::store::sessions::scrape_context;
use crate::store::testing::{databases, job, team};
use crate::store::upkeep::{leases, sweep};
use crate::store::work::cancel;
use crate::store::work::page::{claim, fast, finish, replay, rescue};
use crate::store::{Db, StoreError};
use crate::time::Timestamp;
use crate::worker_api::direct::DirectScrape;
use crate::{on_db, on_pool};

async fn claim(db: &Db, team: TeamId, worker: WorkerId, want: usize, limit: i64) -> Claim {
    let mut tx = db.begin().await.unwrap();
    let claim = claim::claim(&mut tx, team, worker, want, limit, db.now()).await.unwrap();
    tx.commit().await.unwrap();
    claim
}

fn done(page: Claimed) -> Finished {
    let mut document = Document { markdown: Some("text".into()), ..Document::default() };
    document.metadata.insert("url".into(), "http://site.test/end".into());
    let json = serde_json::to_vec(&document).unwrap();
    let document = Encoded {
        size: json.len() as i64,
        packed: json.len() as i64,
        body: Body::Inline(zstd::bulk::compress(&json, 1).unwrap()),
        version: None,
        snapshot: None,
        derived: None,
        steps: None,
    };
    Finished { page, kind: Some(JobKind::Batch), key: None, outcome: Outcome::Done { document, credits: 1 } }
}

fn ended(page: Claimed, outcome: Outcome) -> Finished {
    Finished { page, kind: Some(JobKind::Batch), key: None, outcome }
}

async fn finish(db: &Db, group: Vec<Finished>) -> usize {
    finish::finish(db, &group, db.now()).await.unwrap().written.len()
}

async fn counts(db: &Db, id: JobId) -> (JobStatus, i64, i64, i64, i64) {
    let job = jobs::load(db, id).await.unwrap().unwrap();
    (job.status, job.total, job.queued, job.completed, job.failed)
}

/// Counts in the job row are those of its pages.
async fn assert_recount(db: &Db, id: JobId) {
    let rows = pages::list(db, id, None, 100_000).await.unwrap();
    let count = |state: PageState| rows.iter().filter(|p| p.state == state).count() as i64;
    let job = jobs::load(db, id).await.unwrap().unwrap();
    assert_eq!(
        (job.queued, job.completed, job.failed),
        (count(PageState::Queued), count(PageState::Done), count(PageState::Failed))
    );
}

#[tokio::test]
async fn a_batch_runs_to_completion_with_documents_in_order_and_credits_once() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let (id, _) = job(&db, team, JobKind::Batch, 5, None).await;
        let worker = WorkerId::new();
        let first = claim(&db, team, worker, 3, 50).await;
        assert!(first.more && first.pages.len() == 3);
        let again = first.pages[0].clone();
        assert_eq!(finish(&db, first.pages.into_iter().map(done).collect()).await, 3);
        assert_eq!(finish(&db, vec![done(again)]).await, 0, "an ended attempt writes nothing");
        assert_eq!(counts(&db, id).await, (JobStatus::Scraping, 5, 2, 3, 0));
        let rest = claim(&db, team, worker, 10, 50).await;
        assert!(!rest.more && rest.pages.len() == 2);
        finish(&db, rest.pages.into_iter().map(done).collect()).await;
        assert_eq!(counts(&db, id).await, (JobStatus::Completed, 5, 0, 5, 0));
        let blobs = crate::blobs::Blobs::open(&std::env::temp_dir()).unwrap();
        let read = async |part| {
            let found = documents::find(&db, id, part).await.unwrap();
            let bytes = found.bytes();
            let documents = found.open(&db, &blobs).await.unwrap();
            assert_eq!(documents.iter().map(|document| document.json.get().len()).sum::<usize>(), bytes);
            documents.iter().map(|document| document.seq).collect::<Vec<_>>()
        };
        assert_eq!(read(Part { skip: 1, limit: 3, max_bytes: 1 << 20 }).await, [2, 3, 4]);
        assert_eq!(read(Part { skip: 4, limit: 1, max_bytes: 1 << 20 }).await, [5]);
        assert_eq!(read(Part { skip: 0, limit: 100, max_bytes: 1 }).await, [1], "at least one");
        assert_eq!(credits::balance(&db, team).await.unwrap().unwrap().used, 5);
        assert_recount(&db, id).await;
    }
}

#[tokio::test]
async fn a_scrape_leaves_its_request_and_where_it_ended_as_long_as_it_is_kept() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let (_, pages) = job(&db, team, JobKind::Batch, 2, None).await;
        let blobs = Blobs::open(&std::env::temp_dir()).unwrap();
        let now = db.now();
        assert_eq!(scrape_context::load(&db, &blobs, pages[0], now).await.unwrap(), None, "not done");
        let claimed = claim(&db, team, WorkerId::new(), 1, 10).await.pages.remove(0);
        finish(&db, vec![done(claimed)]).await;
        let kept = scrape_context::load(&db, &blobs, pages[0], now).await.unwrap().unwrap();
        assert_eq!((kept.url.as_str(), kept.final_url.as_str()), ("http://site.test/0", "http://site.test/end"));
        assert_eq!((kept.named.as_deref(), &kept.options), (Some(kept.url.as_str()), &ScrapeOptions::default()));
        let (_, hits) = job(&db, team, JobKind::Search, 1, None).await;
        let claimed = claim(&db, team, WorkerId::new(), 10, 10).await.pages;
        finish(&db, claimed.into_iter().map(done).collect()).await;
        let hit = scrape_context::load(&db, &blobs, hits[0], now).await.unwrap().unwrap();
        assert_eq!(hit.named, None, "what a search has found, nobody named");
        let later = now.plus_ms(86_400_001);
        assert_eq!(scrape_context::load(&db, &blobs, pages[0], later).await.unwrap(), None, "expired");
    }
}

#[tokio::test]
async fn a_claim_keeps_the_limits_of_team_and_job_and_leaves_a_mark() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let (slow, _) = job(&db, team, JobKind::Batch, 10, Some(2)).await;
        let (_wide, _) = job(&db, team, JobKind::Batch, 10, None).await;
        let worker = WorkerId::new();
        let first = claim(&db, team, worker, 16, 5).await;
        assert_eq!(first.pages.len(), 5, "the team's limit");
        assert_eq!(first.pages.iter().filter(|p| p.job_id == slow).count(), 2, "the job's limit");
        assert!(!first.more);
        let mut tx = db.begin().await.unwrap();
        assert!(team_lock::lock(&mut tx, team).await.unwrap().unwrap().has_deferred_pages);
        tx.commit().await.unwrap();
        finish(&db, first.pages.into_iter().map(done).collect()).await;
        let mut tx = db.begin().await.unwrap();
        assert!(!team_lock::lock(&mut tx, team).await.unwrap().unwrap().has_deferred_pages, "the wake-up was sent");
        tx.commit().await.unwrap();
        let next = claim(&db, team, worker, 5, 5).await;
        assert!(next.pages.iter().all(|p| p.limited), "they waited because of a limit");
    }
}

#[tokio::test]
async fn teams_take_turns_in_the_line_of_pages_that_somebody_waits_for() {
    for db in databases().await {
        let (many, few) = (team(&db, "many").await, team(&db, "few").await);
        let worker = WorkerId::new();
        let join = async |team, not_before| {
            let (_, ids) = job(&db, team, JobKind::Scrape, 1, None).await;
            let mut tx = db.begin().await.unwrap();
            let turn = queue::page_wakeup(&mut tx, team, ids[0], not_before).await.unwrap();
            tx.commit().await.unwrap();
            turn
        };
        let next = async || fast::claim_next(&db, worker, 100, db.now()).await.unwrap().map(|(page, _)| page.team_id);
        // The callers of one team have one turn after another.
        let mut last = join(many, Turn::default()).await;
        assert_eq!(last, Turn::default(), "nobody waits");
        for _ in 0..9 {
            let turn = join(many, last.next()).await;
            assert_eq!(turn, last.next());
            last = turn;
        }
        for _ in 0..4 {
            assert_eq!(next().await, Some(many));
        }
        // Another team's have the turns of those who are first now, however many are behind them.
        let first = join(few, Turn::default()).await;
        assert_eq!(first, (0..4).fold(Turn::default(), |turn, _| turn.next()));
        join(few, first.next()).await;
        let mut served = Vec::new();
        for _ in 0..4 {
            served.push(next().await.unwrap());
        }
        for team in [many, few] {
            assert_eq!(served.iter().filter(|of| **of == team).count(), 2, "{served:?}");
        }
        while next().await.is_some() {}
        assert_eq!(join(many, last.next()).await, Turn::default(), "the turns begin anew where nobody waits");
    }
}

#[tokio::test]
async fn the_next_scrape_is_claimed_with_its_wake_up_and_within_the_limit() {
    for db in databases().await {
        let (one, two) = (team(&db, "a").await, team(&db, "b").await);
        let worker = WorkerId::new();
        let next = async |limit| fast::claim_next(&db, worker, limit, db.now()).await.unwrap();
        assert!(next(5).await.is_none(), "nobody waits");
        let mut wanted = Vec::new();
        for team in [one, one, two] {
            let (id, ids) = job(&db, team, JobKind::Scrape, 1, None).await;
            let mut tx = db.begin().await.unwrap();
            queue::page_wakeup(&mut tx, team, ids[0], Turn::default()).await.unwrap();
            tx.commit().await.unwrap();
            wanted.push((id, ids[0]));
        }
        let (page, spec) = next(1).await.unwrap();
        assert_eq!((page.job_id, page.id, page.epoch, page.owner), (wanted[0].0, wanted[0].1, 1, Some(worker)));
        assert_eq!((spec.kind, page.claims), (JobKind::Scrape, 1));
        assert_eq!(queue::due(&db).await.unwrap(), [(queue::SCRAPE_QUEUE.to_owned(), 2)], "its wake-up is gone");
        assert_eq!(jobs::load(&db, page.job_id).await.unwrap().unwrap().queued, 0);
        assert!(next(1).await.is_none(), "the team is at its limit, and its wake-up is the library's to deliver");
        assert_eq!(queue::due(&db).await.unwrap(), [(queue::SCRAPE_QUEUE.to_owned(), 2)]);
        assert_eq!(next(2).await.unwrap().0.id, wanted[1].1);
        // Put off: its wake-up has come too early.
        let mut tx = db.begin().await.unwrap();
        let none = "UPDATE page SET run_at = run_at + 60000 WHERE team_id = $1";
        on_db!(&mut tx, |conn| sqlx::query(none).bind(two).execute(conn).await.unwrap().rows_affected());
        tx.commit().await.unwrap();
        assert!(next(5).await.is_none());
        // A wake-up that nobody can read keeps nothing from being told.
        let mut tx = db.begin().await.unwrap();
        let broken = apalis_core::task::builder::TaskBuilder::new(b"{".to_vec()).build();
        queue::push_raw(&mut tx, queue::SCRAPE_QUEUE, vec![broken]).await.unwrap();
        let any = "UPDATE page SET run_at = run_at - 60000 WHERE team_id = $1";
        on_db!(&mut tx, |conn| sqlx::query(any).bind(two).execute(conn).await.unwrap().rows_affected());
        tx.commit().await.unwrap();
        assert_eq!(next(5).await.unwrap().0.id, wanted[2].1);
        assert!(!matches!(fast::claim_next(&db, worker, 5, db.now()).await, Ok(Some(_))));
    }
}

#[tokio::test]
async fn a_scrape_that_is_dispatched_is_written_claimed_or_not_at_all() {
    let blobs = Blobs::open(&std::env::temp_dir().join(format!("weir-blobs-{}", random::id()))).unwrap();
    for db in databases().await {
        let (team, worker) = (team(&db, "a").await, WorkerId::new());
        let now = db.now();
        let scrape = || DirectScrape {
            job: JobId::new(),
            page: PageId::new(),
            team,
            key: None,
            options: ScrapeOptions::default(),
            url: "http://site.test/".into(),
            target: "http://site.test/".into(),
            origin: None,
            version: ApiVersion::V2,
            created_at: now,
            expires_at: now.plus_ms(86_400_000),
        };
        let take = async |scrape: &DirectScrape, limit| {
            fast::insert_claimed(&db, &scrape.rows(), worker, limit, db.now()).await
        };
        let (first, second) = (scrape(), scrape());
        let page = take(&first, 1).await.unwrap().unwrap();
        let row = pages::load(&db, first.page).await.unwrap().unwrap();
        assert_eq!((row.state, row.claims, row.job_id, row.team_id), (PageState::Running, 1, first.job, team));
        assert_eq!(jobs::load(&db, first.job).await.unwrap().unwrap().waiting().running, 1);
        assert_eq!(jobs::spec(&db, first.job).await.unwrap().unwrap().options, first.options);
        assert!(queue::due(&db).await.unwrap().is_empty(), "it has no wake-up");
        assert_recount(&db, first.job).await;

        assert!(matches!(take(&first, 9).await, Err(StoreError::Conflict(_))), "it is there");
        assert!(take(&second, 1).await.unwrap().is_none(), "the team is at its limit");
        assert!(jobs::load(&db, second.job).await.unwrap().is_none());
        assert!(pages::load(&db, second.page).await.unwrap().is_none());
        assert!(activity_of(&db, team).await == [first.page]);

        // Another page of the team waits for a place: it comes first.
        let (_, waiting) = job(&db, team, JobKind::Scrape, 1, None).await;
        assert!(claim::claim_one(&db, team, waiting[0], worker, 1, db.now()).await.unwrap().is_none());
        assert!(take(&second, 9).await.unwrap().is_none());
        let end = |page| vec![Finished { kind: Some(JobKind::Scrape), ..done(page) }];
        assert_eq!(finish(&db, end(page.clone())).await, 1);
        assert_eq!(finish(&db, end(page)).await, 0, "it has ended");
        assert!(documents::by_page(&db, &blobs, first.page).await.unwrap().is_some());
        let row = jobs::load(&db, first.job).await.unwrap().unwrap();
        assert_eq!((row.status, row.completed, row.credits_used), (JobStatus::Completed, 1, 1));

        // The worker is not known: the page goes back to the queue, with a wake-up.
        let (waiting, _) = claim::claim_one(&db, team, waiting[0], worker, 1, db.now()).await.unwrap().unwrap();
        assert_eq!(finish(&db, end(waiting)).await, 1);
        take(&second, 1).await.unwrap().unwrap();
        let mut tx = db.begin().await.unwrap();
        assert_eq!(rescue::rescue_orphans(&mut tx, db.now(), 10).await.unwrap(), 1);
        tx.commit().await.unwrap();
        assert_eq!(pages::load(&db, second.page).await.unwrap().unwrap().state, PageState::Queued);
        assert_recount(&db, second.job).await;
        assert!(!queue::due(&db).await.unwrap().is_empty());
    }
}

/// The pages that the team's activity shows.
async fn activity_of(db: &Db, team: TeamId) -> Vec<PageId> {
    const SQL: &str = "SELECT id FROM activity WHERE team_id = $1";
    let rows: Vec<(PageId,)> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(team).fetch_all(pool).await.unwrap());
    rows.into_iter().map(|row| row.0).collect()
}

#[tokio::test]
async fn a_scrape_that_is_done_ends_once_with_document_and_bill() {
    let blobs = Blobs::open(&std::env::temp_dir().join(format!("weir-blobs-{}", random::id()))).unwrap();
    for db in databases().await {
        let team = team(&db, "a").await;
        let worker = WorkerId::new();
        let (id, ids) = job(&db, team, JobKind::Scrape, 1, None).await;
        let (other, others) = job(&db, team, JobKind::Scrape, 1, None).await;
        let (page, spec) = claim::claim_one(&db, team, ids[0], worker, 1, db.now()).await.unwrap().unwrap();
        assert_eq!((page.job_id, page.epoch, page.claims, page.owner), (id, 1, 1, Some(worker)));
        assert_eq!((spec.kind, spec.options), (JobKind::Scrape, ScrapeOptions::default()));
        for _ in 0..2 {
            let taken = claim::claim_one(&db, team, ids[0], worker, 9, db.now()).await.unwrap();
            assert!(taken.is_none(), "it is taken");
        }
        // The team's one place is taken: the other scrape waits for it.
        assert!(claim::claim_one(&db, team, others[0], worker, 1, db.now()).await.unwrap().is_none());
        assert!(queue::due(&db).await.unwrap().is_empty());

        let stale = Claimed { epoch: 0, ..page.clone() };
        let end = |page: &Claimed| vec![Finished { kind: Some(JobKind::Scrape), ..done(page.clone()) }];
        assert_eq!(finish(&db, end(&stale)).await, 0, "overtaken");
        assert_eq!(finish(&db, end(&page)).await, 1);
        assert_eq!(queue::due(&db).await.unwrap(), [(queue::TEAM_QUEUE.to_owned(), 1)], "the other is sent for");
        let (page, _) = claim::claim_one(&db, team, others[0], worker, 1, db.now()).await.unwrap().unwrap();
        assert_eq!(page.job_id, other);
        // Nobody waits now: this end is written at once.
        assert_eq!(finish(&db, end(&page)).await, 1);
        assert_eq!(finish(&db, end(&page)).await, 0, "an ended attempt writes nothing");

        for (job, page) in [(id, ids[0]), (other, others[0])] {
            let row = jobs::load(&db, job).await.unwrap().unwrap();
            let row = (row.status, row.queued, row.completed, row.credits_used, row.finished_at.is_some());
            assert_eq!(row, (JobStatus::Completed, 0, 1, 1, true));
            assert_eq!(pages::load(&db, page).await.unwrap().unwrap().state, PageState::Done);
            assert!(documents::by_page(&db, &blobs, page).await.unwrap().is_some());
        }
        assert_eq!(credits::balance(&db, team).await.unwrap().unwrap().used, 2);
    }
}

#[tokio::test]
async fn a_direct_scrape_goes_before_a_batch_of_its_team() {
    for db in databases().await {
        let team = team(&db, "a").await;
        job(&db, team, JobKind::Batch, 10, None).await;
        let (scrape, _) = job(&db, team, JobKind::Scrape, 1, None).await;
        assert_eq!(claim(&db, team, WorkerId::new(), 1, 50).await.pages[0].job_id, scrape);
    }
}

#[tokio::test]
async fn jobs_of_a_team_take_turns() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let (one, _) = job(&db, team, JobKind::Batch, 10, None).await;
        let (two, _) = job(&db, team, JobKind::Batch, 10, None).await;
        let mut served = Vec::new();
        for n in 0..4 {
            let mut tx = db.begin().await.unwrap();
            let now = db.now().plus_ms(n);
            served.push(claim::claim(&mut tx, team, WorkerId::new(), 2, 50, now).await.unwrap().pages[0].job_id);
            tx.commit().await.unwrap();
        }
        assert_eq!(served, [one, two, one, two]);
    }
}

#[tokio::test]
async fn a_retry_waits_for_its_time_and_keeps_its_history() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let (id, ids) = job(&db, team, JobKind::Batch, 1, None).await;
        let page = claim(&db, team, WorkerId::new(), 1, 50).await.pages.remove(0);
        let run_at = db.now().plus_ms(60_000);
        let retry = Outcome::Retry { code: ErrorCode::Site, error: "reset".into(), run_at };
        finish(&db, vec![ended(page, retry)]).await;
        assert_eq!(counts(&db, id).await, (JobStatus::Scraping, 1, 1, 0, 0));
        assert!(claim(&db, team, WorkerId::new(), 1, 50).await.pages.is_empty(), "not before its time");
        let mut tx = db.begin().await.unwrap();
        let page = claim::claim(&mut tx, team, WorkerId::new(), 1, 50, run_at).await.unwrap().pages.remove(0);
        tx.commit().await.unwrap();
        assert_eq!((page.tries, page.claims, page.epoch), (1, 2, 2));
        let failed = Outcome::Failed { code: ErrorCode::Site, error: "reset again".into(), credits: 0 };
        finish(&db, vec![ended(page, failed)]).await;
        assert_eq!(counts(&db, id).await, (JobStatus::Completed, 1, 0, 0, 1));
        let history = pages::attempts_of(&db, ids[0]).await.unwrap();
        assert_eq!(history.iter().map(|a| a.error.as_str()).collect::<Vec<_>>(), ["reset", "reset again"]);
        let errors = pages::failed_of(&db, id, 10).await.unwrap();
        assert_eq!(errors[0].error_code.as_deref(), Some("SCRAPE_SITE_ERROR"));
        let at = errors[0].finished_at.unwrap();
        for (after, found) in
            [(None, 1), (Some((at, -1)), 1), (Some((at, errors[0].idx)), 0), (Some((at.plus_ms(1), 0)), 0)]
        {
            assert_eq!(pages::failed_since(&db, id, after, 10).await.unwrap().len(), found, "{after:?}");
        }
        assert_eq!(jobs::load(&db, id).await.unwrap().unwrap().total_shown(), 0);
    }
}

#[tokio::test]
async fn pages_of_a_dead_worker_come_back_and_its_late_result_is_refused() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let (id, _) = job(&db, team, JobKind::Batch, 2, None).await;
        let late = claim(&db, team, WorkerId::new(), 2, 50).await.pages;
        let mut tx = db.begin().await.unwrap();
        assert_eq!(rescue::rescue_orphans(&mut tx, db.now(), 100).await.unwrap(), 2);
        tx.commit().await.unwrap();
        assert_eq!(counts(&db, id).await, (JobStatus::Scraping, 2, 2, 0, 0));
        let again = claim(&db, team, WorkerId::new(), 2, 50).await.pages;
        assert_eq!(finish(&db, late.into_iter().map(done).collect()).await, 0);
        assert_eq!(finish(&db, again.into_iter().map(done).collect()).await, 2);
        assert_recount(&db, id).await;
    }
}

#[tokio::test]
async fn a_page_that_kills_every_worker_is_given_up() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let (id, ids) = job(&db, team, JobKind::Batch, 1, None).await;
        for _ in 0..crate::domain::job::MAX_CLAIMS {
            assert_eq!(claim(&db, team, WorkerId::new(), 1, 50).await.pages.len(), 1);
            let mut tx = db.begin().await.unwrap();
            rescue::rescue_orphans(&mut tx, db.now(), 100).await.unwrap();
            tx.commit().await.unwrap();
        }
        let page = pages::load(&db, ids[0]).await.unwrap().unwrap();
        assert_eq!((page.state, page.error_code.as_deref()), (PageState::Failed, Some("SCRAPE_RETRY_LIMIT")));
        assert_eq!(counts(&db, id).await.0, JobStatus::Completed);
    }
}

#[tokio::test]
async fn a_cancel_drops_waiting_pages_and_lets_running_ones_end() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let (id, _) = job(&db, team, JobKind::Batch, 5, None).await;
        let mut running = claim(&db, team, WorkerId::new(), 2, 50).await.pages;
        let mut tx = db.begin().await.unwrap();
        assert!(cancel::job(&mut tx, id, db.now()).await.unwrap());
        assert!(!cancel::job(&mut tx, id, db.now()).await.unwrap());
        tx.commit().await.unwrap();
        assert_eq!(counts(&db, id).await, (JobStatus::Cancelled, 2, 0, 0, 0));
        let back = running.remove(1);
        finish(&db, vec![done(running.remove(0)), ended(back, Outcome::Lost { reason: "the worker died" })]).await;
        assert_eq!(counts(&db, id).await, (JobStatus::Cancelled, 1, 0, 1, 0));
        assert!(claim(&db, team, WorkerId::new(), 5, 50).await.pages.is_empty());
    }
}

#[tokio::test]
async fn a_replayed_page_runs_again_and_is_billed_once() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let (id, ids) = job(&db, team, JobKind::Batch, 1, None).await;
        let page = claim(&db, team, WorkerId::new(), 1, 50).await.pages.remove(0);
        let failed = Outcome::Failed { code: ErrorCode::DnsResolution, error: "no such host".into(), credits: 1 };
        finish(&db, vec![ended(page, failed)]).await;
        let filter =
            replay::ReplayFilter { codes: vec!["SCRAPE_DNS_RESOLUTION_ERROR".into()], limit: 10, ..Default::default() };
        let found =
            async |filter: &replay::ReplayFilter, now| replay::replayable(&db, filter, now).await.unwrap().len();
        let now = db.now();
        assert_eq!(found(&filter, now).await, 1);
        assert_eq!(found(&filter, now.plus_ms(90_000_000)).await, 0, "its job has expired");
        for (narrow, count) in [
            (replay::ReplayFilter { codes: vec!["SCRAPE_TIMEOUT".into()], ..filter.clone() }, 0),
            (replay::ReplayFilter { job: Some(id), team: Some(team), ..filter.clone() }, 1),
            (replay::ReplayFilter { team: Some(TeamId::new()), ..filter.clone() }, 0),
            (replay::ReplayFilter { failed_before: Some(now.plus_ms(-60_000)), ..filter.clone() }, 0),
            (replay::ReplayFilter { failed_after: Some(now.plus_ms(-60_000)), ..filter.clone() }, 1),
            (replay::ReplayFilter { background: true, most_replays: Some(1), ..filter.clone() }, 1),
        ] {
            assert_eq!(found(&narrow, now).await, count, "{narrow:?}");
        }
        let mut tx = db.begin().await.unwrap();
        assert_eq!(replay::replay(&mut tx, ids[0], true, now).await.unwrap(), Replay::NoCredits);
        assert_eq!(replay::replay(&mut tx, ids[0], false, now).await.unwrap(), Replay::Queued);
        assert_eq!(replay::replay(&mut tx, ids[0], false, now).await.unwrap(), Replay::NotDead);
        tx.commit().await.unwrap();
        assert_eq!(counts(&db, id).await, (JobStatus::Scraping, 1, 1, 0, 0));
        let page = claim(&db, team, WorkerId::new(), 1, 50).await.pages.remove(0);
        finish(&db, vec![done(page)]).await;
        assert_eq!(counts(&db, id).await, (JobStatus::Completed, 1, 0, 1, 0));
        assert_eq!(credits::balance(&db, team).await.unwrap().unwrap().used, 1);
        assert_eq!(jobs::load(&db, id).await.unwrap().unwrap().credits_used, 1, "as in the ledger");
        assert_eq!(pages::load(&db, ids[0]).await.unwrap().unwrap().replays, 1);
        assert_recount(&db, id).await;
    }
}

#[tokio::test]
async fn a_cancelled_jobs_failures_stay_and_a_page_is_replayed_so_often() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let (id, ids) = job(&db, team, JobKind::Batch, 2, None).await;
        let fail = async || {
            let page = claim(&db, team, WorkerId::new(), 1, 50).await.pages.remove(0);
            let failed = Outcome::Failed { code: ErrorCode::Site, error: "reset".into(), credits: 0 };
            finish(&db, vec![ended(page, failed)]).await;
        };
        let filter = replay::ReplayFilter { most_replays: Some(2), limit: 10, ..Default::default() };
        for left in [1, 1, 0] {
            fail().await;
            let found = replay::replayable(&db, &filter, db.now()).await.unwrap();
            assert_eq!(found.len(), left);
            for page in found {
                let mut tx = db.begin().await.unwrap();
                // The other page must not be claimed in its place.
                let replay = replay::replay(&mut tx, page.id, false, Timestamp(1)).await.unwrap();
                assert_eq!(replay, Replay::Queued);
                tx.commit().await.unwrap();
            }
        }
        assert_recount(&db, id).await;
        let mut tx = db.begin().await.unwrap();
        assert!(cancel::job(&mut tx, id, db.now()).await.unwrap());
        assert_eq!(replay::replay(&mut tx, ids[0], false, db.now()).await.unwrap(), Replay::NotDead);
        tx.commit().await.unwrap();
        let any = replay::ReplayFilter { limit: 10, ..Default::default() };
        assert!(replay::replayable(&db, &any, db.now()).await.unwrap().is_empty());
        assert_eq!(counts(&db, id).await.0, JobStatus::Cancelled);
    }
}

#[tokio::test]
async fn dead_deliveries_are_worth_it_when_the_receiver_may_do_better() {
    use crate::domain::job::WebhookEvent;
    for db in databases().await {
        let team = team(&db, "a").await;
        let (id, ids) = job(&db, team, JobKind::Batch, 4, None).await;
        let now = db.now();
        let mut worth = Vec::new();
        for (page, status) in ids.iter().zip([None, Some(503), Some(429), Some(404)]) {
            let mut tx = db.begin().await.unwrap();
            webhooks::queue(&mut tx, team, id, Some(*page), WebhookEvent::Page, now).await.unwrap();
            let delivery = webhooks::claim(&mut tx, id, now, now, 1).await.unwrap().remove(0);
            let error = Some("it was refused".to_owned());
            let attempt = webhooks::Attempt { at: now, duration_ms: 1, status, error, next_at: None };
            webhooks::record(&mut tx, &delivery, &attempt, now).await.unwrap();
            tx.commit().await.unwrap();
            worth.extend((status != Some(404)).then_some(delivery.id));
        }
        let found = async |most, now| webhooks::worth_replaying(&db, most, now, 10).await.unwrap();
        worth.sort_unstable();
        assert_eq!(found(1, now).await, worth);
        assert!(found(1, now.plus_ms(90_000_000)).await.is_empty(), "the job has expired");
        let mut tx = db.begin().await.unwrap();
        assert!(webhooks::replay(&mut tx, worth[0], now).await.unwrap());
        assert!(!webhooks::replay(&mut tx, worth[0], now).await.unwrap());
        let delivery = webhooks::claim(&mut tx, id, now, now, 1).await.unwrap().remove(0);
        let again = webhooks::Attempt { at: now, duration_ms: 1, status: None, error: Some("x".into()), next_at: None };
        webhooks::record(&mut tx, &delivery, &again, now).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(found(1, now).await, worth[1..]);
        assert_eq!(found(2, now).await.len(), 3);
    }
}

#[tokio::test]
async fn deliveries_that_another_worker_is_taking_are_left_to_it() {
    use crate::domain::job::WebhookEvent;
    for db in databases().await {
        // SQLite has one writer at a time.
        if matches!(db, Db::Sqlite(_)) {
            continue;
        }
        let team = team(&db, "a").await;
        let (id, pages) = job(&db, team, JobKind::Batch, 4, None).await;
        let now = db.now();
        let mut tx = db.begin().await.unwrap();
        for page in &pages {
            webhooks::queue(&mut tx, team, id, Some(*page), WebhookEvent::Page, now).await.unwrap();
        }
        tx.commit().await.unwrap();

        let lease = now.plus_ms(60_000);
        let (mut one, mut two) = (db.begin().await.unwrap(), db.begin().await.unwrap());
        let mut taken = webhooks::claim(&mut one, id, now, lease, 2).await.unwrap();
        let rest = webhooks::claim(&mut two, id, now, lease, 10);
        let rest =
            tokio::time::timeout(std::time::Duration::from_secs(60), rest).await.expect("it waits for the other");
        taken.extend(rest.unwrap());
        let ids: std::collections::HashSet<_> = taken.iter().map(|delivery| delivery.id).collect();
        assert_eq!((taken.len(), ids.len()), (4, 4));
        one.commit().await.unwrap();
        two.commit().await.unwrap();
    }
}

#[tokio::test]
async fn webhook_stages_go_in_order_and_a_lost_try_is_taken_again() {
    use crate::domain::job::WebhookEvent;
    for db in databases().await {
        let team = team(&db, "a").await;
        let (id, ids) = job(&db, team, JobKind::Batch, 1, None).await;
        let now = db.now();
        let mut tx = db.begin().await.unwrap();
        webhooks::queue(&mut tx, team, id, None, WebhookEvent::Completed, now).await.unwrap();
        webhooks::queue(&mut tx, team, id, Some(ids[0]), WebhookEvent::Page, now).await.unwrap();
        webhooks::queue(&mut tx, team, id, None, WebhookEvent::Started, now).await.unwrap();
        tx.commit().await.unwrap();
        let mut order = Vec::new();
        let mut clock = now;
        for _ in 0..6 {
            let mut tx = db.begin().await.unwrap();
            let due = webhooks::claim(&mut tx, id, clock, clock.plus_ms(1_000), 10).await.unwrap();
            assert!(due.len() <= 1);
            if let Some(delivery) = due.first() {
                order.push((delivery.event, delivery.attempt));
                // The first try of the first event is lost with its worker: nothing is recorded.
                if order.len() > 1 {
                    let attempt =
                        webhooks::Attempt { at: clock, duration_ms: 1, status: Some(200), error: None, next_at: None };
                    webhooks::record(&mut tx, delivery, &attempt, clock).await.unwrap();
                }
            }
            tx.commit().await.unwrap();
            clock = clock.plus_ms(1_001);
        }
        use WebhookEvent::{Completed, Page, Started};
        assert_eq!(order, [(Started, 1), (Started, 2), (Page, 1), (Completed, 1)]);
        assert_eq!(webhooks::counts(&db).await.unwrap(), (0, 0));
    }
}

#[tokio::test]
async fn what_has_expired_is_removed_and_the_ledger_stays() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let (id, _) = job(&db, team, JobKind::Batch, 3, None).await;
        let pages = claim(&db, team, WorkerId::new(), 3, 50).await.pages;
        finish(&db, pages.into_iter().map(done).collect()).await;
        let later = db.now().plus_ms(90_000_000);
        assert_eq!(sweep::expire(&db, &mut Slices::default(), later).await.unwrap(), 1);
        assert!(jobs::load(&db, id).await.unwrap().is_none());
        assert!(pages::list(&db, id, None, 10).await.unwrap().is_empty());
        assert_eq!(credits::balance(&db, team).await.unwrap().unwrap().used, 3);
        let mut tx = db.begin().await.unwrap();
        sweep::prune(&mut tx, db.now()).await.unwrap();
        tx.commit().await.unwrap();
        sweep::shrink(&db).await.unwrap();
    }
}

#[tokio::test]
async fn results_stay_for_their_time_after_the_end_of_a_job_that_runs_for_longer() {
    const HOUR: i64 = 3_600_000;
    const DAY: i64 = 24 * HOUR;
    for db in databases().await {
        let team = team(&db, "a").await;
        let (id, _) = job(&db, team, JobKind::Batch, 2, None).await;
        let pages = claim(&db, team, WorkerId::new(), 1, 50).await.pages;
        finish(&db, pages.into_iter().map(done).collect()).await;
        let began = jobs::load(&db, id).await.unwrap().unwrap().created_at;
        let expiry = async || jobs::load(&db, id).await.unwrap().unwrap().expires_at;
        let keep = async |hours: i64| {
            let (now, mut slices) = (began.plus_ms(hours * HOUR), Slices::default());
            sweep::keep_running(&db, &mut slices, now, DAY).await.unwrap();
            assert_eq!(sweep::expire(&db, &mut slices, now).await.unwrap(), 0, "after {hours} hours it runs");
            expiry().await.ms_since(began) / HOUR
        };
        for (hours, expires_after) in [(6, 24), (7, 37), (13, 37), (14, 44), (300, 330), (305, 330)] {
            assert_eq!(keep(hours).await, expires_after, "{hours}");
        }
        // Also where nobody has moved its expiry for long.
        let late = began.plus_ms(900 * HOUR);
        assert_eq!(sweep::expire(&db, &mut Slices::default(), late).await.unwrap(), 0);
        let running = jobs::load(&db, id).await.unwrap().unwrap();
        assert!(running.status == JobStatus::Scraping && !running.has_expired(late));
        let pages = claim(&db, team, WorkerId::new(), 1, 50).await.pages;
        finish(&db, pages.into_iter().map(done).collect()).await;
        let ended = jobs::load(&db, id).await.unwrap().unwrap();
        assert_eq!((ended.status, ended.completed), (JobStatus::Completed, 2));
        assert_eq!(keep(305).await, 330, "it has ended");
        assert!(ended.has_expired(ended.expires_at) && !ended.has_expired(ended.expires_at.plus_ms(-1)));
        assert_eq!(sweep::expire(&db, &mut Slices::default(), ended.expires_at).await.unwrap(), 1);

        // What somebody waits for and keeps nothing is bound by its own time, whatever becomes of it.
        let (at_once, _) = job(&db, team, JobKind::Scrape, 1, None).await;
        let (lasting, _) = job(&db, team, JobKind::Batch, 1, None).await;
        const ZERO: &str = "UPDATE job SET zero_retention = TRUE WHERE id IN ($1, $2)";
        let mut tx = db.begin().await.unwrap();
        on_db!(&mut tx, |conn| {
            sqlx::query(ZERO).bind(at_once).bind(lasting).execute(conn).await.unwrap().rows_affected()
        });
        tx.commit().await.unwrap();
        let late = db.now().plus_ms(2 * DAY);
        sweep::keep_running(&db, &mut Slices::default(), late, DAY).await.unwrap();
        assert_eq!(sweep::expire(&db, &mut Slices::default(), late).await.unwrap(), 1);
        assert!(jobs::load(&db, at_once).await.unwrap().is_none());
        assert!(jobs::load(&db, lasting).await.unwrap().is_some_and(|job| job.expires_at > late));
    }
}

#[tokio::test]
async fn receivers_hear_of_a_job_that_is_deleted_before_its_rows_go() {
    for db in databases().await {
        let (team, now) = (team(&db, "a").await, db.now());
        let (id, _) = job(&db, team, JobKind::Batch, 1, None).await;
        let mut tx = db.begin().await.unwrap();
        assert!(cancel::job(&mut tx, id, now).await.unwrap());
        let event = crate::domain::job::WebhookEvent::Cancelled;
        webhooks::queue(&mut tx, team, id, None, event, now).await.unwrap();
        assert!(jobs::expire_now(&mut tx, id, now).await.unwrap());
        tx.commit().await.unwrap();
        assert_eq!(sweep::expire(&db, &mut Slices::default(), now.plus_ms(1)).await.unwrap(), 0);
        let mut tx = db.begin().await.unwrap();
        let told = webhooks::claim(&mut tx, id, now, now.plus_ms(1_000), 9).await.unwrap().remove(0);
        let failed = webhooks::Attempt {
            at: now,
            duration_ms: 1,
            status: Some(500),
            error: Some("no".to_owned()),
            next_at: Some(now.plus_ms(5_000)),
        };
        webhooks::record(&mut tx, &told, &failed, now).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(sweep::expire(&db, &mut Slices::default(), now.plus_ms(599_000)).await.unwrap(), 0);
        assert_eq!(sweep::expire(&db, &mut Slices::default(), now.plus_ms(600_000)).await.unwrap(), 1, "not for ever");
        assert_eq!(webhooks::counts(&db).await.unwrap(), (0, 0));
    }
}

fn node(id: WorkerId, now: Timestamp) -> nodes::NodeRow {
    nodes::NodeRow {
        id,
        name: "host-1".into(),
        host: "h".into(),
        pid: 1,
        address: "127.0.0.1:1".into(),
        state: NodeState::Live,
        slots: 16,
        session_slots: 12,
        sessions_refused: None,
        started_at: now,
        heartbeat_at: now,
    }
}

#[tokio::test]
async fn a_worker_says_what_bounds_its_boxes_and_why_it_can_start_no_browser() {
    for db in databases().await {
        let (told, silent, now) = (WorkerId::new(), WorkerId::new(), db.now());
        let mut tx = db.begin().await.unwrap();
        for id in [told, silent] {
            nodes::insert(&mut tx, &node(id, now)).await.unwrap();
        }
        nodes::say_box_limits(&mut tx, told, "cgroup v2").await.unwrap();
        tx.commit().await.unwrap();
        let beat = async |load: &Load| {
            let mut tx = db.begin().await.unwrap();
            nodes::heartbeat(&mut tx, told, now, Some(load)).await.unwrap();
            tx.commit().await.unwrap();
        };
        let conditions = async |at| {
            let all = nodes::conditions(&db, at).await.unwrap().into_iter();
            let mut said: Vec<_> = all.map(|one| (one.box_limits, one.browser_problem)).collect();
            said.sort();
            said
        };
        let (limits, why) = (Some("cgroup v2".to_owned()), Some("a library is missing".to_owned()));
        assert_eq!(conditions(now).await, [(None, None), (limits.clone(), None)]);
        beat(&Load { browser_problem: why.clone(), ..Load::default() }).await;
        assert_eq!(conditions(now).await, [(None, None), (limits.clone(), why)]);
        beat(&Load::default()).await;
        assert_eq!(conditions(now).await, [(None, None), (limits, None)], "it heals");
        assert_eq!(conditions(now.plus_ms(nodes::DEAD_MS + 1)).await, []);
    }
}

#[tokio::test]
async fn a_lease_has_one_holder_until_it_ends() {
    for db in databases().await {
        let (a, b, now) = (WorkerId::new(), WorkerId::new(), db.now());
        let mut tx = db.begin().await.unwrap();
        assert!(leases::take(&mut tx, "x", a, now, now.plus_ms(100)).await.unwrap());
        assert!(!leases::take(&mut tx, "x", b, now, now.plus_ms(100)).await.unwrap());
        assert!(leases::take(&mut tx, "x", a, now, now.plus_ms(100)).await.unwrap());
        assert!(leases::take(&mut tx, "x", b, now.plus_ms(101), now.plus_ms(200)).await.unwrap());

        nodes::insert(&mut tx, &node(b, now)).await.unwrap();
        assert!(!leases::take(&mut tx, "x", a, now, now.plus_ms(100)).await.unwrap(), "its holder lives");
        nodes::declare_dead(&mut tx, b).await.unwrap();
        assert!(leases::take(&mut tx, "x", a, now, now.plus_ms(100)).await.unwrap(), "a dead one's is free");

        let late = now.plus_ms(3_600_000);
        assert!(leases::take(&mut tx, "ahead", a, late, late.plus_ms(100)).await.unwrap());
        assert!(!leases::take(&mut tx, "ahead", b, late, late.plus_ms(100)).await.unwrap());
        assert!(leases::take(&mut tx, "ahead", b, now, now.plus_ms(100)).await.unwrap(), "of a clock that was ahead");
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn workers_are_listed_while_they_beat_and_buried_after() {
    for db in databases().await {
        let now = db.now();
        let node = node(WorkerId::new(), now);
        let mut tx = db.begin().await.unwrap();
        nodes::insert(&mut tx, &node).await.unwrap();
        assert_eq!(nodes::heartbeat(&mut tx, node.id, now, None).await.unwrap(), Some(NodeState::Live));
        assert!(nodes::drain(&mut tx, "host-1").await.unwrap());
        assert_eq!(nodes::heartbeat(&mut tx, node.id, now, None).await.unwrap(), Some(NodeState::Draining));
        tx.commit().await.unwrap();
        let later = now.plus_ms(nodes::DEAD_MS + 1);
        assert!(nodes::live(&db, later).await.unwrap().is_empty());
        let mut tx = db.begin().await.unwrap();
        assert_eq!(nodes::bury(&mut tx, later).await.unwrap(), 1);
        assert_eq!(nodes::heartbeat(&mut tx, node.id, later, None).await.unwrap(), None, "the dead do not speak");
        tx.commit().await.unwrap();
    }
}
