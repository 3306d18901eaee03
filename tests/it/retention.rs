//! Zero data retention (spec 4.7): after delivery, nothing of content or addresses is in rows, files or logs.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use weir_tests::{FixtureSite, ServiceOptions, TestService, both_databases, documents_of, ended_at, wait_until_within};

const BOUND: Duration = Duration::from_secs(60);

/// Files below `folder` that hold `text`.
fn files_with(folder: &Path, text: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files_with(&path, text, found);
        } else if std::fs::read(&path).is_ok_and(|bytes| bytes.windows(text.len()).any(|part| part == text.as_bytes()))
        {
            found.push(path.display().to_string());
        }
    }
}

both_databases! {
    async fn nothing_of_content_or_addresses_stays_after_delivery(database) {
        let site = FixtureSite::start().await;
        // Results that are read later go when this is over.
        let options = ServiceOptions::new(database).env("WEIR_RESULT_TTL", "15s").env("WEIR_CACHE_SIZE", "100MB");
        let service = TestService::start_with(options).await;
        let caller = service.caller();
        let mark = "zweckfrei7";
        let url = |path: &str| site.url(&format!("{path}?word={mark}"));

        // It is for teams that have it.
        let stranger = service.new_team("stranger");
        let refused = stranger.post("/v2/scrape", &json!({ "url": url("/small/1"), "zeroDataRetention": true })).await;
        assert_eq!((refused.status, refused.is_base_error()), (403, true), "{}", refused.text);
        // Lockdown is treated so, whoever asks.
        let missed = stranger.post("/v2/scrape", &json!({ "url": url("/small/1"), "lockdown": true })).await;
        assert_eq!(missed.code(), "SCRAPE_LOCKDOWN_CACHE_MISS", "{}", missed.text);
        assert_eq!(service.tables_with(mark).await, (Vec::new(), 0));

        service.cli(&["team", "set", "tests", "--zero-data-retention", "on"]);
        let body = json!({ "url": url("/echo"), "formats": ["markdown", "rawHtml"], "zeroDataRetention": true });
        let document = caller.post("/v2/scrape", &body).await.ok()["data"].clone();
        assert!(document["markdown"].as_str().unwrap().contains(mark), "{document}");
        assert_eq!(document["metadata"]["creditsUsed"], 2);
        assert_eq!(document["metadata"].get("cacheState"), None);
        let failed = caller.post("/v2/scrape", &json!({ "url": url("/cut/reset") })).await;
        assert_eq!(failed.code(), "SCRAPE_SITE_ERROR", "{}", failed.text);
        assert_eq!(service.tables_with(mark).await, (Vec::new(), 0), "both are delivered");
        let id = document["metadata"]["scrapeId"].as_str().unwrap();
        assert_eq!(caller.get(&format!("/v2/scrape/{id}")).await.status, 404);
        let replay = caller.post(&format!("/v2/scrape/{id}/interact"), &json!({ "code": "1" })).await;
        assert!(replay.status == 409 && replay.error().starts_with("Replay context is unavailable"), "{}", replay.text);

        // Batches and crawls stay until they could be read, and then go.
        let batch = json!({ "urls": [url("/echo"), url("/article/3"), url("/cut/reset")], "formats": ["rawHtml"] });
        let batch = caller.post("/v2/batch/scrape", &batch).await.id();
        let ended = ended_at(caller, &format!("/v2/batch/scrape/{batch}"), BOUND).await;
        assert_eq!((&ended["completed"], &ended["creditsUsed"]), (&json!(2), &json!(4)), "{ended}");
        assert_eq!(documents_of(caller, &batch).await.len(), 2);
        let crawl = json!({ "url": url("/crawl/"), "limit": 3, "sitemap": "skip" });
        let crawl = caller.post("/v2/crawl", &crawl).await.id();
        let ended = ended_at(caller, &format!("/v2/crawl/{crawl}"), BOUND).await;
        assert_eq!(ended["completed"], 3, "{ended}");
        let activity = caller.get("/v2/team/activity").await.ok();
        let targets: Vec<&Value> = activity["data"].as_array().unwrap().iter().map(|entry| &entry["target"]).collect();
        assert!(targets.len() == 4 && targets.iter().all(|target| target.is_null()), "{activity}");

        wait_until_within(BOUND, "nothing is left", || async {
            let (tables, documents) = service.tables_with(mark).await;
            let mut files = Vec::new();
            files_with(service.folder(), mark, &mut files);
            (tables.is_empty() && documents == 0 && files.is_empty()).then_some(())
        })
        .await;
        assert_eq!(caller.get(&format!("/v2/batch/scrape/{batch}")).await.status, 404);
        let used = caller.get("/v2/team/credit-usage/historical").await.ok();
        assert_eq!(used["periods"][0]["creditsUsed"], 2 + 4 + 6, "the bill stays: {used}");
    }
}
