//! Processes are killed while pages are in work, and nothing may be lost, doubled or left behind.
//! Bounded versions for every test run; `long` has the same at full length.

pub(crate) mod long;
mod points;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::Connection as _;
use tokio::io::AsyncReadExt as _;
use weir_shared::clock::{self, Stopwatch};
use weir_tests::{
    Caller, Database, FixtureSite, OwnPages, PostgresCluster, Process, ServiceOptions, TestService, both_databases,
    documents_of, errors_of, files_below, finished, first_on, free_port, long_tests, signal, wait_until,
    wait_until_none, wait_until_within,
};

use self::long::MuteBucket;

/// What one kill test does.
struct Plan {
    pages: usize,
    every: Duration,
    worker_kills: usize,
    browser_kills: usize,
    /// How long each slow page takes, so that the batch outlives the kills.
    slow_ms: usize,
    bound: Duration,
}

/// A third of the pages is slow, a tenth needs the browser, the rest is plain.
fn mixed_urls(site: &FixtureSite, plan: &Plan) -> Vec<String> {
    let path = |n: usize| match n % 10 {
        0 => format!("/js/render/{n}"),
        3 | 6 | 9 => format!("/slow?ms={}&n={n}", plan.slow_ms),
        _ => format!("/mix/{n}"),
    };
    (0..plan.pages).map(|n| site.url(&path(n))).collect()
}

/// A small generator with a fixed start: the same run picks the same victims.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// Runs a batch through the kills of `plan` and checks everything that must hold afterwards.
async fn survive(site: &FixtureSite, mut service: TestService, plan: Plan) {
    site.reset().await;
    let urls = mixed_urls(site, &plan);
    let webhook = json!({ "url": site.webhook_url("kills"), "events": ["page", "completed"] });
    let id = service.post("/v2/batch/scrape", &json!({ "urls": urls, "webhook": webhook })).await.id();

    let mut dice = Dice(7);
    let (mut worker_kills, mut browser_kills) = (0, 0);
    let began = clock::instant();
    let mut next = began + plan.every;
    loop {
        let status = service.get(&format!("/v2/batch/scrape/{id}?limit=1")).await.ok();
        if status["status"] != "scraping" || (worker_kills >= plan.worker_kills && browser_kills >= plan.browser_kills)
        {
            break;
        }
        assert!(began.elapsed() < plan.bound, "{status:.300}");
        if browser_kills < plan.browser_kills
            && let Some(browser) = service.browsers().first()
        {
            browser.kill();
            browser_kills += 1;
        }
        if worker_kills < plan.worker_kills {
            let victim = dice.below(service.worker_count());
            service.restart_worker(victim);
            worker_kills += 1;
        }
        // The next kill has its time; the loop does not wait for an event of the service here.
        tokio::time::sleep_until(next).await;
        next += plan.every;
    }
    assert!(worker_kills >= plan.worker_kills, "the batch ended after {worker_kills} of {} kills", plan.worker_kills);
    assert!(browser_kills * 2 >= plan.browser_kills, "{browser_kills} browser kills of {}", plan.browser_kills);

    let status = finished(service.caller(), &id, plan.bound).await;
    println!(
        "{} pages through {worker_kills} worker kills and {browser_kills} browser kills in {:.1} s",
        plan.pages,
        began.elapsed().as_secs_f64()
    );
    intact(site, &service, &id, &urls, &status).await;
    webhooks_arrived(site, service.caller(), &id, plan.pages).await;
    nothing_left(&mut service).await;
}

/// Every address has exactly one right document, and the counts say the same.
async fn intact(site: &FixtureSite, service: &TestService, id: &str, urls: &[String], status: &Value) {
    let errors = errors_of(service.caller(), id).await;
    assert!(errors.is_empty(), "{} failed pages, the first: {:?}", errors.len(), errors.first());
    assert_eq!(status["status"], "completed");
    for field in ["completed", "total", "creditsUsed"] {
        assert_eq!(status[field], urls.len(), "{field}");
    }
    let documents = documents_of(service.caller(), id).await;
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for document in &documents {
        let url = document["metadata"]["sourceURL"].as_str().unwrap();
        *count.entry(url).or_default() += 1;
        let path = url.strip_prefix(&site.url("")).unwrap();
        if path.starts_with("/mix/") || path.starts_with("/js/") {
            assert_eq!(site.truth(path).await.fault_in(weir_tests::markdown_of(document)), None, "{path}");
        }
    }
    assert_eq!(documents.len(), urls.len());
    assert!(urls.iter().all(|url| count.get(url.as_str()) == Some(&1)), "one document for each address");
}

