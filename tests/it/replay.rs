//! Failures that are done again, by an operator and by schedule (`WEIR_REPLAY_CRON`).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use weir_tests::{
    ConsoleUser, FixtureSite, ServiceOptions, TestService, both_databases, documents_of, ended_at, errors_of, finished,
    first_on, wait_until, wait_until_within,
};

/// A site that closes every connection until it is healed; then it takes its time.
struct Sick {
    address: SocketAddr,
    healed: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
}

impl Sick {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (healed, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let site = Self { address, healed: healed.clone(), answered: answered.clone() };
        tokio::spawn(async move {
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                if !healed.load(Ordering::Relaxed) {
                    continue;
                }
                let answered = answered.clone();
                tokio::spawn(async move {
                    let _ = socket.read(&mut [0; 4096]).await;
                    answered.fetch_add(1, Ordering::Relaxed);
                    // So that a worker is killed in the middle of pages.
                    tokio::time::sleep(Duration::from_millis(400)).await;
                    let page = "<html><body><main><h1>Healed</h1><p>All is well again.</p></main></body></html>";
                    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}", page.len());
                    let _ = socket.write_all(format!("{head}\r\nConnection: close\r\n\r\n{page}").as_bytes()).await;
                });
            }
        });
        site
    }

    fn urls(&self, count: usize) -> Vec<String> {
        (0..count).map(|n| format!("http://{}/{n}", self.address)).collect()
    }
}

/// How often each event came, by its type and page; tries of one delivery count once.
fn counted(events: &[Value]) -> BTreeMap<(String, String, bool), usize> {
    let mut deliveries = BTreeMap::new();
    for event in events {
        let page = event["data"][0]["metadata"]["scrapeId"].as_str().unwrap_or_default().to_owned();
        let kind = event["type"].as_str().unwrap().to_owned();
        deliveries.insert(event["webhookId"].to_string(), (kind, page, event["success"] == true));
    }
    let mut counts = BTreeMap::new();
    for event in deliveries.into_values() {
        *counts.entry(event).or_insert(0) += 1;
    }
    counts
}

both_databases! {
    async fn a_schedule_replays_what_is_worth_it_once_though_workers_are_killed(database) {
        const PAGES: usize = 40;
        let (site, sick) = (FixtureSite::start().await, Sick::start().await);
        let options = ServiceOptions::new(database).workers(2).env("WEIR_WORKER_CONCURRENCY", "4")
            .env("WEIR_WEBHOOK_RETRIES", "100ms");
        let mut service = TestService::start_with(options).await;
        site.webhook_behaves("all", json!({ "status_ok": 503 })).await;
        let mut urls = sick.urls(PAGES);
        // Not worth it: no such name.
        urls.push("http://nowhere.invalid/".to_owned());
        let body = json!({ "urls": urls, "webhook": site.webhook_url("all") });
        let id = service.post("/v2/batch/scrape", &body).await.id();
        let status = finished(service.caller(), &id, Duration::from_secs(90)).await;
        assert_eq!(status["completed"], 0, "{status}");
        wait_until("every delivery is dead", || async {
            let dead = service.cli_json(&["webhooks", "deliveries", "--state", "dead", "--json"]);
            (dead.as_array().unwrap().len() == PAGES + 3).then_some(())
        })
        .await;

        sick.healed.store(true, Ordering::Relaxed);
        site.webhook_behaves("all", json!({})).await;
        service.set_env("WEIR_REPLAY_CRON", "* * * * * *");
        service.restart_worker(0);
        service.restart_worker(1);
        for (n, pages) in [(0, 3), (1, PAGES / 2)] {
            wait_until("pages are in work again", || async {
                (sick.answered.load(Ordering::Relaxed) >= pages).then_some(())
            })
            .await;
            service.restart_worker(n);
        }
        let status = wait_until_within(Duration::from_secs(60), "every page is there", || async {
            let status = service.get(&format!("/v2/batch/scrape/{id}?limit=1")).await.ok();
            (status["completed"] == PAGES && status["status"] == "completed").then_some(status)
        })
        .await;
        // The name that does not exist was billed when it failed, and stays the only failure.
        assert_eq!((&status["total"], &status["creditsUsed"]), (&json!(PAGES), &json!(PAGES + 1)), "{status}");
        assert_eq!(errors_of(service.caller(), &id).await.len(), 1);
        assert_eq!(documents_of(service.caller(), &id).await.len(), PAGES);
        let credits = service.cli_json(&["credits", "show", "--team", "tests", "--json"]);
        assert_eq!(credits["used"], PAGES + 1, "{credits}");

        let counts = wait_until_within(Duration::from_secs(60), "every page is told of", || async {
            let counts = counted(&site.events("all").await);
            let told = counts.keys().filter(|(kind, _, success)| kind.ends_with(".page") && *success).count();
            (told == PAGES && counts.keys().any(|(kind, ..)| kind.ends_with(".completed"))).then_some(counts)
        })
        .await;
        assert!(counts.values().all(|count| *count == 1), "{counts:?}");
        // Started, completed, each page as it was first told of (and refused) and as it is now, and the one not replayed.
        assert_eq!(counts.len(), 2 * PAGES + 3, "{counts:?}");
    }
}

