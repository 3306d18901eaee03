//! Batch scrape from start to end: results, failures, append, cancel, credits (wire 4, 5).

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use weir_tests::{
    FixtureSite, TestService, both_databases, documents_of, errors_of, finished, markdown_of, wait_until,
};

const BOUND: Duration = Duration::from_secs(60);

both_databases! {
    async fn a_batch_gives_one_document_for_each_address(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let urls = site.urls("/mix/", 60);
        let answer = service.post("/v2/batch/scrape", &json!({ "urls": urls })).await.ok();
        assert_eq!(answer["success"], true);
        assert_eq!(answer["invalidURLs"], json!([]), "an empty array when all are valid");
        let id = answer["id"].as_str().unwrap().to_owned();
        assert_eq!(answer["url"], format!("{}/v2/batch/scrape/{id}", service.base()));

        let status = finished(service.caller(), &id, BOUND).await;
        assert_eq!(status["status"], "completed");
        for field in ["completed", "total", "creditsUsed"] {
            assert_eq!(status[field], 60, "{field}");
        }
        assert!(status["expiresAt"].as_str().unwrap().ends_with('Z'));

        let documents = documents_of(service.caller(), &id).await;
        assert_eq!(documents.len(), 60);
        let mut seen = BTreeMap::new();
        for document in &documents {
            let url = document["metadata"]["sourceURL"].as_str().unwrap();
            *seen.entry(url.to_owned()).or_insert(0) += 1;
            let path = url.strip_prefix(&site.url("")).unwrap();
            assert_eq!(site.truth(path).await.fault_in(markdown_of(document)), None, "{path}");
            uuid::Uuid::parse_str(document["metadata"]["scrapeId"].as_str().unwrap()).unwrap();
        }
        assert!(urls.iter().all(|url| seen.get(url) == Some(&1)), "{seen:?}");
        assert_eq!(errors_of(service.caller(), &id).await, Vec::<Value>::new());
    }

    async fn failed_pages_leave_the_total_and_stand_in_the_error_list(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let bad = [site.url("/cut/reset"), site.url("/hang?x=1"), "http://127.0.0.1:2/".to_owned()];
        let mut urls = site.urls("/article/", 5);
        urls.extend(bad.iter().cloned());
        let id = service.post("/v2/batch/scrape", &json!({ "urls": urls, "timeout": 6_000 })).await.id();

        let status = finished(service.caller(), &id, BOUND).await;
        assert_eq!(status["status"], "completed");
        assert_eq!((&status["completed"], &status["total"], &status["creditsUsed"]), (&json!(5), &json!(5), &json!(5)));
        let errors = errors_of(service.caller(), &id).await;
        assert_eq!(errors.len(), 3, "{errors:?}");
        for error in &errors {
            for field in ["id", "url", "error", "code", "timestamp"] {
                assert!(error[field].is_string(), "{field} in {error}");
            }
            assert!(bad.iter().any(|url| *url == error["url"]), "{error}");
        }
        let answer = service.get(&format!("/v2/batch/scrape/{id}/errors")).await.ok();
        assert_eq!(answer["robotsBlocked"], json!([]));
    }

    async fn a_page_of_a_batch_can_be_read_by_its_own_id(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let id = service.post("/v2/batch/scrape", &json!({ "urls": [site.url("/article/1")] })).await.id();
        finished(service.caller(), &id, BOUND).await;
        let document = documents_of(service.caller(), &id).await.remove(0);
        let page = document["metadata"]["scrapeId"].as_str().unwrap();
        let again = service.get(&format!("/v2/scrape/{page}")).await.ok();
        assert_eq!(again["data"]["markdown"], document["markdown"]);
    }

    async fn duplicates_are_kept_and_invalid_addresses_are_told(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let url = site.url("/article/4");
        let body = json!({ "urls": [url, url, "http://nodot/", "ftp://x.example/y", url] });
        let answer = service.post("/v2/batch/scrape", &body).await.ok();
        assert_eq!(answer["invalidURLs"], json!(["http://nodot/", "ftp://x.example/y"]));
        let status = finished(service.caller(), answer["id"].as_str().unwrap(), BOUND).await;
        assert_eq!(status["completed"], 3);

        let body = json!({ "urls": [url], "ignoreInvalidURLs": false });
        let answer = service.post("/v2/batch/scrape", &body).await.ok();
        assert!(answer.get("invalidURLs").is_none(), "the key is absent then: {answer}");
    }

    async fn a_running_batch_takes_more_pages_and_an_ended_one_does_not(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let urls = site.urls("/slow?ms=1500&n=", 2);
        let id = service.post("/v2/batch/scrape", &json!({ "urls": urls })).await.id();
        let more = json!({ "urls": site.urls("/article/", 3), "appendToId": id });
        let answer = service.post("/v2/batch/scrape", &more).await.ok();
        assert_eq!(answer["id"], id);
        let status = finished(service.caller(), &id, BOUND).await;
        assert_eq!((&status["completed"], &status["total"]), (&json!(5), &json!(5)));

        let late = service.post("/v2/batch/scrape", &more).await;
        assert_eq!(late.status, 409, "{}", late.text);
        assert!(late.is_base_error());
    }

    async fn a_cancelled_batch_stops_at_once(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let urls = site.urls("/slow?ms=300&n=", 300);
        let id = service.post("/v2/batch/scrape", &json!({ "urls": urls, "maxConcurrency": 5 })).await.id();
        let path = format!("/v2/batch/scrape/{id}");
        wait_until("the first pages", || async {
            (service.get(&path).await.ok()["completed"].as_u64()? > 2).then_some(())
        })
        .await;
        let answer = service.delete(&path).await.ok();
        assert_eq!(answer["status"], "cancelled");
        let status = service.get(&path).await.ok();
        assert_eq!(status["status"], "cancelled");

        // Running pages may finish; after them, no page is asked for any more.
        wait_until("the slots are free", || async {
            (service.get("/v2/team/queue-status").await.ok()["activeJobsInQueue"] == 0).then_some(())
        })
        .await;
        let settled = wait_until("the site is quiet", || async {
            let before = site.hit_count("/slow").await;
            tokio::time::sleep(Duration::from_millis(700)).await;
            (site.hit_count("/slow").await == before).then_some(before)
        })
        .await;
        assert!(settled < 100, "{settled} pages were fetched");
        let documents = documents_of(service.caller(), &id).await;
        let status = service.get(&path).await.ok();
        assert_eq!(documents.len() as u64, status["completed"].as_u64().unwrap());

        let finished_one = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/article/", 1) })).await.id();
        finished(service.caller(), &finished_one, BOUND).await;
        let refused = service.delete(&format!("/v2/batch/scrape/{finished_one}")).await;
        assert_eq!((refused.status, refused.error()), (409, "Crawl is already completed"), "{}", refused.text);
    }

    async fn pages_under_way_that_take_long_end_soon_after_a_cancel(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let id = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/slow?ms=90000&n=", 20), "timeout": 100_000 })).await.id();
        wait_until("every slot is taken", || async { (site.hit_count("/slow").await == 16).then_some(()) }).await;
        service.delete(&format!("/v2/batch/scrape/{id}")).await.ok();
        wait_until("the slots are free", || async {
            let queue = service.get("/v2/team/queue-status").await.ok();
            (queue["activeJobsInQueue"] == 0).then_some(())
        })
        .await;
        let status = service.get(&format!("/v2/batch/scrape/{id}")).await.ok();
        assert_eq!((&status["status"], &status["total"]), (&json!("cancelled"), &json!(0)), "{status}");
        assert_eq!(errors_of(service.caller(), &id).await.len(), 0);
        assert_eq!(site.hit_count("/slow").await, 16, "none of them is asked for again");
    }

    async fn a_very_large_batch_is_accepted_grows_and_is_cancelled_as_a_whole(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let mut urls = site.urls("/slow?ms=300&n=", 7_100);
        let more = urls.split_off(5_000);
        let id = service.post("/v2/batch/scrape", &json!({ "urls": urls, "maxConcurrency": 1 })).await.id();
        let path = format!("/v2/batch/scrape/{id}");
        assert_eq!(service.get(&path).await.ok()["total"], 5_000);
        wait_until("the first page", || async { (service.get(&path).await.ok()["completed"].as_u64()? > 0).then_some(()) })
            .await;
        service.post("/v2/batch/scrape", &json!({ "appendToId": id, "urls": more })).await.ok();
        assert_eq!(service.get(&path).await.ok()["total"], 7_100);
        service.delete(&path).await.ok();
        let status = service.get(&path).await.ok();
        let (total, completed) = (status["total"].as_u64().unwrap(), status["completed"].as_u64().unwrap());
        assert_eq!(status["status"], "cancelled");
        assert!(total - completed <= 1, "{total} of {completed}: what waits is in the counts no more");
    }

    async fn a_metered_team_pays_a_credit_for_each_page_and_no_more(database) {
        let site = FixtureSite::start().await;
        let options = weir_tests::ServiceOptions::new(database).env("WEIR_CREDITS", "metered");
        let service = TestService::start_with(options).await;
        let poor = service.new_team("poor");
        let refused = poor.post("/v2/scrape", &json!({ "url": site.url("/article/1") })).await;
        assert_eq!(refused.status, 402, "{}", refused.text);
        assert!(refused.error().starts_with("Insufficient credits to perform this request."));

        service.cli(&["credits", "grant", "--team", "poor", "5"]);
        let too_many = poor.post("/v2/batch/scrape", &json!({ "urls": site.urls("/article/", 6) })).await;
        assert_eq!(too_many.status, 402, "a batch is checked before it starts: {}", too_many.text);
        let id = poor.post("/v2/batch/scrape", &json!({ "urls": site.urls("/article/", 4) })).await.id();
        assert_eq!(finished(&poor, &id, BOUND).await["creditsUsed"], 4);
        poor.post("/v2/scrape", &json!({ "url": site.url("/article/1"), "maxAge": 0 })).await.ok();
        let refused = poor.post("/v2/scrape", &json!({ "url": site.url("/article/2"), "maxAge": 0 })).await;
        assert_eq!(refused.status, 402, "5 granted, 5 used: {}", refused.text);
    }
}