/// Each page has one webhook id, and it arrived.
async fn webhooks_arrived(site: &FixtureSite, caller: &weir_tests::Caller, id: &str, pages: usize) {
    let wanted: BTreeSet<String> = documents_of(caller, id)
        .await
        .iter()
        .map(|document| document["metadata"]["scrapeId"].as_str().unwrap().to_owned())
        .collect();
    let ids_of = wait_until_within(Duration::from_secs(60), "a webhook for each page, and completed", || async {
        let mut ids: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut completed = false;
        for event in site.events("kills").await {
            completed |= event["type"] == "batch_scrape.completed";
            if event["type"] == "batch_scrape.page" {
                let scrape = event["data"][0]["metadata"]["scrapeId"].as_str().unwrap().to_owned();
                ids.entry(scrape).or_default().insert(event["webhookId"].as_str().unwrap().to_owned());
            }
        }
        (completed && ids.len() >= pages).then_some(ids)
    })
    .await;
    assert_eq!(ids_of.keys().cloned().collect::<BTreeSet<_>>(), wanted);
    assert!(ids_of.values().all(|ids| ids.len() == 1), "one webhook id for each page");
}

/// No Chromium, zombie or temporary file of a dead worker is left; after the stop, nothing is.
async fn nothing_left(service: &mut TestService) {
    wait_until("no more browsers than workers", || async {
        (service.browsers().len() <= service.worker_count() * 2).then_some(())
    })
    .await;
    // Who died a moment ago may not be reaped yet.
    wait_until_none("zombies", || {
        service.processes().into_iter().filter(|process| process.state == 'Z').collect::<Vec<_>>()
    })
    .await;
    service.workers_are_there().await;
    service.stop();
    wait_until_none("processes", || service.processes()).await;
    let left = files_below(&service.folder().join("tmp"));
    assert!(left.is_empty(), "temporary files left: {left:?}");
}

/// Line of a worker's metrics: scrapes that were dispatched to it.
const TAKEN: &str = "weir_scrapes_handed_total{outcome=\"taken\"}";

/// Scrapes until each worker has had one dispatched to it, past the queue.
async fn scrapes_are_dispatched(service: &TestService, site: &FixtureSite) {
    wait_until("scrapes are dispatched to every worker", || async {
        let scrapes = (0..4).map(|n| {
            let (caller, url) = (service.caller().clone(), site.url(&format!("/article/{n}")));
            tokio::spawn(async move { caller.post("/v2/scrape", &json!({ "url": url, "maxAge": 0 })).await.ok() })
        });
        for scrape in scrapes.collect::<Vec<_>>() {
            scrape.await.unwrap();
        }
        for worker in 0..service.worker_count() {
            if service.worker_figure(worker, TAKEN).await == 0 {
                return None;
            }
        }
        Some(())
    })
    .await;
}

