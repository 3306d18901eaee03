//! What is big goes in slices, keeps what it promised between them, and locks in one order.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::time::Duration;

use sqlx::ConnectOptions as _;

use super::sweep;
use crate::blobs::Blobs;
use crate::clock::Stopwatch;
use crate::domain::cache::CacheKey;
use crate::domain::job::{JobKind, JobStatus, PageState, WebhookEvent};
use crate::error_code::ErrorCode;
use crate::ids::{JobId, PageId, TeamId, WorkerId};
use crate::queue;
use crate::random;
use crate::store::accounts::{credits, team_lock};
use crate::store::contents::version::{Body, Version};
use crate::store::contents::{retention, waste};
use crate::store::db::slices::Slices;
use crate::store::testing::{databases, job, team, wait_for_a_lock};
use crate::store::work::cancel;
use crate::store::work::page::end::{Encoded, Finished, Outcome};
use crate::store::work::page::rows::{self, Claimed};
use crate::store::work::page::{claim, finish, rescue};
use crate::store::work::{drafts, jobs, pages, webhooks};
use crate::store::{Db, PoolUse, PostgresDb};
use crate::{on_db, on_pool};

async fn claim(db: &Db, team: TeamId, want: usize) -> Vec<Claimed> {
    let mut tx = db.begin().await.unwrap();
    let claim = claim::claim(&mut tx, team, WorkerId::new(), want, 1_000, db.now()).await.unwrap();
    tx.commit().await.unwrap();
    claim.pages
}

/// What a site has sent for it, at this place.
fn sent(page: &Claimed, place: &str) -> Version {
    Version {
        places: vec![CacheKey(place.to_owned())],
        counts_ms: 60_000,
        url: page.url.clone(),
        site: None,
        digest: format!("of {place}"),
        head: "{}".to_owned(),
        size: 3,
        packed: 3,
        body: Body::Inline(vec![1, 2, 3]),
    }
}

/// The end of a page with a small document; what its site has sent is kept under `key`.
fn done(page: Claimed, key: Option<&str>) -> Finished {
    let body = zstd::bulk::compress(br#"{"markdown":"text"}"#, 1).unwrap();
    let version = key.map(|key| Box::new(sent(&page, key)));
    let document = Encoded {
        size: 19,
        packed: body.len() as i64,
        body: Body::Inline(body),
        version,
        snapshot: None,
        derived: None,
        steps: None,
    };
    let outcome = Outcome::Done { document, credits: 1 };
    Finished { page, kind: Some(JobKind::Batch), key: None, outcome }
}

async fn count(db: &Db, sql: &'static str) -> i64 {
    let found: (i64,) = on_pool!(db, |pool| sqlx::query_as(sql).fetch_one(pool).await.unwrap());
    found.0
}

async fn run(db: &Db, sql: &'static str) {
    let mut tx = db.begin().await.unwrap();
    on_db!(&mut tx, |conn| sqlx::query(sql).execute(conn).await.unwrap().rows_affected());
    tx.commit().await.unwrap();
}

async fn in_state(db: &Db, job: JobId, state: PageState) -> usize {
    pages::list(db, job, Some(state), 100_000).await.unwrap().len()
}

#[tokio::test]
async fn a_cancel_of_many_pages_is_whole_at_once_and_marks_them_in_slices() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let (id, _) = job(&db, team, JobKind::Batch, 3_000, None).await;
        let mut running = claim(&db, team, 2).await;
        let now = db.now();
        let mut tx = db.begin().await.unwrap();
        assert!(cancel::job(&mut tx, id, now).await.unwrap());
        tx.commit().await.unwrap();
        let shown = async || {
            let job = jobs::load(&db, id).await.unwrap().unwrap();
            (job.status, job.total, job.queued, job.completed)
        };
        assert_eq!(shown().await, (JobStatus::Cancelled, 2, 0, 0));
        assert!(in_state(&db, id, PageState::Cancelled).await <= 1_000, "one slice");
        assert!(claim(&db, team, 10).await.is_empty(), "what is cancelled never starts");
        let mut tx = db.begin().await.unwrap();
        assert_eq!(rescue::remind_teams(&mut tx, now.plus_ms(60_000)).await.unwrap(), 0);
        tx.commit().await.unwrap();

        // Between the slices a running page comes back, and another one ends.
        let lost = Finished { outcome: Outcome::Lost { reason: "the worker died" }, ..done(running.remove(0), None) };
        finish::finish(&db, &[lost, done(running.remove(0), None)], now).await.unwrap();
        assert_eq!(shown().await, (JobStatus::Cancelled, 1, 0, 1));
        assert!(claim(&db, team, 10).await.is_empty());

        cancel::drop_rest(&db, &mut Slices::default(), now).await.unwrap();
        assert_eq!(in_state(&db, id, PageState::Queued).await, 0);
        assert_eq!(in_state(&db, id, PageState::Cancelled).await, 2_999);
        assert_eq!(shown().await, (JobStatus::Cancelled, 1, 0, 1));
        assert_eq!(count(&db, "SELECT COUNT(*) FROM job WHERE dropping").await, 0);
    }
}

