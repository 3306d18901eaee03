//! How many pages run at once, for a team, a batch and all workers together, and whose turn it is (wire 5.9).

use std::time::Duration;

use serde_json::json;
use weir_shared::clock::Stopwatch;
use weir_tests::{
    Caller, FixtureSite, ServiceOptions, TestService, both_databases, documents_of, finished, first_on, wait_until,
};

const BOUND: Duration = Duration::from_secs(90);

both_databases! {
    async fn a_batch_never_runs_more_pages_at_once_than_it_was_allowed(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start_with(ServiceOptions::new(database).workers(2)).await;
        let body = json!({ "urls": site.urls("/slow?ms=200&n=", 45), "maxConcurrency": 3 });
        let id = service.post("/v2/batch/scrape", &body).await.id();
        assert_eq!(finished(service.caller(), &id, BOUND).await["completed"], 45);
        assert_eq!(site.most_open().await, 3, "the limit holds over both workers, and is used");
    }

    async fn a_team_never_runs_more_pages_at_once_than_its_limit(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start_with(ServiceOptions::new(database).workers(2)).await;
        let small = service.new_team("small");
        service.cli(&["team", "set", "small", "--concurrency", "4"]);
        let mut ids = Vec::new();
        for batch in 0..3 {
            let urls = site.urls(&format!("/slow?ms=200&batch={batch}&n="), 16);
            ids.push(small.post("/v2/batch/scrape", &json!({ "urls": urls, "maxConcurrency": 50 })).await.id());
        }
        for id in &ids {
            assert_eq!(finished(&small, id, BOUND).await["completed"], 16);
        }
        assert_eq!(site.most_open().await, 4, "over three batches and two workers");

        let documents = documents_of(&small, &ids[2]).await;
        let limited = documents.iter().filter(|document| document["metadata"]["concurrencyLimited"] == true);
        let waited = limited.filter(|document| document["metadata"]["concurrencyQueueDurationMs"].as_f64().unwrap() > 0.0);
        assert!(waited.count() > 8, "pages that waited say so");
    }
}

first_on! {
    postgres:

    async fn pages_that_were_claimed_ahead_do_not_wait_behind_slow_ones(database) {
        let site = FixtureSite::start().await;
        let options = ServiceOptions::new(database).workers(2).env("WEIR_WORKER_CONCURRENCY", "4");
        let service = TestService::start_with(options).await;
        service.ready().await;
        // One worker alone is so quick with the small pages that it claims all of the slow ones with them.
        service.pause_worker(1).await;
        let urls = [site.urls("/small/", 60), site.urls("/slow?ms=12000&n=", 8)].concat();
        let id = service.post("/v2/batch/scrape", &json!({ "urls": urls })).await.id();
        wait_until("its places are taken", || async { (site.hit_count("/slow").await == 4).then_some(()) }).await;
        service.resume_worker(1);
        wait_until("the others are in work", || async { (site.hit_count("/slow").await == 8).then_some(()) }).await;
        assert_eq!(site.most_open().await, 8, "while the first four still are");
        let status = finished(service.caller(), &id, BOUND).await;
        assert_eq!((&status["completed"], &status["creditsUsed"]), (&json!(68), &json!(68)));
        assert_eq!(site.hit_count("/slow").await, 8);
    }
}

both_databases! {
    async fn pages_that_take_long_keep_nobody_else_waiting(database) {
        let site = FixtureSite::start().await;
        let options = ServiceOptions::new(database).env("WEIR_WORKER_CONCURRENCY", "3");
        let mut service = TestService::start_with(options).await;
        let other = service.new_team("others");
        let body = json!({ "urls": site.urls("/slow?ms=90000&n=", 7), "timeout": 100_000 });
        let id = service.post("/v2/batch/scrape", &body).await.id();
        wait_until("every slot is taken", || async { (site.hit_count("/slow").await == 3).then_some(()) }).await;
        // Another team, and callers on the line of the same team, one after the other.
        for (n, caller) in [&other, service.caller(), &other, service.caller()].into_iter().enumerate() {
            let small = json!({ "url": site.url(&format!("/small/{n}")), "timeout": 60_000 });
            caller.post("/v2/scrape", &small).await.ok();
        }
        let theirs = other.post("/v2/batch/scrape", &json!({ "urls": site.urls("/small/1", 5) })).await.id();
        assert_eq!(finished(&other, &theirs, BOUND).await["completed"], 5);
        assert_eq!(site.hit_count("/slow").await, 3, "who has every slot begins nothing beside them");
        service.delete(&format!("/v2/batch/scrape/{id}")).await.ok();
        // It would wait for its pages.
        service.kill_worker(0);
    }

    async fn a_crowd_of_one_teams_callers_keeps_nobody_else_waiting(database) {
        let site = FixtureSite::start().await;
        let options = ServiceOptions::new(database).env("WEIR_WORKER_CONCURRENCY", "8");
        let service = TestService::start_with(options).await;
        let other = service.new_team("others");
        let scrape = async |caller: &Caller, url: String| caller.post("/v2/scrape", &json!({ "url": url })).await.ok();
        // Who has so many in work does not begin as a guest.
        let held = site.urls("/slow?ms=10000&n=", 2).into_iter().map(|url| scrape(&other, url));
        let crowd = site.urls("/slow?ms=600&n=", 100).into_iter().map(|url| scrape(service.caller(), url));
        let crowd = async {
            wait_until("the others have two in work", || async {
                (site.hit_count("/slow").await == 2).then_some(())
            })
            .await;
            futures_util::future::join_all(crowd).await
        };
        let theirs = async {
            wait_until("the crowd is being served", || async {
                (site.hit_count("/slow").await >= 20).then_some(())
            })
            .await;
            let began = site.hit_count("/slow").await;
            scrape(&other, site.url("/small/1")).await;
            site.hit_count("/slow").await - began
        };
        let (_, _, passed) = tokio::join!(futures_util::future::join_all(held), crowd, theirs);
        // In one line all of them would. Ten begin each second.
        assert!(passed <= 50, "{passed} pages of the crowd began before the other's");
    }

    async fn a_large_batch_of_one_team_does_not_delay_another_team(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let other = service.new_team("others");
        let body = json!({ "urls": site.urls("/slow?ms=600&n=", 2000) });
        let id = service.post("/v2/batch/scrape", &body).await.id();
        wait_until("the large batch runs", || async { (site.hit_count("/slow").await > 20).then_some(()) }).await;

        let mut slowest = Duration::ZERO;
        for n in 0..8 {
            let began = Stopwatch::start();
            other.post("/v2/scrape", &json!({ "url": site.url(&format!("/small/{n}")) })).await.ok();
            slowest = slowest.max(began.elapsed());
        }
        // The large batch takes more than a minute.
        assert!(slowest < Duration::from_secs(10), "the slowest scrape took {slowest:?}");

        let began = Stopwatch::start();
        let urls = site.urls("/small/", 20);
        let theirs = other.post("/v2/batch/scrape", &json!({ "urls": urls })).await.id();
        finished(&other, &theirs, BOUND).await;
        assert!(began.elapsed() < Duration::from_secs(20), "their batch of 20 small pages took {:?}", began.elapsed());
        let running = service.get(&format!("/v2/batch/scrape/{id}?limit=1")).await.ok();
        assert_eq!(running["status"], "scraping", "all that while the large batch was there");
        service.delete(&format!("/v2/batch/scrape/{id}")).await.ok();
    }
}

