#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Map;

use super::checks::{CheckRow, End, News, Start, Step};
use super::pages::{Address, Detail, Found, NewPage};
use super::*;
use crate::domain::monitor::{Billing, CheckMove, MonitorStatus, PageStatus, Target, What};
use crate::domain::scrape::ScrapeOptions;
use crate::domain::watch::Noise;
use crate::domain::webhook::WebhookSpec;
use crate::ids::{JobId, PageId};
use crate::random;
use crate::store::contents::snapshots::{self, Packed, Snapshot};
use crate::store::db::slices::Slices;
use crate::store::testing;
use crate::store::upkeep::sweep;
use crate::store::work::{jobs, webhooks};

const MINUTE: i64 = 60_000;
const DAY: i64 = 86_400_000;

fn spec(webhook: bool) -> MonitorSpec {
    let urls = vec!["http://site.test/a".to_owned()];
    let what = What::Scrape { urls, options: Box::new(ScrapeOptions::default()), noise: Noise::default() };
    let webhook = webhook.then(|| WebhookSpec {
        url: "http://hook.test/".to_owned(),
        headers: BTreeMap::new(),
        metadata: Map::new(),
        events: Vec::new(),
        version: Default::default(),
    });
    let targets = vec![Target { id: "t".to_owned(), what, given: Map::new() }];
    MonitorSpec { targets, goal: None, judge: false, webhook, notification: None }
}

/// A monitor that is due every five minutes, so many milliseconds late, first after `now`.
async fn monitor(db: &Db, team: TeamId, spread_ms: i64, days: i64, now: Timestamp) -> MonitorRow {
    let timing = Timing { cron: "*/5 * * * *".to_owned(), timezone: "UTC".to_owned(), spread_ms };
    timed(db, team, &timing, days, now).await
}

/// The same by another schedule.
async fn timed(db: &Db, team: TeamId, timing: &Timing, days: i64, now: Timestamp) -> MonitorRow {
    let (id, spec) = (MonitorId::new(), spec(false));
    let clockwork = timing.clockwork().unwrap();
    let (next_due_at, runs_a_month) = Settings::due(&clockwork, MonitorStatus::Active, now);
    let new = Settings {
        name: "watch",
        status: MonitorStatus::Active,
        timing,
        spec: &spec,
        retention_days: days,
        next_due_at,
        runs_a_month,
    };
    let mut tx = db.begin().await.unwrap();
    insert(&mut tx, id, team, None, &new, now).await.unwrap();
    tx.commit().await.unwrap();
    load(db, team, id).await.unwrap().unwrap()
}

async fn claim_checks(db: &Db, now: Timestamp, lease: i64) -> Vec<CheckRow> {
    let mut tx = db.begin().await.unwrap();
    let claimed = checks::claim(&mut tx, now, now.plus_ms(lease), 100).await.unwrap();
    tx.commit().await.unwrap();
    claimed
}

fn found(url: &str, status: PageStatus) -> Found {
    Found {
        id: PageId::new(),
        target_id: "t".to_owned(),
        url: url.to_owned(),
        status,
        previous_scrape_id: None,
        current_scrape_id: Some(PageId::new()),
        status_code: Some(200),
        error: None,
        detail: Detail::new(&serde_json::json!({"metadata": {"title": url}})).unwrap(),
    }
}

/// Begins a check; `false`: it is somebody else's by now.
async fn starts(tx: &mut Tx, check: &CheckRow, targets: &[Progress], billing: Billing, now: Timestamp) -> bool {
    let start = Start { check, targets, billing };
    checks::start(tx, &[start], now, now).await.unwrap().contains(&check.id)
}

/// A check meets an address.
async fn meet(tx: &mut Tx, check: &CheckRow, found: &Found, now: Timestamp) {
    pages::meet(tx, &[NewPage { check, seq: 1, found }], now).await.unwrap();
}

/// Which of these addresses of the target are known.
async fn known<const N: usize>(db: &Db, monitor: MonitorId, target: &str, urls: [&str; N]) -> Vec<bool> {
    let addresses = urls.map(|url| Address::new(monitor, target, url));
    let known = pages::known(db, &addresses).await.unwrap();
    addresses.iter().map(|address| known.contains_key(address)).collect()
}

/// What a worker does with a check. Returns whether it has ended.
async fn work(db: &Db, check: &CheckRow, now: Timestamp) -> bool {
    work_on(db, std::slice::from_ref(check), now, || false).await == 1
}

/// What a worker does with some checks, in three transactions. It dies before one of them is committed where `dies` says
/// so. Returns how many have ended.
async fn work_on(db: &Db, checks: &[CheckRow], now: Timestamp, mut dies: impl FnMut() -> bool) -> usize {
    let mut hands: Vec<_> = checks.iter().map(|check| (check, check.targets().unwrap(), check.summary())).collect();
    let mut tx = db.begin().await.unwrap();
    for (check, targets, _) in hands.iter_mut().filter(|(check, ..)| check.started_at.is_none()) {
        targets[0].job = Some(JobId::new());
        assert!(starts(&mut tx, check, targets, Billing::NotApplicable, now).await);
    }
    if dies() {
        return 0;
    }
    tx.commit().await.unwrap();
    let mut tx = db.begin().await.unwrap();
    for (check, targets, summary) in hands.iter_mut().filter(|(_, targets, _)| !targets[0].is_over) {
        let page = found("http://site.test/a", PageStatus::Same);
        summary.add(page.status);
        (targets[0].is_over, targets[0].documents) = (true, 1);
        let step = Step { targets, summary: *summary, next_at: now };
        assert!(checks::save(&mut tx, check, &step, now).await.unwrap());
        pages::insert(&mut tx, &[NewPage { check, seq: 1, found: &page }], now).await.unwrap();
    }
    if dies() {
        return 0;
    }
    tx.commit().await.unwrap();
    let mut tx = db.begin().await.unwrap();
    let (by, billing, credits, error) = (CheckMove::Complete, Billing::Confirmed, 1, None);
    let ends: Vec<End<'_>> = hands
        .iter()
        .map(|&(check, ref targets, summary)| End { check, by, targets, summary, credits, billing, error })
        .collect();
    assert_eq!(checks::finish(&mut tx, &ends, now).await.unwrap().len(), hands.len());
    if dies() {
        return 0;
    }
    tx.commit().await.unwrap();
    hands.len()
}

