//! Which ends wait for a lock or a silent connection, which do not, and what is held meanwhile.

#![allow(clippy::unwrap_used, reason = "tests")]

use weir_shared::blobs::Blobs;
use weir_shared::config::DatabaseUrl;
use weir_shared::domain::job::JobStatus;
use weir_shared::domain::scrape::ScrapeOptions;
use weir_shared::error_code::ErrorCode;
use weir_shared::fault::{Fault, FaultPoint};
use weir_shared::ids::{JobId, WorkerId};
use weir_shared::random;
use weir_shared::store::accounts::teams;
use weir_shared::store::work::jobs;
use weir_shared::store::work::page::claim;
use weir_shared::store::work::page::end::{Discovery, Encoded, Found};
use weir_shared::store::work::page::rows::{self, Claimed};
use weir_shared::store::{self, PoolUse, PostgresDb};

use super::*;
use crate::dispatch::held::HeldPages;
use crate::testing::postgres;

/// A team with a batch, all of its pages claimed.
async fn claimed(db: &Db, name: &str, count: usize) -> (TeamId, JobId, Vec<Claimed>) {
    let now = db.now();
    let (job, options) = (JobId::new(), ScrapeOptions::default());
    let mut tx = db.begin().await.unwrap();
    let team = teams::insert(&mut tx, name, now).await.unwrap();
    let row = jobs::NewJob {
        id: job,
        team,
        key: None,
        kind: JobKind::Batch,
        options: &options,
        target: "http://site.test/",
        origin: None,
        max_concurrency: None,
        webhook: None,
        total: count as i64,
        created_at: now,
        expires_at: now.plus_ms(86_400_000),
    };
    jobs::insert(&mut tx, &row).await.unwrap();
    let urls: Vec<String> = (0..count).map(|n| format!("http://site.test/{n}")).collect();
    rows::insert_many(&mut tx, job, team, 0, &urls, now).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = db.begin().await.unwrap();
    let pages = claim::claim(&mut tx, team, WorkerId::new(), count, 100, db.now()).await.unwrap().pages;
    tx.commit().await.unwrap();
    assert_eq!(pages.len(), count);
    (team, job, pages)
}

fn done(page: Claimed) -> Finished {
    let body = Body::Inline(zstd::bulk::compress(b"{\"markdown\":\"text\"}", 1).unwrap());
    let document = Encoded { size: 19, packed: 19, body, version: None, snapshot: None, derived: None, steps: None };
    Finished { page, kind: Some(JobKind::Batch), key: None, outcome: Outcome::Done { document, credits: 1 } }
}

#[tokio::test]
async fn one_teams_lock_keeps_no_other_team_waiting_and_its_pages_are_held() {
    let Some(url) = postgres().await else { return };
    let db = Db::connect(&url, 4, PoolUse::Rows).await.unwrap();
    let ends = Db::connect(&url, 1, PoolUse::Ends).await.unwrap();
    let late_ends = Db::connect(&url, 2, PoolUse::LateEnds).await.unwrap();
    let blobs = Blobs::open(&std::env::temp_dir()).unwrap();
    let (finisher, task) = Finisher::start(ends, late_ends, blobs, Metrics::new().unwrap(), Arc::default());

    let held: Arc<HeldPages> = Arc::default();
    let (locked_team, locked_job, mut locked_pages) = claimed(&db, "locked", 80).await;
    let (_, free_job, free_pages) = claimed(&db, "free", 80).await;
    let last_locked = locked_pages.split_off(79);
    let submit = async |pages: Vec<Claimed>| {
        let mut ends = Vec::new();
        for page in pages {
            let (sender, receiver) = oneshot::channel();
            let holding = held.hold(&page);
            finisher.submit(done(page), holding, Some(sender)).await;
            ends.push(receiver);
        }
        ends
    };
    let written = async |ends: Vec<oneshot::Receiver<WrittenEnd>>| {
        for end in ends {
            let end = tokio::time::timeout(Duration::from_secs(60), end).await.expect("it waits");
            assert!(matches!(end.unwrap(), WrittenEnd::Document { .. }));
        }
    };

    let Db::Postgres(PostgresDb { pool, .. }) = &db else { unreachable!() };
    let mut lock = pool.begin_with("BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0").await.unwrap();
    let sql = "SELECT id FROM team WHERE id = $1 FOR UPDATE";
    sqlx::query(sql).bind(locked_team).execute(&mut *lock).await.unwrap();
    let late = submit(locked_pages.clone()).await;
    written(submit(free_pages.clone()).await).await;
    assert_eq!(jobs::load(&db, free_job).await.unwrap().unwrap().status, JobStatus::Completed);
    assert!(free_pages.iter().all(|page| !held.contains(page)));
    // Another one of the team, while it is known to be late.
    let later = submit(last_locked.clone()).await;
    assert!(locked_pages.iter().chain(&last_locked).all(|page| held.contains(page)), "nobody fetches them again");
    assert_eq!(jobs::load(&db, locked_job).await.unwrap().unwrap().completed, 0);

    lock.rollback().await.unwrap();
    written(late).await;
    written(later).await;
    let job = jobs::load(&db, locked_job).await.unwrap().unwrap();
    assert_eq!((job.status, job.completed, job.credits_used), (JobStatus::Completed, 80, 80));
    assert!(locked_pages.iter().chain(&last_locked).all(|page| !held.contains(page)));
    assert!(held.broken().is_empty());
    drop(finisher);
    tokio::time::timeout(Duration::from_secs(60), task).await.expect("it ends with its handles").unwrap();
}