#[tokio::test]
async fn pages_of_a_draft_are_nobodys_until_it_is_accepted_and_go_when_it_is_not() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let now = db.now();
        let urls: Vec<String> = (0..10).map(|n| format!("http://site.test/{n}")).collect();
        let (kept, left) = (JobId::new(), JobId::new());
        for id in [kept, left] {
            let mut tx = db.begin().await.unwrap();
            drafts::begin(&mut tx, id, now).await.unwrap();
            rows::insert_many(&mut tx, id, team, 0, &urls, now).await.unwrap();
            tx.commit().await.unwrap();
        }
        assert!(claim(&db, team, 10).await.is_empty());
        sweep::remove_drafts(&db, &mut Slices::default(), now).await.unwrap();
        assert_eq!(in_state(&db, left, PageState::Queued).await, 10, "it may still be accepted");

        let mut tx = db.begin().await.unwrap();
        assert!(drafts::accept(&mut tx, kept, now).await.unwrap());
        assert!(!drafts::accept(&mut tx, kept, now).await.unwrap());
        assert!(!drafts::accept(&mut tx, left, now.plus_ms(590_000)).await.unwrap(), "its pages may be going");
        tx.commit().await.unwrap();
        drafts::abandon(&db, left).await.unwrap();
        drafts::abandon(&db, kept).await.unwrap();
        sweep::remove_drafts(&db, &mut Slices::default(), now).await.unwrap();
        assert_eq!(in_state(&db, left, PageState::Queued).await, 0);
        assert_eq!(in_state(&db, kept, PageState::Queued).await, 10);
        assert_eq!(count(&db, "SELECT COUNT(*) FROM job_draft").await, 0);
    }
}

/// More pages than go to the database at once: some with all that an end can leave, some with less, and one that failed.
#[tokio::test]
async fn a_large_group_of_ends_leaves_every_row_once() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let (id, _) = job(&db, team, JobKind::Batch, 75, None).await;
        let pages = claim(&db, team, 75).await;
        let mut group: Vec<Finished> = Vec::new();
        for (n, page) in pages.into_iter().enumerate() {
            // Two places each; the contents of every third page are those of the page before.
            let key = (n % 2 == 0).then(|| format!("place {}", n - n % 3));
            let mut end = done(page, key.as_deref());
            if n == 40 {
                end.outcome = Outcome::Failed { code: ErrorCode::Site, error: "it's \\ gone".to_owned(), credits: 2 };
            } else if let Some(document) = end.outcome.document_mut() {
                document.steps = (n % 3 == 0).then(|| "[]".to_owned());
                if let Some(version) = &mut document.version {
                    version.places.push(CacheKey(format!("further place {n}")));
                }
            }
            group.push(end);
        }
        let places: BTreeSet<&CacheKey> =
            group.iter().filter_map(|end| end.outcome.version()).flat_map(|version| &version.places).collect();
        let contents: BTreeSet<&str> =
            group.iter().filter_map(|end| end.outcome.version()).map(|version| version.digest.as_str()).collect();
        let (places, contents) = (places.len() as i64, contents.len() as i64);
        let report = finish::finish(&db, &group, db.now()).await.unwrap();
        assert_eq!((report.written.len(), report.ended), (75, vec![id]));
        assert_eq!(count(&db, "SELECT COUNT(*) FROM document WHERE size = 19 AND length(body) > 0").await, 74);
        assert_eq!(count(&db, "SELECT COUNT(DISTINCT seq) * 1000 + MAX(seq) FROM document").await, 74_074);
        assert_eq!(count(&db, "SELECT COUNT(*) FROM document WHERE steps = '[]'").await, 25);
        assert_eq!(count(&db, "SELECT COUNT(*) FROM page_content").await, contents);
        assert_eq!(count(&db, "SELECT COUNT(*) FROM page_version").await, places);
        assert_eq!(
            count(&db, "SELECT COUNT(*) FROM page_version v JOIN page_content c ON c.digest = v.digest").await,
            places
        );
        assert_eq!(count(&db, "SELECT COUNT(*) FROM credit_entry").await, 75);
        assert_eq!(count(&db, "SELECT credits_used FROM team WHERE credits_used > 0").await, 76);
        let failed = pages::failed_of(&db, id, 10).await.unwrap();
        assert_eq!(failed.iter().map(|page| page.error.as_deref()).collect::<Vec<_>>(), [Some("it's \\ gone")]);

        // Told again, it changes nothing.
        let report = finish::finish(&db, &group, db.now()).await.unwrap();
        assert!(report.written.is_empty() && report.ended.is_empty());
        assert_eq!(count(&db, "SELECT COUNT(*) FROM document").await, 74);
        assert_eq!(count(&db, "SELECT credits_used FROM team WHERE credits_used > 0").await, 76);
    }
}