/// Checks that one worker has in hand together.
const CHUNK: usize = 25;

/// How much of a week is played.
struct Play {
    monitors: usize,
    hours: i64,
}

/// Monitors every five minutes on a clock that is moved, with three workers that die one time in ten between any two
/// statements that are committed: whatever they had not committed is lost, and what they had claimed waits for its lease.
async fn play(db: &Db, play: &Play) {
    let team = testing::team(db, "a").await;
    let begin = Timestamp::from_iso("2026-03-01T00:00:00Z").unwrap();
    let mut spreads = HashMap::new();
    for n in 0..play.monitors {
        let spread = n as i64 * 7_919 % MINUTE;
        spreads.insert(monitor(db, team, spread, 1, begin).await.id, spread);
    }
    let mut slices = Slices::default();
    let mut seen: HashMap<MonitorId, BTreeSet<i64>> = HashMap::new();
    let mut most = 0;
    for minute in 1..=play.hours * 60 {
        let now = begin.plus_ms(minute * MINUTE + MINUTE - 1);
        for _ in 0..3 {
            // A worker goes on until nothing is due, or it is dead before a commit.
            loop {
                let mut tx = db.begin().await.unwrap();
                let made = due::claim(&mut tx, now, 50).await.unwrap();
                if made == 0 || random::up_to(10) == 0 {
                    break;
                }
                tx.commit().await.unwrap();
            }
        }
        for _ in 0..3 {
            for checks in claim_checks(db, now, 2 * MINUTE).await.chunks(CHUNK) {
                work_on(db, checks, now, || random::up_to(10) == 0).await;
            }
        }
        if minute % 240 == 0 {
            // What is to go is counted first.
            count(db, &mut seen).await;
            removal::remove(db, &mut slices, now).await.unwrap();
            most = most.max(rows(db).await);
        }
    }
    // The last ones are made and ended, whatever dies.
    let end = begin.plus_ms(play.hours * 60 * MINUTE + MINUTE - 1);
    for round in 0..200 {
        let now = end.plus_ms(round * MINUTE);
        let mut tx = db.begin().await.unwrap();
        due::claim(&mut tx, end, 1_000).await.unwrap();
        tx.commit().await.unwrap();
        let claimed = claim_checks(db, now, MINUTE).await;
        if claimed.is_empty() && round > 5 {
            break;
        }
        for checks in claimed.chunks(CHUNK) {
            work_on(db, checks, now, || false).await;
        }
    }
    count(db, &mut seen).await;
    const PAGES: &str =
        "SELECT COUNT(*), CAST(COALESCE(SUM(same_pages), 0) AS BIGINT) FROM monitor_check WHERE status = 'completed'";
    const ROWS: &str = "SELECT COUNT(*), COUNT(DISTINCT check_id) FROM monitor_page";
    let counted: (i64, i64) = on_pool!(db, |pool| sqlx::query_as(PAGES).fetch_one(pool).await.unwrap());
    let kept: (i64, i64) = on_pool!(db, |pool| sqlx::query_as(ROWS).fetch_one(pool).await.unwrap());
    assert_eq!(counted, kept, "every check that ended has its one page once, in counts and in rows");
    for (id, spread) in spreads {
        let due: Vec<i64> = (0..=play.hours * 12).map(|n| begin.0 + n * 5 * MINUTE + spread).collect();
        let due: Vec<i64> = due.into_iter().filter(|at| *at > begin.0 && *at <= end.0).collect();
        let made: Vec<i64> = seen.remove(&id).unwrap_or_default().into_iter().collect();
        assert_eq!(made.len(), due.len(), "monitor {id}");
        assert_eq!(made, due, "every due check once");
    }
    let retained = play.monitors as i64 * 12 * 24;
    // A day after the last one has ended, nothing is left of them.
    removal::remove(db, &mut slices, end.plus_ms(2 * DAY)).await.unwrap();
    const PAGE_ROWS: &str = "SELECT COUNT(*) FROM monitor_page";
    let (left,): (i64,) = on_pool!(db, |pool| sqlx::query_as(PAGE_ROWS).fetch_one(pool).await.unwrap());
    assert_eq!((rows(db).await, left), (0, 0));
    println!("{} monitors, {} hours: {most} checks at most for {retained} a day", play.monitors, play.hours);
    assert!(most <= retained + play.monitors as i64 * 12 * 5, "{most} checks for {retained} a day");
}

/// Notes the moments of the checks that there are.
async fn count(db: &Db, seen: &mut HashMap<MonitorId, BTreeSet<i64>>) {
    const SQL: &str = "SELECT monitor_id, scheduled_for FROM monitor_check";
    let rows: Vec<(MonitorId, i64)> = on_pool!(db, |pool| sqlx::query_as(SQL).fetch_all(pool).await.unwrap());
    for (id, at) in rows {
        seen.entry(id).or_default().insert(at);
    }
}

async fn rows(db: &Db) -> i64 {
    const SQL: &str = "SELECT COUNT(*) FROM monitor_check";
    let (count,): (i64,) = on_pool!(db, |pool| sqlx::query_as(SQL).fetch_one(pool).await.unwrap());
    count
}

