//! The database is away, or takes nothing that is written, for longer than a silent worker counts as alive: browsers and pages
//! that are in work meanwhile are still there when it comes back. And what a crash of it takes. The same of the place where
//! large documents lie.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};
use weir_shared::random;
use weir_shared::store::work::nodes::{DEAD_MS, FENCE_MS};
use weir_tests::{
    BucketStandIn, BucketState, Caller, Database, FixtureSite, ModelStandIn, MovedClock, OwnPages, PostgresCluster,
    Said, SearchStandIn, ServiceOptions, TestService, finished, markdown_of, wait_until, wait_until_within,
};

use crate::agent::act;
use crate::extract::{ended, options};
use crate::uploads::{offered, parse, send};
use crate::websocket::{by_header, frames};

const PAGES: u64 = 4;
const BACK: Duration = Duration::from_secs(60);

/// A claim of the last half second would be lost in a crash of the server, and made again. A commit that waits for the disk
/// takes all that were before it there.
async fn keep_claims(service: &TestService) {
    service.execute("UPDATE worker_node SET pid = pid").await;
}

/// Asks a session's browser for its version, past the API's rows.
async fn version(cdp: &mut WebSocketStream<MaybeTlsStream<TcpStream>>, id: u64) -> Value {
    let call = json!({ "id": id, "method": "Browser.getVersion" }).to_string();
    cdp.send(Message::text(call)).await.unwrap();
    let answer = async {
        loop {
            let Some(Ok(Message::Text(text))) = cdp.next().await else { panic!("the session has ended") };
            let said: Value = serde_json::from_str(&text).unwrap();
            if said["id"] == id {
                return said["result"].clone();
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), answer).await.expect("the browser answers")
}

/// Runs code in a session as soon as the database lets it.
async fn run(caller: &Caller, session: &str, code: &str) -> Value {
    let path = format!("/v2/browser/{session}/execute");
    wait_until_within(BACK, "the session's code", || async {
        let answer = caller.post(&path, &json!({ "code": code })).await;
        assert!([200, 503].contains(&answer.status), "the session is there: {}", answer.text);
        (answer.status == 200).then_some(answer.body)
    })
    .await
}

/// What becomes of the database.
enum Outage {
    /// Its server has crashed.
    Crashed(PostgresCluster),
    /// Somebody holds its file's lock.
    Locked,
}

async fn survive(database: Database, outage: Outage) {
    let site = FixtureSite::start().await;
    let service = TestService::start_with(ServiceOptions::new(database).workers(2).with_sessions()).await;
    service.takes_sessions().await;
    let caller = service.caller();
    let session = caller.post("/v2/browser", &json!({ "ttl": 600 })).await.ok();
    let id = session["id"].as_str().unwrap();
    run(caller, id, "globalThis.kept = 41").await;
    let (mut cdp, _) = tokio_tungstenite::connect_async(session["cdpUrl"].as_str().unwrap()).await.unwrap();
    version(&mut cdp, 1).await;
    let urls = site.urls("/slow?ms=4000&n=", PAGES as usize);
    let batch = caller.post("/v2/batch/scrape", &json!({ "urls": urls })).await.id();
    wait_until_within(BACK, "the pages are in work", || async {
        (site.hit_count("/slow").await == PAGES).then_some(())
    })
    .await;

    let lock = match &outage {
        Outage::Crashed(cluster) => {
            keep_claims(&service).await;
            cluster.kill();
            None
        }
        Outage::Locked => Some(service.lock_writes("other").await),
    };
    tokio::time::sleep(Duration::from_millis(DEAD_MS.unsigned_abs() + 4_000)).await;
    assert!(version(&mut cdp, 2).await["product"].is_string(), "who drives a browser does not notice");
    if let Outage::Crashed(cluster) = &outage {
        cluster.restart();
    }
    if let Some(lock) = lock {
        lock.release().await;
    }

    assert_eq!(run(caller, id, "kept + 1").await["result"], "42");
    version(&mut cdp, 3).await;
    let status = finished(caller, &batch, BACK).await;
    assert_eq!((&status["completed"], &status["creditsUsed"]), (&json!(PAGES), &json!(PAGES)), "{status}");
    assert_eq!(site.hit_count("/slow").await, PAGES, "each page is fetched once");
    let another = caller.post("/v2/browser", &json!({})).await;
    assert_eq!(another.status, 200, "the workers count as alive: {}", another.text);
    for id in [id, another.body["id"].as_str().unwrap()] {
        caller.delete(&format!("/v2/browser/{id}")).await.ok();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_server_that_is_away_ends_no_session_and_throws_away_no_page() {
    if Database::postgres().is_none() {
        eprintln!("skipped: WEIR_TEST_POSTGRES_URL is not set");
        return;
    }
    let cluster = PostgresCluster::start();
    survive(Database::Postgres(cluster.url.clone()), Outage::Crashed(cluster)).await;
}

/// For longer than a worker believes that it is not cut off alone; what starts meanwhile waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_server_that_is_read_only_for_long_ends_no_worker_and_throws_away_no_page() {
    if Database::postgres().is_none() {
        eprintln!("skipped: WEIR_TEST_POSTGRES_URL is not set");
        return;
    }
    let (cluster, clock, site) = (PostgresCluster::start(), MovedClock::new(), FixtureSite::start().await);
    let (name, file) = clock.setting();
    let options = ServiceOptions::new(Database::Postgres(cluster.url.clone())).workers(2).env(name, file);
    let options = options.env("WEIR_PAGE_BROWSERS", "0").env("WEIR_WORKER_CONCURRENCY", "8");
    let mut service = TestService::start_with(options).await;
    service.kill_worker(1);
    let log = |n: usize| std::fs::read_to_string(service.folder().join(format!("worker-{n}.log"))).unwrap_or_default();
    let urls = site.urls("/slow?ms=4000&n=", PAGES as usize);
    let batch = service.post("/v2/batch/scrape", &json!({ "urls": urls })).await.id();
    wait_until_within(BACK, "the pages are in work", || async {
        (site.hit_count("/slow").await == PAGES).then_some(())
    })
    .await;

    cluster.takes_writes(false).await;
    wait_until_within(BACK, "it is told", || async {
        let answer = service.anonymous().get("/readyz").await;
        (answer.status == 503 && answer.text.contains("database: cannot be written")).then_some(())
    })
    .await;
    wait_until_within(BACK, "results are kept", || async {
        log(0).contains("results cannot be written").then_some(())
    })
    .await;
    clock.advance(Duration::from_millis(FENCE_MS.unsigned_abs() + 60_000));
    let heartbeats = || log(0).matches("a heartbeat failed").count();
    let before = heartbeats();
    wait_until_within(BACK, "heartbeats fail", || async { (heartbeats() >= before + 3).then_some(()) }).await;
    assert!(!log(0).contains("counted as dead"), "{}", service.logs());
    service.start_worker(1);
    let log = |n: usize| std::fs::read_to_string(service.folder().join(format!("worker-{n}.log"))).unwrap_or_default();
    wait_until_within(BACK, "a worker that starts waits", || async {
        log(1).contains("waiting for the database").then_some(())
    })
    .await;

    cluster.takes_writes(true).await;
    let status = finished(service.caller(), &batch, BACK).await;
    assert_eq!((&status["completed"], &status["creditsUsed"]), (&json!(PAGES), &json!(PAGES)), "{status}");
    assert_eq!(site.hit_count("/slow").await, PAGES, "each page is fetched once");
    wait_until_within(BACK, "both workers take work", || async {
        let answer = service.anonymous().get("/readyz").await;
        (answer.status == 200 && answer.body["workers"] == 2).then_some(())
    })
    .await;
    assert!(!log(0).contains("counted as dead"), "{}", service.logs());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sqlite_file_that_somebody_locks_ends_no_session_and_throws_away_no_page() {
    survive(Database::Sqlite, Outage::Locked).await;
}

#[tokio::test]
async fn a_scrape_that_a_crash_has_taken_is_to_be_sent_again() {
    let mut service = TestService::start(Database::Sqlite).await;
    service.kill_worker(0);
    let caller = service.caller().clone();
    let scrape = tokio::spawn(async move {
        caller.post("/v2/scrape", &json!({ "url": "http://127.0.0.1:8099/", "timeout": 10_000 })).await
    });
    wait_until_within(BACK, "the scrape waits", || async {
        (service.get("/v2/team/queue-status").await.ok()["jobsInQueue"] == 1).then_some(())
    })
    .await;
    service.execute("DELETE FROM page").await;
    let answer = scrape.await.unwrap();
    assert_eq!((answer.status, answer.error().contains("Please try again")), (503, true), "{}", answer.text);
    assert!(answer.headers.contains_key("retry-after"));
    // A dead worker and a job without pages are no matter here.
    service.abandon();
}

/// For longer than a process waits for a connection, so that what it asks is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_a_job_is_told_of_no_failure_while_postgres_is_away_for_a_moment() {
    if Database::postgres().is_none() {
        eprintln!("skipped: WEIR_TEST_POSTGRES_URL is not set");
        return;
    }
    let (cluster, site) = (PostgresCluster::start(), FixtureSite::start().await);
    let backend = SearchStandIn::finding(site.urls("/slow?ms=6000&hit=", 2)).await;
    let options = ServiceOptions::new(Database::Postgres(cluster.url.clone())).env("WEIR_SEARCH_URL", &backend.url);
    let options = options.env("WEIR_PAGE_BROWSERS", "0").env("WEIR_WORKER_CONCURRENCY", "8");
    let service = TestService::start_with(options).await;
    let urls = site.urls("/slow?ms=6000&n=", 2);
    let batch = service.post("/v2/batch/scrape", &json!({ "urls": urls })).await.id();
    let (stream, _) = by_header(&service, &format!("batch/scrape/{batch}"), service.key()).await.unwrap();
    let caller = service.caller().clone();
    let search = tokio::spawn(async move {
        let scraped = json!({ "formats": ["markdown"], "maxAge": 0 });
        caller.post("/v2/search", &json!({ "query": "slow", "timeout": 60_000, "scrapeOptions": scraped })).await
    });
    wait_until_within(BACK, "the pages are in work", || async { (site.hit_count("/slow").await == 4).then_some(()) })
        .await;
    keep_claims(&service).await;
    cluster.kill();
    let log = service.folder().join("api.log");
    wait_until_within(BACK, "both have asked in vain", || async {
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        (log.matches("the database is unavailable").count() >= 2).then_some(())
    })
    .await;
    cluster.restart();
    // What it was told meanwhile waits to be read.
    let (seen, code) = frames(stream).await;
    assert!(seen.iter().all(|frame| frame["type"] != "error"), "{seen:?}");
    let done = seen.last().unwrap();
    assert_eq!((code, &done["type"], &done["data"]["completed"]), (1000, &json!("done"), &json!(2)), "{done}");
    let found = search.await.unwrap().ok();
    let hits = found["data"]["web"].as_array().unwrap();
    assert!(hits.len() == 2 && hits.iter().all(|hit| hit["markdown"].is_string()), "{found}");
}

/// The model answers while the database is away: what it said is lost, and the task's end in this process cannot be written
/// down either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_cannot_be_let_go_is_driven_again_when_the_database_is_back() {
    if Database::postgres().is_none() {
        eprintln!("skipped: WEIR_TEST_POSTGRES_URL is not set");
        return;
    }
    let (cluster, answers) = (PostgresCluster::start(), Arc::new(AtomicBool::new(false)));
    let may_answer = Arc::clone(&answers);
    let model = ModelStandIn::answering(move |_, _| {
        tokio::task::block_in_place(|| {
            while !may_answer.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        Said::json(&act("finish", json!({ "answer": "done" })))
    })
    .await;
    let service = TestService::start_with(options(Database::Postgres(cluster.url.clone()), &model)).await;
    let pages = OwnPages::start().await;
    let start = pages.put("/", "<p>Start.</p>");
    let id = service.post("/v2/agent", &json!({ "prompt": "x", "urls": [start] })).await.id();
    wait_until_within(BACK, "the model is asked", || async { (!model.asked().is_empty()).then_some(()) }).await;
    cluster.kill();
    answers.store(true, Ordering::Relaxed);
    // Longer than a connection is waited for: nothing tells when the worker has given up writing the task's end.
    tokio::time::sleep(Duration::from_secs(4)).await;
    cluster.restart();
    service.ready().await;
    let status = ended(service.caller(), &format!("/v2/agent/{id}")).await;
    assert_eq!(status["data"]["answer"], "done", "{status}");
}

/// A page whose document is too large for its row, however it is packed.
fn large(pages: &OwnPages, path: &str) -> String {
    let noise: String = (0..45_000).map(|_| format!("{:016x} ", random::up_to(u64::MAX))).collect();
    pages.put(path, &format!("<main><p>{noise}</p></main>"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_is_away_keeps_nobody_waiting_and_throws_away_no_page() {
    let (bucket, pages) = (BucketStandIn::start().await, OwnPages::start().await);
    // What sites have sent is not kept, so that only documents go there.
    let mut options = ServiceOptions::new(Database::Sqlite).env("WEIR_PAGE_BROWSERS", "0").env("WEIR_CACHE_SIZE", "0");
    options.env.extend(bucket.settings());
    let service = TestService::start_with(options).await;
    let caller = service.caller();
    let file = offered(caller, "a.html").await;
    send(&service, &file, "<p>A word of a file.</p>").await.ok();
    bucket.becomes(BucketState::Hangs);
    // More than there are threads for the reading of pages, and slots of a worker.
    let paths: Vec<String> = (0..24).map(|n| format!("/large/{n}")).collect();
    let urls: Vec<String> = paths.iter().map(|path| large(&pages, path)).collect();
    let batch = caller.post("/v2/batch/scrape", &json!({ "urls": urls })).await.id();
    wait_until_within(2 * BACK, "documents are on their way", || async { (bucket.turned_away() >= 24).then_some(()) })
        .await;
    let small = pages.put("/small", "<main><p>A word for the small ones.</p></main>");
    let answer = caller.post("/v2/scrape", &json!({ "url": small, "timeout": 25_000 })).await.ok();
    assert!(answer["data"]["markdown"].as_str().unwrap().contains("A word"), "{answer}");

    bucket.becomes(BucketState::IsAway);
    let (reader, is_read) = (caller.clone(), file.clone());
    let parsed = tokio::spawn(async move { parse(&reader, &is_read, json!({})).await });
    // So many refusals that each document has been tried several times, each time with the store's client's own tries.
    wait_until_within(2 * BACK, "documents are tried again", || async {
        (bucket.turned_away() >= 24 * 12).then_some(())
    })
    .await;
    bucket.becomes(BucketState::Well);
    let parsed = parsed.await.unwrap().ok();
    assert!(parsed["data"]["markdown"].as_str().unwrap().contains("of a file"), "{parsed}");
    let status = finished(caller, &batch, BACK).await;
    assert_eq!((&status["completed"], &status["creditsUsed"]), (&json!(24), &json!(24)), "{status}");
    for path in &paths {
        assert_eq!(pages.heads(path).len(), 1, "{path} is fetched once");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stored_pages_that_a_silent_bucket_has_keep_no_other_page_from_being_read() {
    let (pages, bucket) = (OwnPages::start().await, BucketStandIn::start().await);
    let mut options = ServiceOptions::new(Database::Sqlite).env("WEIR_CACHE_SIZE", "100MB");
    options.env.extend(bucket.settings());
    let service = TestService::start_with(options).await;
    let small = pages.put("/small", "<article><h1>Small</h1><p>A page that is read at once.</p></article>");
    // As many as there are threads on which pages are read.
    let threads = 2 * std::thread::available_parallelism().unwrap().get();
    let large = || -> String { (0..20_000).map(|_| format!("{} ", uuid::Uuid::new_v4())).collect() };
    let put = |n| pages.put(&format!("/large/{n}"), &format!("<article><h1>Large</h1><p>{}</p></article>", large()));
    let urls: Vec<String> = (0..threads).map(put).collect();
    let id = service.post("/v2/batch/scrape", &json!({ "urls": urls, "formats": ["links"] })).await.id();
    finished(service.caller(), &id, Duration::from_secs(60)).await;
    bucket.becomes(BucketState::Hangs);
    let stored = json!({ "urls": urls, "formats": ["links"], "maxAge": 3_600_000, "timeout": 60_000 });
    let id = service.post("/v2/batch/scrape", &stored).await.id();
    wait_until("the bucket is asked in vain", || async { (bucket.turned_away() >= urls.len()).then_some(()) }).await;
    let body = json!({ "url": small, "maxAge": 0, "timeout": 18_000 });
    assert!(markdown_of(&service.post("/v2/scrape", &body).await.ok()["data"]).contains("at once"));
    service.delete(&format!("/v2/batch/scrape/{id}")).await.ok();
    bucket.becomes(BucketState::Well);
}