/// So many jobs of one page each that are done.
async fn finished_jobs(db: &Db, team: TeamId, jobs: usize) -> Vec<JobId> {
    let mut ids = Vec::new();
    for _ in 0..jobs {
        ids.push(job(db, team, JobKind::Scrape, 1, None).await.0);
    }
    loop {
        let pages = claim(db, team, 50).await;
        if pages.is_empty() {
            return ids;
        }
        let ends: Vec<Finished> = pages.into_iter().map(|page| done(page, None)).collect();
        finish::finish(db, &ends, db.now()).await.unwrap();
    }
}

#[tokio::test]
async fn expired_jobs_go_together_and_their_blobs_are_not_forgotten() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let root = std::env::temp_dir().join(format!("weir-blobs-{}", random::id()));
        let blobs = Blobs::open(&root).unwrap();
        let ids = finished_jobs(&db, team, 60).await;
        let (cancelled, _) = job(&db, team, JobKind::Batch, 2_500, None).await;
        let mut tx = db.begin().await.unwrap();
        assert!(cancel::job(&mut tx, cancelled, db.now()).await.unwrap());
        tx.commit().await.unwrap();
        run(
            &db,
            "UPDATE job SET zero_retention = TRUE WHERE total = 1 AND id IN (SELECT id FROM job ORDER BY id LIMIT 9)",
        )
        .await;
        // The blobs of one cannot be removed at first: where its folder should be there is a file.
        let stuck = Blobs::key(ids[7], PageId::new(), 1);
        let folder = root.join(&stuck).parent().unwrap().to_owned();
        std::fs::create_dir_all(folder.parent().unwrap()).unwrap();
        std::fs::write(&folder, b"").unwrap();
        blobs.put(&Blobs::key(ids[8], PageId::new(), 1), b"large").unwrap();

        let later = db.now().plus_ms(90_000_000);
        let mut slices = Slices::default();
        let mut gone = 0;
        while gone < 61 {
            let more = sweep::expire(&db, &mut slices, later).await.unwrap();
            assert!(more > 0, "only {gone} went");
            gone += more;
        }
        assert_eq!(sweep::expire(&db, &mut slices, later).await.unwrap(), 0);
        assert!(jobs::load(&db, cancelled).await.unwrap().is_none());
        for table in [
            "SELECT COUNT(*) FROM job",
            "SELECT COUNT(*) FROM page",
            "SELECT COUNT(*) FROM document",
            "SELECT COUNT(*) FROM webhook_delivery",
        ] {
            assert_eq!(count(&db, table).await, 0, "{table}");
        }
        assert_eq!(credits::balance(&db, team).await.unwrap().unwrap().used, 60);

        const WASTE: &str = "SELECT COUNT(*) FROM blob_waste";
        while waste::remove_of_jobs(&db, &blobs, later).await.unwrap() > 0 {}
        assert_eq!(count(&db, WASTE).await, 1, "what could not be removed");
        assert!(!root.join(Blobs::key(ids[8], PageId::new(), 1)).parent().unwrap().exists());
        std::fs::remove_file(&folder).unwrap();
        blobs.put(&stuck, b"large").unwrap();
        assert_eq!(waste::remove_of_jobs(&db, &blobs, later.plus_ms(60_000)).await.unwrap(), 1);
        assert_eq!(count(&db, WASTE).await, 0);
        assert!(!folder.exists());
    }
}