#[tokio::test]
async fn every_due_check_is_made_exactly_once_while_workers_die() {
    for db in testing::databases().await {
        play(&db, &Play { monitors: 30, hours: 2 }).await;
    }
}

#[tokio::test]
async fn every_due_check_of_a_week_is_made_exactly_once_and_goes_in_time() {
    if std::env::var("WEIR_TEST_LONG").as_deref() != Ok("1") {
        eprintln!("skipped: a long test, WEIR_TEST_LONG=1 runs it");
        return;
    }
    for db in testing::databases().await {
        play(&db, &Play { monitors: 500, hours: 7 * 24 }).await;
    }
}

#[tokio::test]
async fn workers_at_once_share_what_is_due() {
    for db in testing::databases().await {
        let team = testing::team(&db, "a").await;
        let begin = Timestamp::from_iso("2026-03-01T00:00:00Z").unwrap();
        for _ in 0..60 {
            monitor(&db, team, 0, 1, begin).await;
        }
        let now = begin.plus_ms(5 * MINUTE);
        let workers = (0..4).map(|_| {
            let db = db.clone();
            tokio::spawn(async move {
                for _ in 0..8 {
                    let mut tx = db.begin().await.unwrap();
                    due::claim(&mut tx, now, 10).await.unwrap();
                    tx.commit().await.unwrap();
                }
            })
        });
        for worker in workers {
            worker.await.unwrap();
        }
        assert_eq!(rows(&db).await, 60);
        let work = due::look(&db, now).await.unwrap();
        assert_eq!((work.monitors, work.checks, work.next_at), (false, true, Some(now)));
        assert_eq!(claim_checks(&db, now, MINUTE).await.len(), 60);
        let work = due::look(&db, now).await.unwrap();
        assert_eq!((work.monitors, work.checks, work.next_at), (false, false, Some(now.plus_ms(MINUTE))));
    }
}

#[tokio::test]
async fn nobody_stands_behind_what_another_team_has_due() {
    for db in testing::databases().await {
        let begin = Timestamp::from_iso("2026-03-01T00:00:00Z").unwrap();
        let (many, few) = (testing::team(&db, "a").await, testing::team(&db, "b").await);
        for _ in 0..40 {
            monitor(&db, many, 0, 1, begin).await;
        }
        // The last to be due of all.
        for _ in 0..3 {
            monitor(&db, few, MINUTE, 1, begin).await;
        }
        let now = begin.plus_ms(7 * MINUTE);
        let mut tx = db.begin().await.unwrap();
        assert_eq!(due::claim(&mut tx, now, 10).await.unwrap(), 10);
        tx.commit().await.unwrap();
        const MADE: &str = "SELECT COUNT(*) FROM monitor_check WHERE team_id = $1";
        for (team, made) in [(few, 3), (many, 7)] {
            let (count,): (i64,) = on_pool!(&db, |pool| sqlx::query_as(MADE).bind(team).fetch_one(pool).await.unwrap());
            assert_eq!(count, made, "half of the room each, and what one leaves is the other's");
        }
        let mut tx = db.begin().await.unwrap();
        assert_eq!(due::claim(&mut tx, now, 100).await.unwrap(), 33);
        tx.commit().await.unwrap();

        let of = |claimed: &[CheckRow], team| claimed.iter().filter(|check| check.team_id == team).count();
        let mut tx = db.begin().await.unwrap();
        let claimed = checks::claim(&mut tx, now, now.plus_ms(MINUTE), 8).await.unwrap();
        assert_eq!((of(&claimed, few), of(&claimed, many)), (3, 5));
        let claimed = checks::claim(&mut tx, now, now.plus_ms(MINUTE), 8).await.unwrap();
        assert_eq!((of(&claimed, few), of(&claimed, many)), (0, 8));
        tx.commit().await.unwrap();

        // With more teams than there is room each has its turn, whoever waits longest.
        let more: Vec<TeamId> = {
            let mut teams = Vec::new();
            for n in 0..6 {
                let team = testing::team(&db, &format!("c{n}")).await;
                monitor(&db, team, MINUTE, 1, begin).await;
                teams.push(team);
            }
            teams
        };
        for _ in 0..100 {
            let mut tx = db.begin().await.unwrap();
            due::claim(&mut tx, now, 2).await.unwrap();
            checks::claim(&mut tx, now, now.plus_ms(MINUTE), 2).await.unwrap();
            tx.commit().await.unwrap();
        }
        for team in more {
            let row = &list(&db, team, 1, 0).await.unwrap()[0];
            assert!(checks::list(&db, row.id, None, 2, 0).await.unwrap()[0].epoch > 0, "it has had its turn");
        }
    }
}

