//! The fast way leaves the rows of the general way: both go through the same generated cases, each in a database of its
//! own, and after every step all rows of all tables are compared, on both databases.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use sqlx::AssertSqlSafe;

use super::*;
use crate::domain::activity::Endpoint;
use crate::domain::api_version::ApiVersion;
use crate::domain::cache::CacheKey;
use crate::domain::job::JobKind;
use crate::domain::scrape::ScrapeOptions;
use crate::error_code::ErrorCode;
use crate::ids::{JobId, KeyId, PageId, TeamId};
use crate::queue::{PageWakeup, Turn};
use crate::store::contents::snapshots::{Packed, Snapshot};
use crate::store::contents::version::{Body, Version};
use crate::store::work::cancel;
use crate::store::work::jobs::NewJob;
use crate::store::work::page::claim::claim_one;
use crate::store::work::page::end::{Encoded, Outcome};
use crate::store::work::page::finish::finish_many;
use crate::store::work::page::scrape::insert_scrape;
use crate::store::{PostgresDb, testing};
use crate::{on_db, on_pool};

/// How many cases are drawn: always the same ones, the first of them in each run and all in the long ones.
fn cases() -> u64 {
    if std::env::var("WEIR_TEST_LONG").as_deref() == Ok("1") { 150 } else { 50 }
}

/// Pages in work at once of a team that has no limit of its own.
const DEFAULT_LIMIT: i64 = 2;

/// Numbers that look like chance and are the same every time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % bound
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// How a page comes to its worker.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Begin {
    /// Its wake-up waits in the queue.
    Queued,
    /// It comes to its worker directly, as claimed.
    Dispatched,
}

/// What happens to a page in work before its end is written.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Meanwhile {
    Nothing,
    Overtaken,
    Replayed,
    ReplayedAndBilled,
    JobCancelled,
    PagesDeferred,
}

#[derive(Debug)]
struct Case {
    team: TeamId,
    job: JobId,
    page: PageId,
    key: Option<KeyId>,
    kind: JobKind,
    begin: Begin,
    limit: Option<i64>,
    /// Pages that the team has in work already.
    busy: Vec<(JobId, PageId)>,
    has_deferred_pages: bool,
    /// It is not due yet.
    is_late: bool,
    worker: WorkerId,
    created_at: Timestamp,
    meanwhile: Meanwhile,
    outcome: Outcome,
}

impl Case {
    fn draw(draw: &mut Draw, number: u64) -> Self {
        let now = Timestamp(1_700_000_000_000 + number as i64 * 10_000_000);
        let busy = (0..draw.below(3)).map(|_| (JobId::new(), PageId::new())).collect();
        let meanwhile = match draw.below(10) {
            0 => Meanwhile::Overtaken,
            1 => Meanwhile::Replayed,
            2 => Meanwhile::ReplayedAndBilled,
            3 => Meanwhile::JobCancelled,
            4 => Meanwhile::PagesDeferred,
            _ => Meanwhile::Nothing,
        };
        Self {
            team: TeamId::new(),
            job: JobId::new(),
            page: PageId::new(),
            key: draw.one_in(2).then(KeyId::new),
            kind: if draw.one_in(4) { JobKind::Map } else { JobKind::Scrape },
            begin: if draw.one_in(2) { Begin::Queued } else { Begin::Dispatched },
            limit: draw.one_in(2).then(|| 1 + draw.below(3) as i64),
            busy,
            has_deferred_pages: draw.one_in(6),
            is_late: draw.one_in(12),
            worker: WorkerId::new(),
            created_at: now,
            meanwhile,
            outcome: outcome(draw, now),
        }
    }

    /// When it is taken.
    fn taken_at(&self) -> Timestamp {
        self.created_at.plus_ms(if self.is_late { -1 } else { 5 })
    }

    fn scrape<'a>(&self, options: &'a ScrapeOptions, job: JobId, page: PageId) -> NewScrape<'a> {
        let job = NewJob {
            id: job,
            team: self.team,
            key: self.key,
            kind: self.kind,
            options,
            target: "http://site.test/",
            origin: None,
            max_concurrency: None,
            webhook: None,
            total: 1,
            created_at: self.created_at,
            expires_at: self.created_at.plus_ms(60_000),
        };
        NewScrape { job, page, url: "http://site.test/a", endpoint: Endpoint::Scrape, version: ApiVersion::V2 }
    }
}