first_on! { sqlite:
    async fn a_batch_beside_anothers_long_pages_takes_no_longer(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let other = service.new_team("others");
        let long = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/slow?ms=40000&n=", 40) })).await.id();
        wait_until("every slot is taken", || async { (site.hit_count("/slow").await == 16).then_some(()) }).await;
        let began = Stopwatch::start();
        let theirs = other.post("/v2/batch/scrape", &json!({ "urls": site.urls("/small/", 100) })).await.id();
        finished(&other, &theirs, BOUND).await;
        // With a quarter of a second for each of them it would be 25 seconds.
        assert!(began.elapsed() < Duration::from_secs(16), "their 100 small pages took {:?}", began.elapsed());
        service.delete(&format!("/v2/batch/scrape/{long}")).await.ok();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_that_take_long_in_a_browser_keep_nobody_else_waiting() {
    let site = FixtureSite::start().await;
    let options = ServiceOptions::new(weir_tests::Database::Sqlite).env("WEIR_PAGES_PER_BROWSER", "2");
    let mut service = TestService::start_with(options).await;
    let other = service.new_team("others");
    let body = json!({ "urls": site.urls("/small/9", 6), "waitFor": 60_000, "timeout": 130_000 });
    let id = service.post("/v2/batch/scrape", &body).await.id();
    wait_until("every page of the browser is taken", || async {
        (site.hit_count("/small/9").await == 2).then_some(())
    })
    .await;
    for (n, caller) in [&other, service.caller()].into_iter().enumerate() {
        let small = json!({ "url": site.url(&format!("/small/{n}")), "waitFor": 1, "timeout": 45_000 });
        caller.post("/v2/scrape", &small).await.ok();
    }
    assert_eq!(site.hit_count("/small/9").await, 2, "who has every page begins none beside them");
    service.delete(&format!("/v2/batch/scrape/{id}")).await.ok();
    service.kill_worker(0);
}

#[tokio::test]
async fn a_scrape_that_waits_too_long_for_its_turn_says_so() {
    let site = FixtureSite::start().await;
    let service = TestService::start(weir_tests::Database::Sqlite).await;
    let small = service.new_team("small");
    service.cli(&["team", "set", "small", "--concurrency", "1"]);
    let urls = site.urls("/slow?ms=40000&n=", 2);
    let id = small.post("/v2/batch/scrape", &json!({ "urls": urls })).await.id();
    wait_until("the team's only place is taken", || async { (site.hit_count("/slow").await > 0).then_some(()) }).await;
    let answer = small.post("/v2/scrape", &json!({ "url": site.url("/small/1"), "timeout": 3000 })).await;
    assert_eq!(answer.status, 408, "{}", answer.text);
    assert!(["CONCURRENCY_QUEUE_TIMEOUT", "SCRAPE_TIMEOUT"].contains(&answer.code()), "{}", answer.text);
    small.delete(&format!("/v2/batch/scrape/{id}")).await.ok();
}

#[tokio::test]
async fn request_rates_are_limited_per_team_and_bucket() {
    let site = FixtureSite::start().await;
    let options = ServiceOptions::new(weir_tests::Database::Sqlite).env("WEIR_RATE_LIMITS", "scrape=3");
    let service = TestService::start_with(options).await;
    let page = json!({ "url": site.url("/small/1") });
    // The window is a fixed minute: twice the limit and one more exceed it wherever the minute turns.
    let mut refused = None;
    for _ in 0..7 {
        let answer = service.post("/v2/scrape", &page).await;
        if answer.status != 200 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("seven requests exceed three a minute");
    assert_eq!(refused.status, 429);
    assert!(refused.is_base_error());
    let seconds: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds));
    assert!(refused.error().contains("retry after ") && refused.error().contains('s'), "{}", refused.text);
    let other = service.new_team("others");
    other.post("/v2/scrape", &page).await.ok();
    service.post("/v2/batch/scrape", &json!({ "urls": [site.url("/small/2")] })).await.ok();
}