#[tokio::test]
async fn a_flaky_target_is_tried_again_only_where_the_contract_allows() {
    let site = FixtureSite::start().await;
    let service = TestService::start(weir_tests::Database::Sqlite).await;
    let id = service.post("/v2/batch/scrape", &json!({ "urls": [site.url("/flaky/a?fail=1&status=503")] })).await.id();
    let status = finished(service.caller(), &id, BOUND).await;
    assert_eq!(status["status"], "completed");
    // An answer of the target is a document, whatever its status is (wire 2.3).
    let document = documents_of(service.caller(), &id).await.remove(0);
    let code = document["metadata"]["statusCode"].as_u64().unwrap();
    assert!(code == 503 || code == 200, "{document}");
}

#[tokio::test]
async fn a_browser_batch_gives_pages_and_screenshots() {
    let site = FixtureSite::start().await;
    let service = TestService::start(weir_tests::Database::Sqlite).await;
    let urls = site.urls("/js/render/", 12);
    let id =
        service.post("/v2/batch/scrape", &json!({ "urls": urls, "formats": ["markdown", "screenshot"] })).await.id();
    let status = finished(service.caller(), &id, BOUND).await;
    assert_eq!(status["completed"], 12, "{}", errors_of(service.caller(), &id).await.len());
    for document in documents_of(service.caller(), &id).await {
        let path = document["metadata"]["sourceURL"].as_str().unwrap().strip_prefix(&site.url("")).unwrap().to_owned();
        assert_eq!(site.truth(&path).await.fault_in(markdown_of(&document)), None, "{path}");
        let place = document["screenshot"].as_str().unwrap();
        assert!(place.starts_with("http") || place.starts_with("data:image/"), "{place:.80}");
    }
}
