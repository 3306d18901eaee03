//! What is claimed, and what becomes of claims that lead to nothing, on both databases.

#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::domain::job::{JobKind, MAX_CLAIMS, PageState};
use crate::error_code::ErrorCode;
use crate::queue::{self, Turn};
use crate::store::PostgresDb;
use crate::store::testing::{self, databases, job};
use crate::store::work::cancel;
use crate::store::work::page::end::{Finished, Outcome};
use crate::store::work::page::rescue::{Loss, orphaned_teams, rescue, rescue_orphans};
use crate::store::work::page::{acting, fast, finish, replay};
use crate::store::work::pages::load;

const MINUTE_MS: i64 = 60_000;

async fn take(db: &Db, team: TeamId, want: usize, now: Timestamp) -> Claim {
    let mut tx = db.begin().await.unwrap();
    let claim = claim(&mut tx, team, WorkerId::new(), want, 1_000, now).await.unwrap();
    tx.commit().await.unwrap();
    claim
}

async fn end(db: &Db, pages: Vec<Claimed>, outcome: &Outcome) {
    let ended = |page| Finished { page, kind: Some(JobKind::Batch), key: None, outcome: outcome.clone() };
    let group: Vec<Finished> = pages.into_iter().map(ended).collect();
    assert_eq!(finish::finish(db, &group, db.now()).await.unwrap().written.len(), group.len());
}

fn places(pages: &[Claimed]) -> Vec<i64> {
    pages.iter().map(|page| page.idx).collect()
}

#[tokio::test]
async fn jobs_that_wait_for_their_time_stand_in_nobodys_way() {
    for db in databases().await {
        let team = testing::team(&db, "a").await;
        for _ in 0..120 {
            job(&db, team, JobKind::Crawl, 2, None).await;
        }
        let now = db.now();
        let due = now.plus_ms(MINUTE_MS);
        let mut claimed = 0;
        while claimed < 240 {
            let first = take(&db, team, 1_000, now).await.pages;
            claimed += first.len();
            end(&db, first, &Outcome::Postponed { run_at: due }).await;
        }
        let (batch, _) = job(&db, team, JobKind::Batch, 96, None).await;
        let now = db.now();
        for turn in 1..=3 {
            let claim = take(&db, team, 32, now.plus_ms(turn)).await;
            assert_eq!(claim.pages.len(), 32, "claim {turn}");
            assert!(claim.pages.iter().all(|page| page.job_id == batch));
        }
        let rest = take(&db, team, 32, now.plus_ms(4)).await;
        assert!(rest.pages.is_empty() && !rest.more);
        assert_eq!(rest.next_at, Some(due), "when to come back");

        // One that is due earlier than the others of its job is not overlooked, and neither is one that comes anew.
        let mut late = take(&db, team, 240, due).await.pages;
        assert_eq!(late.len(), 240, "their time has come");
        let early = late.remove(0);
        let id = early.id;
        end(&db, late, &Outcome::Postponed { run_at: due.plus_ms(MINUTE_MS) }).await;
        assert!(take(&db, team, 32, due).await.pages.is_empty());
        end(&db, vec![early], &Outcome::Postponed { run_at: due.plus_ms(2) }).await;
        assert_eq!(take(&db, team, 32, due.plus_ms(1)).await.next_at, Some(due.plus_ms(2)));
        let found = take(&db, team, 32, due.plus_ms(2)).await.pages;
        assert_eq!(found.iter().map(|page| page.id).collect::<Vec<_>>(), [id]);
    }
}