/// The credits that the team has used this month.
async fn used(service: &TestService) -> u64 {
    let usage = service.get("/v2/team/credit-usage/historical").await.ok();
    usage["periods"][0]["creditsUsed"].as_u64().unwrap_or_else(|| panic!("{usage}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_told_to_stop_does_not_wait_for_a_silent_bucket() {
    let (site, bucket) = (FixtureSite::start().await, MuteBucket::start().await);
    let mut options = ServiceOptions::new(Database::Sqlite);
    options.env.extend(bucket.settings());
    let mut service = TestService::start_with(options).await;
    let id = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/small/", 2) })).await.id();
    finished(service.caller(), &id, Duration::from_secs(60)).await;
    bucket.fall_silent();
    service.execute("UPDATE job SET expires_at = 1").await;
    wait_until("the bucket is asked in vain", || async { bucket.is_waited_for().then_some(()) }).await;
    // A call of the bucket lasts for 60 s, longer than a process may take to end.
    service.stop();
}

#[tokio::test]
async fn a_document_that_its_bucket_has_not_kept_is_answered_as_documented() {
    let (pages, bucket) = (OwnPages::start().await, MuteBucket::start().await);
    let mut options = ServiceOptions::new(Database::Sqlite);
    options.env.extend(bucket.settings());
    let service = TestService::start_with(options).await;
    let id = batch_of_a_large_page(&service, &pages).await;
    // The caller holds every answer against what is documented.
    let status = finished(service.caller(), &id, Duration::from_secs(60)).await;
    assert!(status["data"][0]["warning"].as_str().unwrap().contains("is lost"), "{status}");
}

/// Starts a batch of one page. So much of the page cannot be packed that it lies in the bucket.
async fn batch_of_a_large_page(service: &TestService, pages: &OwnPages) -> String {
    let words: String = (0..20_000).map(|_| format!("{} ", uuid::Uuid::new_v4())).collect();
    let url = pages.put("/large", &format!("<article><h1>Large</h1><p>{words}</p></article>"));
    service.post("/v2/batch/scrape", &json!({ "urls": [url] })).await.id()
}

#[tokio::test]
async fn what_a_dead_worker_left_does_not_wait_for_the_database() {
    let mut service = TestService::start_with(ServiceOptions::new(Database::Sqlite)).await;
    let run_dir = service.folder().join("tmp/weir-run");
    service.kill_worker(0);
    assert!(!files_below(&run_dir).is_empty(), "it left its boxes");
    let away = format!("postgres://weir@127.0.0.1:{}/weir", free_port());
    let log = service.folder().join("waiting.log");
    let mut command = service.command("weir-worker");
    command.env("DATABASE_URL", away);
    let mut worker = Process::start("a worker without a database", command, &log);
    wait_until("it waits for the database", || async {
        worker.tail(40).contains("waiting for the database").then_some(())
    })
    .await;
    assert_eq!(files_below(&run_dir), Vec::<PathBuf>::new());
    assert!(worker.terminate(Duration::from_secs(40)).success());
    service.start_worker(0);
    service.workers_are_there().await;
}

both_databases! {
    async fn a_batch_survives_killed_workers_and_browsers(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start_with(ServiceOptions::new(database).workers(2)).await;
        let plan = Plan {
            pages: 200,
            every: Duration::from_millis(1500),
            worker_kills: 4,
            browser_kills: 2,
            slow_ms: 2500,
            bound: Duration::from_secs(120),
        };
        survive(&site, service, plan).await;
    }

    async fn a_page_whose_worker_died_is_tried_again_within_15_seconds(database) {
        let site = FixtureSite::start().await;
        let mut service = TestService::start_with(ServiceOptions::new(database).workers(2)).await;
        let urls = site.urls("/slow?ms=4000&n=", 4);
        let id = service.post("/v2/batch/scrape", &json!({ "urls": urls })).await.id();
        wait_until("all pages are in work", || async { (site.hit_count("/slow").await == 4).then_some(()) }).await;
        service.kill_worker(0);
        service.kill_worker(1);
        let died = Stopwatch::start();
        service.start_worker(1);
        wait_until("all pages are in work again", || async { (site.hit_count("/slow").await >= 8).then_some(()) }).await;
        // With ten seconds for a machine that has other things to do; what is not taken back stays where it is.
        assert!(died.elapsed() < Duration::from_secs(25), "{:?}", died.elapsed());
        let status = finished(service.caller(), &id, Duration::from_secs(60)).await;
        assert_eq!((&status["completed"], &status["creditsUsed"]), (&json!(4), &json!(4)));
    }
}

first_on! {
    postgres:

    async fn actions_are_begun_once_whoever_dies_of_them(database) {
        let pages = OwnPages::start().await;
        let mut service = TestService::start_with(ServiceOptions::new(database).workers(1)).await;
        let hung = [pages.hold("/bought"), pages.hold("/seen")];
        let shop = pages.put("/shop", "<h1>Shop</h1><p>Of goods.</p><button id=b onclick=\"fetch('/bought')\">Buy</button>");
        let look = pages.put(
            "/look",
            "<h1>Look</h1><p>Around.</p><button id=b onclick=\"fetch('/sold')\">Buy</button><script>fetch('/seen')</script>",
        );
        pages.put("/sold", "sold");
        let buys = |url: &str, before: u32, after: u32| {
            json!({ "urls": [url], "actions": [
                { "type": "wait", "milliseconds": before }, { "type": "click", "selector": "#b" },
                { "type": "wait", "milliseconds": after },
            ] })
        };
        // One has acted when its worker dies, the other has not.
        let acted = service.post("/v2/batch/scrape", &buys(&shop, 1, 30_000)).await.id();
        wait_until("the purchase", async || (!pages.heads("/bought").is_empty()).then_some(())).await;
        let waits = service.post("/v2/batch/scrape", &buys(&look, 8_000, 1)).await.id();
        wait_until("the other page", async || (!pages.heads("/seen").is_empty()).then_some(())).await;
        service.restart_worker(0);
        let status = finished(service.caller(), &acted, Duration::from_secs(60)).await;
        assert_eq!(status["data"], json!([]), "{status}");
        let errors = service.get(&format!("/v2/batch/scrape/{acted}/errors")).await.ok();
        assert!(errors["errors"][0]["error"].as_str().unwrap().contains("not begun again"), "{errors}");
        let status = finished(service.caller(), &waits, Duration::from_secs(90)).await;
        assert_eq!(status["data"].as_array().unwrap().len(), 1, "{status}");
        let count = |path: &str| pages.heads(path).len();
        assert_eq!((count("/bought"), count("/sold")), (1, 1));
        // An operator may have them begun anew.
        assert_eq!(service.cli_json(&["jobs", "replay", &acted, "--json"])["replayed"], 1);
        wait_until("the second purchase", async || (count("/bought") == 2).then_some(())).await;
        drop(hung);
    }
}

first_on! {
    sqlite:

    async fn a_worker_that_is_stopped_waits_for_actions_and_says_where_it_does_not(database) {
        let pages = OwnPages::start().await;
        let mut service = TestService::start_with(ServiceOptions::new(database).workers(1)).await;
        for path in ["/bought", "/ordered", "/sold", "/seen"] {
            pages.put(path, "done");
        }
        let page = |path: &str, does: &str, shows: &str| {
            let button = format!("<button id=b onclick=\"fetch('{does}')\">Buy</button>");
            pages.put(path, &format!("<h1>Shop</h1><p>Of goods.</p>{button}<script>{shows}</script>"))
        };
        let buys = |url: String, before: u32, after: u32| {
            json!({ "urls": [url], "timeout": 90_000, "actions": [
                { "type": "wait", "milliseconds": before }, { "type": "click", "selector": "#b" },
                { "type": "wait", "milliseconds": after },
            ] })
        };
        // Longer than a drain is for others, longer than it is for those that have acted, and one that has not.
        let short = service.post("/v2/batch/scrape", &buys(page("/a", "/bought", ""), 1, 16_000)).await.id();
        let long = service.post("/v2/batch/scrape", &buys(page("/b", "/ordered", ""), 1, 50_000)).await.id();
        let waits = page("/c", "/sold", "fetch('/seen')");
        let waits = service.post("/v2/batch/scrape", &buys(waits, 20_000, 1)).await.id();
        let count = |path: &str| pages.heads(path).len();
        wait_until("all three are under way", async || {
            ["/bought", "/ordered", "/seen"].iter().all(|path| count(path) == 1).then_some(())
        })
        .await;
        signal("TERM", &service.worker_process(0).to_string());
        assert!(service.await_worker(0, Duration::from_secs(40)).success());
        let status = async |id: &str| service.get(&format!("/v2/batch/scrape/{id}")).await.ok();
        let done = status(&short).await;
        assert_eq!((&done["status"], &done["completed"]), (&json!("completed"), &json!(1)), "{done}");
        assert_ne!(status(&long).await["status"], "scraping");
        let errors = service.get(&format!("/v2/batch/scrape/{long}/errors")).await.ok();
        let error = errors["errors"][0]["error"].as_str().unwrap();
        assert!(error.starts_with("The worker was stopped") && error.contains("not begun again"), "{errors}");
        let queue = service.get("/v2/team/queue-status").await.ok();
        assert_eq!((&queue["activeJobsInQueue"], &queue["waitingJobsInQueue"]), (&json!(0), &json!(1)), "{queue}");
        assert_eq!((count("/bought"), count("/ordered"), count("/sold")), (1, 1, 0));
        service.delete(&format!("/v2/batch/scrape/{waits}")).await.ok();
    }
}

both_databases! {
    async fn a_scrape_that_loses_its_worker_is_still_answered(database) {
        let site = FixtureSite::start().await;
        let mut service = TestService::start_with(ServiceOptions::new(database).workers(1)).await;
        scrapes_are_dispatched(&service, &site).await;
        let caller = service.caller().clone();
        let url = site.url("/slow?ms=2000");
        let scrape = tokio::spawn(async move { caller.post("/v2/scrape", &json!({ "url": url, "timeout": 90_000 })).await });
        wait_until("the page is in work", || async { (site.hit_count("/slow").await == 1).then_some(()) }).await;
        service.restart_worker(0);
        let answer = scrape.await.unwrap().ok();
        assert_eq!(answer["data"]["metadata"]["statusCode"], 200);
    }

    async fn a_worker_that_stands_still_holds_no_scrape_up(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start_with(ServiceOptions::new(database).workers(2)).await;
        scrapes_are_dispatched(&service, &site).await;
        service.pause_worker(0).await;
        let began = Stopwatch::start();
        let scrapes = (0..6).map(|n| {
            let (caller, url) = (service.caller().clone(), site.url(&format!("/small/{n}")));
            tokio::spawn(async move { caller.post("/v2/scrape", &json!({ "url": url, "maxAge": 0 })).await.ok() })
        });
        for scrape in scrapes.collect::<Vec<_>>() {
            assert_eq!(scrape.await.unwrap()["data"]["metadata"]["statusCode"], 200);
        }
        // Whoever waited for it would wait for all of a scrape's time, a minute.
        assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
        // What was dispatched to it during its pause has been done by another worker; it must not do it again.
        service.resume_worker(0);
        let before = used(&service).await;
        wait_until("the worker goes on", || async {
            let body = json!({ "url": site.url("/small/9"), "maxAge": 0 });
            service.post("/v2/scrape", &body).await.ok();
            (service.worker_figure(0, TAKEN).await > 0).then_some(())
        })
        .await;
        for n in 0..6 {
            assert_eq!(site.hit_count(&format!("/small/{n}")).await, 1);
        }
        assert_eq!(used(&service).await - before, site.hit_count("/small/9").await);
    }

    async fn scrapes_beside_a_busy_write_lock_are_answered_and_billed_once(database) {
        const HALF: usize = 40;
        let site = FixtureSite::start().await;
        // A place for each, so that all are dispatched to the worker, also while others wait for the lock.
        let options = ServiceOptions::new(database).workers(1).env("WEIR_WORKER_CONCURRENCY", "100");
        let service = TestService::start_with(options).await;
        scrapes_are_dispatched(&service, &site).await;
        let before = used(&service).await;
        let start = |urls: Vec<String>| -> Vec<_> {
            let urls = urls.into_iter().map(|url| {
                let caller = service.caller().clone();
                tokio::spawn(async move { caller.post("/v2/scrape", &json!({ "url": url, "maxAge": 0 })).await })
            });
            urls.collect()
        };
        // Some are accepted before the lock is taken and end beside it, the others come while it is held.
        let mut scrapes = start(site.urls("/slow?ms=300&n=", HALF));
        wait_until("pages are in work", || async { (site.hit_count("/slow").await >= 4).then_some(()) }).await;
        // What is written last: a worker's rows are in then, and nobody else sees them.
        let lock = service.lock_table("activity").await;
        scrapes.extend(start(site.urls("/small/", HALF)));
        // How long the lock is held is the fault itself.
        tokio::time::sleep(Duration::from_secs(3)).await;
        lock.release().await;
        let mut refused = Vec::new();
        for scrape in scrapes {
            let answer = scrape.await.unwrap();
            if answer.status != 200 || answer.body["data"]["metadata"]["statusCode"] != 200 {
                refused.push((answer.status, answer.text));
            }
        }
        assert!(refused.is_empty(), "{} of {} scrapes, the first: {:?}", refused.len(), HALF * 2, refused.first());
        assert_eq!(used(&service).await - before, HALF as u64 * 2, "each is billed once");
    }

    async fn a_page_that_takes_its_worker_down_each_time_is_given_up(database) {
        // Some 80 s; what counts in the rows is tested beside the store on both.
        if matches!(database, Database::Postgres(_)) && !long_tests() {
            eprintln!("skipped: on Postgres only with --long");
            return;
        }
        let site = FixtureSite::start().await;
        let mut service = TestService::start_with(ServiceOptions::new(database).workers(1)).await;
        let body = json!({ "urls": [site.url("/slow?ms=60000")], "timeout": 120_000 });
        let id = service.post("/v2/batch/scrape", &body).await.id();
        let began = Stopwatch::start();
        let mut tries = 0;
        let status = loop {
            let status = service.get(&format!("/v2/batch/scrape/{id}")).await.ok();
            if status["status"] != "scraping" {
                break status;
            }
            assert!(began.elapsed() < Duration::from_secs(150), "after {tries} tries the page is not given up");
            if site.hit_count("/slow").await > tries {
                tries += 1;
                service.restart_worker(0);
            }
        };
        assert!((2..=10).contains(&tries), "{tries} tries");
        assert_eq!((&status["completed"], &status["creditsUsed"]), (&json!(0), &json!(0)));
        assert_eq!(errors_of(service.caller(), &id).await[0]["code"], "SCRAPE_RETRY_LIMIT");
    }

    async fn every_id_that_was_answered_exists_though_the_api_is_killed(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        answered_ids_exist(&site, service, 80, 4).await;
    }
}

/// Four clients post `count` batches while the API is killed `kills` times; each answered id must finish.
async fn answered_ids_exist(site: &FixtureSite, mut service: TestService, count: usize, kills: usize) {
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let clients: Vec<_> = (0..4)
        .map(|client| {
            let (caller, sender) = (service.caller().clone(), sender.clone());
            let urls = site.urls(&format!("/small/{client}"), count / 4);
            tokio::spawn(async move {
                for url in urls {
                    // The client tries again until it has an answer, as the SDKs do.
                    let id = wait_until_within(Duration::from_secs(60), "an answer", || async {
                        let request =
                            caller.request(reqwest::Method::POST, "/v2/batch/scrape").json(&json!({ "urls": [url] }));
                        let answer = caller.try_send(request).await.ok()?;
                        (answer.status == 200).then(|| answer.id())
                    })
                    .await;
                    sender.send(id).unwrap();
                }
            })
        })
        .collect();
    drop(sender);

    let mut ids = Vec::new();
    while let Some(id) = receiver.recv().await {
        ids.push(id);
        if ids.len() % (count / (kills + 1)) == 0 && ids.len() < count {
            service.kill_api();
            service.start_api();
        }
    }
    for client in clients {
        client.await.unwrap();
    }
    service.ready().await;
    assert_eq!(ids.len(), count / 4 * 4);
    for id in &ids {
        let status = finished(service.caller(), id, Duration::from_secs(60)).await;
        assert_eq!((&status["status"], &status["completed"]), (&json!("completed"), &json!(1)), "{id}");
    }
}

/// A batch goes on through restarts of its Postgres server.
async fn survives_postgres_restarts(pages: usize, restarts: usize) {
    let cluster = PostgresCluster::start();
    let site = FixtureSite::start().await;
    let options = ServiceOptions::new(weir_tests::Database::Postgres(cluster.url.clone())).workers(2);
    let service = TestService::start_with(options).await;
    let mut urls = site.urls("/mix/", pages / 2);
    urls.extend(site.urls("/slow?ms=500&n=", pages / 2));
    let id = service.post("/v2/batch/scrape", &json!({ "urls": urls, "maxConcurrency": 8 })).await.id();
    for restart in 1..=restarts {
        let share = (urls.len() * restart / (restarts + 1)) as u64;
        wait_until_within(Duration::from_secs(120), "the next part of the batch is done", || async {
            let request = service.caller().request(reqwest::Method::GET, &format!("/v2/batch/scrape/{id}?limit=1"));
            let answer = service.caller().try_send(request).await.ok()?;
            (answer.status == 200 && answer.body["completed"].as_u64()? >= share).then_some(())
        })
        .await;
        cluster.restart();
    }
    service.ready().await;
    let status = wait_until_within(Duration::from_secs(120), "the end of the batch", || async {
        let answer = service.get(&format!("/v2/batch/scrape/{id}?limit=1")).await;
        (answer.status == 200 && answer.body["status"] != "scraping").then_some(answer.body)
    })
    .await;
    intact(&site, &service, &id, &urls, &status).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_survives_a_restart_of_postgres() {
    if weir_tests::Database::postgres().is_none() {
        eprintln!("skipped: WEIR_TEST_POSTGRES_URL is not set");
        return;
    }
    survives_postgres_restarts(160, 1).await;
}

/// Statements of this database that wait for a lock.
async fn waiting(rows: &sqlx::PgPool) -> i64 {
    const COUNT: &str = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() \
        AND wait_event_type = 'Lock' AND query LIKE '%FROM activity%'";
    sqlx::query_scalar(COUNT).fetch_one(rows).await.unwrap()
}

/// An API stops while one of its threads still answers requests: what the idle ones have opened, connections to Postgres
/// above all, must not end before it has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopping_api_answers_what_it_has_in_hand_though_its_other_threads_are_idle() {
    let Some(database) = Database::postgres() else {
        eprintln!("skipped: WEIR_TEST_POSTGRES_URL is not set");
        return;
    };
    let mut service = TestService::start_with(ServiceOptions::new(database)).await;
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    // Each with a connection of its own, which go to the threads in turn.
    let callers: Vec<Caller> = (0..4 * threads).map(|_| Caller::new(service.base(), Some(service.key()))).collect();
    for caller in &callers {
        caller.get("/v2/team/queue-status").await.ok();
    }
    let rows = sqlx::PgPool::connect(service.database_url()).await.unwrap();
    let begin = |caller: &Caller| {
        let caller = caller.clone();
        tokio::spawn(async move { caller.get("/v2/team/activity").await })
    };
    let mut stopping = None;
    // All at once, so that each thread's requests open connections to Postgres; then those of one thread alone.
    for step in [1, threads] {
        let mut lock = sqlx::PgConnection::connect(service.database_url()).await.unwrap();
        sqlx::raw_sql("BEGIN; LOCK TABLE activity IN ACCESS EXCLUSIVE MODE").execute(&mut lock).await.unwrap();
        let answers: Vec<_> = callers.iter().step_by(step).map(begin).collect();
        // There are no more connections than these.
        let all = i64::try_from(answers.len()).unwrap().min(8);
        wait_until("they wait for the lock", || async { (waiting(&rows).await >= all).then_some(()) }).await;
        if step > 1 {
            let api = service.take_api();
            let mut idle = Vec::new();
            for _ in 0..threads {
                idle.push(tokio::net::TcpStream::connect(("127.0.0.1", service.port())).await.unwrap());
            }
            api.ask_to_end();
            // When these are closed, a thread without a request in hand has nothing to do.
            for mut connection in idle {
                let closed = tokio::time::timeout(Duration::from_secs(60), connection.read(&mut [0])).await;
                assert_eq!(closed.expect("idle connections are closed").unwrap(), 0);
            }
            stopping = Some(api);
        }
        sqlx::raw_sql("ROLLBACK").execute(&mut lock).await.unwrap();
        for answer in answers {
            answer.await.unwrap().ok();
        }
    }
    rows.close().await;
    assert!(stopping.unwrap().await_end(Duration::from_secs(60)).success());
    service.abandon();
}

#[tokio::test]
async fn a_crash_of_chromium_is_not_the_callers_problem() {
    let site = FixtureSite::start().await;
    let service = TestService::start(weir_tests::Database::Sqlite).await;
    let body = json!({ "url": site.url("/js/render/1") });
    service.post("/v2/scrape", &body).await.ok();
    let caller = service.caller().clone();
    let slow = json!({ "url": site.url("/js/timer/2?delay=900"), "timeout": 90_000 });
    let scrape = tokio::spawn(async move { caller.post("/v2/scrape", &slow).await });
    wait_until("the browser has the page", || async { (site.hit_count("/js/timer").await > 0).then_some(()) }).await;
    for browser in service.browsers() {
        browser.kill();
    }
    let document = scrape.await.unwrap().ok();
    assert_eq!(site.truth("/js/timer/2").await.fault_in(weir_tests::markdown_of(&document["data"])), None);
    service.post("/v2/scrape", &body).await.ok();
}