fn outcome(draw: &mut Draw, now: Timestamp) -> Outcome {
    let (code, error) = (ErrorCode::Site, "reset".to_owned());
    match draw.below(12) {
        0 => Outcome::Failed { code, error, credits: draw.below(3) as i64 },
        1 => Outcome::Retry { code, error, run_at: now.plus_ms(4_000) },
        2 => Outcome::GivenBack,
        3 => Outcome::Postponed { run_at: now.plus_ms(2_000) },
        4 => Outcome::Lost { reason: "the worker died" },
        _ => Outcome::Done { document: document(draw, now), credits: draw.below(4) as i64 },
    }
}

fn document(draw: &mut Draw, now: Timestamp) -> Encoded {
    let body = if draw.one_in(4) { Body::Blob(format!("blob/{now}")) } else { Body::Inline(vec![1, 2, 3]) };
    // Few keys and contents, so that some are there already. One in two places is for the general way.
    let version = draw.one_in(2).then(|| {
        let places = (0..if draw.one_in(6) { 2 } else { 1 }).map(|_| CacheKey(format!("key {}", draw.below(3))));
        let places: Vec<CacheKey> = places.collect();
        Box::new(Version {
            places,
            counts_ms: 1_000,
            url: "http://site.test/a".to_owned(),
            site: draw.one_in(2).then(|| "site.test".to_owned()),
            digest: format!("digest {}", draw.below(3)),
            head: format!("head {}", draw.below(3)),
            size: 9,
            packed: 3,
            body: if draw.one_in(4) { Body::Blob("versions/one".to_owned()) } else { Body::Inline(vec![4, 5, 6]) },
        })
    });
    let packed = || Box::new(Packed::new("a".repeat(64), now, &Snapshot::default()).unwrap());
    let snapshot = draw.one_in(8).then(packed);
    Encoded { size: 10 + draw.below(90) as i64, packed: 3, body, version, snapshot, derived: None, steps: None }
}

/// A statement of the test's own, with ids and numbers only.
async fn run(db: &Db, sql: String) {
    let mut tx = db.begin().await.unwrap();
    on_db!(&mut tx, |conn| sqlx::query(AssertSqlSafe(sql)).execute(conn).await.unwrap().rows_affected());
    tx.commit().await.unwrap();
}

fn wakeups(db: &Db) -> &'static str {
    match db {
        Db::Sqlite(_) => "Jobs",
        Db::Postgres(_) => "apalis.jobs",
    }
}

/// Claims a page the general way. The library removes a wake-up that was served.
async fn claim_in_turn(db: &Db, case: &Case, page: PageId, limit: i64) -> Option<Claimed> {
    let claimed = claim_one(db, case.team, page, case.worker, limit, case.taken_at()).await.unwrap();
    if claimed.is_some() {
        let wakeup = PageWakeup::new(case.team, page, Turn::default()).unwrap();
        run(db, format!("DELETE FROM {} WHERE id = '{}'", wakeups(db), wakeup.id)).await;
    }
    claimed.map(|(page, _)| page)
}

async fn insert(db: &Db, case: &Case, job: JobId, page: PageId) {
    let mut tx = db.begin().await.unwrap();
    insert_scrape(&mut tx, &case.scrape(&ScrapeOptions::default(), job, page), Turn::default()).await.unwrap();
    tx.commit().await.unwrap();
}

/// The team as the case finds it.
async fn prepare(db: &Db, case: &Case) {
    let (team, at) = (case.team, case.created_at);
    run(db, format!("INSERT INTO team (id, name, created_at) VALUES ('{team}', '{team}', {})", at.0)).await;
    for (job, page) in &case.busy {
        insert(db, case, *job, *page).await;
        // Due whenever the case is.
        run(db, format!("UPDATE page SET run_at = 0 WHERE id = '{page}'")).await;
        assert!(claim_in_turn(db, case, *page, 100).await.is_some());
    }
    if let Some(limit) = case.limit {
        run(db, format!("UPDATE team SET concurrency = {limit} WHERE id = '{team}'")).await;
    }
    if case.has_deferred_pages {
        run(db, format!("UPDATE team SET starved = TRUE WHERE id = '{team}'")).await;
    }
    if case.begin == Begin::Queued {
        insert(db, case, case.job, case.page).await;
    }
}