#[tokio::test]
async fn checks_that_have_ended_go_by_the_retention_of_now() {
    for db in testing::databases().await {
        let team = testing::team(&db, "a").await;
        let begin = Timestamp::from_iso("2026-03-01T00:00:00Z").unwrap();
        let (row, other) = (monitor(&db, team, 0, 30, begin).await, monitor(&db, team, 0, 30, begin).await);
        // More than a slice of them in days 0 to 9, and one that runs.
        for (row, checks) in [(&row, 600), (&other, 20)] {
            for n in 0..checks {
                let now = begin.plus_ms(n * DAY / 60);
                let mut tx = db.begin().await.unwrap();
                checks::run_now(&mut tx, row, now).await.unwrap().unwrap();
                tx.commit().await.unwrap();
                let check = claim_checks(&db, now, MINUTE).await.remove(0);
                assert!(work(&db, &check, now).await);
            }
        }
        let now = begin.plus_ms(10 * DAY);
        let mut tx = db.begin().await.unwrap();
        checks::run_now(&mut tx, &row, now).await.unwrap().unwrap();
        tx.commit().await.unwrap();
        let days = |retention_days| {
            let db = &db;
            let (timing, spec) = (row.timing(), spec(false));
            let id = row.id;
            async move {
                let (next_due_at, runs_a_month, status) = (None, 1, MonitorStatus::Paused);
                let (timing, spec, name) = (&timing, &spec, "watch");
                let to = Settings { name, status, timing, spec, retention_days, next_due_at, runs_a_month };
                let mut tx = db.begin().await.unwrap();
                update(&mut tx, id, &to, now).await.unwrap();
                tx.commit().await.unwrap();
                removal::remove(db, &mut Slices::default(), now).await.unwrap()
            }
        };
        assert_eq!(days(30).await, 0);
        assert_eq!(days(5).await, 301, "days 0 to 5");
        assert_eq!(days(5).await, 0);
        // What was to go earlier stays no longer for that.
        assert_eq!(days(20).await, 0);
        assert_eq!(removal::remove(&db, &mut Slices::default(), now.plus_ms(DAY)).await.unwrap(), 60);
        assert_eq!(checks::list(&db, row.id, None, 1_000, 0).await.unwrap().len(), 240);
        assert_eq!(checks::list(&db, other.id, None, 1_000, 0).await.unwrap().len(), 20, "of another monitor");
    }
}

#[tokio::test]
async fn of_an_hour_that_nobody_saw_one_check_is_made_up() {
    for db in testing::databases().await {
        let team = testing::team(&db, "a").await;
        let begin = Timestamp::from_iso("2026-03-01T00:00:00Z").unwrap();
        let row = monitor(&db, team, 0, 30, begin).await;
        let late = begin.plus_ms(63 * MINUTE);
        for _ in 0..3 {
            let mut tx = db.begin().await.unwrap();
            due::claim(&mut tx, late, 10).await.unwrap();
            tx.commit().await.unwrap();
        }
        let made = checks::list(&db, row.id, None, 10, 0).await.unwrap();
        assert_eq!(made.len(), 1);
        assert_eq!(made[0].scheduled_for, Some(begin.plus_ms(5 * MINUTE)));
        let row = load(&db, team, row.id).await.unwrap().unwrap();
        assert_eq!((row.next_due_at, row.current_check_id), (Some(begin.plus_ms(65 * MINUTE)), Some(made[0].id)));
    }
}

#[tokio::test]
async fn a_check_that_is_due_while_one_runs_is_skipped_and_a_caller_is_refused() {
    for db in testing::databases().await {
        let team = testing::team(&db, "a").await;
        let begin = Timestamp::from_iso("2026-03-01T00:00:00Z").unwrap();
        let row = monitor(&db, team, 0, 30, begin).await;
        let mut tx = db.begin().await.unwrap();
        let manual = checks::run_now(&mut tx, &row, begin).await.unwrap().unwrap();
        assert_eq!(checks::run_now(&mut tx, &row, begin).await.unwrap(), None);
        due::claim(&mut tx, begin.plus_ms(5 * MINUTE), 10).await.unwrap();
        tx.commit().await.unwrap();
        let skipped = checks::list(&db, row.id, Some(CheckStatus::SkippedOverlap), 10, 0).await.unwrap();
        assert_eq!((skipped.len(), skipped[0].actual_credits), (1, 0));
        assert!(skipped[0].finished_at.is_some());
        let now = begin.plus_ms(6 * MINUTE);
        let claimed = claim_checks(&db, now, MINUTE).await;
        assert_eq!(claimed.iter().map(|check| check.id).collect::<Vec<_>>(), [manual]);
        assert!(work(&db, &claimed[0], now).await);
        let row = load(&db, team, row.id).await.unwrap().unwrap();
        assert_eq!((row.current_check_id, row.last_summary().unwrap().unwrap().same), (None, 1));
        // What an overtaken worker writes is not taken.
        let mut tx = db.begin().await.unwrap();
        let step = Step { targets: &[], summary: Default::default(), next_at: now };
        assert!(!checks::save(&mut tx, &claimed[0], &step, now).await.unwrap());
    }
}

#[tokio::test]
async fn a_worker_that_lost_its_check_writes_nothing() {
    for db in testing::databases().await {
        let team = testing::team(&db, "a").await;
        let begin = Timestamp::from_iso("2026-03-01T00:00:00Z").unwrap();
        let row = monitor(&db, team, 0, 30, begin).await;
        let mut tx = db.begin().await.unwrap();
        checks::run_now(&mut tx, &row, begin).await.unwrap().unwrap();
        tx.commit().await.unwrap();
        let first = claim_checks(&db, begin, MINUTE).await.remove(0);
        assert!(claim_checks(&db, begin.plus_ms(MINUTE - 1), MINUTE).await.is_empty(), "it is held");
        let second = claim_checks(&db, begin.plus_ms(MINUTE), MINUTE).await.remove(0);
        let mut tx = db.begin().await.unwrap();
        let targets = first.targets().unwrap();
        assert!(!starts(&mut tx, &first, &targets, Billing::Reserved, begin).await);
        checks::put_off(&mut tx, &[&first], begin.plus_ms(DAY)).await.unwrap();
        tx.commit().await.unwrap();
        assert!(work(&db, &second, begin.plus_ms(2 * MINUTE)).await);
    }
}

