//! Webhooks of batches: what is sent, in which order, signed how, and again until it arrives (wire 7).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use weir_tests::{
    Database, FixtureSite, ServiceOptions, TestService, WEBHOOK_SECRET, both_databases, documents_of, finished,
    wait_until, wait_until_within,
};

const BOUND: Duration = Duration::from_secs(60);

/// Waits until the receiver has an event of this type, and returns all its events.
async fn events_until(site: &FixtureSite, receiver: &str, last: &str) -> Vec<Value> {
    wait_until(&format!("{last} at {receiver}"), || async {
        let events = site.events(receiver).await;
        events.iter().any(|event| event["type"] == last).then_some(events)
    })
    .await
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

fn signature(body: &str) -> String {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(WEBHOOK_SECRET.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
}

both_databases! {
    async fn receivers_that_do_not_answer_keep_no_other_teams_waiting(database) {
        let site = FixtureSite::start().await;
        let mut service = TestService::start(database).await;
        let other = service.new_team("others");
        site.webhook_behaves("silent", json!({ "hang": true })).await;
        let urls = site.urls("/small/", 30);
        let webhook = |name: &str| json!({ "url": site.webhook_url(name), "events": ["page", "completed"] });
        let mut told = Vec::new();
        for _ in 0..12 {
            told.push(service.post("/v2/batch/scrape", &json!({ "urls": urls, "webhook": webhook("silent") })).await.id());
        }
        // The pages themselves keep the others' waiting as well.
        for id in &told {
            finished(service.caller(), id, BOUND).await;
        }
        wait_until("their receiver is asked", || async { (site.deliveries("silent").await.len() >= 8 * 16).then_some(()) })
            .await;
        for n in 0..3 {
            let name = format!("quick-{n}");
            other.post("/v2/batch/scrape", &json!({ "urls": urls[..2], "webhook": webhook(&name) })).await.id();
            // A silent receiver has ten seconds for each.
            wait_until_within(Duration::from_millis(9_500), "the other team's receiver is told", || async {
                (site.events(&name).await.len() == 3).then_some(())
            })
            .await;
        }
        service.kill_worker(0);
    }

    async fn a_batch_sends_started_then_each_page_then_completed(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let mut urls = site.urls("/article/", 5);
        urls.push(site.url("/cut/reset"));
        let webhook = json!({
            "url": site.webhook_url("all"),
            "headers": { "X-Mine": "value", "Authorization": "Bearer of-the-receiver" },
            "metadata": { "order": "17", "nested": { "a": [1, 2] } },
        });
        let id = service.post("/v2/batch/scrape", &json!({ "urls": urls, "webhook": webhook })).await.id();
        let events = events_until(&site, "all", "batch_scrape.completed").await;

        let kinds = types(&events);
        assert_eq!(kinds[0], "batch_scrape.started");
        assert_eq!(kinds[kinds.len() - 1], "batch_scrape.completed");
        assert!(kinds[1..kinds.len() - 1].iter().all(|kind| *kind == "batch_scrape.page"), "{kinds:?}");
        assert_eq!(kinds.len(), 8);
        let ids: BTreeSet<_> = events.iter().map(|event| event["webhookId"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), 8, "an id of its own for each event");

        let scrapes: BTreeSet<_> = documents_of(service.caller(), &id).await.iter()
            .map(|document| document["metadata"]["scrapeId"].as_str().unwrap().to_owned()).collect();
        let mut good = BTreeSet::new();
        for event in &events {
            assert_eq!(event["id"], id);
            assert_eq!(event["metadata"], webhook["metadata"], "echoed");
            let data = event["data"].as_array().unwrap();
            if event["type"] != "batch_scrape.page" {
                assert!(data.is_empty() && event["success"] == true, "{event}");
            } else if event["success"] == true {
                assert_eq!(data.len(), 1, "exactly one document");
                assert!(data[0]["markdown"].is_string());
                good.insert(data[0]["metadata"]["scrapeId"].as_str().unwrap().to_owned());
            } else {
                assert!(event["error"].is_string(), "a failed page says why: {event}");
            }
        }
        assert_eq!(good, scrapes, "each page's event has the id of its document");

        for delivery in site.deliveries("all").await {
            let headers = &delivery["headers"];
            let wanted = signature(delivery["body"].as_str().unwrap());
            for name in ["x-service-signature", "x-firecrawl-signature"] {
                assert_eq!(headers[name], wanted, "{name}");
            }
            assert_eq!((&headers["x-mine"], &headers["content-type"]), (&json!("value"), &json!("application/json")));
            assert_eq!(headers["authorization"], "Bearer of-the-receiver");
            assert_eq!(delivery["method"], "POST");
        }
    }

    async fn a_refused_delivery_comes_again_with_the_same_id(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        site.webhook_behaves("flaky", json!({ "fail_first": 3, "status": 503 })).await;
        let body = json!({ "urls": site.urls("/article/", 3), "webhook": site.webhook_url("flaky") });
        service.post("/v2/batch/scrape", &body).await.id();
        events_until(&site, "flaky", "batch_scrape.completed").await;

        let deliveries = wait_until("every event was accepted", || async {
            let deliveries = site.deliveries("flaky").await;
            let accepted = deliveries.iter().filter(|delivery| delivery["answered"] == 200).count();
            (accepted >= 5).then_some(deliveries)
        })
        .await;
        let mut tries: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for delivery in &deliveries {
            let event: Value = serde_json::from_str(delivery["body"].as_str().unwrap()).unwrap();
            let answered = delivery["answered"].as_u64().unwrap();
            tries.entry(event["webhookId"].as_str().unwrap().to_owned()).or_default().push(answered);
        }
        assert_eq!(tries.len(), 5, "started, 3 pages, completed: {tries:?}");
        assert!(tries.values().all(|answers| answers.iter().filter(|answer| **answer == 200).count() == 1), "{tries:?}");
        let order: Vec<_> = site.events("flaky").await.iter().zip(&deliveries)
            .filter(|(_, delivery)| delivery["answered"] == 200)
            .map(|(event, _)| event["type"].as_str().unwrap().to_owned()).collect();
        assert_eq!((order[0].as_str(), order[4].as_str()), ("batch_scrape.started", "batch_scrape.completed"), "{order:?}");
    }

    async fn a_document_that_is_lost_repeats_and_holds_up_no_other_event(database) {
        let site = FixtureSite::start().await;
        // `started` is refused until the document is lost, and every page's event waits for it.
        let retries = ["300ms"; 60].join(",");
        let options = ServiceOptions::new(database).env("WEIR_WEBHOOK_RETRIES", retries);
        let service = TestService::start_with(options).await;
        site.webhook_behaves("lost", json!({ "fail_first": 1000, "status": 503 })).await;
        let body = json!({ "urls": site.urls("/article/", 5), "webhook": site.webhook_url("lost") });
        let id = service.post("/v2/batch/scrape", &body).await.id();
        finished(service.caller(), &id, BOUND).await;
        service.execute("UPDATE document SET body = NULL, blob = 'gone/one.zst' WHERE seq = 2").await;
        site.webhook_behaves("lost", json!({})).await;
        events_until(&site, "lost", "batch_scrape.completed").await;

        let deliveries = site.deliveries("lost").await;
        let accepted = deliveries.iter().filter(|delivery| delivery["answered"] == 200);
        let mut count: BTreeMap<String, usize> = BTreeMap::new();
        for delivery in accepted {
            let event: Value = serde_json::from_str(delivery["body"].as_str().unwrap()).unwrap();
            *count.entry(event["webhookId"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        assert_eq!(count.len(), 6, "started, four pages, completed");
        assert!(count.values().all(|times| *times == 1), "{count:?}");
        let listed = service.cli_json(&["webhooks", "deliveries", "--json"]);
        let dead: Vec<_> = listed.as_array().unwrap().iter().filter(|delivery| delivery["state"] == "dead").collect();
        assert_eq!(dead.len(), 1, "{listed}");
        assert!(dead[0].to_string().contains("gone/one.zst"), "dead by name: {listed}");
    }

    async fn a_cancelled_batch_says_so(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let body = json!({ "urls": site.urls("/slow?ms=400&n=", 50), "maxConcurrency": 2, "webhook": site.webhook_url("cancel") });
        let id = service.post("/v2/batch/scrape", &body).await.id();
        events_until(&site, "cancel", "batch_scrape.started").await;
        service.delete(&format!("/v2/batch/scrape/{id}")).await.ok();
        let events = events_until(&site, "cancel", "batch_scrape.cancelled").await;
        let last = events.iter().find(|event| event["type"] == "batch_scrape.cancelled").unwrap();
        assert_eq!((&last["success"], &last["data"]), (&json!(false), &json!([])));
        assert!(last["error"].is_string());
        assert!(!types(&events).contains(&"batch_scrape.completed"));
    }
}

#[tokio::test]
async fn only_the_events_that_were_asked_for_are_sent() {
    let site = FixtureSite::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let webhook = json!({ "url": site.webhook_url("few"), "events": ["completed"] });
    let id =
        service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/article/", 4), "webhook": webhook })).await.id();
    finished(service.caller(), &id, BOUND).await;
    let events = events_until(&site, "few", "batch_scrape.completed").await;
    assert_eq!(types(&events), ["batch_scrape.completed"]);
}

#[tokio::test]
async fn a_receiver_that_redirects_hangs_up_or_talks_too_much_gets_no_special_treatment() {
    let site = FixtureSite::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let elsewhere = site.webhook_url("elsewhere");
    site.webhook_behaves("redirects", json!({ "redirect": elsewhere })).await;
    site.webhook_behaves("drops", json!({ "drop": true, "drop_first": 1 })).await;
    site.webhook_behaves("talks", json!({ "big_answer": 50_000_000 })).await;
    for name in ["redirects", "drops", "talks"] {
        let webhook = json!({ "url": site.webhook_url(name), "events": ["completed"] });
        service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/small/", 1), "webhook": webhook })).await.id();
    }
    wait_until("all attempts at the redirecting receiver", || async {
        (site.deliveries("redirects").await.len() == 4).then_some(())
    })
    .await;
    assert!(site.deliveries("elsewhere").await.is_empty(), "a redirect is not followed");
    wait_until("the second attempt after a lost connection", || async {
        (site.deliveries("drops").await.len() == 2).then_some(())
    })
    .await;
    assert_eq!(site.deliveries("talks").await.len(), 1, "2xx is enough, however long the answer is");
}

#[tokio::test]
async fn a_team_may_have_a_secret_of_its_own() {
    let site = FixtureSite::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let caller = service.new_team("signers");
    service.cli(&["team", "set", "signers", "--webhook-secret", "another secret"]);
    site.webhook_behaves("own", json!({ "secret": "another secret" })).await;
    let body = json!({ "urls": site.urls("/small/", 1), "webhook": site.webhook_url("own") });
    caller.post("/v2/batch/scrape", &body).await.id();
    events_until(&site, "own", "batch_scrape.completed").await;
    for delivery in site.deliveries("own").await {
        assert_eq!(delivery["signature_ok"], true, "{delivery}");
    }
}

#[tokio::test]
async fn a_delivery_that_was_given_up_is_listed_and_can_be_sent_again() {
    let site = FixtureSite::start().await;
    let service = TestService::start(Database::Sqlite).await;
    site.webhook_behaves("down", json!({ "fail_first": 1000, "status": 500 })).await;
    let webhook = json!({ "url": site.webhook_url("down"), "events": ["completed"] });
    service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/small/", 1), "webhook": webhook })).await.id();
    wait_until("the first attempt and three more", || async {
        (site.deliveries("down").await.len() == 4).then_some(())
    })
    .await;
    let listed = wait_until("the given up delivery is listed", || async {
        let listed = service.cli_json(&["webhooks", "deliveries", "--json"]);
        (listed.as_array()?.len() == 1).then_some(listed)
    })
    .await;
    assert!(listed[0].to_string().contains("completed"), "{listed}");
    let before = site.events("down").await[0]["webhookId"].clone();
    site.webhook_behaves("down", json!({})).await;
    service.cli(&["webhooks", "replay", "--team", "tests"]);
    let events = wait_until("the replayed delivery", || async {
        let events = site.events("down").await;
        (events.len() == 5).then_some(events)
    })
    .await;
    assert_eq!(events[4]["webhookId"], before, "the same id on each try");
}