/// The general way into work.
async fn begin_in_turn(db: &Db, case: &Case) -> Option<Claimed> {
    if case.begin == Begin::Dispatched {
        insert(db, case, case.job, case.page).await;
    }
    claim_in_turn(db, case, case.page, DEFAULT_LIMIT).await
}

/// The fast way into work, and the general one where that takes nothing, as in a worker. Says whether it was fast.
async fn begin_at_once(db: &Db, case: &Case) -> (Option<Claimed>, bool) {
    let claimed = match case.begin {
        Begin::Queued => {
            claim_next(db, case.worker, DEFAULT_LIMIT, case.taken_at()).await.unwrap().map(|(page, _)| page)
        }
        Begin::Dispatched if case.is_late => None,
        Begin::Dispatched => {
            let options = ScrapeOptions::default();
            let scrape = case.scrape(&options, case.job, case.page);
            let claimed = insert_claimed(db, &scrape, case.worker, DEFAULT_LIMIT, case.taken_at()).await.unwrap();
            if claimed.is_some() {
                // A job that was written with its page claimed was never served in a turn.
                let served = case.taken_at().0;
                run(db, format!("UPDATE job SET last_served = {served} WHERE id = '{}'", case.job)).await;
            }
            claimed
        }
    };
    match claimed {
        Some(page) => (Some(page), true),
        None => (begin_in_turn(db, case).await, false),
    }
}

async fn meanwhile(db: &Db, case: &Case) {
    let (page, team, at) = (case.page, case.team, case.created_at.0);
    match case.meanwhile {
        Meanwhile::Nothing => {}
        Meanwhile::Overtaken => run(db, format!("UPDATE page SET epoch = epoch + 1 WHERE id = '{page}'")).await,
        Meanwhile::Replayed => run(db, format!("UPDATE page SET replays = 1 WHERE id = '{page}'")).await,
        Meanwhile::ReplayedAndBilled => {
            run(db, format!("UPDATE page SET replays = 1 WHERE id = '{page}'")).await;
            let entry = format!("'page:{page}', '{team}', 'scrape', 1, {at}");
            run(db, format!("INSERT INTO credit_entry (key, team_id, kind, amount, created_at) VALUES ({entry})"))
                .await;
        }
        Meanwhile::JobCancelled => {
            let mut tx = db.begin().await.unwrap();
            assert!(cancel::job(&mut tx, case.job, case.created_at.plus_ms(6)).await.unwrap());
            tx.commit().await.unwrap();
        }
        Meanwhile::PagesDeferred => run(db, format!("UPDATE team SET starved = TRUE WHERE id = '{team}'")).await,
    }
}

fn end(case: &Case, page: Claimed) -> Finished {
    Finished { page, kind: Some(case.kind), key: case.key, outcome: case.outcome.clone() }
}

async fn end_in_turn(db: &Db, end: &Finished, now: Timestamp) -> Report {
    let mut tx = db.begin().await.unwrap();
    let report = finish_many(&mut tx, std::slice::from_ref(end), now).await.unwrap();
    tx.commit().await.unwrap();
    report
}

