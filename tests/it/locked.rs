//! Somebody holds the lock of a team's rows on Postgres, as a large cancel or a cut-off machine does: the other teams do
//! not notice, and nothing that was fetched meanwhile is fetched again.

use std::time::Duration;

use serde_json::json;
use weir_shared::clock::Stopwatch;
use weir_tests::{Database, FixtureSite, ServiceOptions, TestService, finished, wait_until};

const PAGES: usize = 40;

async fn survive_a_lock(hold: Duration) {
    let Some(database) = Database::postgres() else { return };
    let site = FixtureSite::start().await;
    let options = ServiceOptions::new(database).workers(1).env("WEIR_WORKER_CONCURRENCY", "8");
    let service = TestService::start_with(options).await;
    let other = service.new_team("other");

    let slow = site.urls("/slow?ms=300&n=", PAGES);
    let id = service.post("/v2/batch/scrape", &json!({ "urls": slow })).await.id();
    wait_until("pages are in work", || async { (site.hit_count("/slow").await >= 8).then_some(()) }).await;
    let began = Stopwatch::start();
    let lock = service.lock_writes("other").await;

    for round in 0..2 {
        let quick = site.urls(&format!("/small/{round}"), PAGES);
        let quick = other.post("/v2/batch/scrape", &json!({ "urls": quick })).await.id();
        let status = finished(&other, &quick, Duration::from_secs(60)).await;
        assert_eq!(status["completed"], PAGES, "{status}");
        let scrape = json!({ "url": site.url("/small/9999") });
        other.post("/v2/scrape", &scrape).await.ok();
    }
    tokio::time::sleep(hold.saturating_sub(began.elapsed())).await;
    lock.release().await;

    let status = finished(service.caller(), &id, Duration::from_secs(60)).await;
    assert_eq!((&status["completed"], &status["creditsUsed"]), (&json!(PAGES), &json!(PAGES)), "{status}");
    assert_eq!(site.hit_count("/slow").await, PAGES as u64, "each page is fetched once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_team_whose_rows_are_locked_keeps_no_other_waiting() {
    survive_a_lock(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_page_is_fetched_twice_while_its_team_is_locked_for_long() {
    if weir_tests::long_tests() {
        // Long enough for three comparisons of what a worker has with its rows.
        survive_a_lock(Duration::from_secs(18)).await;
    } else {
        eprintln!("skipped: a long test, WEIR_TEST_LONG=1 runs it");
    }
}
