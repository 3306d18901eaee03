//! `changeTracking` (wire 3.4): new, same, changed and removed pages, diffs as lines and as fields, tags and teams.

use serde_json::{Value, json};
use weir_tests::{Caller, Database, ModelStandIn, OwnPages, Said, ServiceOptions, TestService, both_databases};

fn options(database: Database) -> ServiceOptions {
    ServiceOptions::new(database).env("WEIR_PAGE_BROWSERS", "0")
}

async fn track(caller: &Caller, url: &str, tracking: Value) -> Value {
    let mut format = json!({"type": "changeTracking"});
    format.as_object_mut().unwrap().extend(tracking.as_object().unwrap().clone());
    let body = json!({ "url": url, "formats": ["markdown", format], "maxAge": 0 });
    caller.post("/v2/scrape", &body).await.ok()["data"].clone()
}

/// Status and whether there was an earlier scrape.
fn told(document: &Value) -> (&str, bool) {
    let tracking = &document["changeTracking"];
    (tracking["changeStatus"].as_str().unwrap(), tracking["previousScrapeAt"].is_string())
}

both_databases! {
    async fn a_page_is_new_same_changed_removed_and_back(database) {
        let (service, pages) = (TestService::start_with(options(database)).await, OwnPages::start().await);
        let caller = service.caller();
        let diff = json!({"modes": ["git-diff"]});
        let url = pages.put("/page", "<main><h1>Prices</h1><p>Tea costs four euros.</p><p>Open daily.</p></main>");
        let first = track(caller, &url, diff.clone()).await;
        assert_eq!((told(&first), &first["changeTracking"]["visibility"]), (("new", false), &json!("visible")));
        assert!(first["changeTracking"].get("diff").is_none(), "{first}");
        let same = track(caller, &url, diff.clone()).await;
        assert_eq!((told(&same), same["changeTracking"].get("diff")), (("same", true), None));

        pages.put("/page", "<main><h1>Prices</h1><p>Tea costs five euros.</p><p>Open daily.</p></main>");
        let changed = track(caller, &url, diff.clone()).await;
        assert_eq!(told(&changed), ("changed", true));
        let at = changed["changeTracking"]["previousScrapeAt"].as_str().unwrap();
        assert!(at.ends_with('Z') && at.len() == 24, "{at}");
        let text = changed["changeTracking"]["diff"]["text"].as_str().unwrap();
        assert!(text.contains("-Tea costs four euros.\n") && text.contains("+Tea costs five euros.\n"), "{text}");
        let chunk = &changed["changeTracking"]["diff"]["json"]["files"][0]["chunks"][0];
        let kinds: Vec<&str> = chunk["changes"].as_array().unwrap().iter().map(|c| c["type"].as_str().unwrap()).collect();
        assert!(kinds.contains(&"del") && kinds.contains(&"add") && kinds.contains(&"normal"), "{chunk}");
        assert_eq!(changed["metadata"]["creditsUsed"], 1, "lines cost nothing");

        // Another tag, other options and another team know nothing of it; without a mode only the status is told.
        assert_eq!(told(&track(caller, &url, json!({"tag": "weekly"})).await), ("new", false));
        let other = service.new_team("others");
        assert_eq!(told(&track(&other, &url, diff.clone()).await), ("new", false));
        let body = json!({ "url": url, "formats": ["markdown", "changeTracking"], "onlyMainContent": false, "maxAge": 0 });
        assert_eq!(told(&caller.post("/v2/scrape", &body).await.ok()["data"]), ("new", false));

        for status in [404, 410] {
            pages.put_with("/page", status, "<p>Gone.</p>");
            let gone = track(caller, &url, diff.clone()).await;
            assert_eq!((told(&gone), &gone["changeTracking"]["visibility"]), (("removed", true), &json!("hidden")));
        }
        pages.put("/page", "<main><h1>Prices</h1><p>Tea costs five euros.</p></main>");
        assert_eq!(told(&track(caller, &url, diff).await), ("new", true));
        let hidden = "<!DOCTYPE html><meta name=robots content='noindex, follow'><title>x</title><p>A page of its own.</p>";
        let hidden = track(caller, &pages.put_with("/hidden", 200, hidden), json!({})).await;
        assert_eq!(hidden["changeTracking"]["visibility"], "hidden", "{hidden}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_another_release_has_read_differently_has_not_changed() {
    let options = options(Database::Sqlite).env("WEIR_CACHE_SIZE", "100MB");
    let (service, pages) = (TestService::start_with(options).await, OwnPages::start().await);
    let caller = service.caller();
    let page = |price: &str| format!("<main><h1>Prices</h1><p>Tea costs {price} euros.</p></main>");
    let diff = json!({"modes": ["git-diff"]});
    let (url, other) = (pages.put("/page", &page("four")), pages.put("/other", &page("five")));
    track(caller, &url, diff.clone()).await;
    track(caller, &other, diff.clone()).await;
    // Of what is stored reads now another text than was read then.
    let of = |url: &str| format!("(SELECT digest FROM page_version WHERE url = '{url}')");
    let body = format!("(SELECT body FROM page_content WHERE digest = {})", of(&other));
    service.execute(&format!("UPDATE page_content SET body = {body} WHERE digest = {}", of(&url))).await;
    pages.put("/page", &page("five"));
    let same = track(caller, &url, diff.clone()).await;
    assert_eq!((told(&same), same["changeTracking"].get("diff")), (("same", true), None), "{same}");
    // What has changed has, whether the version before is stored or not.
    for (price, forget) in [("six", false), ("seven", true)] {
        if forget {
            service.execute("DELETE FROM page_content").await;
        }
        pages.put("/page", &page(price));
        let changed = track(caller, &url, diff.clone()).await;
        assert_eq!(told(&changed), ("changed", true));
        let text = changed["changeTracking"]["diff"]["text"].as_str().unwrap();
        assert!(text.contains(&format!("+Tea costs {price} euros.\n")), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fields_are_read_of_both_versions_and_compared() {
    let model = ModelStandIn::answering(|_, asked| {
        let user = asked["messages"][1]["content"].as_str().unwrap();
        let price = if user.contains("four euros") { 4 } else { 5 };
        Said::json(&json!({"price": price, "drink": "tea"}))
    })
    .await;
    let options = options(Database::Sqlite).env("WEIR_LLM_URL", &model.url).env("WEIR_LLM_MODEL", "m");
    let (service, pages) = (TestService::start_with(options).await, OwnPages::start().await);
    let schema = json!({"type": "object", "properties": {"price": {"type": "number"}, "drink": {"type": "string"}}});
    let fields = json!({"modes": ["json"], "schema": schema});
    let url = pages.put("/page", "<main><p>Tea costs four euros.</p></main>");
    assert_eq!(told(&track(service.caller(), &url, json!({})).await).0, "new");
    pages.put("/page", "<main><p>Tea costs five euros.</p></main>");
    let changed = track(service.caller(), &url, fields.clone()).await;
    let tracking = &changed["changeTracking"];
    assert_eq!(tracking["json"], json!({"price": {"previous": 4, "current": 5}}), "only what differs: {changed}");
    assert!(tracking.get("diff").is_none());
    assert_eq!((&changed["metadata"]["creditsUsed"], model.asked().len()), (&json!(5), 2), "both versions were read");
    let same = track(service.caller(), &url, fields.clone()).await;
    assert_eq!((told(&same).0, model.asked().len()), ("same", 2), "what was read is kept");
    pages.put("/page", "<main><p>Tea costs four euros again.</p></main>");
    let back = track(service.caller(), &url, fields).await;
    assert_eq!(back["changeTracking"]["json"], json!({"price": {"previous": 5, "current": 4}}), "{back}");
    assert_eq!(model.asked().len(), 3, "one version was known");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_model_fields_are_told_of_as_missing() {
    let (service, pages) = (TestService::start_with(options(Database::Sqlite)).await, OwnPages::start().await);
    let url = pages.put("/page", "<main><p>Tea costs four euros.</p></main>");
    let document = track(service.caller(), &url, json!({"modes": ["json", "git-diff"]})).await;
    assert_eq!(told(&document).0, "new");
    assert!(document["warning"].as_str().unwrap().contains("SCRAPE_MODEL_NOT_CONFIGURED"), "{document}");
    assert_eq!(document["metadata"]["creditsUsed"], 1);
}