#[tokio::test]
async fn jobs_at_their_own_limit_stand_in_nobodys_way() {
    for db in databases().await {
        let team = testing::team(&db, "a").await;
        for _ in 0..70 {
            job(&db, team, JobKind::Batch, 2, Some(1)).await;
        }
        let now = db.now();
        let mut claimed = 0;
        while claimed < 70 {
            claimed += take(&db, team, 500, now).await.pages.len();
        }
        job(&db, team, JobKind::Batch, 64, None).await;
        let now = db.now();
        for turn in 1..=2 {
            assert_eq!(take(&db, team, 32, now.plus_ms(turn)).await.pages.len(), 32, "claim {turn}");
        }
        let mut tx = db.begin().await.unwrap();
        assert!(
            team_lock::lock(&mut tx, team).await.unwrap().unwrap().has_deferred_pages,
            "the next end sends for the others"
        );
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn pages_that_come_back_keep_their_place_in_the_queue() {
    for db in databases().await {
        let team = testing::team(&db, "a").await;
        let (id, _) = job(&db, team, JobKind::Batch, 9, None).await;
        let now = db.now();
        let first = take(&db, team, 3, now).await.pages;
        assert_eq!(places(&first), [0, 1, 2]);
        // Their worker is not known, so it is as good as dead.
        let mut tx = db.begin().await.unwrap();
        assert_eq!(rescue_orphans(&mut tx, db.now(), 10).await.unwrap(), 3);
        tx.commit().await.unwrap();
        let again = take(&db, team, 3, now).await.pages;
        assert_eq!(places(&again), [0, 1, 2], "before the pages that nobody has tried");
        end(&db, again, &Outcome::GivenBack).await;
        assert_eq!(places(&take(&db, team, 4, now).await.pages), [0, 1, 2, 3]);

        let mut tx = db.begin().await.unwrap();
        assert!(cancel::job(&mut tx, id, db.now()).await.unwrap());
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn a_claim_that_no_page_is_to_blame_for_does_not_count() {
    for db in databases().await {
        let team = testing::team(&db, "a").await;
        let (_, ids) = job(&db, team, JobKind::Batch, 1, None).await;
        for _ in 0..=MAX_CLAIMS {
            let lost = take(&db, team, 1, db.now()).await.pages;
            let mut tx = db.begin().await.unwrap();
            let lost = lost.into_iter().map(|page| (page, Loss::NeverBegun)).collect();
            rescue(&mut tx, lost, db.now()).await.unwrap();
            tx.commit().await.unwrap();
        }
        let page = load(&db, ids[0]).await.unwrap().unwrap();
        assert_eq!((page.state, page.claims), (PageState::Queued, 0));
        // Work that breaks off again and again is another matter.
        for _ in 0..MAX_CLAIMS {
            let lost = take(&db, team, 1, db.now()).await.pages;
            let mut tx = db.begin().await.unwrap();
            let lost = lost.into_iter().map(|page| (page, Loss::BrokeOff)).collect();
            rescue(&mut tx, lost, db.now()).await.unwrap();
            tx.commit().await.unwrap();
        }
        let page = load(&db, ids[0]).await.unwrap().unwrap();
        assert_eq!((page.state, page.error_code.as_deref()), (PageState::Failed, Some("SCRAPE_RETRY_LIMIT")));
    }
}

#[tokio::test]
async fn actions_are_begun_by_one_claim_until_the_page_is_replayed_whoever_replays_it() {
    for db in databases().await {
        let team = testing::team(&db, "a").await;
        job(&db, team, JobKind::Batch, 1, None).await;
        let next = async || take(&db, team, 1, db.now().plus_ms(MINUTE_MS)).await.pages.remove(0);
        let begins = async |page: &Claimed| acting::begin(&db, page).await.unwrap();
        let fail = async |page| {
            let failed = Outcome::Failed { code: ErrorCode::AllEnginesFailed, error: "no".to_owned(), credits: 0 };
            end(&db, vec![page], &failed).await;
        };
        end(&db, vec![next().await], &Outcome::GivenBack).await;
        let mut page = next().await;
        assert!(begins(&page).await && begins(&page).await, "the answer may have been lost");
        // Neither a worker that gives it back nor one that dies makes its next claim a first one.
        for lost in [Outcome::GivenBack, Outcome::Lost { reason: "the worker died" }, Outcome::GivenBack] {
            end(&db, vec![page], &lost).await;
            page = next().await;
            assert!(!begins(&page).await, "{lost:?}");
        }
        fail(page).await;

        // As a release does it that knows nothing of them: what was begun stays in the row.
        const PAGES: &str = "UPDATE page SET state = 'queued', tries = 0, claims = 0, replays = replays + 1, \
            epoch = epoch + 1, finished_at = NULL, error_code = NULL, error = NULL WHERE state = 'failed'";
        const JOBS: &str = "UPDATE job SET queued = queued + 1, due_at = 0, failed = failed - 1, status = 'scraping', \
            finished_at = NULL";
        let mut tx = db.begin().await.unwrap();
        for sql in [PAGES, JOBS] {
            on_db!(&mut tx, |conn| sqlx::query(sql).execute(conn).await.unwrap().rows_affected());
        }
        tx.commit().await.unwrap();
        let page = next().await;
        assert!(begins(&page).await, "an operator has said so");
        end(&db, vec![page], &Outcome::GivenBack).await;
        let page = next().await;
        assert!(!begins(&page).await, "once");
        fail(page).await;

        let id = failed_page(&db).await;
        let mut tx = db.begin().await.unwrap();
        assert_eq!(replay::replay(&mut tx, id, false, db.now()).await.unwrap(), replay::Replay::Queued);
        tx.commit().await.unwrap();
        assert!(begins(&next().await).await);
    }
}

/// The page that has failed.
async fn failed_page(db: &Db) -> PageId {
    let filter = replay::ReplayFilter { limit: 1, ..replay::ReplayFilter::default() };
    replay::replayable(db, &filter, db.now().plus_ms(MINUTE_MS)).await.unwrap().remove(0).id
}

/// Runs `work` while somebody else holds the team's lock.
async fn while_locked<T>(db: &Db, team: TeamId, work: impl Future<Output = T>) -> T {
    let Db::Postgres(PostgresDb { pool, .. }) = db else { unreachable!("SQLite has no such locks") };
    // However long it takes, the server does not take the lock away.
    let mut tx = pool.begin_with("BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0").await.unwrap();
    sqlx::query("SELECT id FROM team WHERE id = $1 FOR UPDATE").bind(team).execute(&mut *tx).await.unwrap();
    let done = tokio::time::timeout(std::time::Duration::from_secs(60), work).await;
    tx.rollback().await.unwrap();
    done.expect("it waits for the lock")
}

#[tokio::test]
async fn claims_do_not_wait_for_a_lock_with_slots_in_their_hands() {
    for db in databases().await {
        // SQLite has one writer at a time.
        if matches!(db, Db::Sqlite(_)) {
            continue;
        }
        let (team, worker) = (testing::team(&db, "a").await, WorkerId::new());
        let (_, ids) = job(&db, team, JobKind::Scrape, 1, None).await;
        let mut tx = db.begin().await.unwrap();
        queue::page_wakeup(&mut tx, team, ids[0], Turn::default()).await.unwrap();
        tx.commit().await.unwrap();
        let now = db.now();
        let dispatcher = async {
            let mut tx = db.begin_claim().await.unwrap();
            claim(&mut tx, team, worker, 1, 9, now).await.map(|_| ())
        };
        let one = async { claim_one(&db, team, ids[0], worker, 9, now).await.map(|_| ()) };
        let next = async { fast::claim_next(&db, worker, 9, now).await.map(|_| ()) };
        let scrape = crate::worker_api::direct::DirectScrape {
            job: JobId::new(),
            page: PageId::new(),
            team,
            key: None,
            options: crate::domain::scrape::ScrapeOptions::default(),
            url: "http://site.test/".into(),
            target: "http://site.test/".into(),
            origin: None,
            version: crate::domain::api_version::ApiVersion::V2,
            created_at: now,
            expires_at: now.plus_ms(MINUTE_MS),
        };
        let rows = scrape.rows();
        let direct = async { fast::insert_claimed(&db, &rows, worker, 9, now).await.map(|_| ()) };
        for refused in [
            while_locked(&db, team, dispatcher).await,
            while_locked(&db, team, one).await,
            while_locked(&db, team, next).await,
            while_locked(&db, team, direct).await,
        ] {
            assert!(refused.unwrap_err().is_lock_wait());
        }
        assert!(fast::claim_next(&db, worker, 9, now).await.unwrap().is_some(), "nothing is lost");
        assert!(fast::insert_claimed(&db, &rows, worker, 9, now).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn orphans_of_one_team_do_not_wait_for_anothers_lock() {
    for db in databases().await {
        if matches!(db, Db::Sqlite(_)) {
            continue;
        }
        let (one, two) = (testing::team(&db, "a").await, testing::team(&db, "b").await);
        for team in [one, two] {
            job(&db, team, JobKind::Batch, 2, None).await;
            assert_eq!(take(&db, team, 2, db.now()).await.pages.len(), 2);
        }
        let rescue = async {
            let mut tx = db.begin().await.unwrap();
            let count = rescue_orphans(&mut tx, db.now(), 100).await.unwrap();
            tx.commit().await.unwrap();
            count
        };
        assert_eq!(while_locked(&db, one, rescue).await, 2, "those of the other team");
        assert_eq!(orphaned_teams(&db, 9).await.unwrap(), [one]);
        let mut tx = db.begin().await.unwrap();
        assert_eq!(rescue_orphans(&mut tx, db.now(), 100).await.unwrap(), 2);
        tx.commit().await.unwrap();
    }
}
