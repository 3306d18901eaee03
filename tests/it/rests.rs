//! Sites that want to be asked later (429 and 503 with `Retry-After`): a scrape waits within its time, jobs put the host's
//! pages off, and nobody believes everything.

use std::time::Duration;

use serde_json::{Value, json};
use weir_shared::clock::Stopwatch;
use weir_tests::{
    Caller, FixtureSite, ServiceOptions, SiteOptions, TestService, both_databases, documents_of, finished, first_on,
    markdown_of, wait_until,
};

const BOUND: Duration = Duration::from_secs(60);

/// Values of `Retry-After` that say nothing, or nothing to wait for.
const HOSTILE: &[&str] = &[
    "1e30",
    "-5",
    "soon",
    "1.5",
    "99999999999999999999999999",
    "7201",
    "Fri%2C%2031%20Dec%209999%2023%3A59%3A59%20GMT",
    "Fri%2C%2099%20Dec%202026%2023%3A59%3A59%20GMT",
    "%F0%9F%98%80",
];

async fn two_hosts() -> FixtureSite {
    FixtureSite::start_with(SiteOptions { more_hosts: vec!["127.0.0.2".to_owned()], tls: false }).await
}

async fn batch(caller: &Caller, urls: &[String]) -> String {
    caller.post("/v2/batch/scrape", &json!({ "urls": urls })).await.id()
}

fn statuses(documents: &[Value]) -> Vec<i64> {
    documents.iter().map(|document| document["metadata"]["statusCode"].as_i64().unwrap()).collect()
}

/// Requests for pages below `prefix` in the first `seconds` since the first of them.
async fn early(site: &FixtureSite, prefix: &str, seconds: f64) -> usize {
    let times = site.times(prefix).await;
    times.iter().filter(|at| **at < times[0] + seconds).count()
}

first_on! {
    sqlite:

    async fn a_scrape_waits_within_its_time_and_asks_again(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let scrape = async |path: &str, timeout: u32| {
            let asked = json!({ "url": site.url(path), "timeout": timeout });
            let took = Stopwatch::start();
            let document = service.post("/v2/scrape", &asked).await.ok()["data"].clone();
            (document["metadata"]["statusCode"].as_i64().unwrap(), document, took.elapsed())
        };
        for (key, more) in [("a", ""), ("b", "&form=date"), ("c", "&status=503")] {
            let (status, document, took) = scrape(&format!("/rests/{key}/1?for=2{more}"), 60_000).await;
            assert!(status == 200 && markdown_of(&document).contains("MAIN"), "{key}: {document}");
            assert!(took >= Duration::from_secs(2), "{key}: {took:?}");
            assert_eq!(site.hit_count(&format!("/rests/{key}/")).await, 2, "{key}");
        }
        // In a browser, too, where nothing has been done but to look; there the site is asked once more for when.
        let look = json!([{ "type": "scrape" }]);
        let formats = json!(["markdown", "screenshot"]);
        let shot =
            json!({ "url": site.url("/rests/shot/1?for=3"), "formats": formats, "actions": look, "timeout": 90_000 });
        let document = service.post("/v2/scrape", &shot).await.ok()["data"].clone();
        assert!(document["metadata"]["statusCode"] == 200 && document["screenshot"].is_string(), "{document}");
        assert_eq!(site.hit_count("/rests/shot/").await, 3);
        let acts = json!({ "url": site.url("/rests/acts/1?for=3"), "actions": [{ "type": "click", "selector": "body" }], "timeout": 90_000 });
        let document = service.post("/v2/scrape", &acts).await.ok()["data"].clone();
        assert_eq!((statuses(&[document]), site.hit_count("/rests/acts/").await), (vec![429], 1), "actions have their effect once");
        // What its time is too short for is told at once.
        let (status, document, took) = scrape("/rests/d/1?for=60", 40_000).await;
        assert!(status == 429 && took < Duration::from_secs(30), "{took:?} {document}");
        assert_eq!(site.hit_count("/rests/d/").await, 1);
        // Who always says "now" is asked less and less.
        let (status, _, took) = scrape("/status/429?retry_after=0", 7_400).await;
        assert!(status == 429 && took < Duration::from_millis(7_200), "{took:?}");
        assert_eq!(site.hit_count("/status/429").await, 3, "at once, after one second and after two");
        let (status, _, _) = scrape("/flaky/e?fail=1&status=429&retry_after=0", 60_000).await;
        assert_eq!(status, 200);
        // Other statuses are what they are, whatever they say besides.
        let (status, ..) = scrape("/status/500?retry_after=1", 60_000).await;
        assert_eq!((status, site.hit_count("/status/500").await), (500, 1));
    }
}

both_databases! {
    async fn hostile_pauses_keep_nobody_waiting(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let took = Stopwatch::start();
        for (n, value) in HOSTILE.iter().enumerate() {
            let url = site.url(&format!("/rests/hostile{n}/1?for=600&value={value}"));
            let document = service.post("/v2/scrape", &json!({ "url": url })).await.ok()["data"].clone();
            assert_eq!(statuses(&[document]), [429], "{value}");
        }
        let urls: Vec<String> =
            (0..).zip(HOSTILE).map(|(n, value)| site.url(&format!("/rests/job{n}/1?for=600&value={value}"))).collect();
        let id = batch(service.caller(), &urls).await;
        finished(service.caller(), &id, BOUND).await;
        let documents = documents_of(service.caller(), &id).await;
        assert_eq!(statuses(&documents), [429].repeat(HOSTILE.len()));
        assert_eq!(site.hit_count("/rests/").await, 2 * HOSTILE.len() as u64, "each once");
        // Any of them would wait for all of its time, a minute.
        assert!(took.elapsed() < Duration::from_secs(55), "{:?}", took.elapsed());
    }
}