#[tokio::test]
async fn twenty_thousand_expired_jobs_are_gone_in_thirty_seconds() {
    if std::env::var("WEIR_TEST_LONG").as_deref() != Ok("1") {
        eprintln!("skipped: a long test, WEIR_TEST_LONG=1 runs it");
        return;
    }
    for db in databases().await {
        macro_rules! each {
            ($insert:literal, $select:literal) => {
                concat!(
                    "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000) ",
                    $insert,
                    " SELECT '00000000-0000-7000-8000-' || SUBSTR(CAST(1000000000000 + n AS TEXT), 2), ",
                    $select,
                    " FROM c"
                )
            };
        }
        let body = match &db {
            Db::Sqlite(_) => each!(
                "INSERT INTO document (page_id, job_id, seq, size, body)",
                "'00000000-0000-7000-8000-' || SUBSTR(CAST(1000000000000 + n AS TEXT), 2), 1, 9, zeroblob(6000)"
            ),
            Db::Postgres(_) => each!(
                "INSERT INTO document (page_id, job_id, seq, size, body)",
                "'00000000-0000-7000-8000-' || SUBSTR(CAST(1000000000000 + n AS TEXT), 2), 1, 9, \
                 CAST(REPEAT('x', 6000) AS BYTEA)"
            ),
        };
        for sql in [
            each!(
                "INSERT INTO job (id, team_id, kind, status, rank, options, target, total, queued, completed, \
                created_at, expires_at, finished_at)",
                "'t', 'scrape', 'completed', 0, '{}', '', 1, 0, 1, 1, 2, 2"
            ),
            each!(
                "INSERT INTO page (id, job_id, team_id, idx, url, state, run_at, queued_at)",
                "'00000000-0000-7000-8000-' || SUBSTR(CAST(1000000000000 + n AS TEXT), 2), 't', 0, '', 'done', 1, 1"
            ),
            body,
        ] {
            run(&db, sql).await;
        }
        let url = match &db {
            Db::Sqlite(db) => crate::config::DatabaseUrl::Sqlite(db.pool.connect_options().get_filename().to_owned()),
            Db::Postgres(PostgresDb { pool, .. }) => {
                crate::config::DatabaseUrl::Postgres(pool.connect_options().to_url_lossy().to_string())
            }
        };
        let neighbour = Db::connect(&url, 1, PoolUse::Rows).await.unwrap();
        let expiry = async {
            let began = Stopwatch::start();
            let mut slices = Slices::default();
            while sweep::expire(&db, &mut slices, db.now()).await.unwrap() > 0 {}
            began.elapsed()
        };
        let others = async {
            let mut longest = Duration::ZERO;
            for n in 0.. {
                let began = Stopwatch::start();
                team(&neighbour, &format!("neighbour {n}")).await;
                longest = longest.max(began.elapsed());
                tokio::time::sleep(Duration::from_millis(20)).await;
                if count(&db, "SELECT COUNT(*) FROM job").await == 0 {
                    break;
                }
            }
            longest
        };
        let (took, longest) = tokio::join!(expiry, others);
        eprintln!("gone after {took:?}; another one's write took {longest:?} at most");
        assert!(took < Duration::from_secs(120), "{took:?}");
        // In one piece, or behind it, a write would take about all of that time.
        assert!(longest < Duration::from_secs(2).max(took / 3), "{longest:?} of {took:?}");
    }
}

#[tokio::test]
async fn reminders_do_not_pile_up_and_those_that_are_done_with_go() {
    for db in databases().await {
        let (a, b) = (team(&db, "a").await, team(&db, "b").await);
        let now = db.now();
        job(&db, a, JobKind::Batch, 2, None).await;
        let (hooked, ids) = job(&db, b, JobKind::Batch, 2, None).await;
        let mut tx = db.begin().await.unwrap();
        queue::team_wakeup(&mut tx, b, Duration::from_secs(3_600)).await.unwrap();
        webhooks::queue(&mut tx, b, hooked, None, WebhookEvent::Started, now).await.unwrap();
        webhooks::queue(&mut tx, b, hooked, Some(ids[0]), WebhookEvent::Page, now).await.unwrap();
        tx.commit().await.unwrap();
        let remind = async || {
            let mut tx = db.begin().await.unwrap();
            rescue::remind_teams(&mut tx, now.plus_ms(60_000)).await.unwrap();
            let hooks = webhooks::remind(&mut tx, now.plus_ms(60_000)).await.unwrap();
            tx.commit().await.unwrap();
            let mut due = queue::due(&db).await.unwrap();
            due.sort();
            (hooks, due)
        };
        // Two for the deliveries as they were queued, one for each team; the one for later invites nobody now.
        let expected = [("lane".to_owned(), 2), ("webhook".to_owned(), 2)];
        for _ in 0..3 {
            assert_eq!(remind().await, (1, expected.to_vec()));
        }
        // Nothing is due of the stage that fails, whatever waits behind it.
        let mut tx = db.begin().await.unwrap();
        let taken = webhooks::claim(&mut tx, hooked, now, now.plus_ms(600_000), 10).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(taken.len(), 1);
        assert_eq!(remind().await.0, 0);

        // Wake-ups that the library is done with, those that it gave up included.
        let old = match &db {
            Db::Sqlite(_) => {
                "UPDATE Jobs SET status = CASE job_type WHEN 'lane' THEN 'Done' ELSE 'Failed' END, \
                 attempts = max_attempts, done_at = unixepoch() - 60"
            }
            Db::Postgres(_) => {
                "UPDATE apalis.jobs SET status = CASE job_type WHEN 'lane' THEN 'Done' ELSE 'Failed' END, \
                 attempts = max_attempts, done_at = now() - interval '60 seconds'"
            }
        };
        run(&db, old).await;
        sweep::prune_wakeups(&db, &mut Slices::default()).await.unwrap();
        let left = match &db {
            Db::Sqlite(_) => "SELECT COUNT(*) FROM Jobs",
            Db::Postgres(_) => "SELECT COUNT(*) FROM apalis.jobs",
        };
        assert_eq!(count(&db, left).await, 0);
    }
}