/// Takes longer than the bound, so only with the long tests.
#[tokio::test]
async fn an_end_whose_connection_fell_silent_is_written_by_another() {
    if std::env::var("WEIR_TEST_LONG").is_err() {
        return;
    }
    let Some(url) = postgres().await else { return };
    let DatabaseUrl::Postgres(direct) = &url else { unreachable!() };
    // A way to the server that can stand still: its connections stay open, and nothing passes.
    let mut way = url::Url::parse(direct).unwrap();
    let target = (way.host_str().unwrap().to_owned(), way.port().unwrap_or(5432));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    way.set_port(Some(listener.local_addr().unwrap().port())).unwrap();
    let frozen = tokio_util::sync::CancellationToken::new();
    let stands = frozen.clone();
    let passing = tokio::spawn(async move {
        let mut open = Vec::new();
        loop {
            let (mut near, _) = listener.accept().await.unwrap();
            let (mut far, stands) = (tokio::net::TcpStream::connect(target.clone()).await.unwrap(), stands.clone());
            open.push(tokio_util::task::AbortOnDropHandle::new(tokio::spawn(async move {
                let passes = tokio::io::copy_bidirectional(&mut near, &mut far);
                if stands.run_until_cancelled(passes).await.is_none() {
                    std::future::pending::<()>().await;
                }
            })));
        }
    });
    let db = Db::connect(&url, 4, PoolUse::Rows).await.unwrap();
    let (_, job, pages) = claimed(&db, "acme", 1).await;
    let ends = Db::connect(&DatabaseUrl::Postgres(way.to_string()), 1, PoolUse::Ends).await.unwrap();
    let late_ends = Db::connect(&url, 2, PoolUse::LateEnds).await.unwrap();
    let blobs = Blobs::open(&std::env::temp_dir()).unwrap();
    let (finisher, task) = Finisher::start(ends, late_ends, blobs, Metrics::new().unwrap(), Arc::default());
    let held: Arc<HeldPages> = Arc::default();
    frozen.cancel();
    let (sender, written) = oneshot::channel();
    finisher.submit(done(pages[0].clone()), held.hold(&pages[0]), Some(sender)).await;
    let written = tokio::time::timeout(Duration::from_secs(40), written).await.expect("nobody noticed").unwrap();
    assert!(matches!(written, WrittenEnd::Document { .. }));
    assert_eq!(jobs::load(&db, job).await.unwrap().unwrap().status, JobStatus::Completed);
    drop(finisher);
    tokio::time::timeout(Duration::from_secs(60), task).await.expect("it ends with its handles").unwrap();
    passing.abort();
}