first_on! {
    sqlite:

    async fn a_batch_puts_the_pages_of_one_host_off_and_goes_on_with_the_other(database) {
        let site = two_hosts().await;
        let options = ServiceOptions::new(database).workers(1).env("WEIR_WORKER_CONCURRENCY", "2");
        let options = options.env("WEIR_ALLOW_NETS", "127.0.0.0/8");
        let service = TestService::start_with(options).await;
        let mut urls = site.urls("/rests/batch/", 10).into_iter().map(|url| url + "?for=10").collect::<Vec<_>>();
        urls.extend((0..20).map(|n| site.url_at("127.0.0.2", &format!("/small/{n}"))));
        let id = batch(service.caller(), &urls).await;
        let status = finished(service.caller(), &id, BOUND).await;
        assert_eq!((&status["status"], &status["completed"]), (&json!("completed"), &json!(30)));
        let documents = documents_of(service.caller(), &id).await;
        assert!(statuses(&documents).iter().all(|status| *status == 200), "{:?}", statuses(&documents));
        assert_eq!(early(&site, "/rests/batch/", 9.9).await, 2, "only those that were asked for before it was known");
        let (rests, others) = (site.times("/rests/batch/").await, site.times("/small/").await);
        assert_eq!((rests.len(), others.len()), (12, 20));
        assert!(others.iter().all(|at| *at < rests[0] + 10.0), "no slot sleeps: {rests:?} {others:?}");
    }
}

both_databases! {
    async fn a_page_has_so_many_tries_and_then_the_sites_answer(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let id = batch(service.caller(), &[site.url("/status/429?retry_after=1")]).await;
        let status = finished(service.caller(), &id, BOUND).await;
        assert_eq!((&status["status"], &status["completed"]), (&json!("completed"), &json!(1)));
        assert_eq!(statuses(&documents_of(service.caller(), &id).await), [429]);
        let times = site.times("/status/429").await;
        assert!(times.len() == 3 && times.windows(2).all(|two| two[1] - two[0] >= 1.0), "{times:?}");
    }

    async fn a_crawl_goes_on_after_the_rest(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let url = site.url("/rests/crawl/0?for=4&after=1&links=8");
        let asked = json!({ "url": url, "sitemap": "skip", "crawlEntireDomain": true });
        let id = service.post("/v2/crawl", &asked).await.id();
        let path = format!("/v2/crawl/{id}");
        let status = wait_until("the crawl ends", || async {
            let status = service.get(&path).await.ok();
            (status["status"] != "scraping").then_some(status)
        })
        .await;
        assert_eq!((&status["status"], &status["completed"]), (&json!("completed"), &json!(9)), "{status}");
        let documents = status["data"].as_array().unwrap();
        assert!(statuses(documents).iter().all(|status| *status == 200), "{:?}", statuses(documents));
    }
}

first_on! {
    postgres:

    async fn a_rest_outlives_its_worker(database) {
        let site = FixtureSite::start().await;
        let options = ServiceOptions::new(database).workers(1).env("WEIR_WORKER_CONCURRENCY", "2");
        let mut service = TestService::start_with(options).await;
        let urls: Vec<String> = site.urls("/rests/killed/", 6).into_iter().map(|url| url + "?for=9").collect();
        let id = batch(service.caller(), &urls).await;
        wait_until("all pages are put off", || async {
            let was_asked = site.hit_count("/rests/killed/").await >= 2;
            let queue = service.get("/v2/team/queue-status").await.ok();
            (was_asked && queue["waitingJobsInQueue"] == 6).then_some(())
        })
        .await;
        service.kill_worker(0);
        service.start_worker(0);
        finished(service.caller(), &id, BOUND).await;
        let documents = documents_of(service.caller(), &id).await;
        assert_eq!(statuses(&documents), [200].repeat(6));
        assert_eq!(early(&site, "/rests/killed/", 8.9).await, 2, "{:?}", site.times("/rests/killed/").await);
    }
}

both_databases! {
    async fn a_teams_pause_is_no_other_teams(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let other = service.new_team("other");
        let first = batch(service.caller(), &[site.url("/rests/team/1?for=600")]).await;
        wait_until("the site is asked", || async { (site.hit_count("/rests/").await == 1).then_some(()) }).await;
        let theirs = batch(&other, &[site.url("/small/1")]).await;
        finished(&other, &theirs, BOUND).await;
        // A scrape asks: somebody is on the line, and the site may have changed its mind.
        let asked = json!({ "url": site.url("/small/2") });
        assert_eq!(service.post("/v2/scrape", &asked).await.ok()["data"]["metadata"]["statusCode"], 200);
        let second = batch(service.caller(), &[site.url("/small/3")]).await;
        wait_until("it is put off", || async {
            let queue = service.get("/v2/team/queue-status").await.ok();
            (queue["activeJobsInQueue"] == 0 && queue["waitingJobsInQueue"] == 2).then_some(())
        })
        .await;
        assert_eq!(site.hit_count("/small/3").await, 0);
        for id in [first, second] {
            service.delete(&format!("/v2/batch/scrape/{id}")).await.ok();
        }
    }

    async fn a_rest_past_the_end_of_the_job_is_not_waited_for(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start_with(ServiceOptions::new(database).env("WEIR_RESULT_TTL", "60s")).await;
        let id = batch(service.caller(), &[site.url("/rests/end/1?for=90")]).await;
        finished(service.caller(), &id, BOUND).await;
        assert_eq!(statuses(&documents_of(service.caller(), &id).await), [429]);
    }
}
