//! The fault tests at full length. They run with `WEIR_TEST_LONG=1` (`scripts/test --long`).

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use sqlx::Connection;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use weir_shared::clock::Stopwatch;
use weir_tests::{
    Database, FixtureSite, OwnPages, ServiceOptions, TestService, both_databases, finished, wait_until,
    wait_until_within,
};

use super::{Plan, answered_ids_exist, intact, survive, survives_postgres_restarts};

fn wanted() -> bool {
    if !weir_tests::long_tests() {
        eprintln!("skipped: a long test, WEIR_TEST_LONG=1 runs it");
    }
    weir_tests::long_tests()
}

both_databases! {
    async fn three_thousand_pages_survive_twenty_kills_of_workers_and_twenty_of_chromium(database) {
        if !wanted() {
            return;
        }
        let workers = if matches!(database, Database::Sqlite) { 2 } else { 3 };
        let site = FixtureSite::start().await;
        let options = ServiceOptions::new(database).workers(workers).env("WEIR_WORKER_CONCURRENCY", "12");
        let service = TestService::start_with(options).await;
        let plan = Plan {
            pages: 3000,
            every: Duration::from_secs(3),
            worker_kills: 20,
            browser_kills: 20,
            slow_ms: 2500,
            bound: Duration::from_secs(600),
        };
        survive(&site, service, plan).await;
    }

    async fn a_thousand_answered_ids_all_exist_though_the_api_is_killed(database) {
        if !wanted() {
            return;
        }
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        answered_ids_exist(&site, service, 1000, 25).await;
    }

    async fn a_silent_bucket_keeps_no_page_of_a_dead_worker_waiting(database) {
        if !wanted() {
            return;
        }
        const PAGES: usize = 8;
        let site = FixtureSite::start().await;
        let bucket = MuteBucket::start().await;
        let mut options = ServiceOptions::new(database).workers(2).env("WEIR_WORKER_CONCURRENCY", "4");
        options.env.extend(bucket.settings());
        let mut service = TestService::start_with(options).await;
        let expiring = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/small/", 2) })).await.id();
        finished(service.caller(), &expiring, Duration::from_secs(60)).await;

        // What there is to tidy is the task of the worker that lives on, and it stands before the bucket.
        bucket.fall_silent();
        let name = service.worker_name(1);
        let mine = format!("UPDATE lease SET holder = (SELECT id FROM worker_node WHERE name = '{name}')");
        service.execute(&mine).await;
        service.execute("UPDATE job SET expires_at = 1").await;
        wait_until("the bucket is asked in vain", || async { bucket.is_waited_for().then_some(()) }).await;

        let urls = site.urls("/slow?ms=6000&n=", PAGES);
        let id = service.post("/v2/batch/scrape", &json!({ "urls": urls })).await.id();
        wait_until("both workers are full", || async {
            (site.hit_count("/slow").await == PAGES as u64).then_some(())
        })
        .await;
        service.kill_worker(0);
        let died = Stopwatch::start();
        // A call of the bucket lasts for 60 s.
        wait_until_within(Duration::from_secs(60), "the dead worker's pages are in work again", || async {
            (site.hit_count("/slow").await == PAGES as u64 * 3 / 2).then_some(())
        })
        .await;
        println!("the pages are in work again after {:.1} s", died.elapsed().as_secs_f64());
        let status = finished(service.caller(), &id, Duration::from_secs(60)).await;
        assert_eq!((&status["completed"], &status["creditsUsed"]), (&json!(PAGES), &json!(PAGES)));
    }

    async fn a_worker_that_froze_and_woke_up_does_no_harm(database) {
        if !wanted() {
            return;
        }
        let site = FixtureSite::start().await;
        let service = TestService::start_with(ServiceOptions::new(database).workers(2)).await;
        let mut urls = site.urls("/slow?ms=1500&n=", 120);
        urls.extend(site.urls("/mix/", 200));
        let id = service.post("/v2/batch/scrape", &json!({ "urls": urls })).await.id();
        wait_until("pages are in work", || async { (site.hit_count("/slow").await > 20).then_some(()) }).await;
        let worker = service.processes().into_iter().find(|process| process.command.contains("weir-worker")).unwrap();
        let signal = |name: &str| Command::new("kill").args([name, &worker.id.to_string()]).status().unwrap();
        signal("-STOP");
        let status = finished(service.caller(), &id, Duration::from_secs(120)).await;
        signal("-CONT");
        intact(&site, &service, &id, &urls, &status).await;
        // What the woken worker still had in hand must not change the numbers.
        service.post("/v2/scrape", &json!({ "url": site.url("/small/1") })).await.ok();
        let again = service.get(&format!("/v2/batch/scrape/{id}?limit=1")).await.ok();
        assert_eq!((&again["completed"], &again["creditsUsed"]), (&status["completed"], &status["creditsUsed"]));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_survives_five_restarts_of_postgres() {
    if wanted() && Database::postgres().is_some() {
        survives_postgres_restarts(800, 5).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_that_is_told_to_stop_does_not_wait_for_a_silent_bucket() {
    if !wanted() {
        return;
    }
    let (pages, bucket) = (OwnPages::start().await, MuteBucket::start().await);
    let mut options = ServiceOptions::new(Database::Sqlite);
    options.env.extend(bucket.settings());
    let mut service = TestService::start_with(options).await;
    let id = super::batch_of_a_large_page(&service, &pages).await;
    finished(service.caller(), &id, Duration::from_secs(60)).await;
    bucket.fall_silent();
    let (caller, path) = (service.caller().clone(), format!("/v2/batch/scrape/{id}"));
    let reader = tokio::spawn(async move { caller.get(&path).await });
    wait_until("the bucket is asked in vain", || async { bucket.is_waited_for().then_some(()) }).await;
    // A call of the bucket lasts for 60 s, an answer at a stop for 20.
    let mut api = service.take_api();
    assert!(api.terminate(Duration::from_secs(40)).success(), "{}", api.tail(40));
    reader.abort();
    service.stop();
}

/// A bucket that takes whatever is put there, until it answers nobody any more.
pub(super) struct MuteBucket {
    address: SocketAddr,
    is_silent: Arc<AtomicBool>,
    /// Requests that have not been answered and whose callers still wait.
    waiting: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl MuteBucket {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (is_silent, waiting) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (silent, count) = (is_silent.clone(), waiting.clone());
        let task = tokio::spawn(async move {
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                let (silent, count) = (silent.clone(), count.clone());
                tokio::spawn(async move {
                    let mut bytes = [0; 16_384];
                    // A probe and a removal are read in one piece.
                    while socket.read(&mut bytes).await.is_ok_and(|read| read > 0) {
                        if silent.load(Ordering::Relaxed) {
                            count.fetch_add(1, Ordering::Relaxed);
                            while socket.read(&mut bytes).await.is_ok_and(|read| read > 0) {}
                            count.fetch_sub(1, Ordering::Relaxed);
                            return;
                        }
                        let answer = "HTTP/1.1 200 OK\r\netag: \"1\"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                        let _ = socket.write_all(answer.as_bytes()).await;
                        let _ = socket.shutdown().await;
                    }
                });
            }
        });
        Self { address, is_silent, waiting, task }
    }

    pub(super) fn settings(&self) -> [(&'static str, String); 5] {
        [
            ("WEIR_BLOBS", "s3://pages/weir".to_owned()),
            ("AWS_ENDPOINT_URL", format!("http://{}", self.address)),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "tests".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "tests".to_owned()),
        ]
    }

    pub(super) fn fall_silent(&self) {
        self.is_silent.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
}

impl Drop for MuteBucket {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A small file system of its own; unmounted when dropped.
pub(crate) struct SmallDisk(pub(crate) PathBuf);

impl SmallDisk {
    /// `None` where this user may not mount.
    pub(crate) fn mount(size: &str) -> Option<Self> {
        let folder = weir_tests::temporary("disk");
        std::fs::create_dir_all(&folder).unwrap();
        let options = format!("size={size},mode=0755");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&folder).status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self(folder));
        }
        let _ = std::fs::remove_dir(&folder);
        None
    }

    /// Writes a file until nothing more fits.
    pub(crate) fn fill(&self) -> PathBuf {
        let path = self.0.join("ballast");
        let mut file = File::create(&path).unwrap();
        for size in [1 << 20, 1 << 12, 1] {
            let block = vec![1u8; size];
            while file.write_all(&block).is_ok() {}
        }
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_told_and_the_work_goes_on_when_space_returns() {
    if !wanted() {
        return;
    }
    let Some(disk) = SmallDisk::mount("96m") else {
        eprintln!("skipped: this user may not mount a small file system");
        return;
    };
    let site = FixtureSite::start().await;
    let file = disk.0.join("weir.db");
    let options = ServiceOptions::new(Database::Sqlite)
        .env("DATABASE_URL", format!("sqlite://{}", file.display()))
        .env("WEIR_BLOBS", format!("file://{}", disk.0.join("blobs").display()));
    let service = TestService::start_with(options).await;

    let mut urls = site.urls("/mix/", 400);
    urls.extend(site.urls("/slow?ms=400&n=", 100));
    let body = json!({ "urls": urls, "maxConcurrency": 8, "formats": ["markdown", "rawHtml"] });
    let id = service.post("/v2/batch/scrape", &body).await.id();
    let path = format!("/v2/batch/scrape/{id}?limit=1");
    wait_until("the batch runs", || async {
        (service.get(&path).await.ok()["completed"].as_u64()? > 20).then_some(())
    })
    .await;

    let ballast = disk.fill();
    let refused = wait_until_within(Duration::from_secs(60), "a request is refused for want of space", || async {
        let answer = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/small/", 2000) })).await;
        (answer.status != 200).then_some(answer)
    })
    .await;
    assert!(matches!(refused.status, 500 | 503) && refused.is_base_error(), "{}", refused.text);
    assert_eq!(service.anonymous().get("/healthz").await.status, 200);

    std::fs::remove_file(ballast).unwrap();
    let status = finished(service.caller(), &id, Duration::from_secs(120)).await;
    assert_eq!(status["completed"], urls.len(), "{status:.300}");
    service.post("/v2/scrape", &json!({ "url": site.url("/small/1") })).await.ok();

    let mut connection = sqlx::SqliteConnection::connect(&format!("sqlite://{}", file.display())).await.unwrap();
    let verdict: String = sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut connection).await.unwrap();
    assert_eq!(verdict, "ok");
    drop(service);
}
