//! What pages of a site have in common is left out of their main content once ten are known (spec 4.7), for whom and from
//! what it is learned, and how a caller has it back.

use std::time::Duration;

use serde_json::{Value, json};
use weir_tests::{
    Caller, Database, FixtureSite, ServiceOptions, TestService, both_databases, documents_of, finished, markdown_of,
};

const BOUND: Duration = Duration::from_secs(60);
/// The sites of one template each.
const KINDS: [&str; 3] = ["gazette", "outlet", "clinic"];

async fn service(database: Database) -> TestService {
    TestService::start_with(ServiceOptions::new(database).env("WEIR_CACHE_SIZE", "100MB")).await
}

/// Scrapes all of these; each of them as it was answered.
async fn batch(caller: &Caller, urls: &[String], options: Value) -> Vec<Value> {
    let mut body = options;
    body["urls"] = json!(urls);
    let id = caller.post("/v2/batch/scrape", &body).await.id();
    finished(caller, &id, BOUND).await;
    let documents = documents_of(caller, &id).await;
    assert_eq!(documents.len(), urls.len());
    documents
}

async fn scrape(caller: &Caller, body: Value) -> Value {
    caller.post("/v2/scrape", &body).await.ok()["data"].clone()
}

/// Pages of a kind, from a number to another.
fn pages(site: &FixtureSite, kind: &str, numbers: std::ops::Range<u32>) -> Vec<String> {
    numbers.map(|n| site.url(&format!("/{kind}/{n}"))).collect()
}

/// Text without what markdown adds to it.
fn plain(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).collect()
}

/// Of what a page's template says: characters, and how many of them are in this text. All that the page says is in it.
async fn boilerplate(site: &FixtureSite, document: &Value) -> (usize, usize) {
    let url = document["metadata"]["sourceURL"].as_str().unwrap();
    let path = url.strip_prefix(&site.url("")).unwrap();
    let (truth, text) = (site.truth(path).await, plain(markdown_of(document)));
    for said in &truth.main {
        assert!(text.contains(&plain(said)), "{said} is not in {path}: {}", markdown_of(document));
    }
    let left = truth.boilerplate.iter().filter(|said| text.contains(&plain(said)));
    (truth.boilerplate.iter().map(|said| plain(said).len()).sum(), left.map(|said| plain(said).len()).sum())
}

both_databases! {
    async fn what_most_pages_of_a_site_have_is_left_out_once_ten_are_known(database) {
        let site = FixtureSite::start().await;
        let mut service = service(database).await;
        let caller = service.caller().clone();
        for kind in KINDS {
            let (mut all, mut before, mut after) = (0, 0, 0);
            for document in batch(&caller, &pages(&site, kind, 0..9), json!({})).await {
                let (whole, left) = boilerplate(&site, &document).await;
                assert_eq!((left, document["metadata"].get("templateChars")), (whole, None), "nine are too few: {document}");
            }
            batch(&caller, &pages(&site, kind, 9..14), json!({})).await;
            let next = pages(&site, kind, 14..30);
            for document in batch(&caller, &next, json!({ "siteTemplates": false })).await {
                assert!(document["metadata"].get("templateChars").is_none(), "{document}");
                before += boilerplate(&site, &document).await.1;
            }
            for document in batch(&caller, &next, json!({ "formats": ["markdown", "html"] })).await {
                let (whole, left) = boilerplate(&site, &document).await;
                (all, after) = (all + whole, after + left);
                assert_eq!(document["metadata"]["cacheState"], "hit");
                assert!(document["metadata"]["templateChars"].as_u64().unwrap() as usize >= (whole - left) / 2);
                let html = plain(document["html"].as_str().unwrap());
                assert!(left > 0 || site.truth(&format!("/{kind}/0")).await.boilerplate.iter().all(|said| !html.contains(&plain(said))));
            }
            eprintln!("{kind}: of {all} characters {before} are left without templates, and {after} with them");
            assert!(before == all && after * 3 <= before, "{kind}: {after} of {before}");
        }

        // Whole pages, parts that are chosen, tracked pages and what a caller has switched off are as the page is.
        let url = site.url("/gazette/3");
        let whole = |document: &Value| markdown_of(document).contains("answers every letter");
        assert!(!whole(&scrape(&caller, json!({ "url": url })).await));
        for options in [
            json!({ "onlyMainContent": false }),
            json!({ "includeTags": ["article"] }),
            json!({ "formats": ["markdown", "changeTracking"] }),
            json!({ "siteTemplates": false }),
        ] {
            let mut body = options;
            body["url"] = json!(url);
            assert!(whole(&scrape(&caller, body.clone()).await), "{body}");
        }
        // What this team's pages have said is nothing to another, whose pages come from the same store.
        let stranger = service.new_team("stranger");
        let theirs = scrape(&stranger, json!({ "url": url })).await;
        assert!(whole(&theirs) && theirs["metadata"]["cacheState"] == "hit", "{theirs}");
        // A worker that begins again knows what the one before has learned.
        service.stop();
        service.start_api();
        service.start_worker(0);
        service.ready().await;
        let again = scrape(&caller, json!({ "url": site.url("/gazette/77") })).await;
        assert!(!whole(&again) && again["metadata"]["cacheState"] == "miss", "{again}");
    }

    async fn a_page_that_comes_often_keeps_what_it_says(database) {
        let site = FixtureSite::start().await;
        let service = service(database).await;
        let caller = service.caller();
        let often: Vec<String> = (0..30).map(|n| site.url(&format!("/gazette/5?session={n}"))).collect();
        let first = scrape(caller, json!({ "url": site.url("/gazette/5") })).await;
        for _ in 0..2 {
            for document in batch(caller, &often, json!({ "maxAge": 0 })).await {
                assert_eq!(document["markdown"], first["markdown"]);
            }
        }
    }

    async fn nothing_is_learned_from_what_is_the_callers_own(database) {
        let site = FixtureSite::start().await;
        let service = service(database).await;
        let caller = service.caller();
        for (kind, options) in KINDS.into_iter().zip([
            json!({ "headers": { "X-Mine": "1" } }),
            json!({ "storeInCache": false }),
            json!({ "excludeTags": [".none"] }),
        ]) {
            batch(caller, &pages(&site, kind, 0..15), options.clone()).await;
            let next = scrape(caller, json!({ "url": site.url(&format!("/{kind}/20")) })).await;
            let (whole, left) = boilerplate(&site, &next).await;
            assert_eq!(left, whole, "{options}");
        }
        // What others have taught is used for them all the same.
        batch(caller, &pages(&site, "gazette", 0..15), json!({})).await;
        let mine = json!({ "url": site.url("/gazette/21"), "headers": { "X-Mine": "1" } });
        assert!(boilerplate(&site, &scrape(caller, mine).await).await.1 == 0);
    }
}