#[tokio::test]
async fn what_is_taken_out_of_a_jobs_rows_locks_as_its_end_does() {
    for db in databases().await {
        if matches!(db, Db::Sqlite(_)) {
            continue;
        }
        let team = team(&db, "a").await;
        let (id, _) = job(&db, team, JobKind::Scrape, 1, None).await;
        let mut tx = db.begin().await.unwrap();
        team_lock::lock(&mut tx, team).await.unwrap();
        const PAGE: &str = "UPDATE page SET tries = 1 WHERE job_id = $1";
        on_db!(&mut tx, |conn| sqlx::query(PAGE).bind(id).execute(conn).await.unwrap().rows_affected());
        let blobs = Blobs::open(&std::env::temp_dir()).unwrap();
        let other = db.clone();
        let blanking = tokio::spawn(async move { retention::forget(&other, &blobs, id).await });
        wait_for_a_lock(&db).await;
        const JOB: &str = "UPDATE job SET completed = 1 WHERE id = $1";
        on_db!(&mut tx, |conn| sqlx::query(JOB).bind(id).execute(conn).await.unwrap().rows_affected());
        tx.commit().await.unwrap();
        blanking.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn what_sites_sent_for_a_group_is_written_in_the_order_of_its_keys() {
    for db in databases().await {
        if matches!(db, Db::Sqlite(_)) {
            continue;
        }
        let team = team(&db, "a").await;
        job(&db, team, JobKind::Batch, 3, None).await;
        for row in [
            "INSERT INTO page_content (digest, size, packed, used_at, body) VALUES ('of a', 1, 1, 1, '')",
            "INSERT INTO page_content (digest, size, packed, used_at, body) VALUES ('of z', 1, 1, 1, '')",
            "INSERT INTO page_version (key, team_id, url, digest, head, stored_at, expires_at) \
             VALUES ('a', 't', 'u', 'of a', '', 1, 1)",
            "INSERT INTO page_version (key, team_id, url, digest, head, stored_at, expires_at) \
             VALUES ('z', 't', 'u', 'of z', '', 1, 1)",
        ] {
            run(&db, row).await;
        }
        // Another writer holds the first content and waits for the last one, then the same with the versions. Three pages
        // are written in two parts.
        let mut tx = db.begin().await.unwrap();
        const FIRST: &str = "UPDATE page_content SET used_at = 2 WHERE digest = 'of a'";
        on_db!(&mut tx, |conn| sqlx::query(FIRST).execute(conn).await.unwrap().rows_affected());
        let pages = claim(&db, team, 3).await;
        let ends: Vec<Finished> =
            pages.into_iter().zip(["z", "y", "a"]).map(|(page, key)| done(page, Some(key))).collect();
        let other = db.clone();
        let ending = tokio::spawn(async move { finish::finish(&other, &ends, other.now()).await });
        wait_for_a_lock(&db).await;
        for sql in [
            "UPDATE page_content SET used_at = 2 WHERE digest = 'of z'",
            "UPDATE page_version SET stored_at = 2 WHERE key = 'a'",
            "UPDATE page_version SET stored_at = 2 WHERE key = 'z'",
        ] {
            on_db!(&mut tx, |conn| sqlx::query(sql).execute(conn).await.unwrap().rows_affected());
        }
        tx.commit().await.unwrap();
        assert_eq!(ending.await.unwrap().unwrap().written.len(), 3);
        assert_eq!(count(&db, "SELECT COUNT(*) FROM page_version WHERE digest = 'of ' || key").await, 3);
    }
}
