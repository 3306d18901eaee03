//! Monitors that are changed: what a change does not name stays as it was.

use serde_json::{Value, json};
use weir_tests::{Database, OwnPages, SearchStandIn, TestService};

use super::{are, check, options, patch, watch};

fn search(words: &str) -> Value {
    json!([{"type": "search", "id": "s", "queries": [words], "searchWindow": "7d"}])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_searched_for_is_changed_without_saying_again_that_nobody_judges() {
    let backend = SearchStandIn::finding(vec!["https://example.com/1".to_owned()]).await;
    let service = TestService::start_with(options(Database::Sqlite).env("WEIR_SEARCH_URL", &backend.url)).await;
    let caller = service.caller();
    let id = watch(caller, search("whales"), json!({"judgeEnabled": false})).await;
    let path = format!("/v2/monitor/{id}");
    let changed = patch(caller, &path, &json!({"targets": search("dolphins")})).await.ok()["data"].clone();
    assert_eq!((&changed["targets"][0]["queries"], &changed["judgeEnabled"]), (&json!(["dolphins"]), &json!(false)));
    assert_eq!(check(caller, &id).await["status"], "completed");

    // Somebody is to judge, so it has to be said by what; and so it stays.
    for aimless in [json!({"judgeEnabled": true}), json!({"judgeEnabled": true, "targets": search("x")})] {
        let refused = patch(caller, &path, &aimless).await;
        assert!(refused.status == 400 && refused.text.contains("goal is required"), "{aimless}: {}", refused.text);
    }
    let judged = patch(caller, &path, &json!({"goal": "whales"})).await.ok()["data"].clone();
    assert_eq!((&judged["goal"], &judged["judgeEnabled"]), (&json!("whales"), &json!(true)), "{judged}");
    let refused = patch(caller, &path, &json!({"goal": null})).await;
    assert!(refused.status == 400 && refused.text.contains("goal is required"), "{}", refused.text);
    patch(caller, &path, &json!({"targets": search("seals")})).await.ok();

    // Another goal has nobody judge who was told not to.
    patch(caller, &path, &json!({"judgeEnabled": false})).await.ok();
    let other = patch(caller, &path, &json!({"goal": "seals"})).await.ok()["data"].clone();
    assert_eq!((&other["goal"], &other["judgeEnabled"]), (&json!("seals"), &json!(false)), "{other}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn targets_that_are_changed_without_their_ids_keep_what_is_known_of_their_pages() {
    let own = OwnPages::start().await;
    let service = TestService::start_with(options(Database::Sqlite)).await;
    let caller = service.caller();
    let pages = ["tea", "cake", "milk"].map(|name| own.put(&format!("/{name}"), &format!("<p>There is {name}.</p>")));
    let scrape = |urls: &[String]| json!({"type": "scrape", "urls": urls});
    let crawl =
        json!({"type": "crawl", "url": own.put("/shop", "<p>A shop.</p>"), "crawlOptions": {"sitemap": "skip"}});
    let id = watch(caller, json!([scrape(&pages[..1]), scrape(&pages[1..2]), crawl]), json!({})).await;
    are(&check(caller, &id).await, &[("cake", "new"), ("shop", "new"), ("tea", "new")]);
    let path = format!("/v2/monitor/{id}");
    let ids = |monitor: &Value| {
        let targets = monitor["targets"].as_array().unwrap().iter();
        targets.map(|target| target["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let before = ids(&caller.get(&path).await.ok()["data"]);

    // One is as it was, one has an address more, one is new, in another order.
    let more = [pages[0].clone(), pages[2].clone()];
    let targets = json!([scrape(&more), scrape(&["https://example.com/".to_owned()]), scrape(&pages[1..2]), crawl]);
    let after = ids(&patch(caller, &path, &json!({"targets": targets})).await.ok()["data"]);
    assert_eq!([&after[0], &after[2], &after[3]], [&before[0], &before[1], &before[2]]);
    assert!(!before.contains(&after[1]), "{after:?}");
    let targets = json!([scrape(&more), scrape(&pages[1..2]), crawl]);
    patch(caller, &path, &json!({"targets": targets})).await.ok();
    are(&check(caller, &id).await, &[("cake", "same"), ("milk", "new"), ("shop", "same"), ("tea", "same")]);

    // An id that is said is that target's, whoever had the address.
    let named = json!([{"type": "scrape", "id": "mine", "urls": [pages[0]]}, scrape(&pages[..1])]);
    let named = ids(&patch(caller, &path, &json!({"targets": named})).await.ok()["data"]);
    assert_eq!(named, ["mine", before[0].as_str()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_shown_in_the_place_of_a_secret_does_not_become_one() {
    let service = TestService::start_with(options(Database::Sqlite)).await;
    let caller = service.caller();
    let page = json!([{"type": "scrape", "id": "p", "urls": ["https://example.com/"],
        "scrapeOptions": {"headers": {"cookie": "hush"}}}]);
    let webhook = json!({"url": "https://example.com/hook", "headers": {"authorization": "Bearer hush"}});
    let path = format!("/v2/monitor/{}", watch(caller, page, json!({"webhook": webhook})).await);
    let shown = caller.get(&path).await.ok()["data"].clone();
    assert!(!shown.to_string().contains("hush"), "{shown}");
    for field in ["webhook", "targets"] {
        let refused = patch(caller, &path, &json!({field: shown[field]})).await;
        let is_said = refused.text.contains("[hidden] stands for a value that is not shown");
        assert!(refused.status == 400 && is_said, "{field}: {} {}", refused.status, refused.text);
    }
}