#[tokio::test]
async fn an_end_that_the_database_never_takes_keeps_no_other_waiting() {
    // SQLite has no such text.
    let Some(url) = postgres().await else { return };
    let db = Db::connect(&url, 2, PoolUse::Rows).await.unwrap();
    let blobs = Blobs::open(&std::env::temp_dir()).unwrap();
    let (_, job, pages) = claimed(&db, "acme", 3).await;
    let held: Arc<HeldPages> = Arc::default();
    let (finisher, task) = Finisher::start(db.clone(), db.clone(), blobs, Metrics::new().unwrap(), Arc::default());
    for (n, page) in pages.iter().enumerate() {
        let (holding, mut end) = (held.hold(page), done(page.clone()));
        if n == 1 {
            end.outcome = Outcome::Failed { code: ErrorCode::Action, error: "a\0b".to_owned(), credits: 0 };
        }
        finisher.submit(end, holding, None).await;
    }
    drop(finisher);
    tokio::time::timeout(Duration::from_secs(60), task).await.expect("it ends with its handles").unwrap();
    assert_eq!(jobs::load(&db, job).await.unwrap().unwrap().completed, 2);
    let broken = held.broken();
    assert!(broken.len() == 1 && broken.contains(&(pages[1].id, pages[1].epoch)), "it is tried again");
}

#[tokio::test]
async fn pages_with_many_links_are_written_a_few_at_a_time() {
    let root = std::env::temp_dir().join(format!("weir-finisher-{}", random::id()));
    let url = DatabaseUrl::Sqlite(root.join("weir.db"));
    let db = Db::connect(&url, 2, PoolUse::Rows).await.unwrap();
    store::migrate(&db).await.unwrap();
    let blobs = Blobs::open(&root.join("blobs")).unwrap();
    let (_, job, pages) = claimed(&db, "acme", 12).await;
    let metrics = Metrics::new().unwrap();
    let (commits, held): (_, Arc<HeldPages>) = (metrics.commit_pages.clone(), Arc::default());
    let (finisher, task) = Finisher::start(db.clone(), db.clone(), blobs, metrics, Arc::default());
    for page in pages {
        let found = (0..400).map(|n| Found { key: format!("{n:032x}"), url: format!("http://site.test/{n}") });
        let discovery = Box::new(Discovery { found: found.collect(), ..Discovery::default() });
        let (holding, mut end) = (held.hold(&page), done(page));
        if let Outcome::Done { document, credits } = end.outcome {
            end.outcome = Outcome::Crawled { document: Some(document), credits, discovery };
        }
        finisher.submit(end, holding, None).await;
    }
    drop(finisher);
    tokio::time::timeout(Duration::from_secs(60), task).await.expect("it ends with its handles").unwrap();
    assert_eq!(jobs::load(&db, job).await.unwrap().unwrap().completed, 12);
    assert!(commits.get_sample_count() >= 4, "three pages, with 1,200 addresses, at a time");
    db.close().await;
    std::fs::remove_dir_all(root).unwrap();
}

#[tokio::test]
async fn a_blob_whose_commit_nobody_heard_of_stays() {
    let root = std::env::temp_dir().join(format!("weir-finisher-{}", random::id()));
    let url = DatabaseUrl::Sqlite(root.join("weir.db"));
    let db = Db::connect(&url, 2, PoolUse::Rows).await.unwrap();
    store::migrate(&db).await.unwrap();
    let blobs = Blobs::open(&root.join("blobs")).unwrap();
    let (_, job, mut pages) = claimed(&db, "acme", 1).await;
    let metrics = Metrics::new().unwrap();
    let (finisher, task) = Finisher::start(db.clone(), db.clone(), blobs.clone(), metrics, Arc::default());
    blobs.put("one", b"one").unwrap();
    let document = Encoded {
        size: 3,
        packed: 3,
        body: Body::Blob("one".into()),
        version: None,
        snapshot: None,
        derived: None,
        steps: None,
    };
    let page = pages.remove(0);
    let held: Arc<HeldPages> = Arc::default();
    let holding = held.hold(&page);
    let outcome = Outcome::Done { document, credits: 1 };
    let end = Finished { page, kind: Some(JobKind::Batch), key: None, outcome };
    db.faults().arm(FaultPoint::AfterCommit, Fault::Fail, 1);
    finisher.submit(end, holding, None).await;
    drop(finisher);
    tokio::time::timeout(Duration::from_secs(60), task).await.expect("it ends with its handles").unwrap();
    assert!(db.faults().have_happened());
    let row = jobs::load(&db, job).await.unwrap().unwrap();
    assert_eq!((row.status, row.completed, row.credits_used), (JobStatus::Completed, 1, 1));
    assert_eq!(blobs.get("one").unwrap(), b"one", "the row names it");
    assert!(held.broken().is_empty());
    db.close().await;
    std::fs::remove_dir_all(root).unwrap();
}