#[tokio::test]
async fn addresses_are_known_and_missed_by_target() {
    for db in testing::databases().await {
        let team = testing::team(&db, "a").await;
        let begin = Timestamp::from_iso("2026-03-01T00:00:00Z").unwrap();
        let row = monitor(&db, team, 0, 30, begin).await;
        let mut checks_made = Vec::new();
        for n in 0..2 {
            let mut tx = db.begin().await.unwrap();
            checks::run_now(&mut tx, &load(&db, team, row.id).await.unwrap().unwrap(), begin).await.unwrap().unwrap();
            tx.commit().await.unwrap();
            let check = claim_checks(&db, begin, MINUTE).await.remove(0);
            let mut tx = db.begin().await.unwrap();
            for url in ["http://site.test/a", "http://site.test/b"].iter().take(2 - n) {
                meet(&mut tx, &check, &found(url, PageStatus::New), begin).await;
            }
            // An address that failed and was never met stays unknown.
            meet(&mut tx, &check, &found("http://site.test/x", PageStatus::Error), begin).await;
            tx.commit().await.unwrap();
            let urls = ["http://site.test/a", "http://site.test/b", "http://site.test/x"];
            assert_eq!(known(&db, row.id, "t", urls).await, [true, true, false]);
            assert_eq!(known(&db, row.id, "other", urls).await, [false; 3]);
            let missing = pages::missing(&db, &check, "t", 10).await.unwrap();
            assert_eq!(missing.iter().map(|row| row.0.as_str()).collect::<Vec<_>>(), &["http://site.test/b"][..n]);
            let mut tx = db.begin().await.unwrap();
            for (url, _) in missing {
                meet(&mut tx, &check, &found(&url, PageStatus::Removed), begin).await;
            }
            tx.commit().await.unwrap();
            assert!(pages::missing(&db, &check, "t", 10).await.unwrap().is_empty());
            assert!(work(&db, &check, begin).await);
            checks_made.push(check.id);
        }
        let listed = pages::list(&db, checks_made[0], None, 0, 10).await.unwrap();
        assert_eq!((listed.len(), listed[0].status), (1, PageStatus::Same));
        assert_eq!(pages::list(&db, checks_made[0], Some(PageStatus::New), 0, 10).await.unwrap().len(), 0);
        assert!(pages::list(&db, checks_made[0], None, 1, 10).await.unwrap().is_empty());
        let page = pages::load(&db, listed[0].id).await.unwrap().unwrap();
        assert_eq!(page.detail().unwrap().get(), "{\"metadata\":{\"title\":\"http://site.test/a\"}}");
    }
}

#[tokio::test]
async fn a_deleted_monitor_is_gone_for_everybody_at_once_and_from_the_rows_later() {
    for db in testing::databases().await {
        let (team, other) = (testing::team(&db, "a").await, testing::team(&db, "b").await);
        let begin = Timestamp::from_iso("2026-03-01T00:00:00Z").unwrap();
        let (row, stays) = (monitor(&db, team, 0, 30, begin).await, monitor(&db, other, 0, 30, begin).await);
        let (job, _) = testing::job(&db, team, crate::domain::job::JobKind::Batch, 3, None).await;
        let mut tx = db.begin().await.unwrap();
        checks::run_now(&mut tx, &row, begin).await.unwrap().unwrap();
        for (monitor, key) in [(Some(row.id), "own"), (None, "other")] {
            let packed = Packed::new(key.to_owned(), begin, &Snapshot::default()).unwrap();
            snapshots::put(&mut tx, team, &packed.of_monitor(monitor), begin).await.unwrap();
        }
        tx.commit().await.unwrap();
        let check = claim_checks(&db, begin, MINUTE).await.remove(0);
        let mut targets = check.targets().unwrap();
        targets[0].job = Some(job);
        let mut tx = db.begin().await.unwrap();
        assert!(starts(&mut tx, &check, &targets, Billing::Reserved, begin).await);
        meet(&mut tx, &check, &found("http://site.test/a", PageStatus::New), begin).await;
        tx.commit().await.unwrap();

        let mut tx = db.begin().await.unwrap();
        assert!(!delete(&mut tx, other, row.id, begin).await.unwrap(), "teams are walls");
        assert!(delete(&mut tx, team, row.id, begin).await.unwrap());
        assert!(!delete(&mut tx, team, row.id, begin).await.unwrap());
        tx.commit().await.unwrap();
        assert!(load(&db, team, row.id).await.unwrap().is_none() && list(&db, team, 10, 0).await.unwrap().is_empty());
        let status = crate::store::work::jobs::load(&db, job).await.unwrap().unwrap().status;
        assert_eq!(status, crate::domain::job::JobStatus::Cancelled);
        assert_eq!(checks::load_any(&db, check.id).await.unwrap().unwrap().status, CheckStatus::Failed);

        removal::remove(&db, &mut Slices::default(), begin).await.unwrap();
        assert!(checks::load_any(&db, check.id).await.unwrap().is_none());
        for (table, left) in [("monitor", 1), ("monitor_url", 0), ("monitor_check", 0), ("page_snapshot", 1)] {
            let sql = format!("SELECT COUNT(*) FROM {table}");
            let (rows,): (i64,) =
                on_pool!(&db, |pool| sqlx::query_as(sqlx::AssertSqlSafe(sql)).fetch_one(pool).await.unwrap());
            assert_eq!(rows, left, "{table}");
        }
        assert_eq!(list_all(&db, None, 10).await.unwrap()[0].id, stays.id);
    }
}