first_on! {
    sqlite:

    async fn an_operator_replays_and_follows(database) {
        let (site, sick) = (FixtureSite::start().await, Sick::start().await);
        let service = TestService::start(database).await;
        let mut urls = sick.urls(3);
        urls.push(site.url("/hang"));
        let id = service.post("/v2/batch/scrape", &json!({ "urls": urls, "timeout": 5_000 })).await.id();
        finished(service.caller(), &id, Duration::from_secs(60)).await;
        sick.healed.store(true, Ordering::Relaxed);

        let replay = |more: &[&str]| service.cli_json(&[&["jobs", "replay", id.as_str(), "--json"][..], more].concat());
        assert_eq!(replay(&["--dry-run"])["found"], 4);
        assert_eq!(replay(&["--code", "SCRAPE_DNS_RESOLUTION_ERROR"])["found"], 0);
        assert_eq!(replay(&["--older-than", "1h"])["found"], 0);
        let done = replay(&["--worth-it", "--wait"]);
        let expected = json!({"found": 4, "replayed": 4, "withoutCredits": 0, "failedAgain": 1});
        assert_eq!(done, expected);
        let status = ended_at(service.caller(), &format!("/v2/batch/scrape/{id}"), Duration::from_secs(60)).await;
        assert_eq!((&status["completed"], &status["creditsUsed"]), (&json!(3), &json!(3)), "{status}");
        let errors = errors_of(service.caller(), &id).await;
        let page = service.cli_json(&["jobs", "show", errors[0]["id"].as_str().unwrap(), "--json"]);
        assert_eq!(page["replays"], 1, "{page}");
        assert_eq!(page["attempts"].as_array().unwrap().len(), 2, "the old try and the new one: {page}");
    }
}

both_databases! {
    // Rows of jobs that have ended are remembered for a moment: never for longer than they are so.
    async fn a_job_that_is_replayed_or_deleted_is_told_as_it_is_at_once(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let user = ConsoleUser::with_key(service.base(), service.key()).await;
        // Its tries take some seconds.
        let body = json!({ "urls": [site.url("/article/1"), site.url("/cut/reset")] });
        let id = service.post("/v2/batch/scrape", &body).await.id();
        let path = format!("/v2/batch/scrape/{id}?limit=1");
        for by in ["console", "command line"] {
            finished(service.caller(), &id, Duration::from_secs(60)).await;
            // Somebody reads it all the time.
            let (caller, read) = (service.caller().clone(), path.clone());
            let reader = tokio::spawn(async move { loop { caller.get(&read).await; } });
            if by == "console" {
                assert_eq!(user.post("/jobs/replay", &json!({ "ids": [id] })).await.ok()["pages"], 1);
            } else {
                assert_eq!(service.cli_json(&["jobs", "replay", &id, "--json"])["replayed"], 1);
            }
            let status = service.get(&path).await.ok();
            reader.abort();
            assert_eq!((&status["status"], &status["total"]), (&json!("scraping"), &json!(2)), "by the {by}: {status}");
        }
        finished(service.caller(), &id, Duration::from_secs(60)).await;
        service.get(&path).await.ok();
        assert_eq!(user.post("/jobs/delete", &json!({ "ids": [id] })).await.ok()["done"], 1);
        assert_eq!(service.get(&path).await.status, 404, "it is gone");
    }
}
