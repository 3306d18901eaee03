//! Idempotency keys (wire 5.8) and pages of results (wire 5.7).

use std::time::Duration;

use serde_json::json;
use weir_shared::clock::Stopwatch;
use weir_shared::random;
use weir_tests::{Answer, FixtureSite, TestService, both_databases, documents_of, finished};

const BOUND: Duration = Duration::from_secs(90);

both_databases! {
    async fn an_idempotency_key_starts_one_batch(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let body = json!({ "urls": site.urls("/small/", 2) });
        let start = async |key: &str| -> Answer {
            let request = service.caller().request(reqwest::Method::POST, "/v2/batch/scrape");
            service.caller().send(request.header("x-idempotency-key", key).json(&body)).await
        };
        let key = random::id().to_string();
        let begun = start(&key).await.id();
        let again = start(&key).await;
        assert_eq!(again.body["id"], begun, "whoever has lost the answer finds the job: {}", again.text);
        assert_eq!((again.status, again.error()), (409, "Idempotency key already used"), "{}", again.text);
        assert_eq!(start("not-a-uuid").await.status, 409, "wire 5.8");
        start(&random::id().to_string()).await.id();

        let other = service.new_team("others");
        let request = other.request(reqwest::Method::POST, "/v2/batch/scrape").header("x-idempotency-key", &key);
        other.send(request.json(&body)).await.id();

        let fresh = random::id().to_string();
        let answers = futures_util::future::join_all((0..8).map(|_| start(&fresh))).await;
        let started = answers.iter().filter(|answer| answer.status == 200).count();
        assert_eq!(started, 1, "eight at once, one batch");
    }

    async fn a_refused_request_does_not_use_up_its_key(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let key = random::id().to_string();
        let send = async |body| -> Answer {
            let request = service.caller().request(reqwest::Method::POST, "/v2/batch/scrape");
            service.caller().send(request.header("x-idempotency-key", &key).json(&body)).await
        };
        assert_eq!(send(json!({ "urls": [] })).await.status, 400);
        send(json!({ "urls": site.urls("/small/", 1) })).await.id();
    }

    async fn pages_of_results_join_without_gap_or_repeat(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let id = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/small/", 230) })).await.id();
        finished(service.caller(), &id, BOUND).await;
        let path = format!("/v2/batch/scrape/{id}");

        let first = service.get(&path).await.ok();
        assert_eq!(first["data"].as_array().unwrap().len(), 100, "100 documents a page when no limit is given");
        assert_eq!(first["next"], format!("{}{path}?skip=100", service.base()));
        let all = documents_of(service.caller(), &id).await;
        let ids = |documents: &[serde_json::Value]| -> Vec<String> {
            documents.iter().map(|document| document["metadata"]["scrapeId"].as_str().unwrap().to_owned()).collect()
        };
        let order = ids(&all);
        assert_eq!(order.len(), 230);
        let mut unique = order.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), 230);

        let part = service.get(&format!("{path}?skip=7&limit=25")).await.ok();
        assert_eq!(ids(part["data"].as_array().unwrap()), order[7..32], "the order never changes");
        assert_eq!(part["next"], format!("{}{path}?skip=32&limit=25", service.base()), "limit is repeated");
        let last = service.get(&format!("{path}?skip=225&limit=25")).await.ok();
        assert_eq!(last["data"].as_array().unwrap().len(), 5);
        assert!(last["next"].is_null(), "{}", last["next"]);
        let beyond = service.get(&format!("{path}?skip=500")).await.ok();
        assert!(beyond["data"] == json!([]) && beyond["next"].is_null() && beyond["success"] == true, "{beyond}");
        assert_eq!(service.get(&format!("{path}?limit=1000")).await.ok()["data"].as_array().unwrap().len(), 230);
    }

    async fn a_page_of_results_stays_near_ten_megabytes(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let urls: Vec<_> = (0..8).map(|n| site.url(&format!("/huge?mb=3&n={n}"))).collect();
        let body = json!({ "urls": urls, "formats": ["rawHtml"] });
        let id = service.post("/v2/batch/scrape", &body).await.id();
        let status = finished(service.caller(), &id, BOUND).await;
        assert_eq!(status["completed"], 8, "{status:.500}");
        let page = service.get(&format!("/v2/batch/scrape/{id}")).await;
        assert!(page.text.len() < 14 << 20, "{} bytes", page.text.len());
        assert!(page.body["next"].is_string(), "the rest is on further pages");
        assert_eq!(documents_of(service.caller(), &id).await.len(), 8);
    }

    async fn a_reader_of_a_running_batch_is_held_and_then_given_the_same_address(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let id = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/slow?ms=40000&n=", 1) })).await.id();
        let first = service.get(&format!("/v2/batch/scrape/{id}")).await.ok();
        let next = first["next"].as_str().expect("a running batch has a next page").to_owned();
        let began = Stopwatch::start();
        let empty = service.get(&next).await.ok();
        assert!(began.elapsed() >= Duration::from_millis(500), "an empty page of a running batch is held for about a second");
        assert_eq!((&empty["data"], &empty["success"]), (&json!([]), &json!(true)));
        assert_eq!(empty["next"], next, "the very same text, or Python reads on for ever");
        service.delete(&format!("/v2/batch/scrape/{id}")).await.ok();
    }

    async fn next_follows_the_address_that_the_client_used(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let id = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/small/", 3) })).await.id();
        finished(service.caller(), &id, BOUND).await;
        let request = service.caller().request(reqwest::Method::GET, &format!("/v2/batch/scrape/{id}?limit=1"));
        let request = request.header("host", "api.example:8443").header("x-forwarded-proto", "https");
        let body = service.caller().send(request).await.ok();
        assert_eq!(body["next"], format!("https://api.example:8443/v2/batch/scrape/{id}?skip=1&limit=1"));
    }
}

#[tokio::test]
async fn results_do_not_expire_under_a_batch_that_runs() {
    let site = FixtureSite::start().await;
    let options = weir_tests::ServiceOptions::new(weir_tests::Database::Sqlite).env("WEIR_RESULT_TTL", "12s");
    let service = TestService::start_with(options).await;
    // Fifteen seconds of work.
    let urls: Vec<String> = (0..5).map(|n| site.url(&format!("/slow/{n}?ms=3000"))).collect();
    let id = service.post("/v2/batch/scrape", &json!({ "urls": urls, "maxConcurrency": 1 })).await.id();
    let status = finished(service.caller(), &id, BOUND).await;
    assert_eq!((&status["status"], &status["completed"]), (&json!("completed"), &json!(5)), "{status}");
    assert_eq!(documents_of(service.caller(), &id).await.len(), 5);
}

#[tokio::test]
async fn results_expire() {
    let site = FixtureSite::start().await;
    let options = weir_tests::ServiceOptions::new(weir_tests::Database::Sqlite).env("WEIR_RESULT_TTL", "3s");
    let service = TestService::start_with(options).await;
    let id = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/small/", 1) })).await.id();
    let gone = weir_tests::wait_until("the batch expires", || async {
        let answer = service.get(&format!("/v2/batch/scrape/{id}")).await;
        (answer.status != 200).then_some(answer)
    })
    .await;
    assert_eq!(gone.status, 404, "{}", gone.text);
    assert!(["Job expired", "Job not found"].contains(&gone.error()), "{}", gone.text);
}