#[tokio::test]
async fn a_monitor_is_paused_and_goes_on() {
    for db in testing::databases().await {
        let team = testing::team(&db, "a").await;
        let begin = Timestamp::from_iso("2026-03-01T00:00:00Z").unwrap();
        let row = monitor(&db, team, 0, 30, begin).await;
        let mut tx = db.begin().await.unwrap();
        assert!(set_paused(&mut tx, &row, true, begin).await.unwrap());
        assert!(!set_paused(&mut tx, &row, true, begin).await.unwrap());
        let paused = lock(&mut tx, team, row.id).await.unwrap().unwrap();
        assert_eq!((paused.status, paused.next_due_at), (MonitorStatus::Paused, None));
        assert_eq!(due::claim(&mut tx, begin.plus_ms(DAY), 10).await.unwrap(), 0);
        assert!(set_paused(&mut tx, &paused, false, begin.plus_ms(DAY)).await.unwrap());
        tx.commit().await.unwrap();
        let row = load(&db, team, row.id).await.unwrap().unwrap();
        assert_eq!(row.next_due_at, Some(begin.plus_ms(DAY + 5 * MINUTE)));
        let changed = Settings {
            name: "other",
            status: MonitorStatus::Active,
            timing: &row.timing(),
            spec: &spec(true),
            retention_days: 3,
            next_due_at: row.next_due_at,
            runs_a_month: 1,
        };
        let mut tx = db.begin().await.unwrap();
        update(&mut tx, row.id, &changed, begin).await.unwrap();
        tx.commit().await.unwrap();
        let row = load(&db, team, row.id).await.unwrap().unwrap();
        assert_eq!((row.name.as_str(), row.retention_days, row.spec().unwrap()), ("other", 3, spec(true)));
        let mut tx = db.begin().await.unwrap();
        let check = checks::run_now(&mut tx, &row, begin).await.unwrap().unwrap();
        tx.commit().await.unwrap();
        let (told, hook) = checks::receiver(&db, JobId(check.0)).await.unwrap().unwrap();
        assert_eq!((told, hook.url.as_str()), (team, "http://hook.test/"));
        let claimed = claim_checks(&db, begin, MINUTE).await.remove(0);
        let mut tx = db.begin().await.unwrap();
        checks::tell(&mut tx, &[News { check: &claimed, pages: &[PageId::new()], ended: true }], begin).await.unwrap();
        tx.commit().await.unwrap();
        let filter = webhooks::DeliveryFilter { job: Some(JobId(check.0)), limit: 10, ..Default::default() };
        assert_eq!(webhooks::deliveries(&db, &filter).await.unwrap().len(), 2);
    }
}

