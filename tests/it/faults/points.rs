//! The service is broken at each of its named points: nothing may be lost, doubled or left behind.

use std::os::unix::process::ExitStatusExt as _;

use weir_shared::fault::{ENVIRONMENT, FaultPoint};
use weir_shared::random;
use weir_tests::first_on;

use super::*;

const BOUND: Duration = Duration::from_secs(60);
const PAGES: usize = 12;

/// A worker is killed when it gets to `point` and started again.
async fn survive_a_kill(database: Database, point: FaultPoint) {
    let site = FixtureSite::start().await;
    let options = ServiceOptions::new(database).env(ENVIRONMENT, format!("{}=kill", point.as_str()));
    let mut service = TestService::start_with(options).await;
    service.remove_env(ENVIRONMENT);
    let mut urls = site.urls("/mix/", PAGES - 1);
    // Too large for a row: it is a blob, for it does not compress.
    let noise: String = (0..32).map(|_| random::hex::<16_384>()).collect();
    urls.push(site.serve_file("large.txt", "text/plain", noise.into_bytes()).await);
    let webhook = json!({ "url": site.webhook_url("kills"), "events": ["page", "completed"] });
    let body = json!({ "urls": urls, "webhook": webhook });
    let id = service.post("/v2/batch/scrape", &body).await.id();

    let status = service.await_worker(0, BOUND);
    assert_eq!(status.signal(), Some(9), "the worker gets to {}: {status}", point.as_str());
    service.start_worker(0);
    let status = finished(service.caller(), &id, BOUND).await;
    intact(&site, &service, &id, &urls, &status).await;
    webhooks_arrived(&site, service.caller(), &id, PAGES).await;
    nothing_left(&mut service).await;
}

/// Whoever asks for a page that is dispatched to a worker gets it, though the worker is killed at `point`.
async fn survive_a_kill_with_a_scrape(database: Database, point: FaultPoint) {
    let site = FixtureSite::start().await;
    let mut service = TestService::start_with(ServiceOptions::new(database)).await;
    scrapes_are_dispatched(&service, &site).await;
    let before = used(&service).await;
    service.set_env(ENVIRONMENT, &format!("{}=kill", point.as_str()));
    service.restart_worker(0);
    service.remove_env(ENVIRONMENT);
    let (caller, url) = (service.caller().clone(), site.url("/article/77"));
    let scrape =
        tokio::spawn(async move { caller.post("/v2/scrape", &json!({ "url": url, "timeout": 100_000 })).await.ok() });
    let status = service.await_worker(0, BOUND);
    assert_eq!(status.signal(), Some(9), "the worker gets to {}: {status}", point.as_str());
    service.start_worker(0);
    let answer = scrape.await.unwrap();
    assert_eq!(answer["data"]["metadata"]["statusCode"], 200);
    assert_eq!(used(&service).await - before, 1, "it is billed once");
    nothing_left(&mut service).await;
}

both_databases! {
    async fn a_worker_killed_after_a_claim_loses_nothing(database) {
        survive_a_kill(database, FaultPoint::AfterClaim).await;
    }

    async fn a_worker_killed_between_blob_and_row_loses_nothing(database) {
        survive_a_kill(database, FaultPoint::BetweenBlobAndRow).await;
    }

    async fn a_worker_killed_before_a_commit_loses_nothing(database) {
        survive_a_kill(database, FaultPoint::BeforeCommit).await;
    }

    async fn a_worker_killed_after_a_commit_doubles_nothing(database) {
        survive_a_kill(database, FaultPoint::AfterCommit).await;
    }

    async fn a_worker_killed_before_it_acknowledges_doubles_nothing(database) {
        survive_a_kill(database, FaultPoint::BeforeAcknowledgement).await;
    }
}

first_on! {
    postgres:

    async fn a_worker_killed_before_it_posts_still_tells_the_receiver(database) {
        survive_a_kill(database, FaultPoint::BeforePost).await;
    }
}

first_on! {
    sqlite:

    async fn a_worker_killed_after_it_posted_tells_the_receiver_the_same_again(database) {
        survive_a_kill(database, FaultPoint::AfterPost).await;
    }
}

both_databases! {
    async fn a_scrape_whose_worker_is_killed_after_the_claim_is_answered(database) {
        survive_a_kill_with_a_scrape(database, FaultPoint::AfterClaim).await;
    }

    async fn a_scrape_whose_worker_is_killed_after_the_commit_is_answered(database) {
        survive_a_kill_with_a_scrape(database, FaultPoint::AfterCommit).await;
    }

    async fn a_page_that_is_being_claimed_as_its_worker_stops_is_worked_on_to_its_end(database) {
        let site = FixtureSite::start().await;
        let options = ServiceOptions::new(database).env(ENVIRONMENT, format!("{}=stop", FaultPoint::AfterClaim.as_str()));
        let mut service = TestService::start_with(options).await;
        // Longer than what is left to a worker after its drain.
        let urls = [site.url("/slow/1?ms=7000")];
        let id = service.post("/v2/batch/scrape", &json!({ "urls": urls })).await.id();
        assert!(service.await_worker(0, BOUND).success());
        let status = service.caller().get(&format!("/v2/batch/scrape/{id}")).await.ok();
        assert_eq!((&status["status"], &status["completed"]), (&json!("completed"), &json!(1)), "{status}");
        assert_eq!(site.hit_count("/slow").await, 1);
    }

    async fn a_claim_whose_answer_is_lost_is_taken_back(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start_with(
            ServiceOptions::new(database).env(ENVIRONMENT, format!("{}=fail", FaultPoint::AfterClaim.as_str())),
        )
        .await;
        let id = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/small/", 2) })).await.id();
        let began = Stopwatch::start();
        let status = finished(service.caller(), &id, BOUND).await;
        assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
        assert_eq!((&status["completed"], &status["creditsUsed"]), (&json!(2), &json!(2)));
    }
}