/// Every row of every table, as text. Of wake-ups, what they say: their ids and times are of the moment.
async fn rows(db: &Db) -> BTreeMap<String, Vec<String>> {
    let tables: Vec<(String,)> = match db {
        Db::Sqlite(db) => sqlx::query_as(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' \
             AND name NOT LIKE '%migrations' AND name NOT IN ('Jobs', 'Workers')",
        )
        .fetch_all(&db.pool)
        .await
        .unwrap(),
        Db::Postgres(PostgresDb { pool, .. }) => sqlx::query_as(
            "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' AND tablename NOT LIKE '%migrations'",
        )
        .fetch_all(pool)
        .await
        .unwrap(),
    };
    let mut found = BTreeMap::new();
    for (table,) in tables {
        let sql = match db {
            Db::Sqlite(db) => {
                let columns: Vec<(String,)> = sqlx::query_as("SELECT name FROM pragma_table_info($1) ORDER BY cid")
                    .bind(&table)
                    .fetch_all(&db.pool)
                    .await
                    .unwrap();
                let columns: Vec<String> =
                    columns.iter().map(|(name,)| format!("'{name}=' || quote(\"{name}\")")).collect();
                format!("SELECT {} FROM \"{table}\" ORDER BY 1", columns.join(" || ' ' || "))
            }
            Db::Postgres(_) => format!("SELECT row_to_json(t)::text FROM \"{table}\" t ORDER BY 1"),
        };
        found.insert(table, texts(db, sql).await);
    }
    let says = match db {
        Db::Sqlite(_) => "SELECT job_type || ' ' || CAST(job AS TEXT) || ' ' || status FROM Jobs ORDER BY 1",
        Db::Postgres(_) => {
            "SELECT job_type || ' ' || convert_from(job, 'UTF8') || ' ' || status FROM apalis.jobs ORDER BY 1"
        }
    };
    found.insert("wake-ups".to_owned(), texts(db, says.to_owned()).await);
    found
}

async fn texts(db: &Db, sql: String) -> Vec<String> {
    let rows: Vec<(String,)> = on_pool!(db, |pool| sqlx::query_as(AssertSqlSafe(sql)).fetch_all(pool).await.unwrap());
    rows.into_iter().map(|row| row.0).collect()
}

async fn assert_same(fast: &Db, general: &Db, step: &str, number: u64, case: &Case) {
    let (fast, general) = (rows(fast).await, rows(general).await);
    assert!(fast.len() > 20, "all tables are compared");
    for (table, rows) in &fast {
        assert_eq!(rows, &general[table], "{table} after the {step} of case {number}: {case:?}");
    }
}

#[tokio::test]
async fn the_fast_way_leaves_the_rows_of_the_general_way() {
    for (fast, general) in testing::databases().await.into_iter().zip(testing::databases().await) {
        let mut draw = Draw(0x5eed_1e55_0fa5_7fa5);
        let (mut claimed_fast, mut dispatched_fast, mut ended_fast) = (0, 0, 0);
        for number in 0..cases() {
            let case = Case::draw(&mut draw, number);
            prepare(&fast, &case).await;
            prepare(&general, &case).await;
            let (page, was_fast) = begin_at_once(&fast, &case).await;
            let expected = begin_in_turn(&general, &case).await;
            let like_general = |page: Claimed| Claimed { dispatched: false, ..page };
            assert_eq!(page.clone().map(like_general), expected, "case {number}: {case:?}");
            assert_same(&fast, &general, "beginning", number, &case).await;
            match case.begin {
                Begin::Queued => claimed_fast += u64::from(was_fast),
                Begin::Dispatched => dispatched_fast += u64::from(was_fast),
            }

            if let (Some(page), Some(other)) = (page, expected) {
                meanwhile(&fast, &case).await;
                meanwhile(&general, &case).await;
                let now = case.created_at.plus_ms(900);
                let ending = end(&case, page);
                let report = match super::finish(&fast, &ending, now).await.unwrap() {
                    Some(report) => {
                        ended_fast += 1;
                        report
                    }
                    None => end_in_turn(&fast, &ending, now).await,
                };
                let expected = end_in_turn(&general, &end(&case, other), now).await;
                assert_eq!((report.written, report.ended), (expected.written, expected.ended), "{number}: {case:?}");
                assert_same(&fast, &general, "end", number, &case).await;
            }
            for db in [&fast, &general] {
                run(db, format!("DELETE FROM {}", wakeups(db))).await;
            }
        }
        for (way, times) in [("claimed", claimed_fast), ("dispatched", dispatched_fast), ("ended", ended_fast)] {
            assert!(times * 8 > cases(), "only {times} of {} cases were {way} the fast way", cases());
        }
    }
}