#[tokio::test]
async fn a_worker_that_begins_beside_a_claim_does_not_take_it_back() {
    for db in testing::databases().await {
        let team = testing::team(&db, "a").await;
        let now = Timestamp::from_iso("2026-03-01T00:00:00Z").unwrap();
        let row = monitor(&db, team, 0, 30, now).await;
        let due = row.next_due_at.unwrap();
        let mut tx = db.begin().await.unwrap();
        assert_eq!(due::claim(&mut tx, due.plus_ms(250), 1).await.unwrap(), 1);
        tx.commit().await.unwrap();
        // It has looked at the time a moment before the check was made, or its clock is behind by so much.
        assert_eq!(due::set_back(&db, || due.plus_ms(-2_000)).await.unwrap(), 0, "the moment has its check");
        let check = &checks::list(&db, row.id, None, 2, 0).await.unwrap()[0];
        assert_eq!(check.scheduled_for, Some(due));
        let mut tx = db.begin().await.unwrap();
        assert_eq!(due::claim(&mut tx, due.plus_ms(500), 1).await.unwrap(), 0, "no second one");
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn in_an_hour_that_clocks_show_twice_a_monitor_is_moved_on_once() {
    for db in testing::databases().await {
        let team = testing::team(&db, "a").await;
        let at = |text| Timestamp::from_iso(text).unwrap();
        // Clocks in Berlin go back to 2:00 at 1:00 UTC. The look of the first 2:30 comes late.
        let timing = Timing { cron: "*/15 2 * * *".to_owned(), timezone: "Europe/Berlin".to_owned(), spread_ms: 0 };
        let row = timed(&db, team, &timing, 30, at("2026-10-25T00:20:00Z")).await;
        assert_eq!(row.next_due_at, Some(at("2026-10-25T00:30:00Z")));
        let late = at("2026-10-25T01:05:00Z");
        for moved in [1, 0] {
            let mut tx = db.begin().await.unwrap();
            assert_eq!(due::claim(&mut tx, late, 10).await.unwrap(), moved);
            tx.commit().await.unwrap();
        }
        let next = load(&db, team, row.id).await.unwrap().unwrap().next_due_at;
        assert_eq!(next, Some(at("2026-10-26T01:00:00Z")));
        let new = timed(&db, team, &timing, 30, late).await;
        assert_eq!(new.next_due_at, next, "no look at a moment before it was made");
    }
}

#[tokio::test]
async fn a_clock_that_was_set_back_leaves_no_moment_far_away() {
    for db in testing::databases().await {
        let team = testing::team(&db, "a").await;
        let now = Timestamp::from_iso("2026-03-01T00:00:00Z").unwrap();
        let row = monitor(&db, team, 0, 30, now).await;
        assert_eq!(due::set_back(&db, || now).await.unwrap(), 0, "nothing was");
        // A day ahead, one is moved on, and its check is in somebody's hands.
        let ahead = now.plus_ms(DAY);
        let mut tx = db.begin().await.unwrap();
        assert_eq!(due::claim(&mut tx, ahead, 1).await.unwrap(), 1);
        tx.commit().await.unwrap();
        assert_eq!(claim_checks(&db, ahead, 20_000).await.len(), 1);
        let other = monitor(&db, team, 2 * MINUTE, 30, now).await;
        assert_eq!(due::set_back(&db, || now.plus_ms(MINUTE)).await.unwrap(), 2, "the monitor and its check");
        assert_eq!(due::set_back(&db, || now.plus_ms(MINUTE)).await.unwrap(), 0);
        let back = load(&db, team, row.id).await.unwrap().unwrap();
        assert_eq!((back.next_due_at, back.last_run_at), (Some(now.plus_ms(5 * MINUTE)), Some(now.plus_ms(MINUTE))));
        assert_eq!(load(&db, team, other.id).await.unwrap().unwrap().next_due_at, other.next_due_at);
        let check = claim_checks(&db, now.plus_ms(MINUTE), MINUTE).await.remove(0);
        assert!(work(&db, &check, now.plus_ms(MINUTE)).await);
        // A moment that comes again has its check again, and one that has its check keeps nobody from the next.
        let mut tx = db.begin().await.unwrap();
        assert_eq!(due::claim(&mut tx, now.plus_ms(6 * MINUTE), 10).await.unwrap(), 2);
        tx.commit().await.unwrap();
        assert_eq!(checks::list(&db, row.id, None, 10, 0).await.unwrap().len(), 2);
        for check in claim_checks(&db, now.plus_ms(6 * MINUTE), MINUTE).await {
            assert!(work(&db, &check, now.plus_ms(6 * MINUTE)).await);
        }
        const AGAIN: &str = "UPDATE monitor SET next_due_at = $2 WHERE id = $1";
        let mut tx = db.begin().await.unwrap();
        on_db!(&mut tx, |conn| {
            sqlx::query(AGAIN).bind(row.id).bind(now.plus_ms(5 * MINUTE)).execute(conn).await.unwrap().rows_affected()
        });
        assert_eq!(due::claim(&mut tx, now.plus_ms(6 * MINUTE), 10).await.unwrap(), 1);
        tx.commit().await.unwrap();
        let row = load(&db, team, row.id).await.unwrap().unwrap();
        assert_eq!((row.current_check_id, row.next_due_at), (None, Some(now.plus_ms(10 * MINUTE))));
    }
}

#[tokio::test]
async fn nobody_is_told_and_nothing_is_kept_for_a_monitor_that_was_deleted() {
    for db in testing::databases().await {
        let (team, now) = (testing::team(&db, "a").await, db.now());
        let row = monitor(&db, team, 0, 30, now).await;
        let hooked = Settings {
            name: "watch",
            status: MonitorStatus::Active,
            timing: &row.timing(),
            spec: &spec(true),
            retention_days: 3,
            next_due_at: row.next_due_at,
            runs_a_month: 1,
        };
        let mut tx = db.begin().await.unwrap();
        update(&mut tx, row.id, &hooked, now).await.unwrap();
        tx.commit().await.unwrap();
        let row = load(&db, team, row.id).await.unwrap().unwrap();
        let mut tx = db.begin().await.unwrap();
        let check = checks::run_now(&mut tx, &row, now).await.unwrap().unwrap();
        tx.commit().await.unwrap();
        let claimed = claim_checks(&db, now, MINUTE).await.remove(0);
        let mut tx = db.begin().await.unwrap();
        checks::tell(&mut tx, &[News { check: &claimed, pages: &[PageId::new()], ended: false }], now).await.unwrap();
        let delivery = webhooks::claim(&mut tx, JobId(check.0), now, now.plus_ms(MINUTE), 5).await.unwrap().remove(0);
        tx.commit().await.unwrap();
        let pack = || Packed::new("a".repeat(64), now, &Snapshot::default()).unwrap().of_monitor(Some(row.id));
        let mut tx = db.begin().await.unwrap();
        assert!(delete(&mut tx, team, row.id, now).await.unwrap());
        tx.commit().await.unwrap();
        assert!(checks::receiver(&db, JobId(check.0)).await.unwrap().is_none());
        removal::remove(&db, &mut Slices::default(), now).await.unwrap();
        // What was under way ends after all of it.
        let attempt = webhooks::Attempt { at: now, duration_ms: 1, status: Some(200), error: None, next_at: None };
        let mut tx = db.begin().await.unwrap();
        webhooks::record(&mut tx, &delivery, &attempt, now).await.unwrap();
        snapshots::put(&mut tx, team, &pack(), now).await.unwrap();
        tx.commit().await.unwrap();
        for table in ["monitor", "monitor_check", "webhook_delivery", "webhook_attempt", "page_snapshot"] {
            let sql = format!("SELECT COUNT(*) FROM {table}");
            let (rows,): (i64,) =
                on_pool!(&db, |pool| sqlx::query_as(sqlx::AssertSqlSafe(sql)).fetch_one(pool).await.unwrap());
            assert_eq!(rows, 0, "{table}");
        }
    }
}

#[tokio::test]
async fn results_of_a_check_that_runs_do_not_expire() {
    for db in testing::databases().await {
        let (team, now) = (testing::team(&db, "a").await, db.now());
        let row = monitor(&db, team, 0, 30, now).await;
        let (job, _) = testing::job(&db, team, crate::domain::job::JobKind::Batch, 1, None).await;
        const OURS: &str = "UPDATE job SET origin = $2, expires_at = $3 WHERE id = $1";
        let mut tx = db.begin().await.unwrap();
        on_db!(&mut tx, |conn| {
            let query = sqlx::query(OURS).bind(job).bind(crate::domain::monitor::ORIGIN).bind(now.plus_ms(-1));
            query.execute(conn).await.unwrap().rows_affected()
        });
        assert!(crate::store::work::cancel::job(&mut tx, job, now).await.unwrap());
        checks::run_now(&mut tx, &row, now).await.unwrap().unwrap();
        tx.commit().await.unwrap();
        let check = claim_checks(&db, now, MINUTE).await.remove(0);
        let mut targets = check.targets().unwrap();
        targets[0].job = Some(job);
        let mut tx = db.begin().await.unwrap();
        assert!(starts(&mut tx, &check, &targets, Billing::NotApplicable, now).await);
        tx.commit().await.unwrap();
        assert_eq!(sweep::expire(&db, &mut Slices::default(), now).await.unwrap(), 0);
        let held = jobs::load(&db, job).await.unwrap().unwrap();
        assert!(held.expires_at > now, "its job has ended, and its check has not");
        let (by, summary) = (CheckMove::Complete, check.summary());
        let end =
            End { check: &check, by, targets: &targets, summary, credits: 0, billing: Billing::Released, error: None };
        let mut tx = db.begin().await.unwrap();
        assert_eq!(checks::finish(&mut tx, &[end], now).await.unwrap().len(), 1);
        tx.commit().await.unwrap();
        assert_eq!(sweep::expire(&db, &mut Slices::default(), held.expires_at).await.unwrap(), 1);
    }
}

/// A check that reads these pages and keeps their versions; the others fail.
async fn look(db: &Db, row: &MonitorRow, read: &[&str], failed: &[&str], now: Timestamp) {
    let mut tx = db.begin().await.unwrap();
    checks::run_now(&mut tx, row, now).await.unwrap().unwrap();
    tx.commit().await.unwrap();
    let check = claim_checks(db, now, MINUTE).await.remove(0);
    let mut tx = db.begin().await.unwrap();
    let targets = check.targets().unwrap();
    assert!(starts(&mut tx, &check, &targets, Billing::NotApplicable, now).await);
    tx.commit().await.unwrap();
    let check = claim_checks(db, now, MINUTE).await.remove(0);
    let mut summary = check.summary();
    let mut tx = db.begin().await.unwrap();
    for (url, status) in
        read.iter().map(|url| (url, PageStatus::Same)).chain(failed.iter().map(|url| (url, PageStatus::Error)))
    {
        summary.add(status);
        meet(&mut tx, &check, &found(url, status), now).await;
        if status == PageStatus::Same {
            let packed = Packed::new((*url).to_owned(), now, &Snapshot::default()).unwrap();
            snapshots::put(&mut tx, row.team_id, &packed.of_monitor(Some(row.id)), now).await.unwrap();
        }
    }
    let by = if read.is_empty() { CheckMove::Fall } else { CheckMove::Complete };
    let end =
        End { check: &check, by, targets: &targets, summary, credits: 1, billing: Billing::Confirmed, error: None };
    assert_eq!(checks::finish(&mut tx, &[end], now).await.unwrap().len(), 1);
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn what_the_last_two_checks_have_met_stays_however_seldom_they_are() {
    for db in testing::databases().await {
        let team = testing::team(&db, "a").await;
        let begin = Timestamp::from_iso("2026-03-01T00:00:00Z").unwrap();
        let after = |days: i64| begin.plus_ms(days * DAY);
        let row = monitor(&db, team, 0, 30, begin).await;
        let known = || async {
            let mut left = Vec::new();
            for url in ["a", "b"] {
                let version = snapshots::get(&db, team, url).await.unwrap().is_some();
                assert_eq!(known(&db, row.id, "t", [url]).await, [version], "{url}: an address goes with its version");
                left.extend(version.then_some(url));
            }
            left
        };
        let forget = |day: i64| {
            let (db, now) = (&db, after(day));
            async move { removal::forget(db, &mut Slices::default(), now).await }
        };

        let mut tx = db.begin().await.unwrap();
        for (key, day) in [("by hand", 0), ("later", 1)] {
            let packed = Packed::new(key.to_owned(), after(day), &Snapshot::default()).unwrap();
            snapshots::put(&mut tx, team, &packed, after(1)).await.unwrap();
        }
        // More than one window of them, between what stays.
        for n in 0..1_200 {
            let packed = Packed::new(format!("old {n}"), after(0).plus_ms(-n), &Snapshot::default()).unwrap();
            snapshots::put(&mut tx, team, &packed, after(1)).await.unwrap();
        }
        tx.commit().await.unwrap();
        look(&db, &row, &["a", "b"], &[], after(0)).await;
        forget(90).await.unwrap();
        for n in [1, 600, 1_199] {
            assert!(snapshots::get(&db, team, &format!("old {n}")).await.unwrap().is_none(), "{n}");
        }
        assert!(snapshots::get(&db, team, "by hand").await.unwrap().is_some());
        removal::forget(&db, &mut Slices::default(), after(90).plus_ms(1)).await.unwrap();
        assert!(snapshots::get(&db, team, "by hand").await.unwrap().is_none(), "nobody watches it");
        assert!(snapshots::get(&db, team, "later").await.unwrap().is_some());
        forget(364).await.unwrap();
        assert_eq!(known().await, ["a", "b"], "until it looks again");

        look(&db, &row, &["a"], &[], after(365)).await;
        look(&db, &row, &[], &["a", "b"], after(2 * 365)).await;
        forget(3 * 365).await.unwrap();
        assert_eq!(known().await, ["a", "b"], "a check that reads nothing forgets nothing");
        look(&db, &row, &["a"], &[], after(3 * 365)).await;
        // The failed check has met the address of b, but its version is older than the last two that read something.
        forget(4 * 365).await.unwrap();
        assert!(snapshots::get(&db, team, "b").await.unwrap().is_none());
        assert!(snapshots::get(&db, team, "a").await.unwrap().is_some());
        // One that looks often forgets by the time alone.
        look(&db, &row, &["a", "b"], &[], after(1_500)).await;
        for day in [1_501, 1_502] {
            look(&db, &row, &["a"], &[], after(day)).await;
        }
        forget(1_590).await.unwrap();
        assert_eq!(known().await, ["a", "b"]);
        forget(1_591).await.unwrap();
        assert_eq!(known().await, ["a"]);
    }
}
