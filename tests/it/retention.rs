//! Zero data retention (spec 4.7): after delivery, nothing of content or addresses is in rows, files or logs.

use std::path::Path;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use weir_api::routes::UPLOAD;
use weir_tests::{
    FixtureSite, SearchStandIn, ServiceOptions, TestService, both_databases, documents_of, ended_at, wait_until_within,
};

use crate::parse::{options, parse};

const BOUND: Duration = Duration::from_secs(60);

/// Files below `folder` that hold `text`.
fn files_with(folder: &Path, text: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files_with(&path, text, found);
        } else if std::fs::read(&path).is_ok_and(|bytes| memchr::memmem::find(&bytes, text.as_bytes()).is_some()) {
            found.push(path.display().to_string());
        }
    }
}

/// Whether neither rows nor files hold `text`, and no document is left. Of files each is read whole: they are looked through
/// once the rows are gone, which takes most of the time.
async fn nothing_left(service: &TestService, text: &str) -> bool {
    if service.tables_with(text).await != (Vec::new(), 0) {
        return false;
    }
    let mut files = Vec::new();
    files_with(service.folder(), text, &mut files);
    files.is_empty()
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
            nothing_left(&service, mark).await.then_some(())
        })
        .await;
        assert_eq!(caller.get(&format!("/v2/batch/scrape/{batch}")).await.status, 404);
        let used = caller.get("/v2/team/credit-usage/historical").await.ok();
        assert_eq!(used["periods"][0]["creditsUsed"], 2 + 4 + 6, "the bill stays: {used}");
    }

    // The routes are those of the API's own list: what is sent to a new one has to be said here.
    async fn nothing_that_is_sent_to_any_route_outlives_its_job(database) {
        let site = FixtureSite::start().await;
        let mark = "zweckfrei8";
        let url = |path: &str| site.url(&format!("{path}?word={mark}"));
        let backend = SearchStandIn::finding(vec![url("/small/1")]).await;
        let service = TestService::start_with(options(database).env("WEIR_SEARCH_URL", &backend.url)).await;
        service.cli(&["team", "set", "tests", "--zero-data-retention", "on"]);
        let caller = service.caller();
        let text = format!("<!DOCTYPE html><p>{mark}</p>").into_bytes();
        let (mut jobs, mut answered) = (Vec::new(), 0);
        for (method, path) in weir_api::routes::list() {
            if !matches!(method, "POST" | "PUT") {
                continue;
            }
            let body = match path.as_str() {
                "/v2/scrape" | "/v1/scrape" => json!({ "url": url("/echo"), "formats": ["rawHtml"] }),
                "/v2/batch/scrape" | "/v1/batch/scrape" => json!({ "urls": [url("/echo"), url("/cut/reset")] }),
                "/v2/crawl" | "/v1/crawl" => json!({ "url": url("/small/2"), "limit": 1 }),
                "/v2/map" | "/v1/map" | "/v1/llmstxt" => json!({ "url": url("/small/3") }),
                "/v2/crawl/params-preview" => json!({ "url": url("/"), "prompt": mark }),
                "/v2/search" | "/v1/search" => json!({ "query": mark, "scrapeOptions": { "formats": ["markdown"] } }),
                "/v2/search/{id}/feedback" => json!({ "rating": "bad", "querySuggestions": mark }),
                "/v2/feedback" => {
                    let page = caller.post("/v2/scrape", &json!({ "url": url("/echo") })).await.ok();
                    json!({ "endpoint": "scrape", "jobId": page["data"]["metadata"]["scrapeId"], "rating": "bad", "note": mark })
                }
                "/mcp" => {
                    let call = json!({ "name": "firecrawl_scrape", "arguments": { "url": url("/echo") } });
                    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call })
                }
                "/v2/parse" => {
                    let name = format!("{mark}.html");
                    parse(caller, &name, "text/html", &text, &json!({})).await.ok();
                    answered += 1;
                    continue;
                }
                "/v2/parse/upload-url" => {
                    let upload = caller.post(&path, &json!({ "filename": format!("{mark}.html") })).await.ok();
                    let address = upload["data"]["uploadUrl"].as_str().unwrap();
                    caller.send(caller.request(Method::PUT, address).body(text.clone())).await.ok();
                    caller.post("/v2/parse", &json!({ "uploadRef": upload["data"]["uploadRef"] })).await.ok();
                    answered += 1;
                    continue;
                }
                // With the one before.
                UPLOAD => continue,
                // What is done in a session is its browser's; of a scrape it goes on from nothing is there (interact.rs).
                "/v2/browser" | "/v2/interact" | "/v2/browser/{id}/execute" | "/v2/interact/{id}/execute"
                | "/v2/scrape/{id}/interact" => continue,
                // Refused for a team that keeps nothing (monitors.rs).
                "/v2/monitor" | "/v2/monitor/{id}/run" => continue,
                // Refused, whatever is sent.
                "/v2/extract" | "/v2/agent" | "/v1/extract" | "/v2/team/threat-protection" => continue,
                // Of what the console sends, names of keys and teams are kept, and no filter; the public API is called
                // through it by the same handlers.
                console if console.starts_with("/console/api/") => continue,
                other => panic!("{method} {other}: what does it keep of what it is sent?"),
            };
            let mut path = path;
            if path.contains("{id}") {
                let search = caller.post("/v2/search", &json!({ "query": mark })).await.id();
                path = path.replace("{id}", &search);
            }
            let answer = caller.post(&path, &body).await.ok();
            answered += 1;
            if path.ends_with("/crawl") || path.ends_with("/batch/scrape") || path.ends_with("/llmstxt") {
                jobs.push(format!("{path}/{}", answer["id"].as_str().unwrap()));
            }
        }
        assert!(answered >= 17, "{answered}");
        for job in &jobs {
            wait_until_within(BOUND, "the job has ended", || async {
                let status = caller.get(job).await.ok()["status"].clone();
                assert_ne!(status, "failed", "{job}");
                (status == "completed").then_some(())
            })
            .await;
        }
        // What is read later stays for ten minutes: those are over.
        service.execute("UPDATE job SET expires_at = 1").await;
        wait_until_within(BOUND, "nothing is left", || async {
            nothing_left(&service, mark).await.then_some(())
        })
        .await;
    }
}
