//! Workers die while they crawl: no page is lost, delivered twice or asked for more than three times.

use weir_shared::clock::Stopwatch;
use weir_tests::{long_tests, wait_until_within};

use super::*;

/// Kills one worker after another while the first two thirds of the pages are done, and checks what must hold then.
async fn survive(database: Database, kills: usize) {
    let site = FixtureSite::start().await;
    let mut service = TestService::start_with(ServiceOptions::new(database).workers(3)).await;
    let webhook = json!({ "url": site.webhook_url("kills"), "events": ["page", "completed"] });
    let options =
        json!({ "ignoreQueryParameters": true, "webhook": webhook, "sitemap": "include", "maxConcurrency": 6 });
    let path = begin(&service, &site.url("/crawl/"), options).await;
    let began = Stopwatch::start();
    for kill in 0..kills {
        let due = (kill * 700 / kills) as u64;
        wait_until_within(BOUND, "pages enough for the next kill", || async {
            let status = service.get(&format!("{path}?limit=1")).await.ok();
            assert_eq!(status["status"], "scraping", "the crawl ended before kill {kill}");
            (status["completed"].as_u64()? >= due).then_some(())
        })
        .await;
        service.restart_worker(kill % service.worker_count());
    }
    let done = end(&service, &site, path).await;
    println!("1,111 pages through {kills} kills in {:.1} s", began.elapsed().as_secs_f64());
    assert_eq!(done.set(), strs(&tree(3)));
    assert_eq!(done.pages.len(), 1_111);
    for field in ["total", "completed", "creditsUsed"] {
        assert_eq!(done.status[field], 1_111, "{field}");
    }
    let errors = service.get(&format!("{}/errors", done.path)).await.ok();
    assert_eq!(errors["errors"], json!([]));
    let hits = site.hits("/crawl/").await;
    assert_eq!(hits.len(), 1_111);
    let most = hits.values().filter_map(Value::as_u64).max().unwrap();
    println!(
        "{} requests for 1,111 pages, at most {most} for one",
        hits.values().filter_map(Value::as_u64).sum::<u64>()
    );
    assert!(most <= 3, "a page was asked for {most} times");
    let delivered = wait_until("a webhook for each page, and completed", || async {
        let mut pages: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut is_over = false;
        for event in site.events("kills").await {
            is_over |= event["type"] == "crawl.completed";
            if let Some(page) = event["data"][0]["metadata"]["scrapeId"].as_str() {
                pages.entry(page.to_owned()).or_default().insert(event["webhookId"].as_str().unwrap().to_owned());
            }
        }
        is_over.then_some(pages)
    })
    .await;
    assert_eq!(delivered.len(), 1_111);
    assert!(delivered.values().all(|ids| ids.len() == 1), "one event for each page");
}

first_on! {
    postgres:

    async fn a_crawl_survives_the_death_of_workers(database) {
        survive(database, 3).await;
    }
}

both_databases! {
    async fn a_crawl_survives_ten_deaths(database) {
        if long_tests() {
            survive(database, 10).await;
        }
    }
}
