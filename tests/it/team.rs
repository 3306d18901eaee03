//! What a team did, used and has in the queue (spec 4.12, 4.13, wire 10).

use std::time::Duration;

use serde_json::{Value, json};
use weir_tests::{FixtureSite, ServiceOptions, TestService, both_databases, finished, wait_until};

fn list(value: &Value) -> Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("an array: {value}")).clone()
}

fn texts(entries: &[Value], name: &str) -> Vec<String> {
    entries.iter().map(|entry| entry[name].as_str().unwrap_or_default().to_owned()).collect()
}

both_databases! {
    async fn activity_leads_to_what_was_asked_for(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start_with(ServiceOptions::new(database).with_sessions()).await;
        let other = service.new_team("others");
        let url = site.url("/small/1");
        let document = service.post("/v2/scrape", &json!({ "url": url })).await.ok();
        let batch = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/small/", 2) })).await.id();
        let crawl = service.post("/v2/crawl", &json!({ "url": url, "limit": 1 })).await.id();
        service.post("/v2/map", &json!({ "url": url, "sitemap": "skip" })).await.ok();
        let session = service.post("/v2/browser", &json!({ "ttl": 60 })).await.id();
        other.post("/v2/scrape", &json!({ "url": url })).await.ok();

        let all = service.get("/v2/team/activity").await.ok();
        assert_eq!((&all["cursor"], &all["has_more"]), (&Value::Null, &json!(false)));
        let all = list(&all["data"]);
        assert_eq!(texts(&all, "endpoint"), ["browser", "map", "crawl", "batch_scrape", "scrape"], "newest first");
        let scrape = document["data"]["metadata"]["scrapeId"].as_str().unwrap();
        let ids = texts(&all, "id");
        assert_eq!([&ids[0], &ids[2], &ids[3], &ids[4]], [session.as_str(), &crawl, &batch, scrape]);
        assert!(all[1..].iter().all(|entry| entry["target"] == url || entry["target"] == site.url("/small/0")), "{all:?}");
        assert_eq!(all[0]["target"], Value::Null);
        assert!(all.iter().all(|entry| entry["api_version"] == "v2" && entry["created_at"].as_str().unwrap().ends_with('Z')));
        for path in [format!("/v2/scrape/{scrape}"), format!("/v2/batch/scrape/{batch}"), format!("/v2/crawl/{crawl}")] {
            service.get(&path).await.ok();
        }

        // Page by page, while new calls come in.
        let (mut seen, mut path) = (Vec::new(), "/v2/team/activity?limit=2".to_owned());
        loop {
            let page = service.get(&path).await.ok();
            seen.extend(texts(&list(&page["data"]), "id"));
            assert_eq!(page["cursor"].is_string(), page["has_more"] == true, "{page}");
            let Some(cursor) = page["cursor"].as_str() else { break };
            path = format!("/v2/team/activity?limit=2&cursor={cursor}");
            service.post("/v2/scrape", &json!({ "url": url })).await.ok();
        }
        assert_eq!(seen, texts(&all, "id"));

        for (filter, count) in [
            ("scrape", 3), ("crawl", 1), ("batch_scrape", 1), ("map", 1), ("browser", 1), ("interact", 0), ("search", 0),
            ("extract", 0), ("llmstxt", 0), ("deep_research", 0), ("agent", 0),
        ] {
            let found = service.get(&format!("/v2/team/activity?endpoint={filter}")).await.ok();
            assert_eq!(list(&found["data"]).len(), count, "{filter}");
        }
        for (query, text) in [("endpoint=lunch", "Invalid endpoint filter. Must be one of: scrape"), ("cursor=x", "Invalid cursor.")] {
            let answer = service.get(&format!("/v2/team/activity?{query}")).await;
            assert_eq!(answer.status, 400);
            assert!(answer.is_base_error() && answer.error().starts_with(text), "{}", answer.text);
        }
        service.delete(&format!("/v2/browser/{session}")).await.ok();
    }

    async fn usage_is_told_by_month_and_by_key(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start_with(ServiceOptions::new(database).env("WEIR_CREDITS", "metered")).await;
        let second = service.new_key("tests");
        service.cli(&["credits", "grant", "--team", "tests", "100"]);
        let id = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/small/", 3) })).await.id();
        finished(service.caller(), &id, Duration::from_secs(60)).await;
        second.post("/v2/scrape", &json!({ "url": site.url("/small/9") })).await.ok();

        let now = service.get("/v2/team/credit-usage").await.ok();
        let data = &now["data"];
        assert_eq!((&data["remainingCredits"], &data["planCredits"]), (&json!(96), &json!(100)), "{now}");
        assert!(data["billingPeriodStart"].is_null() && data["billingPeriodEnd"].is_null());
        let tokens = service.get("/v2/team/token-usage").await.ok();
        assert_eq!((&tokens["data"]["remainingTokens"], &tokens["data"]["planTokens"]), (&json!(96), &json!(100)));

        // Summed over all months, because one may end while the test runs.
        let sum = |periods: &[Value], name: &str| periods.iter().map(|p| p[name].as_i64().unwrap()).sum::<i64>();
        let months = service.get("/v2/team/credit-usage/historical").await.ok();
        let months = list(&months["periods"]);
        assert_eq!((sum(&months, "creditsUsed"), sum(&months, "totalCredits")), (4, 4), "{months:?}");
        assert!(months.iter().all(|month| month["apiKey"].is_null() && month["startDate"].as_str() < month["endDate"].as_str()));
        let tokens = service.get("/v2/team/token-usage/historical").await.ok();
        assert_eq!(sum(&list(&tokens["periods"]), "tokensUsed"), 4);
        let keys = list(&service.cli_json(&["key", "list", "--team", "tests", "--json"]));
        let split = list(&service.get("/v2/team/credit-usage/historical?byApiKey=true").await.ok()["periods"]);
        for (key, used) in keys.iter().zip([3, 1]) {
            let own: Vec<Value> = split.iter().filter(|period| period["apiKey"] == key["id"]).cloned().collect();
            assert_eq!(sum(&own, "creditsUsed"), used, "{split:?}");
        }
        assert_eq!(service.get("/v2/team/credit-usage/historical?byApiKey=maybe").await.status, 400);
    }

    async fn the_queue_tells_what_waits_and_runs(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        service.cli(&["team", "set", "tests", "--concurrency", "2"]);
        let small = service.new_key("tests");
        let before = small.get("/v2/team/queue-status").await.ok();
        assert_eq!(before, json!({"success": true, "jobsInQueue": 0, "activeJobsInQueue": 0, "waitingJobsInQueue": 0,
            "maxConcurrency": 2, "mostRecentSuccess": null}));
        small.post("/v2/scrape", &json!({ "url": site.url("/small/1") })).await.ok();
        let id = small.post("/v2/batch/scrape", &json!({ "urls": site.urls("/slow?ms=60000&n=", 5) })).await.id();
        let status = wait_until("both places are taken", || async {
            let status = small.get("/v2/team/queue-status").await.ok();
            (status["activeJobsInQueue"] == 2).then_some(status)
        })
        .await;
        assert_eq!((&status["jobsInQueue"], &status["waitingJobsInQueue"]), (&json!(5), &json!(3)), "{status}");
        assert!(status["mostRecentSuccess"].as_str().unwrap().ends_with('Z'), "{status}");
        let check = small.get("/v2/concurrency-check").await.ok();
        assert_eq!(check, json!({"success": true, "concurrency": 2, "maxConcurrency": 2}));
        small.delete(&format!("/v2/batch/scrape/{id}")).await.ok();
        site.end();
    }
}
