//! The cache of pages (spec 4.7, wire 2.3, 3.2): who is answered from it, for what price, and who is not.

use std::time::Duration;

use serde_json::{Value, json};
use weir_tests::{
    Caller, Database, FixtureSite, ServiceOptions, TestService, both_databases, documents_of, ended_at, finished,
};

const BOUND: Duration = Duration::from_secs(60);

async fn service(database: Database) -> TestService {
    TestService::start_with(ServiceOptions::new(database).env("WEIR_CACHE_SIZE", "100MB")).await
}

async fn scrape(caller: &Caller, body: Value) -> Value {
    caller.post("/v2/scrape", &body).await.ok()["data"].clone()
}

fn state(document: &Value) -> Option<&str> {
    document["metadata"]["cacheState"].as_str()
}

both_databases! {
    async fn a_page_is_asked_for_once_and_answered_to_all_who_ask_the_same(database) {
        let site = FixtureSite::start().await;
        let service = service(database).await;
        let caller = service.caller();
        let url = site.url("/cache/a");

        let first = scrape(caller, json!({ "url": url, "formats": ["markdown", "links"] })).await;
        assert_eq!((state(&first), first["metadata"].get("cachedAt")), (Some("miss"), None), "{first}");
        let again = scrape(caller, json!({ "url": url, "formats": ["links", "markdown"], "timeout": 9_000 })).await;
        assert_eq!((state(&again), &again["markdown"]), (Some("hit"), &first["markdown"]), "{again}");
        assert!(again["metadata"]["cachedAt"].as_str().unwrap().ends_with('Z'), "{again}");
        assert_ne!(again["metadata"]["scrapeId"], first["metadata"]["scrapeId"]);
        assert_eq!(again["metadata"]["creditsUsed"], 1);
        assert_eq!(site.hit_count("/cache/a").await, 1);

        // A cached answer has an id of its own and can be read again, as any scrape.
        let id = again["metadata"]["scrapeId"].as_str().unwrap();
        assert_eq!(caller.get(&format!("/v2/scrape/{id}")).await.ok()["data"], again);
        let activity = caller.get("/v2/team/activity?endpoint=scrape").await.ok();
        assert_eq!((&activity["data"][0]["id"], activity["data"].as_array().unwrap().len()), (&json!(id), 2));
        let used = caller.get("/v2/team/credit-usage/historical").await.ok();
        assert_eq!(used["periods"][0]["creditsUsed"], 2, "{used}");

        // Another team shares it, the pages of a batch come from it, each beside pages that have to be asked for.
        let stranger = service.new_team("stranger");
        let theirs = scrape(&stranger, json!({ "url": url, "formats": ["markdown", "links"] })).await;
        assert_eq!(state(&theirs), Some("hit"));
        let batch = json!({ "urls": [url, site.url("/cache/b")], "formats": ["markdown", "links"] });
        let batch = caller.post("/v2/batch/scrape", &batch).await.id();
        let ended = finished(caller, &batch, BOUND).await;
        assert_eq!((&ended["completed"], &ended["creditsUsed"]), (&json!(2), &json!(2)));
        let documents = documents_of(caller, &batch).await;
        let mut states: Vec<_> = documents.iter().map(|d| state(d).unwrap()).collect();
        states.sort_unstable();
        assert_eq!(states, ["hit", "miss"]);
        assert_eq!((site.hit_count("/cache/a").await, site.hit_count("/cache/b").await), (1, 1));

        // Other options are another page; an age of 0 asks the site and renews what is kept.
        assert_eq!(state(&scrape(caller, json!({ "url": url, "formats": ["html"] })).await), Some("miss"));
        let fresh = scrape(caller, json!({ "url": url, "formats": ["markdown", "links"], "maxAge": 0 })).await;
        assert_eq!(state(&fresh), None);
        assert!(fresh["markdown"].as_str().unwrap().contains("fetch number 3"), "{fresh}");
        let renewed = scrape(caller, json!({ "url": url, "formats": ["markdown", "links"] })).await;
        assert_eq!((state(&renewed), &renewed["markdown"]), (Some("hit"), &fresh["markdown"]));

        // A map knows what the team has stored, and only that.
        let map = async |caller: &Caller| {
            let body = json!({ "url": site.url("/"), "sitemap": "skip", "filterByPath": false, "limit": 5000 });
            caller.post("/v2/map", &body).await.ok()["links"].to_string()
        };
        assert!(map(caller).await.contains("/cache/b"));
        assert!(!map(&stranger).await.contains("/cache/b"));
    }

    async fn only_the_cache_is_asked_where_the_caller_says_so(database) {
        let site = FixtureSite::start().await;
        let service = service(database).await;
        let caller = service.caller();
        let url = site.url("/cache/only");
        let miss = async |body: Value, code: &str| {
            let answer = caller.post("/v2/scrape", &body).await;
            assert_eq!((answer.status, answer.code()), (404, code), "{}", answer.text);
            assert!(answer.is_base_error());
        };
        miss(json!({ "url": url, "minAge": 1 }), "SCRAPE_NO_CACHED_DATA").await;
        miss(json!({ "url": url, "lockdown": true }), "SCRAPE_LOCKDOWN_CACHE_MISS").await;
        assert_eq!(site.hit_count("/cache/only").await, 0, "the site was not asked");

        scrape(caller, json!({ "url": url })).await;
        let kept = scrape(caller, json!({ "url": url, "minAge": 1, "maxAge": 1 })).await;
        assert_eq!((state(&kept), &kept["metadata"]["creditsUsed"]), (Some("hit"), &json!(1)));
        miss(json!({ "url": url, "minAge": 3_600_000 }), "SCRAPE_NO_CACHED_DATA").await;
        let locked = scrape(caller, json!({ "url": url, "lockdown": true })).await;
        assert_eq!((state(&locked), &locked["metadata"]["creditsUsed"]), (Some("hit"), &json!(5)));
        miss(json!({ "url": url, "lockdown": true, "headers": { "X-A": "1" } }), "SCRAPE_LOCKDOWN_CACHE_MISS").await;

        // In a batch each page for itself: a hit costs 5, a miss 1.
        let batch = json!({ "urls": [url, site.url("/cache/none")], "lockdown": true });
        let id = caller.post("/v2/batch/scrape", &batch).await.id();
        let path = format!("/v2/batch/scrape/{id}");
        let ended = ended_at(caller, &path, BOUND).await;
        assert_eq!((&ended["completed"], &ended["creditsUsed"]), (&json!(1), &json!(6)), "{ended}");
        let errors = caller.get(&format!("{path}/errors")).await.ok();
        assert_eq!(errors["errors"][0]["code"], "SCRAPE_LOCKDOWN_CACHE_MISS");
        assert_eq!((site.hit_count("/cache/only").await, site.hit_count("/cache/none").await), (1, 0));
        let crawl = caller.post("/v2/crawl", &json!({ "url": url, "scrapeOptions": { "lockdown": true } })).await;
        assert_eq!(crawl.status, 400, "{}", crawl.text);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_a_callers_own_or_no_good_page_is_not_cached() {
    let site = FixtureSite::start().await;
    let service = service(Database::Sqlite).await;
    let caller = service.caller();
    // What keeps a page out of the cache, each asked for twice.
    let click = json!([{ "type": "wait", "milliseconds": 1 }]);
    for (path, options, shown) in [
        ("/cache/headers", json!({ "headers": { "Cookie": "a=1" } }), None),
        ("/cache/actions", json!({ "actions": click }), None),
        ("/cache/enhanced", json!({ "proxy": "enhanced" }), None),
        ("/cache/unkept", json!({ "storeInCache": false }), Some("miss")),
        ("/flaky/cache?fail=9&status=503", json!({}), Some("miss")),
        ("/status/404", json!({}), Some("miss")),
    ] {
        let mut body = options;
        body["url"] = json!(site.url(path));
        for _ in 0..2 {
            assert_eq!(state(&scrape(caller, body.clone()).await), shown, "{path}");
        }
        let count = site.hit_count(path.split('?').next().unwrap()).await;
        assert!(count >= 2, "{path}: {count}");
    }
    // An address that holds a password stays with its team.
    let own = site.url("/cache/own").replace("http://", "http://ada:secret@");
    assert_eq!(state(&scrape(caller, json!({ "url": own })).await), Some("miss"));
    assert_eq!(state(&scrape(caller, json!({ "url": own })).await), Some("hit"));
    assert_eq!(state(&scrape(&service.new_team("stranger"), json!({ "url": own })).await), Some("miss"));

    // Pages of a crawl are asked for, and kept.
    scrape(caller, json!({ "url": site.url("/small/1") })).await;
    let crawl = json!({ "url": site.url("/small/1"), "limit": 1, "sitemap": "skip" });
    let id = caller.post("/v2/crawl", &crawl).await.id();
    let ended = ended_at(caller, &format!("/v2/crawl/{id}"), BOUND).await;
    assert_eq!(state(&ended["data"][0]), None, "{ended}");
    assert_eq!(site.hit_count("/small/1").await, 2);

    // Without room nothing is kept.
    let service = TestService::start_with(ServiceOptions::new(Database::Sqlite).env("WEIR_CACHE_SIZE", "0")).await;
    for _ in 0..2 {
        assert_eq!(state(&scrape(service.caller(), json!({ "url": site.url("/cache/off") })).await), None);
    }
    assert_eq!(site.hit_count("/cache/off").await, 2);
    let refused = service.post("/v2/scrape", &json!({ "url": site.url("/cache/off"), "minAge": 1 })).await;
    assert_eq!(refused.code(), "SCRAPE_NO_CACHED_DATA", "{}", refused.text);
}
