//! What is left when the store's work breaks at a named point, and what time does to claims, on both databases.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use super::page::end::{Encoded, Finished, Outcome};
use super::page::rescue::rescue_orphans;
use super::page::rows::Claimed;
use super::page::{claim, finish};
use super::{jobs, nodes, pages};
use crate::domain::job::{JobKind, JobStatus, PageState};
use crate::domain::node::NodeState;
use crate::error_code::ErrorCode;
use crate::fault::{Fault, FaultPoint};
use crate::ids::{JobId, TeamId, WorkerId};
use crate::store::accounts::credits;
use crate::store::contents::version::Body;
use crate::store::testing::{databases, job, team};
use crate::store::{Db, StoreError};

async fn claim(db: &Db, team: TeamId, worker: WorkerId, want: usize) -> Vec<Claimed> {
    let mut tx = db.begin().await.unwrap();
    let claim = claim::claim(&mut tx, team, worker, want, 50, db.now()).await.unwrap();
    tx.commit().await.unwrap();
    claim.pages
}

fn done(page: Claimed, kind: JobKind) -> Finished {
    let body = Body::Inline(zstd::bulk::compress(b"{}", 1).unwrap());
    let document = Encoded { size: 2, packed: 2, body, version: None, snapshot: None, derived: None, steps: None };
    Finished { page, kind: Some(kind), key: None, outcome: Outcome::Done { document, credits: 1 } }
}

async fn finish(db: &Db, group: &[Finished]) -> usize {
    finish::finish(db, group, db.now()).await.unwrap().written.len()
}

/// The job's status and counts: total, queued, completed, failed. They are those of its pages.
async fn counts(db: &Db, id: JobId) -> (JobStatus, i64, i64, i64, i64) {
    let job = jobs::load(db, id).await.unwrap().unwrap();
    let rows = pages::list(db, id, None, 1_000).await.unwrap();
    let count = |state: PageState| rows.iter().filter(|page| page.state == state).count() as i64;
    let counted = (count(PageState::Queued), count(PageState::Done), count(PageState::Failed));
    assert_eq!((job.queued, job.completed, job.failed), counted);
    (job.status, job.total, job.queued, job.completed, job.failed)
}

async fn used(db: &Db, team: TeamId) -> i64 {
    credits::balance(db, team).await.unwrap().unwrap().used
}

/// A live worker that beats now.
async fn worker(db: &Db) -> WorkerId {
    let (id, now) = (WorkerId::new(), db.now());
    let node = nodes::NodeRow {
        id,
        name: "worker".into(),
        host: "host".into(),
        pid: 1,
        address: "127.0.0.1:1".into(),
        state: NodeState::Live,
        slots: 2,
        session_slots: 0,
        sessions_refused: None,
        started_at: now,
        heartbeat_at: now,
    };
    let mut tx = db.begin().await.unwrap();
    nodes::insert(&mut tx, &node).await.unwrap();
    tx.commit().await.unwrap();
    id
}

#[tokio::test]
async fn an_end_that_breaks_before_its_commit_is_written_by_the_next_try() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let (id, _) = job(&db, team, JobKind::Batch, 3, None).await;
        let ends: Vec<Finished> =
            claim(&db, team, WorkerId::new(), 3).await.into_iter().map(|page| done(page, JobKind::Batch)).collect();
        db.faults().arm(FaultPoint::BeforeCommit, Fault::Fail, 1);
        let broken = finish::finish(&db, &ends, db.now()).await;
        assert!(matches!(broken, Err(StoreError::Unavailable(_))), "{broken:?}");
        assert_eq!(counts(&db, id).await, (JobStatus::Scraping, 3, 0, 0, 0));
        assert_eq!(used(&db, team).await, 0);
        assert_eq!(finish(&db, &ends).await, 3);
        assert_eq!(counts(&db, id).await, (JobStatus::Completed, 3, 0, 3, 0));
        assert_eq!(used(&db, team).await, 3);
    }
}

#[tokio::test]
async fn an_end_whose_commit_nobody_heard_of_is_not_written_again() {
    for db in databases().await {
        let team = team(&db, "a").await;
        for (kind, pages) in [(JobKind::Batch, 3), (JobKind::Scrape, 1)] {
            let before = used(&db, team).await;
            let (id, _) = job(&db, team, kind, pages, None).await;
            let claimed = claim(&db, team, WorkerId::new(), pages).await;
            let ends: Vec<Finished> = claimed.into_iter().map(|page| done(page, kind)).collect();
            db.faults().arm(FaultPoint::AfterCommit, Fault::Fail, 1);
            assert!(finish::finish(&db, &ends, db.now()).await.is_err());
            assert_eq!(counts(&db, id).await.0, JobStatus::Completed);
            assert_eq!(finish(&db, &ends).await, 0, "it is written");
            assert_eq!(used(&db, team).await - before, pages as i64);
        }
    }
}

#[tokio::test]
async fn pages_of_a_worker_that_falls_silent_come_back_when_its_time_is_over() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let (id, _) = job(&db, team, JobKind::Batch, 2, None).await;
        let worker = worker(&db).await;
        assert_eq!(claim(&db, team, worker, 2).await.len(), 2);
        let sweep = async || {
            let mut tx = db.begin().await.unwrap();
            let buried = nodes::bury(&mut tx, db.now()).await.unwrap();
            let rescued = rescue_orphans(&mut tx, db.now(), 10).await.unwrap();
            tx.commit().await.unwrap();
            (buried, rescued)
        };
        let (most, rest) = (nodes::DEAD_MS * 2 / 3, nodes::DEAD_MS / 3 + 1);
        db.clock().advance(Duration::from_millis(most.unsigned_abs()));
        assert_eq!(sweep().await, (0, 0), "it may still live");
        db.clock().advance(Duration::from_millis(rest.unsigned_abs()));
        assert_eq!(sweep().await, (1, 2));
        assert_eq!(counts(&db, id).await, (JobStatus::Scraping, 2, 2, 0, 0));
        assert_eq!(claim(&db, team, WorkerId::new(), 2).await.len(), 2);
    }
}

#[tokio::test]
async fn a_retry_is_due_when_its_pause_has_passed() {
    for db in databases().await {
        let team = team(&db, "a").await;
        job(&db, team, JobKind::Batch, 1, None).await;
        let page = claim(&db, team, WorkerId::new(), 1).await.remove(0);
        let run_at = db.now().plus_ms(3_600_000);
        let retry = Outcome::Retry { code: ErrorCode::Site, error: "reset".into(), run_at };
        finish(&db, &[Finished { outcome: retry, ..done(page, JobKind::Batch) }]).await;
        db.clock().advance(Duration::from_secs(3_000));
        assert!(claim(&db, team, WorkerId::new(), 1).await.is_empty());
        db.clock().advance(Duration::from_secs(601));
        let page = claim(&db, team, WorkerId::new(), 1).await.remove(0);
        assert_eq!((page.tries, page.claims), (1, 2));
    }
}
